//! A model that plays a list of answers.
//!
//! The number of finished steps, in the request and before it, selects the answer. So a new process continues the
//! list where the killed process left off. Summaries, extracts and memory pages have lists of their own, because a
//! script can't know when they are asked for: that depends on the size of the context and on the clock.
//! `docs/scripted.md` describes the file.

use std::collections::VecDeque;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    AnswerPart, AnswerStream, CallPermit, Capabilities, Error, FailureClass, Model, ModelFailure, Purpose,
    Request, Result, StopKind, StopReason, TokenCounts,
};

/// Tools of background jobs. The crates that define them depend on this one, so the names are repeated here.
const WRITE_SUMMARY: &str = "write_summary";
const WRITE_EXTRACTED: &str = "write_extracted";
const WRITE_PAGES: &str = "write_pages";
/// Used if a script has no summary, so that a small script survives a compaction. The heading makes it valid.
/// The largest script, in bytes.
const MAX_SCRIPT_BYTES: u64 = 64 << 20;
const DEFAULT_SUMMARY: &str = "# Goal\nThe script has no summary for this.";

/// Plays a list of answers, counts its calls, and fails when no answer is left.
#[derive(Debug)]
pub struct ScriptedModel {
    name: String,
    steps: Vec<ScriptedAnswer>,
    summaries: Vec<ScriptedAnswer>,
    extracts: Vec<ScriptedAnswer>,
    consolidations: Vec<ScriptedAnswer>,
    calls: AtomicUsize,
    facts: Capabilities,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Script {
    List(Vec<Value>),
    Named { answers: Vec<Value> },
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ScriptedAnswer {
    reasoning: Option<String>,
    #[serde(alias = "content")]
    text: Option<String>,
    #[serde(alias = "tool_calls")]
    calls: Vec<ScriptedCall>,
    usage: Option<TokenCounts>,
    stop: Option<String>,
    wait_ms: u64,
    piece_ms: u64,
    /// The answer ends with this failure.
    error: Option<String>,
    /// The answer breaks off before its end.
    cut: bool,
    summary: bool,
    extract: bool,
    pages: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedCall {
    #[serde(default)]
    id: Option<String>,
    name: String,
    /// An object, or a string that is sent unchanged even if it is not JSON.
    #[serde(default, alias = "input")]
    arguments: Value,
}

/// Reads a file of bounded size. A pipe or a device could hold up its reader for ever.
fn read_script(path: &Path) -> std::io::Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is not a file"));
    }
    let mut text = String::new();
    let read = std::fs::File::open(path)?.take(MAX_SCRIPT_BYTES + 1).read_to_string(&mut text)?;
    match read as u64 > MAX_SCRIPT_BYTES {
        true => Err(std::io::Error::other(format!("it has more than {} MiB", MAX_SCRIPT_BYTES >> 20))),
        false => Ok(text),
    }
}

impl ScriptedModel {
    pub fn from_file(path: &Path) -> Result<Self> {
        let bad = |reason: String| Error::BadScript { path: path.to_owned(), reason };
        let text = read_script(path).map_err(|error| bad(error.to_string()))?;
        Ok(Self { name: format!("scripted/{}", path.display()), ..Self::read(&text).map_err(bad)? })
    }

    pub fn from_json(text: &str) -> Result<Self> {
        Self::read(text).map_err(|reason| Error::BadScript { path: PathBuf::from("script"), reason })
    }

    fn read(text: &str) -> std::result::Result<Self, String> {
        let (Script::List(answers) | Script::Named { answers }) =
            serde_json::from_str(text).map_err(|error| match error.classify() {
                serde_json::error::Category::Data => "it must be a list of answers".to_owned(),
                _ => error.to_string(),
            })?;
        let scene = |(index, answer): (usize, Value)| match answer {
            Value::String(text) => Ok(ScriptedAnswer::with_text(text)),
            answer => serde_json::from_value(answer)
                .map_err(|error| format!("answer {} is invalid: {error}", index + 1)),
        };
        let scenes: Vec<ScriptedAnswer> =
            answers.into_iter().enumerate().map(scene).collect::<std::result::Result<_, _>>()?;
        let (summaries, rest): (_, Vec<ScriptedAnswer>) =
            scenes.into_iter().partition(ScriptedAnswer::is_summary);
        let (extracts, rest): (_, Vec<ScriptedAnswer>) =
            rest.into_iter().partition(ScriptedAnswer::is_extract);
        let (consolidations, steps) = rest.into_iter().partition(ScriptedAnswer::is_consolidation);
        Ok(Self {
            name: "scripted/script".to_owned(),
            steps,
            summaries,
            extracts,
            consolidations,
            calls: AtomicUsize::new(0),
            facts: Capabilities::default(),
        })
    }

    #[must_use]
    pub fn with_capabilities(self, facts: Capabilities) -> Self {
        Self { facts, ..self }
    }

    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    fn used_up(&self, what: &str, there_are: usize, index: usize) -> ModelFailure {
        let (name, asked) = (&self.name, index + 1);
        let message = format!(
            "{name} has only {there_are} {what}, but number {asked} was requested; add one to the script and start again"
        );
        ModelFailure::new(FailureClass::Script, message)
    }
}

#[async_trait]
impl Model for ScriptedModel {
    fn name(&self) -> &str {
        &self.name
    }

