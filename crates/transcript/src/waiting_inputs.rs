//! Inputs that no step has shown to the model yet. The rules by which a step takes them are those of the agent, so that each input is
//! shown where the model gets it.

use longhaul_protocol::{InputId, InputTaken, JoinMode, Seq};

use crate::block::Block;

/// An input that waits where a fold begins, without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingInput {
    /// The record that has the input.
    pub seq: Seq,
    mode: JoinMode,
    is_cancelled: bool,
}

/// The inputs that wait, in the order in which they were taken from the inbox.
#[derive(Debug, Default)]
pub(crate) struct WaitingInputs(Vec<Waiting>);

#[derive(Debug)]
struct Waiting {
    id: InputId,
    mode: JoinMode,
    is_cancelled: bool,
    can_be_withdrawn: bool,
    block: Block,
}

impl WaitingInputs {
    pub(crate) fn push(&mut self, input: &InputTaken, block: Block) {
        let (id, mode, can_be_withdrawn) = (input.id, input.mode, input.client.is_none());
        self.0.push(Waiting { id, mode, is_cancelled: false, can_be_withdrawn, block });
    }

    /// Adds an input that waited already where the fold began.
    pub(crate) fn restore(&mut self, known: &WaitingInput, input: &InputTaken, block: Block) {
        self.push(input, block);
        self.0.iter_mut().rev().take(1).for_each(|waiting| {
            (waiting.mode, waiting.is_cancelled) = (known.mode, known.is_cancelled);
        });
    }

    /// What another fold has to know that begins here.
    pub(crate) fn places(&self) -> Vec<WaitingInput> {
        let place = |waiting: &Waiting| {
            let (mode, is_cancelled) = (waiting.mode, waiting.is_cancelled);
            Some(WaitingInput { seq: waiting.block.seq?, mode, is_cancelled })
        };
        self.0.iter().filter_map(place).collect()
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.0.iter().map(|waiting| &waiting.block)
    }

    /// Cancels the inputs before their turn began. It will begin, and end as cancelled.
    pub(crate) fn cancel(&mut self) {
        self.0.iter_mut().for_each(|waiting| waiting.is_cancelled = true);
    }

    /// Takes an input back. False if it does not wait.
    pub(crate) fn withdraw(&mut self, id: InputId) -> bool {
        let is_it =
            |waiting: &mut Waiting| waiting.id == id && waiting.can_be_withdrawn && !waiting.is_cancelled;
        self.0.extract_if(.., is_it).count() > 0
    }

    /// A turn begins: its first step takes every input, or every cancelled one if there are any.
    pub(crate) fn begin_turn(&mut self) {
        let takes_cancelled = self.0.iter().any(|waiting| waiting.is_cancelled);
        for waiting in &mut self.0 {
            let joins = waiting.is_cancelled == takes_cancelled;
            waiting.mode = if joins { JoinMode::Join } else { JoinMode::After };
        }
    }

    /// A step begins, for which these inputs are too long. Returns the inputs that it takes.
    pub(crate) fn begin_step(&mut self, later: &[InputId]) -> Vec<Block> {
        for waiting in self.0.iter_mut().filter(|waiting| later.contains(&waiting.id)) {
            waiting.mode = JoinMode::After;
        }
        let taken = self.0.extract_if(.., |waiting| waiting.mode == JoinMode::Join);
        taken.map(|waiting| waiting.block).collect()
    }

    pub(crate) fn take_all(&mut self) -> Vec<Block> {
        self.0.drain(..).map(|waiting| waiting.block).collect()
    }
}
