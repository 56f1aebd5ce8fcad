//! What running calls say to their session: ids of tasks at a server, which are recorded, and questions to the user.
//!
//! | a crash after | is on disk | on resume |
//! | --- | --- | --- |
//! | the server made a task, before `tool_task` | the start of the call | as without a task: by its effect, or unknown |
//! | `tool_task` | the id | the task is asked about |
//! | `question` | the question | no call waits for the answer any more: the question is withdrawn, and the call is resumed; the server of a task asks again |

use std::collections::HashMap;

use longhaul_protocol::{CallId, Question, QuestionId, QuestionKind, SessionRecord, ToolTask};
use longhaul_tools::{CallLine, CallMessage, CallMessageContent, CallQuestion};
use tokio::sync::{mpsc, oneshot};

use crate::turn::approval_question::on_one_line;
use crate::turn::end::withdraw_question;
use crate::worker::wait::WakeOn;
use crate::worker::{Worker, WorkerResult};

/// Questions that one call may ask. Each is a record, and interrupts the user.
const MAX_QUESTIONS: usize = 10;
const MAX_TEXT_CHARS: usize = 4_000;
const MAX_CHOICES: usize = 9;
const MAX_CHOICE_CHARS: usize = 200;
pub(super) const CALL_ENDED: &str = "withdrawn: the call that asked has ended";
pub(super) const RUNTIME_ENDED: &str = "withdrawn: the runtime ended before the answer reached the server, which asks again if it still needs it";

/// The lines of the calls of a step.
pub(super) struct CallLines {
    sender: mpsc::UnboundedSender<CallMessage>,
    receiver: mpsc::UnboundedReceiver<CallMessage>,
    asked: Vec<AskedQuestion>,
    /// How many questions each call has asked so far.
    counts: HashMap<CallId, usize>,
}

/// A question that waits for the user.
struct AskedQuestion {
    id: QuestionId,
    call: CallId,
    choices: ShownChoices,
    answer: oneshot::Sender<String>,
}

/// The choices of a server as the user sees them: on one line, not too long, no two alike.
struct ShownChoices {
    shown: Vec<String>,
    originals: Vec<String>,
}

impl ShownChoices {
    fn new(originals: Vec<String>) -> Self {
        let mut shown: Vec<String> = Vec::with_capacity(originals.len());
        for original in &originals {
            let mut choice = on_one_line(&shorten(original, MAX_CHOICE_CHARS));
            if shown.contains(&choice) {
                choice.push_str(&format!(" ({})", shown.len() + 1));
            }
            shown.push(choice);
        }
        Self { shown, originals }
    }

    /// The choices for a question that has few enough, and the text that lists them for one that has not.
    fn offered(&self) -> (Vec<String>, String) {
        if self.shown.len() <= MAX_CHOICES {
            return (self.shown.clone(), String::new());
        }
        let lines: Vec<String> = self.shown.iter().map(|choice| format!("- {choice}")).collect();
        (vec![], format!("\nAnswer with one of these:\n{}", lines.join("\n")))
    }

    /// The server's word for what the user chose, or what the user wrote.
    fn original<'a>(&'a self, answer: &'a str) -> &'a str {
        let chosen = self.shown.iter().position(|shown| shown == answer.trim());
        chosen.map_or(answer, |place| &self.originals[place])
    }
}

