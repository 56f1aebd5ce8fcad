//! Records of epochs and compactions.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use longhaul_context::{TokenCalibration, parse_first_request_pin, parse_rendered_summary, stub_text};
use longhaul_protocol::{
    CallId, CompactDone, CompactFailed, EpochStarted, Item, Place, Record, Role, SKILLS_MARK, Seq,
    SessionPermission, Stubbed, SystemMessage,
};

use crate::compaction::plan::{Compaction, context_outline};
use crate::session::carry_over::new_epoch_state;
use crate::session::state::{Epoch, State};
use crate::session::tasks::SessionTasks;

pub(super) fn fold_epoch(state: &mut State, record: &Record, epoch: EpochStarted) {
    if epoch.carried.is_some() {
        *state = new_epoch_state(state, record.seq, epoch);
        return;
    }
    if epoch.folds_from.is_none() {
        // A process that loads the session from here does not have these items either.
        state.items.clear();
        state.places.clear();
        state.preface_len = 0;
        state.known_files = Arc::default();
        state.full_outputs.clear();
        state.active_skills.clear();
        state.tasks = SessionTasks::restore(epoch.tasks, epoch.ended, vec![]);
        state.questions = epoch.questions;
        state.permission = SessionPermission::default();
        state.chosen_model = None;
    }
    drop_quiet_turns(state);
    // A context that goes on has the notes about what changed.
    state.told_environment = match (&epoch.environment, epoch.folds_from) {
        (Some(_), Some(_)) => state.told_environment.take().or_else(|| epoch.environment.clone()),
        (began, _) => began.clone(),
    };
    state.environment = epoch.environment;
    // The provider counted a context with another beginning.
    state.provider_count = None;
    state.epoch = Some(Epoch {
        number: epoch.epoch,
        began: record.seq,
        folds_from: epoch.folds_from.unwrap_or(record.seq),
        system: epoch.system,
        tools: epoch.tools,
    });
    state.turn_count = epoch.turns;
    state.inbox_through = state.inbox_through.max(epoch.inbox_through);
    state.pins = epoch.pins;
    state.todo = epoch.todo;
}

/// Drops the turns of heartbeats that found nothing to do. The runtime's notes in them stay: they say what changed, and are not repeated.
fn drop_quiet_turns(state: &mut State) {
    let quiet: HashSet<u64> = std::mem::take(&mut state.quiet_turns).into_iter().collect();
    if quiet.is_empty() {
        return;
    }
    let items = std::mem::take(&mut state.items).into_iter().zip(std::mem::take(&mut state.places));
    let is_runtime_note =
        |item: &Item, place: &Place| matches!(item, Item::Note { .. }) && place.said.is_none();
    let preface_len = state.preface_len;
    let kept = items.enumerate().filter(|(index, (item, place))| {
        *index < preface_len || !quiet.contains(&place.turn) || is_runtime_note(item, place)
    });
    (state.items, state.places) = kept.map(|(_, kept)| kept).unzip();
}

/// Adds a message that the runtime composed for the new epoch. It comes before the items that the epoch keeps.
pub(super) fn fold_preface(state: &mut State, seq: Seq, message: SystemMessage) {
    if lacks_its_epoch(state) {
        drop_preface(state);
    }
    if state.compaction.lost_epoch_record {
        restore_from_preface(state, &message);
    }
    for part in message.content {
        // An epoch that continues the context may have another list of skills.
        if part.text.starts_with(SKILLS_MARK)
            && let Some(index) = skill_list_index(state)
        {
            state.items.remove(index);
            state.places.remove(index);
            state.preface_len -= 1;
        }
        let item = Arc::new(Item::Text { role: Role::System, text: part.text });
        state.items.insert(state.preface_len, item);
        state.places.insert(state.preface_len, Place::new(seq, 0, 0));
        state.preface_len += 1;
    }
}

/// Where the preface has the list of skills.
fn skill_list_index(state: &State) -> Option<usize> {
    let is_list =
        |item: &Arc<Item>| matches!(&**item, Item::Text { text, .. } if text.starts_with(SKILLS_MARK));
    state.items[..state.preface_len].iter().position(is_list)
}

