//! What a session is right now: what folding its records gives, and nothing besides.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use longhaul_context::{TokenCalibration, estimate_bytes, estimate_items};
use longhaul_protocol::{
    At, AttemptId, BlobRef, Block, CallId, Effect, Hash, Image, InputId, Item, JoinMode, Outcome, Pin, Place,
    Question, QuestionId, Role, Seq, Summary, Todo, ToolStarted,
};

use crate::compaction::plan::Compaction;
use crate::session::repeats::Repeats;
use crate::session::tasks::SessionTasks;

/// What a session is right now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// The last record that is folded in.
    pub head: Seq,
    /// When the session began, and the folder that it works in.
    pub created: Option<Created>,
    /// The last record whose user is not the one of this home: the session came from a file, and what was said in it is data. 0 if there is none.
    pub foreign_through: Seq,
    /// The epoch that the context belongs to.
    pub epoch: Option<Epoch>,
    /// How far the inbox is taken.
    pub inbox_through: Seq,
    /// How many turns have started.
    pub turns: u64,
    /// What the model has read and written since the epoch began, and what the epoch began with.
    pub items: Vec<Arc<Item>>,
    /// Where each of them came into the context: as many.
    pub places: Vec<Place>,
    /// So many of them, from the first, are what a compaction put before the rest: a summary, then what is pinned.
    pub preface: usize,
    /// What the summary says.
    pub summary: Option<Summary>,
    /// What is known of compactions.
    pub compaction: Compaction,
    /// How many steps have come to their answer, in all epochs.
    pub answers: u64,
    /// Inputs that were taken and that the model has not seen yet.
    pub waiting: Vec<Waiting>,
    /// The turn that is open.
    pub turn: Option<Turn>,
    /// The todo list.
    pub todo: Vec<Todo>,
    /// What the model knows of files: the hash of each, by canonical path.
    pub seen: Arc<HashMap<String, Hash>>,
    /// The files that were changed, the newest last.
    pub changed: Vec<String>,
    /// Outputs of which the model has only head and tail.
    pub outputs: HashMap<CallId, BlobRef>,
    /// What must stay in the context word for word.
    pub pins: Vec<Pin>,
    /// Its tasks.
    pub tasks: SessionTasks,
    /// Questions that are open.
    pub questions: Vec<Question>,
    /// How the last turn ended.
    pub last_outcome: Option<Outcome>,
    /// What there was of the answer that the last turn did not get to its end. Only where the user interrupted it does the context have it.
    pub interrupted: Option<String>,
    /// A turn that was asked for without an input.
    pub again: Option<Again>,
    /// The turn in which that was asked which the last turn was to answer: an earlier one, where it tried that again.
    pub asked_in: u64,
    /// The model that was asked last.
    pub model: Option<String>,
    /// What is known about how each model counts.
    pub counting: BTreeMap<String, Counting>,
    /// How large the context was when a provider last said so.
    pub reported: Option<Reported>,
    /// What the provider said last about how much more it takes.
    pub rate_limits: BTreeMap<String, String>,
    /// The codes of warnings that are given once.
    pub warned: BTreeSet<String>,
}

/// A turn without an input of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// What the last turn was to do is tried once more.
    Retry,
    /// The answer that was interrupted goes on.
    Continue,
}

/// What is known about how a model counts tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counting {
    /// How far off the estimates are.
    pub calibration: TokenCalibration,
    /// The last prompt that its server cut without a word.
    pub cuts: Option<Cut>,
    /// So many tokens were too many for it, by our own count.
    pub refused_at: Option<u64>,
}

/// A prompt that was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// So much of it was read.
    pub at: u64,
    /// How large the context was taken to be.
    pub window: Option<u64>,
}

/// What a provider said about the size of a context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    /// The model that it was said for.
    pub model: String,
    /// Sent and received.
    pub tokens: u64,
    /// How many items the context had.
    pub items: usize,
}

/// What the first record of a session says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// When.
    pub at: At,
    /// The folder that it works in.
    pub work_dir: Option<String>,
}

/// The epoch that a context belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Epoch {
    /// Its number, from 1.
    pub number: u64,
    /// The record that began it.
    pub began: Seq,
    /// The record to begin reading from.
    pub folds_from: Seq,
    /// The system prompt.
    pub system: BlobRef,
    /// The tools' schemas.
    pub tools: BlobRef,
}

