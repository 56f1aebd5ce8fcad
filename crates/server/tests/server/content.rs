//! Records, transcript, export and import.

use reqwest::Method;
use serde_json::{Value, json};

use crate::test_server::{TestServer, json_answer};

/// A server with a session `a` of this many turns, each with a call and an answer.
async fn server_with_turns(turns: usize) -> TestServer {
    let turn = |number: usize| {
        let usage = json!({"input": 100 + number, "output": 10, "cached": 5});
        let calls = json!([{"name": "exec", "arguments": {"command": "echo <b>x</b>"}}]);
        [
            json!({"text": format!("Step {number}."), "calls": calls, "usage": usage}),
            json!({"text": format!("Answer {number}."), "usage": usage}),
        ]
    };
    let script: Vec<Value> = (0..turns).flat_map(turn).collect();
    let server = TestServer::with_script(&json!(script).to_string()).await;
    server.post("/api/sessions", &json!({"key": "a", "work_dir": server.home.work()})).await;
    let session = server.runtime.session("a").await.unwrap();
    for number in 0..turns {
        session.send(format!("Question {number} <script>")).await.unwrap();
    }
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_read_in_pages() {
    let server = server_with_turns(1).await;

    let (_, first) = server.get("/api/sessions/a/records?limit=3").await;
    let (_, rest) = server.get(&format!("/api/sessions/a/records?from={}&limit=1000", first["next"])).await;

    let seqs = |page: &Value| -> Vec<u64> {
        page["items"].as_array().unwrap().iter().map(|record| record["seq"].as_u64().unwrap()).collect()
    };
    let (_, status) = server.get("/api/sessions/a").await;
    let head = status["head"].as_u64().unwrap();
    assert_eq!([seqs(&first), seqs(&rest)].concat(), (1..=head).collect::<Vec<_>>());
    assert_eq!(rest["next"], Value::Null);
    assert_eq!(first["items"][0]["kind"], "session_created");
    assert_eq!(server.get("/api/sessions/a/records?from=18446744073709551615").await.0, 200);
    server.shutdown().await;
}

/// The pages from the end to the beginning are the whole transcript, each block once, and no text is markup.
#[tokio::test(flavor = "multi_thread")]
async fn a_transcript_is_read_backwards_without_a_gap() {
    let server = server_with_turns(6).await;
    let (_, whole) = server.get("/api/sessions/a/transcript?limit=500").await;
    let texts = |page: &Value| -> Vec<Value> {
        let items = page["items"].as_array().unwrap().iter();
        items.map(|block| json!([block["seq"], block["content"]["type"], block["html"]])).collect()
    };
    assert_eq!(whole["next"], Value::Null);

    let (mut before, mut pages) = (String::new(), Vec::new());
    loop {
        let (status, page) = server.get(&format!("/api/sessions/a/transcript?limit=4{before}")).await;
        assert_eq!(status, 200);
        assert!(page["items"].as_array().unwrap().len() < 20, "a page costs what it shows: {page}");
        pages.insert(0, texts(&page));
        match page["next"].as_u64() {
            Some(next) => before = format!("&before={next}"),
            None => break,
        }
    }

    assert!(pages.len() > 3);
    assert_eq!(pages.concat(), texts(&whole));
    let text = whole.to_string();
    assert!(text.contains("Answer 5.") && text.contains("Question 0"));
    for block in whole["items"].as_array().unwrap() {
        let html = block["html"].as_str().unwrap();
        assert!(!html.contains("<script") && !html.contains("<b>"), "{html}");
    }
    server.shutdown().await;
}

/// H8: a page that asks what is new since the record it knows gets exactly that, from any record on; what is too much comes as the
/// newest page.
#[tokio::test(flavor = "multi_thread")]
async fn a_transcript_goes_on_after_any_record() {
    let server = server_with_turns(3).await;
    let (_, whole) = server.get("/api/sessions/a/transcript?limit=500").await;
    let head = whole["through"].as_u64().unwrap();
    let blocks = |page: &Value| -> Vec<Value> {
        let unnumbered = |block: &Value| {
            let mut block = block.clone();
            block.as_object_mut().unwrap().remove("id");
            block
        };
        page["items"].as_array().unwrap().iter().map(unnumbered).collect()
    };
    let whole_blocks = blocks(&whole);

    for after in 0..=head {
        let (status, page) = server.get(&format!("/api/sessions/a/transcript?after={after}&limit=500")).await;
        assert_eq!((status, &page["complete"], &page["next"]), (200, &json!(true), &Value::Null));
        assert_eq!((page["through"].as_u64(), &page["open"]), (Some(head), &json!([])));
        let rest = whole_blocks.iter().filter(|block| block["ended_by"].as_u64() > Some(after)).cloned();
        assert_eq!(blocks(&page), rest.collect::<Vec<_>>(), "after {after}");
    }

    let (_, newest) = server.get("/api/sessions/a/transcript?limit=3").await;
    let (_, too_many) = server.get("/api/sessions/a/transcript?after=1&limit=3").await;
    assert_eq!((&too_many["complete"], &newest["complete"]), (&json!(false), &Value::Null));
    assert_eq!((blocks(&too_many), &too_many["next"]), (blocks(&newest), &newest["next"]));
    let (status, problem) = server.get(&format!("/api/sessions/a/transcript?after={}", head + 1)).await;
    assert_eq!((status, &problem["code"]), (400, &json!("seq_ahead")));
    let (status, problem) = server.get("/api/sessions/a/transcript?after=1&before=2").await;
    assert_eq!((status, &problem["code"]), (400, &json!("invalid_query")));
    server.shutdown().await;
}

/// H8: what is sent while a turn runs waits below it, then stands where the model gets it, and a fork before it has the whole turn
/// before its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_was_sent_during_a_turn_stands_where_the_model_gets_it() {
    let wait = json!({"name": "exec", "arguments": {"command": "until [ -e go ]; do sleep 0.05; done"}});
    let script = json!([{"text": "I run it.", "calls": [wait]}, "Joined.", "After."]);
    let server = TestServer::with_script(&script.to_string()).await;
    server.post("/api/sessions", &json!({"key": "a", "work_dir": server.home.work()})).await;
    server.post("/api/sessions/a/inputs", &json!({"text": "first"})).await;
    let path = "/api/sessions/a/transcript";
    server.poll(path, |page| page["open"].to_string().contains("call running")).await;
    server.post("/api/sessions/a/inputs", &json!({"text": "after", "mode": "after"})).await;
    server.post("/api/sessions/a/inputs", &json!({"text": "joins"})).await;
    let texts = |blocks: &Value| -> Vec<String> {
        let texts = blocks.as_array().unwrap().iter().filter_map(|block| block["content"]["text"].as_str());
        texts.map(str::to_owned).collect()
    };

    let waiting = server.poll(path, |page| texts(&page["open"]).len() == 2).await;
    std::fs::write(server.home.work().join("go"), "").unwrap();
    let ended = server.poll(path, |page| page["items"].to_string().contains("After.")).await;

    assert_eq!(texts(&waiting["open"]), ["after", "joins"], "{waiting}");
    let last = waiting["open"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["state"], &last["ended_by"]), (&json!("running"), &Value::Null));
    let is_said = |block: &&Value| ["input", "message"].contains(&block["content"]["type"].as_str().unwrap());
    let said: Vec<&Value> = ended["items"].as_array().unwrap().iter().filter(is_said).collect();
    let order: Vec<Value> =
        said.iter().map(|block| json!([block["turn"], block["content"]["text"]])).collect();
    let expected =
        json!([[1, "first"], [1, "I run it."], [1, "joins"], [1, "Joined."], [2, "after"], [2, "After."]]);
    assert_eq!(json!(order), expected, "{ended}");
    assert_eq!([&said[0]["content"]["fork_at"], &said[2]["content"]["fork_at"]], [&Value::Null; 2]);
    let fork_at = &said[4]["content"]["fork_at"];
    let (status, fork) = server.post("/api/sessions/a/fork", &json!({"at": fork_at})).await;
    assert_eq!(status, 201, "{fork}");
    let key = fork["key"].as_str().unwrap();
    let (_, forked) = server.get(&format!("/api/sessions/{key}/transcript")).await;
    let shown = texts(&forked["items"]);
    assert!(shown.contains(&"Joined.".to_owned()) && !shown.contains(&"after".to_owned()), "{forked}");
    let end = forked["items"].as_array().unwrap().iter().find(|block| block["content"]["type"] == "turn_end");
    assert_eq!(end.unwrap()["content"]["outcome"], "completed", "{forked}");
    server.shutdown().await;
}

