//! Who is asked: the model that is set, then those that stand in for it.

use std::sync::Arc;
use std::time::Duration;

use longhaul_model::{
    Capabilities, LongDelayPolicy, Model, ModelSpec, Models, OfflinePolicy, RetryPolicy, SettingSources,
};

use crate::config::RetrySettings;
use crate::{Config, Error, Result};
use longhaul_redact::Redactor;

/// The models that answer a session, in the order in which they are asked.
pub(crate) struct Lineup(pub(crate) Vec<Arc<dyn Model>>);

impl Lineup {
    /// Those that the config names.
    pub(crate) fn open(models: &Models, config: &Config) -> Result<Self> {
        Self::named(models, config, &config.settings.model.name)
    }

    /// This one, then those that stand in for it.
    pub(crate) fn named(models: &Models, config: &Config, name: &str) -> Result<Self> {
        let names = std::iter::once(name).chain(config.settings.model.fallback.iter().map(String::as_str));
        let open = |name: &str| Ok(models.open(&wanted(models, config, name))?);
        Ok(Self(names.map(open).collect::<Result<_>>()?))
    }
}

impl Lineup {
    /// One model alone.
    pub(crate) fn one(models: &Models, config: &Config, name: &str) -> Result<Arc<dyn Model>> {
        Ok(models.open(&wanted(models, config, name))?)
    }
}

/// The model that the config names, as `provider/model`, and what is known about it. Its server may be asked.
pub async fn facts_of(config: &Config) -> Result<(String, Capabilities)> {
    let model = Lineup::open(&Models::at(&config.home)?, config)?.0[0].clone();
    Ok((model.name().to_owned(), model.capabilities().await))
}

/// What the config says about a model. What is said about a server holds for the model that is set and for those that are at
/// the same provider; a model of another provider is reached as that one usually is.
fn wanted(models: &Models, config: &Config, name: &str) -> ModelSpec {
    let settings = &config.settings.model;
    // A name whose provider nobody knows belongs to whoever is at the address that is set.
    let provider = |name: &str| match name.split_once('/') {
        Some((provider, _)) if models.providers().get(provider).is_some() => provider.to_owned(),
        _ => "custom".to_owned(),
    };
    let seconds = |seconds: Option<u64>| seconds.map(Duration::from_secs);
    let is_set = name == settings.name;
    let common = ModelSpec {
        name: name.to_owned(),
        connect_timeout: seconds(settings.connect_timeout_s),
        first_byte_timeout: seconds(settings.first_byte_timeout_s),
        idle_timeout: seconds(settings.silence_timeout_s),
        set_by: SettingSources {
            name: if is_set { config.set_by("model.name") } else { format!("the name {name:?}") },
            base_url: config.set_by("model.base_url"),
            key: config.set_by("model.api_key_env"),
        },
        ..ModelSpec::default()
    };
    // The files may be about another model than the one that a flag or a variable names: its key must not go to their address.
    let file_name = config.model_in_files.as_ref().unwrap_or(&settings.name);
    if !file_name.is_empty() && provider(name) != provider(file_name) {
        return common;
    }
    ModelSpec {
        base_url: settings.base_url.clone(),
        api_key_env: settings.api_key_env.clone(),
        protocol: settings.protocol,
        tools: settings.tools.filter(|_| is_set),
        context_window: settings.context_window.filter(|_| is_set),
        ..common
    }
}

/// The variables that no command sees, besides those whose names say that they hold a key: the token of a provider that is not
/// used may be there for commands.
pub(crate) fn hidden(models: &Models, config: &Config) -> Vec<String> {
    let settings = &config.settings;
    let named = [&settings.model.api_key_env, &settings.server.token_env].into_iter().flatten();
    let names = std::iter::once(&settings.model.name).chain(&settings.model.fallback);
    let providers = names.filter_map(|name| models.providers().get(name.split_once('/')?.0));
    providers.flat_map(|provider| &provider.key_env).chain(named).cloned().collect()
}

/// What takes secrets out: every key that is in the environment, the server's token, and what the config describes.
pub fn redactor(config: &Config) -> Result<Redactor> {
    redactor_of(&Models::at(&config.home)?, config)
}

pub(crate) fn redactor_of(models: &Models, config: &Config) -> Result<Redactor> {
    let named = [&config.settings.model.api_key_env, &config.settings.server.token_env].into_iter().flatten();
    let named = named.filter_map(|variable| Some(std::env::var(variable).ok()?.trim().to_owned()));
    let secrets: Vec<String> = models.keys().into_iter().map(|key| key.value).chain(named).collect();
    Redactor::new(&secrets, &config.settings.secrets.patterns)
        .map_err(|bad| Error::Config { origin: config.set_by("secrets.patterns"), reason: bad.to_string() })
}

/// Who is there while something is waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Patience {
    /// Somebody who can watch a wait and end it: waits may be long.
    #[default]
    Attended,
    /// Nobody: one answer is wanted, or the reason why there is none.
    OneShot,
}

impl Patience {
    /// What is done about failures.
    pub(crate) fn retry(self, settings: &RetrySettings) -> RetryPolicy {
        let offline = match (settings.offline_wait_s, self) {
            (0, _) => OfflinePolicy::CountsAsTry,
            (_, Self::Attended) => OfflinePolicy::WaitForever,
            (seconds, Self::OneShot) => OfflinePolicy::WaitFor(Duration::from_secs(seconds)),
        };
        RetryPolicy {
            max_retries: settings.max_retries,
            base: Duration::from_millis(settings.base_ms),
            cap: Duration::from_millis(settings.cap_ms),
            budget: Duration::from_secs(settings.budget_s),
            offline,
            max_server_delay: Duration::from_secs(settings.max_server_delay_s),
            long_delays: match self {
                Self::Attended => LongDelayPolicy::Wait,
                Self::OneShot => LongDelayPolicy::GiveUp,
            },
        }
    }
}
