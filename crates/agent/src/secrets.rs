//! The secrets that a runtime knows: provider keys, the server's tokens, and the patterns of the config.

use longhaul_model::{Models, Providers};
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

/// The environment variables to hide from commands, in addition to those that are named like a key: those of every model
/// that the config names, and of every provider in the home's `providers.toml`. The key of a built-in provider that the
/// config does not use is not hidden, because it may be meant for commands.
pub(crate) fn hidden_variables(models: &Models, config: &Config) -> Vec<String> {
    let settings = &config.settings;
    let named = [&settings.model.api_key_env, &settings.server.token_env].into_iter().flatten();
    let other = [&settings.memory.model, &settings.context.summary_model].into_iter().flatten();
    let names = std::iter::once(&settings.model.name).chain(other).chain(&settings.model.fallback);
    let named_providers = names.filter_map(|name| models.providers().get(name.split_once('/')?.0));
    let built_in = Providers::built_in();
    let own = models.providers().iter().filter(|provider| built_in.get(&provider.name) != Some(*provider));
    named_providers.chain(own).flat_map(|provider| &provider.key_env).chain(named).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K17, P6: no command inherits the key of a model that the config names, or of a provider that the user added.
    #[test]
    fn the_keys_of_all_models_of_the_config_are_hidden_from_commands() {
        let home = tempfile::tempdir().unwrap();
        let row = "[office]\nprotocol = \"openai-chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\nkey_env = \"OFFICE_PASS\"\n";
        std::fs::write(home.path().join("providers.toml"), row).unwrap();
        let mut config = Config::at(home.path());
        config.settings.memory.model = Some("huggingface/small".to_owned());
        config.settings.context.summary_model = Some("github-models/cheap".to_owned());

        let hidden = hidden_variables(&Models::at(home.path()).unwrap(), &config);

        for variable in ["OFFICE_PASS", "HF_TOKEN", "GITHUB_TOKEN"] {
            assert!(hidden.iter().any(|hidden| hidden == variable), "{variable} in {hidden:?}");
        }
        config.settings.memory.model = None;
        let fewer = hidden_variables(&Models::at(home.path()).unwrap(), &config);
        assert!(
            !fewer.iter().any(|hidden| hidden == "HF_TOKEN"),
            "a key of a provider that is not used stays"
        );
    }
}
