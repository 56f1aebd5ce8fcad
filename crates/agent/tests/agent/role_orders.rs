//! K7: a session goes on with servers that accept only some orders of roles.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use longhaul_agent::config::{Approval, ApprovalRule};
use longhaul_agent::session::EndNotice;
use longhaul_agent::{Config, Runtime, Session};
use longhaul_model::Protocol;
use longhaul_protocol::{Input, InputId, JoinMode, Outcome, SessionRecord};
use longhaul_testkit::TestHome;
use longhaul_testkit::wire::{MemoryTransport, ReceivedRequest, Reply, RoleRule, Script, ScriptedAnswer};
use serde_json::{Value, json};

use crate::wire::{config, facts, open};
use crate::{eventually, sends, sound_records};

const ALWAYS: [RoleRule; 2] = [RoleRule::UserOrToolLast, RoleRule::NoEmptyContent];

fn strict(rules: &[RoleRule]) -> Vec<RoleRule> {
    [rules, &ALWAYS].concat()
}

fn exec(command: &str) -> ScriptedAnswer {
    ScriptedAnswer::nothing().call("exec", json!({"command": command}))
}

fn in_background(command: &str) -> ScriptedAnswer {
    ScriptedAnswer::nothing().call("exec", json!({"command": command, "run_in_background": true}))
}

fn until(file: &str) -> String {
    format!("while [ ! -e {file} ]; do sleep 0.02; done")
}

/// What the model says next, by what it has read last.
fn answer(seen: &ReceivedRequest) -> ScriptedAnswer {
    let body = seen.json();
    let offers = |name: &str| {
        body["tools"]
            .as_array()
            .is_some_and(|tools| tools.iter().any(|tool| tool["function"]["name"] == name))
    };
    if offers("write_summary") {
        return ScriptedAnswer::nothing()
            .call("write_summary", json!({"goal": "reach it", "next_action": "go on"}));
    }
    if offers("write_extracted") {
        return ScriptedAnswer::nothing().call("write_extracted", json!({"items": []}));
    }
    let messages = body["messages"].as_array().unwrap();
    let is_new = messages.iter().rev().take_while(|message| message["role"] != "tool");
    let is_new = is_new.filter(|message| message["role"] == "user");
    let said: Vec<&str> = is_new.filter_map(|message| message["content"].as_str()).collect();
    let order = said.iter().find_map(|text| text.strip_prefix("order: "));
    let is_answered = messages.last().is_some_and(|message| message["role"] == "tool");
    match order {
        Some(order) if !is_answered && said.first().is_some_and(|text| text.starts_with("order: ")) => {
            match order {
                "start" => in_background(&until("go")),
                "wait" => exec(&until("joined")),
                "hang" => exec(&until("never")),
                "ask" => exec("touch asked"),
                other => panic!("{other}"),
            }
        }
        _ => ScriptedAnswer::text("Done."),
    }
}

/// A server with these rules that refuses in these words, or in the rules' own; and how often it did.
fn server(rules: Vec<RoleRule>, words: Option<&'static str>) -> (Script, Arc<AtomicUsize>) {
    let refused = Arc::new(AtomicUsize::new(0));
    let count = refused.clone();
    let script = Script::by(move |seen| match RoleRule::refuse(&rules, seen) {
        Some(reply) => {
            count.fetch_add(1, Ordering::SeqCst);
            words.map_or(reply, |words| Reply::error(400, json!({"error": {"message": words}}).to_string()))
        }
        None => Reply::frames(answer(seen).usage(100, 5).frames(Protocol::OpenaiChat)),
    });
    (script, refused)
}

fn strict_config(place: &TestHome) -> Config {
    let mut config = config(place, Protocol::OpenaiChat);
    let (tool, command) = ("exec".to_owned(), Some("touch asked".to_owned()));
    config.settings.approval.rule = vec![ApprovalRule { tool, command, host: None, action: Approval::Ask }];
    config
}

async fn put(session: &Session, text: &str, mode: JoinMode) {
    let input = Input::new(InputId::generate(), text.to_owned(), mode);
    session.put(input, None).await.unwrap();
}

