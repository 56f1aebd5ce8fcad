use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use longhaul_model::{AnswerPart, AnswerStream, CallPermit, Capabilities, Model, ModelFailure, Request};
use longhaul_protocol::{Item, Role};
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

/// A model with one script for each session of a tree: the first whose words are in the session's first message.
pub struct RoutedModel<M> {
    routes: Vec<(&'static str, M)>,
}

impl<M: Model> RoutedModel<M> {
    pub fn new(routes: impl IntoIterator<Item = (&'static str, M)>) -> Self {
        Self { routes: routes.into_iter().collect() }
    }

    fn route(&self, request: &Request) -> &M {
        let text = |item: &Arc<Item>| match &**item {
            Item::Text { role: Role::User, text } => Some(text.clone()),
            _ => None,
        };
        let first = request.items.iter().find_map(text).unwrap_or_default();
        let route = self.routes.iter().find(|(words, _)| first.contains(words));
        &route.unwrap_or_else(|| panic!("no script for {first:?}")).1
    }
}

#[async_trait]
impl<M: Model> Model for RoutedModel<M> {
    fn name(&self) -> &str {
        self.routes[0].1.name()
    }

    async fn capabilities(&self) -> Capabilities {
        self.routes[0].1.capabilities().await
    }

    async fn ask(
        &self,
        request: Request,
        permit: &CallPermit,
    ) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        self.route(&request).ask(request, permit).await
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
