//! `apply(state, record)`: what a record changes. No clock, no disk, no network.

use std::sync::Arc;

use longhaul_protocol::{
    Answered, At, AttemptEnded, AttemptId, CallId, DecodeError, Effect, EpochStarted, InputTaken, Item,
    JoinMode, OrderKind, OrderTaken, Outcome, Record, Role, Seq, SessionRecord, TaskStarted, ToolFinished,
    ToolStarted, TurnStarted, Usage,
};

use crate::state::{Again, Attempt, CallState, Created, Cut, Epoch, Reported, State, Turn, Waiting, text_of};
use crate::tasks::SessionTasks;

/// What the model reads at the end of a turn that somebody did not want any more.
const CANCELLED: &str =
    "The turn was cancelled: what was asked for in it is not wanted any more, unless it is asked for again.";

/// What the model reads when it is to go on from an answer that was interrupted.
const GO_ON: &str =
    "Your answer was interrupted here. Go on from exactly this point, without repeating anything.";
/// Warnings that are given once.
pub(crate) const GIVEN_ONCE: [&str; 3] = ["no_tools", "window_assumed", "cost_unknown"];

impl State {
    /// What the session is after this record.
    pub fn apply(&mut self, record: &Record) -> Result<(), DecodeError> {
        match SessionRecord::decode(record) {
            Ok(fact) => self.fold(record, fact),
            Err(DecodeError::Gone { reason, .. }) => self.fold_gone(record, &reason),
            Err(error) => return Err(error),
        }
        self.head = record.seq;
        Ok(())
    }

    fn fold(&mut self, record: &Record, fact: SessionRecord) {
        match fact {
            SessionRecord::SessionCreated(created) => {
                self.created = Some(Created { at: record.at, work_dir: created.work_dir });
            }
            SessionRecord::EpochStarted(epoch) => self.fold_epoch(record, epoch),
            SessionRecord::InputTaken(input) => self.fold_input(input),
            SessionRecord::OrderTaken(order) => self.fold_order(&order),
            SessionRecord::TurnStarted(TurnStarted { turn }) => self.fold_turn(turn, Some(record.at)),
            SessionRecord::StepStarted(step) => self.fold_step(step.step),
            SessionRecord::AttemptStarted(started) => {
                if let Some(turn) = &mut self.turn {
                    let (id, blocks, unfinished) = (started.attempt, vec![], String::new());
                    turn.attempt = Some(Attempt { id, blocks, unfinished });
                }
                self.model = Some(started.model);
            }
            SessionRecord::Block(block) => {
                if let Some(attempt) = self.attempt(block.attempt) {
                    attempt.blocks.push(Arc::new(block.item));
                    attempt.unfinished.clear();
                }
            }
            SessionRecord::Checkpoint(checkpoint) => {
                if let Some(attempt) = self.attempt(checkpoint.attempt) {
                    attempt.unfinished.push_str(&checkpoint.text);
                }
            }
            SessionRecord::AttemptEnded(ended) => self.fold_answer(&ended),
            SessionRecord::Usage(usage) => self.fold_usage(usage),
            SessionRecord::ToolStarted(started) => {
                if let Some(call) = self.call_mut(started.call) {
                    call.started = Some(started);
                }
            }
            SessionRecord::ToolFinished(finished) => self.fold_result(finished),
            SessionRecord::TurnEnded(ended) => self.fold_turn_end(Some(ended.outcome), ended.inbox_through),
            SessionRecord::TaskStarted(task) => self.tasks.start(task),
            SessionRecord::TaskEnded(ended) => {
                if let Some(output) = &ended.output {
                    self.outputs.insert(ended.task_id.call(), output.clone());
                }
                self.tasks.end(ended);
            }
            SessionRecord::Notification(notification) => {
                self.tasks.notified(notification.task_id);
                self.items.push(Arc::new(Item::Text { role: Role::User, text: notification.text }));
            }
            SessionRecord::Note(note) => {
                self.tasks.noted(&note);
                self.items.push(Arc::new(Item::Note { text: note.text }));
            }
            SessionRecord::Question(question) => {
                self.questions.push(question);
                self.await_person(record.at);
            }
            SessionRecord::Answered(answered) => {
                self.fold_answered(answered);
                self.await_person(record.at);
            }
            SessionRecord::ModelChanged(changed) => self.model = Some(changed.to),
            SessionRecord::Warning(warning) => {
                if let Some(news) = warning.task {
                    self.tasks.waits(news, warning.text);
                }
                if GIVEN_ONCE.contains(&warning.code.as_str()) {
                    self.warned.insert(warning.code);
                }
            }
            // They show what happened and change nothing of what is.
            SessionRecord::CompactStart(_)
            | SessionRecord::SystemMessage(_)
            | SessionRecord::CompactDone(_)
            | SessionRecord::CompactFailed(_)
            | SessionRecord::Stubbed(_)
            | SessionRecord::Unknown { .. } => {}
        }
    }