/// An input that was taken and that the model has not seen yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The input.
    pub id: InputId,
    /// What it asked for.
    pub mode: JoinMode,
    /// Its words.
    pub text: String,
    /// Pictures that came with them.
    pub images: Vec<Image>,
    /// Somebody does not want it to be worked on any more.
    pub cancelled: bool,
    /// The record with which it was taken.
    pub taken: Seq,
}

/// The turn that is open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turn {
    /// Its number, from 1.
    pub number: u64,
    /// The turn in which that was asked which it is to answer: an earlier one, where it tries that again.
    pub answers: u64,
    /// How many steps have started.
    pub steps: u64,
    /// Somebody wants it to end.
    pub cancelled: bool,
    /// A record of it is lost, so nobody can tell what would be done twice; this is what is known.
    pub broken: Option<String>,
    /// When it began.
    pub started_at: Option<At>,
    /// Since when a person is awaited, if one is.
    pub awaits_since: Option<At>,
    /// How many milliseconds persons were awaited before that.
    pub awaited_ms: u64,
    /// The start of a task was erased: the result that follows says whose it was.
    pub erased_task: bool,
    /// Tokens that it has used.
    pub tokens: u64,
    /// Money that it has cost, in billionths of a US dollar.
    pub cost_nano: u64,
    /// How often somebody wanted it to wait no longer.
    pub hurried: u64,
    /// The model call that is open.
    pub attempt: Option<Attempt>,
    /// The answer was cut at its greatest length, and goes on.
    pub goes_on: bool,
    /// The text of the answer before it was cut.
    pub carried: String,
    /// How often it was.
    pub cuts: u32,
    /// What there was of the last answer that failed.
    pub interrupted: Option<String>,
    /// The user wants the answer to go on from what there is of it, once the attempt that is open has come to nothing.
    pub continues: bool,
    /// Whether the newest step has its answer.
    pub answered: bool,
    /// The text of the newest answer.
    pub text: String,
    /// The calls of the newest answer, in its order.
    pub calls: Vec<CallState>,
    /// The newest answer had calls, before an epoch began; their results are in the context.
    pub called: bool,
    /// Whether their results are in the context.
    pub settled: bool,
    /// How often the model said that the prompt was too long, since its last answer.
    pub too_long: u32,
    /// What it said.
    pub refusal: Option<String>,
    /// What was called lately, and with what result.
    pub repeats: Repeats,
}

/// A model call that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The attempt.
    pub id: AttemptId,
    /// The blocks that are complete.
    pub blocks: Vec<Arc<Item>>,
    /// Text of the block that is not complete, as far as it is on record.
    pub unfinished: String,
}

/// A tool call of the newest answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallState {
    /// The call.
    pub id: CallId,
    /// The tool.
    pub name: String,
    /// The arguments, as the model wrote them.
    pub arguments: String,
    /// What a person said to whether it may run.
    pub answer: Option<CallAnswer>,
    /// The record with which it started.
    pub started: Option<ToolStarted>,
    /// What came of it.
    pub result: Option<Arc<Item>>,
    /// The record that says so.
    pub finished: Seq,
}

/// What a person said to whether a call may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallAnswer {
    /// Their words.
    pub words: String,
    /// Why they were asked.
    pub reasons: Vec<String>,
}