/// H8: a page that is opened while a command runs shows the command, and gets its end once.
#[tokio::test(flavor = "multi_thread")]
async fn what_goes_on_is_shown_until_it_ends() {
    let script = json!([
        {"text": "I run it.", "calls": [{"name": "exec", "arguments": {"command": "until [ -e go ]; do sleep 0.05; done"}}]},
        "Done.",
    ]);
    let server = TestServer::with_script(&script.to_string()).await;
    server.post("/api/sessions", &json!({"key": "a", "work_dir": server.home.work()})).await;
    server.post("/api/sessions/a/inputs", &json!({"text": "Run it."})).await;
    let path = "/api/sessions/a/transcript";
    let is_running = |page: &Value| page["open"].to_string().contains("call running");

    let page = server.poll(path, is_running).await;

    let kinds: Vec<&Value> =
        page["open"].as_array().unwrap().iter().map(|block| &block["content"]["type"]).collect();
    assert_eq!(kinds, ["turn_start", "call"], "{page}");
    let through = page["through"].as_u64().unwrap();
    let (_, same) = server.get(&format!("{path}?after={through}")).await;
    let shown = |page: &Value| -> Vec<Value> {
        page["open"].as_array().unwrap().iter().map(|block| block["html"].clone()).collect()
    };
    assert_eq!((shown(&same), &same["items"]), (shown(&page), &json!([])), "{same}");
    assert_eq!(server.get(&format!("{path}?before={through}")).await.1["open"], Value::Null);

    std::fs::write(server.home.work().join("go"), "").unwrap();
    let ended = server.poll(&format!("{path}?after={through}"), |page| page["open"] == json!([])).await;
    let kinds: Vec<&Value> =
        ended["items"].as_array().unwrap().iter().map(|block| &block["content"]["type"]).collect();
    assert_eq!(kinds, ["call", "message", "turn_end"], "{ended}");
    server.shutdown().await;
}

