//! Web pages and questions of the agent, with the real program.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

#[path = "../desk.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod desk;

use longhaul_model::Protocol;
use longhaul_testkit::wire::{ModelServer, Reply, Script, ScriptedAnswer};
use longhaul_testkit::{WebReply, WebServer, web_page};
use serde_json::{Value, json};

use crate::desk::Desk;

/// A web server that runs beside the test.
fn web_server(page: &'static str) -> (tokio::runtime::Runtime, WebServer) {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let reply = move |_: &str| WebReply::Bytes(web_page("text/html", page.as_bytes()));
    let server = tokio.block_on(WebServer::start(reply));
    (tokio, server)
}

/// The blocks of `docs/web.md` in this language, with the address of this server.
fn blocks(language: &str, server: &WebServer) -> Vec<String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/web.md");
    let page = std::fs::read_to_string(path).unwrap().replace("127.0.0.1:8000", &server.address.to_string());
    let blocks = page.split("\n```").skip(1).step_by(2);
    let of_language = blocks.filter_map(|block| block.split_once('\n').filter(|(name, _)| *name == language));
    of_language.map(|(_, text)| text.to_owned()).collect()
}

/// E7
#[test]
fn the_example_of_the_page_works() {
    let (_tokio, server) =
        web_server("<title>Greeting</title><h1>Hello</h1><p>See <a href=\"/more\">more</a>.</p>");
    let script: Value = serde_json::from_str(&blocks("json", &server)[0]).unwrap();
    let desk = Desk::new(&script);
    desk.configure(&blocks("toml", &server)[0]);

    let (code, out, errors) = desk.run(&["run", "-s", "web", "what does the page say?"]);

    assert_eq!(code, 0, "{errors}");
    assert!(blocks("console", &server)[0].ends_with(&format!("say?\"\n{}", out.trim_end())), "{out}");
    assert_eq!(
        desk.records("web", "tool_finished")[0]["content"].as_str(),
        Some(blocks("", &server)[0].as_str())
    );
    assert!(errors.contains(&format!("web_fetch  {}", server.url("/page.html"))), "{errors}");
}

/// E8: exit 7, and the answer may come from any process.
#[test]
fn a_question_without_a_terminal_exits_with_7_and_any_process_answers_it() {
    let ask = json!({"question": "Which database?", "choices": ["SQLite", "Postgres"]});
    for (typed, answer) in [("2", "Postgres"), ("sqlite", "SQLite"), ("no", "no"), ("a file", "a file")] {
        let desk = Desk::new(&json!([{"calls": [{"name": "ask_user", "arguments": ask}]}, "So be it."]));

        let (code, _, errors) = desk.run(&["run", "-s", "a", "go"]);
        let question = desk.records("a", "question").remove(0);
        let id = question["id"].as_str().unwrap();
        let (answered, _, _) = desk.run(&["answer", "-s", "a", id, typed]);
        let (resumed, out, _) = desk.run(&["resume", "a"]);

        assert_eq!((code, answered, resumed, out.as_str()), (7, 0, 0, "So be it.\n"), "{errors}");
        assert_eq!((question["kind"].as_str(), &question["choices"]), (Some("ask"), &ask["choices"]));
        assert!(errors.contains("question: Which database?\n  1. SQLite\n  2. Postgres"), "{errors}");
        assert!(errors.contains(&format!("to answer: longhaul answer -s a {id} TEXT")), "{errors}");
        assert_eq!(desk.records("a", "tool_finished")[0]["content"], answer);
    }
}

/// P5, P7: a project's file opens nothing.
#[test]
fn a_project_can_not_allow_private_hosts_before_it_is_trusted() {
    let (_tokio, server) = web_server("secret");
    let call = json!({"name": "web_fetch", "arguments": {"url": server.url("/")}});
    let desk = Desk::new(&json!([{"calls": [call]}, "Refused."]));
    std::fs::write(
        desk.path("work/longhaul.toml"),
        "[web]\nallow = [\"127.0.0.1\"]\nproxy = \"http://127.0.0.1:1\"\n",
    )
    .unwrap();

    let (code, _, errors) = desk.run(&["run", "-s", "a", "go"]);

    assert_eq!((code, server.connections()), (0, 0), "{errors}");
    assert!(errors.contains("web.allow") && errors.contains("web.proxy"), "{errors}");
    assert!(desk.records("a", "tool_finished")[0]["is_error"].as_bool().unwrap());
}

