//! The OpenAI-compatible API of the real program: `kill -9` in the middle of a stream, and answers of the model that break off.
//!
//! | killed | a client that comes back gets | never |
//! | --- | --- | --- |
//! | in the middle of an answer | all events of the next answer, with higher numbers than those that it has | a number twice, an answer without its beginning |
//! | while a command runs | the event after its last one | a gap |
//! | before the turn of a request begins | a turn with the model of that request | another model |

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;

use longhaul_model::Protocol;
use longhaul_testkit::wire::{End, Latch, ModelServer, Reply, ReplyPart, Script, ScriptedAnswer};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::followers::{command, desk_with};
use crate::http::HttpServing;
use crate::{Desk, TEST_TIMEOUT, eventually};

const CHAT: Protocol = Protocol::OpenaiChat;
const TOKEN: &str = "a-token-of-these-tests-0123456789";

/// The first half of an answer. Then nothing until the latch opens, and then this end.
fn half(text: &str, latch: &Latch, end: End) -> Reply {
    let mut frames = ScriptedAnswer::text(text).frames(CHAT);
    frames.truncate(frames.len() / 2);
    Reply::frames(frames).then(ReplyPart::Gate(latch.clone())).ending(end)
}

fn whole(answer: &ScriptedAnswer) -> Reply {
    Reply::stream(answer.bytes(CHAT))
}

