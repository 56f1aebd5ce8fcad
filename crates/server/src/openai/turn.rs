//! One turn as a client of `/v1` sees it, folded from the records and live events of its session. Pure.
//!
//! Text comes in pieces whose bounds depend on the text alone, so a client that comes back gets the same pieces, however
//! the model's server had split the text.
//!
//! | a model call ends | is on record | a client that comes later gets |
//! | --- | --- | --- |
//! | whole | its text | the same pieces |
//! | broken, and is retried | its text as far as anyone saw it | the same pieces, then that they don't count |
//! | by the death of the process | its text but for the last moment, which clients may have seen | that they don't count, and none of the pieces |
//! | the same, after a complete tool call | the text before that call | these pieces; what followed them may be lost |

use std::borrow::Cow;

use longhaul_agent::Followed;
use longhaul_protocol::{
    Answer, Answered, AnsweredBy, At, AttemptEnded, AttemptId, ClientRequest, EventKind, InputId, Item,
    Outcome, Question, QuestionId, Role, SessionRecord, TurnEnded, Usage,
};

/// The most characters of a piece of text.
const MAX_PIECE_CHARS: usize = 48;

/// Which turn a client follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnTarget {
    /// The turn that answers this input.
    Input(InputId),
    /// The turn with this number.
    Turn(u64),
    /// The turn that carries out the plan of this question.
    AcceptedPlan(QuestionId),
}

/// What a client sees of a turn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TurnStep {
    Started {
        turn: u64,
        at: At,
        /// The request that the turn answers; `None` if no client of `/v1` sent one.
        request: Option<Box<ClientRequest>>,
    },
    /// The next piece of the message that is being written.
    Text(String),
    /// The message is complete. `goes_on`: the next one continues its text.
    MessageEnded {
        text: String,
        goes_on: bool,
    },
    /// The pieces since the last complete message don't count.
    Discarded {
        /// Further pieces, which other clients may have seen.
        missed: Vec<String>,
        /// The process died, so clients may have more pieces than anyone knows of.
        is_cut: bool,
    },
    /// The process died after the pieces so far. Clients may have more, which don't count.
    Cut,
    Question(Question),
    Answered(QuestionId),
    /// The plan was not accepted: something else settled its question before.
    PlanSettled,
    Usage(Usage),
    Ended(TurnEnded),
}

/// Folds what a follower sees into the steps of one turn.
pub(crate) struct TurnFold {
    target: TurnTarget,
    is_taken: bool,
    request: Option<Box<ClientRequest>>,
    turn: Option<u64>,
    attempt: Option<OpenAttempt>,
}

/// A model call that is open.
struct OpenAttempt {
    id: AttemptId,
    /// Its complete blocks; `None` for one that is no text.
    blocks: Vec<Option<String>>,
    /// The text of the block that is being written.
    unfinished: String,
    /// The part of `unfinished` that is on record.
    recorded: String,
    /// The text is being written now. Otherwise no piece is given out before it is known how the answer ended.
    is_live: bool,
    /// The bytes of its text that were given out.
    given: usize,
}

impl TurnFold {
    pub(crate) fn new(target: TurnTarget) -> Self {
        Self { target, is_taken: false, request: None, turn: None, attempt: None }
    }

    /// For the rest of a turn that has begun.
    pub(crate) fn within_turn(turn: u64) -> Self {
        Self { turn: Some(turn), ..Self::new(TurnTarget::Turn(turn)) }
    }

    /// For a turn that answers this request, whose record is not folded.
    pub(crate) fn with_request(self, request: Option<Box<ClientRequest>>) -> Self {
        Self { request, ..self }
    }

    /// The number of the turn, once it has begun.
    pub(crate) fn turn(&self) -> Option<u64> {
        self.turn
    }

    pub(crate) fn apply(&mut self, followed: &Followed) -> Vec<TurnStep> {
        match followed {
            Followed::Record(record, _) => match SessionRecord::decode(record) {
                Ok(fact) => self.apply_record(fact, record.at),
                Err(_) => vec![],
            },
            Followed::Live(event) if self.turn.is_some() => self.apply_live(&event.kind),
            Followed::Live(_) => vec![],
        }
    }

