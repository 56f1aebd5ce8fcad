//! Simulated time for the tests of schedules: a real journal whose process can be killed at an append, a clock that the test sets, and
//! sessions whose turns end when the test says so.

use std::collections::HashSet;
use std::sync::Arc;

use longhaul_journal::{Append, Blob, Journal, records};
use longhaul_protocol::{
    At, BlobRef, EpochReason, EpochStarted, InboxRecord, Input, InputTaken, NewRecord, OrderKind, Outcome,
    Record, ScheduleRecord, ScheduleSpec, Seq, SessionCreated, SessionId, SessionRecord, StepStarted,
    StreamName, TurnEnded, TurnStarted,
};
use longhaul_redact::Redactor;
use longhaul_testkit::{Crash, FaultyJournal, RecordTimes, TestHome};

use super::Schedules;
use super::action::ScheduleStore;
use super::runner::ScheduleRunner;
use crate::replay::load;
use crate::session::state::State;

/// How many turns of a session lie between two epochs.
const TURNS_PER_EPOCH: u64 = 8;

/// The record of a new epoch, with what the turns before it leave behind.
fn new_epoch(state: &State) -> NewRecord {
    let empty = BlobRef::to(&[], "text/plain");
    let epoch = EpochStarted {
        turns: state.turn_count,
        inbox_through: state.inbox_through,
        ..EpochStarted::new(state.turn_count + 1, EpochReason::Compacted, empty.clone(), empty)
    };
    SessionRecord::EpochStarted(epoch).encode()
}

pub(super) struct Simulation {
    pub(super) journal: Arc<dyn Journal>,
    config: Vec<ScheduleSpec>,
    process: Option<(Arc<FaultyJournal>, ScheduleRunner)>,
    at_once: u64,
    /// When records were appended, by the simulated clock.
    record_times: RecordTimes,
    home: Arc<TestHome>,
}

impl Simulation {
    pub(super) async fn new(config: Vec<ScheduleSpec>, at_once: u64) -> Self {
        let home = Arc::new(TestHome::in_memory());
        let journal: Arc<dyn Journal> = home.journal().await;
        Self { journal, config, process: None, at_once, record_times: RecordTimes::default(), home }
    }

    /// Another process on the same home.
    pub(super) fn beside(&self) -> Self {
        let (journal, config, home) = (self.journal.clone(), self.config.clone(), self.home.clone());
        let record_times = self.record_times.clone();
        Self { journal, config, process: None, at_once: self.at_once, record_times, home }
    }

    /// The config of the processes that start from now on.
    pub(super) fn set_config(&mut self, config: Vec<ScheduleSpec>) {
        self.config = config;
    }

    /// The schedules as people see them.
    pub(super) fn registry(&self) -> Schedules {
        let redactor = Arc::new(Redactor::new(&[], &[]).unwrap());
        Schedules::new(self.journal.clone(), redactor, &self.config)
    }

    /// Appends to the stream `schedules` what people want, at this moment.
    pub(super) async fn at<T>(&self, now: At, change: impl Future<Output = T>) -> T {
        let stream = StreamName::schedules();
        let before = self.journal.head(&stream).await.unwrap().seq;
        let changed = change.await;
        let after = self.journal.head(&stream).await.unwrap().seq;
        let times = (before + 1..=after).map(|seq| ((stream.clone(), seq), now));
        self.record_times.lock().unwrap().extend(times);
        changed
    }

    /// Starts a process that will die at this append.
    pub(super) fn start(&mut self, crash: Option<Crash>) {
        let journal = FaultyJournal::of_schedules(self.journal.clone(), crash);
        journal.set_record_times(self.record_times.clone());
        let redactor = Arc::new(Redactor::new(&[], &[]).unwrap());
        let store = ScheduleStore { journal: journal.clone(), redactor };
        self.process = Some((journal, ScheduleRunner::new(store, self.config.clone(), self.at_once)));
    }

    /// Ends the process as `kill -9` does.
    pub(super) async fn kill(&mut self) {
        if let Some((journal, runner)) = self.process.take() {
            journal.hang();
            drop(runner);
            journal.release_leases().await;
        }
    }

    /// Does what is due at this moment, and returns when to look again. `Err` if the process died.
    pub(super) async fn step(&mut self, now: At) -> Result<Option<At>, ()> {
        if self.process.is_none() {
            self.start(None);
        }
        let (journal, runner) = self.process.as_mut().unwrap();
        journal.set_append_time(now);
        let no_turns = HashSet::new();
        let stepped = tokio::select! {
            biased;
            () = journal.crashed() => Err(()),
            next = runner.step(now, &no_turns) => Ok(next),
        };
        if stepped.is_err() {
            self.kill().await;
        }
        stepped
    }

