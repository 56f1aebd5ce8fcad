//! `apply(state, record)`: what a record changes. No clock, no disk, no network.

mod epoch;
mod erased;
mod import;

use std::sync::Arc;

use longhaul_protocol::{
    Answered, At, AttemptEnded, AttemptId, CallId, DecodeError, InputTaken, Item, JoinMode, OrderKind,
    OrderTaken, Outcome, Place, Record, Role, Seq, SessionRecord, StepStarted, TaskStarted, ToolFinished,
    TurnStarted, Usage,
};

pub(crate) use self::import::IMPORTED_NOTICE;
use crate::compaction::plan::Asked;
use crate::session::state::{
    Again, Attempt, CallAnswer, CallState, Created, Cut, Reported, State, Turn, Waiting, text_of,
};

/// What the model reads where the user interrupted a turn.
const CANCELLED: &str = "The user interrupted here. The next message says how to go on.";

/// What the model reads when it is to go on from an answer that was interrupted.
const GO_ON: &str =
    "Your answer was interrupted here. Go on from exactly this point, without repeating anything.";
/// Warnings that are given once.
pub(crate) const GIVEN_ONCE: [&str; 7] =
    ["no_tools", "window_assumed", "cost_unknown", "summary_model", ROLE_ORDER, RULES_SKIPPED, HOME_EXPOSED];
/// The server refused the order of roles, and gets another one from then on.
pub(crate) const ROLE_ORDER: &str = "role_order";
/// The AGENTS.md of the work folder is not used, or only in part.
pub(crate) const RULES_SKIPPED: &str = "rules_skipped";
/// The work folder is or contains the user's home folder.
pub(crate) const HOME_EXPOSED: &str = "home_exposed";
/// So many files that were changed are remembered.
const MOST_CHANGED: usize = 1_000;

