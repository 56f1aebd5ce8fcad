//! C10: what was once said or done in a session can be found and read, however long ago it was.

use std::sync::Arc;

use longhaul_agent::{Runtime, Session};
use longhaul_journal::{Append, Journal};
use longhaul_model::ScriptedModel;
use longhaul_protocol::{Block, Item, Record, SessionRecord, SystemMessage, TextContent, ToolFinished};
use longhaul_testkit::{RecordingModel, TestHome};
use serde_json::{Value, json};

use crate::{open, results, script, sound_records};

const FACT: &str = "The passphrase of the harbour archive is osprey-41.\n\tKeep it.";

fn call(name: &str, arguments: &Value) -> Value {
    json!({"calls": [{"name": name, "arguments": arguments}]})
}

/// A runtime with a session in which these answers are played.
async fn session_with(
    place: &TestHome,
    answers: Value,
) -> (Runtime, Session, Arc<RecordingModel<ScriptedModel>>) {
    let model = RecordingModel::new(script(&answers));
    let runtime = open(place, model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    (runtime, session, model)
}

/// The results of the tools of history, in order, with whether they failed.
async fn shown(place: &TestHome, session: &Session) -> Vec<(bool, String)> {
    let of_history = |(name, is_error, content): (String, bool, String)| {
        name.starts_with("recall").then_some((is_error, content))
    };
    results(&sound_records(place, session).await).into_iter().filter_map(of_history).collect()
}

/// The number of the first record that fits.
fn seq_of(records: &[Record], fits: impl Fn(SessionRecord) -> bool) -> u64 {
    records.iter().find(|record| fits(SessionRecord::decode(record).unwrap())).unwrap().seq
}

/// C10: a fact that was said once in two hundred turns is the first hit for its words, and is read word for word.
#[tokio::test(flavor = "multi_thread")]
async fn a_fact_from_an_early_turn_is_found_and_read_word_for_word() {
    let place = TestHome::in_memory();
    let turn =
        |number: usize| json!(format!("Noted: the archive of day {number} has its passphrase in the safe."));
    let mut answers: Vec<Value> = (0..200).map(turn).collect();
    answers.push(call("recall", &json!({"query": "harbour archive passphrase", "scope": "session"})));
    answers.push(json!("Found."));
    answers.push(call(
        "recall",
        &json!({"query": "what was it with that osprey of ours?", "limit": 3, "scope": "session"}),
    ));
    answers.push(json!("Found."));
    answers.push(call("recall_read", &json!({"ref": "#20-30"})));
    answers.push(json!("Read."));
    let (runtime, session, _) = session_with(&place, json!(answers)).await;
    for number in 0..200 {
        let said =
            if number == 3 { FACT.to_owned() } else { format!("A gate of the harbour, number {number}.") };
        session.send(&said).await.unwrap();
    }
    session.send("Which one was it?").await.unwrap();
    session.send("Which one was it?").await.unwrap();

    session.send("And what stood there?").await.unwrap();

    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let fact =
        seq_of(&records, |fact| matches!(fact, SessionRecord::InputTaken(input) if input.text == FACT));
    let shown = shown(&place, &session).await;
    let line = "user: The passphrase of the harbour archive is osprey-41. Keep it.";
    let place_of = |found: &str| {
        let is_fact = |hit: &str| hit.starts_with(&format!("[#{fact}] ")) && hit.ends_with(line);
        found.lines().position(is_fact)
    };
    assert_eq!(place_of(&shown[0].1), Some(0), "{}", shown[0].1);
    assert!(place_of(&shown[1].1).is_some_and(|place| place < 3), "{}", shown[1].1);
    assert!(shown[0].1.lines().last().unwrap().contains("recall_read"), "{}", shown[0].1);
    assert_eq!(shown[0].1.lines().count(), 11, "ten hits if nobody says");
    let (passphrase, rest) = FACT.split_once('\n').unwrap();
    assert!(shown[2].1.contains(&format!(" user\n  {passphrase}\n  {rest}\n")), "{}", shown[2].1);
}

/// C10
#[tokio::test(flavor = "multi_thread")]
async fn records_are_read_as_a_transcript() {
    let place = TestHome::new();
    std::fs::write(place.work().join("a.txt"), "one\n[#99] user\n").unwrap();
    let answers = json!([
        {"reasoning": "hm", "text": "I look.", "calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]},
        "It has one.",
        call("recall_read", &json!({"ref": "#1-1000"})),
        "Read.",
    ]);
    let (runtime, session, _) = session_with(&place, answers).await;
    session.send("What is\nin it?").await.unwrap();

    session.send("Again?").await.unwrap();

    runtime.shutdown().await.unwrap();
    let (is_error, transcript) = shown(&place, &session).await.remove(0);
    assert!(!is_error);
    // Without the numbers and the moments.
    let lines: Vec<&str> = transcript
        .lines()
        .map(|line| {
            line.strip_prefix('[').and_then(|line| line.split_once("Z ")).map_or(line, |(_, rest)| rest)
        })
        .collect();
    let expected = [
        "user",
        "  What is",
        "  in it?",
        "turn 1 begins",
        "assistant, thinking",
        "  hm",
        "assistant",
        "  I look.",
        "call of read_file",
        "  {\"path\":\"a.txt\"}",
        "result of read_file",
        "  one",
        "  [#99] user",
        "assistant",
        "  It has one.",
        "user",
        "  Again?",
        "turn 2 begins",
        "call of recall_read",
        "  {\"ref\":\"#1-1000\"}",
    ];
    assert_eq!(lines, expected, "{transcript}");
}

/// C10: and of no other session.
#[tokio::test(flavor = "multi_thread")]
async fn another_sessions_records_are_not_found() {
    let place = TestHome::new();
    let answers =
        json!(["Noted.", call("recall", &json!({"query": "osprey-41", "scope": "session"})), "No."]);
    let (runtime, session, _) = session_with(&place, answers).await;
    let other = runtime.session("b").await.unwrap();
    other.send(FACT).await.unwrap();
    session.send("Hello.").await.unwrap();

    session.send("What was it?").await.unwrap();

    runtime.shutdown().await.unwrap();
    let (is_error, found) = shown(&place, &session).await.remove(0);
    assert!(!is_error && found.starts_with("[no record of this session has any of these words"), "{found}");
}

/// C10: neither what the tools of history showed, nor a summary, stands before what it repeats.
#[tokio::test(flavor = "multi_thread")]
async fn what_only_repeats_others_is_no_hit() {
    let place = TestHome::new();
    let search = call("recall", &json!({"query": "osprey-41", "limit": 1, "scope": "session"}));
    let read = call("recall_read", &json!({"ref": "#1-9"}));
    let again = call("recall", &json!({"query": "osprey-41 passphrase", "scope": "session"}));
    let (runtime, session, model) =
        session_with(&place, json!(["Noted.", search, read, "So.", again, "So."])).await;
    session.send(FACT).await.unwrap();
    session.send("What was it?").await.unwrap();
    runtime.shutdown().await.unwrap();
    let journal = place.journal().await;
    let stream = longhaul_protocol::StreamName::session(session.id().unwrap());
    let texts = (0..30).map(|_| TextContent { text: "The passphrase is osprey-41.".into() });
    for content in texts.map(|text| vec![text]) {
        let summary = SessionRecord::SystemMessage(SystemMessage { content }).encode();
        journal.append(Append::to(&stream).record(summary)).await.unwrap();
    }
    journal.close().await;

    let runtime = open(&place, model).await;
    let session = runtime.session("a").await.unwrap();
    session.send("And now?").await.unwrap();

    runtime.shutdown().await.unwrap();
    let found = shown(&place, &session).await.pop().unwrap().1;
    let hits: Vec<&str> = found.lines().filter(|line| line.contains("osprey")).collect();
    assert!(hits.len() == 1 && hits[0].contains(" user: "), "{found}");
}

/// What was taken back is not shown as if it had been said.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_discarded_is_marked() {
    let place = TestHome::new();
    let answers = json!(["Noted.", call("recall_read", &json!({"ref": "#1-200"})), "So."]);
    let (runtime, session, model) = session_with(&place, answers).await;
    session.send("Hello.").await.unwrap();
    runtime.shutdown().await.unwrap();
    let journal = place.journal().await;
    let stream = longhaul_protocol::StreamName::session(session.id().unwrap());
    let attempt = longhaul_protocol::AttemptId::generate();
    let text = |text: &str| Item::Text { role: longhaul_protocol::Role::Assistant, text: text.to_owned() };
    let block = |index, item| SessionRecord::Block(Block { attempt, index, item }).encode();
    let ended = longhaul_protocol::AttemptEnded {
        attempt,
        kept: 1,
        stop: None,
        error: Some("cut".to_owned()),
        goes_on: false,
        too_long: None,
    };
    let append =
        Append::to(&stream).record(block(0, text("kept words"))).record(block(1, text("lost words")));
    journal.append(append.record(SessionRecord::AttemptEnded(ended).encode())).await.unwrap();
    journal.close().await;

    let runtime = open(&place, model).await;
    runtime.session("a").await.unwrap().send("And now?").await.unwrap();

    runtime.shutdown().await.unwrap();
    let journal = place.journal().await;
    let records = longhaul_testkit::records_of(&*journal, session.id().unwrap()).await;
    let transcript = results(&records).pop().unwrap().2;
    assert!(transcript.contains(" assistant\n  kept words\n"), "{transcript}");
    assert!(
        transcript.contains(" assistant (discarded: not part of the conversation)\n  lost words\n"),
        "{transcript}"
    );
}

/// C10: a body that was erased, and what is said about it.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_erased_is_said_and_not_found() {
    let place = TestHome::new();
    let answers = json!([
        "Noted.",
        "Yes.",
        call("recall_read", &json!({"ref": "#1-9"})),
        call("recall", &json!({"query": "osprey-41", "scope": "session"})),
        "So.",
    ]);
    let (runtime, session, model) = session_with(&place, answers).await;
    session.send(FACT).await.unwrap();
    session.send("Hello.").await.unwrap();
    runtime.shutdown().await.unwrap();
    let fact = seq_of(
        &sound_records(&place, &session).await,
        |fact| matches!(fact, SessionRecord::InputTaken(input) if input.text == FACT),
    );
    let journal = place.journal().await;
    let stream = longhaul_protocol::StreamName::session(session.id().unwrap());
    journal.erase(&[(stream, fact)], "a\nwish").await.unwrap();
    journal.close().await;

    let runtime = open(&place, model).await;
    runtime.session("a").await.unwrap().send("And now?").await.unwrap();

    runtime.shutdown().await.unwrap();
    let journal = place.journal().await;
    let records = longhaul_testkit::records_of(&*journal, session.id().unwrap()).await;
    let found: Vec<String> = records
        .iter()
        .filter_map(|record| match SessionRecord::decode(record) {
            Ok(SessionRecord::ToolFinished(finished)) => Some(finished.content),
            _ => None,
        })
        .collect();
    assert!(
        found[0].contains(" input_taken: gone since ") && found[0].contains("(a wish)\n"),
        "{}",
        found[0]
    );
    assert!(found[1].starts_with("[no record"), "{}", found[1]);
}

