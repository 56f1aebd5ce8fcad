//! S4: sessions that begin with the past of another.

use std::sync::Arc;

use longhaul_agent::Error;
use longhaul_agent::fork::{ForkRequestKey, fork_session, fork_session_once};
use longhaul_agent::session::{State, load};
use longhaul_journal::{
    Append, Error as JournalError, Journal, SqliteJournal, all_sessions, delete_session, name_session,
    resolve,
};
use longhaul_memory::extracted_through;
use longhaul_protocol::{ExtractRecord, Extracted, Hash, Outcome, Record, SessionRecord, StreamName};
use longhaul_testkit::{
    Crash, CrashMoment, FaultyJournal, RecordingModel, TestHome, broken_rules, records_of,
};
use serde_json::{Value, json};

use crate::compaction::{config, open as open_with, summary, text, texts};
use crate::{eventually, open, results, script, sends};

fn exec(command: &str) -> Value {
    json!({"calls": [{"name": "exec", "arguments": {"command": command}}]})
}

fn kinds(records: &[Record]) -> Vec<&str> {
    records.iter().map(|record| record.kind.as_str()).collect()
}

/// The state of the session with this key, which nothing is left to do in.
async fn state_at_rest(journal: &dyn Journal, key: &str) -> State {
    let entry = resolve(journal, key).await.unwrap();
    let state = load(journal, key, entry.id).await.unwrap();
    assert!(
        state.turn.is_none() && state.pending_inputs.is_empty() && state.turn_request.is_none(),
        "{key}: {state:?}"
    );
    assert!(state.questions.is_empty() && state.tasks.are_settled(), "{key}: {state:?}");
    assert!(
        state.compaction.open_reason.is_none() && state.compaction.requested.is_none(),
        "{key}: {state:?}"
    );
    assert_eq!((state.inbox_through, entry.inbox_head), (0, 0), "{key}");
    state
}

async fn is_sound(journal: &SqliteJournal) {
    let report = journal.verify().await.unwrap();
    assert!(report.is_sound() && report.unnamed.is_empty(), "{report:?}");
}

/// S4: the fork goes on from the parent's context, byte for byte, and the parent is as it was.
#[tokio::test(flavor = "multi_thread")]
async fn a_fork_goes_on_with_the_context_of_its_parent() {
    let place = TestHome::new();
    let model =
        RecordingModel::new(script(&json!([exec("echo built"), "First.", "Second.", "In the fork."])));
    let runtime = open(&place, model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send("build it").await.unwrap();
    session.send("and now?").await.unwrap();
    let journal = place.journal().await;
    let before = records_of(&*journal, session.id().unwrap()).await;

    let forked = fork_session(&*journal, "a", None, "b").await.unwrap();
    let copied = records_of(&*journal, forked.id).await;
    let fork = runtime.session("b").await.unwrap();
    let ended = fork.send("something else").await.unwrap();

    assert_eq!((forked.origin.session, forked.origin.seq), (session.id().unwrap(), before.len() as u64));
    assert_eq!((forked.records, kinds(&copied)), (before.len() as u64, kinds(&before)));
    let SessionRecord::SessionCreated(created) = SessionRecord::decode(&copied[0]).unwrap() else { panic!() };
    assert_eq!((created.id, created.key.as_str(), created.origin), (forked.id, "b", Some(forked.origin)));
    assert_eq!((ended.outcome, ended.text.as_str()), (Outcome::Completed, "In the fork."));
    let requests = model.requests();
    let (last, asked) = (&requests[2], &requests[3]);
    assert_eq!(last.items[..], asked.items[..last.items.len()], "the same beginning");
    assert_eq!(last.system, asked.system);
    assert_eq!(texts(asked).last().unwrap(), "something else");
    let all = records_of(&*journal, forked.id).await;
    assert_eq!(broken_rules(&all), Vec::<String>::new());
    assert_eq!(all.iter().filter(|record| record.kind == "epoch_started").count(), 1, "{:?}", kinds(&all));
    let after = records_of(&*journal, session.id().unwrap()).await;
    assert_eq!(serde_json::to_string(&after).unwrap(), serde_json::to_string(&before).unwrap());
    runtime.shutdown().await.unwrap();
    is_sound(&journal).await;
}

/// S4: whatever stands at the point, the fork is at rest, sound, and can be loaded.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_can_be_forked_at_any_of_its_records() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&json!([
        exec("echo one"),
        {"calls": [
            {"name": "exec", "arguments": {"command": "true", "description": "x", "run_in_background": true}},
            {"name": "read_file", "arguments": {"path": "missing"}}
        ]},
        text(1_500),
        "After the task.",
        summary("the goal"),
        "Third.",
        "Fourth."
    ])));
    let mut config = config(&place, 30_000);
    config.settings.exec.wake = longhaul_agent::config::Wake::Always;
    let runtime = open_with(config, model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send("first").await.unwrap();
    session.settle().await.unwrap();
    session.compact().await.unwrap().unwrap();
    session.send("third").await.unwrap();
    std::fs::write(place.work().join("AGENTS.md"), "be brief").unwrap();
    session.send("fourth").await.unwrap();
    runtime.shutdown().await.unwrap();
    let journal = place.journal().await;
    let records = records_of(&*journal, session.id().unwrap()).await;
    let compacted = records.iter().position(|record| record.kind == "compact_done").unwrap();
    let began = records[..compacted].iter().rposition(|record| record.kind == "epoch_started").unwrap();

    for record in &records {
        let key = format!("at-{}", record.seq);
        let forked = fork_session(&*journal, "a", Some(record.seq), &key).await.unwrap();
        let copied = records_of(&*journal, forked.id).await;

        let state = state_at_rest(&*journal, &key).await;

        let what = format!("{} {}: {:?}", record.seq, record.kind, kinds(&copied));
        assert_eq!(state.head, forked.records, "{what}");
        let is_in_first = record.seq <= began as u64;
        if is_in_first {
            assert_eq!(broken_rules(&copied), Vec::<String>::new(), "{what}");
        } else {
            assert!(texts_of(&state).iter().any(|text| text.contains("the goal")), "{what}");
            assert_eq!(state.epoch.as_ref().unwrap().folds_from, 2, "{what}");
        }
    }
    is_sound(&journal).await;
}

