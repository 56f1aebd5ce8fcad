//! H1, H2, H4: the OpenAI-compatible API over real sockets.

use std::pin::pin;
use std::time::Duration;

use longhaul_agent::config::{Approval, ApprovalRule};
use longhaul_agent::model::ScriptedModel;
use longhaul_testkit::{GatedModel, RecordingModel};
use reqwest::Method;
use serde_json::{Value, json};

use crate::test_server::TestServer;

/// The events of a stream, in order.
pub(crate) async fn events(server: &TestServer, path: &str, body: Option<&Value>) -> Vec<Value> {
    let request = match body {
        Some(body) => server
            .request(Method::POST, path)
            .header("content-type", "application/json")
            .body(body.to_string()),
        None => server.request(Method::GET, path),
    };
    let text = request.send().await.unwrap().text().await.unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

pub(crate) fn chat(messages: &Value) -> Value {
    json!({"model": "longhaul", "messages": messages})
}

pub(crate) fn said(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

pub(crate) fn answered(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

pub(crate) fn content(completion: &Value) -> &str {
    completion["choices"][0]["message"]["content"].as_str().unwrap_or_else(|| panic!("{completion}"))
}

/// The keys of all sessions, and how many turns each has had.
pub(crate) async fn sessions(server: &TestServer) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for entry in server.runtime.journal().sessions(None, 1_000).await.unwrap() {
        let session = server.runtime.session(&entry.key).await.unwrap();
        found.push((entry.key, session.state().await.unwrap().turn_count));
    }
    found
}

/// H4.
#[tokio::test(flavor = "multi_thread")]
async fn a_chat_completion_has_the_answer_and_its_usage_streamed_or_not() {
    let script = r#"[{"text": "Hello, dear client.", "usage": {"input": 10, "output": 4, "cached": 3}}]"#;
    let server = TestServer::with_script(script).await;

    let (status, whole) = server.post("/v1/chat/completions", &chat(&json!([said("Hi")]))).await;
    let mut body = chat(&json!([said("Hi, streamed")]));
    body["stream"] = true.into();
    body["stream_options"] = json!({"include_usage": true});
    let chunks = events(&server, "/v1/chat/completions", Some(&body)).await;

    assert_eq!(status, 200, "{whole}");
    assert_eq!(content(&whole), "Hello, dear client.");
    assert_eq!(whole["choices"][0]["finish_reason"], "stop");
    let usage = json!({
        "prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14, "prompt_tokens_details": {"cached_tokens": 3},
    });
    assert_eq!(whole["usage"], usage);
    let deltas = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str());
    assert_eq!(deltas.collect::<String>(), "Hello, dear client.");
    assert!(chunks.len() > 4, "{chunks:?}");
    assert_eq!(chunks[chunks.len() - 2]["choices"][0]["finish_reason"], "stop");
    assert_eq!(chunks.last().unwrap()["usage"], usage);
    server.shutdown().await;
}

/// H4, M15: where the provider does not tell the usage, nobody claims one.
#[tokio::test(flavor = "multi_thread")]
async fn usage_that_nobody_knows_is_left_out() {
    let server = TestServer::with_script(r#"["One.", "Two."]"#).await;
    let mut body = chat(&json!([said("Hi, streamed")]));
    body["stream"] = true.into();
    body["stream_options"] = json!({"include_usage": true});

    let (_, whole) = server.post("/v1/chat/completions", &chat(&json!([said("Hi")]))).await;
    let chunks = events(&server, "/v1/chat/completions", Some(&body)).await;
    let (_, response) = server.post("/v1/responses", &json!({"input": "Hi"})).await;

    assert_eq!(content(&whole), "One.");
    assert!(whole.get("usage").is_none(), "{whole}");
    assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none()), "{chunks:?}");
    assert_eq!(response.get("usage"), Some(&Value::Null), "{response}");
    server.shutdown().await;
}

