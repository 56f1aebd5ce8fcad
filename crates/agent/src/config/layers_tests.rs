use longhaul_config::Layer;

use super::*;

fn layer(text: &str, file: &str) -> Layer {
    parse_layer(text, file).unwrap()
}

#[test]
fn later_wins_key_by_key_and_lists_are_replaced() {
    let mut layers = default_layers();

    layers.put(layer("[model]\nname = \"a\"\nfallback = [\"x\", \"y\"]\n[retry]\nbase_ms = 1\n", "one"));
    layers.put(layer("[model]\nfallback = [\"z\"]\n[retry]\ncap_ms = 2\n", "two"));

    let settings = layers.settings().unwrap();
    assert_eq!((settings.model.name.as_str(), settings.model.fallback), ("a", vec!["z".to_owned()]));
    assert_eq!((settings.retry.base_ms, settings.retry.cap_ms), (1, 2));
    let sources = ["model.name", "model.fallback", "retry.base_ms", "retry.cap_ms", "retry.budget_s"];
    assert_eq!(
        sources.map(|key| layers.origins.source(key)),
        ["one:2", "two:2", "one:5", "two:4", "default"]
    );
}

/// P7: what the home denies stays denied.
#[test]
fn a_project_adds_to_what_is_denied() {
    let mut layers = default_layers();

    layers.put(layer("[[scope.deny]]\ntarget = \"/a\"\n", "home"));
    put_project_layer(&mut layers, layer("\n[scope]\ndeny = [{ target = \"/b\" }]\n", "project"));

    let denied = layers.settings().unwrap().scope.deny;
    assert_eq!(denied.iter().map(|rule| rule.target.as_str()).collect::<Vec<_>>(), ["/a", "/b"]);
    assert_eq!(layers.origins.source("scope.deny"), "home:1, project:3");
    assert_eq!(layers.origins.set_by("scope.deny"), "scope.deny in home:1 and scope.deny in project:3");
}

#[test]
fn dotted_keys_and_inline_tables_have_their_lines() {
    let layer = layer("retry.base_ms = 1\nretry.cap_ms = 2\nmodel = { name = \"a\" }\n", "file");

    let lines: Vec<_> = layer.0.iter().map(|(key, entry)| (key.as_str(), entry.origin.to_string())).collect();

    assert_eq!(
        lines,
        [
            ("model.name", "file:3".to_owned()),
            ("retry.base_ms", "file:1".to_owned()),
            ("retry.cap_ms", "file:2".to_owned())
        ]
    );
}

#[test]
fn a_share_that_is_set_later_takes_back_the_tokens_in_its_place() {
    let mut layers = default_layers();

    layers.put(layer("[context]\ncompact_at_tokens = 5\ncompact_now_at_tokens = 6\n", "one"));
    layers.put(layer("[context]\ncompact_at = 0.5\n", "two"));

    let context = layers.settings().unwrap().context;
    assert_eq!((context.compact_at, context.compact_at_tokens), (0.5, None));
    assert_eq!(context.compact_now_at_tokens, Some(6));
    assert_eq!(layers.origins.source("context.compact_at_tokens"), "default");
}
