//! Carries out the next action of a schedule. The crash table is in the parent module.

use std::path::Path;
use std::sync::Arc;

use longhaul_journal::{Append, Error as JournalError, Journal, Lease, SessionEntry, bind_session_key};
use longhaul_protocol::{
    At, Cause, Input, InputId, JoinMode, OrderKind, OverlapPolicy, RunOutcome, ScheduleBegan, SchedulePaused,
    ScheduleRecord, SchedulesRecord, Sender, Seq, SessionId, SlotAction, SlotDecided, SlotEnded, SlotFired,
    StreamName,
};
use longhaul_redact::Redactor;
use longhaul_schedule::{Decision, input_key, run_session_key};

use super::catalog::CatalogEntry;
use super::state::{OpenRun, ScheduleState, load_state};
use super::work::Work;
use crate::client::detached::Client;
use crate::client::remote::{InputOutcome, input_outcome};
use crate::client::session::Session;
use crate::replay::load;
use crate::spend::nano;
use crate::{Error, Result};

/// The journal in which schedules decide and fire.
#[derive(Clone)]
pub(crate) struct ScheduleStore {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) redactor: Arc<Redactor>,
}

/// The result of an action, besides the new state.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ActionReport {
    /// A warning for people: its code and its text.
    pub(crate) warning: Option<(&'static str, String)>,
}

/// The stream of one schedule, under its lease.
struct ScheduleStream<'a> {
    store: &'a ScheduleStore,
    lease: Lease,
    state: &'a mut ScheduleState,
}

impl<'a> ScheduleStream<'a> {
    async fn open(store: &'a ScheduleStore, id: &str, state: &'a mut ScheduleState) -> Result<Self> {
        let stream = schedule_stream(id)?;
        let lease = store.journal.acquire_lease(&stream).await?;
        Ok(Self { store, lease, state })
    }

    /// Appends records after those that the state has, and applies them. If another process has appended meanwhile, nothing is
    /// appended, and the state is as that process left it.
    async fn append(&mut self, records: impl IntoIterator<Item = ScheduleRecord>) -> Result<()> {
        let append = Append::under(&self.lease).expecting(self.state.head);
        let append = records
            .into_iter()
            .fold(append, |append, record| append.record(self.store.redactor.redact_record(record.encode())));
        match self.store.journal.append(append).await {
            Ok(records) => {
                for record in &records {
                    let unreadable = |reason| Error::Unreadable { key: record.stream.to_string(), reason };
                    self.state.apply(record).map_err(unreadable)?;
                }
                Ok(())
            }
            Err(error) => {
                if matches!(error, JournalError::Conflict { .. }) {
                    *self.state = load_state(&*self.store.journal, &self.lease.stream).await?;
                }
                Err(error.into())
            }
        }
    }
}

pub(crate) fn schedule_stream(id: &str) -> Result<StreamName> {
    let invalid = |_| Error::Schedule {
        name: id.to_owned(),
        reason: longhaul_schedule::Error::Name { name: id.to_owned() },
    };
    StreamName::schedule(id).map_err(invalid)
}

/// Carries out one action of a schedule. The state has everything that was appended, also after an error.
pub(crate) async fn act(
    store: &ScheduleStore,
    entry: &CatalogEntry,
    state: &mut ScheduleState,
    work: Work,
    now: At,
) -> Result<ActionReport> {
    if let Work::Pause { failures } = work {
        let last_error = state.last.as_ref().and_then(|last| last.error.as_deref());
        let detail = last_error.map(|error| format!(", the last one with: {error}")).unwrap_or_default();
        return pause(store, entry, format!("{failures} runs in a row failed{detail}")).await;
    }
    let heads = if work == Work::CheckRuns { Some(changed_runs(store, state).await?) } else { None };
    if heads.as_ref().is_some_and(Vec::is_empty) {
        return Ok(ActionReport::default());
    }
    let mut stream = ScheduleStream::open(store, &entry.id, state).await?;
    let done = act_under_lease(&mut stream, entry, work, now).await;
    let ScheduleStream { lease, .. } = stream;
    // A lease that can't be released now is this process's own, and is taken again by the next action.
    let _ = store.journal.release_lease(&lease).await;
    // Only now: a run that could not be checked counts as changed at the next check, too.
    if done.is_ok() {
        for run in &mut state.runs {
            let seen = heads.iter().flatten().find(|(session, _)| *session == run.session);
            run.seen_head = seen.map_or(run.seen_head, |(_, head)| Some(*head));
        }
    }
    done
}

