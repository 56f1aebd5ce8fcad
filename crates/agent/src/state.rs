//! What a session is right now: what folding its records gives, and nothing besides.

use std::collections::HashMap;
use std::sync::Arc;

use longhaul_protocol::{
    At, AttemptId, BlobRef, CallId, Effect, Hash, Image, InputId, Item, JoinMode, Pin, Question, Role, Seq,
    TaskStarted, Todo, ToolStarted,
};

use crate::repeats::Repeats;

/// What a session is right now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// The last record that is folded in.
    pub head: Seq,
    /// When the session began, and the folder that it works in.
    pub created: Option<Created>,
    /// The epoch that the context belongs to.
    pub epoch: Option<Epoch>,
    /// How far the inbox is taken.
    pub inbox_through: Seq,
    /// How many turns have started.
    pub turns: u64,
    /// What the model has read and written since the epoch began.
    pub items: Vec<Arc<Item>>,
    /// Inputs that were taken and that the model has not seen yet.
    pub waiting: Vec<Waiting>,
    /// The turn that is open.
    pub turn: Option<Turn>,
    /// The todo list.
    pub todo: Vec<Todo>,
    /// What the model knows of files: the hash of each, by canonical path.
    pub seen: Arc<HashMap<String, Hash>>,
    /// Outputs of which the model has only head and tail.
    pub outputs: HashMap<CallId, BlobRef>,
    /// What must stay in the context word for word.
    pub pins: Vec<Pin>,
    /// Tasks that are running.
    pub tasks: Vec<TaskStarted>,
    /// Questions that are open.
    pub questions: Vec<Question>,
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
}

/// The turn that is open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turn {
    /// Its number, from 1.
    pub number: u64,
    /// How many steps have started.
    pub steps: u64,
    /// Somebody wants it to end.
    pub cancelled: bool,
    /// A record of it is lost, so nobody can tell what would be done twice; this is what is known.
    pub broken: Option<String>,
    /// The model call that is open.
    pub attempt: Option<Attempt>,
    /// Whether the newest step has its answer.
    pub answered: bool,
    /// The text of the newest answer.
    pub text: String,
    /// The calls of the newest answer, in its order.
    pub calls: Vec<CallState>,
    /// Whether their results are in the context.
    pub settled: bool,
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
    /// The record with which it started.
    pub started: Option<ToolStarted>,
    /// What came of it.
    pub result: Option<Arc<Item>>,
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

    /// Inputs that join the open turn at its next step.
    pub(crate) fn joins(&self) -> bool {
        self.waiting.iter().any(|input| input.mode == JoinMode::Join)
    }
}

impl Turn {
    /// What was open when the runtime before this one ended, for people.
    pub(crate) fn was_open(&self) -> String {
        let open: Vec<&str> =
            self.calls.iter().filter(|call| call.is_open()).map(|call| call.name.as_str()).collect();
        let what = match (&self.attempt, &open[..]) {
            (Some(_), _) => "an answer was on its way".to_owned(),
            (None, []) => "it was between two records".to_owned(),
            (None, open) => format!("{} had started", open.join(", ")),
        };
        format!("turn {} was open, and goes on: {what}", self.number)
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

    /// How many blocks of an attempt that was cancelled count: all that are complete, unless they are thoughts alone,
    /// which no provider takes back without what they led to.
    pub fn kept_when_cancelled(&self) -> usize {
        let only_thoughts = self.blocks.iter().all(|block| matches!(**block, Item::Reasoning { .. }));
        if only_thoughts { 0 } else { self.blocks.len() }
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
