use super::*;

fn tool(name: &str, description: &str) -> CatalogueTool {
    CatalogueTool {
        name: name.to_owned(),
        remote_name: name.to_owned(),
        description: description.to_owned(),
        schema: json!({"type": "object"}),
        effect: Effect::Read,
    }
}

/// E2
#[test]
fn the_best_match_comes_first_and_has_its_arguments() {
    let tools = [
        tool("hub__list_issues", "List them"),
        tool("hub__create_issue", "Open a ticket"),
        tool("fs__read", "Read a file"),
    ];

    let found = describe_matches("create an issue", tools.iter());

    assert!(found.starts_with("hub__create_issue\nOpen a ticket\narguments: {"), "{found}");
    assert!(found.contains("hub__list_issues") && !found.contains("fs__read"), "{found}");
    assert!(describe_matches("weather", tools.iter()).starts_with("No tool matches"));
}

/// E2
#[test]
fn a_call_by_name_is_taken_apart() {
    let call = |text| unwrap_tools_call(text);

    let expected = Some(("a__b".to_owned(), r#"{"x":1}"#.to_owned()));
    assert_eq!(call(r#"{"name": "a__b", "arguments": {"x": 1}}"#), expected);
    assert_eq!(call(r#"{"name": "a__b", "arguments": "{\"x\":1}"}"#), expected);
    assert_eq!(call(r#"{"name": "a__b"}"#), Some(("a__b".to_owned(), "{}".to_owned())));
    assert_eq!(call("{}"), None);
}