async fn calls_are_open(session: &Session) {
    eventually("a command runs", || async {
        let turn = session.state().await.unwrap().turn;
        turn.is_some_and(|turn| turn.calls.iter().any(longhaul_agent::session::CallState::is_open))
    })
    .await;
}

/// Everything that puts a message of the runtime, or two of the user, where a strict server may not want them.
async fn live(place: &TestHome, session: &Session) {
    // A task in the background, and the note about it after the result.
    assert_eq!(session.send("order: start").await.unwrap().outcome, Outcome::Completed);

    // An input that joins after a result.
    let sending = sends(session, "order: wait");
    calls_are_open(session).await;
    put(session, "be quick", JoinMode::Join).await;
    std::fs::write(place.work().join("joined"), "").unwrap();
    assert_eq!(sending.await.unwrap().unwrap().outcome, Outcome::Completed);

    // One that interrupts, and one that comes after a cancel.
    let sending = sends(session, "order: hang");
    calls_are_open(session).await;
    put(session, "stop that", JoinMode::Interrupt).await;
    assert_eq!(sending.await.unwrap().unwrap().outcome, Outcome::Cancelled);
    eventually("the interrupting input was answered", || async {
        let state = session.state().await.unwrap();
        state.turn.is_none() && state.pending_inputs.is_empty()
    })
    .await;
    let sending = sends(session, "order: hang");
    calls_are_open(session).await;
    session.cancel().await.unwrap();
    assert_eq!(sending.await.unwrap().unwrap().outcome, Outcome::Cancelled);
    assert_eq!(session.send("and now?").await.unwrap().outcome, Outcome::Completed);

    // A question.
    let sending = sends(session, "order: ask");
    eventually("a question is open", || async { !session.state().await.unwrap().questions.is_empty() }).await;
    let question = session.state().await.unwrap().questions.remove(0);
    session.answer(question.id, "no").await.unwrap();
    assert_eq!(sending.await.unwrap().unwrap().outcome, Outcome::Completed);

    // A compaction, and the end of the task after it.
    assert!(session.compact().await.unwrap().is_some());
    std::fs::write(place.work().join("go"), "").unwrap();
    eventually("the task has ended and was answered", || async {
        let state = session.state().await.unwrap();
        state.turn.is_none() && state.tasks.all().iter().all(|task| task.end_notice != EndNotice::Pending)
    })
    .await;
    assert_eq!(session.send("once more").await.unwrap().outcome, Outcome::Completed);
}

async fn story(rules: &[RoleRule], words: Option<&'static str>) -> (usize, usize, Vec<Value>) {
    let place = TestHome::new();
    let (script, refused) = server(strict(rules), words);
    let (runtime, wire) = open(strict_config(&place), script.clone()).await;
    let session = runtime.session("a").await.unwrap();
    live(&place, &session).await;
    runtime.shutdown().await.unwrap();
    let records = facts(&sound_records(&place, &session).await);
    let failed = |fact: &&SessionRecord| matches!(fact, SessionRecord::TurnEnded(end) if end.outcome == Outcome::Failed);
    assert_eq!(records.iter().filter(failed).count(), 0);
    let warned = |fact: &&SessionRecord| matches!(fact, SessionRecord::Warning(warning) if warning.code == "role_order");
    assert_eq!(
        records.iter().filter(warned).count(),
        refused.load(Ordering::SeqCst).min(1),
        "it is said once"
    );
    let before = refused.load(Ordering::SeqCst);

    let (runtime, _) = reopen(&place, script).await;
    let again = runtime.session("b").await.unwrap();
    std::fs::remove_file(place.work().join("go")).unwrap();
    std::fs::remove_file(place.work().join("joined")).unwrap();
    live(&place, &again).await;
    runtime.shutdown().await.unwrap();
    let bodies = wire.requests().iter().map(ReceivedRequest::json).collect();
    (before, refused.load(Ordering::SeqCst) - before, bodies)
}

async fn reopen(place: &TestHome, script: Script) -> (Runtime, Arc<MemoryTransport>) {
    open(strict_config(place), script).await
}

