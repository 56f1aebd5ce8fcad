//! The agent's own schedules (W3).

use longhaul_agent::schedules::ScheduleStatus;
use longhaul_protocol::{Outcome, Question};
use longhaul_testkit::{RecordingModel, TestHome};
use serde_json::{Value, json};

use crate::{eventually, open, results, script, sends, sound_records};

fn call(arguments: &Value) -> Value {
    json!({"calls": [{"name": "schedule", "arguments": arguments}]})
}

async fn question(session: &longhaul_agent::Session) -> Question {
    eventually("a question is open", || async { !session.state().await.unwrap().questions.is_empty() }).await;
    session.state().await.unwrap().questions.remove(0)
}

/// W3, P8: adding asks, also in the mode that asks for nothing; the runs go to the session that made the schedule, and the words count
/// as the agent's.
#[tokio::test(flavor = "multi_thread")]
async fn the_agent_makes_a_schedule_only_after_the_user_agreed() {
    let place = TestHome::new();
    let add = json!({"action": "add", "name": "build", "every": "1h", "prompt": "Look at the builds."});
    let script = script(&json!([
        call(&add),
        call(&json!({"action": "list"})),
        call(&json!({"action": "remove", "name": "other"})),
        "Done."
    ]));
    let runtime = open(&place, RecordingModel::new(script)).await;
    let session = runtime.session("a").await.unwrap();
    let sending = sends(&session, "look at the builds every hour");

    let asked = question(&session).await;
    assert!(runtime.schedules().list().await.unwrap().is_empty(), "nothing is made before the answer");
    session.answer(asked.id, "yes").await.unwrap();

    assert_eq!(sending.await.unwrap().unwrap().outcome, Outcome::Completed);
    let made = runtime.schedules().show("build").await.unwrap();
    runtime.shutdown().await.unwrap();
    assert_eq!((made.source.as_str(), made.status), ("agent", ScheduleStatus::Waiting));
    assert_eq!(made.spec.session.as_deref(), Some("a"));
    let results = results(&sound_records(&place, &session).await);
    assert!(results[0].2.starts_with("added: build: every 1h, waiting, next 20"), "{results:?}");
    assert!(results[1].2.starts_with("build: every 1h"), "{results:?}");
    let hint = "\nNo process runs schedules in this home now. Tell the user: `longhaul serve` has to run";
    assert!(results[..2].iter().all(|(.., result)| result.contains(hint)), "{results:?}");
    assert_eq!(results[2].2, "no schedule \"other\"; you made build");
}

/// W3: a no leaves nothing behind, and what an agent may not have is refused with the reason.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_may_not_schedule_is_refused() {
    let place = TestHome::new();
    let often = json!({"action": "add", "name": "often", "every": "1s", "prompt": "Look."});
    let never = json!({"action": "add", "name": "never", "cron": "0 0 30 2 *", "prompt": "Look."});
    let script = script(&json!([call(&often), call(&never), "Done."]));
    let runtime = open(&place, RecordingModel::new(script)).await;
    let session = runtime.session("a").await.unwrap();
    let sending = sends(&session, "go");

    for _ in 0..2 {
        let asked = question(&session).await;
        session.answer(asked.id, "yes").await.unwrap();
        eventually("the question is answered", || async {
            session.state().await.unwrap().questions.iter().all(|open| open.id != asked.id)
        })
        .await;
    }

    sending.await.unwrap().unwrap();
    assert!(runtime.schedules().list().await.unwrap().is_empty());
    runtime.shutdown().await.unwrap();
    let results = results(&sound_records(&place, &session).await);
    assert!(results[0].2.starts_with("an agent's interval is at least 60s"), "{results:?}");
    assert_eq!(results[1].2, "schedule never: cron \"0 0 30 2 *\" never fires");
}
