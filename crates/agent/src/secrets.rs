//! The secrets that a runtime knows: provider keys, the server's tokens, and the patterns of the config.

use longhaul_model::Models;
use longhaul_redact::Redactor;

use crate::{Config, Error, Result};

/// Every token that `longhaul token new` or the first start makes.
const TOKEN_PATTERN: &str = r"\blh_[0-9a-f]{64}";

/// A redactor for every provider key in the environment, the server's tokens, and the config's patterns.
pub fn redactor(config: &Config) -> Result<Redactor> {
    redactor_for(&Models::at(&config.home)?, config)
}

pub(crate) fn redactor_for(models: &Models, config: &Config) -> Result<Redactor> {
    let named = [&config.settings.model.api_key_env, &config.settings.server.token_env].into_iter().flatten();
    let named = named.filter_map(|variable| Some(std::env::var(variable).ok()?.trim().to_owned()));
    let secrets: Vec<String> = models.keys().into_iter().map(|key| key.value).chain(named).collect();
    let configured = config.settings.secrets.patterns.iter().cloned();
    let patterns: Vec<String> = configured.chain([TOKEN_PATTERN.to_owned()]).collect();
    Redactor::new(&secrets, &patterns)
        .map_err(|bad| Error::Config { origin: config.set_by("secrets.patterns"), reason: bad.to_string() })
}

/// The environment variables to hide from commands, in addition to those that are named like a key. The key of a
/// provider that the config does not use is not hidden, because it may be meant for commands.
pub(crate) fn hidden_variables(models: &Models, config: &Config) -> Vec<String> {
    let settings = &config.settings;
    let named = [&settings.model.api_key_env, &settings.server.token_env].into_iter().flatten();
    let names = std::iter::once(&settings.model.name).chain(&settings.model.fallback);
    let providers = names.filter_map(|name| models.providers().get(name.split_once('/')?.0));
    providers.flat_map(|provider| &provider.key_env).chain(named).cloned().collect()
}