/// K7: a server that nobody knows gets a form that it accepts from the start, unless it is stricter than most.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_takes_a_system_message_only_first_is_never_sent_another() {
    let (first, later, bodies) = story(&[RoleRule::SystemFirst], None).await;

    assert_eq!((first, later), (0, 0));
    let text = Value::from(bodies).to_string();
    assert!(
        text.contains("[runtime note] Currently running background tasks"),
        "notes are told as marked blocks"
    );
}

/// K7: it is answered at once with another form, the turn goes on, and the next process knows.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_wants_the_assistant_after_results_refuses_once() {
    assert_eq!(pair(story(&[RoleRule::SystemFirst, RoleRule::AssistantAfterTool], None).await), (1, 0));
}

/// K7
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_wants_roles_to_alternate_refuses_once() {
    let rules = [RoleRule::SystemFirst, RoleRule::Alternate, RoleRule::AssistantAfterTool];
    assert_eq!(pair(story(&rules, None).await), (1, 0));
}

/// K7
#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_system_messages_refuses_once() {
    let rules = [RoleRule::NoSystem, RoleRule::Alternate, RoleRule::AssistantAfterTool];
    assert_eq!(pair(story(&rules, None).await), (1, 0));
}

/// K7: a refusal that gives no reason is taken for one of the order of roles, once.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_an_order_without_a_reason_is_sent_the_plainest() {
    let rules = [RoleRule::Alternate, RoleRule::AssistantAfterTool];
    assert_eq!(pair(story(&rules, Some("bad request")).await), (1, 0));
}

fn pair((first, later, _): (usize, usize, Vec<Value>)) -> (usize, usize) {
    (first, later)
}

/// K7: where no order helps, the turn ends with the server's words and what to do; nothing is tried without end.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_every_order_ends_the_turn_with_its_words() {
    for (words, requests) in [("Conversation roles must alternate", 2), ("bad request", 1)] {
        let place = TestHome::new();
        let refusal = json!({"error": {"message": words}}).to_string();
        let script = Script::by(move |_| Reply::error(400, refusal.clone()));
        let (runtime, wire) = open(config(&place, Protocol::OpenaiChat), script).await;
        let session = runtime.session("a").await.unwrap();

        let ended = session.send("hello").await.unwrap();

        assert_eq!((ended.outcome, ended.code.as_deref()), (Outcome::Failed, Some("invalid_request")));
        let error = ended.error.unwrap();
        assert!(error.contains(words) && error.contains("model.base_url"), "{error}");
        assert_eq!(wire.requests().len(), requests, "{words}");
        runtime.shutdown().await.unwrap();
    }
}

/// K7: what was learned holds until the user declares another order.
#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_the_user_declares_wins_over_one_that_was_learned() {
    let place = TestHome::new();
    let lesson = json!({
        "server": "https://model.test/v1",
        "model": "m",
        "roles": {"declared": "user", "accepted": "no-system"},
    });
    std::fs::create_dir_all(place.home().join("cache")).unwrap();
    std::fs::write(place.home().join("cache/servers"), format!("{lesson}\n")).unwrap();
    let mut first_roles = Vec::new();

    for quirks in ["", "quirks = { roles = \"user\" }", "quirks = { roles = \"alternating\" }"] {
        let row =
            format!("[mine]\nbase_url = \"https://model.test/v1\"\nprotocol = \"openai-chat\"\n{quirks}\n");
        std::fs::write(place.home().join("providers.toml"), row).unwrap();
        let mut config = config(&place, Protocol::OpenaiChat);
        config.settings.model.name = "mine/m".to_owned();
        config.settings.model.base_url = None;
        let script =
            Script::by(|seen| Reply::frames(answer(seen).usage(100, 5).frames(Protocol::OpenaiChat)));
        let (runtime, wire) = open(config, script).await;
        let session = runtime.session(&format!("a{}", first_roles.len())).await.unwrap();
        assert_eq!(session.send("hello").await.unwrap().outcome, Outcome::Completed);
        runtime.shutdown().await.unwrap();
        first_roles.push(wire.requests()[0].json()["messages"][0]["role"].as_str().unwrap().to_owned());
    }

    assert_eq!(first_roles, ["user", "user", "system"]);
}
