//! How each searcher is asked, and the form of its answer.

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, RequestBuilder, Url};
use serde_json::{Value, json};

use super::{MAX_HITS, MAX_SNIPPET_CHARS, SearchHit, SearchService, SearcherConfig};
use crate::web::{GuardedClient, WebError};

/// A request for these words. The key stands in a header, never in the address.
pub(super) fn search_request(
    client: &GuardedClient,
    searcher: &SearcherConfig,
    key: Option<&str>,
    query: &str,
) -> Result<RequestBuilder, WebError> {
    let bad_key = |_| WebError::Setup("the searcher's key has characters that no header may have".to_owned());
    let key = |prefix: &str| {
        HeaderValue::from_str(&format!("{prefix}{}", key.unwrap_or_default())).map_err(bad_key)
    };
    let url = |pairs: &[(&str, &str)]| {
        let mut url: Url = client.guard().check_url(&searcher.url)?;
        url.query_pairs_mut().extend_pairs(pairs);
        Ok::<_, WebError>(url.to_string())
    };
    let post = |body: Value| {
        let request = client.request(Method::POST, &searcher.url)?;
        Ok::<_, WebError>(request.header(CONTENT_TYPE, "application/json").body(body.to_string()))
    };
    let count = MAX_HITS.to_string();
    let request = match searcher.service {
        SearchService::SearXng => client.request(Method::GET, &url(&[("q", query), ("format", "json")])?)?,
        SearchService::Brave => client
            .request(Method::GET, &url(&[("q", query), ("count", &count)])?)?
            .header("x-subscription-token", key("")?),
        SearchService::Tavily => {
            post(json!({"query": query, "max_results": MAX_HITS}))?.header(AUTHORIZATION, key("Bearer ")?)
        }
        SearchService::Exa => {
            let contents = json!({"text": {"maxCharacters": MAX_SNIPPET_CHARS}});
            post(json!({"query": query, "numResults": MAX_HITS, "contents": contents}))?
                .header("x-api-key", key("")?)
        }
    };
    Ok(request.header(ACCEPT, "application/json"))
}

/// The hits in an answer.
pub(super) fn parse_hits(service: SearchService, body: &[u8]) -> Result<Vec<SearchHit>, String> {
    let answer: Value =
        serde_json::from_slice(body).map_err(|_| "the searcher's answer is no JSON".to_owned())?;
    let (results, snippet) = match service {
        SearchService::SearXng | SearchService::Tavily => (&answer["results"], "content"),
        SearchService::Exa => (&answer["results"], "text"),
        // Without hits the whole part is missing.
        SearchService::Brave if answer["web"].is_null() && answer.is_object() => return Ok(vec![]),
        SearchService::Brave => (&answer["web"]["results"], "description"),
    };
    let results = results.as_array().ok_or("the searcher's answer has no list of results")?;
    let text = |hit: &Value, field: &str| hit[field].as_str().unwrap_or_default().to_owned();
    let hit = |hit: &Value| SearchHit {
        title: text(hit, "title"),
        url: text(hit, "url"),
        snippet: text(hit, snippet),
    };
    Ok(results.iter().map(hit).filter(|hit| !hit.url.is_empty()).take(MAX_HITS).collect())
}
