//! The scheduler with jobs that are made up, against the real journal.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use longhaul_journal::{Append, Home, Journal, SessionEntry, SqliteJournal, put};
use longhaul_model::ScriptedModel;
use longhaul_protocol::{
    EventKind, InboxRecord, Input, InputId, JoinMode, NamesRecord, SessionId, SessionTrashed, StreamName,
};
use longhaul_testkit::{FaultyJournal, GatedModel};
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::super::activity::ClockReading;
use super::super::scheduler::{EXTRACT_WITHIN, SessionJobFn, SessionJobFuture};
use super::super::session_check::{Idleness, idleness};
use super::*;
use crate::worker::WorkerStop;
use crate::{Config, Runtime, RuntimeBuilder, Session, Watched, Watcher};

const INTERVAL: Duration = Duration::from_millis(5);
/// How long a test waits before it gives up; nothing depends on it but how soon a failure is told.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);
const HOME_OF_HOLDER: &str = "LONGHAUL_TEST_HOME_OF_HOLDER";

/// A runtime whose model always answers the same.
async fn open(home: &TempDir) -> Runtime {
    open_with(builder(home)).await
}

/// A builder whose model always answers the same.
fn builder(home: &TempDir) -> RuntimeBuilder {
    let answers = serde_json::json!(vec!["Yes."; 20]).to_string();
    let config = Config::at(home.path().join("home")).with_work_dir(home.path());
    RuntimeBuilder::new(config).model(Arc::new(ScriptedModel::from_json(&answers).unwrap()))
}

async fn open_with(builder: RuntimeBuilder) -> Runtime {
    let runtime = builder.open().await.unwrap();
    runtime.set_check_interval(INTERVAL);
    runtime
}

async fn journal(home: &TempDir) -> Arc<SqliteJournal> {
    Arc::new(SqliteJournal::open(&Home::create(&home.path().join("home")).unwrap()).await.unwrap())
}

/// Sessions that have had a turn.
async fn talked<const COUNT: usize>(runtime: &Runtime, keys: [&str; COUNT]) -> [Session; COUNT] {
    let mut sessions = Vec::new();
    for key in keys {
        let session = runtime.session(key).await.unwrap();
        session.send("hello").await.unwrap();
        sessions.push(session);
    }
    sessions.try_into().unwrap_or_else(|_| unreachable!())
}

/// The sessions that a job was done for.
struct Calls(mpsc::UnboundedReceiver<String>);

impl Calls {
    async fn next(&mut self) -> String {
        tokio::time::timeout(TEST_TIMEOUT, self.0.recv()).await.expect("no session was looked at").unwrap()
    }

    fn so_far(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.0.try_recv().ok()).collect()
    }
}

/// One job, which does this for a session.
fn job(
    does: impl Fn(&str) -> SessionJobFuture<'static> + Send + Sync + 'static,
) -> (Arc<[SessionJob]>, Calls) {
    let (called, calls) = mpsc::unbounded_channel();
    let act: SessionJobFn = Box::new(move |_, slot, _| {
        let _ = called.send(slot.key.clone());
        does(&slot.key)
    });
    (Arc::new([SessionJob { within: EXTRACT_WITHIN, run: act }]), Calls(calls))
}

fn nothing() -> SessionJobFuture<'static> {
    Box::pin(async { Ok(false) })
}

fn never() -> SessionJobFuture<'static> {
    Box::pin(std::future::pending())
}

fn failure() -> SessionJobFuture<'static> {
    Box::pin(async { Err(Error::NotSaved { reason: "made up".to_owned() }.into()) })
}

async fn start(runtime: &Runtime, jobs: &Arc<[SessionJob]>) {
    runtime.0.idle.start(&runtime.0, jobs).await.unwrap();
}

