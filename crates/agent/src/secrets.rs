//! The secrets that a runtime knows: provider keys, the server's tokens, and the patterns of the config.

use longhaul_model::{Models, Providers};
use longhaul_redact::Redactor;
use longhaul_tools::SearcherConfig;

use crate::{Config, Error, Result};

/// Every token that `longhaul token new` or the first start makes.
const TOKEN_PATTERN: &str = r"\blh_[0-9a-f]{64}";

/// A redactor for every provider key in the environment, the server's tokens, and the config's patterns.
pub fn redactor(config: &Config) -> Result<Redactor> {
    redactor_for(&Models::at(&config.home)?, config)
}

pub(crate) fn redactor_for(models: &Models, config: &Config) -> Result<Redactor> {
    let named = [&config.settings.model.api_key_env, &config.settings.server.token_env].into_iter().flatten();
    let servers = server_key_variables(config);
    let named = named.map(String::as_str).chain(search_key_variable(config));
    let named = named.chain(servers.iter().map(String::as_str));
    let named = named.filter_map(|variable| Some(std::env::var(variable).ok()?.trim().to_owned()));
    let secrets: Vec<String> = models.keys().into_iter().map(|key| key.value).chain(named).collect();
    let configured = config.settings.secrets.patterns.iter().cloned();
    let patterns: Vec<String> = configured.chain([TOKEN_PATTERN.to_owned()]).collect();
    Redactor::new(&secrets, &patterns)
        .map_err(|bad| Error::Config { origin: config.set_by("secrets.patterns"), reason: bad.to_string() })
}

/// The environment variables to hide from commands, in addition to those that are named like a key: those of every model
/// that the config names, and of every provider in the home's `providers.toml`. The key of a built-in provider that the
/// config does not use is not hidden, because it may be meant for commands.
pub(crate) fn hidden_variables(models: &Models, config: &Config) -> Vec<String> {
    let settings = &config.settings;
    let named = [&settings.model.api_key_env, &settings.server.token_env].into_iter().flatten();
    let other = [&settings.memory.model, &settings.context.summary_model].into_iter().flatten();
    let names = std::iter::once(&settings.model.name).chain(other).chain(&settings.model.fallback);
    let of_models = names.flat_map(|name| key_variables(models, name));
    let built_in = Providers::built_in();
    let own = models.providers().iter().filter(|provider| built_in.get(&provider.name) != Some(*provider));
    let known = of_models.chain(own.flat_map(|provider| &provider.key_env)).chain(named).cloned();
    let of_services =
        search_key_variable(config).map(str::to_owned).into_iter().chain(server_key_variables(config));
    known.chain(of_services).collect()
}

/// The environment variable with the key of the configured searcher.
fn search_key_variable(config: &Config) -> Option<&'static str> {
    SearcherConfig::parse(&config.settings.web.search).ok()??.service.key_variable()
}

/// The environment variables that MCP servers get in headers.
fn server_key_variables(config: &Config) -> Vec<String> {
    let servers = config.settings.mcp.servers.values().chain(config.project_servers.values());
    servers.flat_map(longhaul_mcp::ServerSettings::header_variables).collect()
}

/// The environment variables that may hold the key of a model's provider.
pub(crate) fn key_variables<'a>(models: &'a Models, model: &str) -> &'a [String] {
    let provider = model.split_once('/').and_then(|(provider, _)| models.providers().get(provider));
    provider.map_or(&[], |provider| &provider.key_env)
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;
