//! The secrets that a runtime knows: provider keys, the server's tokens, and the patterns of the config.

use longhaul_mcp::ServerSettings;
use longhaul_model::{Models, Providers};
use longhaul_redact::Redactor;
use longhaul_tools::SearcherConfig;

use crate::journal_place::{JournalPlace, configured_url};
use crate::{Config, Error, Result};

/// Every token that `longhaul token new` or the first start makes.
const TOKEN_PATTERN: &str = r"\blh_[0-9a-f]{64}";

/// A redactor for every provider key in the environment, the server's tokens, and the config's patterns.
pub fn redactor(config: &Config) -> Result<Redactor> {
    redactor_for(&Models::at(&config.home)?, config)
}

pub(crate) fn redactor_for(models: &Models, config: &Config) -> Result<Redactor> {
    let named = [&config.settings.model.api_key_env, &config.settings.server.token_env].into_iter().flatten();
    let servers = server_variables(config, ServerSettings::secret_variables);
    let named = named.map(String::as_str).chain(search_key_variable(config));
    let named = named.chain(servers.iter().map(String::as_str));
    let named = named.chain(config.settings.journal.url_env.as_deref());
    let named = named.chain(config.settings.node.token_env.as_deref());
    let named = named.filter_map(|variable| Some(std::env::var(variable).ok()?.trim().to_owned()));
    let logins = longhaul_mcp::stored_secrets(&config.home);
    let written = server_variables(config, ServerSettings::written_secrets);
    let keys = models.keys().into_iter().map(|key| key.value);
    let secrets: Vec<String> =
        keys.chain(named).chain(logins).chain(written).chain(database_passwords(config)).collect();
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
    let of_services = search_key_variable(config).map(str::to_owned).into_iter();
    let of_services = of_services.chain(server_variables(config, ServerSettings::secret_variables));
    let of_journal = [&settings.journal.url_env, &settings.node.token_env].into_iter().flatten().cloned();
    known.chain(of_services).chain(of_journal).collect()
}

/// The password of the journal's database: as the URL has it, and as the server gets it, from there or from the password file.
fn database_passwords(config: &Config) -> Vec<String> {
    let settings = &config.settings.journal;
    let Ok(Some(url)) = configured_url(settings) else { return vec![] };
    let user = url.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@'));
    let of_user = user.and_then(|(user, _)| user.split_once(':')).map(|(_, password)| password);
    let parameters = url.split_once('?').map(|(_, query)| query.split('&')).into_iter().flatten();
    let written = parameters.filter_map(|pair| pair.strip_prefix("password=")).chain(of_user);
    let used =
        JournalPlace::from_settings(settings, &config.settings.node).ok().and_then(|place| place.password());
    written.map(str::to_owned).chain(used).collect()
}

/// The environment variable with the key of the configured searcher.
fn search_key_variable(config: &Config) -> Option<&'static str> {
    SearcherConfig::parse(&config.settings.web.search).ok()??.service.key_variable()
}

/// Something that the settings of MCP servers name.
fn server_variables(config: &Config, which: impl Fn(&ServerSettings) -> Vec<String>) -> Vec<String> {
    let servers = config.settings.mcp.servers.values().chain(config.project_servers.values());
    servers.flat_map(which).collect()
}

/// The environment variables that may hold the key of a model's provider.
pub(crate) fn key_variables<'a>(models: &'a Models, model: &str) -> &'a [String] {
    let provider = model.split_once('/').and_then(|(provider, _)| models.providers().get(provider));
    provider.map_or(&[], |provider| &provider.key_env)
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;
