//! Kill anywhere, in process: a reference turn is stopped at each of its appends, before and after it is on disk, and a fresh
//! runtime goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use longhaul_agent::RuntimeBuilder;
use longhaul_journal::Journal;
use longhaul_protocol::{CommandReport, Effect, Input, InputId, JoinMode, Outcome, Record, SessionRecord};
use longhaul_testkit::broken_rules;
use longhaul_testkit::{
    Crash, CrashMoment, FaultyJournal, RecordingModel, TestHome, collect_until, ended_turn, records_of,
};
use longhaul_tools::Tool;
use serde_json::{Value, json};

use crate::script;
use crate::tool_calls::{Does, Odd};

/// Every effect, in fourteen steps.
fn reference_turn() -> Value {
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    json!([
        {"text": "A plan.", "calls": [call("todo", json!({"items": [{"text": "build", "status": "in_progress"}]}))]},
        {"calls": [call("write_file", json!({"path": "a.txt", "content": "one\n"}))]},
        {"calls": [call("read_file", json!({"path": "a.txt"})), call("list_files", json!({}))]},
        {"calls": [call("edit_file", json!({"path": "a.txt", "edits": [{"old": "one", "new": "two"}]}))]},
        {"calls": [call("exec", json!({"command": "echo run >> log.txt; cat a.txt"}))]},
        {"calls": [call("launch", json!({}))]},
        {"calls": [call("find_files", json!({"pattern": "*.txt"})), call("search_text", json!({"pattern": "two"}))]},
        {"calls": [call("write_file", json!({"path": "sub/b.txt", "content": "b\n"}))]},
        {"calls": [call("exec", json!({"command": "sleep 0.05; echo slow >> log.txt; exit 3"}))]},
        {"calls": [
            call("write_file", json!({"path": "c.txt", "content": "c\n"})),
            call("exec", json!({"command": "cat c.txt >> log.txt"})),
        ]},
        {"reasoning": "hm", "text": "Let me see.", "calls": [call("read_file", json!({"path": "missing"}))]},
        {"calls": [call("edit_file", json!({"path": "sub/b.txt", "edits": [{"old": "b", "new": "bb"}]}))]},
        {"calls": [call("todo", json!({"items": [{"text": "build", "status": "done"}]}))]},
        "All done.",
    ])
}

/// What a crash at a boundary comes to.
#[derive(Debug, PartialEq, Eq)]
enum Expected {
    /// Nobody can see that there was a crash.
    Same,
    /// The answer ends with the calls that were complete, which are run; the model did not get to ask for these.
    Cut(Vec<String>),
    /// The launch may or may not have happened, and the model is told so. It happened so many times.
    Told { launches: usize },
}

/// The table. For every other boundary the end is the same: what is on disk is not done again, what is not is done.
fn expected(appends: &[Vec<String>], crash: Crash) -> Expected {
    let durable = match crash.when {
        CrashMoment::Before => crash.append - 1,
        CrashMoment::After => crash.append,
    };
    let last = appends[crash.append - 1].last().map(String::as_str);
    match (last, crash.when) {
        (Some("tool_started launch"), CrashMoment::After) => Expected::Told { launches: 0 },
        (Some("tool_finished launch"), CrashMoment::Before) => Expected::Told { launches: 1 },
        _ if calls(appends[..durable].iter().rev(), "attempt_started").is_empty() => Expected::Same,
        _ => match calls(appends[durable..].iter(), "attempt_ended") {
            lost if lost.is_empty() => Expected::Same,
            lost => Expected::Cut(lost),
        },
    }
}

/// The calls that an answer asks for, in these appends, up to one with a record of this kind.
fn calls<'a>(appends: impl Iterator<Item = &'a Vec<String>>, end: &str) -> Vec<String> {
    let part =
        appends.take_while(|append| !append.iter().any(|record| record == end || record == "attempt_ended"));
    part.flatten().filter_map(|record| record.strip_prefix("block ")).map(str::to_owned).collect()
}

/// What can be seen of a session and its folder when the turn is over.
#[derive(Debug, PartialEq, Eq)]
struct End {
    text: String,
    results: Vec<(String, Value)>,
    todo: Vec<String>,
    files: Vec<String>,
    launches: usize,
}

struct Run {
    appends: Vec<Vec<String>>,
    crashed: bool,
}

fn tokio_runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn builder(place: &TestHome, launches: &Arc<AtomicUsize>) -> RuntimeBuilder {
    let launch: Arc<dyn Tool> = Odd::new("launch", Effect::Unknown, Does::Count(launches.clone()));
    RuntimeBuilder::new(place.config()).model(RecordingModel::new(script(&reference_turn()))).tools([launch])
}

/// The turn, up to its end or to the crash.
fn run(place: &TestHome, launches: &Arc<AtomicUsize>, crash: Option<Crash>) -> Run {
    let tokio = tokio_runtime();
    let run = tokio.block_on(async {
        let journal = FaultyJournal::new(place.journal().await, crash);
        let runtime = builder(place, launches).journal(journal.clone()).open().await.unwrap();
        let session = runtime.session("a").await.unwrap();
        let mut watcher = session.watch();
        let input = Input::new(InputId::generate(), "go", JoinMode::Join);
        session.put(input, Some("once")).await.unwrap();
        tokio::select! {
            () = journal.crashed() => {}
            _ = collect_until(&mut watcher, ended_turn) => {}
        }
        journal.release_leases().await;
        Run { appends: journal.appends(), crashed: journal.has_crashed() }
    });
    // As if killed: nothing is told, nothing is waited for but what already runs on a thread.
    tokio.shutdown_timeout(Duration::from_secs(10));
    run
}

