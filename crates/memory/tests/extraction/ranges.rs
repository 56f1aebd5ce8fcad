//! Y6: what an extract covers.

use std::sync::Arc;

use longhaul_journal::Journal;
use longhaul_memory::{BackgroundModel, Error, Extraction, extract, extracted_through};
use longhaul_model::FailureClass;
use longhaul_protocol::{
    ExtractRecord, Imported, NewRecord, SessionRecord, StreamName, SystemMessage, Warning,
};
use serde_json::json;
use serde_json::value::RawValue;

use crate::scripted_model::{Reply, Told, shown};
use crate::staged::{
    SCOPE, Stage, answer, calling, calls, ended, finished, input, says, started, with_window,
};

/// What is asked besides the transcript takes about so many tokens.
const FRAME: u64 = 1_100;

fn nothing_at(through: u64) -> Extraction {
    Extraction { through, parts: 0, items: 0, refused: vec![] }
}

fn warning() -> SessionRecord {
    SessionRecord::Warning(Warning::new("w", "a warning"))
}

/// Y2, Y6
#[tokio::test]
async fn a_valid_answer_costs_one_call_and_covers_exactly_what_is_new() {
    let stage = Stage::new().await;
    let last = stage.talk("my name is Ada", "hello Ada").await;
    let item = json!({"kind": "fact", "text": "The user is called Ada.", "sources": [1], "speaker": "user"});
    let model = Told::new([Reply::Items(json!([item]))]);

    let done = stage.extract(&calling(model.clone())).await.unwrap();

    assert_eq!(done, Extraction { through: last, parts: 1, items: 1, refused: vec![] });
    assert_eq!(model.calls(), 1);
    assert_eq!(stage.ranges().await, [(1, last)]);
    let extracted = &stage.extracted().await[0];
    assert_eq!((extracted.scope.as_str(), extracted.items[0].sources.as_slice()), (SCOPE, [1].as_slice()));
    assert_eq!(extracted.usage.len(), 1);
    assert_eq!(extracted.usage[0].purpose.as_deref(), Some("extract"));
    assert_eq!(extracted_through(&*stage.journal, stage.session).await.unwrap(), last);
}

/// Y5, Y6
#[tokio::test]
async fn no_items_is_a_success_that_moves_on_and_nothing_new_costs_nothing() {
    let stage = Stage::new().await;
    let model = Told::new([]);
    assert_eq!(stage.extract(&calling(model.clone())).await.unwrap(), nothing_at(0));
    let first = stage.talk("hi", "hello").await;

    let done = stage.extract(&calling(model.clone())).await.unwrap();
    let again = stage.extract(&calling(model.clone())).await.unwrap();

    assert_eq!(done, Extraction { through: first, parts: 1, items: 0, refused: vec![] });
    assert_eq!(again, nothing_at(first));
    assert_eq!(model.calls(), 1);

    let second = stage.talk("bye", "see you").await;
    stage.extract(&calling(model.clone())).await.unwrap();
    assert_eq!(stage.ranges().await, [(1, first), (first + 1, second)]);
    assert_eq!(model.extracts_before(), [0, 1]);
}

#[tokio::test]
async fn records_in_which_nobody_says_anything_make_no_extract() {
    let stage = Stage::new().await;
    let first = stage.talk("hi", "hello").await;
    let model = Told::new([]);
    stage.extract(&calling(model.clone())).await.unwrap();
    stage.append([warning(), warning()]).await;

    assert_eq!(stage.extract(&calling(model.clone())).await.unwrap(), nothing_at(first));
    assert_eq!((model.calls(), stage.ranges().await.len()), (1, 1));

    // With the next that is said they are covered too.
    let last = stage.talk("bye", "see you").await;
    stage.extract(&calling(model.clone())).await.unwrap();
    assert_eq!(stage.ranges().await, [(1, first), (first + 1, last)]);
}

#[tokio::test]
async fn an_open_turn_is_left_for_later() {
    let stage = Stage::new().await;
    let first = stage.talk("hi", "hello").await;
    let long: Vec<SessionRecord> =
        (0..200).map(|number| finished("exec", &format!("output {number}"))).collect();
    stage.append([started()].into_iter().chain(answer([says("working")])).chain(long)).await;
    let model = Told::new([]);

    stage.extract(&calling(model.clone())).await.unwrap();
    assert_eq!(stage.ranges().await, [(1, first)]);
    assert_eq!(stage.extract(&calling(model.clone())).await.unwrap(), nothing_at(first));

    let last = stage.append([ended()]).await;
    stage.extract(&calling(model.clone())).await.unwrap();
    assert_eq!(stage.ranges().await, [(1, first), (first + 1, last)]);
    assert_eq!(shown(&model.messages()[1]).len(), 201);
}