    async fn capabilities(&self) -> Capabilities {
        self.facts.clone()
    }

    async fn ask(
        &self,
        request: Request,
        _permit: &CallPermit,
    ) -> std::result::Result<Box<dyn AnswerStream>, ModelFailure> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let scene = match request.purpose {
            Purpose::Step { answers_before } => {
                let index = answers_before + request.finished_steps();
                self.steps
                    .get(index)
                    .cloned()
                    .ok_or_else(|| self.used_up("answers", self.steps.len(), index))?
            }
            Purpose::Summary { .. } if self.summaries.is_empty() => {
                ScriptedAnswer::with_text(DEFAULT_SUMMARY.to_owned())
            }
            Purpose::Summary { summaries_before: index } => {
                let missing = || self.used_up("summaries", self.summaries.len(), index);
                self.summaries.get(index).cloned().ok_or_else(missing)?
            }
            Purpose::Search => return Err(self.used_up("searches", 0, 0)),
            // A script without extracts or pages has nothing to remember.
            Purpose::Extract { extracts_before: index } => self
                .extracts
                .get(index)
                .cloned()
                .unwrap_or_else(|| ScriptedAnswer::with_call(WRITE_EXTRACTED, r#"{"items":[]}"#)),
            Purpose::Consolidate { consolidations_before: index } => self
                .consolidations
                .get(index)
                .cloned()
                .unwrap_or_else(|| ScriptedAnswer::with_call(WRITE_PAGES, r#"{"pages":[]}"#)),
        };
        Ok(Box::new(ScriptedStream {
            parts: scene.parts(),
            wait: Duration::from_millis(scene.wait_ms),
            pause: Duration::from_millis(scene.piece_ms),
        }))
    }
}

impl ScriptedAnswer {
    fn with_text(text: String) -> Self {
        Self { text: Some(text), ..Self::default() }
    }

    fn with_call(tool: &str, arguments: &str) -> Self {
        let call =
            ScriptedCall { id: None, name: tool.to_owned(), arguments: Value::String(arguments.to_owned()) };
        Self { calls: vec![call], ..Self::default() }
    }

    fn calls(&self, tool: &str) -> bool {
        self.calls.iter().any(|call| call.name == tool)
    }

    fn is_summary(&self) -> bool {
        self.summary || self.calls(WRITE_SUMMARY)
    }

    fn is_extract(&self) -> bool {
        self.extract || self.calls(WRITE_EXTRACTED)
    }

    fn is_consolidation(&self) -> bool {
        self.pages || self.calls(WRITE_PAGES)
    }

    fn parts(&self) -> VecDeque<std::result::Result<AnswerPart, ModelFailure>> {
        let mut parts = VecDeque::new();
        if let Some(reasoning) = &self.reasoning {
            parts.push_back(AnswerPart::ReasoningStart);
            parts.extend(words(reasoning).map(AnswerPart::ReasoningDelta));
            parts.push_back(AnswerPart::ReasoningStop { signature: None });
        }
        if let Some(text) = &self.text {
            parts.push_back(AnswerPart::TextStart);
            parts.extend(words(text).map(AnswerPart::TextDelta));
            parts.push_back(AnswerPart::TextStop);
        }
        for call in &self.calls {
            let arguments = match &call.arguments {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                arguments => arguments.to_string(),
            };
            parts.push_back(AnswerPart::CallStart { wire_id: call.id.clone(), name: call.name.clone() });
            parts.push_back(AnswerPart::ArgumentsDelta(arguments));
            parts.push_back(AnswerPart::CallStop { signature: None });
        }
        parts.extend(self.usage.map(AnswerPart::Usage));
        let last = match &self.error {
            Some(reason) => {
                Err(ModelFailure::new(FailureClass::Script, format!("the model failed: {reason}")))
            }
            None if self.cut => {
                Err(ModelFailure::new(FailureClass::Broken, "the answer was cut off, as the script says"))
            }
            None => Ok(AnswerPart::End(self.stop())),
        };
        parts.into_iter().map(Ok).chain([last]).collect()
    }

    fn stop(&self) -> StopReason {
        let usual = if self.calls.is_empty() { "stop" } else { "tool_calls" };
        let word = self.stop.clone().unwrap_or_else(|| usual.to_owned());
        let kind = match word.as_str() {
            "length" => StopKind::Length,
            "refusal" => StopKind::Refused,
            _ => StopKind::Finished,
        };
        StopReason { kind, word }
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split_inclusive(' ').map(str::to_owned)
}

struct ScriptedStream {
    parts: VecDeque<std::result::Result<AnswerPart, ModelFailure>>,
    wait: Duration,
    pause: Duration,
}

#[async_trait]
impl AnswerStream for ScriptedStream {
    async fn next(&mut self) -> std::result::Result<AnswerPart, ModelFailure> {
        // Without a wait no timer is created, so that the model also works in a runtime without a clock.
        if !self.wait.is_zero() {
            tokio::time::sleep(self.wait).await;
        }
        self.wait = self.pause;
        self.parts
            .pop_front()
            .unwrap_or_else(|| Err(ModelFailure::new(FailureClass::Broken, "the answer had already ended")))
    }
}

#[cfg(test)]
#[path = "scripted_tests.rs"]
mod tests;
