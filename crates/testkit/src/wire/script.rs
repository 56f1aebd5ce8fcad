use std::sync::{Arc, Mutex};

use longhaul_model::Protocol;
use serde_json::Value;

use super::{Reply, ScriptedAnswer};

/// A request as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedRequest {
    /// GET or POST.
    pub method: String,
    /// The path, with what follows it.
    pub path: String,
    /// Names, in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// What was sent.
    pub body: Vec<u8>,
}

impl ReceivedRequest {
    /// The value of a header; its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| {
            panic!("{error}: {} {} {:?}", self.method, self.path, String::from_utf8_lossy(&self.body))
        })
    }

    /// What the client speaks, as the path tells.
    pub fn protocol(&self) -> Option<Protocol> {
        let path = self.path.split('?').next().unwrap_or_default();
        let known = [
            ("/chat/completions", Protocol::OpenaiChat),
            ("/responses", Protocol::OpenaiResponses),
            ("/messages", Protocol::Anthropic),
            (":streamGenerateContent", Protocol::Gemini),
        ];
        known.into_iter().find(|(end, _)| path.ends_with(end)).map(|(_, protocol)| protocol)
    }
}

type Decide = Box<dyn FnMut(&ReceivedRequest) -> Reply + Send>;

/// Has a reply to every request, and remembers them. A clone is the same script.
#[derive(Clone)]
pub struct Script {
    decide: Arc<Mutex<Decide>>,
    seen: Option<Arc<Mutex<Vec<ReceivedRequest>>>>,
}

impl Script {
    /// One reply after the other; when they are used up, a 599 that says so.
    pub fn list(replies: Vec<Reply>) -> Self {
        let mut replies = replies.into_iter();
        Self::by(move |_| {
            let used_up = r#"{"error":{"message":"the script is used up"}}"#;
            replies.next().unwrap_or_else(|| Reply::error(599, used_up))
        })
    }

    /// What this says about a request.
    pub fn by(decide: impl FnMut(&ReceivedRequest) -> Reply + Send + 'static) -> Self {
        Self { decide: Arc::new(Mutex::new(Box::new(decide))), seen: Some(Arc::default()) }
    }

    /// Gives the same answer to every request, in the protocol of its path, with a chunk for each frame; 404 for other
    /// paths.
    pub fn saying(said: ScriptedAnswer) -> Self {
        Self::by(move |seen| speak(seen, &said))
    }

    /// Like [`Script::saying`], from a server that reads only the last tokens of a prompt and does not say so: that is seen in the
    /// usage alone. A token is four bytes of the request.
    pub fn cutting_prompts(said: ScriptedAnswer, window: u64) -> Self {
        Self::by(move |seen| {
            let read = (seen.body.len() as u64 / 4).min(window);
            speak(seen, &said.clone().reading(read))
        })
    }

    /// The same, without a memory: for servers that run for long.
    #[must_use]
    pub fn forgetful(self) -> Self {
        Self { seen: None, ..self }
    }

    /// What was asked so far.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.seen.as_ref().map(|seen| seen.lock().unwrap().clone()).unwrap_or_default()
    }

    /// Remembers a request, and decides.
    pub(super) fn reply(&self, seen: ReceivedRequest) -> Reply {
        let reply = self.decide.lock().unwrap()(&seen);
        if let Some(memory) = &self.seen {
            memory.lock().unwrap().push(seen);
        }
        reply
    }
}

fn speak(seen: &ReceivedRequest, said: &ScriptedAnswer) -> Reply {
    match seen.protocol() {
        Some(protocol) => Reply::frames(said.frames(protocol)),
        None => Reply::error(404, r#"{"error":{"message":"there is no such path"}}"#),
    }
}
