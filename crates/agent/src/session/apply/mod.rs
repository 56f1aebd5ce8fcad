//! `apply(state, record)`: what a record changes. No clock, no disk, no network.

mod client;
mod creation;
mod epoch;
mod erased;
mod import;
mod questions;
mod sender;
mod usage;

use std::sync::Arc;

use longhaul_protocol::{
    ActiveSkill, AddedContext, At, AttemptEnded, AttemptId, CallId, Cause, DecodeError, Effect, InputTaken,
    Item, JoinMode, Note, OrderKind, OrderTaken, Outcome, PendingInput, Place, Record, Role, Seq,
    SessionRecord, SkillShown, StepStarted, TaskStarted, ToolFinished, ToolTask, TurnStarted,
};

use self::client::fold_client;
use self::creation::fold_creation;
use self::epoch::{
    fold_compact_done, fold_compact_failed, fold_compact_start, fold_epoch, fold_preface, fold_stubbed,
};
pub(crate) use self::epoch::{has_news_to_compact, skill_list};
use self::erased::fold_gone;
pub(crate) use self::import::IMPORTED_NOTICE;
use self::import::fold_import;
use self::questions::{fold_answered, fold_refusal};
use self::sender::sender_note;
use self::usage::fold_usage;
use crate::compaction::plan::CompactionRequest;
use crate::session::permission::fold_mode;
use crate::session::state::{Attempt, CallState, State, Turn, TurnRequest, text_of};
use crate::skills::SKILLS_SKIPPED;

/// The note to the model where the user interrupted a turn.
const CANCELLED: &str = "The user interrupted here. The next message says how to go on.";

/// The note to the model to continue an interrupted answer.
const GO_ON: &str =
    "Your answer was interrupted here. Go on from exactly this point, without repeating anything.";
/// Codes of warnings that are given only once.
pub(crate) const GIVEN_ONCE: [&str; 8] = [
    "no_tools",
    "window_assumed",
    "cost_unknown",
    "summary_model",
    ROLE_ORDER,
    RULES_SKIPPED,
    HOME_EXPOSED,
    SKILLS_SKIPPED,
];
/// The server refused the order of roles, and gets another one from now on.
pub(crate) const ROLE_ORDER: &str = "role_order";
/// A file with instructions is not used, or only in part.
pub(crate) const RULES_SKIPPED: &str = "rules_skipped";
/// The work folder is or contains the user's home folder.
pub(crate) const HOME_EXPOSED: &str = "home_exposed";
const MAX_CHANGED_FILES: usize = 1_000;

