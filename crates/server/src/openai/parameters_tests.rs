//! H4: one table makes the check and the documented list.

use serde_json::{Value, json};

use super::{PARAMETERS, Parameter, check_parameters};

fn refused(body: &Value) -> Option<String> {
    let error = check_parameters(body.as_object().unwrap()).err()?;
    assert_eq!((error.status.as_u16(), error.code.as_str()), (400, "unsupported_parameter"));
    error.param
}

/// H4.
#[test]
fn a_parameter_that_would_change_the_meaning_is_refused_by_name() {
    let tool = json!([{"type": "function", "function": {"name": "f"}}]);
    for (name, value) in [
        ("n", json!(2)),
        ("logprobs", json!(true)),
        ("tools", tool.clone()),
        ("functions", json!([{"name": "f"}])),
        ("response_format", json!({"type": "json_object"})),
        ("text", json!({"format": {"type": "json_schema"}})),
        ("stop", json!("END")),
        ("audio", json!({"voice": "alloy"})),
    ] {
        assert_eq!(refused(&json!({name: value})).as_deref(), Some(name));
    }
    assert_eq!(refused(&json!({"tools": tool, "tool_choice": "none"})), None);
}

/// H4.
#[test]
fn a_parameter_that_does_not_matter_is_ignored() {
    let body = json!({
        "n": 1, "logprobs": false, "tools": [], "response_format": {"type": "text"}, "text": {"format": {"type": "text"}},
        "stop": null, "audio": null, "temperature": 0.2, "top_p": 1, "seed": 7, "store": true, "metadata": {},
        "safety_identifier": "x", "parallel_tool_calls": true, "something_new": {"a": 1},
    });

    assert_eq!(refused(&body), None);
}

/// H4: the page lists every parameter of the table. `UPDATE_DOCS=1` writes the list.
#[test]
fn the_documented_list_of_parameters_is_that_of_the_table() {
    let row = |Parameter { name, refused_if, note }: &Parameter| match (refused_if, *note) {
        (Some(_), note) => format!("| `{name}` | refused if it is {note} |\n"),
        (None, "") => format!("| `{name}` | ignored |\n"),
        (None, note) => format!("| `{name}` | ignored: {note} |\n"),
    };
    let list: String = PARAMETERS.iter().map(row).collect();
    let list = format!("| parameter | what happens |\n| --- | --- |\n{list}");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openai.md");
    let page = std::fs::read_to_string(file).unwrap();
    let (begin, end) = ("<!-- parameters -->\n", "<!-- /parameters -->");
    let start = page.find(begin).unwrap() + begin.len();
    let stop = page.find(end).unwrap();

    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(file, format!("{}{list}{}", &page[..start], &page[stop..])).unwrap();
    } else {
        assert_eq!(&page[start..stop], list, "run: UPDATE_DOCS=1 cargo test --workspace docs");
    }
}
