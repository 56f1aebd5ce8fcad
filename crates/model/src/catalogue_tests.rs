use std::collections::BTreeSet;

use super::*;
use crate::{Error, Providers, TokenCounts};

fn with_text(text: &str) -> Result<Catalogue> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("providers.toml");
    std::fs::write(&path, text).unwrap();
    Catalogue::built_in().with_file(&path)
}

fn window(catalogue: &Catalogue, provider: &str, model: &str) -> Option<u64> {
    catalogue.find(provider, model).and_then(|entry| entry.window)
}

#[test]
fn at_least_a_hundred_models_are_known_and_none_twice() {
    let catalogue = Catalogue::built_in();

    let patterns: Vec<_> = catalogue.iter().flat_map(|entry| &entry.patterns).collect();
    let different: BTreeSet<_> = patterns.iter().map(|pattern| pattern.to_lowercase()).collect();
    assert_eq!(patterns.len(), different.len());
    assert!(patterns.len() >= 100, "{}", patterns.len());
}

/// A model is looked up in the text, so each entry has a line of its own that begins with its patterns.
#[test]
fn each_entry_is_found_by_its_line_as_it_is_in_the_whole_table() {
    let found: Vec<_> = built_in_lines().map(|(patterns, _)| patterns).collect();
    let patterns = |entry: &CatalogueEntry| entry.patterns.clone();
    assert_eq!(found, ALL_BUILT_IN.iter().map(patterns).collect::<Vec<_>>());

    for entry in &*ALL_BUILT_IN {
        for pattern in entry.patterns.iter().filter(|pattern| !pattern.contains('*')) {
            let (provider, model) = pattern.split_once('/').unwrap();
            assert_eq!(Catalogue::built_in().find(provider, model).as_ref(), Some(entry));
        }
    }
}

#[test]
fn every_entry_is_plausible_and_of_a_provider_that_is_known() {
    let (catalogue, providers) = (Catalogue::built_in(), Providers::built_in());

    for entry in catalogue.iter() {
        let window = entry.window.unwrap();
        assert!((8_192..=2_000_000).contains(&window), "{entry:?}");
        assert!(entry.max_output.is_none_or(|tokens| tokens <= window), "{entry:?}");
        for pattern in entry.patterns.iter().filter(|pattern| !is_bare(pattern)) {
            let provider = pattern.split('/').next().unwrap();
            assert!(providers.get(provider).is_some(), "{pattern}");
        }
        if let Some(prices) = entry.prices {
            assert!(prices.input > 0.0 && prices.output >= prices.input, "{entry:?}");
            assert!(prices.cached.is_none_or(|cached| cached < prices.input), "{entry:?}");
            assert!(prices.written.is_none_or(|written| written > prices.input), "{entry:?}");
        }
    }
}

/// B2: a variant with another price does not get that of the plain model.
#[test]
fn a_name_that_is_written_out_counts_before_a_pattern() {
    let catalogue = Catalogue::built_in();
    let input = |model: &str| catalogue.find("xai", model).unwrap().prices.map(|prices| prices.input);

    assert_eq!(input("grok-3-mini"), Some(0.3));
    assert_eq!(input("grok-3-mini-fast"), Some(0.6));
    assert_eq!(input("grok-3-mini-other"), None);
}

/// B2: people are told where prices come from, and how old they are.
#[test]
fn the_prices_name_their_source_and_their_day() {
    let PriceSource { source, date } = Catalogue::price_source();

    assert!(source.starts_with("genai-prices "), "{source}");
    assert_eq!((date.len(), date.matches('-').count()), (10, 2), "{date}");
}

/// M15
#[test]
fn a_model_is_found_with_its_window_and_its_prices() {
    let catalogue = Catalogue::built_in();

    let entry = catalogue.find("anthropic", "claude-sonnet-4-5-20250929").unwrap();

    assert_eq!(
        (entry.window, entry.max_output, entry.tools, entry.reasons),
        (Some(200_000), Some(64_000), true, true)
    );
    let tokens = TokenCounts { input: Some(1_000_000), output: Some(100_000), ..TokenCounts::default() };
    assert_eq!(entry.prices.unwrap().cost(&tokens), Some(4.5));
}

