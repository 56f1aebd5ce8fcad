//! Checks web pages and web search: what may be reached, and whether there is a searcher. No request is made.

use longhaul_agent::config::hide_url_password;
use longhaul_agent::tools::SearcherConfig;
use longhaul_agent::{Config, configured_searcher, network_guard};

use super::Finding;

const HOW_TO_SEARCH: &str = "web search by the model's provider, if it is Anthropic, OpenAI or Gemini; to have another one, set web.search to \"searxng:URL\", or to \"brave\", \"tavily\" or \"exa\" and their \
                             BRAVE_API_KEY, TAVILY_API_KEY or EXA_API_KEY";

pub(super) fn check(config: &Config) -> Vec<Finding> {
    vec![check_pages(config), check_search(config)]
}

/// What pages may be fetched from (P5).
fn check_pages(config: &Config) -> Finding {
    let settings = &config.settings.web;
    if let Err(error) = network_guard(config) {
        return Finding::wrong("web", error, "fix the setting");
    }
    let mut found = "pages are fetched from public addresses only".to_owned();
    if !settings.allow.is_empty() {
        found.push_str(&format!(", and from {} (web.allow)", settings.allow.join(", ")));
    }
    if !settings.proxy.is_empty() {
        let proxy = hide_url_password(&settings.proxy);
        found = format!(
            "pages are fetched through {proxy} (web.proxy), which resolves names: only it can keep private addresses out of reach"
        );
    }
    Finding::fine("web", found)
}

fn check_search(config: &Config) -> Finding {
    match config.settings.web.search.as_str() {
        "off" => return Finding::fine("search", "no web search (web.search)"),
        "provider" => return Finding::fine("search", "web search asks the model's provider"),
        _ => {}
    }
    let named = SearcherConfig::parse(&config.settings.web.search);
    match (configured_searcher(config), named) {
        (Ok(Some((searcher, _))), _) => {
            Finding::fine("search", format!("web search asks {}", hide_url_password(&searcher.url)))
        }
        (Ok(None), Ok(Some(searcher))) => {
            let variable = searcher.service.key_variable().unwrap_or_default();
            let found = format!(
                "web.search is {:?}, but {variable} is not set, so there is no web search",
                config.settings.web.search
            );
            Finding::wrong("search", found, format!("set {variable}, or remove web.search"))
        }
        (Ok(None), _) => Finding::fine("search", HOW_TO_SEARCH),
        (Err(error), _) => Finding::wrong("search", error, "fix the setting"),
    }
}
