//! S5: what is put away, what goes for good, and what stays.

use std::fs::{File, FileTimes};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use longhaul_agent::config::SessionSettings;
use longhaul_agent::housekeeping::{PruneMode, PruneReason, Pruning, prune};
use longhaul_agent::keeper::{Launcher, Tasks};
use longhaul_journal::{
    Journal, SessionEntry, SqliteJournal, name_session, pin_session, put, resolve, trash_session,
};
use longhaul_protocol::{At, InboxRecord, StreamName};
use longhaul_testkit::{RecordingModel, TestHome};
use serde_json::json;

use crate::{eventually, open, said, script};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

fn days_from_now(days: i64) -> At {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    At(i64::try_from(now).unwrap() + days * DAY_MS)
}

/// Sessions with these keys, the newest last, each with one turn.
async fn with_sessions(place: &TestHome, keys: &[&str]) {
    let runtime = open(place, RecordingModel::new(script(&json!(["Done."])))).await;
    for key in keys {
        runtime.session(key).await.unwrap().send("hello").await.unwrap();
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    runtime.shutdown().await.unwrap();
}

fn gone(pruning: &Pruning) -> Vec<(&str, PruneReason, bool)> {
    pruning.sessions.iter().map(|session| (session.key.as_str(), session.reason, session.deleted)).collect()
}

async fn pruned(
    place: &TestHome,
    journal: &SqliteJournal,
    settings: &SessionSettings,
    days: i64,
    mode: PruneMode,
) -> Pruning {
    prune(journal, &place.home(), settings, days_from_now(days), mode).await.unwrap()
}

fn keep(keep: u64) -> SessionSettings {
    SessionSettings { keep, ..SessionSettings::default() }
}

/// S5: off until set; then the oldest go to the trash, and for good after two weeks there.
#[tokio::test(flavor = "multi_thread")]
async fn old_sessions_go_to_the_trash_and_from_there_after_two_weeks() {
    let place = TestHome::new();
    with_sessions(&place, &["a", "b", "c"]).await;
    let journal = place.journal().await;
    let off = SessionSettings::default();

    let untouched = pruned(&place, &journal, &off, 1_000, PruneMode::ForReal).await;
    let said = pruned(&place, &journal, &keep(2), 0, PruneMode::DryRun).await;
    let still = resolve(&*journal, "a").await.unwrap();
    let done = pruned(&place, &journal, &keep(2), 0, PruneMode::ForReal).await;
    let again = pruned(&place, &journal, &keep(2), 13, PruneMode::ForReal).await;
    let trashed = resolve(&*journal, "a").await.unwrap();
    let later = pruned(&place, &journal, &keep(2), 15, PruneMode::ForReal).await;

    assert_eq!(untouched, Pruning::default());
    assert_eq!(gone(&said), [("a", PruneReason::TooMany, false)]);
    assert!(said.sessions[0].bytes > 100, "{said:?}");
    assert!(!still.trashed, "a dry run changes nothing");
    assert_eq!(done, said, "what was said is what is done");
    assert_eq!(again, Pruning::default());
    assert!(trashed.trashed);
    assert_eq!(gone(&later), [("a", PruneReason::InTrash, true)]);
    assert_eq!(journal.session("a").await.unwrap(), None);
    assert_eq!(
        journal.streams().await.unwrap().len(),
        2 + 2 * 2,
        "names, the ledger, and two streams for each that is left"
    );
    assert!(journal.verify().await.unwrap().is_sound());
}

/// S5: a session goes with its subagents, into the trash and for good, and nothing of their prompts stays.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_with_its_subagents() {
    let place = TestHome::new();
    let call = json!({"calls": [{"name": "agent", "arguments": {"prompt": "Count the osprey files."}}]});
    let model = crate::subagents::scripts([("osprey", json!(["One."])), ("go", json!([call, "Done."]))]);
    let runtime = open(&place, model).await;
    runtime.session("a").await.unwrap().send("go").await.unwrap();
    runtime.shutdown().await.unwrap();
    with_sessions(&place, &["b"]).await;
    let journal = place.journal().await;
    let a = resolve(&*journal, "a").await.unwrap().id;
    let child = longhaul_agent::subagent_sessions(&*journal, a).await.unwrap().remove(0).key;

    let enough = pruned(&place, &journal, &keep(2), 0, PruneMode::ForReal).await;
    let done = pruned(&place, &journal, &keep(1), 0, PruneMode::ForReal).await;
    let later = pruned(&place, &journal, &keep(1), 15, PruneMode::ForReal).await;

    assert_eq!(gone(&enough), [], "it counts as one");
    assert_eq!(
        gone(&done),
        [("a", PruneReason::TooMany, false), (child.as_str(), PruneReason::TooMany, false)]
    );
    assert!(later.sessions.iter().all(|session| session.deleted) && !later.sessions.is_empty(), "{later:?}");
    assert_eq!(journal.session(&child).await.unwrap(), None);
    let streams = journal.streams().await.unwrap();
    assert!(!streams.contains(&StreamName::tree(a)), "{streams:?}");
    assert!(journal.verify().await.unwrap().is_sound());
}