/// E7, P8: the provider's own search is a call like any other: on record, marked, and made again after a crash in it. It is paid.
#[test]
fn the_models_provider_searches_and_its_pages_are_data() {
    let call = ScriptedAnswer::nothing().call("web_search", json!({"query": "ferries to Capri"}));
    let frames = [
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 9}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "web_search_tool_result", "tool_use_id": "s1",
            "content": [{"type": "web_search_result", "url": "https://example.org/a", "title": "Ferries"}]}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "At noon."}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}),
        json!({"type": "message_stop"}),
    ];
    let found: String = frames.iter().map(|frame| format!("event: x\ndata: {frame}\n\n")).collect();
    let done = ScriptedAnswer::text("It leaves at noon.");
    let replies = [call.bytes(Protocol::Anthropic), found.into_bytes(), done.bytes(Protocol::Anthropic)];
    let server = ModelServer::start(Script::list(replies.map(Reply::stream).into()));
    let desk = Desk::with_model_of_config(&format!(
        "[model]\nname = 'custom/m'\nbase_url = '{}/v1'\nprotocol = 'anthropic'\ncontext_window = 100000\n\
         [memory]\nextract_at_tokens = 0\n[web]\nsearch = 'provider'\n",
        server.url()
    ));

    let (code, out, errors) = desk.run(&["run", "-s", "a", "when does it leave?"]);

    assert_eq!((code, out.as_str()), (0, "It leaves at noon.\n"), "{errors}");
    let result = desk.records("a", "tool_finished").remove(0);
    let content = result["content"].as_str().unwrap();
    assert!(content.starts_with("untrusted:"), "{content}");
    assert!(content.ends_with("At noon.\n1. Ferries\n   https://example.org/a"), "{content}");
    let search = server.requests()[1].json();
    assert_eq!(search["tools"][0]["type"], "web_search_20250305");
    assert!(search["messages"].to_string().contains("ferries to Capri"), "{search}");
    let tools = server.requests()[0].json()["tools"].to_string();
    assert!(tools.contains("\"web_search\"") && !tools.contains("web_search_20250305"), "{tools}");
    let statement = desk.json(&["statement", "--json"]).to_string();
    assert!(statement.contains("\"calls\":3"), "{statement}");
}

/// P5, E7: doctor says what can be reached, and how to get a search.
#[test]
fn doctor_says_what_can_be_reached_and_whether_there_is_a_search() {
    let desk = Desk::new(&json!([]));
    let findings = |config: &str| {
        desk.configure(config);
        let command = desk.command(&["doctor", "--json"]).env_remove("BRAVE_API_KEY").output().unwrap();
        let report: Value = serde_json::from_slice(&command.stdout).unwrap();
        let list = report.as_array().or_else(|| report["findings"].as_array()).unwrap().clone();
        let of = |check: &str| list.iter().find(|finding| finding["check"] == check).unwrap().clone();
        (of("web"), of("search"))
    };

    let (web, search) = findings("");
    assert_eq!((&web["ok"], &search["ok"]), (&json!(true), &json!(true)));
    assert!(
        search["found"]
            .as_str()
            .unwrap()
            .starts_with("web search by the model's provider, if it is Anthropic"),
        "{search}"
    );
    let (web, search) = findings("[web]\nproxy = 'http://me:secret@proxy.lan:3128'\nsearch = 'brave'\n");
    let found = web["found"].as_str().unwrap();
    assert!(
        found.contains("only it can keep private addresses out of reach") && !found.contains("secret"),
        "{found}"
    );
    assert_eq!(
        (&search["ok"], search["to_do"].as_str()),
        (&json!(false), Some("set BRAVE_API_KEY, or remove web.search"))
    );
    let (web, search) = findings("[web]\nallow = ['wiki.lan']\nsearch = 'searxng:http://127.0.0.1:8888'\n");
    assert!(web["found"].as_str().unwrap().ends_with("and from wiki.lan (web.allow)"), "{web}");
    assert_eq!(search["found"], "web search asks http://127.0.0.1:8888/search");
}
