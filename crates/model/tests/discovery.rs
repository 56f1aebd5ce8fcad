//! What is found out by asking servers.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use longhaul_model::transport::TransportError;
use longhaul_model::{
    DiscoveredCapabilities, LOCAL_SERVER_PORTS, LocalServer, ModelSpec, Models, Protocol, ServerQuery,
    discover_capabilities, find_local_servers,
};
use longhaul_testkit::wire::{End, MemoryTransport, Reply, Script};
use serde_json::{Value, json};
use tokio::time::Instant;

/// A server that has these answers, by path.
fn serving(answers: Vec<(&'static str, Value)>) -> MemoryTransport {
    MemoryTransport::new(Script::by(move |seen| {
        let answer = answers.iter().find(|(path, _)| seen.path.ends_with(path));
        answer.map_or_else(|| Reply::error(404, "{}"), |(_, value)| Reply::json(value))
    }))
}

fn server(provider: &'static str, base_url: &'static str) -> ServerQuery<'static> {
    ServerQuery { provider, protocol: Protocol::OpenaiChat, base_url, key: None }
}

fn window(tokens: u64) -> Option<DiscoveredCapabilities> {
    Some(DiscoveredCapabilities { window: Some(tokens), tools: None })
}

fn paths(transport: &MemoryTransport) -> Vec<String> {
    transport.requests().into_iter().map(|seen| format!("{} {}", seen.method, seen.path)).collect()
}

const OLLAMA: &str = "http://127.0.0.1:11434/v1";
const HOSTED: &str = "https://api.host.test/v1";
const CUSTOM: &str = "http://localhost:9000/v1/";

/// M14
#[tokio::test(start_paused = true)]
async fn what_ollama_was_told_to_load_counts_before_what_the_model_could_take() {
    let shown = json!({
        "parameters": "stop \"<|im_end|>\"\nnum_ctx                        16384\ntemperature 0.7",
        "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 262_144},
        "capabilities": ["completion", "tools"],
    });
    let transport = serving(vec![("/api/show", shown)]);

    let found = discover_capabilities(&transport, &server("ollama", OLLAMA), "qwen3").await;

    assert_eq!(found, Some(DiscoveredCapabilities { window: Some(16_384), tools: Some(true) }));
    assert_eq!(transport.requests()[0].json(), json!({"model": "qwen3"}));
}

/// M14
#[tokio::test(start_paused = true)]
async fn a_model_that_ollama_has_loaded_has_the_context_that_it_was_loaded_with() {
    let shown = json!({"model_info": {"llama.context_length": 131_072}, "capabilities": ["completion"]});
    let loaded = json!({"models": [
        {"name": "other:7b", "model": "other:7b", "context_length": 2048},
        {"name": "llama3.2:latest", "model": "llama3.2:latest", "context_length": 4096},
    ]});
    let transport = serving(vec![("/api/show", shown), ("/api/ps", loaded)]);

    let found = discover_capabilities(&transport, &server("ollama", OLLAMA), "llama3.2").await;

    assert_eq!(found, Some(DiscoveredCapabilities { window: Some(4096), tools: Some(false) }));
}

/// M14
#[tokio::test(start_paused = true)]
async fn a_model_that_ollama_has_not_loaded_has_the_context_that_it_was_made_for() {
    let shown = json!({"model_info": {"llama.block_count": 28, "llama.context_length": 131_072}});
    let transport = serving(vec![("/api/show", shown), ("/api/ps", json!({"models": []}))]);

    let found = discover_capabilities(&transport, &server("ollama", OLLAMA), "llama3.2").await;

    assert_eq!(found, window(131_072));
    assert_eq!(paths(&transport), ["POST /api/show", "GET /api/ps"]);
}

