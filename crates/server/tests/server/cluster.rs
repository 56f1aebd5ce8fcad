//! The endpoints for other nodes: who may call them, and what they do with what is wrong.

use std::time::Duration;

use longhaul_journal::Journal as _;
use longhaul_postgres::NodeLink as _;
use longhaul_protocol::{SessionId, StreamName};
use longhaul_server::ServerOptions;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::nodes::{CLUSTER_TOKEN, Node, TestDatabase, cluster_token, process_on};
use crate::test_server::{ADMIN_TOKEN, TestServer, json_answer};

const ENDPOINTS: [&str; 2] = ["/cluster/wake", "/cluster/follow"];
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

fn options() -> ServerOptions {
    ServerOptions { cluster_token: Some(cluster_token(CLUSTER_TOKEN)), ..ServerOptions::default() }
}

async fn post(server: &TestServer, path: &str, token: &str, body: &Value) -> (u16, Value) {
    let request = server.anonymous(Method::POST, path).header("authorization", format!("Bearer {token}"));
    json_answer(request.header("content-type", "application/json").body(body.to_string())).await
}

fn wake(streams: &[StreamName]) -> Value {
    json!({"holder": process_on("a"), "streams": streams})
}

fn follow() -> Value {
    json!({"holder": process_on("a"), "stream": StreamName::host()})
}

/// H5: the cluster's token opens what nodes do for each other and nothing else; nothing else opens that.
#[tokio::test(flavor = "multi_thread")]
async fn the_cluster_token_and_the_tokens_of_the_api_open_different_things() {
    let server = TestServer::with_options("[]", options()).await;
    let nearly = CLUSTER_TOKEN.replace("of", "oF");

    for path in ENDPOINTS {
        for token in [ADMIN_TOKEN, "", &nearly, &CLUSTER_TOKEN[..20]] {
            let (status, problem) = post(&server, path, token, &wake(&[])).await;
            assert_eq!((status, &problem["code"]), (401, &json!("unauthorized")), "{path} {token}");
        }
        let in_cookie = server.anonymous(Method::POST, path).header("cookie", "longhaul=1.test.00");
        assert_eq!(in_cookie.send().await.unwrap().status(), 401, "{path}");
    }
    for path in ["/api/sessions", "/api/tokens", "/api/status", "/metrics", "/v1/models"] {
        let request = server.anonymous(Method::GET, path);
        let answer = request.header("authorization", format!("Bearer {CLUSTER_TOKEN}")).send().await.unwrap();
        assert_eq!(answer.status(), 401, "{path}");
    }
    let sign_in = post(&server, "/api/login", "", &json!({"token": CLUSTER_TOKEN})).await;

    assert_eq!(sign_in.0, 401, "{sign_in:?}");
    assert_eq!(post(&server, "/cluster/wake", CLUSTER_TOKEN, &wake(&[])).await.0, 409);
    server.shutdown().await;
}

/// H5: a text that somebody also gave as a token of the API is the cluster's alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_given_for_both_opens_no_session() {
    let server = TestServer::with_given_token(CLUSTER_TOKEN, options()).await;

    let request = server.anonymous(Method::GET, "/api/sessions");
    let answer = request.header("authorization", format!("Bearer {CLUSTER_TOKEN}")).send().await.unwrap();

    assert_eq!(answer.status(), 401);
    assert_eq!(server.get("/api/sessions").await.0, 200);
    server.shutdown().await;
}

/// H5: without the cluster's token there is nothing for other nodes.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_the_cluster_token_is_no_node() {
    let server = TestServer::with_script("[]").await;

    for path in ENDPOINTS {
        for token in [ADMIN_TOKEN, CLUSTER_TOKEN, ""] {
            let (status, problem) = post(&server, path, token, &wake(&[])).await;
            assert_eq!((status, &problem["code"]), (404, &json!("no_such_route")), "{path} {token}");
        }
    }
    server.shutdown().await;
}

