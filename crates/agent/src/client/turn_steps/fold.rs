//! Folds what a follower sees into the steps of one turn.

use longhaul_protocol::{
    Answer, Answered, AnsweredBy, At, ClientRequest, EventKind, InputId, OrderKind, Question, QuestionId,
    Record, Seq, SessionRecord, TurnEnded, Usage,
};

use super::open_answer::OpenAnswer;
use crate::client::follow::Followed;

/// Which turn to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnTarget {
    /// The turn that answers this input.
    Input(InputId),
    /// The turn with this number.
    Turn(u64),
    /// What is left of the turn with this number, which has begun before.
    RestOfTurn(u64),
    /// The turn that carries out the plan of this question.
    AcceptedPlan(QuestionId),
}

/// A turn, and where its steps begin.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnLocator {
    /// The turn.
    pub target: TurnTarget,
    /// A record before everything that matters: the one before the turn, or before its input was taken.
    pub after: Seq,
    /// The request that the turn answers, where its record comes before `after`.
    pub request: Option<Box<ClientRequest>>,
}

impl TurnLocator {
    /// A turn whose records all come after this one, the request that it answers among them.
    pub fn new(target: TurnTarget, after: Seq) -> Self {
        Self { target, after, request: None }
    }
}

/// What a client sees of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnStep {
    /// The turn has begun.
    Started {
        /// Its number.
        turn: u64,
        /// When it began.
        at: At,
        /// The request that the turn answers; `None` if no client sent one along with its input.
        request: Option<Box<ClientRequest>>,
    },
    /// The next piece of the message that is being written.
    Text(String),
    /// The message is complete.
    MessageEnded {
        /// All its pieces.
        text: String,
        /// The next message continues its text.
        goes_on: bool,
    },
    /// The pieces since the last complete message don't count.
    Discarded {
        /// Further pieces, which other clients may have seen.
        missed: Vec<String>,
        /// The process died, so clients may have more pieces than are on record.
        is_cut: bool,
    },
    /// The process died after the pieces so far. Clients may have more, which don't count.
    Cut,
    /// The turn asks. It goes on when the question is answered, but for that of a plan: the turn ends with it.
    Question(Question),
    /// A question was answered.
    Answered(QuestionId),
    /// The plan was not accepted: something else settled its question before. No turn carries it out.
    PlanSettled,
    /// The input was taken back before a turn had it. No turn answers it.
    Withdrawn,
    /// What a model call used.
    Usage(Usage),
    /// The turn has ended.
    Ended(TurnEnded),
}

/// Folds what a follower sees into the steps of one turn.
pub(super) struct TurnFold {
    target: TurnTarget,
    is_taken: bool,
    can_be_withdrawn: bool,
    request: Option<Box<ClientRequest>>,
    /// The turn, once it has begun.
    turn: Option<u64>,
    answer: Option<OpenAnswer>,
    is_over: bool,
}

impl TurnFold {
    pub(super) fn new(TurnLocator { target, request, .. }: TurnLocator) -> Self {
        let turn = match target {
            TurnTarget::RestOfTurn(turn) => Some(turn),
            _ => None,
        };
        Self { target, is_taken: false, can_be_withdrawn: false, request, turn, answer: None, is_over: false }
    }

    /// The number of the turn, once it has begun.
    pub(super) fn turn(&self) -> Option<u64> {
        self.turn
    }

    /// Whether no further step comes.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    pub(super) fn apply(&mut self, followed: &Followed) -> Vec<TurnStep> {
        match followed {
            Followed::Record(record, _) => self.apply_record(record),
            Followed::Live(event) if self.turn.is_some() => self.apply_live(&event.kind),
            Followed::Live(_) => vec![],
        }
    }

    pub(super) fn apply_record(&mut self, record: &Record) -> Vec<TurnStep> {
        let Ok(fact) = SessionRecord::decode(record) else { return vec![] };
        match (fact, self.turn) {
            (SessionRecord::InputTaken(input), None) => {
                if self.target == TurnTarget::Input(input.id) {
                    self.is_taken = true;
                    self.can_be_withdrawn = input.client.is_none() && input.sender.can_withdraw();
                }
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
                self.is_over = !self.is_taken;
                if self.is_taken { vec![] } else { vec![TurnStep::PlanSettled] }
            }
            (SessionRecord::OrderTaken(taken), None)
                if self.can_be_withdrawn && self.withdraws(&taken.order.kind) =>
            {
                self.is_over = true;
                vec![TurnStep::Withdrawn]
            }
            (SessionRecord::TurnStarted(started), None) => {
                let is_mine = self.is_taken || self.target == TurnTarget::Turn(started.turn);
                self.turn = is_mine.then_some(started.turn);
                let (at, request) = (record.at, self.request.clone());
                let step = self.turn.map(|turn| TurnStep::Started { turn, at, request });
                step.into_iter().collect()
            }
            (fact, Some(turn)) => self.apply_to_turn(fact, turn),
            (_, None) => vec![],
        }
    }

    /// Whether an order takes back the input whose turn this is.
    fn withdraws(&self, order: &OrderKind) -> bool {
        matches!(order, OrderKind::Withdraw { input } if self.target == TurnTarget::Input(*input))
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
                self.answer = Some(OpenAnswer::new(started.attempt));
                vec![]
            }
            SessionRecord::Block(block) => {
                match self.answer.as_mut().filter(|open| open.is_of(block.attempt)) {
                    Some(answer) => answer.push_block(&block.item),
                    None => vec![],
                }
            }
            SessionRecord::Checkpoint(checkpoint) => {
                if let Some(answer) = self.answer.as_mut().filter(|open| open.is_of(checkpoint.attempt)) {
                    answer.push_recorded(&checkpoint.text);
                }
                vec![]
            }
            SessionRecord::AttemptEnded(ended) => {
                let answer = self.answer.take_if(|open| open.is_of(ended.attempt));
                answer.map(|answer| answer.end(&ended)).unwrap_or_default()
            }
            SessionRecord::Question(question) => vec![TurnStep::Question(question)],
            SessionRecord::Answered(answered) => vec![TurnStep::Answered(answered.id)],
            SessionRecord::Usage(usage) => vec![TurnStep::Usage(usage)],
            SessionRecord::TurnEnded(ended) if ended.turn == turn => {
                self.is_over = true;
                vec![TurnStep::Ended(ended)]
            }
            _ => vec![],
        }
    }

    fn apply_live(&mut self, event: &EventKind) -> Vec<TurnStep> {
        let Some(answer) = &mut self.answer else { return vec![] };
        match event {
            EventKind::TextDelta { text } => answer.push_delta(text),
            EventKind::Partial { attempt, text } if answer.is_of(*attempt) => answer.catch_up(text),
            _ => vec![],
        }
    }
}

/// Whether the answer to a plan's question accepts the plan.
fn is_accepted(answered: &Answered) -> bool {
    matches!(answered.by, Some(AnsweredBy::User | AnsweredBy::Agent))
        && matches!(Answer::parse(&answered.answer), Answer::Yes | Answer::Always | Answer::Project)
}
