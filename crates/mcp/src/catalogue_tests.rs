use std::sync::Arc;

use rmcp::model::{Tool, ToolAnnotations};

use super::*;

fn tool(name: &str) -> Tool {
    Tool::new(name.to_owned(), format!("about {name}"), Arc::new(Map::new()))
}

fn names(catalogue: &Catalogue) -> Vec<&str> {
    catalogue.tools.iter().map(|tool| tool.name.as_str()).collect()
}

/// E2
#[test]
fn tools_are_sorted_whatever_order_the_server_lists_them_in() {
    let one = Catalogue::new("s", &[], vec![tool("b"), tool("a"), tool("c")]);
    let other = Catalogue::new("s", &[], vec![tool("c"), tool("b"), tool("a")]);

    assert_eq!(names(&one), ["s__a", "s__b", "s__c"]);
    assert_eq!(one, other);
}

/// E2
#[test]
fn an_effect_comes_from_the_annotations_and_without_them_anything_is_possible() {
    let read = tool("read").annotate(ToolAnnotations::new().read_only(true));
    let put = tool("put").annotate(ToolAnnotations::new().idempotent(true));

    let catalogue = Catalogue::new("s", &[], vec![read, put, tool("post")]);

    let effects: Vec<_> =
        catalogue.tools.iter().map(|tool| (tool.remote_name.as_str(), tool.effect)).collect();
    assert_eq!(effects, [("post", Effect::Unknown), ("put", Effect::Idempotent), ("read", Effect::Read)]);
}

/// E1
#[test]
fn odd_names_are_made_callable_and_kept_apart_and_the_user_is_told() {
    let long = "x".repeat(100);

    let catalogue =
        Catalogue::new("s", &[], vec![tool("a.b"), tool("a b"), tool(&long), tool("größe"), tool("")]);

    let found = names(&catalogue);
    assert_eq!(found.len(), 5);
    assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), 5);
    for name in &found {
        assert!(
            name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)),
            "{name}"
        );
    }
    assert_eq!(catalogue.warnings.len(), 5);
    let remote: BTreeSet<_> = catalogue.tools.iter().map(|tool| tool.remote_name.as_str()).collect();
    assert!(remote.contains("a.b") && remote.contains("a b"));
}

/// E2: a model calls a name for as long as its epoch lasts, and another tool must not answer to it then.
#[test]
fn a_name_never_comes_to_mean_another_tool_when_tools_come_and_go() {
    let listed = [tool("a.b"), tool("a b"), tool("a_b"), tool("c d"), tool("c.d")];
    let all = Catalogue::new("s", &[], listed.to_vec());

    assert_eq!(all.find("s__a_b").unwrap().remote_name, "a_b");
    for left_out in 0..listed.len() {
        let mut rest = listed.to_vec();
        rest.remove(left_out);
        for tool in Catalogue::new("s", &[], rest).tools {
            let before = all.find(&tool.name).map(|before| before.remote_name.as_str());
            assert!(before.is_none_or(|before| before == tool.remote_name), "{tool:?} was {before:?}");
        }
    }
}

/// J8: what a server says about its tools goes into requests and records.
#[test]
fn a_secret_in_what_a_server_says_about_its_tools_is_redacted() {
    let redactor = Redactor::new(&["hunter2-hunter2".to_owned()], &[]).unwrap();
    let schema = serde_json::json!({"properties": {"of": {"type": "string", "default": "hunter2-hunter2"}}});
    let schema = Arc::new(schema.as_object().unwrap().clone());
    let listed = Tool::new("a", "Logged in with hunter2-hunter2", schema);
    let mut catalogue = Catalogue::new("s", &[], vec![listed]);

    catalogue.redact(&redactor);

    let tool = &catalogue.tools[0];
    assert_eq!(tool.description, "Logged in with [redacted]");
    assert_eq!(tool.schema["properties"]["of"]["default"], "[redacted]");
}

/// E1
#[test]
fn the_second_of_two_tools_with_one_name_is_left_out_with_a_line() {
    let catalogue = Catalogue::new("s", &[], vec![tool("a"), tool("a")]);

    assert_eq!(names(&catalogue), ["s__a"]);
    assert_eq!(catalogue.warnings, ["it has two tools named `a`; the second is left out"]);
}

/// E1: a server knows how names are made. Providers refuse each request with two tools of one name, so that every session of the folder would
/// stand still.
#[test]
fn a_tool_that_is_named_as_another_one_will_be_called_takes_its_place_and_not_the_whole_request() {
    let long = "b".repeat(80);
    let hash = blake3::hash(long.as_bytes()).to_hex();
    let planted = format!("{}_{}", &long[..57 - "s__".len()], &hash[..6]);

    let catalogue = Catalogue::new("s", &[], vec![tool(&long), tool(&planted), tool("fine")]);

    assert_eq!(names(&catalogue), [format!("s__{planted}").as_str(), "s__fine"]);
    assert_eq!(catalogue.find(&format!("s__{planted}")).unwrap().remote_name, planted);
    let warning =
        format!("its tool `{long}` is left out: another one has the name by which models would call it");
    assert_eq!(catalogue.warnings, [warning]);
}

/// E1: the name of a tool stands in the cache, in each call and in what the user is shown.
#[test]
fn a_tool_with_an_endless_name_is_left_out_and_its_name_is_not_shown_whole() {
    let catalogue = Catalogue::new("s", &[], vec![tool(&"n".repeat(1 << 20)), tool("fine")]);

    assert_eq!(names(&catalogue), ["s__fine"]);
    assert_eq!(catalogue.warnings.len(), 1);
    assert!(
        catalogue.warnings[0].ends_with("…` is over 1024 bytes; it is left out"),
        "{:?}",
        catalogue.warnings
    );
    assert!(catalogue.warnings[0].len() < 300);
}

/// E1
#[test]
fn tools_that_had_no_room_in_a_listing_are_mentioned() {
    let mut listing = Listing::new(10);
    listing.add_page(vec![tool("a")]);
    listing.add_page(vec![tool("b"), tool(&"x".repeat(MAX_MESSAGE_BYTES)), tool("c")]);

    let catalogue = Catalogue::of_listing("s", &[], listing);

    assert_eq!(names(&catalogue), ["s__a", "s__b"]);
    assert_eq!(catalogue.warnings, ["its tools have more than 16 MiB; the rest is left out"]);
}

#[test]
fn only_the_configured_tools_are_offered_and_a_missing_one_is_named() {
    let catalogue = Catalogue::new("s", &["a".to_owned(), "z".to_owned()], vec![tool("a"), tool("b")]);

    assert_eq!(names(&catalogue), ["s__a"]);
    assert_eq!(catalogue.warnings, ["it has no tool \"z\", which `tools` names"]);
}

/// E1: a server with any number of tools costs a bounded number of them.
#[test]
fn a_server_that_lists_too_many_tools_shows_the_first_ones_and_says_so() {
    let listed: Vec<Tool> = (0..=MAX_LISTED_TOOLS).map(|number| tool(&format!("t{number:05}"))).collect();

    let catalogue = Catalogue::new("s", &[], listed);

    assert_eq!(catalogue.tools.len(), MAX_LISTED_TOOLS);
    assert_eq!(catalogue.warnings, ["it lists more than 1000 tools; the rest is left out"]);
}