impl CallLines {
    pub(super) fn new() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self { sender, receiver, asked: Vec::new(), counts: HashMap::new() }
    }

    pub(super) fn line_of(&self, call: CallId) -> CallLine {
        CallLine::new(call, self.sender.clone())
    }

    /// The next message of a call. Waits for ever if there is none.
    pub(super) async fn next_message(&mut self) -> CallMessage {
        match self.receiver.recv().await {
            Some(message) => message,
            None => std::future::pending().await,
        }
    }

    /// What should wake the worker that waits for calls: also each answer, if some are waited for.
    pub(super) fn wake_on(&self, otherwise: WakeOn) -> WakeOn {
        match (otherwise, self.asked.len()) {
            (WakeOn::Cancel, open @ 1..) => WakeOn::Elicitations { open },
            (otherwise, _) => otherwise,
        }
    }

    /// Records what a call says.
    pub(super) async fn hear(&mut self, worker: &mut Worker, message: CallMessage) -> WorkerResult<()> {
        let call = message.call;
        match message.content {
            CallMessageContent::RemoteTask { task, recorded } => {
                worker.commit(vec![SessionRecord::ToolTask(ToolTask { call, task })], vec![]).await?;
                let _ = recorded.send(());
            }
            CallMessageContent::StartTask { task, recorded } => {
                // A call that is resumed has started its task before.
                if worker.state().tasks.get(task.task_id).is_none() {
                    worker.commit(vec![SessionRecord::TaskStarted(*task)], vec![]).await?;
                }
                let _ = recorded.send(());
            }
            // If no client can answer, the server is told at once.
            CallMessageContent::Ask { .. } if !is_attended(worker) => {}
            // So is one that asks for too much.
            CallMessageContent::Ask { .. } if !self.may_ask(call) => {}
            CallMessageContent::Ask { question: CallQuestion { text, choices }, answer } => {
                let name = worker.state().call(call).map(|call| call.name.clone()).unwrap_or_default();
                let choices = ShownChoices::new(choices);
                let (offered, list) = choices.offered();
                let text = elicitation_text(&name, &text) + &shorten(&list, MAX_TEXT_CHARS);
                let text = worker.runtime().redactor.redact(&text).into_owned();
                let id = QuestionId::generate();
                let question = Question::new(id, QuestionKind::Elicitation, text);
                let question = Question { choices: offered, call: Some(call), ..question };
                worker.commit(vec![SessionRecord::Question(question)], vec![]).await?;
                self.asked.push(AskedQuestion { id, call, choices, answer });
            }
        }
        Ok(())
    }

    /// Counts a question of a call. One at a time, and not without end.
    fn may_ask(&mut self, call: CallId) -> bool {
        let count = self.counts.entry(call).or_default();
        *count += 1;
        *count <= MAX_QUESTIONS && !self.asked.iter().any(|asked| asked.call == call)
    }

    /// Passes the user's answers on to the calls that asked. Returns whether there were any.
    pub(super) fn pass_answers(&mut self, worker: &Worker) -> bool {
        let state = worker.state();
        let settled: Vec<AskedQuestion> =
            self.asked.extract_if(.., |asked| state.question(asked.id).is_none()).collect();
        let is_any = !settled.is_empty();
        for AskedQuestion { id, call, choices, answer } in settled {
            let elicited = state.call(call).and_then(|call| call.elicited.as_ref());
            if let Some((_, text)) = elicited.filter(|(question, _)| *question == id) {
                let _ = answer.send(choices.original(text).to_owned());
            }
        }
        is_any
    }

    /// Withdraws what a call asked that has ended.
    pub(super) async fn withdraw_questions(&mut self, worker: &mut Worker, call: CallId) -> WorkerResult<()> {
        self.asked.retain(|asked| asked.call != call);
        withdraw_elicitations(worker, call, CALL_ENDED).await
    }
}

/// The words of a server, behind a line that says whose they are: nothing that it asks should look like a question of the runtime. Each
/// character can be seen.
fn elicitation_text(tool: &str, text: &str) -> String {
    let server = tool.split_once("__").map_or(tool, |(server, _)| server);
    let lines: Vec<String> = shorten(text, MAX_TEXT_CHARS).lines().map(on_one_line).collect();
    format!("The MCP server {server} asks (your answer goes to it):\n{}", lines.join("\n"))
}

fn shorten(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

/// Withdraws the open questions of a call's server: an answer would reach no server.
pub(super) async fn withdraw_elicitations(
    worker: &mut Worker,
    call: CallId,
    reason: &str,
) -> WorkerResult<()> {
    let questions = worker.state().questions.iter();
    let of_call = questions
        .filter(|question| question.call == Some(call) && question.kind == QuestionKind::Elicitation);
    let withdrawn: Vec<SessionRecord> =
        of_call.map(|question| withdraw_question(question.id, reason)).collect();
    match withdrawn.is_empty() {
        true => Ok(()),
        false => worker.commit(withdrawn, vec![]).await,
    }
}

/// Whether a person can answer while the call runs: at this process, or through a client of the one that hosts the home.
fn is_attended(worker: &Worker) -> bool {
    worker.runtime().config.is_attended || worker.runtime().is_hosting()
}

#[cfg(test)]
#[path = "call_lines_tests.rs"]
mod tests;