/// The sessions of open runs that have grown since the runs were last looked at, or are in the trash or gone, with their heads.
async fn changed_runs(store: &ScheduleStore, state: &ScheduleState) -> Result<Vec<(SessionId, Seq)>> {
    let mut changed = Vec::new();
    for run in &state.runs {
        let head = store.journal.head(&StreamName::session(run.session)).await?.seq;
        let is_trashed = || async {
            let entry = store.journal.session_with_id(run.session).await?;
            Ok::<_, longhaul_journal::Error>(entry.is_none_or(|entry| entry.trashed))
        };
        if head == 0 || run.seen_head != Some(head) || is_trashed().await? {
            changed.push((run.session, head));
        }
    }
    Ok(changed)
}

async fn act_under_lease(
    stream: &mut ScheduleStream<'_>,
    entry: &CatalogEntry,
    work: Work,
    now: At,
) -> Result<ActionReport> {
    match work {
        Work::Begin { from } => begin(stream, entry, from.unwrap_or(now)).await?,
        Work::Deliver { slot } => deliver(stream, entry, slot, now).await?,
        Work::CheckRuns => check_runs(stream, now).await?,
        Work::Decide(decisions) => return decide_slots(stream, entry, &decisions, now).await,
        Work::RunNow { request, slot } => {
            let decision = Decision { slot, since: None, action: SlotAction::Fire, is_late: false };
            return fire(stream, entry, &[], decision, Some(request.seq), now).await;
        }
        // Needs no lease.
        Work::Pause { .. } => {}
    }
    Ok(ActionReport::default())
}

async fn begin(stream: &mut ScheduleStream<'_>, entry: &CatalogEntry, from: At) -> Result<()> {
    let terms = entry.spec.terms();
    let earlier = stream.state.began.as_ref().filter(|began| began.terms.session == terms.session);
    let known = entry.session.or(earlier.and_then(|began| began.session));
    let session = match known {
        // It stays the only one, even if it is deleted: what the agent wrote must not go to another session.
        Some(id) if entry.is_by_agent() => Some(id),
        Some(id) => usable_session(&*stream.store.journal, id).await?.map(|entry| entry.id),
        None => None,
    };
    stream.append([ScheduleRecord::Began(ScheduleBegan { from, terms, session })]).await
}

/// A session that can take inputs.
async fn usable_session(journal: &dyn Journal, id: SessionId) -> Result<Option<SessionEntry>> {
    Ok(journal.session_with_id(id).await?.filter(|entry| !entry.trashed))
}

async fn decide_slots(
    stream: &mut ScheduleStream<'_>,
    entry: &CatalogEntry,
    decisions: &[Decision],
    now: At,
) -> Result<ActionReport> {
    let Some((last, before)) = decisions.split_last() else { return Ok(ActionReport::default()) };
    if last.action == SlotAction::Fire {
        return fire(stream, entry, before, *last, None, now).await;
    }
    let records = unfired_records(stream.state, decisions);
    stream.append(records).await?;
    Ok(ActionReport::default())
}

