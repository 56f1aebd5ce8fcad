//! Killed at every append of a turn that fetches a page and asks the user. Whatever the moment, the end is the same.
//!
//! | killed | the next runtime |
//! | --- | --- |
//! | before the start of a fetch is on record | fetches |
//! | after its start, before its result | fetches again: a fetch is a read |
//! | after its result | never fetches it again |
//! | before the question is on record | asks |
//! | after that | has the question open, under the same id |
//! | before or after the answer is taken | takes it, once; it becomes the result |
//! | after the result | never asks again |

use std::time::{Duration, Instant};

use longhaul_agent::{Config, RuntimeBuilder, Session};
use longhaul_journal::Journal;
use longhaul_protocol::SessionRecord;
use longhaul_testkit::{
    Crash, CrashMoment, FaultyJournal, RecordingModel, TestHome, WebServer, broken_rules, records_of,
};
use serde_json::{Value, json};

use crate::wire::facts;
use crate::{said, script};

fn answers(url: &str) -> Value {
    let call = |name: &str, arguments: Value| json!({"calls": [{"name": name, "arguments": arguments}]});
    let ask = call("ask_user", json!({"question": "Which?", "choices": ["one", "two"]}));
    json!([call("web_fetch", json!({"url": url})), ask, "Done."])
}

fn config(place: &TestHome) -> Config {
    let mut config = place.config();
    config.settings.web.allow = vec!["127.0.0.1".to_owned()];
    config
}

fn tokio_runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A client that goes on wherever the session is.
async fn drive(session: &Session) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        assert!(Instant::now() < deadline, "the turn does not end");
        tokio::time::sleep(Duration::from_millis(3)).await;
        let state = session.state().await.unwrap();
        if let Some(open) = state.questions.first() {
            let _ = session.answer(open.id, "two").await;
        } else if state.turn_count == 0 && state.pending_inputs.is_empty() {
            let _ = session.put(said("go"), Some("first")).await;
        } else if state.turn.is_none() && state.turn_count == 1 {
            return;
        }
    }
}

fn run(place: &TestHome, url: &str, crash: Option<Crash>) -> Vec<Vec<String>> {
    let tokio = tokio_runtime();
    let appends = tokio.block_on(async {
        let journal = FaultyJournal::new(place.journal().await, crash);
        let builder = RuntimeBuilder::new(config(place)).model(RecordingModel::new(script(&answers(url))));
        let runtime = builder.journal(journal.clone()).open().await.unwrap();
        let session = runtime.session("a").await.unwrap();
        tokio::select! {
            biased;
            () = journal.crashed() => {}
            () = drive(&session) => {}
        }
        journal.release_leases().await;
        journal.appends()
    });
    tokio.shutdown_timeout(Duration::from_secs(10));
    appends
}

/// A fresh runtime goes on. What the records say in the end, and the ids of the questions that were asked.
fn resume(place: &TestHome, url: &str) -> (Vec<String>, usize) {
    tokio_runtime().block_on(async {
        let builder = RuntimeBuilder::new(config(place)).model(RecordingModel::new(script(&answers(url))));
        let runtime = builder.journal(place.journal().await).open().await.unwrap();
        let session = runtime.session("a").await.unwrap();
        runtime.start().await.unwrap();
        drive(&session).await;
        runtime.shutdown().await.unwrap();
        let journal = place.journal().await;
        let records = records_of(&*journal, session.id().unwrap()).await;
        journal.close().await;
        assert_eq!(broken_rules(&records), Vec::<String>::new());
        let facts = facts(&records);
        let asked = facts.iter().filter(|fact| matches!(fact, SessionRecord::Question(_))).count();
        let told = facts.into_iter().filter_map(|fact| match fact {
            SessionRecord::Answered(answered) => Some(format!("answered {}", answered.answer)),
            SessionRecord::ToolFinished(finished) => Some(format!("{}: {}", finished.name, finished.content)),
            SessionRecord::TurnEnded(ended) => Some(format!("ended {}", ended.text)),
            _ => None,
        });
        (told.collect(), asked)
    })
}

/// E7, E8, T12, T13
#[test]
fn killed_at_any_append_a_page_and_an_answer_are_each_recorded_once() {
    let web = tokio_runtime();
    let server = web.block_on(WebServer::of_page("<p>hello"));
    let url = server.url("/");
    let place = TestHome::in_memory();
    let appends = run(&place, &url, None);
    let expected = resume(&place, &url);
    assert_eq!(server.requests().len(), 1);
    assert_eq!(
        (expected.0[1].as_str(), expected.0[2].as_str(), expected.1),
        ("answered two", "ask_user: two", 1)
    );
    for append in 1..=appends.len() {
        for when in [CrashMoment::Before, CrashMoment::After] {
            let (place, before) = (TestHome::in_memory(), server.requests().len());
            run(&place, &url, Some(Crash { append, when }));

            let end = resume(&place, &url);

            let requests = server.requests().len() - before;
            assert_eq!(end, expected, "{when:?} {append} {:?}", appends[append - 1]);
            assert!((1..=2).contains(&requests), "{requests} requests: {when:?} {append}");
        }
    }
}