/// A session with one subagent, and the journal of its home, in which no runtime works.
async fn session_with_subagent(place: &TestHome, prompt: &'static str) -> (Arc<SqliteJournal>, SessionEntry) {
    let call = json!({"calls": [{"name": "agent", "arguments": {"prompt": prompt}}]});
    let model = crate::subagents::scripts([(prompt, json!(["One."])), ("go", json!([call, "Done."]))]);
    let runtime = open(place, model).await;
    runtime.session("a").await.unwrap().send("go").await.unwrap();
    runtime.shutdown().await.unwrap();
    let journal = place.journal().await;
    let a = resolve(&*journal, "a").await.unwrap().id;
    let child = longhaul_agent::subagent_sessions(&*journal, a).await.unwrap().remove(0);
    (journal, child)
}

/// S3: while a process works on a subagent, its tree stays as it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_whose_subagent_is_at_work_stays_with_it() {
    let place = TestHome::new();
    let (journal, child) = session_with_subagent(&place, "Count.").await;
    let lease = journal.acquire_lease(&StreamName::session(child.id)).await.unwrap();

    let trashed = longhaul_agent::trash_tree(&*journal, "a").await;
    let deleted = longhaul_agent::delete_tree(&*journal, "a").await;

    assert!(trashed.unwrap_err().to_string().contains(&child.key));
    assert!(deleted.unwrap_err().to_string().contains(&child.key));
    for key in ["a", &child.key] {
        assert!(!resolve(&*journal, key).await.unwrap().trashed, "{key}");
    }
    journal.release_lease(&lease).await.unwrap();
    assert_eq!(longhaul_agent::delete_tree(&*journal, "a").await.unwrap().subagents, [child.id]);
}

/// J4: a subagent whose records are damaged can be deleted with its parent, and does not hide the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_with_a_damaged_subagent_is_listed_and_deleted() {
    let place = TestHome::new();
    let (journal, child) = session_with_subagent(&place, "Count.").await;
    journal.close().await;
    drop(journal);
    let file = place.home().join("journal.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let answer = b"\"One.\"";
    let found: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(answer)).collect();
    assert!(!found.is_empty());
    found.into_iter().for_each(|at| bytes[at + 1] = b'0');
    std::fs::write(&file, bytes).unwrap();
    let journal = place.journal().await;

    let listed = longhaul_agent::list_subagents(&*journal, None).await.unwrap();
    let deleted = longhaul_agent::delete_tree(&*journal, "a").await.unwrap();

    assert_eq!(listed[0].status, longhaul_protocol::TaskStatus::Lost);
    assert!(listed[0].message.as_deref().unwrap_or_default().contains("damaged"), "{:?}", listed[0].message);
    assert_eq!(deleted.subagents, [child.id]);
}

/// S5: neither what is pinned, nor what is at work, nor the newest.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_pinned_at_work_or_newest_is_never_touched() {
    let place = TestHome::new();
    with_sessions(&place, &["pinned", "held", "waiting", "plain", "newest"]).await;
    let journal = place.journal().await;
    pin_session(&*journal, "pinned").await.unwrap();
    let held = resolve(&*journal, "held").await.unwrap().id;
    let lease = journal.acquire_lease(&StreamName::session(held)).await.unwrap();
    let waiting = resolve(&*journal, "waiting").await.unwrap().id;
    put(&*journal, waiting, InboxRecord::Input(said("later")).encode()).await.unwrap();
    let tight = SessionSettings { keep: 1, max_age_days: 1, max_bytes: 1, ..SessionSettings::default() };

    let done = pruned(&place, &journal, &tight, 500, PruneMode::ForReal).await;

    assert_eq!(gone(&done), [("plain", PruneReason::TooOld, false)]);
    journal.release_lease(&lease).await.unwrap();
    trash_session(&*journal, "pinned").await.unwrap();
    let later = pruned(&place, &journal, &SessionSettings::default(), 900, PruneMode::ForReal).await;
    assert_eq!(gone(&later), [("plain", PruneReason::InTrash, true)], "a pin holds in the trash too");
}

