//! J10: what is left of a session when epochs of it are erased, because they repeated something that somebody wanted gone.

use longhaul_journal::{Journal, erase_record};
use longhaul_protocol::{Outcome, Record, StreamName};
use longhaul_testkit::{RecordingModel, TestHome, records_of};
use serde_json::json;

use crate::compaction::{config, open, summary, text};
use crate::script;

/// The epoch that is erased is not the newest one, which goes on with it: only the whole past can make up for it.
#[tokio::test(flavor = "multi_thread")]
async fn an_erased_epoch_that_the_newest_goes_on_with_is_made_up_for() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&json!([text(2_000), "Two.", summary("g"), "Three.", "Four."])));
    let runtime = open(config(&place, 20_000), model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send("first").await.unwrap();
    session.send("the word is xyzzysecret, remember it").await.unwrap();
    session.compact().await.unwrap().unwrap();
    std::fs::write(place.work().join("AGENTS.md"), "be brief").unwrap();
    session.send("third").await.unwrap();
    let id = session.id().unwrap();
    runtime.shutdown().await.unwrap();
    let journal = place.journal().await;
    let records = records_of(&*journal, id).await;
    let epochs: Vec<u64> =
        records.iter().filter(|record| record.kind == "epoch_started").map(|record| record.seq).collect();
    let seq = records.iter().filter(|record| record.kind == "input_taken").nth(1).unwrap().seq;

    let places = erase_record(&*journal, id, seq, "a secret").await.unwrap();

    let stream = StreamName::session(id);
    let erased: Vec<bool> = epochs.iter().map(|epoch| places.contains(&(stream.clone(), *epoch))).collect();
    assert_eq!(erased, [false, true, false], "the one in the middle, and not the newest");
    journal.close().await;
    let again = open(config(&place, 20_000), model.clone()).await;
    let session = again.session("a").await.unwrap();
    let state = session.state().await.unwrap();
    assert_eq!((state.answer_count, state.turn_count), (3, 3), "nothing of it is lost");
    let ended = session.send("fourth").await.unwrap();
    assert_eq!((ended.outcome, ended.text.as_str()), (Outcome::Completed, "Four."), "{ended:?}");
    again.shutdown().await.unwrap();
}

/// A long request is pinned without its middle: what is left of it goes with the request.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_first_request_is_erased_from_its_pin_too() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&json!(["One.", summary("g"), "Two.", "Three."])));
    let runtime = open(config(&place, 8_000), model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send(format!("the word is xyzzysecret, remember it {}", text(1_500))).await.unwrap();
    session.compact().await.unwrap().unwrap();
    session.send("second").await.unwrap();
    let id = session.id().unwrap();
    runtime.shutdown().await.unwrap();
    let journal = place.journal().await;
    let records = records_of(&*journal, id).await;
    let seq = records.iter().find(|record| record.kind == "input_taken").unwrap().seq;

    erase_record(&*journal, id, seq, "a secret").await.unwrap();

    let records = records_of(&*journal, id).await;
    let has_it = |record: &&Record| record.text().is_some_and(|text| text.contains("xyzzysecret"));
    let kinds: Vec<&str> = records.iter().filter(has_it).map(|record| record.kind.as_str()).collect();
    assert_eq!(kinds, Vec::<&str>::new());
    journal.close().await;
    let again = open(config(&place, 8_000), model.clone()).await;
    let ended = again.session("a").await.unwrap().send("third").await.unwrap();
    assert_eq!((ended.outcome, ended.text.as_str()), (Outcome::Completed, "Three."), "{ended:?}");
    again.shutdown().await.unwrap();
}

/// What the model was asked after a record was erased, in a session that was compacted.
async fn asked_after_erasing(
    place: &TestHome,
    which: impl Fn(&[Record]) -> u64,
    answers: serde_json::Value,
    before: impl AsyncFn(&longhaul_agent::Session),
    after: impl AsyncFn(&longhaul_agent::Session),
) -> Vec<longhaul_model::Request> {
    let model = RecordingModel::new(script(&answers));
    let runtime = open(config(place, 20_000), model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    before(&session).await;
    let id = session.id().unwrap();
    runtime.shutdown().await.unwrap();
    let journal = place.journal().await;
    let records = records_of(&*journal, id).await;
    erase_record(&*journal, id, which(&records), "a secret").await.unwrap();
    journal.close().await;
    let again = open(config(place, 20_000), model.clone()).await;
    after(&again.session("a").await.unwrap()).await;
    again.shutdown().await.unwrap();
    model.requests()
}

/// J10: erasing an old summary leaves the newer ones.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_summary_that_is_erased_takes_no_other_with_it() {
    let place = TestHome::new();
    let answers = json!([text(2_000), "Two.", summary("goal-one"), "Three.", summary("goal-two"), "Four."]);
    let first =
        |records: &[Record]| records.iter().find(|record| record.kind == "system_message").unwrap().seq;

    let requests = asked_after_erasing(
        &place,
        first,
        answers,
        async |session| {
            session.send("first").await.unwrap();
            session.send("second").await.unwrap();
            session.compact().await.unwrap().unwrap();
            session.send("third").await.unwrap();
            session.compact().await.unwrap().unwrap();
        },
        async |session| {
            session.send("fourth").await.unwrap();
        },
    )
    .await;

    let last = crate::compaction::texts(requests.last().unwrap());
    assert!(last.iter().any(|text| text.contains("goal-two")), "{last:#?}");
}

/// C6, J10: what an epoch's summary says outlives the erasure of the epoch's record.
#[tokio::test(flavor = "multi_thread")]
async fn the_summary_of_an_erased_epoch_goes_into_the_next() {
    let place = TestHome::new();
    let answers = json!([text(2_000), "Two.", summary("goal-one"), "Three.", summary("goal-two"), "Four."]);
    let second =
        |records: &[Record]| records.iter().filter(|record| record.kind == "input_taken").nth(1).unwrap().seq;

    let requests = asked_after_erasing(
        &place,
        second,
        answers,
        async |session| {
            session.send("first").await.unwrap();
            session.send("the word is xyzzysecret, remember it").await.unwrap();
            session.compact().await.unwrap().unwrap();
        },
        async |session| {
            session.send("third").await.unwrap();
            session.compact().await.unwrap().unwrap();
        },
    )
    .await;

    let asked = requests.iter().rev().find(|request| crate::compaction::is_summary(request)).unwrap();
    let asked = crate::compaction::texts(asked);
    assert!(asked.iter().any(|text| text.contains("goal-one")), "{asked:#?}");
}

/// J10: what was covered does not come back because the order that asked for it is erased.
#[tokio::test(flavor = "multi_thread")]
async fn a_focus_that_is_erased_with_its_epoch_brings_nothing_back() {
    let place = TestHome::new();
    let goal = "keep the account xyzzysecret in mind";
    let answers = json!([text(2_000), "Two.", summary(goal), "Three.", "Four."]);
    let order = |records: &[Record]| records.iter().find(|record| record.kind == "order_taken").unwrap().seq;

    let requests = asked_after_erasing(
        &place,
        order,
        answers,
        async |session| {
            session.send("first").await.unwrap();
            session.send("second").await.unwrap();
            session.compact_with(Some("the account xyzzysecret".to_owned())).await.unwrap().unwrap();
            session.send("third").await.unwrap();
        },
        async |session| {
            session.send("fourth").await.unwrap();
        },
    )
    .await;

    let last = crate::compaction::texts(requests.last().unwrap());
    assert!(last.iter().all(|text| text.len() < 4_000), "what was covered is back");
}
