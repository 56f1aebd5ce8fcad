use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use longhaul_model::{Answer, Facts, Failure, Model, Part, Request};
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

    async fn facts(&self) -> Facts {
        self.model.facts().await
    }

    async fn ask(&self, request: Request) -> Result<Box<dyn Answer>, Failure> {
        self.requests.lock().unwrap().push(request.clone());
        self.model.ask(request).await
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

    async fn facts(&self) -> Facts {
        self.model.facts().await
    }

    async fn ask(&self, request: Request) -> Result<Box<dyn Answer>, Failure> {
        let answer = self.model.ask(request).await?;
        Ok(Box::new(Waiting { answer, gate: self.gate.clone(), held: None }))
    }
}

struct Waiting {
    answer: Box<dyn Answer>,
    gate: ModelGate,
    held: Option<Result<Part, Failure>>,
}

#[async_trait]
impl Answer for Waiting {
    async fn next(&mut self) -> Result<Part, Failure> {
        if self.held.is_none() {
            let part = self.answer.next().await;
            if !matches!(part, Ok(Part::End(_)) | Err(_)) {
                return part;
            }
            self.held = Some(part);
            self.gate.asked.add_permits(1);
        }
        self.gate.open.acquire().await.unwrap().forget();
        self.held.take().expect("it was put there above")
    }
}