#[test]
fn the_longest_pattern_counts() {
    let catalogue = Catalogue::built_in();
    let output_price = |model: &str| catalogue.find("openai", model)?.prices.map(|prices| prices.output);

    assert_eq!(output_price("gpt-5"), Some(10.0));
    assert_eq!(output_price("gpt-5-mini"), Some(2.0));
    assert_eq!(output_price("gpt-4o-2024-05-13"), Some(15.0));
    assert_eq!(output_price("gpt-4o-2024-11-20"), Some(10.0));
}

#[test]
fn a_date_at_the_end_of_a_name_is_passed_over_and_nothing_else_is() {
    assert_eq!(strip_date("gpt-5-2025-08-07"), Some("gpt-5"));
    assert_eq!(strip_date("claude-opus-5-20260701"), Some("claude-opus-5"));
    assert_eq!(strip_date("qwen3-30b-a3b-2507"), None);
    assert_eq!(strip_date("é-1"), None);
    assert_eq!(Catalogue::built_in().find("openai", "gpt-5-unheard-of"), None);
}

#[test]
fn a_pattern_with_a_provider_counts_before_one_without() {
    let catalogue = Catalogue::built_in();

    let at_groq = catalogue.find("groq", "openai/gpt-oss-120b").unwrap();
    let elsewhere = catalogue.find("custom", "GPT-OSS-120B-mxfp4.gguf").unwrap();

    assert_eq!((at_groq.prices.is_some(), elsewhere.prices), (true, None));
    assert_eq!(elsewhere.window, Some(131_072));
}

#[test]
fn a_star_stands_for_anything_also_in_the_middle() {
    assert!(
        matches_pattern("a*", "a")
            && matches_pattern("*a*", "xax")
            && matches_pattern("a*b*c", "a1b2c")
            && matches_pattern("*", "")
    );
    assert!(matches_pattern("*A*B", "aab") && matches_pattern("*ab*ab", "abab"));
    assert!(
        !matches_pattern("a", "ab")
            && !matches_pattern("a*a", "a")
            && !matches_pattern("*ab*ab", "ab")
            && !matches_pattern("a*b*c", "acb")
    );
}

#[test]
fn the_users_entries_count_before_all_others() {
    let text = "[[model]]\npattern = \"*claude*\"\nwindow = 5000\ntools = false\n\
                [[model]]\npattern = [\"office/*\", \"vllm/mine\"]\nwindow = 6000\nprices = { input = 1, output = 2 }\n";

    let catalogue = with_text(text).unwrap();

    assert_eq!(window(&catalogue, "anthropic", "claude-sonnet-4-5"), Some(5000));
    assert_eq!(window(&catalogue, "vllm", "mine"), Some(6000));
    assert_eq!(window(&catalogue, "openai", "gpt-5"), Some(400_000));
    assert!(!catalogue.find("anthropic", "claude-sonnet-4-5").unwrap().tools);
    assert_eq!(catalogue.find("office", "x").unwrap().prices.unwrap().output, 2.0);
}

#[test]
fn an_error_names_the_model_and_the_key() {
    let complaint = |text: &str| match with_text(text).unwrap_err() {
        Error::BadProviders { place, reason, .. } => (place, reason),
        other => panic!("{other}"),
    };

    let kind = complaint("[[model]]\npattern = \"*a\"\nwindow = \"large\"");
    let unknown = complaint("[[model]]\npattern = \"*a\"\nwindows = 1");
    let price = complaint("[[model]]\npattern = \"*a\"\nprices = { input = 1.0 }");
    let missing = complaint("[[model]]\nwindow = 1");
    let neither = complaint("[[model]]\npattern = \"gpt\"");
    let list = complaint("[model]\npattern = \"*a\"");

    assert_eq!(kind.0, "model 1 (*a).window");
    assert_eq!(unknown.0, "model 1 (*a).windows");
    assert!(unknown.1.contains("did you mean window?"), "{}", unknown.1);
    assert_eq!(price.0, "model 1 (*a).prices");
    assert!(price.1.contains("output"), "{}", price.1);
    assert_eq!(missing, ("model 1.pattern".to_owned(), "missing".to_owned()));
    assert_eq!(neither.0, "model 1 (gpt).pattern");
    assert_eq!(list.0, "model");
}