fn texts_of(state: &State) -> Vec<String> {
    let text = |item: &Arc<longhaul_protocol::Item>| match &**item {
        longhaul_protocol::Item::Text { text, .. } | longhaul_protocol::Item::Note { text } => text.clone(),
        _ => String::new(),
    };
    state.items.iter().map(text).collect()
}

/// S4: rewind. What was compacted since is there again, word for word.
#[tokio::test(flavor = "multi_thread")]
async fn a_fork_of_an_older_epoch_has_what_was_compacted_since() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&json!([text(2_000), "Two.", summary("the goal"), "Three."])));
    let runtime = open_with(config(&place, 20_000), model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send("first").await.unwrap();
    session.send("the word is plugh").await.unwrap();
    session.compact().await.unwrap().unwrap();
    session.send("third").await.unwrap();
    let journal = place.journal().await;
    let records = records_of(&*journal, session.id().unwrap()).await;
    let point = records.iter().find(|record| record.kind == "turn_ended").unwrap().seq;

    fork_session(&*journal, "a", Some(point), "b").await.unwrap();
    let fork = runtime.session("b").await.unwrap();
    let ended = fork.send("again, please").await.unwrap();

    assert_eq!(ended.text, "Two.", "the script answers by the steps in the context");
    let asked = texts(model.requests().last().unwrap());
    assert_eq!(asked, ["first".to_owned(), text(2_000), "again, please".to_owned()]);
    assert_eq!(broken_rules(&records_of(&*journal, fork.id().unwrap()).await), Vec::<String>::new());
    runtime.shutdown().await.unwrap();
    is_sound(&journal).await;
}

