//! A model that does its work by rule, and writes summaries that are as poor as they may be.

use async_trait::async_trait;
use longhaul_model::{
    AnswerPart, AnswerStream, CallPermit, Model, ModelFailure, Purpose, Request, StopKind, StopReason,
};
use longhaul_protocol::{Item, Role};
use serde_json::{Value, json};

use super::plan::{Thing, WITHDRAWN, WITHDRAWS, plan, prattle};

/// So many bytes of what it is shown does it read to say what was done: the newest.
const READS: usize = 400;

/// The model. Of what it is to summarise it says what was done last and quotes what is new of directives; it keeps nothing of the
/// summary before, and no fact.
pub(super) struct Forgetful {
    pub(super) things: Vec<Thing>,
}

#[async_trait]
impl Model for Forgetful {
    fn name(&self) -> &'static str {
        "scripted/forgetful"
    }

    async fn ask(
        &self,
        request: Request,
        _permit: &CallPermit,
    ) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        let parts = match request.purpose {
            Purpose::Summary { .. } => called("write_summary", &poor_summary(&request)),
            Purpose::Step { answers_before } => self.step(&request, answers_before),
            Purpose::Extract { .. } | Purpose::Consolidate { .. } | Purpose::Search => {
                panic!("nothing starts what would ask for this")
            }
        };
        let end = AnswerPart::End(StopReason::new(StopKind::Finished, "stop"));
        Ok(Box::new(Saying(parts.into_iter().chain([end]).collect::<Vec<_>>().into_iter())))
    }
}

struct Saying(std::vec::IntoIter<AnswerPart>);

#[async_trait]
impl AnswerStream for Saying {
    async fn next(&mut self) -> Result<AnswerPart, ModelFailure> {
        Ok(self.0.next().expect("nobody asks after the end"))
    }
}

fn called(tool: &str, arguments: &Value) -> Vec<AnswerPart> {
    vec![
        AnswerPart::CallStart { wire_id: None, name: tool.to_owned() },
        AnswerPart::ArgumentsDelta(arguments.to_string()),
        AnswerPart::CallStop { signature: None },
    ]
}

fn says(text: String) -> Vec<AnswerPart> {
    vec![AnswerPart::TextStart, AnswerPart::TextDelta(text), AnswerPart::TextStop]
}

impl Forgetful {
    /// The last thing that the user said is done, and then something is said about it.
    fn step(&self, request: &Request, answers_before: usize) -> Vec<AnswerPart> {
        let number = answers_before + request.finished_steps();
        let is_user = |item: &Item| matches!(item, Item::Text { role: Role::User, .. });
        let last = request.items.iter().rposition(|item| is_user(item)).expect("somebody said something");
        let Item::Text { text, .. } = &*request.items[last] else { unreachable!("it was looked for above") };
        let is_done = request.items[last..].iter().any(|item| match &**item {
            Item::ToolResult { .. } => true,
            Item::Note { text } => text.contains("compacted in the middle of this turn"),
            _ => false,
        });
        if is_done { says("Done, and nothing odd about it.".to_owned()) } else { self.act(text, number) }
    }

    fn act(&self, said: &str, number: usize) -> Vec<AnswerPart> {
        if let Some((path, content)) = said.strip_prefix("Write ").and_then(|rest| rest.split_once(": ")) {
            return called("write_file", &json!({"path": path, "content": content}));
        }
        if let Some((path, change)) = said.strip_prefix("In ").and_then(|rest| rest.split_once(" put ")) {
            let (new, old) = change.split_once(" for ").expect("it is said so");
            return called("edit_file", &json!({"path": path, "edits": [{"old": old, "new": new}]}));
        }
        if let Some(log) = said.strip_prefix("Look at log ") {
            let path = format!("log-{}.txt", log.trim_end_matches('.'));
            return called("read_file", &json!({"path": path, "offset": number % 7 + 1}));
        }
        match said {
            "Begin to watch the gauge." => {
                // It ends when the work folder goes, however the test ends.
                let command = "while [ -e log-0.txt ]; do sleep 0.2; done";
                let description = super::plan::TASK;
                let arguments =
                    json!({"command": command, "description": description, "run_in_background": true});
                called("exec", &arguments)
            }
            "Renew the plan." => called("todo", &json!({"items": plan(number < 100)})),
            "Recall it all." => {
                let query = |thing: &Thing| json!({"query": thing.query, "scope": "session", "limit": 3});
                self.things.iter().flat_map(|thing| called("recall", &query(thing))).collect()
            }
            _ => says(prattle(number)),
        }
    }
}

/// A summary that forgets everything but what is new.
fn poor_summary(request: &Request) -> Value {
    let [item] = &request.items[..] else { panic!("there is one message") };
    let Item::Text { text, .. } = &**item else { panic!("it is a text") };
    let (_, transcript) = text.split_once("<<transcript>>\n").expect("there is material");
    let (transcript, _) = transcript.split_once("<<end>>").expect("it has an end");
    let said: Vec<&str> = transcript
        .split("<<user>>\n")
        .skip(1)
        .map(|part| part.split("\n<<").next().unwrap_or_default())
        .collect();
    let is_directive = |said: &&&str| said.starts_with("Never ") || said.starts_with("Always ");
    let withdrawn: &[&str] = if said.contains(&WITHDRAWS) { &[WITHDRAWN] } else { &[] };
    let newest = &transcript[transcript.ceil_char_boundary(transcript.len().saturating_sub(READS))..];
    json!({
        "goal": "Be of use.",
        "directives": said.iter().filter(is_directive).collect::<Vec<_>>(),
        "withdrawn": withdrawn,
        "done": [newest],
        "next_action": "answer what is asked next",
    })
}
