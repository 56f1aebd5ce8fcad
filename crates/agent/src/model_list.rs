//! The providers and their models, and the model in use, as people and programs look at them.

use longhaul_config::hide_url_password;
use longhaul_model::{CatalogueEntry, ModelChoice, Models, Protocol, Provider, ServerQuery};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Config;
use crate::turn::fallback::model_spec;

/// The error where the config names a server, but no model.
pub const NO_MODEL_NAME: &str =
    "model.base_url is set, but no model; set one with --model, LONGHAUL_MODEL or model.name";

/// A provider: the JSON of `longhaul models --json` and of the HTTP API.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProviderReport {
    /// The name, which the names of its models begin with.
    pub name: String,
    /// The wire protocol, as the config names it.
    pub protocol: &'static str,
    /// The address of its server, without a password.
    pub base_url: String,
    /// The environment variables that its key is looked for in.
    pub key_env: Vec<String>,
    /// Whether one of them is set.
    pub key_is_set: bool,
    /// Whether its server runs on this machine.
    pub local: bool,
    /// The model that is used where only the provider is known.
    pub default_model: Option<String>,
}

/// A provider with its models.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProviderModels {
    /// The provider.
    #[serde(flatten)]
    pub provider: ProviderReport,
    /// What the catalogue knows about its models.
    pub models: Vec<CatalogueReport>,
    /// The models that its server offers. Null if it was not asked or does not answer.
    pub served: Option<Vec<String>>,
}

/// What the catalogue knows about some models.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CatalogueReport {
    /// The names, with `*` for any characters.
    pub patterns: Vec<String>,
    /// In tokens.
    pub context_window: Option<u64>,
    /// In tokens.
    pub max_output_tokens: Option<u64>,
    /// Whether they can call tools.
    pub tools: bool,
    /// Whether they reason.
    pub reasons: bool,
    /// Prices, if they are known.
    pub prices: Option<PriceReport>,
}

/// Prices in US dollars per million tokens.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PriceReport {
    /// Of input.
    pub input: f64,
    /// Of output.
    pub output: f64,
}

/// The model in use.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ModelInUse {
    /// The name with its provider.
    pub name: String,
    /// Why it is used.
    pub reason: String,
}

impl From<&Provider> for ProviderReport {
    fn from(provider: &Provider) -> Self {
        Self {
            name: provider.name.clone(),
            protocol: protocol_name(provider.protocol),
            base_url: hide_url_password(&provider.base_url),
            key_env: provider.key_env.clone(),
            key_is_set: provider.key_env.iter().any(|name| is_variable_set(name)),
            local: provider.local,
            default_model: provider.usual_model.clone(),
        }
    }
}

impl CatalogueReport {
    fn new(entry: &CatalogueEntry, patterns: &[&str]) -> Self {
        let prices =
            entry.prices.as_ref().map(|prices| PriceReport { input: prices.input, output: prices.output });
        Self {
            patterns: patterns.iter().map(|pattern| (*pattern).to_owned()).collect(),
            context_window: entry.window,
            max_output_tokens: entry.max_output,
            tools: entry.tools,
            reasons: entry.reasons,
            prices,
        }
    }
}

/// The protocol as the config names it.
pub fn protocol_name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::OpenaiChat => "openai-chat",
        Protocol::OpenaiResponses => "openai-responses",
        Protocol::Anthropic => "anthropic",
        Protocol::Gemini => "gemini",
    }
}

/// Whether an environment variable has a value.
pub fn is_variable_set(variable: &str) -> bool {
    std::env::var(variable).is_ok_and(|value| !value.trim().is_empty())
}

/// The model in use, and why. Where none is configured, looks for one as a command would.
pub async fn model_in_use(models: &Models, config: &Config) -> longhaul_model::Result<ModelInUse> {
    let name = &config.settings.model.name;
    if name.is_empty() {
        return models.find().await.map(|found| ModelInUse { name: found.name, reason: found.reason });
    }
    Ok(ModelInUse { name: name.clone(), reason: format!("set by {}", config.set_by("model.name")) })
}

/// The catalogue's entries for a provider, each with its patterns for that provider.
pub fn catalogue_of<'a>(models: &'a Models, provider: &str) -> Vec<(&'a CatalogueEntry, Vec<&'a str>)> {
    let own = |pattern: &&str| pattern.split_once('/').is_some_and(|(of, _)| of == provider);
    let patterns = |entry: &'a CatalogueEntry| -> Vec<&'a str> {
        entry.patterns.iter().map(String::as_str).filter(own).collect()
    };
    let entries = models.catalogue().iter().map(|entry| (entry, patterns(entry)));
    entries.filter(|(_, patterns)| !patterns.is_empty()).collect()
}

/// The providers whose servers can be asked what they offer. The configured server takes the place of its provider's usual one.
pub fn reachable_providers(models: &Models, config: &Config) -> Vec<Provider> {
    let settings = &config.settings.model;
    let spec = model_spec(models, config, &settings.name);
    let configured = models.provider_of(&spec).ok().filter(|_| spec.base_url.is_some());
    let is_configured = |name: &str| configured.as_ref().is_some_and(|provider| provider.name == name);
    let others = models.providers().iter().filter(|provider| !is_configured(&provider.name));
    others.cloned().chain(configured.clone()).filter(can_be_asked).collect()
}

/// Whether the provider's server can be asked what it offers: it runs on this machine, needs no key, or its key is set.
fn can_be_asked(provider: &Provider) -> bool {
    provider.local
        || provider.key_env.is_empty()
        || provider.key_env.iter().any(|variable| is_variable_set(variable))
}

/// What the provider's server offers; `None` if it can't be asked, or does not answer.
pub async fn served_models(models: &Models, provider: &Provider) -> Option<Vec<String>> {
    if can_be_asked(provider) { models.served_models(provider).await } else { None }
}

/// A provider with what is known about its models.
pub async fn provider_models(models: &Models, provider: &Provider) -> ProviderModels {
    let entries = catalogue_of(models, &provider.name);
    ProviderModels {
        provider: provider.into(),
        models: entries.iter().map(|(entry, patterns)| CatalogueReport::new(entry, patterns)).collect(),
        served: served_models(models, provider).await,
    }
}

/// The models that can be used now: also those of the server in the config. Asks that server, and model servers on this machine.
pub async fn model_choices(config: &Config) -> longhaul_model::Result<Vec<ModelChoice>> {
    let models = Models::at(&config.home)?;
    let settings = &config.settings.model;
    let named = settings.name.split_once('/').map(|(provider, _)| provider);
    let provider = named.and_then(|provider| models.providers().get(provider));
    // Only the key that the config names for this address: a flag may have named another provider than the address belongs to.
    let key = settings.api_key_env.as_ref().and_then(|variable| std::env::var(variable).ok());
    let usual = provider.map_or(Protocol::OpenaiChat, |provider| provider.protocol);
    let server = settings.base_url.as_deref().map(|base_url| ServerQuery {
        provider: provider.map_or("custom", |provider| provider.name.as_str()),
        protocol: settings.protocol.unwrap_or(usual),
        base_url,
        key: key.as_deref().filter(|key| !key.trim().is_empty()),
    });
    Ok(models.choices(server.as_ref()).await)
}