/// Y6
#[tokio::test]
async fn a_long_span_is_read_in_parts_that_follow_each_other() {
    let stage = Stage::new().await;
    let mut last = 0;
    for number in 0..12 {
        last = stage.talk(&format!("question {number} {}", "q".repeat(400)), &"a".repeat(400)).await;
    }
    let model = Told::new([]);

    let done = stage.extract(&with_window(calling(model.clone()), FRAME + 600)).await.unwrap();

    let ranges = stage.ranges().await;
    assert!(done.parts > 3 && done.parts == ranges.len() && done.parts == model.calls(), "{done:?}");
    assert_eq!((ranges[0].0, ranges[ranges.len() - 1].1), (1, last));
    assert!(ranges.windows(2).all(|pair| pair[1].0 == pair[0].1 + 1), "{ranges:?}");
    assert_eq!(model.extracts_before(), (0..model.calls()).collect::<Vec<_>>());
    for (message, (from, through)) in model.messages().iter().zip(&ranges) {
        assert!(shown(message).iter().all(|seq| from <= seq && seq <= through), "{message}");
    }
    let all: Vec<u64> = model.messages().iter().flat_map(|message| shown(message)).collect();
    assert_eq!(all.len(), 24);
    assert!(all.is_sorted(), "{all:?}");
}

#[tokio::test]
async fn a_single_utterance_that_is_too_long_loses_its_middle() {
    let stage = Stage::new().await;
    let last = stage.talk(&format!("begin {} end", "x".repeat(100_000)), "ok").await;
    let model = Told::new([]);
    let calling = with_window(calling(model.clone()), FRAME + 600);

    stage.extract(&calling).await.unwrap();

    let message = &model.messages()[0];
    assert!(message.contains("begin xxx") && message.contains("xxx end"), "{message}");
    assert!(message.contains("bytes are left out here"), "{message}");
    for request in model.requests() {
        let size = longhaul_context::estimate(&request.system, &request.tools, &request.items);
        assert!(size <= FRAME + 600, "{size}");
    }
    assert_eq!(stage.ranges().await.last().unwrap().1, last);
}

/// Y6
#[tokio::test]
async fn a_window_too_small_for_one_part_costs_no_call() {
    let stage = Stage::new().await;
    stage.talk("hi", "hello").await;
    let model = Told::new([]);

    for tokens in [0, 50, 500] {
        let refused = stage.extract(&with_window(calling(model.clone()), tokens)).await;
        assert!(matches!(refused, Err(Error::TooSmall { .. })), "{refused:?}");
    }

    assert_eq!((model.calls(), stage.ranges().await), (0, vec![]));
}

#[tokio::test]
async fn summaries_and_what_memory_says_are_not_gone_through() {
    let stage = Stage::new().await;
    let text = longhaul_protocol::TextContent { text: "a summary".to_owned() };
    let message = SessionRecord::SystemMessage(SystemMessage { content: vec![text] });
    let found = [finished("memory_search", "remembered"), finished("history_read", "said before")];
    let asked = answer([calls("memory_search", "{}"), says("I know")]);
    stage.append([input("what do you know?"), started()].into_iter().chain(asked).chain(found)).await;
    stage.append([ended(), message]).await;
    let model = Told::new([]);

    stage.extract(&calling(model.clone())).await.unwrap();

    let message = &model.messages()[0];
    assert_eq!(shown(message).len(), 2, "{message}");
}

#[tokio::test]
async fn a_part_that_is_too_long_after_all_is_halved() {
    let stage = Stage::new().await;
    let mut last = 0;
    for _ in 0..8 {
        last = stage.talk(&"q".repeat(2_000), &"a".repeat(2_000)).await;
    }
    let model = Told::by(|request| {
        let is_long = crate::scripted_model::message(request).len() > 10_000;
        if is_long { Reply::Fails(FailureClass::TooLong) } else { Reply::Items(json!([])) }
    });
    let calling = with_window(calling(model.clone()), FRAME + 8_000);

    let done = stage.extract(&calling).await.unwrap();

    assert_eq!((done.through, done.parts), (last, stage.ranges().await.len()));
    let all: Vec<u64> = model
        .messages()
        .iter()
        .filter(|message| message.len() <= 10_000)
        .flat_map(|text| shown(text))
        .collect();
    assert_eq!(all.len(), 16);

    let stage = Stage::new().await;
    stage.talk(&"q".repeat(2_000), "ok").await;
    let model = Told::by(|_| Reply::Fails(FailureClass::TooLong));
    let refused = stage.extract(&BackgroundModel { model: model.clone(), ..calling }).await;
    assert!(matches!(&refused, Err(Error::Model(reason)) if !reason.contains("hunter2")), "{refused:?}");
    assert_eq!((model.calls(), stage.ranges().await), (4, vec![]));
}

