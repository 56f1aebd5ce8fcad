//! H4: the models that clients of `/v1` may name.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use longhaul_agent::model::Protocol;
use longhaul_server::{Scope, create_token};
use longhaul_testkit::wire::{ModelServer, Reply, Script, ScriptedAnswer};
use reqwest::Method;
use serde_json::{Value, json};

use crate::openai::{chat, content, said};
use crate::test_server::{TestServer, json_answer};

/// A model server that offers `a` and `b` while it is up.
fn model_server(is_up: &Arc<AtomicBool>, asked: &Arc<AtomicUsize>) -> ModelServer {
    let (is_up, asked) = (Arc::clone(is_up), Arc::clone(asked));
    ModelServer::start(Script::by(move |seen| match seen.protocol() {
        Some(protocol) => Reply::stream(ScriptedAnswer::text("By the office.").bytes(protocol)),
        None if !seen.path.ends_with("/models") => Reply::error(404, "{}"),
        None if is_up.load(Ordering::SeqCst) => {
            asked.fetch_add(1, Ordering::SeqCst);
            Reply::json(&json!({"data": [{"id": "a"}, {"id": "b"}]}))
        }
        None => Reply::error(500, "{}"),
    }))
}

/// A server whose home has the provider `office`, which runs on this machine.
async fn serving(office: &ModelServer) -> TestServer {
    serving_with(office, "local = true").await
}

/// A server whose home has the provider `office` with this setting.
async fn serving_with(office: &ModelServer, setting: &str) -> TestServer {
    let url = office.url();
    TestServer::with_settings(r#"["Hello."]"#, |config| {
        let provider = format!(
            "[office]\nprotocol = '{}'\nbase_url = '{url}/v1'\n{setting}\n[[model]]\npattern = 'office/*'\nwindow = 100000\n",
            longhaul_agent::model_list::protocol_name(Protocol::OpenaiChat)
        );
        std::fs::create_dir_all(&config.home).unwrap();
        std::fs::write(config.home.join("providers.toml"), provider).unwrap();
    })
    .await
}

/// H4: a model server that does not answer for a moment is no reason to say that its models do not exist.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_server_that_is_down_is_unavailable_and_asked_again() {
    let (is_up, asked) = (Arc::new(AtomicBool::new(false)), Arc::default());
    let office = model_server(&is_up, &asked);
    let server = serving(&office).await;

    let down = server.request(Method::GET, "/v1/models/office%2Fa").send().await.unwrap();
    let (status, wait) = (down.status().as_u16(), down.headers().get("retry-after").cloned());
    let error: Value = serde_json::from_slice(&down.bytes().await.unwrap()).unwrap();
    is_up.store(true, Ordering::SeqCst);
    let up = server.get("/v1/models/office%2Fa").await;
    let unknown = server.get("/v1/models/office%2Fc").await;

    assert_eq!((status, &error["error"]["code"]), (503, &json!("model_unavailable")), "{error}");
    assert!(wait.is_some(), "the client is told when to try again");
    assert_eq!((up.0, unknown.0), (200, 404), "{up:?} {unknown:?}");
    assert_eq!(asked.load(Ordering::SeqCst), 1, "an answer is kept");
    server.shutdown().await;
}

/// H4.
#[tokio::test(flavor = "multi_thread")]
async fn the_configured_model_is_listed_once() {
    let (is_up, asked) = (Arc::new(AtomicBool::new(true)), Arc::default());
    let office = model_server(&is_up, &asked);
    let server = serving(&office).await;
    server.runtime.use_model("office/b").unwrap();

    let (_, models) = server.get("/v1/models").await;

    let ids: Vec<&str> =
        models["data"].as_array().unwrap().iter().filter_map(|model| model["id"].as_str()).collect();
    assert_eq!(ids[..2], ["longhaul", "office/b"]);
    assert_eq!(ids.iter().filter(|id| id.starts_with("office/")).count(), 2, "{ids:?}");
    server.shutdown().await;
}

/// H4: what the configured server offers can be asked for, whether or not its provider is in a table.
#[tokio::test(flavor = "multi_thread")]
async fn the_models_of_the_configured_server_are_listed_and_usable() {
    let (is_up, asked) = (Arc::new(AtomicBool::new(true)), Arc::default());
    let office = model_server(&is_up, &asked);
    let server = TestServer::with_settings(r#"["Hello."]"#, |config| {
        config.settings.model.name = "a".to_owned();
        config.settings.model.base_url = Some(format!("{}/v1", office.url()));
    })
    .await;
    let mut body = chat(&json!([said("Hi")]));
    body["model"] = json!("custom/b");

    let (_, models) = server.get("/v1/models").await;
    let answer = server.post("/v1/chat/completions", &body).await;

    let ids: Vec<&str> =
        models["data"].as_array().unwrap().iter().filter_map(|model| model["id"].as_str()).collect();
    assert!(ids.contains(&"custom/a") && ids.contains(&"custom/b"), "{ids:?}");
    assert_eq!((answer.0, content(&answer.1)), (200, "By the office."), "{answer:?}");
    server.shutdown().await;
}

/// H4: a server that needs no key is asked, and one whose key is not set is not.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_without_its_key_is_not_asked() {
    let (is_up, asked) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let office = model_server(&is_up, &asked);
    for (setting, status) in [("key_env = []", 200), ("key_env = ['LONGHAUL_TEST_KEY_THAT_IS_NOT_SET']", 404)]
    {
        let server = serving_with(&office, setting).await;

        let shown = server.get("/v1/models/office%2Fa").await;

        assert_eq!(shown.0, status, "{setting}: {shown:?}");
        server.shutdown().await;
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

/// H5, B1: a token that may not set the model of a session does not set it by asking for it.
#[tokio::test(flavor = "multi_thread")]
async fn only_an_admin_token_chooses_another_model() {
    let (is_up, asked) = (Arc::new(AtomicBool::new(true)), Arc::default());
    let office = model_server(&is_up, &asked);
    let server = serving(&office).await;
    let token = create_token(&*server.runtime.journal(), "program", Scope::Act).await.unwrap();
    let ask = async |token: Option<&str>, session: &str, model: Option<&str>| {
        let mut body = chat(&json!([said("Hi")]));
        body["model"] = json!(model);
        let request = match token {
            Some(token) => server
                .anonymous(Method::POST, "/v1/chat/completions")
                .header("authorization", format!("Bearer {token}")),
            None => server.request(Method::POST, "/v1/chat/completions"),
        };
        let request =
            request.header("content-type", "application/json").header("x-longhaul-session", session);
        json_answer(request.body(body.to_string())).await
    };
    server.poll("/api/tokens", |tokens| tokens.to_string().contains("program")).await;
    let act = Some(token.as_str());

    let refused = ask(act, "s", Some("office/a")).await;
    let configured = ask(act, "s", Some("longhaul")).await;
    let by_admin = ask(None, "s", Some("office/a")).await;
    let present = ask(act, "s", Some("office/a")).await;
    let another = ask(act, "s", Some("office/b")).await;
    let unnamed = ask(act, "s", None).await;

    assert_eq!((refused.0, &refused.1["error"]["code"]), (403, &json!("scope")), "{refused:?}");
    assert_eq!((configured.0, content(&configured.1)), (200, "Hello."));
    assert_eq!(content(&by_admin.1), "By the office.");
    assert_eq!((present.0, content(&present.1)), (200, "By the office."), "the session has this model");
    assert_eq!((another.0, &another.1["error"]["code"]), (403, &json!("scope")), "{another:?}");
    assert_eq!(content(&unnamed.1), "By the office.");
    server.shutdown().await;
}