/// S5: an open turn and a running task are work, whoever began them and died.
#[tokio::test(flavor = "multi_thread")]
async fn an_open_turn_and_a_running_task_keep_their_session() {
    let place = TestHome::new();
    let command = "while [ ! -e go ]; do sleep 0.02; done";
    let task = json!({"command": command, "description": "waits", "run_in_background": true});
    let call = |arguments| json!({"calls": [{"name": "exec", "arguments": arguments}]});
    let first = open(&place, RecordingModel::new(script(&json!([call(task), "Started."])))).await;
    first.session("with-task").await.unwrap().send("go").await.unwrap();
    first.shutdown().await.unwrap();
    let second =
        open(&place, RecordingModel::new(script(&json!([call(json!({"command": command})), "Over."])))).await;
    let session = second.session("with-turn").await.unwrap();
    let sending = crate::sends(&session, "go");
    eventually("the command runs", || async {
        let turn = session.state().await.unwrap().turn;
        turn.is_some_and(|turn| turn.calls.iter().any(longhaul_agent::session::CallState::is_open))
    })
    .await;
    second.shutdown().await.unwrap();
    let _ = sending.await;
    with_sessions(&place, &["newest"]).await;
    let journal = place.journal().await;

    let done = pruned(&place, &journal, &keep(1), 0, PruneMode::ForReal).await;

    assert_eq!(gone(&done), []);
    trash_session(&*journal, "with-task").await.unwrap();
    let later = pruned(&place, &journal, &SessionSettings::default(), 900, PruneMode::ForReal).await;
    assert_eq!(gone(&later), [], "a command that runs keeps its session in the trash");
    // Whatever the assertion says of them, the commands end before their folder goes.
    std::fs::write(place.work().join("go"), "").unwrap();
    let launcher = Launcher::new("nothing", ["is launched"]);
    let tasks = Tasks::existing(&place.home().join("tasks"), launcher).unwrap().unwrap();
    eventually("the commands end", || async {
        tasks.all().unwrap().into_iter().all(|id| !tasks.is_kept(id).unwrap())
    })
    .await;
    let later = pruned(&place, &journal, &SessionSettings::default(), 900, PruneMode::ForReal).await;
    assert_eq!(gone(&later), [("with-task", PruneReason::InTrash, true)]);
}

/// S5, K15: whoever deleted the session for good could not find the task any more.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_left_running_keeps_its_session_in_the_trash() {
    let place = TestHome::new();
    let command = "(while [ ! -e go ]; do sleep 0.02; done) > /dev/null 2>&1 &";
    let leaving = json!({"calls": [{"name": "exec", "arguments": {"command": command}}]});
    let runtime = open(&place, RecordingModel::new(script(&json!([leaving, "Left."])))).await;
    runtime.session("leaves").await.unwrap().send("go").await.unwrap();
    runtime.shutdown().await.unwrap();
    let journal = place.journal().await;
    trash_session(&*journal, "leaves").await.unwrap();

    let while_it_runs = pruned(&place, &journal, &SessionSettings::default(), 900, PruneMode::ForReal).await;
    std::fs::write(place.work().join("go"), "").unwrap();
    let tasks = Tasks::existing(&place.home().join("tasks"), Launcher::new("nothing", ["is launched"]));
    let tasks = tasks.unwrap().unwrap();
    eventually("it ends", || async {
        tasks.all().unwrap().into_iter().all(|id| !tasks.is_kept(id).unwrap())
    })
    .await;
    let later = pruned(&place, &journal, &SessionSettings::default(), 900, PruneMode::ForReal).await;

    assert_eq!(gone(&while_it_runs), []);
    assert_eq!(gone(&later), [("leaves", PruneReason::InTrash, true)]);
}

