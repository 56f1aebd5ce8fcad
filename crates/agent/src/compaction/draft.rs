//! From a summary, or none, to the epoch that begins with it: how much is kept, and the proof that there is room. Pure.

use std::sync::Arc;

use longhaul_context::{
    FIRST_REQUEST, Keep, Written, estimate_bytes, estimate_items, estimate_text, files_changed,
    first_request, is_notification, merge, render_pin, render_summary, render_tasks, render_todo, said,
};
use longhaul_protocol::{
    BlobRef, CompactDone, CompactedBy, EpochReason, EpochStarted, Item, Kept, Pin, Place, Role, Seq,
    SessionRecord, Summary, SystemMessage, TextContent,
};

use crate::compaction::plan::{CompactionTrigger, ContextLimits};
use crate::session::apply::IMPORTED_NOTICE;
use crate::session::state::State;

/// A context below this need only fit.
const SMALL: u64 = 4_000;
/// What is taken to be usable where nobody says how much is.
const UNKNOWN: u64 = 1 << 40;
/// What the model reads at the end of a context that was made smaller in the middle of a turn.
const GO_ON: &str = "The context was compacted in the middle of this turn. What was done in it is in the summary; \
                     go on with the next action, and don't begin again.";

/// What a compaction has to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proof {
    /// C6: three tenths smaller, and under six tenths of what is usable.
    Smaller,
    /// The same; but if that can't be, the next request must at least fit.
    SmallerOrFits,
    /// It need only fit.
    Fits,
}

impl Proof {
    /// What one for this reason has to show. If it is needed, the next request would not go through without it.
    pub(super) fn of(trigger: CompactionTrigger, is_needed: bool) -> Self {
        match (trigger, is_needed) {
            (CompactionTrigger::Requested, _) => Self::Fits,
            (_, true) => Self::SmallerOrFits,
            (_, false) => Self::Smaller,
        }
    }
}

/// What a compaction starts from.
#[derive(Debug, Clone)]
pub(super) struct Ground<'a> {
    pub(super) state: &'a State,
    pub(super) space: &'a ContextLimits,
    pub(super) system: BlobRef,
    pub(super) tools: BlobRef,
    /// The last record before it began.
    pub(super) covered: Seq,
    /// What is kept as it is, if there is room.
    pub(super) keep: u64,
    pub(super) proof: Proof,
    /// What is remembered across sessions.
    pub(super) memory: Option<&'a str>,
}

/// A new epoch, and what it comes to.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    pub(super) epoch: EpochStarted,
    messages: [SystemMessage; 2],
    done: CompactDone,
}

impl Draft {
    /// The one append of a compaction.
    pub(super) fn into_facts(self) -> Vec<SessionRecord> {
        let [summary, todo] = self.messages;
        vec![
            SessionRecord::EpochStarted(self.epoch),
            SessionRecord::SystemMessage(summary),
            SessionRecord::SystemMessage(todo),
            SessionRecord::CompactDone(self.done),
        ]
    }
}

/// How much the parts of a new context may take, in tokens before anything is learnt.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    summary: u64,
    first_request: u64,
    list: u64,
    memory: u64,
}

impl Sizes {
    /// What is remembered was made to fit where it was read (C13): it is there as a whole, or not at all.
    fn usual(usable: u64) -> Self {
        Self { summary: usable / 4, first_request: usable / 10, list: usable / 20, memory: usable }
    }

    /// Nothing but what a context can't be without.
    const LEAST: Self = Self { summary: 0, first_request: 8, list: 0, memory: 0 };

    fn tight(usable: u64) -> Self {
        Self { summary: usable / 8, first_request: usable / 20, list: usable / 40, memory: 0 }
    }
}

