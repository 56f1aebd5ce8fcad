//! Calls of MCP servers that take long: tasks over broken connections, users who take their time, and cancels that reach the server.

use std::time::{Duration, Instant};

use longhaul_agent::mcp::{ServerSettings, ServerState};
use longhaul_agent::{Config, Session};
use longhaul_protocol::{EventKind, Outcome};
use longhaul_testkit::{TestHome, collect_until, ended_turn};
use serde_json::json;

use crate::mcp::{call, config, keepers_of_servers, open, results, server, started};
use crate::{eventually, said, sound_records};

/// E2: the server dies in a poll. The next one is asked about the task.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_outlives_the_connection_over_which_it_is_polled() {
    let place = TestHome::new();
    let config = config(&place, &[("test", server(&["--modern", "--polls", "5"]))]);
    std::fs::write(place.work().join("die.on.poll"), "").unwrap();
    let (runtime, _) = open(config, &json!([call("test__task", ""), "Done."])).await;
    let session = runtime.session("a").await.unwrap();

    session.send("go").await.unwrap();

    runtime.shutdown().await.unwrap();
    assert_eq!(results(&sound_records(&place, &session).await)[0].2, "the task is done");
    assert_eq!(started(&place).len(), 2);
}

/// E1: the time in which the user reads a question of the server is not the server's.
#[tokio::test(flavor = "multi_thread")]
async fn the_user_may_take_longer_to_answer_than_a_call_may() {
    let place = TestHome::new();
    let settings = ServerSettings { timeout_s: 3, ..server(&[]) };
    let config = Config { is_attended: true, ..config(&place, &[("test", settings)]) };
    let (runtime, _) = open(config, &json!([call("test__ask", ""), "Done."])).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();
    session.put(said("go"), None).await.unwrap();
    let events = collect_until(&mut watcher, |kind| matches!(kind, EventKind::Question { .. })).await;
    let EventKind::Question { id, .. } = events.last().unwrap().kind.clone() else { unreachable!() };

    // Longer than the call may be without a sign of progress.
    tokio::time::sleep(Duration::from_millis(3_500)).await;
    session.answer(id, "blue").await.unwrap();
    collect_until(&mut watcher, ended_turn).await;

    runtime.shutdown().await.unwrap();
    assert_eq!(results(&sound_records(&place, &session).await)[0].2, "accept blue");
}

/// Cancels the turn of a session once its server has logged this, and waits for the end of the turn.
async fn cancel_at(place: &TestHome, session: &Session, line: &str) {
    let mut watcher = session.watch();
    session.put(said("go"), None).await.unwrap();
    eventually("the server has it", || async {
        place.file("calls.log").lines().any(|logged| logged == line)
    })
    .await;
    session.cancel().await.unwrap();
    let ended = collect_until(&mut watcher, ended_turn).await.pop().unwrap();
    assert!(matches!(ended.kind, EventKind::TurnEnded { outcome: Outcome::Cancelled, .. }), "{ended:?}");
}

/// E2: a cancel reaches the server, whatever its tool does.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_told_that_a_call_is_cancelled() {
    let cases = [
        (vec![], call("test__echo", "for ever"), "echo for ever", "notifications/cancelled"),
        (vec![], call("test__hang", ""), "hang", "notifications/cancelled"),
        (vec!["--modern"], call("test__task", ""), "poll", "tasks/cancel"),
    ];
    for (arguments, call, begun, told) in cases {
        let place = TestHome::new();
        let (runtime, _) = open(config(&place, &[("test", server(&arguments))]), &json!([call])).await;
        let session = runtime.session("a").await.unwrap();

        cancel_at(&place, &session, begun).await;

        eventually(told, || async { place.file("calls.log").lines().any(|logged| logged == told) }).await;
        runtime.shutdown().await.unwrap();
        let found = results(&sound_records(&place, &session).await);
        assert!(found[0].1 && found[0].2.contains("stopped: the turn ended"), "{found:?}");
    }
}

/// E1, E2: also while the user is asked.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_is_told_that_its_call_is_cancelled() {
    let cases = [
        (vec![], call("test__ask", ""), "notifications/cancelled"),
        (vec!["--modern", "--task-asks"], call("test__task", ""), "tasks/cancel"),
    ];
    for (arguments, call, told) in cases {
        let place = TestHome::new();
        let config = Config { is_attended: true, ..config(&place, &[("test", server(&arguments))]) };
        let (runtime, _) = open(config, &json!([call])).await;
        let session = runtime.session("a").await.unwrap();
        let mut watcher = session.watch();
        session.put(said("go"), None).await.unwrap();
        collect_until(&mut watcher, |kind| matches!(kind, EventKind::Question { .. })).await;

        session.cancel().await.unwrap();

        collect_until(&mut watcher, ended_turn).await;
        eventually(told, || async { place.file("calls.log").lines().any(|logged| logged == told) }).await;
        assert!(runtime.open_questions().await.unwrap().is_empty());
        runtime.shutdown().await.unwrap();
    }
}

