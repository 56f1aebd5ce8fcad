//! `longhaul models`: the providers, their models, and the model in use.

use longhaul_agent::Config;
use longhaul_model::{CatalogueEntry, Models, Prices, Protocol, Provider};
use serde_json::{Value, json};

use crate::args::{GlobalArgs, ModelsOptions};
use crate::output::{format_number, json, line};
use crate::{bad_usage, config, exit};

pub(crate) async fn run(globals: &GlobalArgs, options: ModelsOptions) -> anyhow::Result<u8> {
    let config = config::load(globals)?;
    let models = Models::at(&config.home)?;
    match options.provider {
        Some(name) => print_provider(&models, &name, options.json).await?,
        None => print_all(&models, &config, options.json).await?,
    }
    Ok(exit::DONE)
}

async fn print_all(models: &Models, config: &Config, as_json: bool) -> anyhow::Result<()> {
    let used = model_in_use(models, config).await;
    if as_json {
        let providers: Vec<Value> = models.providers().iter().map(provider_json).collect();
        let (used, problem) = match used {
            Ok((name, reason)) => (json!({"name": name, "reason": reason}), None),
            Err(error) => (Value::Null, Some(error.to_string())),
        };
        return json(&json!({"providers": providers, "used": used, "problem": problem}));
    }
    let width = models.providers().iter().map(|provider| provider.name.len()).max().unwrap_or(0);
    line(format!("{:<width$}  {:<16}  {:<24}  ADDRESS", "PROVIDER", "PROTOCOL", "KEY"))?;
    for provider in models.providers().iter() {
        let Provider { name, base_url, .. } = provider;
        let local = if provider.local { "  (this machine)" } else { "" };
        let (protocol, key) = (protocol(provider.protocol), key(provider));
        line(format!("{name:<width$}  {protocol:<16}  {key:<24}  {base_url}{local}"))?;
    }
    line("")?;
    match used {
        Ok((name, reason)) => line(format!("In use: {name} ({reason})")),
        Err(error) => line(format!("In use: none; {error}")),
    }
}

/// The name of the model in use, and why it is used.
pub(crate) async fn model_in_use(
    models: &Models,
    config: &Config,
) -> longhaul_model::Result<(String, String)> {
    let name = &config.settings.model.name;
    if name.is_empty() {
        return models.find().await.map(|found| (found.name, found.reason));
    }
    Ok((name.clone(), format!("set by {}", config.set_by("model.name"))))
}

async fn print_provider(models: &Models, name: &str, as_json: bool) -> anyhow::Result<()> {
    let Some(provider) = models.providers().get(name) else {
        if let "custom" | "scripted" = name {
            return Err(bad_usage(format!(
                "{name} is not in the list of providers; see docs/models.md for how to use it"
            )));
        }
        let nearest = models.providers().nearest(name);
        let hint = match nearest.is_empty() {
            true => "`longhaul models` lists them".to_owned(),
            false => format!("did you mean {}?", nearest.join(" or ")),
        };
        return Err(bad_usage(format!("no provider named {name:?}; {hint}")));
    };
    let entries: Vec<(&CatalogueEntry, Vec<&str>)> = models
        .catalogue()
        .iter()
        .map(|entry| (entry, patterns_of(entry, name)))
        .filter(|(_, patterns)| !patterns.is_empty())
        .collect();
    let served = served_models(models, provider).await;
    if as_json {
        let known: Vec<Value> = entries.iter().map(|(entry, patterns)| entry_json(entry, patterns)).collect();
        let mut form = provider_json(provider);
        form["models"] = json!(known);
        form["served"] = json!(served);
        return json(&form);
    }
    line(format!("{name}: {} at {}", protocol(provider.protocol), provider.base_url))?;
    line(format!("key: {}", key(provider)))?;
    if let Some(model) = &provider.usual_model {
        line(format!("default model: {name}/{model}"))?;
    }
    if let Some(start) = &provider.start {
        line(format!("to start the server: {start}"))?;
    }
    if entries.is_empty() && served.is_none() {
        return line("No models listed: the server says what it offers.");
    }
    for (entry, patterns) in entries {
        line(format!("  {}", patterns.join(", ")))?;
        line(format!("      {}", facts(entry)))?;
    }
    if let Some(served) = served {
        line(format!("Its server offers {}:", format_number(served.len() as u64)))?;
        served.iter().try_for_each(|model| line(format!("  {name}/{model}")))?;
    }
    Ok(())
}

/// What the provider's server offers. It is asked only if it runs on this machine or its key is set.
async fn served_models(models: &Models, provider: &Provider) -> Option<Vec<String>> {
    let has_key = provider.key_env.iter().any(|variable| is_set(variable));
    if provider.local || has_key { models.served_models(provider).await } else { None }
}

/// The patterns of an entry for this provider.
fn patterns_of<'a>(entry: &'a CatalogueEntry, provider: &str) -> Vec<&'a str> {
    let own = |pattern: &&str| pattern.split_once('/').is_some_and(|(of, _)| of == provider);
    entry.patterns.iter().map(String::as_str).filter(own).collect()
}

fn facts(entry: &CatalogueEntry) -> String {
    let tokens = |tokens: u64, what: &str| format!("{} tokens of {what}", format_number(tokens));
    let mut facts: Vec<String> = Vec::new();
    facts.extend(entry.window.map(|window| tokens(window, "context")));
    facts.extend(entry.max_output.map(|output| tokens(output, "output")));
    facts.extend(entry.prices.as_ref().map(prices));
    facts.push(if entry.tools { "tools" } else { "no tools" }.to_owned());
    if entry.reasons {
        facts.push("reasoning".to_owned());
    }
    facts.join(", ")
}

fn prices(prices: &Prices) -> String {
    format!("${} in, ${} out per million tokens", prices.input, prices.output)
}

fn entry_json(entry: &CatalogueEntry, patterns: &[&str]) -> Value {
    let prices = entry.prices.as_ref().map(|prices| json!({"input": prices.input, "output": prices.output}));
    json!({
        "patterns": patterns, "context_window": entry.window, "max_output_tokens": entry.max_output,
        "tools": entry.tools, "reasons": entry.reasons, "prices": prices,
    })
}

/// The variable with the key, and whether it is set.
fn key(provider: &Provider) -> String {
    match (provider.key_env.iter().find(|name| is_set(name)), provider.key_env.first()) {
        (Some(variable), _) => format!("{variable} (set)"),
        (None, Some(variable)) => variable.clone(),
        (None, None) => "none needed".to_owned(),
    }
}

pub(crate) fn is_set(variable: &str) -> bool {
    std::env::var(variable).is_ok_and(|value| !value.trim().is_empty())
}

fn provider_json(provider: &Provider) -> Value {
    json!({
        "name": provider.name, "protocol": protocol(provider.protocol), "base_url": provider.base_url,
        "key_env": provider.key_env, "key_is_set": provider.key_env.iter().any(|name| is_set(name)), "local": provider.local,
        "default_model": provider.usual_model,
    })
}

/// The protocol as the config names it.
fn protocol(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::OpenaiChat => "openai-chat",
        Protocol::OpenaiResponses => "openai-responses",
        Protocol::Anthropic => "anthropic",
        Protocol::Gemini => "gemini",
    }
}
