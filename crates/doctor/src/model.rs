//! Checks the model: which one is used, why, and whether its server answers. Only servers on this machine are contacted.

use std::time::Duration;

use longhaul_agent::config::hide_url_password;
use longhaul_agent::model_list::{ModelInUse, NO_MODEL_NAME, is_variable_set, model_in_use};
use longhaul_agent::{Config, model_spec};
use longhaul_model::transport::is_loopback;
use longhaul_model::{Error, Models};
use tokio::net::TcpStream;

use super::Finding;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
const OTHER_MODELS_HINT: &str = "or choose another with --model; `longhaul models` lists the providers";

/// Checks the model in use and its fallbacks.
pub(super) async fn check(config: &Config) -> Vec<Finding> {
    let models = match Models::at(&config.home) {
        Ok(models) => models,
        Err(error) => return vec![Finding::wrong("model", error, "fix the file")],
    };
    let settings = &config.settings.model;
    if settings.name.is_empty() && settings.base_url.is_some() {
        return vec![Finding::wrong("model", NO_MODEL_NAME, OTHER_MODELS_HINT)];
    }
    let ModelInUse { name, reason } = match model_in_use(&models, config).await {
        Ok(used) => used,
        Err(Error::NoModel { .. }) => {
            let found = "no model is set, no API key was found, and no local server is running";
            let to_do = "set a model with --model, LONGHAUL_MODEL or model.name, set an API key, or start a server; \
                         `longhaul models` lists the providers";
            return vec![Finding::wrong("model", found, to_do)];
        }
        Err(error) => return vec![Finding::wrong("model", error, OTHER_MODELS_HINT)],
    };
    let mut findings = vec![check_model(&models, config, &name, &reason).await];
    for name in &settings.fallback {
        findings.push(check_model(&models, config, name, "fallback, from model.fallback").await);
    }
    findings
}

/// Checks that a model has a key, and if it is local, a server.
async fn check_model(models: &Models, config: &Config, name: &str, reason: &str) -> Finding {
    let wanted = model_spec(models, config, name);
    if let Err(error) = models.open(&wanted) {
        return Finding::wrong("model", error, OTHER_MODELS_HINT);
    }
    let chosen = format!("{name} ({reason})");
    // It plays a file, whatever server the config has.
    if name.starts_with("scripted/") {
        return Finding::fine("model", chosen);
    }
    let provider = name.split_once('/').and_then(|(provider, _)| models.providers().get(provider));
    let Some(address) = wanted.base_url.as_ref().or(provider.map(|provider| &provider.base_url)) else {
        return Finding::fine("model", chosen);
    };
    let variables = wanted.api_key_env.iter().chain(provider.iter().flat_map(|provider| &provider.key_env));
    let key = match variables.into_iter().find(|variable| is_variable_set(variable)) {
        Some(variable) => format!("key from {variable}"),
        None => "no key".to_owned(),
    };
    // Users paste the output of doctor into bug reports.
    let shown = hide_url_password(address);
    if !is_loopback(address) {
        return Finding::fine("model", format!("{chosen}; {key}; {shown} (not contacted)"));
    }
    if is_listening(address).await {
        return Finding::fine("model", format!("{chosen}; {key}; server running at {shown}"));
    }
    let start = provider.and_then(|provider| provider.start.as_ref());
    let to_do = match start {
        Some(start) => format!("start the server ({start}), {OTHER_MODELS_HINT}"),
        None => format!("start the server, fix model.base_url, {OTHER_MODELS_HINT}"),
    };
    Finding::wrong("model", format!("{chosen}; no server is running at {shown}"), to_do)
}

/// Whether a server on this machine accepts connections.
async fn is_listening(address: &str) -> bool {
    let (port, rest) = match address.split_once("://") {
        Some(("https", rest)) => (443, rest),
        Some((_, rest)) => (80, rest),
        None => (80, address),
    };
    let host = rest.split(['/', '?']).next().unwrap_or(rest);
    let host = host.rsplit('@').next().unwrap_or(host);
    let has_port =
        host.rsplit(':').next().is_some_and(|port| port.parse::<u16>().is_ok()) && host.contains(':');
    let host_and_port = if has_port { host.to_owned() } else { format!("{host}:{port}") };
    matches!(tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(host_and_port)).await, Ok(Ok(_)))
}
