//! Compactions of small contexts, with the settings that make them happen.

use longhaul_agent::Config;
use longhaul_testkit::{TestHome, collect_until, ended_turn};
use serde_json::json;

use crate::compaction::{compactions, config, open, summary};
use crate::sound_records;
use crate::staged::Staged;

/// What the compactions of two tiny turns come to, each in a runtime of its own, and what the model was asked for.
async fn two_tiny_turns(config: impl Fn(&TestHome) -> Config) -> (Vec<Vec<String>>, Vec<&'static str>) {
    let place = TestHome::in_memory();
    let model =
        Staged::new(&json!(["One.", "Two."]), vec![summary("reach it"), summary("reach it")]).shared();
    let mut told = Vec::new();
    for text in ["first", "second"] {
        let runtime = open(config(&place), model.clone()).await;
        let session = runtime.session("a").await.unwrap();
        let mut watcher = session.watch();
        session.send(text).await.unwrap();
        told.push(compactions(&collect_until(&mut watcher, ended_turn).await));
        runtime.shutdown().await.unwrap();
        sound_records(&place, &session).await;
    }
    (told, model.asked())
}

fn done() -> Vec<Vec<String>> {
    vec![vec![], vec!["start before_turn".to_owned(), "done 2 Model".to_owned()]]
}

/// C6: a context under 4,000 tokens need only fit; it need not get smaller.
#[tokio::test(flavor = "multi_thread")]
async fn a_tiny_context_is_compacted_although_it_does_not_get_smaller() {
    for window in [Some(8_000), Some(100_000), None] {
        let (told, asked) = two_tiny_turns(|place| {
            let mut config = config(place, 0);
            config.settings.model.context_window = window;
            config.settings.context.compact_at_tokens = Some(1);
            config.settings.context.keep_tokens = 0;
            config
        })
        .await;

        assert_eq!(told, done(), "{window:?}");
        assert_eq!(asked, ["step", "summary", "step"], "{window:?}");
    }
}

/// C2: the check of every request holds for the first one of a turn, also where the check before a turn is off.
#[tokio::test(flavor = "multi_thread")]
async fn with_the_check_of_requests_alone_a_turn_compacts_before_its_first_request() {
    let (told, asked) = two_tiny_turns(|place| {
        let mut config = config(place, 100_000);
        config.settings.context.compact_at = 0.0;
        config.settings.context.compact_now_at_tokens = Some(1);
        config.settings.context.keep_tokens = 0;
        config
    })
    .await;

    assert_eq!(told, done());
    assert_eq!(asked, ["step", "summary", "step"]);
}

/// C2: 0 turns a check off.
#[tokio::test(flavor = "multi_thread")]
async fn without_checks_nothing_is_compacted() {
    let (told, asked) = two_tiny_turns(|place| {
        let mut config = config(place, 100_000);
        let context = &mut config.settings.context;
        (context.compact_at_tokens, context.compact_now_at_tokens) = (Some(0), Some(0));
        config
    })
    .await;

    assert_eq!((told, asked), (vec![vec![], vec![]], vec!["step", "step"]));
}
