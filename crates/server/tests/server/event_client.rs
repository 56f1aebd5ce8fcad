//! A client of event streams, as browsers have one: it parses fields, and keeps the last id.

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response};
use serde_json::Value;

use crate::test_server::TestServer;

/// How long a test waits for something that must come.
const TIMEOUT_S: u64 = 30;

/// One message of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    Event { id: Option<u64>, data: Value },
    Comment,
    Retry(u64),
}

impl Message {
    pub(crate) fn event(&self) -> Option<&Value> {
        match self {
            Self::Event { data, .. } => Some(data),
            _ => None,
        }
    }
}

/// An open stream.
pub(crate) struct EventStream {
    response: Response,
    buffer: Vec<u8>,
}

impl EventStream {
    /// Opens a stream of the server, which must accept it.
    pub(crate) async fn open(server: &TestServer, path: &str) -> Self {
        Self::of_request(server.request(Method::GET, path)).await
    }

    pub(crate) async fn of_request(request: RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, buffer: vec![] }
    }

    /// Opens a stream; `None` if the server does not answer.
    pub(crate) async fn try_open(request: RequestBuilder) -> Option<Self> {
        let response = request.send().await.ok()?;
        assert_eq!(response.status(), 200);
        Some(Self { response, buffer: vec![] })
    }

    /// The next message; `None` at the end of the stream, also if the connection broke.
    pub(crate) async fn next(&mut self) -> Option<Message> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|two| two == b"\n\n") {
                let text = String::from_utf8(self.buffer.drain(..end + 2).collect()).unwrap();
                return Some(parse(text.trim_end_matches('\n')));
            }
            let chunk = tokio::time::timeout(Duration::from_secs(TIMEOUT_S), self.response.chunk()).await;
            self.buffer.extend_from_slice(&chunk.expect("nothing comes").ok()??);
        }
    }

    /// The events up to the first one of this type.
    pub(crate) async fn events_until(&mut self, kind: &str) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let message = self.next().await.unwrap_or_else(|| panic!("no {kind} came, but: {events:?}"));
            events.extend(message.event().cloned());
            if message.event().is_some_and(|event| event["type"] == kind) {
                return events;
            }
        }
    }
}

fn parse(text: &str) -> Message {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    if let Some(delay) = field("retry") {
        return Message::Retry(delay.parse().unwrap());
    }
    let Some(data) = field("data") else { return Message::Comment };
    assert!(text.lines().count() <= 2, "one event has one id and one line of data: {text:?}");
    Message::Event {
        id: field("id").map(|id| id.parse().unwrap()),
        data: serde_json::from_str(data).unwrap(),
    }
}

/// The seqs of events that are on record.
pub(crate) fn seqs(events: &[Value]) -> Vec<u64> {
    events.iter().filter_map(|event| event["seq"].as_u64()).collect()
}