impl State {
    /// Whether somebody wants the open turn to end.
    pub fn cancelled(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.cancelled)
    }

    /// A call of the newest answer.
    pub fn call(&self, id: CallId) -> Option<&CallState> {
        self.turn.as_ref()?.calls.iter().find(|call| call.id == id)
    }

    /// The open question whether a call may run.
    pub fn question_about(&self, call: CallId) -> Option<&Question> {
        self.questions.iter().find(|question| question.call == Some(call))
    }

    /// The open question with this id.
    pub fn question(&self, id: QuestionId) -> Option<&Question> {
        self.questions.iter().find(|question| question.id == id)
    }

    /// How many tokens the context has, for this model: what its provider counted last, and an estimate of what came since.
    pub fn occupancy(&self, model: &str) -> (u64, Option<&Reported>) {
        let beginning =
            self.epoch.as_ref().map_or(0, |epoch| epoch.system.bytes.saturating_add(epoch.tools.bytes));
        self.occupancy_with(model, self.corrected(model, estimate_bytes(beginning)))
    }

    /// The same, where it is known what system prompt and tools take.
    pub fn occupancy_with(&self, model: &str, fixed: u64) -> (u64, Option<&Reported>) {
        match self.reported.as_ref().filter(|reported| reported.model == model) {
            Some(reported) => {
                let since = self.items.get(reported.items..).unwrap_or_default();
                let since = self.corrected(model, estimate_items(since));
                (reported.tokens.saturating_add(since), Some(reported))
            }
            None => (fixed.saturating_add(self.corrected(model, estimate_items(&self.items))), None),
        }
    }

    /// An estimate, corrected by what is known about how a model counts.
    pub fn corrected(&self, model: &str, raw: u64) -> u64 {
        self.counting.get(model).map_or(raw, |counting| counting.calibration.correct(raw))
    }

    /// How a model counts, as far as is known.
    pub(crate) fn calibration(&self, model: &str) -> TokenCalibration {
        self.counting.get(model).map(|counting| counting.calibration.clone()).unwrap_or_default()
    }

    /// What was under way in the open turn when its last record was written, for people.
    pub fn under_way(&self) -> String {
        let Some(turn) = &self.turn else { return "no turn was open".to_owned() };
        let open: Vec<&str> =
            turn.calls.iter().filter(|call| call.is_open()).map(|call| call.name.as_str()).collect();
        match (&turn.attempt, &open[..]) {
            (Some(_), _) => "an answer was on its way".to_owned(),
            (None, []) if !self.questions.is_empty() => "a question waits for its answer".to_owned(),
            (None, []) if turn.steps > 0 && !turn.answered => {
                "an answer had failed, and the next try was due".to_owned()
            }
            (None, []) => "it was between two records".to_owned(),
            (None, open) => format!("{} had started", open.join(", ")),
        }
    }

    /// Inputs that join the open turn at its next step.
    pub(crate) fn joins(&self) -> bool {
        self.waiting.iter().any(|input| input.mode == JoinMode::Join)
    }
}

impl CallState {
    /// It may or may not be running: whoever recorded its start is gone, or is at it.
    pub fn is_open(&self) -> bool {
        self.started.is_some() && self.result.is_none()
    }

    /// What it may do to the world, once that is on record.
    pub fn effect(&self) -> Option<Effect> {
        self.started.as_ref().map(|started| started.effect)
    }
}

impl Attempt {
    /// How many blocks of an attempt that broke off count. With a complete call the step ends there: what is complete is
    /// kept, and its calls are run. Without one nothing is kept, and the same request is sent again.
    pub fn kept_when_broken(&self) -> usize {
        let has_call = self.blocks.iter().any(|block| matches!(**block, Item::ToolCall { .. }));
        if has_call { self.blocks.len() } else { 0 }
    }

    /// The text that there is, complete or not.
    pub fn text(&self) -> String {
        let whole = text_of(&self.blocks);
        match (whole.is_empty(), self.unfinished.is_empty()) {
            (_, true) => whole,
            (true, _) => self.unfinished.clone(),
            _ => format!("{whole}\n\n{}", self.unfinished),
        }
    }

    /// T11: the unfinished text of an answer that the user interrupts, as its last block. It never gets longer.
    pub fn interrupted_block(&self) -> Option<Block> {
        let text = self.unfinished.clone();
        let index = u32::try_from(self.blocks.len()).unwrap_or(u32::MAX);
        let block = Block { attempt: self.id, index, item: Item::Text { role: Role::Assistant, text } };
        (!self.unfinished.trim().is_empty()).then_some(block)
    }

    /// How many complete blocks of an attempt count where its turn stops: all, unless they are thoughts alone, which no provider takes
    /// back without what they led to.
    pub fn kept_when_stopped(&self) -> usize {
        let only_thoughts = self.blocks.iter().all(|block| matches!(**block, Item::Reasoning { .. }));
        if only_thoughts { 0 } else { self.blocks.len() }
    }

    /// The same where the user interrupted it: the block of its unfinished text counts as well.
    pub fn kept_when_cancelled(&self) -> usize {
        match self.interrupted_block() {
            Some(_) => self.blocks.len() + 1,
            None => self.kept_when_stopped(),
        }
    }
}

/// The text of an answer.
pub(crate) fn text_of(blocks: &[Arc<Item>]) -> String {
    let texts = blocks.iter().filter_map(|block| match &**block {
        Item::Text { role: Role::Assistant, text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}
