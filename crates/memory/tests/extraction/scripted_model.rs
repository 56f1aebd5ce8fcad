//! A model that answers as it is told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use longhaul_model::{
    AnswerPart, AnswerStream, CallPermit, FailureClass, Model, ModelFailure, Purpose, Request, StopKind,
    StopReason, TokenCounts,
};
use longhaul_protocol::{Item, Seq};
use serde_json::{Value, json};

/// What it answers.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// A call of the tool, with these items.
    Items(Value),
    /// A call of the tool with these arguments, word for word.
    Arguments(String),
    Text(String),
    Fails(FailureClass),
    /// A text that was cut at its greatest length.
    Cut(String),
    /// Nothing, ever.
    Hangs,
}

type Answering = Box<dyn Fn(&Request) -> Reply + Send + Sync>;

/// Answers with what it was told, in this order, then by a rule; remembers what it was asked.
pub(crate) struct Told {
    replies: Mutex<VecDeque<Reply>>,
    rule: Answering,
    requests: Mutex<Vec<Request>>,
}

impl Told {
    /// First these replies, then one without items.
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Arc<Self> {
        let replies = Mutex::new(replies.into_iter().collect());
        Arc::new(Self { replies, rule: Box::new(|_| Reply::Items(json!([]))), requests: Mutex::default() })
    }

    pub(crate) fn by(rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { replies: Mutex::default(), rule: Box::new(rule), requests: Mutex::default() })
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn calls(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    /// The message of each request.
    pub(crate) fn messages(&self) -> Vec<String> {
        self.requests().iter().map(message).collect()
    }

    /// For each request, how many extracts it says came before.
    pub(crate) fn extracts_before(&self) -> Vec<usize> {
        let before = |request: &Request| match request.purpose {
            Purpose::Extract { extracts_before } => extracts_before,
            other => panic!("{other:?}"),
        };
        self.requests().iter().map(before).collect()
    }
}

/// What a request says.
pub(crate) fn message(request: &Request) -> String {
    match &*request.items[0] {
        Item::Text { text, .. } => text.clone(),
        other => panic!("{other:?}"),
    }
}

/// The records whose entries a message has.
pub(crate) fn shown(message: &str) -> Vec<Seq> {
    let number = |line: &str| line.strip_prefix('[')?.split_once(']')?.0.parse().ok();
    message.lines().filter_map(number).collect()
}

#[async_trait]
impl Model for Told {
    fn name(&self) -> &str {
        "told/model"
    }

    async fn ask(
        &self,
        request: Request,
        _permit: &CallPermit,
    ) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        let reply = self.replies.lock().unwrap().pop_front();
        let reply = reply.unwrap_or_else(|| (self.rule)(&request));
        self.requests.lock().unwrap().push(request);
        let tokens = TokenCounts { input: Some(1_000), output: Some(10), ..TokenCounts::default() };
        let parts = match reply {
            Reply::Fails(class) => return Err(ModelFailure::new(class, "it failed, says hunter2")),
            Reply::Hangs => std::future::pending().await,
            Reply::Items(items) => call(json!({ "items": items }).to_string()),
            Reply::Arguments(arguments) => call(arguments),
            Reply::Text(text) | Reply::Cut(text) if text.is_empty() => vec![],
            Reply::Text(text) => said(text, StopKind::Finished),
            Reply::Cut(text) => said(text, StopKind::Length),
        };
        Ok(Box::new(Saying([AnswerPart::Usage(tokens)].into_iter().chain(parts).collect())))
    }
}

fn call(arguments: String) -> Vec<AnswerPart> {
    vec![
        AnswerPart::CallStart { wire_id: None, name: "write_extracted".to_owned() },
        AnswerPart::ArgumentsDelta(arguments),
        AnswerPart::CallStop { signature: None },
        AnswerPart::End(StopReason::new(StopKind::Finished, "tool_calls")),
    ]
}

fn said(text: String, kind: StopKind) -> Vec<AnswerPart> {
    vec![
        AnswerPart::TextStart,
        AnswerPart::TextDelta(text),
        AnswerPart::TextStop,
        AnswerPart::End(StopReason::new(kind, "stop")),
    ]
}

struct Saying(VecDeque<AnswerPart>);

#[async_trait]
impl AnswerStream for Saying {
    async fn next(&mut self) -> Result<AnswerPart, ModelFailure> {
        // So that whoever waits for it can be cut at every part.
        tokio::task::yield_now().await;
        self.0.pop_front().ok_or_else(|| ModelFailure::new(FailureClass::Broken, "it was over"))
    }
}