/// S2, S5: what nobody can have any use for goes always.
#[tokio::test(flavor = "multi_thread")]
async fn temporary_files_and_sessions_without_anything_go_after_a_day() {
    let place = TestHome::new();
    with_sessions(&place, &["a"]).await;
    let journal = place.journal().await;
    name_session(&*journal, "nothing").await.unwrap();
    let path = |name: &str| place.home().join(name);
    ["memory/agent-x", "cache"].iter().for_each(|name| std::fs::create_dir_all(path(name)).unwrap());
    let stale = [
        "config.toml.17-1.partial",
        "cache/search.db.17-2.partial-wal",
        "memory/agent-x/page.md.17-3.partial",
    ];
    for name in stale.into_iter().chain(["new.17-4.partial", "notes.partial.md"]) {
        std::fs::write(path(name), "half").unwrap();
    }
    let two_days_ago = SystemTime::now() - Duration::from_secs(2 * 24 * 60 * 60);
    for name in stale.into_iter().chain(["notes.partial.md"]) {
        let file = File::options().write(true).open(path(name)).unwrap();
        file.set_times(FileTimes::new().set_modified(two_days_ago)).unwrap();
    }
    let off = SessionSettings::default();

    let young = pruned(&place, &journal, &off, 0, PruneMode::DryRun).await;
    let done = pruned(&place, &journal, &off, 2, PruneMode::ForReal).await;

    assert_eq!(gone(&young), []);
    assert_eq!((young.files.len(), done.files.len()), (3, 3), "{:?}", done.files);
    assert_eq!(gone(&done), [("nothing", PruneReason::Empty, true)]);
    assert!(stale.iter().all(|name| !path(name).exists()));
    assert!(path("new.17-4.partial").exists() && path("notes.partial.md").exists());
}

/// S5: in the background, at most daily, also across restarts.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_put_away_in_the_background_once_a_day() {
    let place = TestHome::new();
    with_sessions(&place, &["a", "b", "c"]).await;
    let start = async || {
        let mut config = place.config();
        config.settings.sessions.keep = 2;
        config.settings.memory.extract_at_tokens = 0;
        let model = RecordingModel::new(script(&json!(["Done."])));
        let runtime = longhaul_agent::Runtime::with_model(config, model).await.unwrap();
        runtime.set_check_interval(Duration::from_millis(5));
        runtime.start().await.unwrap();
        runtime
    };
    let journal = place.journal().await;
    let is_trashed = async |key: &str| resolve(&*journal, key).await.unwrap().trashed;

    let yesterday = || {
        let mark = File::options().write(true).open(place.home().join("cache/pruned")).unwrap();
        let yesterday = SystemTime::now() - Duration::from_secs(25 * 60 * 60);
        mark.set_times(FileTimes::new().set_modified(yesterday)).unwrap();
    };
    // A session that a job of an idle session looks at in that moment stays for a day.
    let put_away = async |key: &str| {
        for _ in 0..20 {
            let runtime = start().await;
            let deadline = Instant::now() + Duration::from_secs(3);
            while !is_trashed(key).await && Instant::now() < deadline {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            runtime.shutdown().await.unwrap();
            if is_trashed(key).await {
                return;
            }
            yesterday();
        }
        panic!("{key} stays");
    };

    put_away("a").await;
    with_sessions(&place, &["d"]).await;
    let second = start().await;
    tokio::time::sleep(Duration::from_millis(150)).await;
    let within_the_day = is_trashed("b").await;
    second.shutdown().await.unwrap();
    yesterday();
    put_away("b").await;

    assert!(!within_the_day);
    assert!(!is_trashed("c").await && !is_trashed("d").await);
}

/// S5: whoever still has a session open that was deleted is told, before anything is accepted that nobody would find.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_was_deleted_takes_nothing_any_more() {
    let place = TestHome::new();
    let runtime = open(&place, RecordingModel::new(script(&json!(["One.", "Two."])))).await;
    let session = runtime.session("a").await.unwrap();
    session.send("first").await.unwrap();
    let journal = place.journal().await;
    eventually("nobody works at it any more", || async {
        longhaul_journal::delete_session(&*journal, "a").await.is_ok()
    })
    .await;

    let sent = session.send("second").await.unwrap_err();
    let put = session.put(said("second"), None).await.unwrap_err();

    assert!(sent.to_string().contains("no session \"a\""), "{sent}");
    assert!(put.to_string().contains("no session \"a\""), "{put}");
    runtime.shutdown().await.unwrap();
    let report = journal.verify().await.unwrap();
    assert!(report.is_sound() && report.unnamed.is_empty(), "{report:?}");
}