/// A model server with one reply after the other. It offers the models `a` and `b`.
fn model_server(replies: Vec<Reply>) -> ModelServer {
    let mut replies = replies.into_iter();
    ModelServer::start(Script::by(move |seen| match seen.protocol() {
        Some(CHAT) => replies.next().unwrap_or_else(|| Reply::error(500, r#"{"error":"used up"}"#)),
        _ if seen.path.ends_with("/models") => Reply::json(&json!({"data": [{"id": "a"}, {"id": "b"}]})),
        _ => Reply::error(404, "{}"),
    }))
}

/// The models of the turns' requests.
fn asked_models(server: &ModelServer) -> Vec<String> {
    let requests = server.requests().into_iter().filter(|seen| seen.protocol() == Some(CHAT));
    requests.map(|seen| seen.json()["model"].as_str().unwrap().to_owned()).collect()
}

/// `longhaul serve` and a client of it.
struct Api {
    desk: Desk,
    serving: HttpServing,
}

impl Api {
    fn start(server: &ModelServer) -> Self {
        let desk = desk_with(server);
        let config = desk.home().join("config.toml");
        let quick = std::fs::read_to_string(&config).unwrap() + "[retry]\nbase_ms = 10\n";
        std::fs::write(config, quick).unwrap();
        let office = format!(
            "[office]\nprotocol = 'openai-chat'\nbase_url = '{}/v1'\nlocal = true\n[[model]]\npattern = 'office/*'\nwindow = 100000\n",
            server.url()
        );
        std::fs::write(desk.home().join("providers.toml"), office).unwrap();
        let serving = HttpServing::start(Self::program(&desk, "127.0.0.1:0"));
        Self { desk, serving }
    }

    fn program(desk: &Desk, listen: &str) -> std::process::Command {
        let mut program = command(desk, &["serve", "--listen", listen]);
        program.env("LONGHAUL_TOKEN", TOKEN);
        program
    }

    /// SIGKILL, and the next process on the same port.
    fn kill_and_restart(&mut self) {
        self.serving.end(Signal::KILL);
        self.serving = HttpServing::start(Self::program(&self.desk, &self.serving.address));
    }

    /// Sends a request. Returns the status and the body that is still to come; HTTP/1.0 has no chunks to put together.
    fn send(&self, path: &str, body: Option<&Value>) -> (u16, BufReader<TcpStream>) {
        let mut stream = TcpStream::connect(&self.serving.address).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let (method, body) = match body {
            Some(body) => ("POST", body.to_string()),
            None => ("GET", String::new()),
        };
        let head = format!(
            "{method} {path} HTTP/1.0\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}",
            self.serving.address
        );
        let length = body.len();
        write!(stream, "{head}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
            .unwrap();
        let mut reader = BufReader::new(stream);
        let mut status = String::new();
        reader.read_line(&mut status).unwrap();
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).unwrap();
        }
        (status.split(' ').nth(1).unwrap().parse().unwrap(), reader)
    }

    fn json(&self, path: &str, body: Option<&Value>) -> Value {
        let (status, mut reader) = self.send(path, body);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    fn stream(&self, path: &str, body: Option<&Value>) -> EventStream {
        let (status, reader) = self.send(path, body);
        assert_eq!(status, 200);
        EventStream(reader)
    }
}

/// The events of a stream.
struct EventStream(BufReader<TcpStream>);

impl Iterator for EventStream {
    type Item = Value;

    /// The next event; `None` at the end, also if the connection broke.
    fn next(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let data = line.strip_prefix("data: ").map(str::trim_end).filter(|data| *data != "[DONE]");
            if let Some(data) = data {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }
}

impl EventStream {
    /// The events up to the second piece of text.
    fn until_text(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while events.iter().filter(|event| is_text(event)).count() < 2 {
            events.push(self.next().unwrap_or_else(|| panic!("no text came, but: {events:?}")));
        }
        events
    }
}

fn is_text(event: &Value) -> bool {
    event["type"] == "response.output_text.delta"
        || event["choices"][0]["delta"]["content"].as_str().is_some_and(|text| !text.is_empty())
}

fn number(event: &Value) -> u64 {
    event["sequence_number"].as_u64().unwrap_or_else(|| panic!("{event}"))
}

fn numbers(events: &[Value]) -> Vec<u64> {
    events.iter().map(number).collect()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// The pieces of text in these events.
fn words(events: &[Value]) -> String {
    let deltas = events.iter().filter(|event| event["type"] == "response.output_text.delta");
    deltas.map(|event| event["delta"].as_str().unwrap()).collect()
}

fn response_path(events: &[Value]) -> String {
    format!("/v1/responses/{}", events[0]["response"]["id"].as_str().unwrap())
}

fn resumed(path: &str, seen: &[Value]) -> String {
    format!("{path}?stream=true&starting_after={}", number(seen.last().unwrap()))
}

/// H2, H4: the server is killed twice in the middle of an answer. The client that comes back gets every event of the answer
/// that counts, once, with numbers that no event had before; every later stream has the same events.
#[test]
fn a_response_stream_goes_on_after_kills_in_the_middle_of_an_answer() {
    let (shut, text) = (Latch::new(), "It ended well, for all of them.");
    let server = model_server(vec![
        half("Once upon a time there was a turn.", &shut, End::Stall),
        half("Once more, from the beginning of it.", &shut, End::Stall),
        whole(&ScriptedAnswer::text(text)),
    ]);
    let mut api = Api::start(&server);
    let body = json!({"model": "longhaul", "input": "go", "background": true, "stream": true, "metadata": {"a": "b"}});

    let first = api.stream("/v1/responses", Some(&body)).until_text();
    let path = response_path(&first);
    api.kill_and_restart();
    let second = api.stream(&resumed(&path, &first), None).until_text();
    api.kill_and_restart();
    let third: Vec<Value> = api.stream(&resumed(&path, &second), None).collect();

    let all = [first.clone(), second.clone(), third.clone()].concat();
    assert!(numbers(&all).is_sorted_by(|one, next| one < next), "{:?}", numbers(&all));
    for part in [&first, &second, &third] {
        let from = number(&part[0]);
        assert_eq!(numbers(part), (from..from + part.len() as u64).collect::<Vec<_>>(), "{part:?}");
    }
    assert_eq!(kinds(&second)[0], "response.output_item.added", "the next answer comes from its beginning");
    assert_eq!(kinds(&third)[0], "response.output_item.added");
    assert_eq!(words(&third), text);
    let completed = third.last().unwrap();
    assert_eq!(
        (&completed["type"], &completed["response"]["output"][0]["content"][0]["text"]),
        (&json!("response.completed"), &json!(text))
    );
    let again: Vec<Value> = api.stream(&format!("{path}?stream=true"), None).collect();
    assert_eq!(again, [first[..2].to_vec(), third.clone()].concat());
    assert_eq!(api.json(&path, None), completed["response"]);
    assert_eq!(
        (&completed["response"]["background"], &completed["response"]["metadata"]),
        (&json!(true), &json!({"a": "b"}))
    );
    assert_eq!(asked_models(&server).len(), 3);
}

/// H2: no answer was cut, so the numbers go on where they were.
#[test]
fn a_response_stream_goes_on_without_a_gap_after_a_kill_while_a_command_runs() {
    let run =
        json!({"command": "echo once >> log.txt; while [ ! -e go.txt ]; do sleep 0.02; done; echo the end"});
    let server = model_server(vec![
        whole(&ScriptedAnswer::text("I run it now.").call("exec", run)),
        whole(&ScriptedAnswer::text("It has run.").usage(70, 30)),
    ]);
    let mut api = Api::start(&server);
    let body = json!({"input": "go", "background": true, "stream": true});

    let mut live = api.stream("/v1/responses", Some(&body));
    let mut seen = live.until_text();
    eventually("the command runs", || api.desk.file("log.txt") == "once\n");
    while kinds(&seen).last() != Some(&"response.output_item.done") {
        seen.extend(live.next());
    }
    api.kill_and_restart();
    let rest = api.stream(&resumed(&response_path(&seen), &seen), None);
    std::fs::write(api.desk.work().join("go.txt"), "").unwrap();
    let rest: Vec<Value> = rest.collect();

    let all = [seen, rest].concat();
    assert_eq!(numbers(&all), (0..all.len() as u64).collect::<Vec<_>>());
    assert_eq!(words(&all), "I run it now.It has run.");
    assert_eq!(kinds(&all).last(), Some(&"response.completed"));
    assert_eq!(api.desk.file("log.txt"), "once\n");
    let again: Vec<Value> = api.stream(&format!("{}?stream=true", response_path(&all)), None).collect();
    assert_eq!(again, all);
}

/// H4, M9: an answer that breaks off is an item that ends as incomplete. The response has the next one, and no number is missing.
#[test]
fn an_answer_that_breaks_off_is_an_incomplete_item_of_the_stream_and_not_in_the_response() {
    let (latch, text) = (Latch::new(), "Quite another story.");
    let server = model_server(vec![
        half("Once upon a time there was a turn.", &latch, End::Cut),
        whole(&ScriptedAnswer::text(text).usage(70, 30)),
    ]);
    let api = Api::start(&server);

    let mut live = api.stream("/v1/responses", Some(&json!({"input": "go", "stream": true})));
    let mut events = live.until_text();
    latch.open();
    events.extend(live);

    assert_eq!(numbers(&events), (0..events.len() as u64).collect::<Vec<_>>());
    let done: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .map(|event| &event["item"])
        .collect();
    let told = |item: &Value| (item["status"].clone(), item["content"][0]["text"].clone());
    assert_eq!(told(done[1]), (json!("completed"), json!(text)));
    let (status, cut) = told(done[0]);
    assert!(
        status == "incomplete" && "Once upon a time there was a turn.".starts_with(cut.as_str().unwrap()),
        "{cut}"
    );
    assert_ne!(done[0]["id"], done[1]["id"]);
    let response = &events.last().unwrap()["response"];
    assert_eq!((response["output"].as_array().unwrap().len(), &response["output"][0]), (1, done[1]));
    let path = response_path(&events);
    let again: Vec<Value> = api.stream(&format!("{path}?stream=true"), None).collect();
    assert_eq!(again, events);
    assert_eq!(&api.json(&path, None), response);
}

/// H4, M9: a chat stream can't take text back. It goes on where the next answer begins with what was sent.
#[test]
fn a_chat_stream_goes_on_where_the_next_answer_begins_with_what_was_sent() {
    let (latch, text) = (Latch::new(), "Once upon a time there was a turn.");
    let server = model_server(vec![half(text, &latch, End::Cut), whole(&ScriptedAnswer::text(text))]);
    let api = Api::start(&server);
    let body = json!({"messages": [{"role": "user", "content": "go"}], "stream": true});

    let mut live = api.stream("/v1/chat/completions", Some(&body));
    let mut chunks = live.until_text();
    latch.open();
    chunks.extend(live);

    let told: String =
        chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(told, text);
    assert_eq!(chunks.last().unwrap()["choices"][0]["finish_reason"], "stop");
    assert_eq!(asked_models(&server).len(), 2);
}

/// H1, H4: if the next answer is another one, the stream ends with an error, and the same request gets the whole answer.
#[test]
fn a_chat_stream_whose_answer_changed_ends_with_an_error_and_the_retry_has_the_whole_answer() {
    let (latch, text) = (Latch::new(), "Quite another story.");
    let server = model_server(vec![
        half("Once upon a time there was a turn.", &latch, End::Cut),
        whole(&ScriptedAnswer::text(text)),
    ]);
    let api = Api::start(&server);
    let body = json!({"messages": [{"role": "user", "content": "go"}], "stream": true});

    let mut live = api.stream("/v1/chat/completions", Some(&body));
    let mut chunks = live.until_text();
    latch.open();
    chunks.extend(live);
    let again: Vec<Value> = api.stream("/v1/chat/completions", Some(&body)).collect();

    assert_eq!(chunks.last().unwrap()["error"]["code"], "answer_changed", "{chunks:?}");
    let told: String =
        again.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(told, text);
    assert_eq!(asked_models(&server).len(), 2, "the turn ran once");
}

/// H4: the client has text that is not in the answer, so the answer is not said to be complete.
#[test]
fn a_chat_stream_whose_next_answer_is_shorter_ends_with_an_error() {
    let latch = Latch::new();
    let server = model_server(vec![
        half("Once upon a time there was a turn.", &latch, End::Cut),
        whole(&ScriptedAnswer::text("Once ")),
    ]);
    let api = Api::start(&server);
    let body = json!({"messages": [{"role": "user", "content": "go"}], "stream": true});

    let mut live = api.stream("/v1/chat/completions", Some(&body));
    let mut chunks = live.until_text();
    let is_longer = |chunks: &[Value]| {
        chunks
            .iter()
            .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
            .collect::<String>()
            .len()
            > 5
    };
    while !is_longer(&chunks) {
        chunks.push(live.next().unwrap());
    }
    latch.open();
    chunks.extend(live);

    assert_eq!(chunks.last().unwrap()["error"]["code"], "answer_changed", "{chunks:?}");
}

/// H4: the model of a request is that of its turn, and the session's from then on, whichever process runs it.
#[test]
fn the_model_of_a_request_survives_a_kill_and_is_the_same_in_every_answer() {
    let shut = Latch::new();
    let say = |text: &str| whole(&ScriptedAnswer::text(text));
    let server = model_server(vec![
        half("Once upon a time there was a turn.", &shut, End::Stall),
        say("By b."),
        say("Also by b."),
        say("By the configured one."),
    ]);
    let mut api = Api::start(&server);
    let body = json!({"model": "office/b", "input": "go", "background": true, "stream": true, "conversation": "talk"});

    let first = api.stream("/v1/responses", Some(&body)).until_text();
    api.kill_and_restart();
    let rest: Vec<Value> = api.stream(&resumed(&response_path(&first), &first), None).collect();
    let silent = api.json("/v1/responses", Some(&json!({"input": "more", "conversation": "talk"})));
    api.kill_and_restart();
    let configured = json!({"model": "longhaul", "input": "and more", "conversation": "talk"});
    let configured = api.json("/v1/responses", Some(&configured));

    assert_eq!(asked_models(&server), ["b", "b", "b", "m"]);
    let retrieved = api.json(&response_path(&first), None);
    for response in [&first[0]["response"], &rest.last().unwrap()["response"], &retrieved] {
        assert_eq!(response["model"], "office/b");
    }
    assert_eq!(retrieved["output"][0]["content"][0]["text"], "By b.");
    assert_eq!(silent["output"][0]["content"][0]["text"], "Also by b.");
    assert_eq!(
        (&configured["model"], &configured["output"][0]["content"][0]["text"]),
        (&json!("longhaul"), &json!("By the configured one."))
    );
}

/// H4: the shell examples of `docs/openai.md`, as they stand there, one after the other in one shell. Only the port is another one.
#[test]
fn the_shell_examples_of_the_page_work() {
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/openai.md");
    let page = std::fs::read_to_string(page).unwrap();
    let examples: Vec<&str> =
        page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(examples.len() >= 2, "{examples:?}");
    let desk = Desk::new(&json!(["Hello, and all of it works."]));
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    std::fs::create_dir(desk.home()).unwrap();
    std::fs::write(desk.home().join("config.toml"), format!("[server]\nlisten = '127.0.0.1:{port}'\n"))
        .unwrap();
    let program = PathBuf::from(env!("CARGO_BIN_EXE_longhaul"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let script = examples.join("\n").replace("7171", &port.to_string());
    let mut shell = std::process::Command::new("bash");
    shell
        .args(["-euo", "pipefail", "-c", &format!("trap 'kill $(jobs -p)' EXIT\n{script}")])
        .current_dir(desk.work())
        .env("LONGHAUL_HOME", desk.home())
        .env("LONGHAUL_MODEL", format!("scripted/{}", desk.0.path().join("script.json").display()))
        .env("PATH", path)
        .env("no_proxy", "127.0.0.1");

    let output = shell.output().unwrap();

    let said = crate::said(&output);
    assert!(output.status.success(), "{said}");
    assert_eq!(said.matches("\"content\":\"Hello, and all of it works.\"").count(), 1, "{said}");
    assert!(said.contains("event: response.completed"), "{said}");
}
