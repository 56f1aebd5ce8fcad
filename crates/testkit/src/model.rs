use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use longhaul_model::{AnswerPart, AnswerStream, CallPermit, Capabilities, Model, ModelFailure, Request};
use tokio::sync::Semaphore;

/// A model that records its requests.
pub struct RecordingModel<M> {
    model: M,
    requests: Mutex<Vec<Request>>,
}

impl<M> RecordingModel<M> {
    pub fn new(model: M) -> Arc<Self> {
        Arc::new(Self { model, requests: Mutex::default() })
    }

    pub fn model(&self) -> &M {
        &self.model
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

#[async_trait]
impl<M: Model> Model for RecordingModel<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn capabilities(&self) -> Capabilities {
        self.model.capabilities().await
    }

    async fn ask(
        &self,
        request: Request,
        permit: &CallPermit,
    ) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        self.requests.lock().unwrap().push(request.clone());
        self.model.ask(request, permit).await
    }
}

/// Holds the answers of a model until a test lets them pass.
#[derive(Clone)]
pub struct ModelGate {
    asked: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

impl ModelGate {
    /// Waits until the model was asked once more and has said everything but the end.
    pub async fn reached(&self) {
        self.asked.acquire().await.unwrap().forget();
    }

    /// Lets one answer end.
    pub fn open(&self) {
        self.open.add_permits(1);
    }
}

/// A model whose answers stop before their end and wait at a gate.
pub struct GatedModel<M> {
    model: M,
    gate: ModelGate,
}

impl<M> GatedModel<M> {
    pub fn new(model: M) -> (Arc<Self>, ModelGate) {
        let closed = || Arc::new(Semaphore::new(0));
        let gate = ModelGate { asked: closed(), open: closed() };
        (Arc::new(Self { model, gate: gate.clone() }), gate)
    }
}

#[async_trait]
impl<M: Model> Model for GatedModel<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn capabilities(&self) -> Capabilities {
        self.model.capabilities().await
    }

    async fn ask(
        &self,
        request: Request,
        permit: &CallPermit,
    ) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        let answer = self.model.ask(request, permit).await?;
        Ok(Box::new(Waiting { answer, gate: self.gate.clone(), held: None }))
    }
}

struct Waiting {
    answer: Box<dyn AnswerStream>,
    gate: ModelGate,
    held: Option<Result<AnswerPart, ModelFailure>>,
}

#[async_trait]
impl AnswerStream for Waiting {
    async fn next(&mut self) -> Result<AnswerPart, ModelFailure> {
        if self.held.is_none() {
            let part = self.answer.next().await;
            if !matches!(part, Ok(AnswerPart::End(_)) | Err(_)) {
                return part;
            }
            self.held = Some(part);
            self.gate.asked.add_permits(1);
        }
        self.gate.open.acquire().await.unwrap().forget();
        self.held.take().expect("it was put there above")
    }
}