/// The records of slots that don't fire. The first one has the state, if the fold can begin there.
fn unfired_records(state: &ScheduleState, decisions: &[Decision]) -> Vec<ScheduleRecord> {
    let mut checkpoint = state.checkpoint();
    let record = |decision: &Decision| {
        ScheduleRecord::Decided(SlotDecided {
            slot: decision.slot,
            since: decision.since,
            action: decision.action,
            late: false,
            session: None,
            input: None,
            request: None,
            state: checkpoint.take(),
        })
    };
    decisions.iter().map(record).collect()
}

/// Records that a slot fires, and puts its input into the inbox. If its session is gone, the slot is missed and the schedule pauses.
async fn fire(
    stream: &mut ScheduleStream<'_>,
    entry: &CatalogEntry,
    before: &[Decision],
    decision: Decision,
    request: Option<Seq>,
    now: At,
) -> Result<ActionReport> {
    let mut records = unfired_records(stream.state, before);
    let target = find_target(&*stream.store.journal, entry, stream.state).await?;
    let session = match target {
        RunTarget::Known(id) => Some(id),
        RunTarget::New => Some(SessionId::generate()),
        RunTarget::Deleted => None,
    };
    records.push(ScheduleRecord::Decided(SlotDecided {
        slot: decision.slot,
        since: None,
        action: if session.is_some() { SlotAction::Fire } else { SlotAction::Missed },
        late: decision.is_late,
        session,
        input: session.map(|_| InputId::generate()),
        request,
        state: if records.is_empty() { stream.state.checkpoint() } else { None },
    }));
    stream.append(records).await?;
    if session.is_none() {
        let key = entry.spec.session.as_deref().unwrap_or_default();
        let reason = format!("its session {key:?} was deleted");
        return pause(stream.store, entry, reason).await;
    }
    deliver(stream, entry, decision.slot, now).await?;
    Ok(ActionReport::default())
}

/// The session that a slot goes to.
enum RunTarget {
    Known(SessionId),
    /// It gets its key once the decision is on record.
    New,
    /// The schedule's session was deleted, or is in the trash.
    Deleted,
}

async fn find_target(
    journal: &dyn Journal,
    entry: &CatalogEntry,
    state: &ScheduleState,
) -> Result<RunTarget> {
    // The key of a run's own session can be guessed, so a session that has it already belongs to another user of the home.
    let Some(key) = &entry.spec.session else { return Ok(RunTarget::New) };
    let bound = state.began.as_ref().and_then(|began| began.session);
    if let Some(id) = bound {
        let is_usable = usable_session(journal, id).await?.is_some();
        return Ok(if is_usable { RunTarget::Known(id) } else { RunTarget::Deleted });
    }
    if entry.is_by_agent() {
        return Ok(RunTarget::Deleted);
    }
    Ok(match journal.session(key).await? {
        Some(entry) if entry.trashed => RunTarget::Deleted,
        Some(entry) => RunTarget::Known(entry.id),
        None => RunTarget::New,
    })
}

/// Puts the input of a decided slot into the inbox, unless it is there, and records that. A run that can't begin has failed.
async fn deliver(stream: &mut ScheduleStream<'_>, entry: &CatalogEntry, slot: At, now: At) -> Result<()> {
    let Some(run) = stream.state.runs.iter().find(|run| run.slot == slot).cloned() else { return Ok(()) };
    let record = match put_input(stream, entry, &run).await {
        Ok(Some(fired)) => ScheduleRecord::Fired(fired),
        Ok(None) => ScheduleRecord::Ended(SlotEnded {
            slot,
            at: now,
            outcome: RunOutcome::Abandoned,
            cost: None,
            error: Some("an earlier run had this slot already".to_owned()),
        }),
        Err(error) if is_passing(&error) => return Err(error),
        Err(error) => ScheduleRecord::Ended(SlotEnded {
            slot,
            at: now,
            outcome: RunOutcome::Failed,
            cost: None,
            error: Some(error.to_string()),
        }),
    };
    stream.append([record]).await
}