/// H4: the conversation chooses the session; an earlier point is a fork; a conversation that begins anew is a new session.
#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_goes_on_in_its_session_and_forks_at_an_earlier_point() {
    let server = TestServer::with_script(r#"["One.", "Two.", "Three."]"#).await;
    let ask = async |messages: Value| {
        content(&server.post("/v1/chat/completions", &chat(&messages)).await.1).to_owned()
    };

    assert_eq!(ask(json!([said("a")])).await, "One.");
    assert_eq!(ask(json!([said("a"), answered("One."), said("b")])).await, "Two.");
    assert_eq!(
        ask(json!([said("a"), answered("One."), said("b"), answered("Two."), said("c")])).await,
        "Three."
    );
    assert_eq!(sessions(&server).await.iter().map(|(_, turns)| *turns).collect::<Vec<_>>(), [3]);

    // Another second message.
    assert_eq!(ask(json!([said("a"), answered("One."), said("B")])).await, "Two.");
    // The same first message once more, which was answered before.
    assert_eq!(ask(json!([said("a")])).await, "One.");

    let mut turns: Vec<u64> = sessions(&server).await.iter().map(|(_, turns)| *turns).collect();
    turns.sort_unstable();
    assert_eq!(turns, [1, 2, 3]);
    assert!(sessions(&server).await.iter().all(|(key, _)| key.starts_with("http:test:")));
    server.shutdown().await;
}

/// H4, P8: history that no session has is data before the input, and a system message is a note.
#[tokio::test(flavor = "multi_thread")]
async fn unknown_history_and_system_messages_are_not_the_users_words() {
    let server = TestServer::with_script(r#"["Fine.", "Yes."]"#).await;
    let system = json!({"role": "system", "content": "Answer in one word."});
    let history = json!([system, said("earlier"), answered("never said here"), said("now")]);

    let (_, first) = server.post("/v1/chat/completions", &chat(&history)).await;
    let more = json!([
        system,
        said("earlier"),
        answered("never said here"),
        said("now"),
        answered("Fine."),
        said("more")
    ]);
    let (_, second) = server.post("/v1/chat/completions", &chat(&more)).await;

    assert_eq!((content(&first), content(&second)), ("Fine.", "Yes."));
    let (key, turns) = sessions(&server).await.remove(0);
    assert_eq!((turns, sessions(&server).await.len()), (2, 1));
    let items = server.runtime.session(&key).await.unwrap().state().await.unwrap().items;
    let items: Vec<Value> = items.iter().map(|item| serde_json::to_value(&**item).unwrap()).collect();
    assert_eq!(
        (items[0]["type"].as_str(), items.iter().filter(|item| item["type"] == "note").count()),
        (Some("note"), 1)
    );
    assert!(items[0]["text"].as_str().unwrap().contains("Answer in one word."), "{items:?}");
    assert!(
        items[1]["text"].as_str().unwrap().contains("<assistant>never said here</assistant>"),
        "{items:?}"
    );
    let texts: Vec<&str> = items[2..].iter().map(|item| item["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["now", "Fine.", "more", "Yes."]);
    server.shutdown().await;
}

/// H4: the header, the metadata and the conversation name a session.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_can_name_its_session() {
    let server = TestServer::with_script(r#"["One.", "Two.", "Three.", "Four."]"#).await;

    let by_header = server
        .request(Method::POST, "/v1/chat/completions")
        .header("content-type", "application/json")
        .header("x-longhaul-session", "alice")
        .body(chat(&json!([said("a")])).to_string());
    let first = by_header.send().await.unwrap();
    assert_eq!(first.headers()["x-longhaul-session"], "alice");
    let mut body = chat(&json!([said("b")]));
    body["metadata"] = json!({"session": "alice"});
    assert_eq!(content(&server.post("/v1/chat/completions", &body).await.1), "Two.");
    let (_, third) = server.post("/v1/responses", &json!({"input": "c", "conversation": "alice"})).await;
    let conversation = third["conversation"]["id"].as_str().unwrap();
    let (_, fourth) =
        server.post("/v1/responses", &json!({"input": "d", "conversation": {"id": conversation}})).await;

    assert_eq!(fourth["output"][0]["content"][0]["text"], "Four.");
    assert_eq!(sessions(&server).await, [("alice".to_owned(), 4)]);
    let (status, missing) = server
        .post("/v1/responses", &json!({"input": "d", "conversation": "conv_01ARZ3NDEKTSV4RRFFQ69G5FAV"}))
        .await;
    assert_eq!((status, &missing["error"]["code"]), (404, &json!("no_such_conversation")));
    server.shutdown().await;
}

/// H2, H4: a response streams numbered events, which can be read again from any number on.
#[tokio::test(flavor = "multi_thread")]
async fn a_response_streams_events_that_can_be_read_again() {
    let server = TestServer::with_script(r#"["One two three.", "Four."]"#).await;

    let body = json!({
        "input": "go", "stream": true, "model": "longhaul", "instructions": "Be brief.", "max_output_tokens": 500,
        "metadata": {"ticket": "42"}, "user": "alice",
    });
    let live = events(&server, "/v1/responses", Some(&body)).await;
    let response = &live.last().unwrap()["response"];
    let id = response["id"].as_str().unwrap();
    let again = events(&server, &format!("/v1/responses/{id}?stream=true"), None).await;
    let rest = events(&server, &format!("/v1/responses/{id}?stream=true&starting_after=4"), None).await;
    let (_, retrieved) = server.get(&format!("/v1/responses/{id}")).await;

    let kinds: Vec<&str> = live.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds[..4],
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added"
        ]
    );
    assert_eq!(
        kinds[kinds.len() - 4..],
        [
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed"
        ]
    );
    let numbers: Vec<u64> = live.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..live.len() as u64).collect::<Vec<_>>());
    assert_eq!((&again, &rest[..]), (&live, &live[5..]));
    assert_eq!(&retrieved, response);
    assert_eq!((&response["metadata"], &response["user"]), (&json!({"ticket": "42"}), &json!("alice")));
    assert_eq!(retrieved["output"][0]["content"][0]["text"], "One two three.");
    let (status, problem) = server.get("/v1/responses/resp_nothing").await;
    assert_eq!((status, &problem["error"]["code"]), (404, &json!("response_not_found")));
    server.shutdown().await;
}