/// H5: a journal of one machine has no process that another node could mean.
#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_of_nodes_are_named() {
    let server = TestServer::with_options("[]", options()).await;
    let send = async |path: &str, body: &Value| post(&server, path, CLUSTER_TOKEN, body).await;
    let stream = StreamName::session(SessionId::generate());
    let many: Vec<StreamName> = (0..101).map(|_| stream.clone()).collect();

    for (path, body, status, code) in [
        ("/cluster/wake", wake(&[stream]), 409, "process_not_here"),
        ("/cluster/follow", follow(), 409, "process_not_here"),
        ("/cluster/wake", wake(&many), 400, "invalid_body"),
        ("/cluster/wake", json!({"streams": []}), 400, "invalid_body"),
        (
            "/cluster/wake",
            json!({"holder": process_on("a"), "streams": ["x".repeat(300)]}),
            400,
            "invalid_body",
        ),
        ("/cluster/follow", json!({"holder": {"pid": -1}, "stream": "host"}), 400, "invalid_body"),
        ("/cluster/follow", json!(["host"]), 400, "invalid_body"),
        ("/cluster/wake", json!({"padding": "x".repeat(70_000)}), 413, "body_too_large"),
    ] {
        let (answered, problem) = send(path, &body).await;
        assert_eq!((answered, &problem["code"]), (status, &json!(code)), "{path} {problem}");
    }

    // Another node may know this one by a name that clients don't use.
    let named = server.anonymous(Method::POST, "/cluster/wake").header("host", "node-a.internal:7171");
    let named = named.header("authorization", format!("Bearer {CLUSTER_TOKEN}"));
    let named =
        json_answer(named.header("content-type", "application/json").body(wake(&[]).to_string())).await;
    assert_eq!(named.0, 409, "{named:?}");
    let page = server.anonymous(Method::POST, "/cluster/wake").header("origin", "http://evil.example");
    assert_eq!(json_answer(page).await.0, 403);
    let other = server.request(Method::GET, "/api/sessions").header("host", "node-a.internal:7171");
    assert_eq!(json_answer(other).await.0, 403);
    server.shutdown().await;
}

/// H8: a node that stops ends what other nodes follow there, and is gone at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stops_ends_what_others_follow() {
    let database = TestDatabase::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let model = longhaul_agent::model::ScriptedModel::from_json("[]").unwrap();
    let a = Node::start(&database, "a", listener, vec![], std::sync::Arc::new(model)).await;
    let mut subscribers = a.journal.subscribers().await.unwrap();
    let link = longhaul_agent::HttpNodeLink::new(cluster_token(CLUSTER_TOKEN));
    let wrong = longhaul_agent::HttpNodeLink::new(cluster_token(&CLUSTER_TOKEN.replace('c', "C")));
    let stream = StreamName::session(SessionId::generate());

    let mut subscription = link.subscribe(&address, &process_on("a"), &stream).await.unwrap();
    let mut subscriber = tokio::time::timeout(TEST_TIMEOUT, subscribers.next()).await.unwrap().unwrap();
    assert!(subscriber.tell("a line\nand another\n").await);
    assert_eq!(subscription.next().await.as_deref(), Some("a line"));
    assert_eq!(subscription.next().await.as_deref(), Some("and another"));
    let refused = wrong.subscribe(&address, &process_on("a"), &stream).await.unwrap_err().to_string();
    let absent = link.subscribe(&address, &process_on("b"), &stream).await.unwrap_err().to_string();
    tokio::time::timeout(Duration::from_secs(4), a.server.shutdown()).await.expect("it hangs on a follower");

    assert!(refused.contains("does not accept the cluster token"), "{refused}");
    assert!(absent.contains("no such process"), "{absent}");
    assert_eq!(tokio::time::timeout(TEST_TIMEOUT, subscription.next()).await.unwrap(), None);
    tokio::time::timeout(TEST_TIMEOUT, subscriber.hung_up()).await.unwrap();
    let gone = link.wake(&address, &process_on("a"), &[stream]).await.unwrap_err();
    assert!(gone.to_string().contains(&address), "{gone}");
    a.runtime.shutdown().await.unwrap();
}
