//! K16: what commands leave behind goes a day after they have ended, and not before it is on record.

use std::fs::{File, FileTimes};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use longhaul_testkit::{RecordingModel, TestHome};
use serde_json::json;

use crate::{eventually, open, script, sound_records};

/// The folders of tasks.
fn task_folders(place: &TestHome) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place.home().join("tasks")).unwrap().flatten();
    let names = entries.map(|entry| entry.path());
    names.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("task_")).collect()
}

fn nobody_is_in(folder: &Path) -> bool {
    let folder = folder.canonicalize().unwrap();
    let mut processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.all(|process| std::fs::read_link(process.path().join("cwd")).map_or(true, |cwd| cwd != folder))
}

/// Makes it look as if a task had ended two days ago.
fn make_old(folder: &Path) {
    let status = folder.join("status.json");
    let mut fields: serde_json::Value = serde_json::from_slice(&std::fs::read(&status).unwrap()).unwrap();
    let two_days = 2 * 24 * 60 * 60 * 1000;
    fields["ended_at"] = json!(fields["ended_at"].as_i64().unwrap() - two_days);
    std::fs::write(&status, fields.to_string()).unwrap();
}

fn let_an_hour_pass(place: &TestHome) {
    let mark = File::options().write(true).open(place.home().join("cache/tidied"));
    if let Ok(mark) = mark {
        let earlier = SystemTime::now() - Duration::from_secs(2 * 60 * 60);
        mark.set_times(FileTimes::new().set_modified(earlier)).unwrap();
    }
}

/// K16
#[tokio::test(flavor = "multi_thread")]
async fn raw_files_go_a_day_after_the_end_and_what_is_on_record_stays() {
    let place = TestHome::new();
    let exec = |command: &str| json!({"calls": [{"name": "exec", "arguments": {"command": command}}]});
    let model =
        RecordingModel::new(script(&json!([exec("echo old; touch /tmp/x"), exec("echo new"), "Done."])));
    let runtime = open(&place, model).await;
    let session = runtime.session("a").await.unwrap();
    session.send("go").await.unwrap();
    let mut folders = task_folders(&place);
    folders.sort();
    // Keepers end a moment after their commands, and what they have open is removed the next time.
    for folder in &folders {
        eventually("its keeper has ended", || async { nobody_is_in(folder) }).await;
    }
    make_old(&folders[0]);

    runtime.tidy().await;

    assert_eq!(task_folders(&place), [folders[1].clone()]);
    let temporary = place.home().join("tmp").join(session.id().unwrap().to_string());
    assert!(temporary.is_dir(), "a command of the session is still there");
    make_old(&folders[1]);
    runtime.tidy().await;
    assert_eq!(task_folders(&place).len(), 1, "it was looked within the hour");
    let_an_hour_pass(&place);
    runtime.tidy().await;
    assert_eq!(task_folders(&place), Vec::<PathBuf>::new());
    assert!(temporary.is_dir(), "something was put there today");
    let two_days_ago = SystemTime::now() - Duration::from_secs(2 * 24 * 60 * 60);
    let inner = std::fs::read_dir(&temporary).unwrap().map(|entry| entry.unwrap().path());
    for folder in inner.chain([temporary.clone()]) {
        File::open(folder).unwrap().set_times(FileTimes::new().set_modified(two_days_ago)).unwrap();
    }
    let_an_hour_pass(&place);
    runtime.tidy().await;
    assert!(!temporary.exists());
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// K16, K9: an end that nobody was there to record is not removed, however long ago it came.
#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_is_not_on_record_is_kept() {
    let place = TestHome::new();
    let start =
        json!({"command": "while [ ! -e go ]; do sleep 0.02; done; echo built", "run_in_background": true});
    let answers = json!([{"calls": [{"name": "exec", "arguments": start}]}, "It runs.", "It is built."]);
    let first = open(&place, RecordingModel::new(script(&answers))).await;
    first.session("a").await.unwrap().send("go").await.unwrap();
    first.shutdown().await.unwrap();
    std::fs::write(place.work().join("go"), "").unwrap();
    let folder = task_folders(&place).remove(0);
    eventually("the command has ended", || async {
        folder.join("status.json").metadata().is_ok_and(|file| file.len() > 2)
    })
    .await;
    make_old(&folder);

    let second = open(&place, RecordingModel::new(script(&answers))).await;
    second.tidy().await;

    assert!(folder.exists());
    let session = second.session("a").await.unwrap();
    session.send("well?").await.unwrap();
    let state = session.state().await.unwrap();
    assert_eq!(state.tasks.all()[0].ended.as_ref().unwrap().tail, "built\n");
    second.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// K16: trouble with one file is no reason to remove what a running command works with.
#[tokio::test(flavor = "multi_thread")]
async fn the_temporary_files_of_a_session_stay_while_a_task_of_it_runs_whose_spec_is_unreadable() {
    let place = TestHome::new();
    let start = json!({"command": "while true; do sleep 1; done", "run_in_background": true});
    let answers = json!([{"calls": [{"name": "exec", "arguments": start}]}, "It runs."]);
    let runtime = open(&place, RecordingModel::new(script(&answers))).await;
    let session = runtime.session("a").await.unwrap();
    session.send("go").await.unwrap();
    let task = session.state().await.unwrap().tasks.all()[0].id();
    let file = place.home().join("tmp").join(session.id().unwrap().to_string()).join("needed.txt");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "").unwrap();
    std::fs::write(place.home().join("tasks").join(task.to_string()).join("spec.json"), "?").unwrap();

    runtime.tidy().await;

    assert!(file.exists(), "the command runs, and its temporary files are gone");
    session.kill_task(task).await.unwrap();
    runtime.shutdown().await.unwrap();
}

/// K16: a clock that was wrong once does not end the tidying for as long as it was wrong.
#[tokio::test(flavor = "multi_thread")]
async fn it_is_tidied_though_the_last_time_is_in_the_future() {
    let place = TestHome::new();
    let runtime = open(&place, RecordingModel::new(script(&json!([])))).await;
    let left = place.home().join("tmp").join(longhaul_protocol::SessionId::generate().to_string());
    std::fs::create_dir_all(&left).unwrap();
    let long_ago = SystemTime::now() - Duration::from_secs(2 * 24 * 60 * 60);
    File::open(&left).unwrap().set_modified(long_ago).unwrap();
    std::fs::create_dir_all(place.home().join("cache")).unwrap();
    let mark = File::create(place.home().join("cache/tidied")).unwrap();
    mark.set_modified(SystemTime::now() + Duration::from_secs(365 * 24 * 60 * 60)).unwrap();

    runtime.tidy().await;

    assert!(!left.exists(), "not before a year has passed");
    runtime.shutdown().await.unwrap();
}