impl State {
    /// What the session is after this record.
    pub fn apply(&mut self, record: &Record) -> Result<(), DecodeError> {
        match SessionRecord::decode(record) {
            Ok(fact) => {
                self.head = record.seq;
                self.fold(record, fact);
            }
            Err(DecodeError::Gone { reason, .. }) => {
                self.head = record.seq;
                self.fold_gone(record, &reason);
            }
            Err(error) => return Err(error),
        }
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
            SessionRecord::StepStarted(step) => self.fold_step(&step),
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
                self.push_told(Item::Text { role: Role::User, text: notification.text });
            }
            SessionRecord::Note(note) => {
                self.tasks.noted(&note);
                self.push_told(Item::Note { text: note.text });
            }
            SessionRecord::Question(question) => {
                self.questions.push(question);
                self.await_person(record.at);
            }
            SessionRecord::Answered(answered) => {
                self.fold_answered(answered);
                self.await_person(record.at);
            }
            SessionRecord::Imported(imported) => self.fold_import(imported),
            SessionRecord::ModelChanged(changed) => self.model = Some(changed.to),
            SessionRecord::Warning(warning) => {
                if let Some(news) = warning.task {
                    self.tasks.waits(news, warning.text);
                }
                if GIVEN_ONCE.contains(&warning.code.as_str()) {
                    self.warned.insert(warning.code);
                }
            }
            SessionRecord::CompactStart(start) => self.fold_compact_start(start.reason),
            SessionRecord::SystemMessage(message) => self.fold_preface(record.seq, message),
            SessionRecord::CompactDone(done) => self.fold_compact_done(&done),
            SessionRecord::CompactFailed(failed) => self.fold_compact_failed(&failed),
            SessionRecord::Stubbed(stubbed) => self.fold_stubbed(&stubbed),
            SessionRecord::Unknown { .. } => {}
        }
    }

    /// A new turn is what inputs waited for. Those that were cancelled before it began make a turn of their own, which ends as
    /// cancelled; the others wait for the one after it.
    fn fold_turn(&mut self, number: u64, started_at: Option<At>) {
        self.turns = number;
        let cancelled = self.waiting.iter().any(|input| input.cancelled);
        // A turn that begins only to end as cancelled is not the one that was asked for.
        let tries_again = !cancelled && self.again.is_some();
        if !cancelled {
            self.go_on();
        }
        let answers = if tries_again { self.asked_in } else { number };
        self.asked_in = answers;
        for input in &mut self.waiting {
            input.mode = if input.cancelled == cancelled { JoinMode::Join } else { JoinMode::After };
        }
        self.turn = Some(Turn { number, answers, cancelled, started_at, ..Turn::default() });
    }

    /// What a turn without an input of its own begins with. The model must have something to answer.
    fn go_on(&mut self) {
        let again = self.again.take();
        let place = Place { seq: self.head, turn: self.turns, step: 1, said: None };
        let mut goes_on = again.is_some() && self.items.last().is_some_and(|item| is_by_model(item));
        if let (Some(Again::Continue), Some(text)) = (again, self.interrupted.take()) {
            if !self.ends_with_answer(&text) {
                self.push(place, Arc::new(Item::Text { role: Role::Assistant, text }));
            }
            goes_on = true;
        }
        if goes_on {
            self.push(place, Arc::new(Item::Note { text: GO_ON.to_owned() }));
        }
    }

    /// M10: after a crash, or between two tries, the open turn goes on from the text of the answer that broke off, if the user wants that.
    fn go_on_in_turn(&mut self) {
        let Some(turn) = &mut self.turn else { return };
        if turn.attempt.is_some() || !std::mem::take(&mut turn.continues) || turn.answered {
            return;
        }
        let Some(text) = turn.interrupted.take() else { return };
        let place = Place { seq: self.head, turn: turn.number, step: turn.steps, said: None };
        self.push(place, Arc::new(Item::Text { role: Role::Assistant, text }));
        self.push(place, Arc::new(Item::Note { text: GO_ON.to_owned() }));
    }

    /// Whether the context ends with this answer, results of its calls and notes aside.
    fn ends_with_answer(&self, text: &str) -> bool {
        let said = |item: &Arc<Item>| match &**item {
            Item::Text { role: Role::Assistant, text } => Some(Some(text.clone())),
            Item::Text { .. } | Item::Image(_) => Some(None),
            Item::Reasoning { .. } | Item::ToolCall { .. } | Item::ToolResult { .. } | Item::Note { .. } => {
                None
            }
        };
        let last = self.items[self.preface..].iter().rev().find_map(said).flatten();
        last.is_some_and(|last| text.ends_with(&last))
    }

    fn fold_turn_end(&mut self, outcome: Option<Outcome>, inbox_through: Option<Seq>) {
        self.settle_calls();
        if outcome == Some(Outcome::Cancelled) {
            let step = self.turn.as_ref().map_or(0, |turn| turn.steps);
            let place = Place { seq: self.head, turn: self.turns, step, said: None };
            // T11: also what came of an answer that failed before the user interrupted the wait for the next try.
            let unsent = self.turn.as_ref().and_then(|turn| turn.interrupted.clone());
            if let Some(text) = unsent.filter(|text| !self.ends_with_answer(text)) {
                self.push(place, Arc::new(Item::Text { role: Role::Assistant, text }));
            }
            self.push(place, Arc::new(Item::Note { text: CANCELLED.to_owned() }));
        }
        // A new turn has new chances: or a session could never come out of a turn that came to nothing.
        self.compaction.since_answer = 0;
        (self.compaction.tried, self.compaction.is_hopeless) = (false, false);
        // What was refused in a turn that came to nothing may have been refused for another reason.
        if outcome == Some(Outcome::Failed) {
            self.counting.values_mut().for_each(|counting| counting.refused_at = None);
        }
        let interrupted = self.turn.take().and_then(|turn| turn.interrupted);
        // What somebody wants to go on with is there until they have.
        if self.again != Some(Again::Continue) {
            self.interrupted = interrupted;
        }
        self.last_outcome = outcome;
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
        self.waiting.push(Waiting { id, mode, text, images, cancelled: false, taken: self.head });
    }

    fn fold_order(&mut self, taken: &OrderTaken) {
        self.inbox_through = taken.inbox_through;
        let has_news = self.has_news_to_compact();
        // What waits begins a turn by itself; whoever was in a hurry meant that.
        let is_quiet = self.waiting.iter().all(|input| input.cancelled);
        let stopped_short = matches!(self.last_outcome, Some(Outcome::Failed | Outcome::Limit));
        match (&taken.order.kind, &mut self.turn) {
            (OrderKind::Cancel, Some(turn)) => turn.cancelled = true,
            // Their turn has not begun; it will begin, and end as cancelled.
            (OrderKind::Cancel, None) => {
                self.again = None;
                self.waiting.iter_mut().for_each(|input| input.cancelled = true);
            }
            (OrderKind::Retry, Some(turn)) => turn.hurried = turn.hurried.saturating_add(1),
            (OrderKind::Retry, None) if stopped_short && is_quiet => self.again = Some(Again::Retry),
            (OrderKind::Continue, Some(turn)) => {
                turn.continues = true;
                self.go_on_in_turn();
            }
            (OrderKind::Continue, None) if self.interrupted.is_some() => self.again = Some(Again::Continue),
            (OrderKind::Kill { task }, _) => self.tasks.is_to_end(*task),
            (OrderKind::Compact { focus }, _) if has_news => {
                self.compaction.asked = Some(Asked { focus: focus.clone() });
            }
            _ => {}
        }
    }

    /// A person is awaited from now on, or not any more: that is no time of the turn.
    fn await_person(&mut self, now: At) {
        let Some(turn) = &mut self.turn else { return };
        match (self.questions.is_empty(), turn.awaits_since) {
            (false, None) => turn.awaits_since = Some(now),
            (true, Some(since)) => {
                let awaited = u64::try_from(now.0.saturating_sub(since.0)).unwrap_or(0);
                turn.awaited_ms = turn.awaited_ms.saturating_add(awaited);
                turn.awaits_since = None;
            }
            (false, Some(_)) | (true, None) => {}
        }
    }

    fn fold_answered(&mut self, answered: Answered) {
        let settled = self.questions.extract_if(.., |question| question.id == answered.id).next();
        let Some(question) = settled else { return };
        if let Some(call) = question.call.and_then(|call| self.call_mut(call)) {
            call.answer = Some(CallAnswer { words: answered.answer, reasons: question.reasons });
        }
    }

    /// What joins is seen from this step on: after the results of the step before, at the end of the context.
    fn fold_step(&mut self, started: &StepStarted) {
        let step = started.step;
        for input in self.waiting.iter_mut().filter(|input| started.later.contains(&input.id)) {
            input.mode = JoinMode::After;
        }
        let (seen, later) =
            std::mem::take(&mut self.waiting).into_iter().partition(|input| input.mode == JoinMode::Join);
        self.waiting = later;
        let seen: Vec<Waiting> = seen;
        // What is said after somebody has spoken is not said in one breath.
        if let Some(turn) = self.turn.as_mut().filter(|turn| !seen.is_empty() && !turn.carried.is_empty()) {
            turn.carried.push_str("\n\n");
        }
        for input in seen {
            let said = Some(input.taken);
            let place = Place { seq: self.head, turn: self.turns, step, said };
            self.push(place, Arc::new(Item::Text { role: Role::User, text: input.text }));
            for image in input.images {
                self.push(place, Arc::new(Item::Image(image)));
            }
        }
        if let Some(turn) = &mut self.turn {
            turn.steps = step;
            turn.answered = false;
            turn.attempt = None;
            turn.text.clear();
            turn.goes_on = false;
            turn.calls.clear();
            turn.called = false;
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
        if let Some(tokens) = ended.too_long {
            turn.too_long = turn.too_long.saturating_add(1);
            turn.refusal.clone_from(&ended.error);
            let model = self.model.clone().unwrap_or_default();
            self.counting.entry(model).or_default().refused_at = Some(tokens);
        }
        if (kept == 0 || attempt.blocks.is_empty()) && ended.error.is_some() {
            // An answer that came to its end was not interrupted; and a later try that came to nothing takes nothing away.
            let text = attempt.text();
            if ended.stop.is_none() && !text.trim().is_empty() {
                turn.interrupted = Some(text);
            }
            self.go_on_in_turn();
            return;
        }
        attempt.blocks.truncate(kept);
        turn.answered = true;
        turn.continues = false;
        (turn.too_long, turn.refusal) = (0, None);
        let said = text_of(&attempt.blocks);
        turn.interrupted = Some(said).filter(|said| turn.cancelled && !said.trim().is_empty());
        turn.text = std::mem::take(&mut turn.carried) + &text_of(&attempt.blocks);
        turn.calls = attempt.blocks.iter().filter_map(|block| call_of(block)).collect();
        turn.goes_on = ended.goes_on;
        if ended.goes_on {
            turn.carried.clone_from(&turn.text);
            turn.cuts = turn.cuts.saturating_add(1);
        }
        let place = Place { seq: self.head, turn: turn.number, step: turn.steps, said: None };
        self.answers = self.answers.saturating_add(u64::from(!attempt.blocks.is_empty()));
        for block in attempt.blocks {
            self.push(place, block);
        }
        let compaction = &mut self.compaction;
        compaction.answers_since += 1;
        (compaction.since_answer, compaction.tried, compaction.is_hopeless) = (0, false, false);
    }

    /// What a call cost, and what its count says about the estimates.
    fn fold_usage(&mut self, usage: Usage) {
        // A summary says nothing about the size of the context.
        if usage.purpose.is_none() {
            self.fold_count(&usage);
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

    fn fold_count(&mut self, usage: &Usage) {
        let counting = self.counting.entry(self.model.clone().unwrap_or_default()).or_default();
        if let (Some(estimated), Some(counted)) = (usage.estimated, usage.input) {
            if counting.calibration.is_truncated_by_server(estimated, counted) {
                counting.cuts = Some(Cut { at: counted, window: usage.window });
            }
            counting.calibration.learn(estimated, counted);
        }
        // It takes more than was thought.
        if counting.refused_at.is_some_and(|refused| usage.input.is_some_and(|counted| counted >= refused)) {
            counting.refused_at = None;
        }
        let answered = self.turn.as_ref().is_some_and(|turn| turn.answered);
        if let Some(input) = usage.input {
            let output = if answered { usage.output.unwrap_or(0) } else { 0 };
            let model = self.model.clone().unwrap_or_default();
            self.reported =
                Some(Reported { model, tokens: input.saturating_add(output), items: self.items.len() });
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
        let head = self.head;
        let Some(call) = self.call_mut(finished.call).filter(|call| call.result.is_none()) else { return };
        let called = (call.name.clone(), call.arguments.clone());
        let write = call.started.as_ref().and_then(|started| started.write.as_ref());
        let changed = write.filter(|_| !finished.is_error).map(|write| write.path.clone());
        call.finished = head;
        call.result = Some(Arc::new(Item::ToolResult {
            call: finished.call,
            content: finished.content.clone(),
            images: finished.images,
            is_error: finished.is_error,
        }));
        if let Some(path) = changed {
            self.note_change(path);
        }
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
        let place = |seq| Place { seq, turn: turn.number, step: turn.steps, said: None };
        let results = turn.calls.iter().filter_map(|call| Some((place(call.finished), call.result.clone()?)));
        for (place, result) in results.collect::<Vec<_>>() {
            self.push(place, result);
        }
    }

    fn note_change(&mut self, path: String) {
        self.changed.retain(|known| *known != path);
        if self.changed.len() == MOST_CHANGED {
            self.changed.remove(0);
        }
        self.changed.push(path);
    }

    fn push(&mut self, place: Place, item: Arc<Item>) {
        self.items.push(item);
        self.places.push(place);
    }

    /// Something that the model is told: it belongs to the step that is asked next.
    fn push_told(&mut self, item: Item) {
        let step = self.turn.as_ref().map_or(0, |turn| match turn.answered {
            true => turn.steps.saturating_add(1),
            false => turn.steps.max(1),
        });
        self.push(Place { seq: self.head, turn: self.turns, step, said: None }, Arc::new(item));
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
            finished: 0,
        }),
        _ => None,
    }
}

#[cfg(test)]
#[path = "apply_tests.rs"]
mod tests;
