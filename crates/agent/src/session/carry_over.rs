//! What a new epoch carries over from the state before it, and the state that it begins with.
//!
//! A compaction is one append. Whoever loads the session afterwards reads nothing from before it, and whoever was there when it
//! happened folds the same record: both begin with [`State::begun`], so they can't differ.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use longhaul_context::TokenCalibration;
use longhaul_protocol::{
    Carried, CarriedCounting, CarriedOutput, EpochStarted, FileSeen, Item, OpenTurn, Seq, WaitingInput,
};

use crate::compaction::plan::Compaction;
use crate::session::repeats::Repeats;
use crate::session::state::{Again, Counting, Cut, Epoch, State, Turn, Waiting};
use crate::session::tasks::SessionTasks;

/// What the model knows of files is carried for so many of them.
const MOST_SEEN: usize = 2_000;
/// The words for [`Again`].
const RETRY: &str = "retry";
const CONTINUE: &str = "continue";

impl State {
    /// What a new epoch carries over, besides what its record has fields for. `kept` is what stays of the context.
    pub(crate) fn to_carry<'a>(
        &self,
        kept: impl IntoIterator<Item = &'a Item>,
        covered_through: Seq,
    ) -> Carried {
        let shown: HashSet<_> = kept
            .into_iter()
            .filter_map(|item| match item {
                Item::ToolResult { call, .. } => Some(*call),
                _ => None,
            })
            .collect();
        let mut outputs: Vec<CarriedOutput> = self
            .outputs
            .iter()
            .filter(|(call, _)| shown.contains(call))
            .map(|(call, whole)| CarriedOutput { call: *call, whole: whole.clone() })
            .collect();
        outputs.sort_by_key(|output| output.call);
        Carried {
            turn: self.turn.as_ref().map(Turn::to_carry),
            waiting: self.waiting.iter().map(Waiting::to_carry).collect(),
            again: self.again.map(|again| match again {
                Again::Retry => RETRY.to_owned(),
                Again::Continue => CONTINUE.to_owned(),
            }),
            last_outcome: self.last_outcome,
            interrupted: self.interrupted.clone(),
            seen: self.seen_to_carry(),
            changed: self.changed.clone(),
            outputs,
            tasks: self.tasks.knowledge_to_carry(),
            model: self.model.clone(),
            counting: self.counting.iter().map(|(model, known)| (model.clone(), known.to_carry())).collect(),
            rate_limits: self.rate_limits.clone(),
            warned: self.warned.clone(),
            answers: self.answers,
            compactions: self.compaction.count.saturating_add(1),
            since_answer: self.compaction.since_answer.saturating_add(1),
            covered_through,
            asked_in: self.asked_in,
        }
    }

    /// What the model knows of files, by their paths. If there are too many, those that were changed stay, the newest first.
    fn seen_to_carry(&self) -> Vec<FileSeen> {
        let mut seen: Vec<FileSeen> =
            self.seen.iter().map(|(path, hash)| FileSeen { path: path.clone(), hash: *hash }).collect();
        if seen.len() > MOST_SEEN {
            let ages: HashMap<&str, usize> = self.changed.iter().rev().map(String::as_str).zip(0..).collect();
            let age = |seen: &FileSeen| ages.get(seen.path.as_str()).copied().unwrap_or(usize::MAX);
            seen.sort_by(|one, other| age(one).cmp(&age(other)).then_with(|| one.path.cmp(&other.path)));
            seen.truncate(MOST_SEEN);
        }
        seen.sort_by(|one, other| one.path.cmp(&other.path));
        seen
    }

    /// The state that an epoch begins with which does not go on with the context before it. The `system_message` records after it
    /// put the preface before what it keeps.
    pub(crate) fn begun(&self, began: Seq, epoch: EpochStarted) -> Self {
        let carried = *epoch.carried.unwrap_or_default();
        Self {
            head: self.head,
            created: self.created.clone(),
            foreign_through: self.foreign_through,
            epoch: Some(Epoch {
                number: epoch.epoch,
                began,
                folds_from: began,
                system: epoch.system,
                tools: epoch.tools,
            }),
            inbox_through: self.inbox_through.max(epoch.inbox_through),
            turns: epoch.turns,
            places: epoch.kept.iter().map(|kept| kept.place).collect(),
            items: epoch.kept.into_iter().map(|kept| Arc::new(kept.item)).collect(),
            preface: 0,
            summary: epoch.summary.map(|summary| *summary),
            compaction: Compaction {
                count: carried.compactions,
                since_answer: carried.since_answer,
                covered_through: carried.covered_through,
                ..Compaction::default()
            },
            answers: carried.answers,
            asked_in: carried.asked_in,
            waiting: carried.waiting.into_iter().map(Waiting::carried).collect(),
            turn: carried.turn.map(Turn::carried),
            todo: epoch.todo,
            seen: Arc::new(carried.seen.into_iter().map(|seen| (seen.path, seen.hash)).collect()),
            changed: carried.changed,
            outputs: carried.outputs.into_iter().map(|output| (output.call, output.whole)).collect(),
            pins: epoch.pins,
            tasks: SessionTasks::carried(epoch.tasks, epoch.ended, carried.tasks),
            questions: epoch.questions,
            last_outcome: carried.last_outcome,
            interrupted: carried.interrupted,
            again: carried.again.and_then(|again| match again.as_str() {
                RETRY => Some(Again::Retry),
                CONTINUE => Some(Again::Continue),
                _ => None,
            }),
            model: carried.model,
            counting: carried
                .counting
                .into_iter()
                .map(|(model, known)| (model, Counting::carried(known)))
                .collect(),
            reported: None,
            rate_limits: carried.rate_limits,
            warned: carried.warned,
        }
    }
}