/// Y5
#[tokio::test]
async fn another_process_that_is_at_it_is_left_to_it() {
    let stage = Stage::new().await;
    stage.talk("hi", "hello").await;
    let lease = stage.journal.acquire_lease(&StreamName::extract(stage.session)).await.unwrap();
    let model = Told::new([]);

    let refused = extract(&stage.journal, stage.session, SCOPE, &calling(model.clone()), &mut vec![]).await;
    assert!(matches!(refused, Err(Error::Held { .. })), "{refused:?}");
    assert_eq!(model.calls(), 0);

    stage.journal.release_lease(&lease).await.unwrap();
    // Twice in a row: it is given back when the first returns.
    for _ in 0..3 {
        stage.talk("hi", "hello").await;
        extract(&stage.journal, stage.session, SCOPE, &calling(model.clone()), &mut vec![]).await.unwrap();
    }
    assert_eq!(model.calls(), 3);
}

#[tokio::test]
async fn whoever_loses_the_lease_meanwhile_writes_nothing() {
    let stage = Stage::new().await;
    stage.talk("hi", "hello").await;
    let (journal, stream) = (stage.journal.clone(), StreamName::extract(stage.session));
    let faulty = longhaul_testkit::FaultyJournal::new(journal.clone(), None);
    let (model, gate) = longhaul_testkit::GatedModel::new(Told::new([]));
    let faulty_journal: Arc<dyn Journal> = faulty.clone();
    let session = stage.session;
    let job =
        tokio::spawn(
            async move { extract(&faulty_journal, session, SCOPE, &calling(model), &mut vec![]).await },
        );
    gate.reached().await;

    faulty.take_over().await;
    gate.open();
    let refused = job.await.unwrap();

    assert!(matches!(refused, Err(Error::Journal(longhaul_journal::Error::Fenced { .. }))), "{refused:?}");
    assert_eq!(journal.head(&stream).await.unwrap().seq, 0);
}

/// J3
#[tokio::test]
async fn neither_the_stream_nor_the_lease_of_the_session_is_touched() {
    let stage = Stage::new().await;
    let last = stage.talk("hi", "hello").await;
    let lease = stage.journal.acquire_lease(&stage.stream()).await.unwrap();

    stage.extract(&calling(Told::new([]))).await.unwrap();

    assert_eq!(stage.journal.head(&stage.stream()).await.unwrap().seq, last);
    stage.journal.renew_lease(&lease).await.unwrap();
}

#[tokio::test]
async fn what_was_erased_is_not_gone_through_again() {
    let stage = Stage::new().await;
    let model = Told::new([]);
    let first = stage.talk("one", "hello").await;
    stage.extract(&calling(model.clone())).await.unwrap();
    let second = stage.talk("two", "hello").await;
    stage.extract(&calling(model.clone())).await.unwrap();
    stage.talk("three", "hello").await;
    let stream = StreamName::extract(stage.session);

    stage.journal.erase(&[(stream.clone(), 2)], "a secret").await.unwrap();
    assert_eq!(extracted_through(&*stage.journal, stage.session).await.unwrap(), second);
    stage.journal.erase(&[(stream.clone(), 1)], "a secret").await.unwrap();
    assert_eq!(extracted_through(&*stage.journal, stage.session).await.unwrap(), second);

    let last = stage.journal.head(&stage.stream()).await.unwrap().seq;
    stage.extract(&calling(model.clone())).await.unwrap();
    assert_eq!(stage.ranges().await, [(second + 1, last)]);
    assert!(first < second);
}