/// H4: `previous_response_id` goes on, or forks if it is not the newest; DELETE and `store` hide a response.
#[tokio::test(flavor = "multi_thread")]
async fn responses_go_on_fork_and_disappear() {
    let server = TestServer::with_script(r#"["One.", "Two.", "Three."]"#).await;
    let after = |text: &str, id: &Value| json!({"input": text, "previous_response_id": id});

    let (_, one) = server.post("/v1/responses", &json!({"input": "a"})).await;
    let (_, two) = server.post("/v1/responses", &after("b", &one["id"])).await;
    let (_, other) = server.post("/v1/responses", &after("B", &one["id"])).await;
    let (_, unstored) = server.post("/v1/responses", &json!({"input": "x", "store": false})).await;

    let session = |response: &Value| response["conversation"]["id"].clone();
    let text = |response: &Value| response["output"][0]["content"][0]["text"].clone();
    assert_eq!((session(&two), text(&two)), (session(&one), json!("Two.")));
    assert_eq!(text(&other), "Two.");
    assert_ne!(session(&other), session(&one));
    let path = |response: &Value| format!("/v1/responses/{}", response["id"].as_str().unwrap());
    assert_eq!(server.get(&path(&unstored)).await.0, 404);
    let deleted = server.request(Method::DELETE, &path(&one)).send().await.unwrap();
    assert_eq!(deleted.status(), 200);
    assert_eq!(server.get(&path(&one)).await.0, 404);
    assert_eq!(server.get(&path(&two)).await.0, 200);
    server.shutdown().await;
}

/// H4: a background response is retrieved, followed and cancelled by its id.
#[tokio::test(flavor = "multi_thread")]
async fn a_background_response_is_cancelled_by_its_id() {
    let server =
        TestServer::with_script(r#"[{"text": "A slow one, which does not end.", "piece_ms": 60000}]"#).await;

    let (_, begun) = server.post("/v1/responses", &json!({"input": "a", "background": true})).await;
    let id = begun["id"].as_str().unwrap();
    let (_, cancelled) = server.post(&format!("/v1/responses/{id}/cancel"), &json!({})).await;
    let (_, retrieved) = server.get(&format!("/v1/responses/{id}")).await;

    assert_eq!(begun["status"], "in_progress");
    assert_eq!((&cancelled["status"], &retrieved["status"]), (&json!("cancelled"), &json!("cancelled")));
    server.shutdown().await;
}

/// H1: the client's own retry is recognised, with and without its count, and runs no second turn.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_connection_broke_is_not_run_again() {
    let (model, gate) = GatedModel::new(ScriptedModel::from_json(r#"["Slowly said.", "Again."]"#).unwrap());
    let server = TestServer::with_model(model).await;
    let body = chat(&json!([said("a")]));
    let send = |retries: Option<&str>| {
        let request = server
            .request(Method::POST, "/v1/chat/completions")
            .header("content-type", "application/json")
            .body(body.to_string());
        match retries {
            Some(count) => request.header("x-stainless-retry-count", count),
            None => request,
        }
    };
    let timeout = Duration::from_millis(150);

    let mut reached = pin!(gate.reached());
    loop {
        tokio::select! {
            () = &mut reached => break,
            sent = send(Some("0")).timeout(timeout).send() => assert!(sent.is_err()),
        }
    }
    assert!(send(None).timeout(timeout).send().await.is_err());
    gate.open();
    let (status, answer) = crate::test_server::json_answer(send(Some("1"))).await;

    assert_eq!((status, content(&answer)), (200, "Slowly said."));
    assert_eq!(sessions(&server).await.iter().map(|(_, turns)| *turns).collect::<Vec<_>>(), [1]);
    server.shutdown().await;
}

/// H1: the same Idempotency-Key is one input; with another body it is refused.
#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_makes_one_input() {
    let server = TestServer::with_script(r#"["One.", "Two."]"#).await;
    let send = async |text: &str| {
        let request = server
            .request(Method::POST, "/v1/responses")
            .header("content-type", "application/json")
            .header("idempotency-key", "k1")
            .body(json!({"input": text}).to_string());
        crate::test_server::json_answer(request).await
    };

    let (first, again, other) = (send("a").await, send("a").await, send("b").await);

    assert_eq!((first.0, &first.1["id"]), (200, &again.1["id"]));
    assert_eq!((other.0, &other.1["error"]["code"]), (422, &json!("key_reused")));
    assert_eq!(sessions(&server).await.len(), 1);
    server.shutdown().await;
}

/// H4, P4: a question ends the answer, and the next input answers it.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_shows_as_such_and_the_next_input_answers_it() {
    let call = json!({"name": "exec", "arguments": {"command": "echo hi >> ran.txt"}});
    let script = json!([{"text": "I run it.", "calls": [call]}, "Done."]).to_string();
    let server = TestServer::with_settings(&script, |config| {
        config.settings.approval.rule =
            vec![ApprovalRule { tool: "exec".to_owned(), command: None, host: None, action: Approval::Ask }];
    })
    .await;

    let (_, asked) = server.post("/v1/chat/completions", &chat(&json!([said("run it")]))).await;
    let question = &asked["longhaul"]["question"];
    assert!(question["id"].is_string() && question["kind"] == "approval", "{asked}");
    assert!(content(&asked).starts_with("I run it.\n\n"), "{asked}");
    let answer = json!([said("run it"), answered(content(&asked)), said("yes")]);
    let (_, done) = server.post("/v1/chat/completions", &chat(&answer)).await;
    let (_, refused) = server.post("/v1/responses", &json!({"input": "run it"})).await;
    let body = json!({"input": "y", "previous_response_id": refused["id"], "stream": true});
    let rest = events(&server, "/v1/responses", Some(&body)).await;

    assert_eq!(content(&done), "Done.");
    assert_eq!(
        (&refused["status"], &refused["incomplete_details"]["reason"]),
        (&json!("incomplete"), &json!("question"))
    );
    assert!(refused["output"][1]["longhaul"]["question"]["id"].is_string(), "{refused}");
    assert_eq!(rest[0]["type"], "response.created");
    let last = &rest.last().unwrap()["response"];
    assert_eq!((&last["status"], &last["id"]), (&json!("completed"), &refused["id"]));
    // One of the two was allowed: `y` is no yes here.
    assert_eq!(std::fs::read_to_string(server.home.work().join("ran.txt")).unwrap(), "hi\n");
    server.shutdown().await;
}

/// H4: a failed turn is an HTTP error of a completion, and a failed response.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_turn_is_an_error() {
    let server = TestServer::with_script("[]").await;
    let mut streamed = chat(&json!([said("b")]));
    streamed["stream"] = true.into();

    let (status, error) = server.post("/v1/chat/completions", &chat(&json!([said("a")]))).await;
    let stream = server
        .request(Method::POST, "/v1/chat/completions")
        .header("content-type", "application/json")
        .body(streamed.to_string())
        .send()
        .await
        .unwrap();
    let (response_status, response) = server.post("/v1/responses", &json!({"input": "a"})).await;

    assert_eq!((status, &error["error"]["code"]), (502, &json!("model_failed")), "{error}");
    assert_eq!(
        (stream.status().as_u16(), &stream.headers()["x-should-retry"]),
        (502, &"false".parse().unwrap())
    );
    assert_eq!((response_status, &response["status"]), (200, &json!("failed")));
    assert!(response["error"]["message"].is_string(), "{response}");
    server.shutdown().await;
}

/// H4.
#[tokio::test(flavor = "multi_thread")]
async fn requests_that_cannot_be_answered_are_refused_in_openais_form() {
    let server = TestServer::with_script("[]").await;
    let refused = async |path: &str, body: Value| {
        let (status, error) = server.post(path, &body).await;
        let field = |name: &str| error["error"][name].as_str().unwrap_or_default().to_owned();
        (status, field("code"), field("param"))
    };
    let words = |code: &str, param: &str| (code.to_owned(), param.to_owned());
    let expect = |status: u16, (code, param): (String, String)| (status, code, param);

    let chat_path = "/v1/chat/completions";
    let with = |name: &str, value: Value| {
        let mut body = chat(&json!([said("a")]));
        body[name] = value;
        body
    };
    assert_eq!(
        refused(chat_path, with("model", json!("gpt-9"))).await,
        expect(404, words("model_not_found", "model"))
    );
    assert_eq!(
        refused(chat_path, with("n", json!(2))).await,
        expect(400, words("unsupported_parameter", "n"))
    );
    assert_eq!(
        refused(chat_path, chat(&json!([answered("x")]))).await,
        expect(400, words("no_input", "messages"))
    );
    assert_eq!(refused("/v1/responses", json!({"input": 3})).await.0, 400);
    // The fields of a request in their order are no request.
    assert_eq!(
        refused(chat_path, json!(["longhaul", [said("a")], null, null, null, null, null, null, null])).await,
        expect(400, words("invalid_body", ""))
    );
    assert_eq!(refused("/v1/responses", json!(["longhaul", "a"])).await.1, "invalid_body");
    let models = server.get("/v1/models").await.1;
    assert_eq!(models["data"][0]["id"], "longhaul");
    let anonymous = server.anonymous(Method::GET, "/v1/models").send().await.unwrap();
    assert_eq!(anonymous.status(), 401);
    let error: Value = serde_json::from_slice(&anonymous.bytes().await.unwrap()).unwrap();
    assert!(error["error"]["message"].is_string(), "{error}");
    assert!(sessions(&server).await.is_empty());
    server.shutdown().await;
}

/// H4, B1: which limit ended a turn is the last message of the answer, because clients show nothing else, and the
/// conversation goes on in its session.
#[tokio::test(flavor = "multi_thread")]
async fn the_limit_that_ended_a_turn_is_a_message() {
    let script =
        r#"[{"text": "Looking.", "calls": [{"name": "ls", "arguments": {}}]}, "Never said.", "Further."]"#;
    let server = TestServer::with_settings(script, |config| config.settings.limits.steps = 1).await;
    let reached = "the turn reached its limit of 1 steps (limits.steps); send a message to go on";
    let mut streamed = chat(&json!([said("b")]));
    streamed["stream"] = true.into();

    let (_, whole) = server.post("/v1/chat/completions", &chat(&json!([said("a")]))).await;
    let chunks = events(&server, "/v1/chat/completions", Some(&streamed)).await;
    let (_, response) = server.post("/v1/responses", &json!({"input": "c"})).await;
    let replayed =
        events(&server, &format!("/v1/responses/{}?stream=true", response["id"].as_str().unwrap()), None)
            .await;
    let before = sessions(&server).await.len();
    let more = chat(&json!([said("a"), answered(content(&whole)), said("go on")]));
    server.post("/v1/chat/completions", &more).await;

    assert_eq!(content(&whole), format!("Looking.\n\n{reached}"));
    assert_eq!(
        (&whole["choices"][0]["finish_reason"], &whole["longhaul"]["limit"]),
        (&json!("length"), &json!("steps"))
    );
    let deltas = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str());
    assert_eq!(deltas.collect::<String>(), content(&whole));
    let texts: Vec<&Value> =
        response["output"].as_array().unwrap().iter().map(|item| &item["content"][0]["text"]).collect();
    assert_eq!(
        (texts, &response["status"]),
        (vec![&json!("Looking."), &json!(reached)], &json!("incomplete"))
    );
    let numbers: Vec<u64> = replayed.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..replayed.len() as u64).collect::<Vec<_>>());
    assert_eq!(replayed.last().unwrap()["response"]["output"], response["output"]);
    assert_eq!(sessions(&server).await.len(), before, "it goes on in its session");
    server.shutdown().await;
}

