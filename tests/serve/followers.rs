//! Clients of a session that a server has see its words as they come, and go on by themselves when it is killed.

use std::process::Command;

use longhaul_model::Protocol;
use longhaul_protocol::StreamName;
use longhaul_testkit::Terminal;
use longhaul_testkit::wire::{Latch, ModelServer, Reply, ReplyPart, Script, ScriptedAnswer};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{Desk, Serving, eventually};

const CHAT: Protocol = Protocol::OpenaiChat;

/// An answer that stops in the middle until the test says so.
fn gated(text: &str, latch: &Latch) -> Reply {
    let mut frames = ScriptedAnswer::text(text).frames(CHAT);
    let rest = frames.split_off(frames.len() / 2);
    rest.into_iter().fold(Reply::frames(frames).then(ReplyPart::Gate(latch.clone())), |reply, frame| {
        reply.then(ReplyPart::Bytes(frame))
    })
}

/// A model server whose first answer is this one; the others are what was said.
fn server(first: Reply, then: &'static str) -> ModelServer {
    let first = std::sync::Mutex::new(Some(first));
    ModelServer::start(Script::by(move |seen| match seen.protocol() {
        Some(CHAT) => match first.lock().unwrap().take() {
            Some(first) => first,
            None => Reply::stream(ScriptedAnswer::text(then).bytes(CHAT)),
        },
        _ => Reply::error(404, "{}"),
    }))
}

pub(crate) fn desk_with(server: &ModelServer) -> Desk {
    let desk = Desk::new(&json!([]));
    std::fs::create_dir(desk.home()).unwrap();
    let config = format!(
        "[model]\nname = 'custom/m'\nprotocol = 'openai-chat'\nbase_url = '{}/v1'\ncontext_window = 100000\n",
        server.url()
    );
    std::fs::write(desk.home().join("config.toml"), config).unwrap();
    desk
}

pub(crate) fn command(desk: &Desk, arguments: &[&str]) -> Command {
    let mut command = desk.command(arguments);
    command.env_remove("LONGHAUL_MODEL").env("no_proxy", "127.0.0.1");
    command
}

/// A server in the middle of an answer, which has said this much.
fn serve_until_words(desk: &Desk) -> Serving {
    let serving = Serving::start(command(desk, &["serve", "--no-http", "--json"])).ready();
    desk.send("go");
    serving.wait_for("text_delta");
    serving
}

/// What a client saw up to the end of the turn: words as they came, whole messages, and that end.
fn words(client: &Serving) -> (String, Vec<String>, Value) {
    let (mut words, mut messages) = (String::new(), vec![]);
    loop {
        let (_, event) = client.next();
        match event["type"].as_str().unwrap() {
            "text_delta" | "partial" => words += event["text"].as_str().unwrap(),
            "message" => messages.push(event["content"].as_str().unwrap().to_owned()),
            "turn_ended" => return (words, messages, event),
            _ => {}
        }
    }
}

/// T14: what is said in the process that has the session is seen in another one while it is said.
#[test]
fn a_client_sees_the_words_of_a_turn_that_a_server_runs() {
    let latch = Latch::new();
    let text = "Once upon a time, and it was long ago, there was a turn.";
    let server = server(gated(text, &latch), "Never.");
    let desk = desk_with(&server);
    let serving = serve_until_words(&desk);

    let client = Serving::start(command(&desk, &["resume", "a", "--json"]));
    let (_, begun) = client.wait_for("partial");
    latch.open();
    let (rest, messages, ended) = words(&client);

    assert_eq!(begun["text"].as_str().unwrap().to_owned() + &rest, text);
    assert_eq!(messages, [text]);
    assert_eq!((&ended["text"], &ended["outcome"]), (&json!(text), &json!("completed")));
    assert_eq!(client.wait().code(), Some(0));
    serving.end(Signal::TERM);
    desk.sound_records();
}

/// T12, J7: nobody has to do anything when the process is killed that ran the turn: whoever waits for it goes on with it.
#[test]
fn a_client_goes_on_by_itself_when_the_server_is_killed_in_the_middle_of_an_answer() {
    let latch = Latch::new();
    let server = server(gated("Once upon a time there was a turn.", &latch), "It ended well.");
    let desk = desk_with(&server);
    let serving = serve_until_words(&desk);
    let client = Serving::start(command(&desk, &["run", "-s", "a", "--json", "and then?"]));
    client.wait_for("partial");
    eventually("what was said is accepted", || {
        let taken = desk.records().into_iter().filter(|record| record.kind == "input_taken");
        taken.count() == 2
    });

    serving.end(Signal::KILL);
    let (words, messages, ended) = words(&client);

    assert_eq!(ended["text"], json!("It ended well."));
    assert!(!messages.is_empty() && words == messages.concat(), "{words:?} and {messages:?}");
    assert_eq!(client.wait().code(), Some(0));
    let records = desk.sound_records();
    let count = |kind: &str| records.iter().filter(|record| record.kind == kind).count();
    assert_eq!((count("input_taken"), count("turn_started"), count("turn_ended")), (2, 1, 1));
}