/// Puts another program in place of the test's server.
fn replace_server(place: &TestHome, program: &str) {
    std::fs::write(place.work().join("server.py"), program).unwrap();
}

/// E1: the runtime does not wait for a server that has stopped listing its tools.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_list_its_tools_any_more_ends_with_the_runtime() {
    let place = TestHome::new();
    let settings = ServerSettings { timeout_s: 600, ..server(&[]) };
    let config = config(&place, &[("test", settings)]);
    let (runtime, _) = open(config, &json!(["First.", call("test__echo", "x"), "Done."])).await;
    let session = runtime.session("a").await.unwrap();
    session.send("one").await.unwrap();
    std::fs::write(place.work().join("list.hangs"), "").unwrap();
    std::fs::write(place.work().join("change.now"), "").unwrap();
    session.send("two").await.unwrap();
    eventually("it is asked for its tools", || async { place.file("calls.log").contains("list hangs") })
        .await;

    runtime.shutdown().await.unwrap();

    eventually("it ends", || async { keepers_of_servers(&place) == 0 }).await;
}

/// E2: no session waits for a server that is known to be broken, and whose tools are known.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_session_does_not_wait_for_a_server_that_has_failed() {
    let place = TestHome::new();
    let config = config(&place, &[("test", server(&[]))]);
    // Once it has died, it starts no more: it hangs instead.
    let program = std::fs::read_to_string(place.work().join("server.py")).unwrap();
    let hang = "if logged(\"die\"): time.sleep(600)\n";
    let loop_start = "for line in sys.stdin:\n";
    assert!(program.contains(loop_start));
    replace_server(&place, &program.replace(loop_start, &format!("{hang}{loop_start}")));
    let (runtime, _) = open(config, &json!(["First.", call("test__die", ""), "Second."])).await;
    let session = runtime.session("a").await.unwrap();
    session.send("one").await.unwrap();
    session.send("two").await.unwrap();
    eventually("it has failed", || async { runtime.mcp_servers()[0].state == ServerState::Failed }).await;

    let since = Instant::now();
    runtime.session("b").await.unwrap().send("one").await.unwrap();

    // The first request of an epoch may wait for 30 s.
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
    runtime.shutdown().await.unwrap();
}

/// E2: a server of the stateless protocol tells of changes over a subscription.
#[tokio::test(flavor = "multi_thread")]
async fn a_stateless_server_tells_of_its_new_tools_while_it_runs() {
    let place = TestHome::new();
    let config = config(&place, &[("test", server(&["--modern"]))]);
    let (runtime, _) = open(config, &json!(["First.", call("test__echo", "one"), "Second."])).await;
    let session = runtime.session("a").await.unwrap();
    session.send("one").await.unwrap();
    std::fs::write(place.work().join("tools.txt"), "brand_new").unwrap();
    std::fs::write(place.work().join("change.now"), "").unwrap();
    session.send("two").await.unwrap();

    let is_listed = || runtime.mcp_servers()[0].tools.iter().any(|tool| tool == "test__brand_new");
    eventually("the new tool is listed", || async { is_listed() }).await;

    assert_eq!(started(&place).len(), 1);
    runtime.shutdown().await.unwrap();
}

/// E1: two calls ask at once, and the answers come in the other order.
#[tokio::test(flavor = "multi_thread")]
async fn the_second_question_can_be_answered_before_the_first() {
    let place = TestHome::new();
    let servers = [("one", server(&[])), ("two", server(&[]))];
    let config = Config { is_attended: true, ..config(&place, &servers) };
    // Only reads run side by side.
    let ask = |tool: &str| json!({"name": tool, "arguments": {"text": "ask the user"}});
    let calls = json!({"calls": [ask("one__echo"), ask("two__echo")]});
    let (runtime, _) = open(config, &json!([calls, "Done."])).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();
    session.put(said("go"), None).await.unwrap();
    let mut ids = Vec::new();
    for _ in 0..2 {
        let events = collect_until(&mut watcher, |kind| matches!(kind, EventKind::Question { .. })).await;
        let EventKind::Question { id, .. } = events.last().unwrap().kind.clone() else { unreachable!() };
        ids.push(id);
    }

    session.answer(ids[1], "blue").await.unwrap();
    collect_until(&mut watcher, |kind| matches!(kind, EventKind::ToolFinished { .. })).await;
    session.answer(ids[0], "red").await.unwrap();

    collect_until(&mut watcher, ended_turn).await;
    runtime.shutdown().await.unwrap();
    let found = results(&sound_records(&place, &session).await);
    assert_eq!((found[0].2.as_str(), found[1].2.as_str()), ("accept blue", "accept red"));
}