/// Waits for so many more checks.
async fn checks(runtime: &Runtime, count: usize) {
    let waiting = async {
        for _ in 0..count {
            let last = runtime.idle_status().last_check;
            while runtime.idle_status().last_check == last {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, waiting).await.expect("there are no checks");
}

/// The warnings so far: of which session, and their codes.
fn warnings(watcher: &mut Watcher) -> Vec<(String, String)> {
    let seen = std::iter::from_fn(|| watcher.try_next());
    let warning = |watched| match watched {
        Watched::Event(event) => match event.kind {
            EventKind::Warning { code, .. } => Some((event.session, code)),
            _ => None,
        },
        Watched::Missed { .. } => None,
    };
    seen.filter_map(warning).collect()
}

async fn entry(runtime: &Runtime, key: &str) -> SessionEntry {
    runtime.journal().session(key).await.unwrap().unwrap()
}

fn quiet(runtime: &Runtime, entry: &SessionEntry, clock: ClockReading) -> Duration {
    runtime.0.activity.idle_time(entry.id, entry.last_at.unwrap(), clock)
}

fn input() -> Input {
    Input::new(InputId::generate(), "more", JoinMode::Join)
}

/// Y5, Y3: a session that has fallen idle is looked at once; again only when something is new. Nothing of it is read meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_with_nothing_new_is_not_looked_at_again() {
    let home = tempfile::tempdir().unwrap();
    let faulty = FaultyJournal::new(journal(&home).await, None);
    let runtime = open_with(builder(&home).journal(faulty.clone())).await;
    let [session] = talked(&runtime, ["a"]).await;
    let (jobs, mut calls) = job(|_| nothing());
    let mut watcher = runtime.watch();
    start(&runtime, &jobs).await;
    assert_eq!(calls.next().await, "a");
    checks(&runtime, 2).await;

    faulty.refuse_reads(Some(longhaul_journal::Error::DiskFull { path: "journal.db".into() }));
    checks(&runtime, 5).await;
    faulty.refuse_reads(None);

    assert_eq!((calls.so_far(), warnings(&mut watcher)), (vec![], vec![]));
    session.send("more").await.unwrap();
    assert_eq!(calls.next().await, "a");
    runtime.shutdown().await.unwrap();
}

/// Y3: no turn is running.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_in_a_turn_is_not_idle_however_long_it_takes() {
    let home = tempfile::tempdir().unwrap();
    let (model, gate) = GatedModel::new(ScriptedModel::from_json(r#"["Slowly."]"#).unwrap());
    let runtime = open_with(builder(&home).model(model)).await;
    let session = runtime.session("a").await.unwrap();
    let (jobs, mut calls) = job(|_| nothing());
    let sending = tokio::spawn(async move { session.send("hello").await });
    gate.reached().await;

    start(&runtime, &jobs).await;
    checks(&runtime, 10).await;

    assert_eq!(calls.so_far(), Vec::<String>::new());
    gate.open();
    sending.await.unwrap().unwrap();
    assert_eq!(calls.next().await, "a");
    runtime.shutdown().await.unwrap();
}

/// Y3: also one that nobody runs, and what waits for a turn.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_with_an_open_turn_or_something_in_its_inbox_is_not_idle() {
    let home = tempfile::tempdir().unwrap();
    let (model, gate) = GatedModel::new(ScriptedModel::from_json(r#"["Yes.", "Never."]"#).unwrap());
    let first = open_with(builder(&home).model(model)).await;
    let waits = first.session("waits").await.unwrap();
    gate.open();
    waits.send("hello").await.unwrap();
    let open_turn = first.session("open").await.unwrap();
    let sending = tokio::spawn(async move { open_turn.send("hello").await });
    gate.reached().await;
    gate.reached().await;
    first.shutdown().await.unwrap();
    assert!(sending.await.unwrap().is_err());
    let second = open(&home).await;
    let record = InboxRecord::Input(input()).encode();
    longhaul_journal::accept(&*second.journal(), waits.id().unwrap(), record).await.unwrap();
    let (jobs, mut calls) = job(|_| nothing());

    start(&second, &jobs).await;
    checks(&second, 10).await;

    assert_eq!(calls.so_far(), Vec::<String>::new());
    second.shutdown().await.unwrap();
}

/// Y3: activity is an input's arrival, wherever it came from, and a slash command.
#[tokio::test(flavor = "multi_thread")]
async fn inputs_and_commands_are_activity() {
    let home = tempfile::tempdir().unwrap();
    let (model, gate) = GatedModel::new(ScriptedModel::from_json(r#"["Yes.", "Never."]"#).unwrap());
    let runtime = open_with(builder(&home).model(model)).await;
    gate.open();
    let [session] = talked(&runtime, ["a"]).await;
    gate.reached().await;
    let entry = entry(&runtime, "a").await;
    let quiet_before = |act: &'static str| {
        std::thread::sleep(Duration::from_millis(2));
        let clock = ClockReading::now();
        assert!(quiet(&runtime, &entry, clock) > Duration::ZERO, "{act}");
        clock
    };

    let clock = quiet_before("a command");
    session.touch();
    assert_eq!(quiet(&runtime, &entry, clock), Duration::ZERO);

    let clock = quiet_before("from another process");
    let elsewhere = journal(&home).await;
    put(&*elsewhere, entry.id, InboxRecord::Input(input()).encode()).await.unwrap();
    gate.reached().await;
    assert_eq!(quiet(&runtime, &entry, clock), Duration::ZERO);

    let clock = quiet_before("an input");
    session.put(input(), None).await.unwrap();
    assert_eq!(quiet(&runtime, &entry, clock), Duration::ZERO);
    runtime.shutdown().await.unwrap();
    elsewhere.close().await;
}

/// Y3: sessions not seen since the start count by their last record.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_an_earlier_process_is_looked_at() {
    let home = tempfile::tempdir().unwrap();
    let first = open(&home).await;
    talked(&first, ["a"]).await;
    first.shutdown().await.unwrap();
    let second = open(&home).await;
    let (jobs, mut calls) = job(|_| nothing());

    start(&second, &jobs).await;

    assert_eq!(calls.next().await, "a");
    second.shutdown().await.unwrap();
}

/// Starting the program does not spend money on everything that was ever left.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_was_not_active_for_more_than_a_week_is_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let first = open(&home).await;
    talked(&first, ["a"]).await;
    first.shutdown().await.unwrap();
    let second = open(&home).await;
    let entry = entry(&second, "a").await;
    let after = |milliseconds: i64| {
        let wall = At(entry.last_at.unwrap().0 + milliseconds);
        idleness(&second.0, &entry, ClockReading { wall, ..ClockReading::now() })
    };
    let week = i64::try_from(EXTRACT_WITHIN.as_millis()).unwrap();

    assert_eq!([after(10), after(11)], [Idleness::Active, Idleness::Idle]);
    assert_eq!([after(week), after(week + 1)], [Idleness::Idle, Idleness::Dormant]);
    second.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_was_put_away_is_not_looked_at() {
    let home = tempfile::tempdir().unwrap();
    let runtime = open(&home).await;
    let [away, _] = talked(&runtime, ["a", "b"]).await;
    let trashed = NamesRecord::Trashed(SessionTrashed { id: away.id().unwrap() }).encode();
    runtime.journal().append(Append::to(&StreamName::names()).record(trashed)).await.unwrap();
    let (jobs, mut calls) = job(|_| nothing());

    start(&runtime, &jobs).await;

    assert_eq!(calls.next().await, "b");
    checks(&runtime, 3).await;
    assert_eq!(calls.so_far(), Vec::<String>::new());
    runtime.shutdown().await.unwrap();
}

/// Y4: one session's failure is told with its key, once, is tried again, and stops neither the worker nor the sweep.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_fails_is_told_once_and_tried_again_and_the_others_are_looked_at() {
    let home = tempfile::tempdir().unwrap();
    let runtime = open(&home).await;
    talked(&runtime, ["a", "b", "c"]).await;
    let (jobs, mut calls) = job(|key| match key {
        "a" => failure(),
        "b" => Box::pin(async { panic!("made up") }),
        _ => nothing(),
    });
    let mut watcher = runtime.watch();

    start(&runtime, &jobs).await;
    let mut seen = Vec::new();
    let count = |seen: &[String], key| seen.iter().filter(|seen| *seen == key).count();
    while count(&seen, "a") < 4 || count(&seen, "b") < 4 {
        seen.push(calls.next().await);
    }
    runtime.stop_idle().await;

    assert_eq!(count(&seen, "c"), 1);
    let mut told = warnings(&mut watcher);
    told.sort();
    let failed = |key: &str| (key.to_owned(), "idle_failed".to_owned());
    assert_eq!(told, [failed("a"), failed("b")]);
    runtime.shutdown().await.unwrap();
}

/// A slow job holds up neither the checks nor the others; but not everything is done at once.
#[tokio::test(flavor = "multi_thread")]
async fn at_most_four_sessions_are_looked_at_side_by_side_and_none_twice() {
    let home = tempfile::tempdir().unwrap();
    let runtime = open(&home).await;
    talked(&runtime, ["a", "b", "c", "d", "e", "f"]).await;
    let at_work = Arc::new(AtomicUsize::new(0));
    let (count, gate) = (at_work.clone(), Arc::new(tokio::sync::Semaphore::new(0)));
    let opened = gate.clone();
    let (jobs, mut calls) = job(move |key| {
        let (is_slow, count, gate) = (key < "e", count.clone(), opened.clone());
        assert!(count.fetch_add(1, Ordering::SeqCst) < 4);
        Box::pin(async move {
            if is_slow {
                gate.acquire().await.unwrap().forget();
            }
            count.fetch_sub(1, Ordering::SeqCst);
            Ok(true)
        })
    });
    let mut watcher = runtime.watch();

    start(&runtime, &jobs).await;
    let mut first = [calls.next().await, calls.next().await, calls.next().await, calls.next().await];
    first.sort();
    checks(&runtime, 5).await;
    let meanwhile = calls.so_far();
    gate.add_permits(1);
    let then = [calls.next().await, calls.next().await];
    checks(&runtime, 5).await;

    assert_eq!((first, meanwhile), (["a", "b", "c", "d"].map(str::to_owned), vec![]));
    assert_eq!(then, ["e", "f"].map(str::to_owned));
    assert_eq!((calls.so_far(), warnings(&mut watcher)), (vec![], vec![]));
    assert_eq!(at_work.load(Ordering::SeqCst), 3);
    runtime.shutdown().await.unwrap();
}

/// Tells that it was dropped.
struct Cut(Arc<AtomicUsize>);

impl Drop for Cut {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A job that never ends, and how often it was cut.
fn endless() -> (Arc<[SessionJob]>, Calls, Arc<AtomicUsize>) {
    let cuts = Arc::new(AtomicUsize::new(0));
    let counted = cuts.clone();
    let (jobs, calls) = job(move |_| {
        let cut = Cut(counted.clone());
        Box::pin(async move {
            let _cut = cut;
            never().await
        })
    });
    (jobs, calls, cuts)
}

/// Y4: it stops at once, a job in flight is cut, and it can be started again.
#[tokio::test(flavor = "multi_thread")]
async fn stopping_cuts_a_job_in_flight_and_a_new_start_begins_it_again() {
    let home = tempfile::tempdir().unwrap();
    let runtime = open(&home).await;
    talked(&runtime, ["a"]).await;
    let (jobs, mut calls, cuts) = endless();
    start(&runtime, &jobs).await;
    calls.next().await;

    runtime.stop_idle().await;

    assert_eq!((cuts.load(Ordering::SeqCst), runtime.idle_status().running), (1, false));
    start(&runtime, &jobs).await;
    assert!(runtime.idle_status().running);
    assert_eq!(calls.next().await, "a");
    runtime.shutdown().await.unwrap();
}

/// Y4: it is gone before `shutdown` returns.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_it_after_the_end() {
    let home = tempfile::tempdir().unwrap();
    let runtime = open(&home).await;
    talked(&runtime, ["a"]).await;
    let (jobs, mut calls, cuts) = endless();
    start(&runtime, &jobs).await;
    calls.next().await;

    runtime.shutdown().await.unwrap();

    assert_eq!((cuts.load(Ordering::SeqCst), runtime.idle_status().running), (1, false));
    assert_eq!(Arc::strong_count(&jobs), 1);
}

/// Y4: once.
#[tokio::test(flavor = "multi_thread")]
async fn there_are_never_two_however_it_is_started_and_stopped() {
    let home = tempfile::tempdir().unwrap();
    let runtime = open(&home).await;
    talked(&runtime, ["a"]).await;
    let (jobs, mut calls, cuts) = endless();
    let mut turns = tokio::task::JoinSet::new();
    for number in 0..60 {
        let (runtime, jobs) = (runtime.clone(), jobs.clone());
        turns.spawn(async move {
            match number % 3 {
                0 => runtime.stop_idle().await,
                _ => start(&runtime, &jobs).await,
            }
        });
    }
    turns.join_all().await;
    start(&runtime, &jobs).await;

    let mut begun = 0;
    while begun <= cuts.load(Ordering::SeqCst) {
        calls.next().await;
        begun += 1;
    }
    checks(&runtime, 5).await;

    begun += calls.so_far().len();
    assert_eq!(begun - cuts.load(Ordering::SeqCst), 1);
    runtime.shutdown().await.unwrap();
}

/// Another runtime of this process has the session: only the lease tells, to whoever asks for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_finds_that_another_has_the_session_has_not_failed() {
    let home = tempfile::tempdir().unwrap();
    let runtime = open(&home).await;
    talked(&runtime, ["a"]).await;
    let (jobs, mut calls) =
        job(|_| Box::pin(async { Err(WorkerStop::TakenOver(longhaul_journal::Error::Closed)) }));
    let mut watcher = runtime.watch();

    start(&runtime, &jobs).await;
    for _ in 0..5 {
        calls.next().await;
    }

    assert_eq!(warnings(&mut watcher), []);
    runtime.shutdown().await.unwrap();
}

#[test]
#[ignore = "a part that another process plays: it holds a session until its input ends"]
fn holder_process() {
    let Some(home) = std::env::var_os(HOME_OF_HOLDER) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let journal = SqliteJournal::open(&Home::create(home.as_ref()).unwrap()).await.unwrap();
        let id: SessionId = journal.session("a").await.unwrap().unwrap().id;
        let lease = journal.acquire_lease(&StreamName::session(id)).await.unwrap();
        println!("\nheld");
        std::io::stdin().lines().for_each(drop);
        journal.release_lease(&lease).await.unwrap();
    });
}