/// T14, S1: a terminal attaches to what a server runs: it sees the turn from its beginning, joins it, and leaves it running.
#[test]
fn a_terminal_attaches_to_a_turn_that_a_server_runs() {
    let latch = Latch::new();
    let text = "Once upon a time, and it was long ago, there was a turn.";
    let server = server(gated(text, &latch), "And that was all.");
    let desk = desk_with(&server);
    let serving = serve_until_words(&desk);

    let mut terminal = Terminal::start(command(&desk, &["-s", "a"]));
    terminal.wait_to_see("your messages join it");
    terminal.wait_to_see("\n> go\n");
    terminal.wait_to_see("Once upon a");
    terminal.keys("and then?\r");
    terminal.wait_to_see("+ and then?");
    latch.open();
    terminal.wait_to_see("there was a turn.");
    terminal.wait_to_see("And that was all.");
    terminal.keys("\x04");

    assert_eq!(terminal.wait().code(), Some(0));
    let seen = terminal.seen();
    assert_eq!(seen.matches("Once upon").count(), 1, "{seen}");
    assert_eq!(serving.end(Signal::TERM).code(), Some(143));
    desk.sound_records();
}

/// T12, M9: a terminal that has joined the turn resumes it, so it says that the words so far do not count, and hints at nothing to do.
#[test]
fn a_terminal_that_joined_resumes_the_turn_and_marks_what_was_discarded() {
    let text = "Once upon a time, and it was long ago, there was a turn.";
    let server = server(gated(text, &Latch::new()), "It went on.");
    let desk = desk_with(&server);
    let serving = serve_until_words(&desk);
    let mut terminal = Terminal::start(command(&desk, &["-s", "a"]));
    terminal.wait_to_see("Once upon a");
    terminal.keys("and then?\r");
    terminal.wait_to_see("+ and then?");
    eventually("what was said is accepted", || {
        let taken = desk.records().into_iter().filter(|record| record.kind == "input_taken");
        taken.count() == 2
    });

    serving.end(Signal::KILL);
    let seen = terminal.wait_to_see("It went on.");
    terminal.keys("\x04");

    assert_eq!(terminal.wait().code(), Some(0));
    let marked = seen.find("[the answer was cut off; retrying]");
    assert!(marked > seen.find("Once upon a") && marked < seen.find("It went on."), "{seen}");
    assert!(!seen.contains("/continue goes on with it"), "{seen}");
    desk.sound_records();
}

/// T10, S1: Esc waits for no process that is stopped: lines are still taken, and the chat goes on.
#[test]
fn lines_are_taken_while_the_end_of_another_process_turn_is_awaited() {
    let server = server(gated("Once upon a time there was a turn.", &Latch::new()), "Never.");
    let desk = desk_with(&server);
    let serving = serve_until_words(&desk);
    let mut terminal = Terminal::start(command(&desk, &["-s", "a"]));
    terminal.wait_to_see("Once upon a");
    serving.signal(Signal::STOP);

    terminal.keys("\x1b");
    eventually("the order is in the inbox", || {
        desk.records_in(StreamName::inbox).iter().any(|record| record.kind == "order")
    });
    terminal.keys("/help\r");
    terminal.wait_to_see("/doctor");
    terminal.keys("/exit\r");
    let status = terminal.wait();

    assert_eq!(status.code(), Some(0));
    serving.signal(Signal::CONT);
    eventually("the turn is cancelled", || desk.records().iter().any(|record| record.kind == "turn_ended"));
    serving.end(Signal::TERM);
    desk.sound_records();
}

/// T14: whoever only watches is told when nobody runs the turn any more, and can go on with it.
#[test]
fn a_terminal_that_watches_is_told_that_the_server_is_gone() {
    let text = "Once upon a time, and it was long ago, there was a turn.";
    let server = server(gated(text, &Latch::new()), "It went on.");
    let desk = desk_with(&server);
    let serving = serve_until_words(&desk);
    let mut terminal = Terminal::start(command(&desk, &["-s", "a"]));
    terminal.wait_to_see("Once upon a");

    serving.end(Signal::KILL);
    terminal.wait_to_see("the process that ran it is gone");
    terminal.keys("/continue\r");
    terminal.wait_to_see("It went on.");
    terminal.keys("\x04");

    assert_eq!(terminal.wait().code(), Some(0));
    desk.sound_records();
}