/// H4: the client's limit bounds each answer, and reaching it ends the turn.
#[tokio::test(flavor = "multi_thread")]
async fn the_limit_of_a_client_bounds_the_answer() {
    let script =
        ScriptedModel::from_json(r#"[{"text": "As far as", "stop": "length"}, "it goes."]"#).unwrap();
    let model = RecordingModel::new(script);
    let server = TestServer::with_model(model.clone()).await;
    let mut body = chat(&json!([said("a")]));
    body["max_tokens"] = 7.into();

    let (_, cut) = server.post("/v1/chat/completions", &body).await;

    assert_eq!(
        (content(&cut), &cut["choices"][0]["finish_reason"]),
        ("As far as", &json!("length")),
        "{cut}"
    );
    assert_eq!(model.requests().iter().map(|request| request.max_output).collect::<Vec<_>>(), [Some(7)]);
    server.shutdown().await;
}

/// H4: no answer fits into no tokens, so the request is refused and begins nothing. A body without a field says which.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_room_for_an_answer_is_refused() {
    let server = TestServer::with_script("[]").await;
    let input = json!([said("Hi")]);

    for (path, body, param) in [
        ("/v1/chat/completions", json!({"messages": input, "max_tokens": 0}), json!("max_tokens")),
        (
            "/v1/chat/completions",
            json!({"messages": input, "max_completion_tokens": 0}),
            json!("max_completion_tokens"),
        ),
        ("/v1/responses", json!({"input": input, "max_output_tokens": 0}), json!("max_output_tokens")),
        ("/v1/responses", json!({"model": "longhaul"}), Value::Null),
    ] {
        let (status, refused) = server.post(path, &body).await;
        assert_eq!((status, &refused["error"]["param"]), (400, &param), "{refused}");
        assert_eq!(refused["error"]["code"], "invalid_value");
    }

    assert_eq!(sessions(&server).await, []);
    server.shutdown().await;
}
