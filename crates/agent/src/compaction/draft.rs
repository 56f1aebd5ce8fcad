//! Drafts the epoch that a compaction begins, from a summary or by rule: how much it keeps, and whether the result is
//! small enough. Pure.

use std::sync::Arc;

use longhaul_context::{
    KeptWindow, WrittenSummary, changed_files_pin, estimate_bytes, estimate_items, estimate_text,
    first_request_pin, is_task_notification, max_bytes_for, merge_summaries, render_active_skill, render_pin,
    render_summary, render_tasks, render_todo, unlisted_skills, user_messages,
};
use longhaul_protocol::{
    BlobRef, CallId, CompactDone, CompactedBy, Environment, EpochReason, EpochStarted, FIRST_REQUEST_PIN,
    Item, Kept, Pin, Place, Role, Seq, SessionRecord, Summary, SystemMessage, TextContent,
};

use crate::compaction::plan::{CompactionTrigger, ContextLimits};
use crate::session::apply::IMPORTED_NOTICE;
use crate::session::state::State;
use crate::skills::ActiveSkillText;

/// A context with fewer tokens does not have to become much smaller. It only has to fit.
const SMALL_CONTEXT_TOKENS: u64 = 4_000;
/// The usable tokens of a model whose window is not known.
const UNKNOWN_WINDOW_TOKENS: u64 = 1 << 40;
/// What the model reads at the end of a context that was compacted in the middle of a turn.
const CONTINUE_NOTE: &str = "The context was compacted in the middle of this turn. What was done in it is in the summary; \
                             go on with the next action, and don't begin again.";

/// How small a compaction must make the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CompactionGoal {
    /// C6: three tenths smaller, and under six tenths of the usable tokens.
    Smaller,
    /// The same. If that is impossible, the next request must at least fit.
    SmallerOrFits,
    /// The next request must fit.
    Fits,
}

impl CompactionGoal {
    /// `is_needed` says that the next request would fail without the compaction.
    pub(super) fn new(trigger: CompactionTrigger, is_needed: bool) -> Self {
        match (trigger, is_needed) {
            (CompactionTrigger::Requested, _) => Self::Fits,
            (_, true) => Self::SmallerOrFits,
            (_, false) => Self::Smaller,
        }
    }
}

/// Drafts the new epoch.
#[derive(Debug, Clone)]
pub(super) struct EpochDrafter<'a> {
    pub(super) state: &'a State,
    pub(super) space: &'a ContextLimits,
    pub(super) system: BlobRef,
    pub(super) tools: BlobRef,
    /// The surroundings that this system prompt names.
    pub(super) environment: Option<Box<Environment>>,
    /// The last record before the compaction began.
    pub(super) covered: Seq,
    /// How many tokens of the newest exchanges to keep verbatim, if there is room.
    pub(super) keep: u64,
    pub(super) goal: CompactionGoal,
    pub(super) preface: PrefaceTexts<'a>,
}

/// The texts of a new context that come from elsewhere than the session's records.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PrefaceTexts<'a> {
    /// Long-term memory.
    pub(super) memory: Option<&'a str>,
    /// The list of skills.
    pub(super) skill_list: Option<&'a str>,
    /// The skills in use, the newest first.
    pub(super) active_skills: &'a [ActiveSkillText],
}

/// The records of a new epoch.
#[derive(Debug, Clone)]
pub(super) struct EpochDraft {
    pub(super) epoch: EpochStarted,
    messages: [SystemMessage; 2],
    done: CompactDone,
}

impl EpochDraft {
    /// The records of the compaction, for one append.
    pub(super) fn into_records(self) -> Vec<SessionRecord> {
        let [summary, todo] = self.messages;
        vec![
            SessionRecord::EpochStarted(self.epoch),
            SessionRecord::SystemMessage(summary),
            SessionRecord::SystemMessage(todo),
            SessionRecord::CompactDone(self.done),
        ]
    }
}

/// The most tokens that each part of a new context may take.
#[derive(Debug, Clone, Copy)]
struct PartLimits {
    summary: u64,
    first_request: u64,
    list: u64,
    memory: u64,
    skill_list: u64,
    /// All skills in use together.
    active_skills: u64,
}

impl PartLimits {
    /// The limits for a window of this size. The text of memory and the list of skills were already fitted when they were
    /// read (C13), so each is kept whole or not at all.
    fn usual(usable: u64) -> Self {
        Self {
            summary: usable / 4,
            first_request: usable / 10,
            list: usable / 20,
            memory: usable,
            skill_list: usable,
            active_skills: usable / 5,
        }
    }

    /// Only the parts that a context can't do without.
    const LEAST: Self =
        Self { summary: 0, first_request: 8, list: 0, memory: 0, skill_list: 0, active_skills: 0 };

