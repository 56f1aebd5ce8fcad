//! Prices, by the package whose data the catalogue is made of.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use longhaul_model::{Catalogue, CatalogueEntry, TokenCounts};
use longhaul_testkit::SeededRandom;
use serde_json::json;

use crate::installed::peer;

const CALLS: usize = 1_000;

struct PricedCall {
    provider: String,
    model: String,
    tokens: TokenCounts,
    cost: f64,
}

/// Names of priced models that the package knows by the same name: a pattern stands for its plain model.
fn priced_models(catalogue: &Catalogue) -> Vec<(String, String, CatalogueEntry)> {
    let names = catalogue.iter().flat_map(|entry| entry.patterns.iter());
    let names = names.filter_map(|pattern| pattern.trim_end_matches('*').split_once('/'));
    let priced = names.filter_map(|(provider, model)| {
        // A pattern for all days of a model: one that there was.
        let model =
            model.strip_suffix("-20").map_or_else(|| model.to_owned(), |stem| format!("{stem}-20250514"));
        let entry = catalogue.find(provider, &model).filter(|entry| entry.prices.is_some())?;
        Some((provider.to_owned(), model, entry))
    });
    priced.collect()
}

/// B2: a thousand random calls of the models with a price cost what the package says, to a billionth of a dollar.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn calls_cost_what_the_package_with_the_prices_says() {
    let catalogue = Catalogue::built_in();
    let models = priced_models(&catalogue);
    assert!(models.len() >= 40, "{}", models.len());
    let mut random = SeededRandom::new();
    let calls: Vec<PricedCall> = (0..CALLS)
        .map(|number| {
            let (provider, model, entry) = &models[number % models.len()];
            let input = random.below(entry.window.unwrap());
            let cached = random.below(input + 1);
            let prices = entry.prices.unwrap();
            let written = if prices.written.is_some() { random.below(input - cached + 1) } else { 0 };
            let tokens = TokenCounts {
                input: Some(input),
                output: Some(random.below(100_000)),
                cached: Some(cached),
                written: Some(written),
            };
            let cost = prices.cost(&tokens).unwrap();
            PricedCall { provider: provider.clone(), model: model.clone(), tokens, cost }
        })
        .collect();

    let theirs = price_elsewhere(&calls);

    for (call, theirs) in calls.iter().zip(theirs) {
        let PricedCall { provider, model, tokens, cost } = call;
        let theirs = theirs.unwrap_or_else(|| panic!("{provider}/{model} has a price here only"));
        assert!((cost - theirs).abs() < 1e-9, "{provider}/{model} {tokens:?}: {cost} here, {theirs} there");
    }
}

fn price_elsewhere(calls: &[PricedCall]) -> Vec<Option<f64>> {
    let lines = calls.iter().map(|PricedCall { provider, model, tokens, .. }| {
        let &TokenCounts { input, output, cached, written } = tokens;
        json!({"provider": provider, "model": model, "input": input, "output": output, "cached": cached,
            "written": written})
        .to_string()
    });
    let lines = lines.collect::<Vec<_>>().join("\n");
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers/prices.py");
    let mut peer = Command::new(peer("prices/bin/python"))
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = peer.stdin.take().unwrap();
    let writing = std::thread::spawn(move || stdin.write_all(lines.as_bytes()).unwrap());
    let output = peer.wait_with_output().unwrap();
    writing.join().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