    fn fold_epoch(&mut self, record: &Record, epoch: EpochStarted) {
        if epoch.folds_from.is_none() {
            // Whoever loads the session from here has none of it either.
            self.items.clear();
            self.reported = None;
            self.seen = Arc::default();
            self.outputs.clear();
            self.tasks = SessionTasks::carried(epoch.tasks, epoch.ended);
            self.questions = epoch.questions;
        }
        self.epoch = Some(Epoch {
            number: epoch.epoch,
            folds_from: epoch.folds_from.unwrap_or(record.seq),
            system: epoch.system,
            tools: epoch.tools,
        });
        self.turns = epoch.turns;
        self.inbox_through = self.inbox_through.max(epoch.inbox_through);
        self.pins = epoch.pins;
        self.todo = epoch.todo;
    }

    /// A new turn is what inputs waited for. Those that were cancelled before it began make a turn of their own, which ends as
    /// cancelled; the others wait for the one after it.
    fn fold_turn(&mut self, number: u64, started_at: Option<At>) {
        self.turns = number;
        let cancelled = self.waiting.iter().any(|input| input.cancelled);
        // A turn that begins only to end as cancelled is not the one that was asked for.
        if !cancelled {
            self.go_on();
        }
        for input in &mut self.waiting {
            input.mode = if input.cancelled == cancelled { JoinMode::Join } else { JoinMode::After };
        }
        self.turn = Some(Turn { number, cancelled, started_at, ..Turn::default() });
    }

    /// What a turn without an input of its own begins with. The model must have something to answer.
    fn go_on(&mut self) {
        let again = self.again.take();
        if let (Some(Again::Continue), Some(text)) = (again, self.interrupted.take()) {
            self.items.push(Arc::new(Item::Text { role: Role::Assistant, text }));
        }
        if again.is_some() && self.items.last().is_some_and(|item| is_by_model(item)) {
            self.items.push(Arc::new(Item::Note { text: GO_ON.to_owned() }));
        }
    }

    fn fold_turn_end(&mut self, outcome: Option<Outcome>, inbox_through: Option<Seq>) {
        self.settle_calls();
        let interrupted = self.turn.take().and_then(|turn| turn.interrupted);
        // What somebody wants to go on with is there until they have.
        if self.again != Some(Again::Continue) {
            self.interrupted = interrupted;
        }
        self.last_outcome = outcome;
        if outcome == Some(Outcome::Cancelled) {
            self.items.push(Arc::new(Item::Note { text: CANCELLED.to_owned() }));
        }
        // It says that nothing waits. If something seems to, the record that took it into the context is gone.
        if let Some(through) = inbox_through {
            self.inbox_through = self.inbox_through.max(through);
            self.waiting.clear();
        }
    }

    fn fold_input(&mut self, input: InputTaken) {
        self.inbox_through = input.inbox_through;
        let InputTaken { id, text, images, mode, .. } = input;
        if let (JoinMode::Interrupt, Some(turn)) = (mode, &mut self.turn) {
            turn.cancelled = true;
        }
        self.waiting.push(Waiting { id, mode, text, images, cancelled: false });
    }

    fn fold_order(&mut self, taken: &OrderTaken) {
        self.inbox_through = taken.inbox_through;
        let stopped_short = matches!(self.last_outcome, Some(Outcome::Failed | Outcome::Limit));
        match (&taken.order.kind, &mut self.turn) {
            (OrderKind::Cancel, Some(turn)) => turn.cancelled = true,
            // Their turn has not begun; it will begin, and end as cancelled.
            (OrderKind::Cancel, None) => {
                self.again = None;
                self.waiting.iter_mut().for_each(|input| input.cancelled = true);
            }
            (OrderKind::Retry, Some(turn)) => turn.hurried += 1,
            (OrderKind::Retry, None) if stopped_short => self.again = Some(Again::Retry),
            (OrderKind::Continue, None) if self.interrupted.is_some() => self.again = Some(Again::Continue),
            (OrderKind::Kill { task }, _) => self.tasks.is_to_end(*task),
            _ => {}
        }
    }

    /// A person is awaited from now on, or not any more: that is no time of the turn.
    fn await_person(&mut self, now: At) {
        let Some(turn) = &mut self.turn else { return };
        match (self.questions.is_empty(), turn.awaits_since) {
            (false, None) => turn.awaits_since = Some(now),
            (true, Some(since)) => {
                turn.awaited_ms += u64::try_from(now.0 - since.0).unwrap_or(0);
                turn.awaits_since = None;
            }
            (false, Some(_)) | (true, None) => {}
        }
    }

