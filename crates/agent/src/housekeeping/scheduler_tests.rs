use std::path::PathBuf;

use longhaul_journal::{Error as JournalError, Home, SqliteJournal};
use longhaul_model::ScriptedModel;
use longhaul_testkit::FaultyJournal;
use tempfile::TempDir;

use super::*;
use crate::{Config, Runtime, RuntimeBuilder};

const INTERVAL: Duration = Duration::from_secs(30);

/// Y3: the first check comes one full interval after the start.
#[tokio::test(start_paused = true)]
async fn a_check_is_due_when_a_full_interval_has_passed() {
    let (_set, mut interval) = watch::channel(INTERVAL);
    let start = Instant::now();

    wait_interval(start, &mut interval).await;

    assert!(start.elapsed() >= INTERVAL && start.elapsed() < INTERVAL + Duration::from_millis(5));
}

/// Y3: the interval can change while running.
#[tokio::test(start_paused = true)]
async fn an_interval_that_is_changed_holds_for_the_wait_that_is_under_way() {
    for (changed, passes) in [(Duration::from_secs(3), 10), (Duration::from_secs(50), 50)] {
        let (set, mut interval) = watch::channel(INTERVAL);
        let start = Instant::now();
        let changing = async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            set.send_replace(changed);
            std::future::pending::<()>().await;
        };

        tokio::select! {
            () = wait_interval(start, &mut interval) => {}
            () = changing => {}
        }

        assert_eq!(start.elapsed().as_secs(), passes, "{changed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_interval_longer_than_a_clock_can_tell_is_waited_for_until_it_is_changed() {
    let (set, mut interval) = watch::channel(Duration::MAX);
    let start = Instant::now();
    let changing = async {
        tokio::time::sleep(INTERVAL).await;
        set.send_replace(Duration::from_secs(1));
        std::future::pending::<()>().await;
    };

    tokio::select! {
        () = wait_interval(start, &mut interval) => {}
        () = changing => {}
    }

    assert_eq!(start.elapsed().as_secs(), 30);
}

fn queued(id: SessionId) -> QueuedSession {
    QueuedSession { id, key: String::new(), at: Instant::now() }
}

/// Y3, Y4: sessions that talk much don't keep those that are idle from being looked at, nor the other way round.
#[test]
fn neither_busy_nor_idle_sessions_keep_the_others_waiting() {
    let mut queues = SessionQueues::default();
    let ids: Vec<SessionId> = (0..6).map(|_| SessionId::generate()).collect();
    queues.idle.extend(ids[..3].iter().copied().map(queued));
    ids[3..].iter().copied().map(queued).for_each(|queued| queues.push_after_turn(queued));

    let order: Vec<CheckReason> = std::iter::from_fn(|| queues.pop()).map(|(why, _)| why).collect();

    let pair = [CheckReason::TurnEnded, CheckReason::Idle];
    assert_eq!(order, [pair, pair, pair].concat());
}

#[test]
fn a_session_that_waits_is_not_queued_again() {
    let mut queues = SessionQueues::default();
    let (id, other) = (SessionId::generate(), SessionId::generate());

    [id, other, id, id].map(queued).into_iter().for_each(|queued| queues.push_after_turn(queued));

    let order: Vec<SessionId> = std::iter::from_fn(|| queues.pop()).map(|(_, queued)| queued.id).collect();
    assert_eq!(order, [id, other]);
}

/// A runtime that checks often, its journal, and the file that marks when a home job has last run.
async fn open_in(place: &TempDir, mark: &str) -> (Runtime, Arc<FaultyJournal>, PathBuf) {
    let home = place.path().join("home");
    let journal = SqliteJournal::open(&Home::create(&home).unwrap()).await.unwrap();
    let journal = FaultyJournal::new(Arc::new(journal), None);
    let config = Config::at(home.clone()).with_work_dir(place.path());
    let model = Arc::new(ScriptedModel::from_json("[]").unwrap());
    let runtime = RuntimeBuilder::new(config).model(model).journal(journal.clone()).open().await.unwrap();
    runtime.set_check_interval(Duration::from_millis(5));
    (runtime, journal, home.join(mark))
}

async fn wait_until(what: &str, is_met: impl Fn() -> bool) {
    let waiting = async {
        while !is_met() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.expect(what);
}

/// K16: who hosts a home removes the leftovers of commands, and nobody else does.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_cleans_up_by_itself() {
    let place = tempfile::tempdir().unwrap();
    let (runtime, _journal, mark) = open_in(&place, "cache/tidied").await;
    runtime.start_idle().await.unwrap();
    wait_until("there is no check", || runtime.idle_status().last_check.is_some()).await;
    let before_hosting = mark.exists();

    runtime.start().await.unwrap();

    wait_until("nothing was cleaned up", || mark.exists()).await;
    assert!(!before_hosting);
    runtime.shutdown().await.unwrap();
}

/// S5: an earlier check says nothing about whether the sessions can be listed now. Retention must not take up the
/// day in which it can do nothing.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_retention_waits_for_a_check_that_lists_the_sessions() {
    let place = tempfile::tempdir().unwrap();
    let (runtime, journal, mark) = open_in(&place, "cache/pruned").await;
    runtime.start_idle().await.unwrap();
    wait_until("there was no retention", || mark.exists()).await;
    runtime.stop_idle().await;
    std::fs::remove_file(&mark).unwrap();

    journal.refuse_listings(Some(JournalError::DiskFull { path: "journal.db".into() }));
    runtime.start_idle().await.unwrap();
    wait_until("there is no check", || runtime.idle_status().trouble.is_some()).await;
    runtime.shutdown().await.unwrap();

    assert!(!mark.exists(), "the day is claimed");
}