/// Whether a later try may succeed, because the error is the journal's and not the run's.
fn is_passing(error: &Error) -> bool {
    let of_run = matches!(
        error,
        Error::Folder { .. }
            | Error::KeyReused { .. }
            | Error::Journal(
                JournalError::BadKey { .. }
                    | JournalError::NoSuchSession { .. }
                    | JournalError::SessionExists { .. }
                    | JournalError::TooLarge { .. }
            )
    );
    !of_run
}

/// `None` if the session has the input of another run with the same slot: the cursor was moved back, because the clock was set back.
async fn put_input(
    stream: &ScheduleStream<'_>,
    entry: &CatalogEntry,
    run: &OpenRun,
) -> Result<Option<SlotFired>> {
    let store = stream.store;
    let session = open_session(store, entry, run).await?;
    if let Some(folder) = &entry.spec.work_dir {
        let path = Path::new(folder);
        let unusable =
            |error: std::io::Error| Error::Folder { path: path.to_owned(), reason: error.to_string() };
        // Does nothing if the session has begun.
        session.create_in(&std::fs::canonicalize(path).map_err(unusable)?).await?;
    }
    // The input waits for a person's turn. It cancels only a turn of the same schedule.
    let mut mode = JoinMode::After;
    if entry.spec.overlap == OverlapPolicy::Interrupt {
        // Those that were decided before it. A run by hand may have a later slot than a run that the jitter delayed.
        for other in stream.state.runs.iter().take_while(|other| other.slot != run.slot) {
            if other.session != run.session {
                cancel_run(store, entry, other, run.slot).await?;
            } else if is_open_turn(&*store.journal, session.key(), other).await? {
                mode = JoinMode::Interrupt;
            }
        }
    }
    let max_cost_nano = Some(nano(entry.spec.cost_per_run)).filter(|max| *max > 0);
    let by_agent = entry.is_by_agent();
    let sender = Sender::Schedule {
        id: entry.id.clone(),
        slot: run.slot,
        by_agent,
        max_cost_nano,
        heartbeat: entry.spec.heartbeat,
    };
    let input = Input { sender, ..Input::new(run.input, entry.spec.prompt.clone(), mode) };
    let accepted = session.put(input, Some(&input_key(&entry.id, run.slot))).await?;
    let is_own = accepted.id == run.input;
    Ok(is_own.then_some(SlotFired { slot: run.slot, input_seq: accepted.seq, after: accepted.after }))
}

/// The session that a run was decided for. A new one gets its key here.
async fn open_session(store: &ScheduleStore, entry: &CatalogEntry, run: &OpenRun) -> Result<Session> {
    let journal = &*store.journal;
    let key = match journal.session_with_id(run.session).await? {
        Some(known) if known.trashed => return Err(JournalError::NoSuchSession { key: known.key }.into()),
        Some(known) => known.key,
        None => name_session(journal, entry, run).await?,
    };
    let session = Client::with_shared(store.journal.clone(), store.redactor.clone()).session(&key).await?;
    // The key may have gone to another session just now.
    if session.id() == Some(run.session) {
        Ok(session)
    } else {
        Err(JournalError::NoSuchSession { key }.into())
    }
}