/// S4: tasks that run stay with the parent; the fork neither waits for them nor hears of their end.
#[tokio::test(flavor = "multi_thread")]
async fn running_tasks_stay_with_the_parent() {
    let place = TestHome::new();
    let command = "while [ ! -e go ]; do sleep 0.02; done";
    let arguments = json!({"command": command, "description": "waits", "run_in_background": true});
    let model = RecordingModel::new(script(&json!([
        {"calls": [{"name": "exec", "arguments": arguments}]},
        "Started.",
        "In the fork.",
        "It has ended."
    ])));
    let runtime = open(&place, model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send("start it").await.unwrap();
    let journal = place.journal().await;

    let forked = fork_session(&*journal, "a", None, "b").await.unwrap();
    let state = state_at_rest(&*journal, "b").await;
    let fork = runtime.session("b").await.unwrap();
    fork.send("what runs?").await.unwrap();
    fork.settle().await.unwrap();
    std::fs::write(place.work().join("go"), "").unwrap();
    session.settle().await.unwrap();

    assert_eq!(state.tasks.all(), []);
    let asked = texts(&model.requests()[2]);
    assert!(asked.iter().any(|text| text.contains("stay with that session")), "{asked:?}");
    let of_fork = records_of(&*journal, forked.id).await;
    assert!(!kinds(&of_fork).iter().any(|kind| kind.starts_with("task_")), "{:?}", kinds(&of_fork));
    let of_parent = records_of(&*journal, session.id().unwrap()).await;
    assert!(kinds(&of_parent).contains(&"task_ended"));
    runtime.shutdown().await.unwrap();
    is_sound(&journal).await;
}

/// S4: inside a turn. Without a point, the end of the turn before is meant; with one, what was open is closed in the copy.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_open_at_the_point_is_closed_in_the_fork_alone() {
    let place = TestHome::new();
    let wait = exec("while [ ! -e go ]; do sleep 0.02; done");
    let model = RecordingModel::new(script(&json!(["First.", wait, "Over.", "Later."])));
    let runtime = open(&place, model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send("first").await.unwrap();
    let sending = sends(&session, "second");
    eventually("the command runs", || async {
        let turn = session.state().await.unwrap().turn;
        turn.is_some_and(|turn| turn.calls.iter().any(longhaul_agent::session::CallState::is_open))
    })
    .await;
    let journal = place.journal().await;
    let head = resolve(&*journal, "a").await.unwrap().head.seq;

    let before = fork_session(&*journal, "a", None, "before").await.unwrap();
    let within = fork_session(&*journal, "a", Some(head), "within").await.unwrap();
    std::fs::write(place.work().join("go"), "").unwrap();
    let ended = sending.await.unwrap().unwrap();

    assert_eq!(ended.text, "Over.", "the parent goes on");
    assert!(before.origin.seq < head);
    assert_eq!(state_at_rest(&*journal, "before").await.last_outcome, Some(Outcome::Completed));
    let state = state_at_rest(&*journal, "within").await;
    assert_eq!(state.last_outcome, Some(Outcome::Cancelled));
    let copied = records_of(&*journal, within.id).await;
    let (_, is_error, content) = results(&copied).remove(0);
    assert!(is_error && content.contains("forked while it ran"), "{content}");
    assert_eq!(broken_rules(&copied), Vec::<String>::new());
    let fork = runtime.session("within").await.unwrap();
    assert_eq!(fork.send("go on").await.unwrap().outcome, Outcome::Completed);
    runtime.shutdown().await.unwrap();
    is_sound(&journal).await;
}

/// S4, M3: what memory has gone through in the parent is not paid for again in the fork, nor is what the model said.
#[tokio::test(flavor = "multi_thread")]
async fn the_past_of_a_fork_is_not_paid_for_again() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(
        &json!([{"text": "First.", "usage": {"input": 10, "output": 2}}, "Second."]),
    ));
    let runtime = open(&place, model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send("first").await.unwrap();
    runtime.shutdown().await.unwrap();
    let journal = place.journal().await;
    let id = session.id().unwrap();
    let (scope, through) = ("agent-longhaul".to_owned(), 6);
    let extracted = Extracted { scope, from: 1, through, items: vec![], refused: vec![], usage: vec![] };
    let record = ExtractRecord::Extracted(extracted).encode();
    journal.append(Append::to(&StreamName::extract(id)).record(record)).await.unwrap();

    let whole = fork_session(&*journal, "a", None, "whole").await.unwrap();
    let early = fork_session(&*journal, "a", Some(4), "early").await.unwrap();

    assert_eq!(extracted_through(&*journal, whole.id).await.unwrap(), 6);
    assert_eq!(extracted_through(&*journal, early.id).await.unwrap(), 3, "the model had not seen the input");
    let costs = records_of(&*journal, whole.id).await.into_iter().filter_map(|record| {
        match SessionRecord::decode(&record).unwrap() {
            SessionRecord::Usage(usage) => usage.cost,
            _ => None,
        }
    });
    assert_eq!(costs.count(), 0);
    is_sound(&journal).await;
}

