//! H3: every endpoint is in the document, which is made from the same table as the router.

use reqwest::Method;
use serde_json::{Value, json};

use crate::test_server::{TestServer, json_answer};

/// Every route that needs no token.
const OPEN: [(&str, &str); 6] = [
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/openapi.json"),
    ("GET", "/api/login"),
    ("POST", "/api/login"),
    ("POST", "/api/logout"),
];

/// H3, H5: each route of the document exists, and none but those above answers without a token.
#[tokio::test(flavor = "multi_thread")]
async fn every_documented_path_is_routed_and_every_schema_reference_resolves() {
    let server = TestServer::with_script("[]").await;
    let (status, document) = json_answer(server.anonymous(Method::GET, "/openapi.json")).await;
    assert_eq!((status, &document["openapi"]), (200, &Value::from("3.1.0")));

    let paths = document["paths"].as_object().unwrap();
    for (path, operations) in paths {
        for method in operations.as_object().unwrap().keys() {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let filled = path.replace("{key}", "nothing").replace(['{', '}'], "");
            let answer = server.anonymous(method.clone(), &filled).send().await.unwrap();
            let status = answer.status().as_u16();
            let is_open = OPEN.contains(&(method.as_str(), path));
            // A path that is not routed is 404, and a method 405, before any token is looked at.
            let expected: &[u16] = match is_open {
                true => &[200, 204, 415, 503],
                // This server is no node of a cluster.
                false if path.starts_with("/cluster/") => &[404],
                false => &[401],
            };
            assert!(expected.contains(&status), "{method} {path}: {status}");
            let is_declared_open = operations[method.as_str().to_lowercase()]["security"] == json!([]);
            assert_eq!(is_declared_open, is_open, "{method} {path}");
        }
    }
    let required = |path: &str| paths[path]["post"]["requestBody"]["required"].clone();
    assert_eq!(
        (required("/api/sessions"), required("/api/sessions/{key}/fork")),
        (json!(true), json!(false))
    );
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(document.pointer(reference).is_some(), "{reference} leads nowhere");
    }
    assert!(paths.contains_key("/api/sessions"));
    server.shutdown().await;
}

/// H5: nothing but health, the document and the console's files is open.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_token_is_refused() {
    let server = TestServer::with_script("[]").await;

    let (status, problem) = json_answer(server.anonymous(Method::GET, "/api/sessions")).await;

    assert_eq!((status, &problem["code"]), (401, &Value::from("unauthorized")));
    assert_eq!(server.get("/api/sessions").await.0, 200);
    assert_eq!(server.anonymous(Method::GET, "/healthz").send().await.unwrap().status(), 200);
    server.shutdown().await;
}