/// The list of skills that the context has.
pub(crate) fn skill_list(state: &State) -> Option<&str> {
    match &*state.items[skill_list_index(state)?] {
        Item::Text { text, .. } => Some(text),
        _ => None,
    }
}

/// Applies the end of a compaction. If the record of its epoch is gone, removes the items in the compaction's range.
pub(super) fn fold_compact_done(state: &mut State, done: &CompactDone) {
    if lacks_its_epoch(state) {
        drop_preface(state);
    }
    if state.compaction.open_reason.take().is_none() {
        return;
    }
    let calibration = TokenCalibration::default();
    let asked = context_outline(state, &calibration, 0).open_requests(u64::MAX);
    let stays = |index: usize| {
        index < state.preface_len || state.places[index].seq > done.through || asked.contains(&index)
    };
    let keeps: Vec<bool> = (0..state.items.len()).map(stays).collect();
    let mut kept = keeps.iter();
    state.items.retain(|_| *kept.next().unwrap_or(&true));
    let mut kept = keeps.iter();
    state.places.retain(|_| *kept.next().unwrap_or(&true));
    state.provider_count = None;
    if let Some(turn) = &mut state.turn {
        turn.refusal = None;
    }
    if let Some(epoch) = &mut state.epoch {
        epoch.number = epoch.number.max(done.epoch);
    }
    state.compaction = Compaction {
        count: state.compaction.count.saturating_add(1),
        count_since_answer: state.compaction.count_since_answer.saturating_add(1),
        covered_through: done.through,
        ..Compaction::default()
    };
}

pub(super) fn fold_compact_start(state: &mut State, reason: String) {
    state.compaction.open_reason = Some(reason);
    state.compaction.lost_epoch_record = false;
}

/// Restores what a lost epoch record would have carried over, as far as the model's text contains it.
fn restore_from_preface(state: &mut State, message: &SystemMessage) {
    for part in &message.content {
        if let Some(summary) = parse_rendered_summary(&part.text) {
            state.summary = Some(summary);
        } else if let Some(pin) = parse_first_request_pin(&part.text) {
            state.pins = vec![pin];
        }
    }
}

/// Whether the record of the new epoch is missing for the compaction that is being applied. That record would have
/// closed it.
fn lacks_its_epoch(state: &State) -> bool {
    state.compaction.open_reason.is_some() && !state.compaction.lost_epoch_record
}

fn drop_preface(state: &mut State) {
    state.items.drain(..state.preface_len);
    state.places.drain(..state.preface_len);
    state.preface_len = 0;
    state.compaction.lost_epoch_record = true;
}

pub(super) fn fold_compact_failed(state: &mut State, failed: &CompactFailed) {
    let compaction = &mut state.compaction;
    (compaction.open_reason, compaction.requested, compaction.lost_epoch_record) = (None, None, false);
    if let Some(tokens) = failed.tokens {
        compaction.failures += 1;
        compaction.failed_at = Some(tokens);
        compaction.failed_since_answer = true;
        compaction.cannot_fit = failed.was_needed;
    }
}

/// Replaces old output by stubs. Earlier token counts become invalid.
pub(super) fn fold_stubbed(state: &mut State, stubbed: &Stubbed) {
    let calls: HashSet<CallId> = stubbed.calls.iter().copied().collect();
    let names: HashMap<CallId, String> = state
        .items
        .iter()
        .filter_map(|item| match &**item {
            Item::ToolCall { call, name, .. } => Some((*call, name.clone())),
            _ => None,
        })
        .collect();
    for (item, place) in state.items.iter_mut().zip(&state.places) {
        let Item::ToolResult { call, content, is_error, .. } = &**item else { continue };
        if calls.contains(call) {
            let tool = names.get(call).map_or("a tool", String::as_str);
            let content = stub_text(tool, content.len(), *place);
            let (call, is_error) = (*call, *is_error);
            *item = Arc::new(Item::ToolResult { call, content, images: vec![], is_error });
        }
    }
    state.provider_count = None;
}

/// Whether a compaction has something to cover, and something has happened since the last one.
pub(crate) fn has_news_to_compact(state: &State) -> bool {
    let compaction = &state.compaction;
    let is_new = compaction.count_since_answer == 0 || compaction.answers_since_last > 0;
    state.items.len() > state.preface_len && is_new
}