    fn fold_answered(&mut self, answered: Answered) {
        let settled = self.questions.extract_if(.., |question| question.id == answered.id).next();
        let call = settled.and_then(|question| question.call);
        if let Some(call) = call.and_then(|call| self.call_mut(call)) {
            call.answer = Some(answered.answer);
        }
    }

    /// What joins is seen from this step on: after the results of the step before, at the end of the context.
    fn fold_step(&mut self, step: u64) {
        let (seen, later) =
            std::mem::take(&mut self.waiting).into_iter().partition(|input| input.mode == JoinMode::Join);
        self.waiting = later;
        let seen: Vec<Waiting> = seen;
        // What is said after somebody has spoken is not said in one breath.
        if let Some(turn) = self.turn.as_mut().filter(|turn| !seen.is_empty() && !turn.carried.is_empty()) {
            turn.carried.push_str("\n\n");
        }
        for input in seen {
            self.items.push(Arc::new(Item::Text { role: Role::User, text: input.text }));
            self.items.extend(input.images.into_iter().map(|image| Arc::new(Item::Image(image))));
        }
        if let Some(turn) = &mut self.turn {
            turn.steps = step;
            turn.answered = false;
            turn.attempt = None;
            turn.text.clear();
            turn.goes_on = false;
            turn.calls.clear();
            turn.settled = false;
        }
    }

    fn attempt(&mut self, id: AttemptId) -> Option<&mut Attempt> {
        self.turn.as_mut()?.attempt.as_mut().filter(|attempt| attempt.id == id)
    }

    fn call_mut(&mut self, id: CallId) -> Option<&mut CallState> {
        self.turn.as_mut()?.calls.iter_mut().find(|call| call.id == id)
    }

    /// Only now do blocks count. An attempt that failed and kept nothing leaves the step without its answer.
    fn fold_answer(&mut self, ended: &AttemptEnded) {
        let Some(turn) = &mut self.turn else { return };
        let Some(mut attempt) = turn.attempt.take_if(|attempt| attempt.id == ended.attempt) else { return };
        let kept = usize::try_from(ended.kept).unwrap_or(usize::MAX);
        if (kept == 0 || attempt.blocks.is_empty()) && ended.error.is_some() {
            // An answer that came to its end was not interrupted; and a later try that came to nothing takes nothing away.
            let text = attempt.text();
            if ended.stop.is_none() && !text.trim().is_empty() {
                turn.interrupted = Some(text);
            }
            return;
        }
        attempt.blocks.truncate(kept);
        turn.answered = true;
        turn.interrupted = None;
        turn.text = std::mem::take(&mut turn.carried) + &text_of(&attempt.blocks);
        turn.calls = attempt.blocks.iter().filter_map(|block| call_of(block)).collect();
        turn.goes_on = ended.goes_on;
        if ended.goes_on {
            turn.carried.clone_from(&turn.text);
            turn.cuts += 1;
        }
        self.items.extend(attempt.blocks);
    }

    /// What a call cost, and what its count says about the estimates.
    fn fold_usage(&mut self, usage: Usage) {
        let counting = self.counting.entry(self.model.clone().unwrap_or_default()).or_default();
        if let (Some(estimated), Some(counted)) = (usage.estimated, usage.input) {
            if counting.calibration.shows_a_cut(estimated, counted) {
                counting.cuts = Some(Cut { at: counted, window: usage.window });
            }
            counting.calibration.learn(estimated, counted);
        }
        let answered = self.turn.as_ref().is_some_and(|turn| turn.answered);
        if let Some(input) = usage.input {
            let output = if answered { usage.output.unwrap_or(0) } else { 0 };
            let model = self.model.clone().unwrap_or_default();
            self.reported =
                Some(Reported { model, tokens: input.saturating_add(output), items: self.items.len() });
        }
        if let Some(turn) = &mut self.turn {
            let used = usage.input.unwrap_or(0).saturating_add(usage.output.unwrap_or(0));
            turn.tokens = turn.tokens.saturating_add(used);
            turn.cost_nano = turn.cost_nano.saturating_add(usage.cost.map_or(0, nano));
        }
        if !usage.limits.is_empty() {
            self.rate_limits = usage.limits;
        }
    }