    fn tight(usable: u64) -> Self {
        Self {
            summary: usable / 8,
            first_request: usable / 20,
            list: usable / 40,
            memory: 0,
            skill_list: usable / 20,
            active_skills: usable / 10,
        }
    }
}

impl EpochDrafter<'_> {
    /// The epoch that begins with a summary. It keeps as much as configured, or less if that does not fit.
    pub(super) fn draft_with_summary(&self, written: WrittenSummary) -> Result<EpochDraft, String> {
        let own = self.own_items();
        let inputs = user_messages(&own);
        let summary = merge_summaries(self.state.summary.as_ref(), written, &inputs);
        let calibration = self.state.calibration(&self.space.model);
        let outline = crate::compaction::plan::context_outline(
            self.state,
            &calibration,
            self.space.max_request_tokens(),
        );
        let usable = self.usable();
        let most = self.space.room.map_or(self.keep, |room| room.at_most(self.keep));
        let kept = Some(self.with_first_half(outline.kept_window(most)));
        let kept = kept.filter(|keep| keep.from > self.state.preface_len);
        let none = self.with_first_half(outline.kept_window(0));
        let raw = calibration.largest_within(usable);
        let (usual, tight) = (PartLimits::usual(raw), PartLimits::tight(raw));
        let by = CompactedBy::Model;
        let mut drafts =
            kept.iter().chain([&none]).map(|keep| self.build(keep, Some(&summary), None, by, usual));
        let last = match drafts.by_ref().find(|draft| self.meets_goal(draft)) {
            Some(draft) => return Ok(draft),
            None => self.build(&none, Some(&summary), None, by, tight),
        };
        let need_only_fit =
            self.goal == CompactionGoal::SmallerOrFits || last.done.before < SMALL_CONTEXT_TOKENS;
        if self.meets_goal(&last) || (need_only_fit && last.done.after <= usable) {
            return Ok(last);
        }
        Err(self.too_large_reason(&last))
    }

    /// Whether a summary can make the context smaller: the shortest one would.
    pub(super) fn can_shrink(&self) -> bool {
        let shortest = WrittenSummary { summary: Summary::default(), withdrawn: vec![] };
        let summary = merge_summaries(self.state.summary.as_ref(), shortest, &[]);
        let calibration = self.state.calibration(&self.space.model);
        let outline = crate::compaction::plan::context_outline(
            self.state,
            &calibration,
            self.space.max_request_tokens(),
        );
        let least = self.with_first_half(outline.kept_window(0));
        let limits = PartLimits::tight(calibration.largest_within(self.usable()));
        let done = self.build(&least, Some(&summary), None, CompactedBy::Model, limits).done;
        done.after < done.before
    }

    /// The items of the context, without the inputs that came with an import or from an agent: only this user gives directives.
    fn own_items(&self) -> Vec<Arc<Item>> {
        let state = self.state;
        let items = state.items.iter().zip(&state.places).skip(state.preface_len);
        let is_own = |place: &Place| !place.by_agent && !self.is_foreign(place);
        items.filter(|(_, place)| is_own(place)).map(|(item, _)| item.clone()).collect()
    }

    fn is_foreign(&self, place: &Place) -> bool {
        place.said.unwrap_or(place.seq) <= self.state.foreign_through
    }

    /// The epoch that begins with the previous summary and the newest exchanges, without a model call.
    pub(super) fn draft_by_rule(&self) -> Result<EpochDraft, String> {
        let calibration = self.state.calibration(&self.space.model);
        let outline = crate::compaction::plan::context_outline(
            self.state,
            &calibration,
            self.space.max_request_tokens(),
        );
        let usable = self.usable();
        let raw = calibration.largest_within(usable);
        let (usual, tight) = (PartLimits::usual(raw), PartLimits::tight(raw));
        let nothing = self.with_first_half(outline.kept_window(0));
        let bare = |limits| self.build_by_rule(&nothing, limits).done.after;
        let goal = (usable / 10 * 6).min(self.tokens_before() / 10 * 7);
        let mut best: Option<EpochDraft> = None;
        for limits in [usual, tight, PartLimits::LEAST] {
            let (within, at_most) = (goal.saturating_sub(bare(limits)), usable.saturating_sub(bare(limits)));
            // C7: the newest exchanges stay if they fit, even if that is not much smaller.
            let newest = self.with_first_half(outline.kept_window_by_rule(within, at_most));
            let fewer = self.with_first_half(outline.kept_window(within));
            for keep in [&newest, &fewer, &nothing] {
                let draft = self.build_by_rule(keep, limits);
                let is_of_use = keep.from > self.state.preface_len
                    || draft.done.after < draft.done.before
                    || self.goal == CompactionGoal::SmallerOrFits;
                if !is_of_use {
                    continue;
                }
                let is_smaller = match self.goal {
                    CompactionGoal::Smaller => {
                        draft.done.before < SMALL_CONTEXT_TOKENS
                            || draft.done.after <= draft.done.before / 10 * 9
                    }
                    CompactionGoal::SmallerOrFits | CompactionGoal::Fits => true,
                };
                if self.meets_goal(&draft) || (is_smaller && draft.done.after <= usable) {
                    return Ok(draft);
                }
                let is_better = best.as_ref().is_none_or(|best| draft.done.after < best.done.after);
                best = if is_better { Some(draft) } else { best };
            }
        }
        Err(best.map_or_else(|| "nothing can be removed".to_owned(), |best| self.too_large_reason(&best)))
    }

    /// Keeps the first half of a truncated answer that has to continue.
    fn with_first_half(&self, keep: KeptWindow) -> KeptWindow {
        let Some(turn) = self.state.turn.as_ref().filter(|turn| turn.continues_next_step) else {
            return keep;
        };
        let is_half = |place: &Place| (place.turn, place.step) == (turn.number, turn.steps);
        let half = self.state.places.iter().position(is_half).unwrap_or(keep.from);
        let from = keep.from.min(half.max(self.state.preface_len));
        KeptWindow { from, requests: keep.requests.into_iter().filter(|index| *index < from).collect() }
    }

    fn build_by_rule(&self, keep: &KeptWindow, limits: PartLimits) -> EpochDraft {
        let (from, through) = self.covered_range(keep);
        let dropped = format!(
            "Older exchanges (records {from} to {through}) were dropped by rule, without a summary; \
             recall and recall_read reach them."
        );
        self.build(keep, self.state.summary.as_ref(), Some(&dropped), CompactedBy::Rule, limits)
    }

    fn usable(&self) -> u64 {
        self.space.room.map_or(UNKNOWN_WINDOW_TOKENS, |room| room.usable())
    }

    /// The size of the next request without a compaction, estimated in the same way as the draft.
    fn tokens_before(&self) -> u64 {
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

    fn meets_goal(&self, draft: &EpochDraft) -> bool {
        let (before, after, usable) = (draft.done.before, draft.done.after, self.usable());
        match self.goal {
            CompactionGoal::Fits => return after <= usable,
            // A draft that makes a small context smaller is better than one that only fits.
            _ if before < SMALL_CONTEXT_TOKENS => return after <= usable && after < before,
            CompactionGoal::Smaller | CompactionGoal::SmallerOrFits => {}
        }
        after <= before / 10 * 7 && after < usable / 10 * 6
    }

    fn too_large_reason(&self, draft: &EpochDraft) -> String {
        let (before, after) = (draft.done.before, draft.done.after);
        format!("{after} of {before} tokens would remain, and {} are available", self.usable())
    }

    /// The records that the compaction covers: from the end of the previous one to the beginning of the kept part.
    fn covered_range(&self, keep: &KeptWindow) -> (Seq, Seq) {
        let before = self.state.compaction.covered_through;
        let places = self.state.places.get(keep.from..).unwrap_or_default();
        let first = places.iter().map(|place| place.seq).filter(|seq| *seq > before).min();
        (before.saturating_add(1), first.map_or(self.covered, |first| first - 1))
    }

    fn build(
        &self,
        keep: &KeptWindow,
        summary: Option<&Summary>,
        dropped: Option<&str>,
        by: CompactedBy,
        limits: PartLimits,
    ) -> EpochDraft {
        let state = self.state;
        let kept = self.kept_items(keep);
        let pins = self.pins(keep, limits);
        let first = vec![render_summary(summary, dropped, limits.summary)];
        // In a separate message, because erasing a pin must not erase the summary.
        let mut second = vec![render_todo(&state.todo, limits.list)];
        second.extend(pins.iter().map(|pin| render_pin(&truncate_pin(pin, limits.first_request))));
        second.extend((state.foreign_through > 0).then(|| IMPORTED_NOTICE.to_owned()));
        second.extend(render_tasks(state.tasks.running().map(|task| &task.started)));
        second.extend(
            self.preface.memory.filter(|text| estimate_text(text) <= limits.memory).map(str::to_owned),
        );
        second.extend(self.preface.skill_list.map(|list| match estimate_text(list) <= limits.skill_list {
            true => list.to_owned(),
            false => unlisted_skills(),
        }));
        second.extend(self.active_skill_texts(&kept, limits.active_skills));

        let preface = first.iter().chain(&second).cloned();
        let preface = preface.map(|text| Arc::new(Item::Text { role: Role::System, text }));
        let items: Vec<Arc<Item>> =
            preface.chain(kept.iter().map(|kept| Arc::new(kept.item.clone()))).collect();
        let (from, through) = self.covered_range(keep);
        let epoch = state.epoch.as_ref().map_or(1, |epoch| epoch.number.saturating_add(1));
        let carried =
            crate::session::carry_over::carry_over(state, kept.iter().map(|kept| &kept.item), through);
        EpochDraft {
            done: CompactDone {
                epoch,
                by,
                before: self.tokens_before(),
                after: self.tokens(&items),
                from,
                through,
            },
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
                environment: self.environment.clone(),
                ..EpochStarted::new(epoch, EpochReason::Compacted, self.system.clone(), self.tools.clone())
            },
        }
    }

    /// The items that are kept verbatim: the requests of the open turn, then everything from `keep.from` on.
    fn kept_items(&self, keep: &KeptWindow) -> Vec<Kept> {
        let state = self.state;
        let asked = keep.requests.iter().map(|&index| (&state.items[index], &state.places[index]));
        let rest = state.items.iter().zip(&state.places).skip(keep.from);
        let is_new = |item: &Item| !matches!(item, Item::Note { text } if text == CONTINUE_NOTE);
        let kept = asked
            .chain(rest)
            .filter(|(item, _)| is_new(item))
            .map(|(item, place)| Kept { place: *place, item: (**item).clone() });
        let mut kept: Vec<Kept> = kept.collect();
        // In the middle of a turn, the model must not mistake the request for a new one.
        if let Some(turn) = state.turn.as_ref().filter(|turn| turn.steps > 1 || turn.answered) {
            let step = turn.steps.saturating_add(u64::from(turn.answered));
            let place = Place::new(state.head, turn.number, step);
            kept.push(Kept { place, item: Item::Note { text: CONTINUE_NOTE.to_owned() } });
        }
        kept
    }

    /// The texts of the skills in use, the oldest first. The newest get their room first. One whose text is kept as the
    /// result of a call is not repeated.
    fn active_skill_texts(&self, kept: &[Kept], most: u64) -> Vec<String> {
        let is_kept = |call: CallId| {
            kept.iter()
                .any(|kept| matches!(&kept.item, Item::ToolResult { call: shown, .. } if *shown == call))
        };
        let mut room = max_bytes_for(most);
        let mut texts = Vec::new();
        for skill in self.preface.active_skills.iter().filter(|skill| !is_kept(skill.call)) {
            let body = skill.text.as_deref().map_err(String::as_str);
            let text = render_active_skill(&skill.name, &skill.folder, body, room);
            room = room.saturating_sub(text.len());
            texts.push(text);
        }
        texts.reverse();
        texts
    }

    /// The texts that are never summarised: the changed files, and the first request unless it is kept verbatim.
    fn pins(&self, keep: &KeptWindow, limits: PartLimits) -> Vec<Pin> {
        let state = self.state;
        let mut pins: Vec<Pin> =
            state.pins.iter().filter(|pin| pin.name == FIRST_REQUEST_PIN).cloned().collect();
        let first = (state.preface_len..state.items.len())
            .filter(|index| !self.is_foreign(&state.places[*index]))
            .find_map(|index| Some((index, user_request(&state.items[index])?)))
            .filter(|(index, _)| *index < keep.from && !keep.requests.contains(index));
        if let (true, Some((index, text))) = (pins.is_empty(), first) {
            let place = state.places[index];
            pins.push(first_request_pin(text, place.said.unwrap_or(place.seq), limits.first_request));
        }
        // Paths in the work folder are shown relative to it, as the model writes them.
        let folder = state.created.as_ref().and_then(|created| created.work_dir.as_deref());
        let named =
            |path: &String| match folder.and_then(|folder| path.strip_prefix(folder)?.strip_prefix('/')) {
                Some(relative) => relative.to_owned(),
                None => path.clone(),
            };
        let changed: Vec<String> = state.changed_files.iter().map(named).collect();
        pins.extend(changed_files_pin(&changed, limits.list));
        pins
    }
}

/// A pin with its text truncated to this many tokens. The stored pin keeps the whole text.
fn truncate_pin(pin: &Pin, most: u64) -> Pin {
    let most = max_bytes_for(most);
    let mut text = pin.text.clone();
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
    }
    Pin { name: pin.name.clone(), text }
}

/// The text of the user's request.
fn user_request(item: &Item) -> Option<&str> {
    match item {
        Item::Text { role: Role::User, text } if !is_task_notification(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
#[path = "draft_tests.rs"]
mod tests;