/// Gives the new session of a run its key.
async fn name_session(journal: &dyn Journal, entry: &CatalogEntry, run: &OpenRun) -> Result<String> {
    if let Some(key) = &entry.spec.session {
        if entry.is_by_agent() {
            return Err(JournalError::NoSuchSession { key: key.clone() }.into());
        }
        bind_session_key(journal, key, run.session).await?;
        return Ok(key.clone());
    }
    let key = run_session_key(&entry.spec.name, run.slot);
    match bind_session_key(journal, &key, run.session).await {
        Ok(()) => Ok(key),
        // Another session has the key. The run must not go there, nor fail because of it.
        Err(JournalError::SessionExists { .. }) => {
            let key = format!("{key}/{}", run.session);
            bind_session_key(journal, &key, run.session).await?;
            Ok(key)
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether the open turn of its session is this run, and no person has a part in it.
async fn is_open_turn(journal: &dyn Journal, key: &str, run: &OpenRun) -> Result<bool> {
    let Some(fired) = &run.fired else { return Ok(false) };
    let state = load(journal, key, run.session).await?;
    let is_taken = state.inbox_through >= fired.input_seq
        && state.pending_inputs.iter().all(|pending| pending.id != run.input);
    let is_by_schedule = state.turn.is_some_and(|turn| turn.cause == Cause::Schedule);
    // A turn of another schedule may have begun since this run ended.
    Ok(is_taken
        && is_by_schedule
        && input_outcome(journal, key, run.session, run.input, fired.after).await?.is_none())
}

/// Cancels an earlier run that has a session of its own, unless a person goes on with that session.
async fn cancel_run(store: &ScheduleStore, entry: &CatalogEntry, run: &OpenRun, by: At) -> Result<()> {
    let Some(known) = usable_session(&*store.journal, run.session).await? else { return Ok(()) };
    let session =
        Client::with_shared(store.journal.clone(), store.redactor.clone()).session(&known.key).await?;
    let state = load(&*store.journal, &known.key, run.session).await?;
    if state.turn.is_some_and(|turn| turn.cause == Cause::Turn)
        || state.pending_inputs.iter().any(|pending| pending.sender.is_person())
    {
        return Ok(());
    }
    let key = format!("{}/interrupt/{}", input_key(&entry.id, run.slot), by.0);
    session.put_order(OrderKind::Cancel, Some(&key)).await.map(drop)
}

/// Records the ends of the runs whose turns have ended.
async fn check_runs(stream: &mut ScheduleStream<'_>, now: At) -> Result<()> {
    let mut ended = Vec::new();
    for run in &stream.state.runs {
        ended.extend(find_end(&*stream.store.journal, run, now).await?.map(ScheduleRecord::Ended));
    }
    if ended.is_empty() { Ok(()) } else { stream.append(ended).await }
}

/// How and when a run ended, if it has. The time is that of its turn: after an outage the end is noticed much later, and a slot that
/// waited for the run must not count as on time because of that.
async fn find_end(journal: &dyn Journal, run: &OpenRun, now: At) -> Result<Option<SlotEnded>> {
    // A clock that was set back must not put the end into the future.
    let end = |at: At, outcome, cost, error| {
        Some(SlotEnded { slot: run.slot, at: at.min(now), outcome, cost, error })
    };
    let Some(fired) = &run.fired else { return Ok(None) };
    let Some(session) = usable_session(journal, run.session).await? else {
        return Ok(end(now, RunOutcome::Abandoned, None, Some("its session was deleted".to_owned())));
    };
    Ok(match input_outcome(journal, &session.key, session.id, run.input, fired.after).await? {
        Some(InputOutcome::Ended { at, ended, cost }) => {
            let error = ended
                .error
                .or_else(|| ended.limit.map(|limit| format!("limit reached: {limit:?}").to_lowercase()));
            end(at, ended.outcome.into(), cost, error)
        }
        Some(InputOutcome::Withdrawn { at }) => {
            end(at, RunOutcome::Abandoned, None, Some("its input was taken back".to_owned()))
        }
        None => None,
    })
}

/// Pauses a schedule.
async fn pause(store: &ScheduleStore, entry: &CatalogEntry, reason: String) -> Result<ActionReport> {
    let name = &entry.spec.name;
    let warning =
        format!("schedule {name} is paused: {reason}; `longhaul schedules resume {name}` starts it again");
    let record = SchedulesRecord::Paused(SchedulePaused { id: entry.id.clone(), reason: Some(reason) });
    let record = store.redactor.redact_record(record.encode());
    store.journal.append(Append::to(&StreamName::schedules()).record(record)).await?;
    Ok(ActionReport { warning: Some(("schedule_paused", warning)) })
}