impl Turn {
    fn to_carry(&self) -> OpenTurn {
        OpenTurn {
            number: self.number,
            answers: self.answers,
            steps: self.steps,
            started_at: self.started_at,
            awaited_ms: self.awaited_ms,
            tokens: self.tokens,
            cost_nano: self.cost_nano,
            hurried: self.hurried,
            goes_on: self.goes_on,
            carried: self.carried.clone(),
            cuts: self.cuts,
            interrupted: self.interrupted.clone(),
            answered: self.answered,
            called: self.called || !self.calls.is_empty(),
            text: self.text.clone(),
            too_long: self.too_long,
            // What was refused is gone: the new context has yet to be.
            refusal: None,
            repeats: self.repeats.to_carry(),
        }
    }

    /// Between two steps nothing else is open: no attempt, no call, no question, no cancel.
    fn carried(open: OpenTurn) -> Self {
        Self {
            number: open.number,
            answers: open.answers,
            steps: open.steps,
            started_at: open.started_at,
            awaited_ms: open.awaited_ms,
            tokens: open.tokens,
            cost_nano: open.cost_nano,
            hurried: open.hurried,
            goes_on: open.goes_on,
            carried: open.carried,
            cuts: open.cuts,
            interrupted: open.interrupted,
            answered: open.answered,
            called: open.called,
            text: open.text,
            too_long: open.too_long,
            refusal: open.refusal,
            repeats: Repeats::carried(open.repeats),
            // A step that has yet to be answered has yet to put the results of its calls into the context.
            settled: open.answered,
            ..Self::default()
        }
    }
}

impl Waiting {
    fn to_carry(&self) -> WaitingInput {
        let Self { id, mode, text, images, cancelled, taken } = self.clone();
        WaitingInput { id, mode, text, images, cancelled, taken }
    }

    fn carried(waiting: WaitingInput) -> Self {
        let WaitingInput { id, mode, text, images, cancelled, taken } = waiting;
        Self { id, mode, text, images, cancelled, taken }
    }
}

impl Counting {
    fn to_carry(&self) -> CarriedCounting {
        CarriedCounting {
            samples: self.calibration.samples().to_vec(),
            cut_at: self.cuts.map(|cut| cut.at),
            cut_window: self.cuts.and_then(|cut| cut.window),
            refused_at: self.refused_at,
        }
    }

    fn carried(known: CarriedCounting) -> Self {
        Self {
            calibration: TokenCalibration::from_samples(known.samples),
            cuts: known.cut_at.map(|at| Cut { at, window: known.cut_window }),
            refused_at: known.refused_at,
        }
    }
}

#[cfg(test)]
#[path = "carry_over_tests.rs"]
mod tests;