/// T6: what does not fit is said, with what would.
#[tokio::test(flavor = "multi_thread")]
async fn numbers_and_words_that_do_not_fit_are_explained() {
    let place = TestHome::new();
    let calls = json!({"calls": [
        {"name": "recall_read", "arguments": {"ref": "#0"}},
        {"name": "recall_read", "arguments": {"ref": "#9-3"}},
        {"name": "recall_read", "arguments": {"ref": "#5000"}},
        {"name": "recall", "arguments": {"query": " -- ", "scope": "session"}},
        {"name": "recall", "arguments": {"query": "x".repeat(1_001), "scope": "session"}},
        {"name": "recall", "arguments": {"query": "x", "limit": 51, "scope": "session"}},
        {"name": "recall_read", "arguments": {"ref": "#1"}},
    ]});
    let (runtime, session, _) = session_with(&place, json!([calls, "So."])).await;

    session.send("go").await.unwrap();

    runtime.shutdown().await.unwrap();
    let shown = shown(&place, &session).await;
    let said = |word: &str| {
        assert!(
            shown.iter().any(|(is_error, content)| *is_error && content.contains(word)),
            "{word}: {shown:?}"
        );
    };
    said("there is no page \"#0\"");
    said("`ref` ends with 3, which is before 9");
    said("there is no record #5000: the session has records 1 to ");
    said("has no word in it");
    said("more than 1000 characters");
    said("`limit` must be a whole number from 1 to 50, not 51");
    let books = (false, "[these records are bookkeeping; there is nothing to show]".to_owned());
    assert!(shown.contains(&books), "{shown:?}");
}