    /// Steps, and starts a new process as long as the old one dies.
    pub(super) async fn step_surely(&mut self, now: At) -> Option<At> {
        loop {
            if let Ok(next) = self.step(now).await {
                return next;
            }
        }
    }

    /// Takes everything in the session's inbox, and ends the turn that it begins, at the moment when that is noticed. `false` if there is
    /// nothing.
    pub(super) async fn play_turn(&self, session: SessionId, outcome: Outcome) -> bool {
        self.play_turn_until(session, outcome, At(i64::MAX)).await
    }

    /// The same for a turn that ends at this moment.
    pub(super) async fn play_turn_until(&self, session: SessionId, outcome: Outcome, end: At) -> bool {
        let stream = StreamName::session(session);
        let state = load(&*self.journal, "simulated", session).await.unwrap();
        let inputs = self.inputs_after(session, state.inbox_through).await;
        if inputs.is_empty() {
            return false;
        }
        let mut append = Append::to(&stream);
        if state.head == 0 {
            let created = SessionCreated {
                id: session,
                key: session.to_string(),
                work_dir: None,
                origin: None,
                parent: None,
                version: "0.1.0".to_owned(),
            };
            append = append.record(SessionRecord::SessionCreated(created).encode());
        }
        // So that loading a session that has had many turns stays fast.
        if state.turn_count % TURNS_PER_EPOCH == TURNS_PER_EPOCH - 1 {
            append = append.record(new_epoch(&state)).blob(Blob::new(vec![]));
        }
        for (seq, input) in inputs {
            append = append.record(SessionRecord::InputTaken(InputTaken::of(input, seq)).encode());
        }
        let turn = state.turn_count + 1;
        let started = SessionRecord::TurnStarted(TurnStarted::new(turn));
        let step = SessionRecord::StepStarted(StepStarted { step: 1, later: vec![] });
        let ended = TurnEnded {
            turn,
            outcome,
            limit: None,
            text: String::new(),
            error: (outcome == Outcome::Failed).then(|| "offline".to_owned()),
            code: None,
            inbox_through: None,
        };
        append = append
            .record(started.encode())
            .record(step.encode())
            .record(SessionRecord::TurnEnded(ended).encode());
        let appended = self.journal.append(append).await.unwrap();
        let ended = appended.last().unwrap();
        self.record_times.lock().unwrap().insert((ended.stream.clone(), ended.seq), end);
        true
    }

    /// The inputs of a session, with their places in the inbox.
    pub(super) async fn inputs(&self, session: SessionId) -> Vec<(Seq, Input)> {
        self.inputs_after(session, 0).await
    }

    async fn inputs_after(&self, session: SessionId, through: Seq) -> Vec<(Seq, Input)> {
        let inbox = StreamName::inbox(session);
        let found = records(&*self.journal, &inbox, through + 1).collect().await.unwrap();
        let input = |record: &Record| match InboxRecord::decode(record).unwrap() {
            InboxRecord::Input(input) => Some((record.seq, input)),
            _ => None,
        };
        found.iter().filter_map(input).collect()
    }

    /// Whether the inbox of a session has an order to cancel.
    pub(super) async fn is_cancelled(&self, session: SessionId) -> bool {
        let found = records(&*self.journal, &StreamName::inbox(session), 1).collect().await.unwrap();
        found.iter().any(|record| match InboxRecord::decode(record).unwrap() {
            InboxRecord::Order(order) => order.kind == OrderKind::Cancel,
            _ => false,
        })
    }

    /// The records of a schedule.
    pub(super) async fn schedule(&self, id: &str) -> Vec<ScheduleRecord> {
        self.schedule_after(id, 0).await
    }

    /// The records of a schedule after its first ones.
    pub(super) async fn schedule_after(&self, id: &str, known: usize) -> Vec<ScheduleRecord> {
        let stream = StreamName::schedule(id).unwrap();
        let found = records(&*self.journal, &stream, known as Seq + 1).collect().await.unwrap();
        found.iter().map(|record| ScheduleRecord::decode(record).unwrap()).collect()
    }

    /// What the last process had to say.
    pub(super) fn warnings(&mut self) -> Vec<(&'static str, String)> {
        self.process.as_mut().map(|(_, runner)| runner.take_warnings()).unwrap_or_default()
    }
}