impl Ground<'_> {
    /// The epoch that begins with a summary: with what is to be kept, then with less.
    pub(super) fn by_model(&self, written: Written) -> Result<Draft, String> {
        let own = self.own_items();
        let said = said(&own);
        let summary = merge(self.state.summary.as_ref(), written, &said);
        let calibration = self.state.calibration(&self.space.model);
        let outline = crate::compaction::plan::context_outline(
            self.state,
            &calibration,
            self.space.max_request_tokens(),
        );
        let usable = self.usable();
        let most = self.space.room.map_or(self.keep, |room| room.at_most(self.keep));
        let kept = Some(self.with_first_half(outline.keep(most)));
        let kept = kept.filter(|keep| keep.from > self.state.preface_len);
        let none = self.with_first_half(outline.keep(0));
        let raw = calibration.largest_within(usable);
        let (usual, tight) = (Sizes::usual(raw), Sizes::tight(raw));
        let by = CompactedBy::Model;
        let mut drafts =
            kept.iter().chain([&none]).map(|keep| self.draft(keep, Some(&summary), None, by, usual));
        let last = match drafts.by_ref().find(|draft| self.is_proven(draft)) {
            Some(draft) => return Ok(draft),
            None => self.draft(&none, Some(&summary), None, by, tight),
        };
        let need_only_fit = self.proof == Proof::SmallerOrFits || last.done.before < SMALL;
        if self.is_proven(&last) || (need_only_fit && last.done.after <= usable) {
            return Ok(last);
        }
        Err(self.not_smaller(&last))
    }

    /// What stands in the context without what the user of an imported session said: only this user gives directives.
    fn own_items(&self) -> Vec<Arc<Item>> {
        let state = self.state;
        let items = state.items.iter().zip(&state.places).skip(state.preface_len);
        items.filter(|(_, place)| !self.is_foreign(place)).map(|(item, _)| item.clone()).collect()
    }

    fn is_foreign(&self, place: &Place) -> bool {
        place.said.unwrap_or(place.seq) <= self.state.foreign_through
    }

    /// The epoch that begins with the newest exchanges, and with the summary that there was.
    pub(super) fn by_rule(&self) -> Result<Draft, String> {
        let calibration = self.state.calibration(&self.space.model);
        let outline = crate::compaction::plan::context_outline(
            self.state,
            &calibration,
            self.space.max_request_tokens(),
        );
        let usable = self.usable();
        let raw = calibration.largest_within(usable);
        let (usual, tight) = (Sizes::usual(raw), Sizes::tight(raw));
        let nothing = self.with_first_half(outline.keep(0));
        let bare = |sizes| self.rule(&nothing, sizes).done.after;
        let goal = (usable / 10 * 6).min(self.before() / 10 * 7);
        let mut best: Option<Draft> = None;
        for sizes in [usual, tight, Sizes::LEAST] {
            let (within, at_most) = (goal.saturating_sub(bare(sizes)), usable.saturating_sub(bare(sizes)));
            // C7: what is newest stays if it fits, also where that is not much smaller.
            let newest = self.with_first_half(outline.keep_by_rule(within, at_most));
            let fewer = self.with_first_half(outline.keep(within));
            for keep in [&newest, &fewer, &nothing] {
                let draft = self.rule(keep, sizes);
                let is_of_use = keep.from > self.state.preface_len
                    || draft.done.after < draft.done.before
                    || self.proof == Proof::SmallerOrFits;
                if !is_of_use {
                    continue;
                }
                let is_smaller = match self.proof {
                    Proof::Smaller => {
                        draft.done.before < SMALL || draft.done.after <= draft.done.before / 10 * 9
                    }
                    Proof::SmallerOrFits | Proof::Fits => true,
                };
                if self.is_proven(&draft) || (is_smaller && draft.done.after <= usable) {
                    return Ok(draft);
                }
                let is_better = best.as_ref().is_none_or(|best| draft.done.after < best.done.after);
                best = if is_better { Some(draft) } else { best };
            }
        }
        Err(best.map_or_else(|| "there is nothing that could go".to_owned(), |best| self.not_smaller(&best)))
    }

    /// Of an answer that was cut and goes on, the first half stays, whatever else goes.
    fn with_first_half(&self, keep: Keep) -> Keep {
        let Some(turn) = self.state.turn.as_ref().filter(|turn| turn.continues_next_step) else {
            return keep;
        };
        let is_half = |place: &Place| (place.turn, place.step) == (turn.number, turn.steps);
        let half = self.state.places.iter().position(is_half).unwrap_or(keep.from);
        let from = keep.from.min(half.max(self.state.preface_len));
        Keep { from, requests: keep.requests.into_iter().filter(|index| *index < from).collect() }
    }

    fn rule(&self, keep: &Keep, sizes: Sizes) -> Draft {
        let (from, through) = self.range(keep);
        let dropped = format!(
            "Older exchanges (records {from} to {through}) were dropped by rule, without a summary; \
             history_search and history_read reach them."
        );
        self.draft(keep, self.state.summary.as_ref(), Some(&dropped), CompactedBy::Rule, sizes)
    }

    fn usable(&self) -> u64 {
        self.space.room.map_or(UNKNOWN, |room| room.usable())
    }

    /// What the next request would have, by the estimator that says what it will have.
    fn before(&self) -> u64 {
        self.tokens(&self.state.items)
    }

    fn tokens(&self, items: &[Arc<Item>]) -> u64 {
        let beginning = || estimate_bytes(self.system.bytes + self.tools.bytes);
        let fixed = match self.space.room {
            Some(room) => room.fixed,
            None => self.state.calibrated(&self.space.model, beginning()),
        };
        let items = self.state.calibrated(&self.space.model, estimate_items(items));
        fixed
            .saturating_add(items)
            .saturating_add(crate::compaction::plan::incoming_tokens(self.state, self.space))
    }

    fn is_proven(&self, draft: &Draft) -> bool {
        let (before, after, usable) = (draft.done.before, draft.done.after, self.usable());
        match self.proof {
            Proof::Fits => return after <= usable,
            // A draft that makes it smaller is better, also where it need only fit.
            _ if before < SMALL => return after <= usable && after < before,
            Proof::Smaller | Proof::SmallerOrFits => {}
        }
        after <= before / 10 * 7 && after < usable / 10 * 6
    }

    fn not_smaller(&self, draft: &Draft) -> String {
        let (before, after) = (draft.done.before, draft.done.after);
        format!("it would have left {after} of {before} tokens, where {} are usable", self.usable())
    }

    /// The records that a compaction covers, if this is kept: from where the one before ended to where the kept part begins.
    fn range(&self, keep: &Keep) -> (Seq, Seq) {
        let before = self.state.compaction.covered_through;
        let places = self.state.places.get(keep.from..).unwrap_or_default();
        let first = places.iter().map(|place| place.seq).filter(|seq| *seq > before).min();
        (before.saturating_add(1), first.map_or(self.covered, |first| first - 1))
    }

    fn draft(
        &self,
        keep: &Keep,
        summary: Option<&Summary>,
        dropped: Option<&str>,
        by: CompactedBy,
        sizes: Sizes,
    ) -> Draft {
        let state = self.state;
        let kept = self.kept(keep);
        let pins = self.pins(keep, sizes);
        let first = vec![render_summary(summary, dropped, sizes.summary)];
        // Apart from the summary: whoever erases what is pinned must not lose that.
        let mut second = vec![render_todo(&state.todo, sizes.list)];
        second.extend(pins.iter().map(|pin| render_pin(&shortened(pin, sizes.first_request))));
        second.extend((state.foreign_through > 0).then(|| IMPORTED_NOTICE.to_owned()));
        second.extend(render_tasks(state.tasks.running().map(|task| &task.started)));
        second.extend(self.memory.filter(|text| estimate_text(text) <= sizes.memory).map(str::to_owned));

        let preface = first.iter().chain(&second).cloned();
        let preface = preface.map(|text| Arc::new(Item::Text { role: Role::System, text }));
        let items: Vec<Arc<Item>> =
            preface.chain(kept.iter().map(|kept| Arc::new(kept.item.clone()))).collect();
        let (from, through) = self.range(keep);
        let epoch = state.epoch.as_ref().map_or(1, |epoch| epoch.number.saturating_add(1));
        let carried =
            crate::session::carry_over::carry_over(state, kept.iter().map(|kept| &kept.item), through);
        Draft {
            done: CompactDone { epoch, by, before: self.before(), after: self.tokens(&items), from, through },
            messages: [first, second].map(|parts| SystemMessage {
                content: parts.into_iter().map(|text| TextContent { text }).collect(),
            }),
            epoch: EpochStarted {
                turns: state.turn_count,
                inbox_through: state.inbox_through,
                pins,
                todo: state.todo.clone(),
                tasks: state.tasks.carry_running(),
                ended: state.tasks.carry_ended(),
                questions: state.questions.clone(),
                previous: state.epoch.as_ref().map(|epoch| epoch.began),
                summary: summary.cloned().map(Box::new),
                kept,
                carried: Some(Box::new(carried)),
                ..EpochStarted::new(epoch, EpochReason::Compacted, self.system.clone(), self.tools.clone())
            },
        }
    }

    /// What stays as it is: what was asked in the open turn, then everything from the cut on.
    fn kept(&self, keep: &Keep) -> Vec<Kept> {
        let state = self.state;
        let asked = keep.requests.iter().map(|&index| (&state.items[index], &state.places[index]));
        let rest = state.items.iter().zip(&state.places).skip(keep.from);
        let is_new = |item: &Item| !matches!(item, Item::Note { text } if text == GO_ON);
        let kept = asked
            .chain(rest)
            .filter(|(item, _)| is_new(item))
            .map(|(item, place)| Kept { place: *place, item: (**item).clone() });
        let mut kept: Vec<Kept> = kept.collect();
        // Whoever is in the middle of something should not take the request for a new one.
        if let Some(turn) = state.turn.as_ref().filter(|turn| turn.steps > 1 || turn.answered) {
            let step = turn.steps.saturating_add(u64::from(turn.answered));
            let place = Place { seq: state.head, turn: turn.number, step, said: None };
            kept.push(Kept { place, item: Item::Note { text: GO_ON.to_owned() } });
        }
        kept
    }

    /// What is never summarised: the first request, as long as it does not stand in the context itself, and the files that were changed.
    fn pins(&self, keep: &Keep, sizes: Sizes) -> Vec<Pin> {
        let state = self.state;
        let mut pins: Vec<Pin> = state.pins.iter().filter(|pin| pin.name == FIRST_REQUEST).cloned().collect();
        let first = (state.preface_len..state.items.len())
            .filter(|index| !self.is_foreign(&state.places[*index]))
            .find_map(|index| Some((index, request(&state.items[index])?)))
            .filter(|(index, _)| *index < keep.from && !keep.requests.contains(index));
        if let (true, Some((index, text))) = (pins.is_empty(), first) {
            let place = state.places[index];
            pins.push(first_request(text, place.said.unwrap_or(place.seq), sizes.first_request));
        }
        // As the model would name them: relative paths begin in the work folder.
        let folder = state.created.as_ref().and_then(|created| created.work_dir.as_deref());
        let named =
            |path: &String| match folder.and_then(|folder| path.strip_prefix(folder)?.strip_prefix('/')) {
                Some(relative) => relative.to_owned(),
                None => path.clone(),
            };
        let changed: Vec<String> = state.changed_files.iter().map(named).collect();
        pins.extend(files_changed(&changed, sizes.list));
        pins
    }
}

/// A pin as there is room for it; what is stored is whole.
fn shortened(pin: &Pin, most: u64) -> Pin {
    const BYTES_PER_TOKEN: u64 = 4;
    let most = usize::try_from(most.saturating_mul(BYTES_PER_TOKEN)).unwrap_or(usize::MAX);
    let mut text = pin.text.clone();
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
    }
    Pin { name: pin.name.clone(), text }
}

/// The words of a person.
fn request(item: &Item) -> Option<&str> {
    match item {
        Item::Text { role: Role::User, text } if !is_notification(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
#[path = "draft_tests.rs"]
mod tests;