/// H8: context and spend, as data for pictures.
#[tokio::test(flavor = "multi_thread")]
async fn figures_have_the_context_of_each_call_and_what_was_spent() {
    let server = server_with_turns(3).await;

    let (status, figures) = server.get("/api/sessions/a/figures").await;

    assert_eq!(status, 200, "{figures}");
    let context = figures["context"].as_array().unwrap();
    assert_eq!((context.len(), &figures["calls"]), (6, &json!(6)), "{figures}");
    let turns: Vec<u64> = context.iter().filter_map(|point| point["turn"].as_u64()).collect();
    assert_eq!(turns, [1, 1, 2, 2, 3, 3]);
    assert!(context.iter().all(|point| point["input"].as_u64() > Some(0)), "{figures}");
    for point in context {
        let parts = point["parts"].as_object().unwrap();
        let sum: u64 = parts.values().filter_map(Value::as_u64).sum();
        assert_eq!(
            (Some(sum), parts.len()),
            (point["input"].as_u64(), 7),
            "the parts are the whole: {point}"
        );
        assert!(parts["system"].as_u64() > Some(0) && parts["tools"].as_u64() > Some(0), "{point}");
    }
    let by_turn = figures["by_turn"].as_array().unwrap();
    assert_eq!(by_turn.len(), 3);
    assert!(by_turn.iter().all(|turn| turn["calls"] == 2 && turn["input"].as_u64() > Some(0)), "{figures}");
    let of_turns = figures["by_cause"].as_array().unwrap().iter().find(|cause| cause["cause"] == "turn");
    let sum: u64 = by_turn.iter().filter_map(|turn| turn["input"].as_u64()).sum();
    assert_eq!(of_turns.unwrap()["input"].as_u64(), Some(sum), "{figures}");
    assert_eq!(figures["compactions"], json!([]));
    assert_eq!(server.get("/api/sessions/nothing/figures").await.0, 404);
    server.shutdown().await;
}