/// A session that another process holds is left alone, without a word, and looked at when it is free.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_another_process_holds_is_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let first = open(&home).await;
    talked(&first, ["a"]).await;
    first.shutdown().await.unwrap();
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", "--nocapture", "housekeeping::idle::tests::holder_process"])
        .env(HOME_OF_HOLDER, home.path().join("home"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(holder.stdout.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap() == "held"));
    let second = open(&home).await;
    let (jobs, mut calls) = job(|_| nothing());
    let mut watcher = second.watch();

    start(&second, &jobs).await;
    checks(&second, 10).await;

    assert_eq!((calls.so_far(), warnings(&mut watcher)), (vec![], vec![]));
    drop(holder.stdin.take());
    holder.wait().unwrap();
    assert_eq!(calls.next().await, "a");
    second.shutdown().await.unwrap();
}

/// Each job is done, also where the one before it fails.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_fails_keeps_no_other_from_being_done() {
    let home = tempfile::tempdir().unwrap();
    let runtime = open(&home).await;
    talked(&runtime, ["a"]).await;
    let (called, mut calls) = mpsc::unbounded_channel();
    let fails: SessionJobFn = Box::new(|_, _, _| failure());
    let works: SessionJobFn = Box::new(move |_, _, _| {
        let _ = called.send(());
        nothing()
    });

    let jobs: Arc<[SessionJob]> =
        [fails, works].into_iter().map(|act| SessionJob { within: EXTRACT_WITHIN, run: act }).collect();
    start(&runtime, &jobs).await;

    tokio::time::timeout(TEST_TIMEOUT, calls.recv()).await.unwrap().unwrap();
    runtime.shutdown().await.unwrap();
}
