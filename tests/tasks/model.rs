//! A model server that plays along, and what it was asked.

use longhaul_model::Protocol;
use longhaul_protocol::CommandReport;
use longhaul_testkit::wire::{ModelServer, ReceivedRequest, Reply, Script, ScriptedAnswer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::desk::Desk;

pub(crate) const PROTOCOLS: [Protocol; 4] =
    [Protocol::OpenaiChat, Protocol::OpenaiResponses, Protocol::Anthropic, Protocol::Gemini];

/// A desk whose model is a server.
pub(crate) struct Stage {
    pub(crate) desk: Desk,
    server: ModelServer,
}

impl Stage {
    /// With a model that says one after the other.
    pub(crate) fn saying(answers: Vec<ScriptedAnswer>) -> Self {
        Self::speaking(Protocol::OpenaiChat, answers)
    }

    /// The same in another protocol.
    pub(crate) fn speaking(protocol: Protocol, answers: Vec<ScriptedAnswer>) -> Self {
        let mut answers = answers.into_iter();
        Self::new(protocol, "", move |_| answers.next())
    }

    /// With a model that decides by what it is asked, and more in the config.
    pub(crate) fn deciding(
        more: &str,
        decide: impl FnMut(&ReceivedRequest) -> ScriptedAnswer + Send + 'static,
    ) -> Self {
        let mut decide = decide;
        Self::new(Protocol::OpenaiChat, more, move |seen| Some(decide(seen)))
    }

    /// The same desk with another model, which says these.
    pub(crate) fn then_saying(self, answers: Vec<ScriptedAnswer>) -> Self {
        let mut answers = answers.into_iter();
        let server = serve(move |_| answers.next());
        self.desk.configure(&config(Protocol::OpenaiChat, &server, ""));
        Self { server, ..self }
    }

    fn new(
        protocol: Protocol,
        more: &str,
        next: impl FnMut(&ReceivedRequest) -> Option<ScriptedAnswer> + Send + 'static,
    ) -> Self {
        let server = serve(next);
        let desk = Desk::with_model_of_config(&config(protocol, &server, more));
        Self { desk, server }
    }

    /// What the model was asked, without questions about the server.
    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.server.requests().into_iter().filter(|seen| seen.protocol().is_some()).collect()
    }
}

/// A server that answers in whichever protocol it is asked, for as long as there is something to say.
fn serve(mut next: impl FnMut(&ReceivedRequest) -> Option<ScriptedAnswer> + Send + 'static) -> ModelServer {
    let error =
        |status, message: &str| Reply::error(status, json!({"error": {"message": message}}).to_string());
    ModelServer::start(Script::by(move |seen| match seen.protocol() {
        Some(protocol) => next(seen).map_or_else(
            || error(400, "nothing more was to be asked"),
            |said| Reply::frames(said.frames(protocol)),
        ),
        None => error(404, "there is no such path"),
    }))
}

/// Memory is off: requests are counted, and whoever waits for tasks would wait for it, too.
fn config(protocol: Protocol, server: &ModelServer, more: &str) -> String {
    format!(
        "[model]\nname = 'custom/m'\nprotocol = '{}'\nbase_url = '{}/v1'\ncontext_window = 1000000\n\
         [memory]\nextract_at_tokens = 0\n[retry]\nbase_ms = 5\ncap_ms = 20\n{more}",
        name(protocol),
        server.url()
    )
}

fn name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::OpenaiChat => "openai-chat",
        Protocol::OpenaiResponses => "openai-responses",
        Protocol::Anthropic => "anthropic",
        Protocol::Gemini => "gemini",
    }
}

/// An answer that only runs a command.
pub(crate) fn exec(arguments: Value) -> ScriptedAnswer {
    ScriptedAnswer::nothing().call("exec", arguments)
}

/// An answer that runs a command in the background.
pub(crate) fn background(command: &str, description: &str) -> ScriptedAnswer {
    exec(json!({"command": command, "description": description, "run_in_background": true}))
}

/// The messages of a request, as they were sent.
pub(crate) fn messages(seen: &ReceivedRequest) -> String {
    #[derive(serde::Deserialize)]
    struct Body<'a> {
        #[serde(borrow, alias = "input", alias = "contents")]
        messages: &'a RawValue,
    }
    let body: Body<'_> = serde_json::from_slice(&seen.body).unwrap();
    body.messages.get().to_owned()
}

/// Everything that a request tells the model, and that the model has not said itself.
pub(crate) fn told(seen: &ReceivedRequest) -> Vec<String> {
    let messages: Vec<Value> = serde_json::from_str(&messages(seen)).unwrap();
    let is_its_own = |message: &Value| {
        let role = message["role"].as_str().unwrap_or_default();
        matches!(role, "assistant" | "model") || message["type"] == "function_call"
    };
    let mut texts = Vec::new();
    for message in messages.iter().filter(|message| !is_its_own(message)) {
        collect(message, &mut texts);
    }
    texts
}

fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| collect(value, texts)),
        Value::Object(fields) => fields.values().for_each(|value| collect(value, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The notifications in a request.
pub(crate) fn notifications(seen: &ReceivedRequest) -> Vec<String> {
    told(seen).into_iter().filter(|text| text.starts_with("<task-notification>")).collect()
}

/// The results of `exec` and the task tools in a request, the last one last.
pub(crate) fn results(seen: &ReceivedRequest) -> Vec<Value> {
    told(seen).iter().filter_map(|text| CommandReport::parse_to_json(text)).collect()
}