    fn apply_record(&mut self, fact: SessionRecord, at: At) -> Vec<TurnStep> {
        match (fact, self.turn) {
            (SessionRecord::InputTaken(input), None) => {
                self.is_taken |= self.target == TurnTarget::Input(input.id);
                // One turn may answer several requests. The last one describes it.
                if let Some(request) = input.client.filter(|_| self.is_taken) {
                    self.request = Some(request);
                }
                vec![]
            }
            (SessionRecord::Answered(answered), None)
                if self.target == TurnTarget::AcceptedPlan(answered.id) =>
            {
                self.is_taken = is_accepted(&answered);
                if self.is_taken { vec![] } else { vec![TurnStep::PlanSettled] }
            }
            (SessionRecord::TurnStarted(started), None) => {
                let is_mine = self.is_taken || self.target == TurnTarget::Turn(started.turn);
                self.turn = is_mine.then_some(started.turn);
                let request = self.request.clone();
                let step = self.turn.map(|turn| TurnStep::Started { turn, at, request });
                step.into_iter().collect()
            }
            (fact, Some(turn)) => self.apply_to_turn(fact, turn),
            (_, None) => vec![],
        }
    }

    fn apply_to_turn(&mut self, fact: SessionRecord, turn: u64) -> Vec<TurnStep> {
        match fact {
            // The input did not fit, and waits for the next turn.
            SessionRecord::StepStarted(step)
                if step.later.iter().any(|later| self.target == TurnTarget::Input(*later)) =>
            {
                self.turn = None;
                vec![]
            }
            SessionRecord::AttemptStarted(started) => {
                self.attempt = Some(OpenAttempt::new(started.attempt));
                vec![]
            }
            SessionRecord::Block(block) => {
                let Some(attempt) = self.attempt.as_mut().filter(|open| open.id == block.attempt) else {
                    return vec![];
                };
                attempt.push_block(block.item);
                if attempt.is_live { attempt.complete_steps() } else { vec![] }
            }
            SessionRecord::Checkpoint(checkpoint) => {
                if let Some(attempt) = self.attempt.as_mut().filter(|open| open.id == checkpoint.attempt) {
                    attempt.recorded.push_str(&checkpoint.text);
                }
                vec![]
            }
            SessionRecord::AttemptEnded(ended) => {
                let attempt = self.attempt.take_if(|open| open.id == ended.attempt);
                attempt.map(|attempt| attempt.end(&ended)).unwrap_or_default()
            }
            SessionRecord::Question(question) => vec![TurnStep::Question(question)],
            SessionRecord::Answered(answered) => vec![TurnStep::Answered(answered.id)],
            SessionRecord::Usage(usage) => vec![TurnStep::Usage(usage)],
            SessionRecord::TurnEnded(ended) if ended.turn == turn => vec![TurnStep::Ended(ended)],
            _ => vec![],
        }
    }

    fn apply_live(&mut self, event: &EventKind) -> Vec<TurnStep> {
        let Some(attempt) = &mut self.attempt else { return vec![] };
        match event {
            EventKind::TextDelta { text } => attempt.unfinished.push_str(text),
            EventKind::Partial { attempt: id, text } if *id == attempt.id => attempt.catch_up(text),
            _ => return vec![],
        }
        attempt.is_live = true;
        attempt.complete_steps()
    }
}

/// Whether a person accepted a plan.
fn is_accepted(answered: &Answered) -> bool {
    answered.by == Some(AnsweredBy::User)
        && matches!(Answer::parse(&answered.answer), Answer::Yes | Answer::Always | Answer::Project)
}

impl OpenAttempt {
    fn new(id: AttemptId) -> Self {
        let (unfinished, recorded) = (String::new(), String::new());
        Self { id, blocks: vec![], unfinished, recorded, is_live: false, given: 0 }
    }

    fn push_block(&mut self, item: Item) {
        let text = match item {
            Item::Text { role: Role::Assistant, text } => Some(text),
            _ => None,
        };
        self.blocks.push(text);
        self.unfinished.clear();
        self.recorded.clear();
    }