/// S4: deleting the parent leaves the fork whole, blobs and all.
#[tokio::test(flavor = "multi_thread")]
async fn deleting_the_parent_leaves_the_fork_whole() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&json!([exec("seq 1 20000"), "Many.", "Still here."])));
    let runtime = open(&place, model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send("count").await.unwrap();
    runtime.shutdown().await.unwrap();
    let journal = place.journal().await;
    let forked = fork_session(&*journal, "a", None, "b").await.unwrap();

    delete_session(&*journal, "a").await.unwrap();

    is_sound(&journal).await;
    let mut blobs = 0;
    for record in records_of(&*journal, forked.id).await {
        for blob in longhaul_protocol::blob_refs(record.text().unwrap()) {
            journal.blob(blob.hash).await.unwrap();
            blobs += 1;
        }
    }
    assert!(blobs > 2, "{blobs}");
    let again = open(&place, model.clone()).await;
    let fork = again.session("b").await.unwrap();
    assert_eq!(fork.send("are you there?").await.unwrap().text, "Still here.");
    again.shutdown().await.unwrap();
    delete_session(&*journal, "b").await.unwrap();
    let report = journal.verify().await.unwrap();
    assert_eq!((report.blobs, report.is_sound()), (0, true), "the last to go takes them along");
}

/// S4: a point that does not exist is an error, which says what there is; nothing is made.
#[tokio::test(flavor = "multi_thread")]
async fn a_point_that_does_not_exist_is_refused_with_the_range() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&json!(["First.", "Second."])));
    let runtime = open(&place, model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send("first").await.unwrap();
    let taken = runtime.session("taken").await.unwrap();
    taken.send("mine").await.unwrap();
    runtime.shutdown().await.unwrap();
    let journal = place.journal().await;
    let stream = StreamName::session(session.id().unwrap());
    let head = journal.head(&stream).await.unwrap().seq;
    journal.erase(&[(stream, 4)], "a secret").await.unwrap();

    for point in [0, head + 1, u64::MAX, 4] {
        let refused = fork_session(&*journal, "a", Some(point), "b").await.unwrap_err();
        assert!(matches!(refused, Error::NoSuchPoint { .. }), "{refused}");
        assert!(refused.to_string().contains(&format!("1 to {head}")), "{refused}");
    }
    let refused = fork_session(&*journal, "a", None, "taken").await.unwrap_err();
    assert!(matches!(refused, Error::Journal(JournalError::SessionExists { .. })), "{refused}");
    let refused = fork_session(&*journal, "nobody", None, "b").await.unwrap_err();
    assert!(matches!(refused, Error::Journal(JournalError::NoSuchSession { .. })), "{refused}");
    assert_eq!(journal.session("b").await.unwrap(), None);

    // What was erased before the point is erased in the fork too.
    let forked = fork_session(&*journal, "a", None, "b").await.unwrap();
    let copied = records_of(&*journal, forked.id).await;
    assert!(copied[3].text().is_none(), "{copied:?}");
    state_at_rest(&*journal, "b").await;
    is_sound(&journal).await;
}

/// S4, after a crash between the name and the records: the same fork works.
#[tokio::test(flavor = "multi_thread")]
async fn a_fork_that_was_cut_short_can_be_made_again() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&json!(["First.", "In the fork."])));
    let runtime = open(&place, model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send("first").await.unwrap();
    let journal = place.journal().await;
    let named = name_session(&*journal, "b").await.unwrap();

    let forked = fork_session(&*journal, "a", None, "b").await.unwrap();
    let fork = runtime.session("b").await.unwrap();

    assert_eq!(forked.id, named);
    assert_eq!(fork.send("go on").await.unwrap().text, "In the fork.");
    let again = fork_session(&*journal, "a", None, "b").await.unwrap_err();
    assert!(matches!(again, Error::Journal(JournalError::SessionExists { .. })), "{again}");
    runtime.shutdown().await.unwrap();
}

