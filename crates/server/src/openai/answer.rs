//! What a client is told about a turn: the text of its answer, and its tokens.

use longhaul_agent::{AnswerText, RecordedStep, RecordedTurn, TurnLocator, TurnStep};
use longhaul_journal::Journal;
use longhaul_protocol::{At, Outcome, QuestionKind, Seq, SessionId, TurnEnded, Usage};

use super::error::OpenaiResult;

/// The answer to one request, as far as the client was told: up to the end of the turn, or to the question that was asked.
pub(crate) struct ReportedAnswer {
    pub(crate) text: String,
    pub(crate) turn: u64,
    /// How the turn ended, and the record of it; `None` if a question ended the answer.
    pub(crate) ended: Option<AnswerEnd>,
}

/// The end of a turn that a client was told of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerEnd {
    pub(crate) seq: Seq,
    pub(crate) at: At,
    pub(crate) outcome: Outcome,
}

/// Reads what a client was told about a turn; `None` if the answer is not complete.
pub(crate) async fn read_answer(
    journal: &dyn Journal,
    session: SessionId,
    turn: TurnLocator,
) -> OpenaiResult<Option<ReportedAnswer>> {
    let mut answer = AnswerText::default();
    let mut steps = RecordedTurn::new(journal, session, turn);
    while let Some(RecordedStep { step, turn, seq, at }) = steps.next().await? {
        match step {
            TurnStep::MessageEnded { text, goes_on } => answer.add(&text, goes_on),
            TurnStep::Question(question) => {
                answer.add(&question.text, false);
                if question.kind != QuestionKind::Plan {
                    return Ok(Some(ReportedAnswer { text: answer.into_text(), turn, ended: None }));
                }
            }
            TurnStep::Ended(ended) => {
                if let Some(message) = limit_message(&ended) {
                    answer.add(message, false);
                }
                let end = AnswerEnd { seq, at, outcome: ended.outcome };
                return Ok(Some(ReportedAnswer { text: answer.into_text(), turn, ended: Some(end) }));
            }
            _ => {}
        }
    }
    Ok(None)
}

/// The sentence that names the limit that ended a turn, as the last message of the answer: clients show nothing else. `None`
/// if the turn ended otherwise, or the client itself set the limit.
pub(crate) fn limit_message(ended: &TurnEnded) -> Option<&str> {
    let is_own = ended.code.as_deref() == Some(TurnEnded::MAX_OUTPUT_TOKENS);
    ended.error.as_deref().filter(|_| ended.outcome == Outcome::Limit && !is_own)
}

/// The tokens of a turn, as far as the provider told them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TurnUsage {
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) cached: Option<u64>,
}

/// Adds the usage of a model call. A turn in which no call has told both its input and its output has no usage.
pub(crate) fn add_usage(total: &mut Option<TurnUsage>, usage: &Usage) {
    let (Some(input), Some(output)) = (usage.input, usage.output) else { return };
    let total = total.get_or_insert(TurnUsage { input: 0, output: 0, cached: None });
    total.input += input;
    total.output += output;
    total.cached = total.cached.into_iter().chain(usage.cached).reduce(|sum, next| sum + next);
}
