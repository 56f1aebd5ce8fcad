//! Ends a turn: every call gets a result, every question is withdrawn, and `turn_ended` says how the turn ended.

use longhaul_protocol::{
    Answer, Answered, AnsweredBy, Outcome, PermissionMode, Question, QuestionId, QuestionKind, SessionRecord,
    ToolFinished, TurnEnded, Warning, says_nothing_to_do,
};

use crate::session::decide::TurnEnding;
use crate::session::work::Work;
use crate::worker::{Worker, WorkerResult};

/// The answer to a question that is still open when its turn ends.
const WITHDRAWN: &str = "withdrawn: the turn ended";

/// The question after a turn in plan mode. It stays open after the turn, until it is answered or the next turn begins.
const ACCEPT_PLAN: &str = "Accept this plan?";

/// Settles a question that needs no answer any more.
pub(crate) fn withdraw_question(id: QuestionId, why: &str) -> SessionRecord {
    SessionRecord::Answered(Answered { id, answer: why.to_owned(), by: Some(AnsweredBy::Runtime) })
}

/// Ends the open turn, in one append with the records that precede its end.
pub(crate) async fn end_turn(
    worker: &mut Worker,
    mut records: Vec<SessionRecord>,
    ending: TurnEnding,
) -> WorkerResult<()> {
    let state = worker.state();
    let Some(turn) = &state.turn else { return Ok(()) };
    let unfinished = turn.calls.iter().filter(|call| call.result.is_none());
    records.extend(unfinished.map(|call| {
        if let Some(result) = call.result_in_sandbox() {
            return SessionRecord::ToolFinished(result.clone());
        }
        let content = match call.started {
            None if turn.cancelled => "not run: the user interrupted before it began",
            None if turn.lost_record.is_none() => "not run: the turn had ended before",
            _ => "unknown: the turn ended before its result could be recorded",
        };
        let result = ToolFinished::new(call.id, &call.name, content);
        SessionRecord::ToolFinished(ToolFinished { is_error: true, ..result })
    }));
    // A subagent in the background may go on asking.
    let own = state.questions.iter().filter(|question| question.child.is_none());
    records.extend(own.map(|question| withdraw_question(question.id, WITHDRAWN)));
    let mode = worker.permission_mode();
    let TurnEnding { outcome, limit, error, code, text } = ending;
    // An answer that should have continued has at least its first part.
    let answer = if turn.text.is_empty() { &turn.text_before_cut } else { &turn.text };
    let text = text.unwrap_or_else(|| answer.clone());
    let is_quiet = turn.may_be_quiet && outcome == Outcome::Completed && says_nothing_to_do(&text);
    let code = if is_quiet { Some(TurnEnded::NOTHING_TO_DO.to_owned()) } else { code };
    // If the session is idle after this turn, its last record says so. Then later checks do not have to replay the
    // other records.
    let work = Work::of_taken(state, worker.policy().wake);
    let has_child_question = state.questions.iter().any(|question| question.child.is_some());
    let is_idle = !Work { turn: false, question: has_child_question, ..work }.is_in_use();
    let inbox_through = is_idle.then_some(state.inbox_through);
    let ended = TurnEnded { turn: turn.number, outcome, limit, text, error, code, inbox_through };
    let news = worker.toolset().repository_news(worker.id(), worker.runtime().tasks.clone()).await;
    records.extend(
        news.as_ref().map(|news| SessionRecord::Warning(Warning::new("new_repository", news.text.clone()))),
    );
    let is_subagent = state.parent().is_some();
    if mode == PermissionMode::Plan
        && !is_subagent
        && ended.outcome == Outcome::Completed
        && !is_quiet
        && !ended.text.trim().is_empty()
    {
        let choices = [Answer::Yes, Answer::No].map(|answer| answer.word().to_owned()).to_vec();
        let question = Question::new(QuestionId::generate(), QuestionKind::Plan, ACCEPT_PLAN);
        records.push(SessionRecord::Question(Question { choices, ..question }));
    }
    records.push(SessionRecord::TurnEnded(ended));
    let (spend, turn) = (&worker.runtime().spend, worker.state().turn.as_ref());
    if let Some(turn) = turn.filter(|turn| !turn.budget_refused.is_empty()) {
        spend.refuse(worker.id(), turn.budget_refused.clone());
    }
    spend.end_turn().await;
    worker.commit(records, vec![]).await?;
    if let Some(news) = news {
        worker.toolset().acknowledge_repositories(worker.id(), news).await;
    }
    worker.clear_failures();
    Ok(())
}