/// H8: where the time of a turn went.
#[tokio::test(flavor = "multi_thread")]
async fn a_timeline_has_the_model_calls_and_tools_of_a_turn() {
    let server = server_with_turns(2).await;

    let (status, timeline) = server.get("/api/sessions/a/turns/2/timeline").await;

    assert_eq!((status, &timeline["turn"], &timeline["outcome"]), (200, &json!(2), &json!("completed")));
    let spans = timeline["spans"].as_array().unwrap().iter().filter(|span| span["kind"] != "wait");
    let spans: Vec<Value> = spans.map(|span| json!([span["kind"], span["outcome"]])).collect();
    assert_eq!(json!(spans), json!([["model", "ok"], ["tool", "ok"], ["model", "ok"]]), "{timeline}");
    let totals = timeline["totals"].as_array().unwrap();
    let sum: u64 = totals.iter().filter_map(|total| total["ms"].as_u64()).sum();
    assert!(totals.len() == 6 && Some(sum) <= timeline["took_ms"].as_u64(), "{timeline}");
    let (status, problem) = server.get("/api/sessions/a/turns/9/timeline").await;
    assert_eq!((status, &problem["code"]), (404, &json!("no_such_turn")));
    let (status, problem) = server.get("/api/sessions/a/turns/x/timeline").await;
    assert_eq!((status, &problem["code"]), (400, &json!("invalid_path")));
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exported_session_is_imported_into_another_home() {
    let server = server_with_turns(1).await;
    let other = TestServer::with_script("[]").await;

    let exported = server.request(Method::GET, "/api/sessions/a/export").send().await.unwrap();
    assert_eq!(
        (exported.status().as_u16(), exported.headers()["content-type"].to_str().unwrap()),
        (200, "application/jsonl")
    );
    let file = exported.text().await.unwrap();
    let import = |body: String, path: &'static str, kind: &'static str| {
        json_answer(other.request(Method::POST, path).header("content-type", kind).body(body))
    };
    let (status, imported) = import(file.clone(), "/api/sessions/import?key=b", "application/jsonl").await;

    assert_eq!((status, &imported["key"]), (201, &json!("b")), "{imported}");
    assert_eq!(other.get("/api/sessions/b").await.1["turns"], 1);
    let (again, problem) = import(file.clone(), "/api/sessions/import?key=c", "application/jsonl").await;
    assert_eq!((again, &problem["code"]), (422, &json!("invalid_export")));
    assert!(!problem.to_string().contains("transfer-"), "no path of the server: {problem}");
    assert_eq!(import("{}\n".to_owned(), "/api/sessions/import", "application/jsonl").await.0, 422);
    assert_eq!(import(file, "/api/sessions/import", "application/json").await.0, 415);
    let left = std::fs::read_dir(other.home.home().join("run")).unwrap().flatten();
    assert!(left.into_iter().all(|entry| !entry.file_name().to_string_lossy().starts_with("transfer-")));
    server.shutdown().await;
    other.shutdown().await;
}