/// M14
#[tokio::test(start_paused = true)]
async fn llama_cpp_says_what_a_slot_takes() {
    let props = json!({"default_generation_settings": {"n_ctx": 4096}, "total_slots": 2});
    let transport = serving(vec![("/props", props)]);

    let found =
        discover_capabilities(&transport, &server("llamacpp", "http://127.0.0.1:8080/v1"), "any").await;

    assert_eq!((found, paths(&transport)), (window(4096), vec!["GET /props".to_owned()]));
}

/// M14
#[tokio::test(start_paused = true)]
async fn every_word_for_a_window_in_a_list_of_models_is_understood() {
    let entries = [
        json!({"id": "m", "context_length": 5}),
        json!({"id": "m", "context_window": 5}),
        json!({"id": "m", "max_model_len": 5}),
        json!({"id": "m", "max_context_length": 5}),
        json!({"id": "m", "max_context_length": 9, "loaded_context_length": 5}),
        json!({"id": "m", "meta": {"n_ctx": 5, "n_ctx_train": 9}}),
        json!({"id": "m", "meta": {"n_ctx_train": 5}}),
        json!({"id": "m", "meta": {"n_ctx": 0, "n_ctx_train": 5}}),
        json!({"name": "models/m", "inputTokenLimit": 5}),
    ];
    for entry in entries {
        let other = json!({"id": "other", "context_length": 7});
        for list in
            [json!({"data": [other, entry]}), json!({"models": [other, entry]}), json!([other, entry])]
        {
            let transport = serving(vec![("/v1/models", list)]);

            let found = discover_capabilities(&transport, &server("openrouter", HOSTED), "m").await;

            assert_eq!(found, window(5), "{entry}");
        }
    }
}

/// M18
#[tokio::test(start_paused = true)]
async fn a_list_of_parameters_tells_whether_a_model_can_call_tools() {
    let list = json!({"data": [
        {"id": "with", "supported_parameters": ["max_tokens", "tools"]},
        {"id": "without", "supported_parameters": ["max_tokens"]},
    ]});
    let transport = serving(vec![("/v1/models", list)]);

    let with = discover_capabilities(&transport, &server("openrouter", HOSTED), "with").await;
    let without = discover_capabilities(&transport, &server("openrouter", HOSTED), "without").await;

    assert_eq!(with, Some(DiscoveredCapabilities { window: None, tools: Some(true) }));
    assert_eq!(without, Some(DiscoveredCapabilities { window: None, tools: Some(false) }));
}