    fn fold_result(&mut self, finished: ToolFinished) {
        if let Some(seen) = finished.seen {
            Arc::make_mut(&mut self.seen).insert(seen.path, seen.hash);
        }
        if let Some(todo) = finished.todo {
            self.todo = todo;
        }
        if let Some(whole) = finished.whole {
            self.outputs.insert(finished.call, whole);
        }
        if let Some(news) = finished.news {
            self.tasks.know(news);
        }
        if self.turn.as_mut().is_some_and(|turn| std::mem::take(&mut turn.erased_task)) {
            let erased = || "[erased]".to_owned();
            let (task_id, target, started_at) = (finished.call.into(), "local".to_owned(), None);
            self.tasks.start(TaskStarted {
                task_id,
                command: erased(),
                description: erased(),
                target,
                started_at,
            });
        }
        let Some(call) = self.call_mut(finished.call).filter(|call| call.result.is_none()) else { return };
        let called = (call.name.clone(), call.arguments.clone());
        call.result = Some(Arc::new(Item::ToolResult {
            call: finished.call,
            content: finished.content.clone(),
            images: finished.images,
            is_error: finished.is_error,
        }));
        if let Some(turn) = &mut self.turn {
            turn.repeats.push(&called.0, &called.1, &finished.content);
            if turn.calls.iter().all(|call| call.result.is_some()) {
                self.settle_calls();
            }
        }
    }

    /// Puts the results of the newest answer into the context, in the order of its calls. Each call gets there once.
    fn settle_calls(&mut self) {
        let Some(turn) = self.turn.as_mut().filter(|turn| !turn.settled) else { return };
        turn.settled = true;
        self.items.extend(turn.calls.iter().filter_map(|call| call.result.clone()));
    }

    /// A body that was erased, or a record that was lost to damage. What it said is unknown; what it did must not be done
    /// again.
    fn fold_gone(&mut self, record: &Record, reason: &str) {
        let erased = format!("[erased: {reason}]");
        let attempt = self.turn.as_ref().and_then(|turn| turn.attempt.as_ref()).map(|attempt| attempt.id);
        match (record.kind.as_str(), attempt) {
            ("turn_ended", _) => self.fold_turn_end(None, None),
            ("turn_started", _) => self.fold_turn(self.turns + 1, None),
            ("block", Some(attempt)) => {
                let text = Arc::new(Item::Text { role: Role::Assistant, text: erased });
                self.attempt(attempt).into_iter().for_each(|open| open.blocks.push(text.clone()));
            }
            // Everything that was complete counts: calls of it may have run.
            ("attempt_ended", Some(attempt)) => {
                let (kept, stop, error) = (u32::MAX, None, Some(erased));
                self.fold_answer(&AttemptEnded { attempt, kept, stop, error, goes_on: false, too_long: None });
            }
            ("tool_started", _) => self.fold_gone_start(),
            ("task_started", _) => {
                if let Some(turn) = &mut self.turn {
                    turn.erased_task = true;
                }
            }
            ("task_ended", _) => self.tasks.one_has_ended(&erased),
            ("answered", _) => {
                // Which one is unknown too. Calls whose question is gone ask again.
                self.questions.clear();
                self.await_person(record.at);
            }
            ("notification", _) => {
                self.tasks.notified_of_one();
                self.items.push(Arc::new(Item::Text { role: Role::User, text: erased }));
            }
            // Which call it was is unknown too; but only one that had started can have finished.
            ("tool_finished", _) => {
                let calls = self.turn.iter().flat_map(|turn| &turn.calls).filter(|call| call.is_open());
                let results = calls.map(|call| ToolFinished::new(call.id, &call.name, erased.clone()));
                for result in results.collect::<Vec<_>>() {
                    self.fold_result(result);
                }
            }
            ("step_started" | "attempt_started" | "lost", _) => {
                if let Some(turn) = &mut self.turn {
                    turn.broken =
                        Some(format!("a record of this turn is gone ({reason}); say what should be done"));
                }
            }
            _ => {}
        }
    }

    /// The next call that had not started may have: nobody can tell what it did.
    fn fold_gone_start(&mut self) {
        let Some(turn) = &mut self.turn else { return };
        let next = turn.calls.iter_mut().find(|call| call.started.is_none() && call.result.is_none());
        if let Some(call) = next {
            let (name, arguments) = (call.name.clone(), call.arguments.clone());
            let effect = Effect::Unknown;
            call.started =
                Some(ToolStarted { call: call.id, name, arguments, effect, write: None, kept_in: None });
        }
    }
}

/// Dollars in billionths, so that sums of them are exact and states can be compared.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cost is small, and below 0 it is 0"
)]
pub(crate) fn nano(dollars: f64) -> u64 {
    (dollars * 1e9) as u64
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
            answer: None,
            started: None,
            result: None,
        }),
        _ => None,
    }
}

#[cfg(test)]
#[path = "apply_tests.rs"]
mod tests;
