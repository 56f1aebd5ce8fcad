//! T6: arguments that don't fit are not run and not repaired.

use serde_json::Value;

use crate::workplace::{Workplace, call_with_text, content, error};

async fn said(tool: &str, arguments: &str) -> String {
    let place = Workplace::new();
    place.put("a.txt", "a");
    let said = error(place.make(tool, &call_with_text(arguments)).await);
    assert_eq!(place.names(&place.work()), ["a.txt"]);
    let start = format!("{tool} was not run, because its arguments don't fit: ");
    said.strip_prefix(&start).unwrap_or_else(|| panic!("{said}")).to_owned()
}

/// T6
#[tokio::test]
async fn what_is_wrong_is_said_with_field_value_and_what_is_expected() {
    let table = [
        ("read_file", r#"{"path": 7}"#, "`path` must be a text, not 7"),
        ("read_file", r#"{}"#, "the field `path` is missing; it must be a text"),
        ("read_file", "", "the field `path` is missing; it must be a text"),
        (
            "read_file",
            r#"{"path": "a.txt", "offset": 0}"#,
            "`offset` must be a whole number, at least 1, not 0",
        ),
        (
            "read_file",
            r#"{"path": "a.txt", "limit": "ten"}"#,
            "`limit` must be a whole number, at least 1, not \"ten\"",
        ),
        (
            "read_file",
            r#"{"path": "a.txt", "lines": 3}"#,
            "there is no field `lines`; there are `limit`, `offset`, `path`",
        ),
        ("list_files", r#"{"depth": 11}"#, "`depth` must be a whole number from 1 to 10, not 11"),
        ("list_files", r#"{"depth": 1.5}"#, "`depth` must be a whole number from 1 to 10, not 1.5"),
        ("list_files", r#"["a.txt"]"#, "the arguments must be an object, not [\"a.txt\"]"),
        ("write_file", r#"{"path": null, "content": ""}"#, "`path` must be a text, not null"),
        (
            "edit_file",
            r#"{"path": "a.txt", "edits": [{"old": "a", "new": "b", "all": "yes"}]}"#,
            "`edits[0].all` must be true or false, not \"yes\"",
        ),
        (
            "edit_file",
            r#"{"path": "a.txt", "edits": [{"old": "a"}]}"#,
            "the field `edits[0].new` is missing; it must be a text",
        ),
        (
            "todo",
            r#"{"items": [{"text": "x", "status": "started"}]}"#,
            "`items[0].status` must be \"pending\" or \"in_progress\" or \"done\", not \"started\"",
        ),
    ];

    for (tool, arguments, expected) in table {
        assert_eq!(said(tool, arguments).await, expected, "{tool} {arguments}");
    }
}

/// T6
#[tokio::test]
async fn what_is_not_json_or_says_something_twice_is_refused() {
    assert!(said("read_file", r#"{"path": "a.txt"#).await.starts_with("not JSON: "));
    assert!(said("read_file", r#"{"path": "a.txt"} and"#).await.starts_with("not JSON: "));
    assert!(said("read_file", r#"{"path": "a.txt", "path": "b.txt"}"#).await.contains("duplicate field"));
    let long = said("read_file", &format!(r#"{{"path": {:?}}}"#, vec![1; 10_000])).await;
    assert!(long.len() < 200, "{long}");
}

/// T6
#[tokio::test]
async fn nothing_is_an_object_without_fields_and_null_is_a_field_that_is_not_there() {
    let place = Workplace::new();
    place.put("a.txt", "a");

    for arguments in ["", "  ", "{}", r#"{"path": null, "depth": null}"#] {
        assert_eq!(content(place.make("list_files", &call_with_text(arguments)).await), "a.txt (1 bytes)");
    }
}

/// They are sent with every request, which is to be under 6.5 KB. `web_search` is there only where a searcher is configured.
#[test]
fn all_tools_together_are_told_in_five_and_a_half_kilobytes() {
    let sent = longhaul_tools::all_tool_definitions().into_iter().filter(|tool| tool.name != "web_search");
    let sizes = sent.map(|definition| {
        definition.name.len() + definition.description.len() + definition.schema.to_string().len()
    });

    let all: usize = sizes.sum();

    assert!(all < 5_500, "{all}");
}

/// Providers differ in what of JSON Schema they take; these are plain.
#[test]
fn schemas_are_plain_objects() {
    // The name says it all, and each word is part of every request.
    const SELF_EXPLAINING: [&str; 8] =
        ["path", "from", "task_id", "command", "url", "query", "question", "choices"];
    for definition in longhaul_tools::all_tool_definitions() {
        let text = definition.schema.to_string();
        for noise in [
            "$schema",
            "$ref",
            "$defs",
            "\"title\"",
            "\"format\"",
            "null",
            "anyOf",
            "oneOf",
            "additionalProperties",
        ] {
            assert!(!text.contains(noise), "{}: {noise} in {text}", definition.name);
        }
        assert_eq!(definition.schema["type"], "object");
        for (name, field) in definition.schema["properties"].as_object().unwrap() {
            let is_explained = field["description"].is_string() || SELF_EXPLAINING.contains(&name.as_str());
            assert!(is_explained, "{}: {name} is not explained", definition.name);
        }
        let example: Value = serde_json::from_str(definition.example).unwrap();
        assert!(example.is_object());
    }
}

#[test]
fn the_tools_come_in_a_fixed_order() {
    let place = Workplace::new();
    let tools = place.tools();
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.definition().name).collect();

    assert_eq!(
        names,
        [
            "read_file",
            "write_file",
            "edit_file",
            "patch",
            "move_file",
            "delete_file",
            "list_files",
            "find_files",
            "search_text",
            "todo",
        ]
    );
}
