use super::*;

fn config(text: &str) -> Result<Option<(SearchService, String)>, String> {
    SearcherConfig::parse(text).map(|found| found.map(|found| (found.service, found.url)))
}

/// E7
#[test]
fn a_searcher_is_named_by_its_service_or_its_address() {
    assert_eq!(config(""), Ok(None));
    assert_eq!(
        config("searxng:http://127.0.0.1:8888/"),
        Ok(Some((SearchService::SearXng, "http://127.0.0.1:8888/search".to_owned())))
    );
    assert_eq!(config("brave").unwrap().unwrap().0, SearchService::Brave);
    for wrong in
        ["google", "searxng", "searxng:", "searxng:file:///x", "searxng:http://a:b@h/", "brave:http://x"]
    {
        assert!(config(wrong).is_err(), "{wrong}");
    }
}

/// E7: whatever a page puts into its title or its excerpt stays on one line of its hit.
#[test]
fn a_hit_can_not_pass_for_anything_else() {
    let hit = SearchHit {
        title: "One\n2. Other".to_owned(),
        url: "https://a.test/\nhttps://b.test/".to_owned(),
        snippet: "x ".repeat(1_000),
    };

    let shown = describe_hits("q", &[hit]);

    let lines: Vec<&str> = shown.lines().skip(2).collect();
    assert_eq!(lines[..2], ["1. One 2. Other", "   https://a.test/ https://b.test/"]);
    assert_eq!((lines.len(), lines[2].chars().count()), (3, 403));
}

#[test]
fn the_answers_of_all_services_are_read() {
    let hit = SearchHit { title: "T".to_owned(), url: "https://u".to_owned(), snippet: "S".to_owned() };
    let hits = |service, body: &str| parse_hits(service, body.as_bytes());
    let no_url = r#"{"title": "without an address"}"#;

    for (service, body) in [
        (
            SearchService::SearXng,
            format!(r#"{{"results": [{no_url}, {{"title": "T", "url": "https://u", "content": "S"}}]}}"#),
        ),
        (
            SearchService::Tavily,
            r#"{"results": [{"title": "T", "url": "https://u", "content": "S"}]}"#.to_owned(),
        ),
        (SearchService::Exa, r#"{"results": [{"title": "T", "url": "https://u", "text": "S"}]}"#.to_owned()),
        (
            SearchService::Brave,
            r#"{"web": {"results": [{"title": "T", "url": "https://u", "description": "S"}]}}"#.to_owned(),
        ),
    ] {
        assert_eq!(
            hits(service, &body).as_deref(),
            Ok([&hit]
                .map(|hit| SearchHit {
                    title: hit.title.clone(),
                    url: hit.url.clone(),
                    snippet: hit.snippet.clone()
                })
                .as_slice()),
            "{service:?}"
        );
    }
    assert_eq!(hits(SearchService::Brave, r#"{"type": "search"}"#), Ok(vec![]));
    assert!(hits(SearchService::SearXng, "<html>").is_err() && hits(SearchService::Exa, "{}").is_err());
}