/// Folds one record into the state.
pub(crate) fn apply(state: &mut State, record: &Record) -> Result<(), DecodeError> {
    match SessionRecord::decode(record) {
        Ok(fact) => {
            state.head = record.seq;
            fold(state, record, fact);
        }
        Err(DecodeError::Gone { reason, .. }) => {
            state.head = record.seq;
            fold_gone(state, record, &reason);
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

#[allow(clippy::too_many_lines, reason = "one arm for each kind of record")]
fn fold(state: &mut State, record: &Record, fact: SessionRecord) {
    match fact {
        SessionRecord::SessionCreated(created) => fold_creation(state, record.at, created),
        SessionRecord::EpochStarted(epoch) => fold_epoch(state, record, epoch),
        SessionRecord::InputTaken(input) => fold_input(state, input),
        SessionRecord::OrderTaken(order) => fold_order(state, &order),
        SessionRecord::TurnStarted(started) => fold_turn(state, &started, Some(record.at)),
        SessionRecord::StepStarted(step) => fold_step(state, &step),
        SessionRecord::AttemptStarted(started) => {
            if let Some(turn) = &mut state.turn {
                let (id, blocks, unfinished) = (started.attempt, vec![], String::new());
                turn.attempt = Some(Attempt { id, blocks, unfinished });
            }
            state.model = Some(started.model);
        }
        SessionRecord::Block(block) => {
            if let Some(attempt) = open_attempt(state, block.attempt) {
                attempt.blocks.push(Arc::new(block.item));
                attempt.unfinished.clear();
            }
        }
        SessionRecord::Checkpoint(checkpoint) => {
            if let Some(attempt) = open_attempt(state, checkpoint.attempt) {
                attempt.unfinished.push_str(&checkpoint.text);
            }
        }
        SessionRecord::AttemptEnded(ended) => fold_answer(state, &ended),
        SessionRecord::Usage(usage) => fold_usage(state, usage),
        SessionRecord::ToolStarted(started) => {
            if started.effect != Effect::Read && !started.changes_nothing {
                mark_not_quiet(state);
            }
            if let Some(call) = call_mut(state, started.call) {
                call.started = Some(started);
            }
        }
        SessionRecord::ToolTask(ToolTask { call, task }) => {
            if let Some(started) = call_mut(state, call).and_then(|call| call.started.as_mut()) {
                started.remote_task = Some(task);
            }
        }
        SessionRecord::ToolFinished(finished) => fold_result(state, finished),
        SessionRecord::TurnEnded(ended) => {
            if ended.is_quiet() && state.turn.as_ref().is_some_and(|turn| turn.may_be_quiet) {
                state.quiet_turns.push(ended.turn);
            }
            fold_turn_end(state, Some(ended.outcome), ended.inbox_through);
        }
        SessionRecord::TaskStarted(task) => {
            mark_not_quiet(state);
            state.tasks.record_start(task);
        }
        SessionRecord::TaskEnded(ended) => {
            if let Some(output) = &ended.output {
                state.full_outputs.insert(ended.task_id.call(), output.clone());
            }
            state.tasks.record_end(ended);
        }
        SessionRecord::Notification(notification) => {
            mark_not_quiet(state);
            state.tasks.record_notification(notification.task_id);
            push_announcement(state, Item::Text { role: Role::User, text: notification.text });
        }
        SessionRecord::Note(note) => record_note(state, note),
        SessionRecord::Question(question) => {
            mark_not_quiet(state);
            fold_refusal(state, &question);
            state.questions.push(question);
            update_question_wait(state, record.at);
        }
        SessionRecord::Answered(answered) => {
            fold_answered(state, answered);
            update_question_wait(state, record.at);
        }
        SessionRecord::Imported(imported) => fold_import(state, imported),
        SessionRecord::ModeChanged(changed) => fold_mode(state, changed),
        SessionRecord::ModelChanged(changed) => {
            if changed.chosen {
                state.chosen_model = Some(changed.to.clone());
            }
            state.model = Some(changed.to);
        }
        SessionRecord::Warning(warning) => {
            if let Some(news) = warning.task {
                state.tasks.record_stall(news, warning.text);
            }
            if GIVEN_ONCE.contains(&warning.code.as_str()) {
                state.given_warnings.insert(warning.code);
            }
        }
        SessionRecord::CompactStart(start) => fold_compact_start(state, start.reason),
        SessionRecord::SystemMessage(message) => fold_preface(state, record.seq, message),
        SessionRecord::CompactDone(done) => fold_compact_done(state, &done),
        SessionRecord::CompactFailed(failed) => fold_compact_failed(state, &failed),
        SessionRecord::Stubbed(stubbed) => fold_stubbed(state, &stubbed),
        SessionRecord::Unknown { .. } => {}
    }
}

/// Begins a turn with the waiting inputs. Inputs that were cancelled before it began form a turn of their own, which
/// ends as cancelled. The others wait for the turn after it.
fn fold_turn(state: &mut State, started: &TurnStarted, started_at: Option<At>) {
    let number = started.turn;
    state.turn_count = number;
    let cause = started.cause.unwrap_or_else(|| state.next_turn_cause());
    let max_cost_nano = state.next_turn_max_cost_nano();
    let cancelled = state.pending_inputs.iter().any(|input| input.cancelled);
    // A turn that begins only to end as cancelled is not the requested one.
    let tries_again = !cancelled && state.turn_request.is_some();
    if !cancelled {
        start_requested_turn(state);
    }
    let heartbeats = state.pending_inputs.iter().filter(|input| input.sender.is_heartbeat()).count();
    let may_be_quiet = !tries_again && heartbeats > 0 && heartbeats == state.pending_inputs.len();
    let answers = if tries_again { state.request_turn } else { number };
    state.request_turn = answers;
    for input in &mut state.pending_inputs {
        input.mode = if input.cancelled == cancelled { JoinMode::Join } else { JoinMode::After };
    }
    let turn =
        Turn { number, request_turn: answers, cancelled, started_at, cause, may_be_quiet, ..Turn::default() };
    state.turn = Some(Turn { max_cost_nano, ..turn });
}

/// Begins a turn without an input of its own. The model needs something to answer.
fn start_requested_turn(state: &mut State) {
    let again = state.turn_request.take();
    let place = Place::new(state.head, state.turn_count, 1);
    let mut goes_on = again.is_some() && state.items.last().is_some_and(|item| is_by_model(item));
    if let (Some(TurnRequest::Continue), Some(text)) = (again, state.interrupted_answer.take()) {
        if !ends_with_answer(state, &text) {
            push_item(state, place, Arc::new(Item::Text { role: Role::Assistant, text }));
        }
        goes_on = true;
    }
    if goes_on {
        push_item(state, place, Arc::new(Item::Note { text: GO_ON.to_owned() }));
    }
}

/// M10: after a crash, or between two tries, the open turn continues the text of the interrupted answer, if the user
/// wants that.
fn continue_interrupted_answer(state: &mut State) {
    let Some(turn) = &mut state.turn else { return };
    if turn.attempt.is_some() || !std::mem::take(&mut turn.continue_requested) || turn.answered {
        return;
    }
    let Some(text) = turn.interrupted_answer.take() else { return };
    let place = Place::new(state.head, turn.number, turn.steps);
    push_item(state, place, Arc::new(Item::Text { role: Role::Assistant, text }));
    push_item(state, place, Arc::new(Item::Note { text: GO_ON.to_owned() }));
}

/// Whether the context ends with this answer, ignoring the results of its calls and notes.
fn ends_with_answer(state: &State, text: &str) -> bool {
    let spoken = |item: &Arc<Item>| match &**item {
        Item::Text { role: Role::Assistant, text } => Some(Some(text.clone())),
        Item::Text { .. } | Item::Image(_) => Some(None),
        Item::Reasoning { .. } | Item::ToolCall { .. } | Item::ToolResult { .. } | Item::Note { .. } => None,
    };
    let last = state.items[state.preface_len..].iter().rev().find_map(spoken).flatten();
    last.is_some_and(|last| text.ends_with(&last))
}

fn fold_turn_end(state: &mut State, outcome: Option<Outcome>, inbox_through: Option<Seq>) {
    settle_calls(state);
    if outcome == Some(Outcome::Cancelled) {
        let step = state.turn.as_ref().map_or(0, |turn| turn.steps);
        let place = Place::new(state.head, state.turn_count, step);
        // T11: also the part of an answer that failed before the user interrupted the wait for the next try.
        let unsent = state.turn.as_ref().and_then(|turn| turn.interrupted_answer.clone());
        if let Some(text) = unsent.filter(|text| !ends_with_answer(state, text)) {
            push_item(state, place, Arc::new(Item::Text { role: Role::Assistant, text }));
        }
        push_item(state, place, Arc::new(Item::Note { text: CANCELLED.to_owned() }));
    }
    settle_added_context(state);
    // A new turn gets new attempts. Otherwise a session could never recover from a turn without an answer.
    state.compaction.count_since_answer = 0;
    (state.compaction.failed_since_answer, state.compaction.cannot_fit) = (false, false);
    // A refusal in a failed turn may have had another reason.
    if outcome == Some(Outcome::Failed) {
        state.token_counts.values_mut().for_each(|counting| counting.refused_at = None);
    }
    let interrupted = state.turn.take().and_then(|turn| turn.interrupted_answer);
    // A requested continuation keeps its text until it begins.
    if state.turn_request != Some(TurnRequest::Continue) {
        state.interrupted_answer = interrupted;
    }
    state.last_outcome = outcome;
    // The record says that no input waits. If one seems to wait, the record that added it to the context is gone.
    if let Some(through) = inbox_through {
        state.inbox_through = state.inbox_through.max(through);
        state.pending_inputs.clear();
    }
}

fn fold_input(state: &mut State, input: InputTaken) {
    state.inbox_through = input.inbox_through;
    let InputTaken { id, text, images, mode, client, sender, .. } = input;
    if mode == JoinMode::Interrupt
        && state.may_interrupt(&sender)
        && let Some(turn) = &mut state.turn
    {
        turn.cancelled = true;
    }
    let (cancelled, taken) = (false, state.head);
    state.pending_inputs.push(PendingInput { id, mode, text, images, cancelled, taken, client, sender });
}

fn fold_order(state: &mut State, taken: &OrderTaken) {
    state.inbox_through = taken.inbox_through;
    let has_news = has_news_to_compact(state);
    // A pending input starts a turn anyway, and a retry order meant that turn.
    let is_quiet = state.pending_inputs.iter().all(|input| input.cancelled);
    let stopped_short = state.stopped_short();
    match (&taken.order.kind, &mut state.turn) {
        (OrderKind::Cancel, Some(turn)) => turn.cancelled = true,
        // Their turn has not begun. It will begin, and end as cancelled.
        (OrderKind::Cancel, None) => {
            state.turn_request = None;
            state.pending_inputs.iter_mut().for_each(|input| input.cancelled = true);
        }
        (OrderKind::Retry, Some(turn)) => turn.retry_now_count = turn.retry_now_count.saturating_add(1),
        (OrderKind::Retry, None) if stopped_short && is_quiet => {
            state.turn_request = Some(TurnRequest::Retry);
        }
        (OrderKind::Continue, Some(turn)) => {
            turn.continue_requested = true;
            continue_interrupted_answer(state);
        }
        (OrderKind::Continue, None) if state.interrupted_answer.is_some() => {
            state.turn_request = Some(TurnRequest::Continue);
        }
        (OrderKind::Kill { task }, _) => state.tasks.request_kill(*task),
        (OrderKind::Withdraw { input }, _) => {
            state.pending_inputs.retain(|pending| pending.id != *input || !pending.can_be_withdrawn());
        }
        (OrderKind::AddContext { text }, _) => add_context(state, text.clone()),
        (OrderKind::Compact { focus }, _) if has_news => {
            state.compaction.requested = Some(CompactionRequest { focus: focus.clone() });
        }
        _ => {}
    }
}

/// P8: adds what a program printed for the user. It is data, not the user's words, so nothing says that the user said it. Within a turn it
/// must not come between a call and its result, so it waits.
fn add_context(state: &mut State, text: String) {
    state.added_context.push(AddedContext { taken: state.head, text });
    if state.turn.is_none() {
        settle_added_context(state);
    }
}

/// Moves the texts that were added during a turn to the end of the context.
fn settle_added_context(state: &mut State) {
    for AddedContext { text, .. } in std::mem::take(&mut state.added_context) {
        mark_not_quiet(state);
        push_announcement(state, Item::Text { role: Role::User, text });
    }
}

/// Tracks how long questions wait for the user. That time does not count as time of the turn.
fn update_question_wait(state: &mut State, now: At) {
    let Some(turn) = &mut state.turn else { return };
    match (state.questions.is_empty(), turn.question_since) {
        (false, None) => turn.question_since = Some(now),
        (true, Some(since)) => {
            let awaited = u64::try_from(now.0.saturating_sub(since.0)).unwrap_or(0);
            turn.question_wait_ms = turn.question_wait_ms.saturating_add(awaited);
            turn.question_since = None;
        }
        (false, Some(_)) | (true, None) => {}
    }
}

/// Begins a step. Joining inputs enter with it: after the results of the previous step, at the end of the context.
fn fold_step(state: &mut State, started: &StepStarted) {
    let step = started.step;
    settle_added_context(state);
    for input in state.pending_inputs.iter_mut().filter(|input| started.later.contains(&input.id)) {
        input.mode = JoinMode::After;
    }
    let (seen, later) =
        std::mem::take(&mut state.pending_inputs).into_iter().partition(|input| input.mode == JoinMode::Join);
    state.pending_inputs = later;
    let seen: Vec<PendingInput> = seen;
    // After a user message, the answer continues in a new paragraph.
    if let Some(turn) =
        state.turn.as_mut().filter(|turn| !seen.is_empty() && !turn.text_before_cut.is_empty())
    {
        turn.text_before_cut.push_str("\n\n");
    }
    // A person who joins a run makes it theirs.
    if let Some(turn) = state.turn.as_mut().filter(|turn| turn.cause == Cause::Schedule)
        && seen.iter().any(|input| input.sender.is_person())
    {
        turn.cause = Cause::Turn;
    }
    if seen.iter().any(|input| !input.sender.is_heartbeat()) {
        mark_not_quiet(state);
    }
    for input in seen {
        let entered = Place::new(state.head, state.turn_count, step);
        if let Some(client) = input.client {
            fold_client(state, *client, entered);
        }
        if let Some(text) = sender_note(&input.sender) {
            push_item(state, Place { said: Some(input.taken), ..entered }, Arc::new(Item::Note { text }));
        }
        let place = Place { said: Some(input.taken), by_agent: !input.sender.is_persons_word(), ..entered };
        push_item(state, place, Arc::new(Item::Text { role: Role::User, text: input.text }));
        for image in input.images {
            push_item(state, place, Arc::new(Item::Image(image)));
        }
    }
    if let Some(turn) = &mut state.turn {
        turn.steps = step;
        turn.answered = false;
        turn.attempt = None;
        turn.text.clear();
        turn.continues_next_step = false;
        turn.calls.clear();
        turn.had_calls = false;
        turn.results_in_context = false;
    }
}

/// The open turn did more than look around for a heartbeat, so it stays in the context.
fn mark_not_quiet(state: &mut State) {
    if let Some(turn) = &mut state.turn {
        turn.may_be_quiet = false;
    }
}

fn open_attempt(state: &mut State, id: AttemptId) -> Option<&mut Attempt> {
    state.turn.as_mut()?.attempt.as_mut().filter(|attempt| attempt.id == id)
}

fn call_mut(state: &mut State, id: CallId) -> Option<&mut CallState> {
    state.turn.as_mut()?.calls.iter_mut().find(|call| call.id == id)
}

/// Ends an attempt, which decides which of its blocks are kept. A failed attempt that keeps none leaves the step
/// without an answer.
fn fold_answer(state: &mut State, ended: &AttemptEnded) {
    let Some(turn) = &mut state.turn else { return };
    let Some(mut attempt) = turn.attempt.take_if(|attempt| attempt.id == ended.attempt) else { return };
    let kept = usize::try_from(ended.kept).unwrap_or(usize::MAX);
    if let Some(tokens) = ended.too_long {
        turn.overflow_count = turn.overflow_count.saturating_add(1);
        turn.refusal.clone_from(&ended.error);
        let model = state.model.clone().unwrap_or_default();
        state.token_counts.entry(model).or_default().refused_at = Some(tokens);
    }
    if (kept == 0 || attempt.blocks.is_empty()) && ended.error.is_some() {
        // A complete answer was not interrupted. A later try without a result does not discard the text of an earlier
        // one.
        let text = attempt.text();
        if ended.stop.is_none() && !text.trim().is_empty() {
            turn.interrupted_answer = Some(text);
        }
        continue_interrupted_answer(state);
        return;
    }
    attempt.blocks.truncate(kept);
    turn.answered = true;
    turn.continue_requested = false;
    (turn.overflow_count, turn.refusal) = (0, None);
    let answer = text_of(&attempt.blocks);
    turn.interrupted_answer = Some(answer).filter(|answer| turn.cancelled && !answer.trim().is_empty());
    turn.text = std::mem::take(&mut turn.text_before_cut) + &text_of(&attempt.blocks);
    turn.calls = attempt.blocks.iter().filter_map(|block| call_of(block)).collect();
    turn.continues_next_step = ended.goes_on;
    if ended.goes_on {
        turn.text_before_cut.clone_from(&turn.text);
        turn.length_cuts = turn.length_cuts.saturating_add(1);
    }
    let place = Place::new(state.head, turn.number, turn.steps);
    state.answer_count = state.answer_count.saturating_add(u64::from(!attempt.blocks.is_empty()));
    for block in attempt.blocks {
        push_item(state, place, block);
    }
    let compaction = &mut state.compaction;
    compaction.answers_since_last += 1;
    (compaction.count_since_answer, compaction.failed_since_answer, compaction.cannot_fit) =
        (0, false, false);
}

fn fold_result(state: &mut State, finished: ToolFinished) {
    if let Some(seen) = finished.seen {
        Arc::make_mut(&mut state.known_files).insert(seen.path, seen.hash);
    }
    if let Some(todo) = finished.todo {
        state.todo = todo;
    }
    if let Some(SkillShown { name, folder, hash, file: None }) = finished.skill {
        state.active_skills.retain(|active| active.name != name);
        state.active_skills.push(ActiveSkill { name, folder, hash, call: finished.call });
        mark_not_quiet(state);
    }
    if let Some(whole) = finished.whole {
        state.full_outputs.insert(finished.call, whole);
    }
    if let Some(news) = finished.news {
        state.tasks.record_news(finished.call, news);
    }
    if state.turn.as_mut().is_some_and(|turn| std::mem::take(&mut turn.erased_task)) {
        let erased = || "[erased]".to_owned();
        let task_id = finished.report.task_id.unwrap_or(finished.call.into());
        let (target, started_at) = ("local".to_owned(), None);
        state.tasks.record_start(TaskStarted {
            task_id,
            command: erased(),
            description: erased(),
            target,
            started_at,
            session: None,
        });
    }
    let head = state.head;
    let Some(call) = call_mut(state, finished.call).filter(|call| call.result.is_none()) else { return };
    let called = (call.name.clone(), call.arguments.clone());
    let started = call.started.as_ref().filter(|_| !finished.is_error);
    let write = started.and_then(|started| started.write.as_ref()).map(|write| write.path.clone());
    let writes = started.map(|started| started.writes.clone()).unwrap_or_default();
    call.finished_seq = head;
    call.result = Some(Arc::new(Item::ToolResult {
        call: finished.call,
        content: finished.content.clone(),
        images: finished.images,
        is_error: finished.is_error,
    }));
    if let Some(path) = write {
        record_changed_file(state, path);
    }
    for change in writes {
        // The model knows the content: it made it.
        let known_files = Arc::make_mut(&mut state.known_files);
        match change.after {
            Some(hash) => known_files.insert(change.path.clone(), hash),
            None => known_files.remove(&change.path),
        };
        record_changed_file(state, change.path);
    }
    if let Some(turn) = &mut state.turn {
        turn.repeats.push(&called.0, &called.1, &finished.content);
        if turn.calls.iter().all(|call| call.result.is_some()) {
            settle_calls(state);
        }
    }
}

/// Adds the results of the newest answer to the context, in the order of its calls. Does so only once.
fn settle_calls(state: &mut State) {
    let Some(turn) = state.turn.as_mut().filter(|turn| !turn.results_in_context) else { return };
    turn.results_in_context = true;
    let place = |seq| Place::new(seq, turn.number, turn.steps);
    let results = turn.calls.iter().filter_map(|call| Some((place(call.finished_seq), call.result.clone()?)));
    for (place, result) in results.collect::<Vec<_>>() {
        push_item(state, place, result);
    }
}

fn record_changed_file(state: &mut State, path: String) {
    state.changed_files.retain(|known| *known != path);
    if state.changed_files.len() == MAX_CHANGED_FILES {
        state.changed_files.remove(0);
    }
    state.changed_files.push(path);
}

fn push_item(state: &mut State, place: Place, item: Arc<Item>) {
    state.items.push(item);
    state.places.push(place);
}

fn record_note(state: &mut State, note: Note) {
    state.tasks.record_note(&note);
    if note.environment.is_some() {
        state.told_environment = note.environment;
    }
    state.permission.announced = note.mode.or(state.permission.announced);
    push_announcement(state, Item::Note { text: note.text });
}

/// Adds an announcement to the model. It belongs to the next step.
fn push_announcement(state: &mut State, item: Item) {
    let step = state.turn.as_ref().map_or(0, |turn| match turn.answered {
        true => turn.steps.saturating_add(1),
        false => turn.steps.max(1),
    });
    push_item(state, Place::new(state.head, state.turn_count, step), Arc::new(item));
}

fn is_by_model(item: &Item) -> bool {
    matches!(item, Item::Text { role: Role::Assistant, .. } | Item::Reasoning { .. } | Item::ToolCall { .. })
}

fn call_of(block: &Item) -> Option<CallState> {
    match block {
        Item::ToolCall { call, name, arguments, .. } => Some(CallState {
            id: *call,
            name: name.clone(),
            arguments: arguments.clone(),
            approval: None,
            started: None,
            refused: None,
            elicited: None,
            result: None,
            finished_seq: 0,
        }),
        _ => None,
    }
}

#[cfg(test)]
#[path = "apply_tests.rs"]
mod tests;