/// P8: a file has what it likes in its extracts. Neither do its keys keep this home from recording what it paid for, nor do its erased records say
/// how far the session has been gone through.
#[tokio::test]
async fn keys_and_erased_records_of_a_file_block_nothing() {
    let stage = Stage::new().await;
    let model = Told::new([]);
    let brought = stage.talk("one", "hello").await;
    let forged =
        (1..=40).flat_map(|through| [format!("through {through}"), format!("through {through} (1)")]);
    stage.append_extracts(forged).await;
    let stream = StreamName::extract(stage.session);
    let erased: Vec<_> = (11..=80).map(|seq| (stream.clone(), seq)).collect();
    stage.journal.erase(&erased, "forged").await.unwrap();
    let imported = Imported { foreign_extracts_through: 80, ..Imported::unknown(brought + 1) };
    stage.append_raw([SessionRecord::Imported(imported).encode().with_key("imported/1")]).await;
    let last = stage.talk("two", "hello").await;
    assert!(last < 40);

    let done = stage.extract(&calling(model.clone())).await.unwrap();
    let again = stage.extract(&calling(model.clone())).await.unwrap();

    assert_eq!((done.through, done.parts, again.parts, model.calls()), (last, 1, 0, 1));
    // What is erased here still counts.
    stage.journal.erase(&[(stream.clone(), 81)], "a secret").await.unwrap();
    assert_eq!(extracted_through(&*stage.journal, stage.session).await.unwrap(), last);
}

/// Where the record of an import is lost, nobody knows which extracts are from here; what they went through is not paid for again.
#[tokio::test]
async fn a_lost_import_record_makes_nothing_be_gone_through_twice() {
    let stage = Stage::new().await;
    let model = Told::new([]);
    let brought = stage.talk("one", "hello").await;
    let imported = Imported::unknown(brought + 1);
    stage.append_raw([SessionRecord::Imported(imported).encode().with_key("imported/1")]).await;
    let last = stage.talk("two", "hello").await;

    stage.extract(&calling(model.clone())).await.unwrap();
    stage.extract(&calling(model.clone())).await.unwrap();

    assert_eq!((stage.ranges().await, model.calls()), (vec![(1, last)], 1));
}

/// The model is not asked for what can't be recorded.
#[tokio::test]
async fn a_key_that_is_taken_here_is_noticed_before_the_model_is_asked() {
    let stage = Stage::new().await;
    let model = Told::new([]);
    let last = stage.talk("one", "hello").await;
    stage.append_extracts([format!("through {last}")]).await;

    let failed = stage.extract(&calling(model.clone())).await;

    assert!(matches!(failed, Err(Error::Journal(longhaul_journal::Error::Duplicate { .. }))), "{failed:?}");
    assert_eq!(model.calls(), 0);
}

#[tokio::test]
async fn kinds_of_a_newer_version_are_passed_over() {
    let stage = Stage::new().await;
    let model = Told::new([]);
    let first = stage.talk("one", "hello").await;
    stage.extract(&calling(model.clone())).await.unwrap();
    let body = RawValue::from_string("{\"through\": 99}".to_owned()).unwrap();
    let newer = ExtractRecord::Unknown { kind: "of_next_year".to_owned(), body: body.clone() };
    let stream = StreamName::extract(stage.session);
    stage.journal.append(longhaul_journal::Append::to(&stream).record(newer.encode())).await.unwrap();

    assert_eq!(extracted_through(&*stage.journal, stage.session).await.unwrap(), first);
    let unknown = NewRecord { kind: "of_next_year".to_owned(), body: body.clone(), key: None };
    let malformed = NewRecord { kind: "input_taken".to_owned(), body, key: None };
    stage.append_raw([unknown, malformed]).await;
    let last = stage.talk("two", "hello").await;
    stage.extract(&calling(model.clone())).await.unwrap();
    assert_eq!(stage.ranges().await, [(1, first), (first + 1, last)]);
}

#[tokio::test]
async fn erased_records_of_a_session_are_covered_and_not_shown() {
    let stage = Stage::new().await;
    stage
        .append([input("my password is swordfish"), started()].into_iter().chain(answer([says("ok")])))
        .await;
    let last = stage.append([ended()]).await;
    stage.talk("one", "hello").await;
    let places: Vec<_> = [1, 2, last].into_iter().map(|seq| (stage.stream(), seq)).collect();
    stage.journal.erase(&places, "a secret").await.unwrap();
    let model = Told::new([]);

    stage.extract(&calling(model.clone())).await.unwrap();

    let messages = model.messages();
    assert!(!messages[0].contains("swordfish") && messages[0].contains("hello"), "{messages:?}");
    assert_eq!(stage.ranges().await[0].0, 1);
    assert!(stage.place.home().exists());
}
