//! Opens a model by its name.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::catalogue::Catalogue;
use crate::discovery::{LOCAL_SERVER_PORTS, ServerQuery, find_local_servers, list_models};
use crate::embedding::EmbeddingModel;
use crate::endpoint::{ApiKey, Endpoint, SettingSources, Timeouts};
use crate::known_hosts::KnownHosts;
use crate::learned_capabilities::LearnedCapabilities;
use crate::provider::{Provider, Providers};
use crate::remote::RemoteModel;
use crate::transport::{HttpTransport, Transport, is_loopback};
use crate::{
    Capabilities, ContextWindow, Effort, Error, Model, Protocol, Quirks, Result, RoleOrder, ScriptedModel,
    WindowSource,
};

/// A model as the user specifies it. A `None` is filled in from the provider table.
#[derive(Debug, Clone, Default)]
pub struct ModelSpec {
    /// `provider/model`, split at the first `/`. Without one, and with a `base_url`, the provider is `custom`.
    pub name: String,
    pub base_url: Option<String>,
    pub api_key_env: Option<String>,
    pub protocol: Option<Protocol>,
    pub tools: Option<bool>,
    /// How much the model should reason before it answers. `None` leaves it to the server.
    pub effort: Option<Effort>,
    pub context_window: Option<u64>,
    pub connect_timeout: Option<Duration>,
    pub first_byte_timeout: Option<Duration>,
    /// The longest time between two bytes of the answer.
    pub idle_timeout: Option<Duration>,
    pub set_by: SettingSources,
}

/// The model that is used if the user names none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultModel {
    pub name: String,
    pub reason: String,
}

/// Opens models by name.
pub struct Models {
    providers: Providers,
    catalogue: Catalogue,
    transport: Arc<dyn Transport>,
    hosts: Arc<KnownHosts>,
    learned: Arc<LearnedCapabilities>,
}

impl Models {
    /// Knows the built-in providers and those of `providers.toml` in the home folder.
    pub fn at(home: &Path) -> Result<Self> {
        let file = home.join("providers.toml");
        Ok(Self {
            providers: Providers::built_in().clone().with_file(&file)?,
            catalogue: Catalogue::built_in().with_file(&file)?,
            transport: Arc::new(HttpTransport::default()),
            hosts: Arc::new(KnownHosts::at(&home.join("cache").join("hosts"))),
            learned: Arc::new(LearnedCapabilities::at(&home.join("cache").join("servers"))),
        })
    }

    /// Sends requests through another transport.
    #[must_use]
    pub fn through(self, transport: Arc<dyn Transport>) -> Self {
        Self { transport, ..self }
    }

    pub fn providers(&self) -> &Providers {
        &self.providers
    }

    pub(crate) fn transport(&self) -> &dyn Transport {
        &*self.transport
    }

    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Opens a model. Sends nothing to its server.
    pub fn open(&self, wanted: &ModelSpec) -> Result<Arc<dyn Model>> {
        if let Some(("scripted", file)) = wanted.name.split_once('/') {
            let window = |tokens| ContextWindow { tokens, source: WindowSource::Config };
            let facts = Capabilities {
                window: wanted.context_window.map(window),
                tools: wanted.tools.unwrap_or(true),
                ..Capabilities::default()
            };
            return Ok(Arc::new(ScriptedModel::from_file(Path::new(file))?.with_capabilities(facts)));
        }
        let endpoint = self.endpoint(wanted)?;
        Ok(Arc::new(RemoteModel::new(
            endpoint,
            self.transport.clone(),
            self.hosts.clone(),
            self.learned.clone(),
        )))
    }

    /// Opens a model that turns texts into vectors. Sends nothing to its server.
    pub fn open_embedding(&self, wanted: &ModelSpec) -> Result<EmbeddingModel> {
        Ok(EmbeddingModel::new(self.endpoint(wanted)?, self.transport.clone()))
    }

