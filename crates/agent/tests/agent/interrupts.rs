//! T11: a user who interrupts an answer has read what it said, and so has the model.

use std::time::Duration;

use longhaul_agent::{Runtime, Session};
use longhaul_model::Protocol;
use longhaul_protocol::{EventKind, Item, Outcome, Role};
use longhaul_testkit::wire::{End, Reply, Script, ScriptedAnswer};
use longhaul_testkit::{TestHome, collect_until, ended_turn};
use serde_json::Value;

use crate::{sends, sound_records, wire};

const ANSWER: &str = "I will read the first file now, then I change the second line of it and run the tests.";
const NOTE: &str = "The user interrupted here. The next message says how to go on.";

/// An answer that stops coming in its middle.
fn stalls(protocol: Protocol) -> Reply {
    let whole = ScriptedAnswer::text(ANSWER).bytes(protocol);
    let middle = whole.windows(6).position(|bytes| bytes == b"change").unwrap();
    Reply::stream(whole).cut_at(middle).ending(End::Stall)
}

fn says(text: &str, protocol: Protocol) -> Reply {
    Reply::stream(ScriptedAnswer::text(text).bytes(protocol))
}

/// Says something, interrupts the answer when some of it was shown, and returns what was.
async fn interrupted(session: &Session, text: &'static str) -> String {
    let mut watcher = session.watch();
    let sending = sends(session, text);
    let mut events = collect_until(&mut watcher, |kind| matches!(kind, EventKind::TextDelta { .. })).await;
    session.cancel().await.unwrap().unwrap();
    assert_eq!(sending.await.unwrap().unwrap().outcome, Outcome::Cancelled);
    events.extend(collect_until(&mut watcher, ended_turn).await);
    let shown = |kind: &EventKind| match kind {
        EventKind::TextDelta { text } => Some(text.clone()),
        _ => None,
    };
    events.iter().filter_map(|event| shown(&event.kind)).collect()
}

/// The messages of a request, whatever the protocol calls them.
fn messages(body: &Value) -> Vec<Value> {
    let fields = ["messages", "input", "contents"];
    fields.iter().find_map(|field| body[*field].as_array()).unwrap().clone()
}

/// T11, M16, T5: what was said stands in the next request once, in the assistant's voice, then the note, then what the user says; the next answer is
/// its own; and the request after that begins with the same messages.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_before_an_interrupt_stays_in_the_context() {
    for protocol in wire::PROTOCOLS {
        let place = TestHome::new();
        let replies = vec![stalls(protocol), says("Fine.", protocol), says("Done.", protocol)];
        let (runtime, wire) = wire::open(wire::config(&place, protocol), Script::list(replies)).await;
        let session = runtime.session("a").await.unwrap();

        let shown = interrupted(&session, "Change the file.").await;
        let next = session.send("No, use the other file.").await.unwrap();
        session.send("Now run it.").await.unwrap();

        assert!(ANSWER.starts_with(&shown) && !shown.is_empty(), "{protocol:?}: {shown:?}");
        assert_eq!(next.text, "Fine.", "{protocol:?}: not glued to what was interrupted");
        let bodies: Vec<Value> = wire.requests().iter().map(|request| request.json()).collect();
        let sent = Value::from(messages(&bodies[1])).to_string();
        let at = |words: &str| sent.find(words).unwrap_or_else(|| panic!("{protocol:?}: {words}: {sent}"));
        assert!(at("Change the file.") < at(&shown) && at(&shown) < at(NOTE), "{protocol:?}: {sent}");
        assert!(at(NOTE) < at("No, use the other file."), "{protocol:?}: {sent}");
        assert_eq!(sent.matches(shown.as_str()).count(), 1, "{protocol:?}: {sent}");
        let (before, after) = (messages(&bodies[1]), messages(&bodies[2]));
        assert!(after.len() > before.len(), "{protocol:?}");
        let bare = |messages: &[Value]| without_cache_marks(Value::from(messages)).to_string();
        assert_eq!(bare(&after[..before.len()]), bare(&before), "{protocol:?}");
        runtime.shutdown().await.unwrap();
        sound_records(&place, &session).await;
    }
}

fn without_cache_marks(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.remove("cache_control");
            fields.values_mut().for_each(|field| *field = without_cache_marks(field.take()));
        }
        Value::Array(list) => list.iter_mut().for_each(|one| *one = without_cache_marks(one.take())),
        _ => {}
    }
    value
}

