use hyper::HeaderMap;
use longhaul_jsonrpc::{Message, Params, parse_message};
use serde_json::{Value, json};

use super::{ClientContext, Revision};

fn params(params: &Value) -> Params {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "x", "params": params});
    match parse_message(message.to_string().as_bytes()).unwrap() {
        Message::Request { params, .. } => params,
        other => panic!("{other:?}"),
    }
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
}

fn stateless(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": {"name": "builder", "version": "1"},
    })
}

/// The code of the error with which a request over HTTP is refused; 0 if it is not.
fn code(method: &str, body: &Value, pairs: &[(&'static str, &str)]) -> i32 {
    ClientContext::of_http(method, &params(body), &headers(pairs))
        .map_or_else(|error| error.error.code, |_| 0)
}

/// E3.
#[test]
fn a_stateless_request_says_what_its_client_can_do() {
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}, "elicitation": {}});

    let context =
        ClientContext::of_line("tools/call", &params(&json!({"_meta": stateless(&tasks)}))).unwrap();

    assert_eq!(
        context,
        ClientContext {
            revision: Revision::Stateless,
            wants_task: true,
            has_forms: true,
            name: Some("builder".to_owned()),
            progress_token: None,
        }
    );
}

/// E3.
#[test]
fn a_client_with_a_handshake_asks_for_a_task_with_each_call() {
    let context = ClientContext::of_line("tools/call", &params(&json!({"task": {"ttl": 1}}))).unwrap();

    assert_eq!((context.revision, context.wants_task), (Revision::Handshake, true));
}

/// E4.
#[test]
fn headers_that_do_not_say_what_the_body_says_are_refused() {
    let (version, method, name) = ("MCP-Protocol-Version", "Mcp-Method", "Mcp-Name");
    let call = json!({"name": "session_list", "_meta": stateless(&json!({}))});
    let good = [(version, "2026-07-28"), (method, "tools/call"), (name, "session_list")];

    assert_eq!(code("tools/call", &call, &good), 0);
    assert_eq!(code("tools/call", &call, &[good[0], good[1], (name, "=?base64?c2Vzc2lvbl9saXN0?=")]), 0);
    assert_eq!(code("tools/call", &call, &good[1..]), -32_020);
    assert_eq!(code("tools/call", &call, &[good[0], good[2]]), -32_020);
    assert_eq!(code("tools/call", &call, &good[..2]), -32_020);
    assert_eq!(code("tools/call", &call, &[good[0], (method, "TOOLS/CALL"), good[2]]), -32_020);
    assert_eq!(code("tools/list", &json!({}), &[(version, "2026-07-28")]), -32_602);
    assert_eq!(code("tools/list", &json!({}), &[(version, "1999-01-01")]), -32_022);
    assert_eq!(code("tools/list", &json!({}), &[(version, "2025-06-18")]), 0);
}
