//! `longhaul models`: the providers, their models, and the model in use.

use longhaul_agent::Config;
use longhaul_agent::model_list::{
    ModelInUse, ProviderReport, catalogue_of, is_variable_set, model_in_use, protocol_name, provider_models,
    served_models,
};
use longhaul_model::{Catalogue, CatalogueEntry, Models, PriceSource, Prices, Provider};
use serde_json::json;

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
        let providers: Vec<ProviderReport> = models.providers().iter().map(ProviderReport::from).collect();
        let (used, problem) = match used {
            Ok(used) => (Some(used), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let prices = Catalogue::price_source();
        return json(&json!({"providers": providers, "used": used, "problem": problem, "prices": prices}));
    }
    let width = models.providers().iter().map(|provider| provider.name.len()).max().unwrap_or(0);
    line(format!("{:<width$}  {:<16}  {:<24}  ADDRESS", "PROVIDER", "PROTOCOL", "KEY"))?;
    for provider in models.providers().iter() {
        let Provider { name, base_url, .. } = provider;
        let local = if provider.local { "  (this machine)" } else { "" };
        let (protocol, key) = (protocol_name(provider.protocol), key(provider));
        line(format!("{name:<width$}  {protocol:<16}  {key:<24}  {base_url}{local}"))?;
    }
    line("")?;
    line(price_source())?;
    match used {
        Ok(ModelInUse { name, reason }) => line(format!("In use: {name} ({reason})")),
        Err(error) => line(format!("In use: none; {error}")),
    }
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
    if as_json {
        return json(&provider_models(models, provider).await);
    }
    let entries = catalogue_of(models, name);
    let served = served_models(models, provider).await;
    line(format!("{name}: {} at {}", protocol_name(provider.protocol), provider.base_url))?;
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
    line(price_source())?;
    if let Some(served) = served {
        line(format!("Its server offers {}:", format_number(served.len() as u64)))?;
        served.iter().try_for_each(|model| line(format!("  {name}/{model}")))?;
    }
    Ok(())
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

/// Where prices come from, in words.
pub(crate) fn price_source() -> String {
    let PriceSource { source, date } = Catalogue::price_source();
    format!("Prices: {source}, {date}, and providers.toml of the home, which counts first")
}

fn prices(prices: &Prices) -> String {
    format!("${} in, ${} out per million tokens", prices.input, prices.output)
}

/// The variable with the key, and whether it is set.
fn key(provider: &Provider) -> String {
    match (provider.key_env.iter().find(|name| is_variable_set(name)), provider.key_env.first()) {
        (Some(variable), _) => format!("{variable} (set)"),
        (None, Some(variable)) => variable.clone(),
        (None, None) => "none needed".to_owned(),
    }
}
