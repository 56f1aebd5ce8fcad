//! The web tools of a runtime, as its config describes them.

use std::sync::Arc;

use longhaul_tools::{
    AllowList, GuardedClient, NetworkGuard, SearcherConfig, Tool, WebLimits, web_fetch_tool, web_search_tool,
};

use crate::config::WebSettings;
use crate::{Config, Error, Result};

/// What every client that acts on the model's behalf may reach (P5). A client of a service that the user configured adds that service.
pub fn network_guard(config: &Config) -> Result<NetworkGuard> {
    let wrong = |key: &str, reason: String| Error::Config { origin: config.set_by(key), reason };
    let WebSettings { allow, proxy, .. } = &config.settings.web;
    let allowed = AllowList::parse(allow.iter().map(String::as_str));
    let allowed = allowed.map_err(|error| wrong("web.allow", error.to_string()))?;
    NetworkGuard::new(allowed).with_proxy(proxy).map_err(|error| wrong("web.proxy", error.to_string()))
}

/// The searcher that the config names, and its key. `None` if there is none, or its key is missing.
pub fn configured_searcher(config: &Config) -> Result<Option<(SearcherConfig, Option<String>)>> {
    let wrong = |reason: String| Error::Config { origin: config.set_by("web.search"), reason };
    let Some(searcher) = SearcherConfig::parse(&config.settings.web.search).map_err(wrong)? else {
        return Ok(None);
    };
    let Some(variable) = searcher.service.key_variable() else { return Ok(Some((searcher, None))) };
    let key = std::env::var(variable).ok().map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
    Ok(key.map(|key| (searcher, Some(key))))
}

/// `web_fetch`, and `web_search` if a searcher is configured and has its key.
pub(crate) fn web_tools(config: &Config) -> Result<Vec<Arc<dyn Tool>>> {
    let guard = network_guard(config)?;
    let mut tools = vec![web_fetch_tool(GuardedClient::new(guard.clone(), WebLimits::default()))];
    if let Some((searcher, key)) = configured_searcher(config)? {
        let wrong = |error: longhaul_tools::WebError| Error::Config {
            origin: config.set_by("web.search"),
            reason: error.to_string(),
        };
        tools.push(web_search_tool(guard, searcher, key).map_err(wrong)?);
    }
    Ok(tools)
}