/// C8, C10: a transcript stays within what a result may have and says where to go on.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_transcript_says_where_to_go_on() {
    let place = TestHome::new();
    let filler = "filler ".repeat(3_000);
    let answers = json!([filler, filler, call("recall_read", &json!({"ref": "#1-300"})), "So."]);
    let (runtime, session, _) = session_with(&place, answers).await;
    session.send("Talk.").await.unwrap();
    session.send("More.").await.unwrap();

    session.send("What was it?").await.unwrap();

    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let is_block = |record: &&Record| record.kind == "block";
    let second = records.iter().filter(is_block).nth(1).unwrap().seq;
    let (_, transcript) = shown(&place, &session).await.remove(0);
    let last = transcript.lines().last().unwrap();
    assert!(last.starts_with(&format!("[not all of it: recall_read with ref \"#{second}-")), "{last}");
    assert!(transcript.len() <= 32 << 10 && transcript.contains(filler.trim_end()), "{}", transcript.len());
}

/// C8, C10: of an output that was cut the transcript says how to read the whole; a record that is too long for any result is
/// cut like any output, and the whole of it can be read as well.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_long_for_a_result_can_be_read_as_a_whole() {
    let place = TestHome::new();
    let long = format!("{}the middle\n{}", "line\n".repeat(1_500), "line\n".repeat(1_500));
    let print = call("exec", &json!({"command": "seq 1 5000"}));
    let (runtime, session, _) = session_with(&place, json!([print, "So."])).await;
    session.send(&long).await.unwrap();
    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let input = seq_of(&records, |fact| matches!(fact, SessionRecord::InputTaken(_)));
    let result = seq_of(&records, |fact| matches!(fact, SessionRecord::ToolFinished(_)));

    let read = |seq: u64| call("recall_read", &json!({"ref": format!("#{seq}")}));
    let model = RecordingModel::new(script(&json!(["", "", read(input), read(result), "So."])));
    let runtime = open(&place, model).await;
    runtime.session("a").await.unwrap().send("What was it?").await.unwrap();
    runtime.shutdown().await.unwrap();

    let finished: Vec<ToolFinished> = sound_records(&place, &session)
        .await
        .iter()
        .filter_map(|record| match SessionRecord::decode(record).unwrap() {
            SessionRecord::ToolFinished(finished) => Some(finished),
            _ => None,
        })
        .collect();
    let [exec, of_input, of_exec] = &finished[..] else { panic!("{finished:?}") };
    assert!(of_input.content.contains("are missing here; read_file with the path \"output:"));
    let journal = place.journal().await;
    let whole = journal.blob(of_input.whole.as_ref().unwrap().hash).await.unwrap();
    assert!(String::from_utf8(whole).unwrap().contains("\n  the middle\n"));
    let pointer = format!(
        "result of exec (head and tail; read_file with the path \"output:{}\" reads the whole)\n",
        exec.call
    );
    assert!(of_exec.content.contains(&pointer), "{}", &of_exec.content[..200]);
    assert!(of_exec.content.contains("  4999\n  5000"), "all that the record has");
}

/// T15: the page of the tools has those that a model gets, in their order.
#[tokio::test(flavor = "multi_thread")]
async fn the_tools_of_a_request_are_those_of_the_page() {
    let place = TestHome::new();
    let (runtime, session, model) = session_with(&place, json!(["Hello."])).await;

    session.send("hello").await.unwrap();

    runtime.shutdown().await.unwrap();
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tools.md")).unwrap();
    // These are offered only where a searcher, or many tools of MCP servers, are configured.
    let configured = ["web_search", "tools_find", "tools_call"];
    let described = page.lines().filter_map(|line| line.strip_prefix("## "));
    let described: Vec<&str> = described.filter(|name| !configured.contains(name)).collect();
    let tools = &model.requests()[0].tools;
    assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), described);
}