#[tokio::test(start_paused = true)]
async fn lm_studio_is_asked_in_its_own_way_first() {
    let own = json!({"data": [{"id": "m", "max_context_length": 131_072, "loaded_context_length": 8192}]});
    let transport = serving(vec![("/api/v0/models", own)]);

    let found = discover_capabilities(&transport, &server("lmstudio", "http://127.0.0.1:1234/v1"), "m").await;

    assert_eq!(found, window(8192));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_server_on_this_machine_is_asked_in_its_own_way_only_when_it_says_who_it_is() {
    let models = |owner: &str| json!({"data": [{"id": "m", "owned_by": owner, "meta": {"n_ctx_train": 9}}]});
    let ollama = serving(vec![
        ("/v1/models", models("library")),
        ("/api/show", json!({"model_info": {"x.context_length": 3}})),
    ]);
    let llama = serving(vec![
        ("/v1/models", models("llamacpp")),
        ("/props", json!({"default_generation_settings": {"n_ctx": 4}})),
    ]);
    let nobody = serving(vec![]);

    let found = [
        discover_capabilities(&ollama, &server("custom", CUSTOM), "m").await,
        discover_capabilities(&llama, &server("custom", CUSTOM), "m").await,
        discover_capabilities(&nobody, &server("custom", CUSTOM), "m").await,
    ];

    assert_eq!(found, [window(3), window(4), None]);
    assert_eq!(paths(&ollama), ["GET /v1/models", "POST /api/show", "GET /api/ps"]);
    assert_eq!(paths(&llama), ["GET /v1/models", "GET /props"]);
    assert_eq!(paths(&nobody), ["GET /v1/models"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_elsewhere_is_asked_for_its_models_only_in_the_way_of_its_protocol() {
    let asked = |protocol: Protocol| async move {
        let transport = serving(vec![]);
        let server = ServerQuery { protocol, key: Some("secret"), ..server("custom", HOSTED) };
        assert_eq!(discover_capabilities(&transport, &server, "m").await, None);
        let [seen] = transport.requests().try_into().unwrap();
        let headers = seen.headers.into_iter().filter(|(name, _)| name != "host");
        (seen.path, headers.map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join(", "))
    };

    let chat = asked(Protocol::OpenaiChat).await;
    let anthropic = asked(Protocol::Anthropic).await;
    let gemini = asked(Protocol::Gemini).await;

    assert_eq!(chat, ("/v1/models".to_owned(), "authorization: Bearer secret".to_owned()));
    assert_eq!(anthropic.0, "/v1/models?limit=1000");
    assert_eq!(anthropic.1, "x-api-key: secret, anthropic-version: 2023-06-01");
    assert_eq!(gemini, ("/v1/models?pageSize=1000".to_owned(), "x-goog-api-key: secret".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_costs_two_seconds_at_most() {
    let silent = [
        Reply::json(&json!({})).after(Duration::from_secs(60)),
        Reply::json(&json!({})).connecting(Duration::from_secs(60)),
        Reply::error(200, "{").ending(End::Stall),
    ];
    for reply in silent {
        let transport = MemoryTransport::new(Script::list(vec![reply]));
        let began = Instant::now();

        let found = discover_capabilities(&transport, &server("groq", HOSTED), "m").await;

        assert_eq!((found, began.elapsed()), (None, Duration::from_secs(2)));
        assert_eq!(transport.open(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn what_can_not_be_read_is_not_known() {
    let entry = json!({"id": "m", "context_length": 5, "padding": "x".repeat(1024 * 1024)});
    let unreadable = [
        Reply::trouble(TransportError::Refused),
        Reply::error(500, r#"{"data": [{"id": "m", "context_length": 5}]}"#),
        Reply::error(200, "<html>"),
        Reply::error(200, r#"{"data": [{"id": "m", "context_length": 5}]}"#).cut_at(20),
        Reply::json(&json!({"data": [entry]})).in_pieces(1000),
        Reply::json(&json!({"data": [{"id": "m", "context_length": "many"}]})),
        Reply::json(&json!({"data": {"m": 5}})),
        Reply::json(&json!(null)),
    ];
    for reply in unreadable {
        let transport = MemoryTransport::new(Script::list(vec![reply]));

        assert_eq!(discover_capabilities(&transport, &server("groq", HOSTED), "m").await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn servers_of_this_machine_are_found_side_by_side() {
    let transport = MemoryTransport::new(Script::by(|seen| match seen.header("host") {
        Some("127.0.0.1:11434") => Reply::json(&json!({"data": [{"id": "a"}, {"id": "b"}]})),
        Some("127.0.0.1:8080") => Reply::stream("never").after(Duration::from_secs(9)),
        Some("127.0.0.1:1234") => Reply::json(&json!({"data": []})).after(Duration::from_millis(250)),
        _ => Reply::error(200, "<html>something else</html>"),
    }));
    let began = Instant::now();

    let found = find_local_servers(&transport, &LOCAL_SERVER_PORTS).await;

    let expected = [
        LocalServer {
            provider: "ollama".to_owned(),
            base_url: "http://127.0.0.1:11434/v1".to_owned(),
            models: vec!["a".to_owned(), "b".to_owned()],
        },
        LocalServer {
            provider: "lmstudio".to_owned(),
            base_url: "http://127.0.0.1:1234/v1".to_owned(),
            models: vec![],
        },
    ];
    assert_eq!((found, began.elapsed()), (expected.to_vec(), Duration::from_millis(300)));
    assert_eq!(transport.requests().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn what_is_on_this_machine_is_told_from_what_is_not() {
    let local =
        ["http://localhost:1/v1", "http://127.0.0.2/v1", "http://[::1]:8080/v1", "http://me@LOCALHOST"];
    let elsewhere =
        ["https://localhost.evil.test/v1", "http://127.0.0.1@host.test/v1", "http://10.0.0.1:8080/v1"];
    let count = |base_url: &'static str| async move {
        let transport = serving(vec![("/models", json!({"data": [{"id": "m", "owned_by": "llamacpp"}]}))]);
        discover_capabilities(&transport, &server("custom", base_url), "m").await;
        transport.requests().len()
    };

    for base_url in local {
        assert_eq!(count(base_url).await, 2, "{base_url}");
    }
    for base_url in elsewhere {
        assert_eq!(count(base_url).await, 1, "{base_url}");
    }
}

/// M14: what Ollama could load is not what it loads.
#[tokio::test(start_paused = true)]
async fn a_model_that_ollama_has_not_loaded_is_asked_about_again() {
    let loaded = Arc::new(AtomicBool::new(false));
    let script = Script::by({
        let loaded = loaded.clone();
        move |seen| match seen.path.as_str() {
            "/api/show" => Reply::json(&json!({"model_info": {"x.context_length": 131_072}})),
            "/api/ps" if loaded.load(Ordering::SeqCst) => {
                Reply::json(&json!({"models": [{"name": "m:latest", "context_length": 4_096}]}))
            }
            _ => Reply::error(404, "{}"),
        }
    });
    let home = tempfile::tempdir().unwrap();
    let models = Models::at(home.path()).unwrap().through(Arc::new(MemoryTransport::new(script)));
    let model = models.open(&ModelSpec { name: "ollama/m".to_owned(), ..ModelSpec::default() }).unwrap();

    let before = model.capabilities().await.window.unwrap().tokens;
    loaded.store(true, Ordering::SeqCst);
    let after = model.capabilities().await.window.unwrap().tokens;

    assert_eq!((before, after), (131_072, 4_096));
}

/// FORMATS, Models: where a model has another address, only Anthropic's and Google's keep their own protocol.
#[tokio::test(start_paused = true)]
async fn at_another_address_a_model_speaks_chat_unless_it_is_anthropics_or_googles() {
    let home = tempfile::tempdir().unwrap();
    let expected = [
        ("anthropic/m", "/v1/messages"),
        ("gemini/m", "/v1/models/m:streamGenerateContent?alt=sse"),
        ("openai/m", "/v1/chat/completions"),
        ("mine/m", "/v1/chat/completions"),
    ];

    for (name, path) in expected {
        let transport = Arc::new(MemoryTransport::new(Script::by(|_| Reply::error(500, "{}"))));
        let models = Models::at(home.path()).unwrap().through(transport.clone());
        let base_url = Some("http://10.0.0.1:8080/v1".to_owned());
        let wanted = ModelSpec { name: name.to_owned(), base_url, ..ModelSpec::default() };
        let _ = models
            .open(&wanted)
            .unwrap()
            .ask(
                longhaul_model::Request::default(),
                &longhaul_model::CallPermit::unreserved(longhaul_protocol::Cause::Turn),
            )
            .await;

        assert_eq!(transport.requests()[0].path, path, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_provider_offers_can_be_listed() {
    let home = tempfile::tempdir().unwrap();
    let lists = [
        ("together", json!([{"id": "a/b"}, {"id": "c"}]), vec!["a/b", "c"]),
        ("groq", json!({"data": [{"id": "a"}]}), vec!["a"]),
        ("gemini", json!({"models": [{"name": "models/g", "inputTokenLimit": 5}]}), vec!["g"]),
    ];

    for (provider, list, expected) in lists {
        let transport = MemoryTransport::new(Script::list(vec![Reply::json(&list)]));
        let models = Models::at(home.path()).unwrap().through(Arc::new(transport));
        let provider = models.providers().get(provider).unwrap();

        assert_eq!(models.served_models(provider).await.unwrap(), expected);
    }
}
