//! A log of many sessions: one line per update, with the session and the turn.

use longhaul_protocol::{Event, Outcome, QuestionId, QuestionKind};

use crate::block::{Block, BlockContent, BlockState, Call, CallResult, TurnEnd, Update};
use crate::notice::{
    MAX_WARNING_CHARS, WITHDRAWN_INPUT, call_text, command_failure_text, memory_change_text,
    mode_change_text, model_change_text, question_text, retry_text, task_start_text, task_text,
};
use crate::text::{outcome_text, sanitize, truncate};

const MAX_NAME_CHARS: usize = 60;
const MAX_TEXT_CHARS: usize = 90;

/// The log line of an update, if it is worth one. `event` is the event that caused it. `answer_command` gives the command that
/// answers a question.
pub fn log_line(
    event: &Event,
    update: &Update,
    answer_command: impl Fn(QuestionId, QuestionKind) -> String,
) -> Option<String> {
    let text = match update {
        Update::Started(block) => start_text(&block.content, answer_command)?,
        Update::Appended { .. } => return None,
        Update::Ended(block) => {
            if let BlockContent::Warning { code, text } = &block.content
                && code == "resumed"
            {
                return Some(sanitize(&with_session(event, text)));
            }
            end_text(block)?
        }
    };
    let turn = event.turn.map(|turn| format!("turn {turn} ")).unwrap_or_default();
    Some(sanitize(&with_session(event, &format!("{turn}{text}"))))
}

/// A line that concerns no session in particular has no key before it.
fn with_session(event: &Event, text: &str) -> String {
    match event.session.as_str() {
        "" => text.to_owned(),
        key => format!("{} {text}", truncate(key, MAX_NAME_CHARS)),
    }
}

fn start_text(
    content: &BlockContent,
    answer_command: impl Fn(QuestionId, QuestionKind) -> String,
) -> Option<String> {
    Some(match content {
        BlockContent::Call(call) => call_text(call),
        BlockContent::Retry(retry) => retry_text(retry),
        BlockContent::Task { task, description, .. } => {
            task_start_text(*task, description.as_deref().unwrap_or_default())
        }
        BlockContent::Question { question, kind, text, .. } => {
            let text = question_text(text.as_deref().unwrap_or_default());
            format!("{text}; to answer: {}", answer_command(*question, *kind))
        }
        _ => return None,
    })
}

fn end_text(block: &Block) -> Option<String> {
    Some(match &block.content {
        BlockContent::TurnStart { .. } => "started".to_owned(),
        BlockContent::Message { text, .. } if block.state == BlockState::Finished => {
            format!("says: {}", truncate(text, MAX_TEXT_CHARS))
        }
        BlockContent::Call(Call { name, result: Some(result), .. }) if result.is_error => {
            let content = truncate(&result.content, MAX_TEXT_CHARS);
            format!("{} failed: {content}", truncate(name, MAX_NAME_CHARS))
        }
        BlockContent::Call(Call { name, result: Some(CallResult { content, .. }), .. }) if name == "exec" => {
            command_failure_text(content)?
        }
        BlockContent::Warning { text, .. } => format!("warning: {}", truncate(text, MAX_WARNING_CHARS)),
        BlockContent::WithdrawnInput => WITHDRAWN_INPUT.to_owned(),
        BlockContent::ModeChange { from, to } => mode_change_text(*from, *to),
        BlockContent::ModelChange { from, to, reason } => model_change_text(from, to, reason),
        BlockContent::Task { task, status, exit_code, .. } => task_text(*task, *status, *exit_code),
        BlockContent::Question { question, .. } if block.state == BlockState::Finished => {
            format!("question {question} answered")
        }
        BlockContent::Extraction { through } => format!("memory: read the session up to entry {through}"),
        BlockContent::MemoryChange { pages } => memory_change_text(pages),
        BlockContent::TurnEnd(TurnEnd { outcome: Outcome::Completed, text, .. }) => {
            format!("completed: {}", truncate(text, MAX_TEXT_CHARS))
        }
        BlockContent::TurnEnd(TurnEnd { outcome, error, .. }) => {
            let error = error.as_deref().map(|error| format!(": {}", truncate(error, 200)));
            format!("{}{}", outcome_text(*outcome), error.unwrap_or_default())
        }
        _ => return None,
    })
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