    fn endpoint(&self, wanted: &ModelSpec) -> Result<Endpoint> {
        let (provider, model) = self.split(wanted)?;
        let base_url = match (&wanted.base_url, provider) {
            (Some(url), _) => url.clone(),
            (None, Some(provider)) => provider.base_url.clone(),
            (None, None) => return Err(no_such_model(&wanted.name, "a custom model needs model.base_url")),
        };
        let usual = provider.filter(|_| wanted.base_url.is_none());
        let protocol = match (wanted.protocol, provider.map(|provider| provider.protocol)) {
            (Some(protocol), _) => protocol,
            (None, Some(own @ (Protocol::Anthropic | Protocol::Gemini))) => own,
            (None, Some(own)) if wanted.base_url.is_none() => own,
            // What servers at other addresses usually speak.
            (None, _) => Protocol::OpenaiChat,
        };
        let same_protocol = provider.filter(|provider| provider.protocol == protocol);
        let is_local = is_loopback(&base_url) || usual.is_some_and(|provider| provider.local);
        let clocks = if is_local { Timeouts::LOCAL } else { Timeouts::HOSTED };
        let provider_name = provider.map_or("custom", |provider| provider.name.as_str());
        let by_table = |said: &str, what: &str| match said.is_empty() {
            true => format!("the {what} of {provider_name}"),
            false => said.to_owned(),
        };
        let set_by = SettingSources {
            name: by_table(&wanted.set_by.name, "name"),
            base_url: match wanted.base_url {
                Some(_) => by_table(&wanted.set_by.base_url, "address"),
                None => format!("the table of providers, for {provider_name}; model.base_url overrides it"),
            },
            key: match wanted.api_key_env {
                Some(_) => by_table(&wanted.set_by.key, "key"),
                None => {
                    format!("the table of providers, for {provider_name}; model.api_key_env overrides it")
                }
            },
        };
        Ok(Endpoint {
            name: format!("{provider_name}/{model}"),
            model: model.to_owned(),
            protocol,
            quirks: Quirks {
                // A server at another address may accept other orders than the provider's own.
                roles: usual.map_or_else(RoleOrder::default, |provider| provider.quirks.roles),
                ..same_protocol.or(usual).map_or_else(Quirks::default, |provider| provider.quirks.clone())
            },
            key: self.key(wanted, provider)?,
            provider: provider_name.to_owned(),
            is_local,
            start: provider.and_then(|provider| provider.start.clone()),
            clocks: Timeouts {
                connect: wanted.connect_timeout.unwrap_or(clocks.connect),
                first_byte: wanted.first_byte_timeout.unwrap_or(clocks.first_byte),
                idle: wanted.idle_timeout.unwrap_or(clocks.idle),
            },
            window: wanted.context_window,
            tools: wanted.tools,
            effort: wanted.effort,
            entry: self.catalogue.find(provider_name, model),
            base_url,
            set_by,
        })
    }

