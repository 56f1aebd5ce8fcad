//! Memory over HTTP: pages, versions, and changes by hand.

use longhaul_journal::Append;
use longhaul_protocol::{
    ChangedBy, ExtractRecord, Extracted, ExtractedItem, ExtractedKind, ItemSource, MemoryRecord, PageChange,
    PagesChanged, SessionId, Speaker, StreamName,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::test_server::{TestServer, json_answer};

/// A server with a session, and the path of that session's memory.
async fn with_memory() -> (TestServer, String) {
    let server = TestServer::with_script(r#"["Noted."]"#).await;
    server.runtime.session("a").await.unwrap().send("I drink tea").await.unwrap();
    let (status, scopes) = server.get("/api/memory").await;
    assert_eq!(status, 200, "{scopes}");
    let scope = scopes["items"][0]["scope"].as_str().unwrap().to_owned();
    (server, format!("/api/memory/{scope}"))
}

async fn put(server: &TestServer, path: &str, body: &Value) -> (u16, Value) {
    let request = server.request(Method::PUT, path).header("content-type", "application/json");
    json_answer(request.body(body.to_string())).await
}

/// H3, Y9, Y10.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_writes_reads_searches_and_undoes_a_page() {
    let (server, memory) = with_memory().await;
    let page = format!("{memory}/pages/tea");

    let (status, written) = put(&server, &page, &json!({"text": "- green tea"})).await;
    assert_eq!((status, &written["pages"]), (200, &json!(["tea"])), "{written}");
    let first = written["seq"].as_u64().unwrap();
    let second =
        put(&server, &page, &json!({"text": "- black tea", "made_from": first, "reason": "taste"})).await;
    assert_eq!(second.0, 200, "{}", second.1);
    let second = second.1["seq"].as_u64().unwrap();

    let (status, stale) = put(&server, &page, &json!({"text": "- no tea", "made_from": first})).await;
    assert_eq!((status, &stale["code"]), (409, &json!("page_changed")));
    let (_, shown) = server.get(&page).await;
    assert_eq!((&shown["text"], &shown["version"]), (&json!("- black tea\n"), &json!(second)));
    assert_eq!(server.get(&format!("{page}?at={first}")).await.1["text"], "- green tea\n");
    assert_eq!(server.get(&format!("{memory}/pages")).await.1["items"][0]["page"], "tea");
    let (_, log) = server.get(&format!("{memory}/log?limit=1")).await;
    assert_eq!((&log["items"][0]["reason"], &log["next"]), (&json!("taste"), &json!(second.to_string())));
    assert_eq!(server.get(&format!("{memory}/log?after={second}")).await.1["items"][0]["seq"], first);
    let diff = server.get(&format!("{memory}/diff/{second}")).await.1["diff"].to_string();
    assert!(diff.contains("-- green tea") && diff.contains("+- black tea"), "{diff}");
    let (_, hits) = server.get(&format!("{memory}/search?query=black")).await;
    assert_eq!(hits["items"][0]["page"], "tea", "{hits}");

    let (status, refused) = server.post(&format!("{memory}/undo/{first}"), &json!({})).await;
    assert_eq!((status, &refused["code"]), (409, &json!("built_upon")));
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("green tea") && detail.contains("black tea"), "both changes are shown: {detail}");
    assert_eq!(server.post(&format!("{memory}/undo/{second}"), &json!({})).await.0, 200);
    assert_eq!(server.get(&page).await.1["text"], "- green tea\n");
    assert_eq!(json_answer(server.request(Method::DELETE, &page)).await.0, 200);
    assert_eq!(server.get(&page).await.1["code"], "no_such_page");
    server.shutdown().await;
}

/// H3, Y12: another memory, another page or another change is not found, and nothing is made by asking.
#[tokio::test(flavor = "multi_thread")]
async fn what_memory_does_not_have_is_not_found() {
    let (server, memory) = with_memory().await;

    for (path, code) in [
        ("/api/memory/nobody/pages".to_owned(), "no_such_scope"),
        ("/api/memory/a%2Fb/pages".to_owned(), "no_such_scope"),
        (format!("{memory}/pages/none"), "no_such_page"),
        (format!("{memory}/pages/none?at=18446744073709551615"), "no_such_change"),
        (format!("{memory}/diff/7"), "no_such_change"),
        (format!("{memory}/log?page=none"), "no_such_page"),
    ] {
        let (status, problem) = server.get(&path).await;
        assert_eq!((status, &problem["code"]), (404, &json!(code)), "{path}");
    }
    let (status, problem) = put(&server, "/api/memory/nobody/pages/x", &json!({"text": "x"})).await;
    assert_eq!((status, &problem["code"]), (404, &json!("no_such_scope")));
    for (page, text) in [("no%20name", "x"), ("tea", "  ")] {
        assert_eq!(put(&server, &format!("{memory}/pages/{page}"), &json!({"text": text})).await.0, 400);
    }
    assert_eq!(server.get("/api/memory/nobody/pages").await.0, 404, "asking made nothing");
    server.shutdown().await;
}

/// H8, Y9: a page leads to the records in which it was said.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_names_the_records_that_it_was_made_from() {
    let (server, memory) = with_memory().await;
    let journal = server.runtime.journal();
    let id = journal.session("a").await.unwrap().unwrap().id;
    let scope = memory.strip_prefix("/api/memory/").unwrap().to_owned();
    let item = |sources: &[u64]| ExtractedItem {
        kind: ExtractedKind::Fact,
        text: "drinks tea".to_owned(),
        sources: sources.to_vec(),
        speaker: Speaker::User,
        quote: None,
    };
    let items = vec![item(&[3]), item(&[5, 3])];
    let extracted =
        Extracted { scope: scope.clone(), from: 1, through: 5, items, refused: vec![], usage: vec![] };
    let extract = Append::to(&StreamName::extract(id)).record(ExtractRecord::Extracted(extracted).encode());
    let seq = journal.append(extract).await.unwrap()[0].seq;
    let source = |session, item| ItemSource { session, seq, item };
    let sources = vec![source(id, 1), source(id, 0), source(SessionId::generate(), 0), source(id, 9)];
    let page = PageChange {
        page: "tea".to_owned(),
        text: Some("- tea\n".to_owned()),
        reason: String::new(),
        sources,
        dropped: vec![],
    };
    let changed = PagesChanged {
        by: ChangedBy::Consolidation,
        reason: "read".to_owned(),
        extracts: vec![],
        pages: vec![page],
        undoes: None,
        refused: vec![],
        usage: vec![],
    };
    let change =
        Append::to(&StreamName::memory(&scope).unwrap()).record(MemoryRecord::PagesChanged(changed).encode());
    journal.append(change).await.unwrap();

    let (status, shown) = server.get(&format!("{memory}/pages/tea")).await;

    assert_eq!(status, 200, "{shown}");
    assert_eq!(shown["sources_list"], json!([{"session": "a", "seq": 5}, {"session": "a", "seq": 3}]));
    server.shutdown().await;
}