/// T11, M10: `continue` goes on from what was interrupted, which stands in the context once.
#[tokio::test(flavor = "multi_thread")]
async fn continue_goes_on_from_what_the_user_interrupted() {
    let place = TestHome::new();
    let chat = Protocol::OpenaiChat;
    let replies = vec![stalls(chat), says("the second line of it.", chat)];
    let (runtime, wire) = wire::open(wire::config(&place, chat), Script::list(replies)).await;
    let session = runtime.session("a").await.unwrap();

    let shown = interrupted(&session, "Change the file.").await;
    let went_on = session.go_on().await.unwrap().unwrap();

    assert_eq!(went_on.text, "the second line of it.");
    let sent = wire.requests()[1].json()["messages"].to_string();
    assert_eq!(sent.matches(shown.as_str()).count(), 1, "{sent}");
    assert!(sent.contains("Go on from exactly this point"), "{sent}");
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// T11: an interrupt while the next try is waited for keeps what the try before it had said.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_between_two_tries_keeps_what_was_shown() {
    let place = TestHome::new();
    let chat = Protocol::OpenaiChat;
    let mut config = wire::config(&place, chat);
    (config.settings.retry.base_ms, config.settings.retry.cap_ms) = (60_000, 60_000);
    let (runtime, _wire) = wire::open(config, Script::list(vec![stalls(chat).ending(End::Cut)])).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();
    let sending = sends(&session, "Change the file.");
    collect_until(&mut watcher, |kind| matches!(kind, EventKind::RetryWait { .. })).await;

    session.cancel().await.unwrap().unwrap();

    sending.await.unwrap().unwrap();
    let state = session.state().await.unwrap();
    let said = |item: &Item| match item {
        Item::Text { role: Role::Assistant, text } => ANSWER.starts_with(text.as_str()),
        _ => false,
    };
    assert_eq!(state.items.iter().filter(|item| said(item)).count(), 1, "{:?}", state.items);
    assert!(matches!(state.items.last().map(|item| &**item), Some(Item::Note { text }) if text == NOTE));
    runtime.shutdown().await.unwrap();
}

/// T11, T12: killed after the interrupt was taken and before the answer was closed, the next runtime keeps what was said and ends the turn.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_survives_a_kill() {
    let place = TestHome::new();
    let chat = Protocol::OpenaiChat;
    let (runtime, _wire) = wire::open(wire::config(&place, chat), Script::list(vec![stalls(chat)])).await;
    let session = runtime.session("a").await.unwrap();
    let sending = sends(&session, "Change the file.");
    crate::eventually("some of it is on disk", || async {
        let turn = session.state().await.unwrap().turn;
        turn.and_then(|turn| turn.attempt).is_some_and(|attempt| !attempt.unfinished.is_empty())
    })
    .await;
    runtime.shutdown().await.unwrap();
    drop(sending);
    let journal = place.journal().await;
    crate::detached(&journal, "a").await.cancel_within(Duration::ZERO).await.unwrap();
    longhaul_journal::Journal::close(&*journal).await;

    let (runtime, wire) =
        wire::open(wire::config(&place, chat), Script::list(vec![says("Fine.", chat)])).await;
    let next = resumed(&runtime).await.send("No, use the other file.").await.unwrap();

    assert_eq!(next.text, "Fine.");
    let sent = wire.requests()[0].json()["messages"].to_string();
    assert!(sent.contains("I will read the first file") && sent.contains(NOTE), "{sent}");
    runtime.shutdown().await.unwrap();
}

async fn resumed(runtime: &Runtime) -> Session {
    let session = runtime.session("a").await.unwrap();
    session.resume().await.unwrap();
    session
}

/// M10, T12: killed in the middle of an answer, `continue` goes on from the text that was kept, and `resume` asks again.
#[tokio::test(flavor = "multi_thread")]
async fn continue_after_a_kill_goes_on_from_the_kept_text_and_resume_asks_again() {
    for continues in [true, false] {
        let place = TestHome::new();
        let chat = Protocol::OpenaiChat;
        let (runtime, _wire) = wire::open(wire::config(&place, chat), Script::list(vec![stalls(chat)])).await;
        let session = runtime.session("a").await.unwrap();
        let sending = sends(&session, "Change the file.");
        crate::eventually("some of it is on disk", || async {
            let turn = session.state().await.unwrap().turn;
            turn.and_then(|turn| turn.attempt).is_some_and(|attempt| !attempt.unfinished.is_empty())
        })
        .await;
        runtime.shutdown().await.unwrap();
        drop(sending);
        let replies = vec![says("the second line of it.", chat), says("Fine.", chat)];
        let (runtime, wire) = wire::open(wire::config(&place, chat), Script::list(replies)).await;
        let session = runtime.session("a").await.unwrap();

        let ended = if continues { session.go_on().await } else { session.resume().await };

        assert_eq!(ended.unwrap().unwrap().text, "the second line of it.");
        session.send("And now?").await.unwrap();
        let requests = wire.requests();
        let sent = requests[0].json()["messages"].to_string();
        assert_eq!(requests.len(), 2, "one request for the answer, one for the next turn");
        assert_eq!(sent.contains("I will read the first file"), continues, "{sent}");
        assert_eq!(sent.contains("Go on from exactly this point"), continues, "{sent}");
        runtime.shutdown().await.unwrap();
        sound_records(&place, &session).await;
    }
}