/// S4, killed after the records and before the note for memory, and after that: the fork is whole either way.
#[tokio::test(flavor = "multi_thread")]
async fn a_fork_that_was_killed_after_its_records_is_whole() {
    for when in [CrashMoment::Before, CrashMoment::After] {
        let place = TestHome::new();
        let model = RecordingModel::new(script(&json!(["First.", "Second."])));
        let runtime = open(&place, model.clone()).await;
        let session = runtime.session("a").await.unwrap();
        session.send("first").await.unwrap();
        let journal = place.journal().await;
        let (scope, through) = ("agent-longhaul".to_owned(), 6);
        let extracted = Extracted { scope, from: 1, through, items: vec![], refused: vec![], usage: vec![] };
        let record = ExtractRecord::Extracted(extracted).encode();
        let extracts = StreamName::extract(session.id().unwrap());
        journal.append(Append::to(&extracts).record(record)).await.unwrap();
        let faulty = FaultyJournal::new(journal.clone(), Some(Crash { append: 1, when }));

        tokio::select! {
            forked = fork_session(&*faulty, "a", None, "b") => panic!("{forked:?}"),
            () = faulty.crashed() => {}
        }
        faulty.release_leases().await;

        state_at_rest(&*journal, "b").await;
        let fork = runtime.session("b").await.unwrap();
        assert_eq!(fork.send("go on").await.unwrap().text, "Second.", "{when:?}");
        runtime.shutdown().await.unwrap();
        is_sound(&journal).await;
    }
}

fn request(key: &str) -> ForkRequestKey<'_> {
    ForkRequestKey { key, content: Hash::of("the same") }
}

/// H1, S4: a request that is repeated after a kill before or after the copy finds its fork or finishes it, at the same point.
#[tokio::test(flavor = "multi_thread")]
async fn a_fork_that_is_requested_again_after_a_kill_is_one_fork() {
    for when in [CrashMoment::Before, CrashMoment::After] {
        let place = TestHome::new();
        let model = RecordingModel::new(script(&json!(["First.", "Second.", "Third."])));
        let runtime = open(&place, model.clone()).await;
        let session = runtime.session("a").await.unwrap();
        session.send("first").await.unwrap();
        let journal = place.journal().await;
        let faulty = FaultyJournal::new(journal.clone(), None);
        faulty.crash_at_adoption(when);

        tokio::select! {
            forked = fork_session_once(&*faulty, "a", None, "b", request("k")) => panic!("{forked:?}"),
            () = faulty.crashed() => {}
        }
        faulty.release_leases().await;
        session.send("second, after the fork point").await.unwrap();
        let first = fork_session_once(&*journal, "a", None, "c", request("k")).await.unwrap();
        let again = fork_session_once(&*journal, "a", None, "d", request("k")).await.unwrap();
        let other = ForkRequestKey { content: Hash::of("another"), ..request("k") };
        let reused = fork_session_once(&*journal, "a", None, "e", other).await;

        assert_eq!((first.0.as_str(), &again), ("b", &first), "{when:?}");
        assert!(matches!(reused, Err(Error::KeyReused { .. })), "{reused:?}");
        for key in ["c", "d", "e"] {
            assert!(journal.session(key).await.unwrap().is_none(), "{key}");
        }
        let fork = runtime.session("b").await.unwrap();
        assert_eq!(fork.send("go on").await.unwrap().text, "Second.", "{when:?}");
        runtime.shutdown().await.unwrap();
        is_sound(&journal).await;
    }
}

/// H1: the same request from several clients at once makes one fork, and each gets it.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_fork_requested_many_times_at_once_is_one_fork() {
    let place = TestHome::new();
    let runtime = open(&place, RecordingModel::new(script(&json!(["First."])))).await;
    runtime.session("a").await.unwrap().send("first").await.unwrap();
    let journal = place.journal().await;

    let requests = (0..8).map(|number| {
        let journal = journal.clone();
        tokio::spawn(async move {
            fork_session_once(&*journal, "a", None, &format!("fork-{number}"), request("k")).await
        })
    });
    let mut forks = Vec::new();
    for request in requests.collect::<Vec<_>>() {
        forks.push(request.await.unwrap().unwrap());
    }

    assert!(forks.iter().all(|fork| *fork == forks[0]), "{forks:?}");
    assert_eq!(all_sessions(&*journal).collect().await.unwrap().len(), 2);
    runtime.shutdown().await.unwrap();
    is_sound(&journal).await;
}