/// A fresh runtime goes on, and this is what there is in the end.
fn resume(place: &TestHome, launches: &Arc<AtomicUsize>) -> End {
    tokio_runtime().block_on(async {
        let runtime = builder(place, launches).open().await.unwrap();
        let session = runtime.session("a").await.unwrap();
        let mut watcher = session.watch();
        runtime.start().await.unwrap();
        // Looked at once: between two looks the turn may have begun.
        let state = session.state().await.unwrap();
        if state.turn.is_some() || state.turn_count == 0 {
            collect_until(&mut watcher, ended_turn).await;
        }
        let state = session.state().await.unwrap();
        runtime.shutdown().await.unwrap();
        let journal = place.journal().await;
        let records = records_of(&*journal, session.id().unwrap()).await;
        journal.close().await;
        assert_eq!(broken_rules(&records), Vec::<String>::new());
        End {
            text: final_text(&records),
            results: results(&records),
            todo: state.todo.iter().map(|todo| format!("{} {:?}", todo.text, todo.status)).collect(),
            files: ["a.txt", "sub/b.txt", "c.txt", "log.txt"].map(|name| place.file(name)).into(),
            launches: launches.load(Ordering::SeqCst),
        }
    })
}

fn final_text(records: &[Record]) -> String {
    match SessionRecord::decode(records.last().unwrap()).unwrap() {
        SessionRecord::TurnEnded(ended) if ended.outcome == Outcome::Completed => ended.text,
        other => panic!("{other:?}: {:#?}", crate::results(records)),
    }
}

/// Results without what differs from run to run.
fn results(records: &[Record]) -> Vec<(String, Value)> {
    let result = |(name, _, content): (String, bool, String)| match CommandReport::parse_to_json(&content) {
        Some(Value::Object(mut fields)) => {
            fields.remove("duration_ms");
            (name, Value::Object(fields))
        }
        _ => (name, Value::String(content)),
    };
    let mut results: Vec<_> = crate::results(records).into_iter().map(result).collect();
    // Reads that ran side by side may end in any order.
    results
        .sort_by(|one, other| one.0.cmp(&other.0).then_with(|| one.1.to_string().cmp(&other.1.to_string())));
    results
}

/// The end of the turn when nothing happens to it, and its appends.
fn undisturbed() -> (End, Vec<Vec<String>>) {
    let (place, launches) = (TestHome::in_memory(), Arc::default());
    let run = run(&place, &launches, None);
    assert!(!run.crashed);
    (resume(&place, &launches), run.appends)
}

/// T12, T13, DESIGN §6: the boundaries with this remainder, so that the table is played by several processes.
fn play(share: usize, of: usize) {
    let (undisturbed, appends) = undisturbed();
    assert_eq!(undisturbed.files[3], "run\nslow\nc\n");
    assert_eq!((undisturbed.launches, undisturbed.results.len()), (1, 16));
    for append in (1..=appends.len()).filter(|append| append % of == share) {
        for when in [CrashMoment::Before, CrashMoment::After] {
            let (place, launches) = (TestHome::in_memory(), Arc::default());
            let run = run(&place, &launches, Some(Crash { append, when }));
            assert!(run.crashed, "append {append} of {}", appends.len());
            let boundary = run.appends.last().unwrap().clone();

            let end = resume(&place, &launches);

            let context = format!("{when:?} append {append}: {boundary:?}");
            let untouched = |end: &End| (end.text.clone(), end.todo.clone(), end.files[..3].to_vec());
            match expected(&appends, Crash { append, when }) {
                Expected::Same => assert_eq!(end, undisturbed, "{context}"),
                Expected::Cut(lost) => {
                    let mut names: Vec<&String> = undisturbed.results.iter().map(|(name, _)| name).collect();
                    for name in &lost {
                        names.remove(names.iter().position(|known| *known == name).unwrap());
                    }
                    let run: Vec<&String> = end.results.iter().map(|(name, _)| name).collect();
                    assert_eq!((run, end.launches), (names, 1), "{context}");
                    assert_eq!(untouched(&end), untouched(&undisturbed), "{context}");
                    assert!(undisturbed.files[3].starts_with(&end.files[3]), "{context}");
                }
                Expected::Told { launches } => {
                    let unknown = |(_, result): &&(String, Value)| result.to_string().contains("unknown: ");
                    assert_eq!(
                        (end.results.iter().filter(unknown).count(), end.launches),
                        (1, launches),
                        "{context}"
                    );
                    assert_eq!(untouched(&end), untouched(&undisturbed), "{context}");
                    assert_eq!(end.files, undisturbed.files, "{context}");
                }
            }
        }
    }
}

#[test]
fn killed_at_any_boundary_a_turn_goes_on_first_third() {
    play(0, 3);
}

#[test]
fn killed_at_any_boundary_a_turn_goes_on_second_third() {
    play(1, 3);
}

#[test]
fn killed_at_any_boundary_a_turn_goes_on_last_third() {
    play(2, 3);
}

/// The table has the boundaries that it speaks of, and enough of them.
#[test]
fn the_reference_turn_has_every_effect() {
    let (_, appends) = undisturbed();

    let all: Vec<&str> = appends.iter().flatten().map(String::as_str).collect();
    for kind in [
        "turn_started",
        "block exec",
        "attempt_ended",
        "tool_started launch",
        "tool_started exec",
        "turn_ended",
    ] {
        assert!(all.contains(&kind), "{kind}");
    }
    assert!(appends.len() > 60 && all.iter().filter(|kind| **kind == "step_started").count() >= 12);
}
