//! Killed at every append of a turn that reads a skill and runs its program, of a compaction after it, and of the turn after
//! that. The table is in `agent::skills`: whatever the moment, the end is the same.

use std::sync::Arc;
use std::time::Duration;

use longhaul_agent::{Config, Error, RuntimeBuilder, Session};
use longhaul_journal::Journal;
use longhaul_protocol::{ActiveSkill, Item};
use longhaul_testkit::{
    Crash, CrashMoment, FaultyJournal, RecordingModel, TestHome, broken_rules, records_of,
};
use serde_json::{Value, json};

use crate::skills::{BODY, shown, user_skills, write_skill};
use crate::{said, script};

fn answers(program: &str) -> Value {
    let call = |name: &str, arguments: Value| json!({"calls": [{"name": name, "arguments": arguments}]});
    json!([
        call("read_file", json!({"path": "skill:release"})),
        call("exec", json!({"command": format!("{program} >> log.txt")})),
        "Once.",
        "Twice.",
        "Done.",
    ])
}

/// Exchanges are dropped by rule, so that no summary depends on where a run was killed.
fn config(place: &TestHome) -> Config {
    let mut config = crate::skills::config(place);
    config.settings.context.summary = longhaul_agent::config::Summary::Off;
    config
}

fn tokio_runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Three turns, with a compaction before the last one. Goes on wherever the session is.
async fn drive(session: &Session) -> longhaul_agent::Result<()> {
    for (turn, words) in (1..).zip(["release it", "and then?", "go on"]) {
        loop {
            let state = session.state().await?;
            if turn < 3 || state.turn_count > 2 || state.turn.is_some() || state.compaction.count > 0 {
                break;
            }
            match session.compact().await {
                // The killed process left a compaction open, which is closed first.
                Ok(_) | Err(Error::NotCompacted { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        if session.state().await?.turn_count < turn {
            session.put(said(words), Some(words)).await?;
        }
        loop {
            let state = session.state().await?;
            if state.turn_count >= turn && state.turn.is_none() {
                break;
            }
            session.wake().await?;
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    }
    Ok(())
}

struct Run {
    appends: usize,
    has_crashed: bool,
}

fn run(place: &TestHome, model: &Value, crash: Option<Crash>) -> Run {
    let tokio = tokio_runtime();
    let run = tokio.block_on(async {
        let journal = FaultyJournal::new(place.journal().await, crash);
        let builder = RuntimeBuilder::new(config(place)).model(RecordingModel::new(script(model)));
        let runtime = builder.journal(journal.clone()).open().await.unwrap();
        let session = runtime.session("a").await.unwrap();
        tokio::select! {
            () = journal.crashed() => {}
            driven = drive(&session) => driven.unwrap(),
        }
        journal.release_leases().await;
        Run { appends: journal.appends().len(), has_crashed: journal.has_crashed() }
    });
    // As if killed: nothing is told, nothing is waited for but what already runs on a thread.
    tokio.shutdown_timeout(Duration::from_secs(10));
    run
}

/// What is there in the end: the active skills, how often the text stands in the context, and what the program wrote.
#[derive(Debug, PartialEq, Eq)]
struct End {
    names: Vec<String>,
    is_hash_on_record: bool,
    texts: usize,
    log: String,
    compactions: u64,
}

fn resume(place: &TestHome, model: &Value) -> End {
    tokio_runtime().block_on(async {
        let builder = RuntimeBuilder::new(config(place)).model(RecordingModel::new(script(model)));
        let runtime = builder.open().await.unwrap();
        let session = runtime.session("a").await.unwrap();
        drive(&session).await.unwrap();
        let state = session.state().await.unwrap();
        runtime.shutdown().await.unwrap();
        let journal = place.journal().await;
        let records = records_of(&*journal, session.id().unwrap()).await;
        journal.close().await;
        assert_eq!(broken_rules(&records), Vec::<String>::new());
        let has_text = |item: &&Arc<Item>| {
            matches!(&***item, Item::Text { text: content, .. } | Item::ToolResult { content, .. } if content.contains(BODY))
        };
        let recorded = shown(&records);
        let is_recorded = |skill: &ActiveSkill| recorded.iter().any(|shown| shown.hash == skill.hash);
        End {
            names: state.active_skills.iter().map(|skill| skill.name.clone()).collect(),
            is_hash_on_record: state.active_skills.iter().all(is_recorded),
            texts: state.items.iter().filter(has_text).count(),
            log: place.file("log.txt"),
            compactions: state.compaction.count,
        }
    })
}

fn place() -> (TestHome, Value) {
    let place = TestHome::in_memory();
    let folder = write_skill(&user_skills(&place), "release");
    let answers = answers(&folder.join("scripts/build.sh").display().to_string());
    (place, answers)
}

/// E5, T5, T13, C11: killed before and after every append, the skill is active once, with its text and its hash, and its
/// program has run once.
#[test]
fn a_skill_that_is_read_and_compacted_survives_a_kill_at_every_append() {
    let (reference, model) = place();
    let appends = run(&reference, &model, None).appends;
    let expected = resume(&reference, &model);
    assert_eq!(
        expected,
        End {
            names: vec!["release".to_owned()],
            is_hash_on_record: true,
            texts: 1,
            log: "built by the skill\n".to_owned(),
            compactions: 1,
        }
    );

    for append in 1..=appends {
        for when in [CrashMoment::Before, CrashMoment::After] {
            let (place, model) = place();
            let crashed = run(&place, &model, Some(Crash { append, when }));
            assert!(crashed.has_crashed, "append {append} of {appends}");

            let end = resume(&place, &model);

            assert_eq!(end, expected, "killed {when:?} append {append} of {appends}");
        }
    }
}