    /// Takes the whole text so far.
    fn catch_up(&mut self, text: &str) {
        let blocks = joined(&self.blocks);
        let rest = text.strip_prefix(blocks.as_str()).unwrap_or_default();
        let rest = if blocks.is_empty() { rest } else { rest.strip_prefix("\n\n").unwrap_or_default() };
        if rest.starts_with(&self.unfinished) {
            rest.clone_into(&mut self.unfinished);
        }
    }

    /// The text so far. Looking at each delta of a long answer must not copy all of it.
    fn text(&self) -> Cow<'_, str> {
        let blocks = joined(&self.blocks);
        match (blocks.is_empty(), self.unfinished.is_empty()) {
            (true, _) => Cow::Borrowed(&self.unfinished),
            (false, true) => Cow::Owned(blocks),
            (false, false) => Cow::Owned(format!("{blocks}\n\n{}", self.unfinished)),
        }
    }

    /// The pieces of the text that are complete and were not given out yet.
    fn complete_pieces(&mut self) -> Vec<String> {
        let (text, mut given) = (self.text(), self.given);
        let mut pieces = Vec::new();
        while let Some(length) = text.get(given..).and_then(piece_length) {
            pieces.push(text[given..given + length].to_owned());
            given += length;
        }
        self.given = given;
        pieces
    }

    fn complete_steps(&mut self) -> Vec<TurnStep> {
        self.complete_pieces().into_iter().map(TurnStep::Text).collect()
    }

    fn end(mut self, ended: &AttemptEnded) -> Vec<TurnStep> {
        let kept = usize::try_from(ended.kept).unwrap_or(usize::MAX).min(self.blocks.len());
        let text = joined(&self.blocks[..kept]);
        let is_cut = ended.is_interrupted();
        // The record has the text that watchers saw, also where these deltas did not come here.
        if !is_cut && self.recorded.starts_with(&self.unfinished) {
            self.unfinished.clone_from(&self.recorded);
        }
        let pieces = if is_cut { vec![] } else { self.complete_pieces() };
        let mut steps = Vec::new();
        let is_discarded =
            (kept == 0 && ended.error.is_some()) || !text.starts_with(&self.text()[..self.given]);
        if is_discarded {
            steps.push(TurnStep::Discarded { missed: pieces, is_cut });
            self.given = 0;
        } else {
            steps.extend(pieces.into_iter().map(TurnStep::Text));
        }
        if !text.is_empty() {
            self.blocks.truncate(kept);
            self.unfinished.clear();
            steps.extend(self.complete_steps());
            steps.extend((self.given < text.len()).then(|| TurnStep::Text(text[self.given..].to_owned())));
            steps.extend((is_cut && !is_discarded).then_some(TurnStep::Cut));
            steps.push(TurnStep::MessageEnded { text, goes_on: ended.goes_on });
        }
        steps
    }
}

fn joined(blocks: &[Option<String>]) -> String {
    blocks.iter().flatten().map(String::as_str).collect::<Vec<_>>().join("\n\n")
}

/// The bytes of the first piece: a word with the space around it, if what follows it is there. `None` if the piece
/// may go on.
fn piece_length(text: &str) -> Option<usize> {
    let (mut has_word, mut has_space_after) = (false, false);
    for (count, (position, character)) in text.char_indices().enumerate() {
        if count == MAX_PIECE_CHARS || (has_space_after && !character.is_whitespace()) {
            return Some(position);
        }
        has_space_after |= has_word && character.is_whitespace();
        has_word |= !character.is_whitespace();
    }
    None
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

/// The messages of a turn, joined to one text.
#[derive(Debug, Clone, Default)]
pub(crate) struct AnswerText {
    text: String,
    goes_on: bool,
}

impl AnswerText {
    /// What comes between the messages so far and the next one.
    pub(crate) fn separator(&self) -> &'static str {
        if self.text.is_empty() || self.goes_on { "" } else { "\n\n" }
    }

    pub(crate) fn add(&mut self, message: &str, goes_on: bool) {
        self.text = format!("{}{}{message}", self.text, self.separator());
        self.goes_on = goes_on;
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

#[cfg(test)]
#[path = "turn_tests.rs"]
mod tests;