    /// Splits a name into provider and model. With a `base_url` any name is allowed.
    fn split<'a>(&self, wanted: &'a ModelSpec) -> Result<(Option<&Provider>, &'a str)> {
        let name = wanted.name.as_str();
        match name.split_once('/') {
            Some((_, "") | ("", _)) => Err(no_such_model(name, "use provider/model")),
            Some(("custom", model)) => Ok((None, model)),
            Some((provider, model)) => match self.providers.get(provider) {
                Some(provider) => Ok((Some(provider), model)),
                None if wanted.base_url.is_some() => Ok((None, name)),
                None => {
                    let nearest = self.providers.nearest(provider);
                    let hint = match nearest.is_empty() {
                        true => "`longhaul models` lists the providers".to_owned(),
                        false => format!(
                            "did you mean {}? `longhaul models` lists all providers",
                            nearest.join(" or ")
                        ),
                    };
                    Err(no_such_model(name, &format!("unknown provider {provider:?}; {hint}")))
                }
            },
            None if wanted.base_url.is_some() && !name.is_empty() => Ok((None, name)),
            None => Err(no_such_model(name, "use provider/model; `longhaul models` lists the providers")),
        }
    }

    fn key(&self, wanted: &ModelSpec, provider: Option<&Provider>) -> Result<Option<ApiKey>> {
        let checked = |key: ApiKey| match key.value.chars().any(char::is_control) {
            true => Err(Error::BadKey { variable: key.variable }),
            false => Ok(Some(key)),
        };
        if let Some(variable) = &wanted.api_key_env {
            let missing = || Error::NoKey {
                name: wanted.name.clone(),
                variables: variable.clone(),
                by: wanted.set_by.key.clone(),
            };
            return checked(environment_key(variable).ok_or_else(missing)?);
        }
        let Some(provider) = provider else { return Ok(None) };
        let key = provider.key_env.iter().find_map(|variable| environment_key(variable));
        // The user's own server may need no key.
        if key.is_some() || provider.local || provider.key_env.is_empty() || wanted.base_url.is_some() {
            return key.map_or(Ok(None), checked);
        }
        let by = format!("the table of providers, for {}", provider.name);
        Err(Error::NoKey { name: wanted.name.clone(), variables: provider.key_env.join(" or "), by })
    }

    /// The default model: the usual model of the first provider whose API key is set, otherwise the model of a local
    /// server. A key that may be there for another purpose chooses nothing.
    pub async fn find(&self) -> Result<DefaultModel> {
        let with_key = self.providers.with_key(|variable| environment_key(variable).is_some());
        let (shared, with_key): (Vec<_>, Vec<_>) =
            with_key.into_iter().partition(|(provider, _)| provider.shared_key);
        let usual = with_key.iter().find_map(|(provider, variable)| {
            let name = format!("{}/{}", provider.name, provider.usual_model.as_ref()?);
            Some(DefaultModel { name, reason: format!("{variable} is set") })
        });
        if let Some(usual) = usual {
            return Ok(usual);
        }
        for (provider, variable) in with_key.iter().filter(|(provider, _)| provider.local) {
            let key = environment_key(variable);
            if let Some(model) = self.served_by(provider, key).await.into_iter().flatten().next() {
                let name = format!("{}/{model}", provider.name);
                let reason = format!("{variable} is set and {} runs at {}", provider.name, provider.base_url);
                return Ok(DefaultModel { name, reason });
            }
        }
        for server in find_local_servers(&*self.transport, &LOCAL_SERVER_PORTS).await {
            if let Some(model) = server.models.first() {
                let name = format!("{}/{model}", server.provider);
                return Ok(DefaultModel {
                    name,
                    reason: format!("{} runs at {}", server.provider, server.base_url),
                });
            }
        }
        let variables = self.hosted_key_variables().join(", ");
        Err(match (with_key.first(), shared.first()) {
            (Some((provider, variable)), _) => only_key(provider, variable),
            (None, Some((provider, variable))) => {
                let model = provider.usual_model.as_deref().unwrap_or("NAME");
                let model = format!("{}/{model}", provider.name);
                Error::SharedKey { variable: (*variable).to_owned(), model, variables }
            }
            (None, None) => Error::NoModel { variables },
        })
    }

    /// The variables that may hold the key of a hosted provider, one for each provider.
    fn hosted_key_variables(&self) -> Vec<&str> {
        let hosted = self.providers.iter().filter(|provider| !provider.local);
        hosted.filter_map(|provider| provider.key_env.first()).map(String::as_str).collect()
    }

    /// The provider of a model, with the address and the key that its calls go with.
    pub fn provider_of(&self, wanted: &ModelSpec) -> Result<Provider> {
        let Endpoint { provider, protocol, base_url, quirks, key, is_local, start, .. } =
            self.endpoint(wanted)?;
        let key_env = key.into_iter().map(|key| key.variable).collect();
        let usual_model = self.providers.get(&provider).and_then(|known| known.usual_model.clone());
        let name = provider;
        Ok(Provider {
            name,
            protocol,
            base_url,
            key_env,
            shared_key: false,
            local: is_local,
            quirks,
            start,
            usual_model,
        })
    }

    /// The names of the models that a provider's server offers. `None` if it does not list any.
    pub async fn served_models(&self, provider: &Provider) -> Option<Vec<String>> {
        let key = provider.key_env.iter().find_map(|variable| environment_key(variable));
        self.served_by(provider, key).await
    }

    async fn served_by(&self, provider: &Provider, key: Option<ApiKey>) -> Option<Vec<String>> {
        let server = ServerQuery {
            provider: &provider.name,
            protocol: provider.protocol,
            base_url: &provider.base_url,
            key: key.as_ref().map(|key| key.value.as_str()),
        };
        list_models(&*self.transport, &server).await
    }

    /// All API keys in the environment, for the redaction of secrets.
    pub fn keys(&self) -> Vec<ApiKey> {
        let variables = self.providers.iter().flat_map(|provider| &provider.key_env);
        variables.filter_map(|variable| environment_key(variable)).collect()
    }
}

/// The key in a variable of the environment, if it is set and not empty.
fn environment_key(variable: &str) -> Option<ApiKey> {
    let value = std::env::var(variable).ok()?.trim().to_owned();
    (!value.is_empty()).then(|| ApiKey { value, variable: variable.to_owned() })
}

/// The error where a key is set, but not which of the provider's models to use.
fn only_key(provider: &Provider, variable: &str) -> Error {
    let Provider { name, base_url, .. } = provider;
    let hint = match (provider.local, &provider.start) {
        (true, Some(start)) => format!("nothing answers at {base_url}: start the server ({start})"),
        (true, None) => format!("nothing answers at {base_url}: start the server"),
        (false, _) => format!("{name} has no default model: `longhaul models {name}` lists what it offers"),
    };
    Error::NoModelName { provider: name.clone(), variable: variable.to_owned(), hint }
}

fn no_such_model(name: &str, hint: &str) -> Error {
    Error::NoSuchModel { name: name.to_owned(), hint: hint.to_owned() }
}
