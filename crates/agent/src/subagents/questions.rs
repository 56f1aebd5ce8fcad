//! The questions of subagents in their parent's session, where a person sees and answers them.

use longhaul_protocol::{
    Order, OrderId, OrderKind, OrderTaken, Question, QuestionId, SessionId, SessionRecord, StreamName,
    TaskStarted,
};

use super::child::RunningChild;
use crate::client::questions::accept_answer;
use crate::session::state::State;
use crate::subagents::tool::DEFAULT_NAME;
use crate::subagents::watch::ChildWatch;
use crate::turn::end::withdraw_question;
use crate::worker::{Worker, WorkerResult};

/// Why a question of a subagent needs no answer any more.
const SETTLED: &str = "withdrawn: the subagent has its answer, or has ended";

/// The records that show a subagent's open questions in its parent, and take back those that are settled.
pub(crate) fn question_records(
    state: &State,
    child: SessionId,
    name: &str,
    running: Option<&RunningChild>,
) -> Vec<SessionRecord> {
    let open = running.map_or(&[][..], |running| &running.questions);
    let shown = || state.questions.iter().filter(|question| question.child == Some(child));
    let is_open = |id: QuestionId| open.iter().any(|question| question.id == id);
    let settled = shown().filter(|question| !is_open(question.id));
    let settled = settled.map(|question| withdraw_question(question.id, SETTLED));
    let new = open.iter().filter(|question| !shown().any(|shown| shown.id == question.id));
    let new = new.map(|question| SessionRecord::Question(shown_question(question, child, name)));
    settled.chain(new).collect()
}

/// The name of a subagent in its parent's session: its kind, if it has one, and its task.
pub(crate) fn shown_name(started: &TaskStarted) -> String {
    let kind = started.command.strip_prefix("agent ").filter(|kind| *kind != DEFAULT_NAME);
    let name = kind.map(|kind| format!("{kind} ")).unwrap_or_default();
    format!("{name}({})", started.description)
}

/// The question as the parent shows it. What an answer allows is up to the subagent.
fn shown_question(question: &Question, child: SessionId, name: &str) -> Question {
    let Question { id, kind, text, choices, diff, .. } = question.clone();
    let text = format!("The subagent {name} asks: {text}");
    let beyond_session = question.is_for_user();
    Question { choices, diff, child: Some(child), beyond_session, ..Question::new(id, kind, text) }
}

/// Puts the answers of a batch that are for subagents into their inboxes, before the batch is taken: after a crash they are put
/// there again, which changes nothing.
pub(crate) async fn forward_answers(worker: &Worker, facts: &[SessionRecord]) -> WorkerResult<()> {
    for fact in facts {
        let SessionRecord::OrderTaken(OrderTaken { order, .. }) = fact else { continue };
        let OrderKind::Answer { question, answer, sender } = &order.kind else { continue };
        let Some(child) = worker.state().question(*question).and_then(|question| question.child) else {
            continue;
        };
        let kind = OrderKind::Answer { question: *question, answer: answer.clone(), sender: sender.clone() };
        let order = Order { id: OrderId::generate(), kind };
        let journal = &*worker.runtime().journal;
        let after = journal.head(&StreamName::session(child)).await?.seq;
        // A person may have answered it in the subagent's own conversation.
        accept_answer(journal, child, *question, order, after).await?;
        ChildWatch::new(worker.runtime(), child).await.wake().await;
    }
    Ok(())
}

#[cfg(test)]
#[path = "questions_tests.rs"]
mod tests;
