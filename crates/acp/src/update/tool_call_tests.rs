use std::path::Path;

use longhaul_protocol::{CallId, Effect};
use longhaul_transcript::{Call, CallResult};
use serde_json::json;

use super::{diff_content, fenced, finished_call, plan_of, started_call};
use crate::wire::update::{Location, ToolContent, ToolKind, ToolStatus};

const FOLDER: &str = "/home/me/project";

fn call(name: &str, arguments: &serde_json::Value) -> Call {
    let (name, arguments, effect) = (name.to_owned(), arguments.to_string(), Some(Effect::Read));
    Call { call: CallId::from_bits(7), name, arguments, effect, result: None }
}

fn ended(call: Call, content: &str, diff: Option<&str>) -> Call {
    let (content, diff) = (content.to_owned(), diff.map(str::to_owned));
    let result = CallResult { content, is_error: false, diff, lines: None };
    Call { result: Some(result), ..call }
}

/// E6.
#[test]
fn a_call_has_a_kind_a_title_and_the_absolute_place_of_its_file() {
    let call = call("read_file", &json!({"path": "src/main.rs", "offset": 12}));

    let shown = started_call(&call, Path::new(FOLDER), ToolStatus::InProgress);

    assert_eq!(shown.kind, Some(ToolKind::Read));
    assert!(shown.title.unwrap().contains("src/main.rs"));
    assert_eq!(
        shown.locations,
        [Location { path: "/home/me/project/src/main.rs".to_owned(), line: Some(12) }]
    );
}

/// E6.
#[test]
fn an_edit_shows_the_lines_before_and_after() {
    let diff = "--- a/x.rs\n+++ b/x.rs\n@@ -3,3 +3,3 @@\n a\n-b\n+B\n c\n";
    let call = ended(call("edit_file", &json!({"path": "x.rs"})), "edited", Some(diff));

    let shown = finished_call(&call, Path::new(FOLDER));

    let path = "/home/me/project/x.rs".to_owned();
    let (old_text, new_text) = (Some("a\nb\nc\n".to_owned()), "a\nB\nc\n".to_owned());
    assert_eq!(shown.content, [ToolContent::Diff { path: path.clone(), old_text, new_text }]);
    assert_eq!(shown.locations, [Location { path, line: Some(3) }]);
    assert_eq!(shown.status, Some(ToolStatus::Completed));
}

#[test]
fn a_new_file_has_nothing_before() {
    let (content, _) = diff_content("--- /dev/null\n+++ b/n\n@@ -0,0 +1,1 @@\n+x\n", Path::new(FOLDER));

    let path = "/home/me/project/n".to_owned();
    assert_eq!(content, [ToolContent::Diff { path, old_text: None, new_text: "x\n".to_owned() }]);
}

/// P8.
#[test]
fn what_a_tool_printed_stays_in_its_fence() {
    assert_eq!(fenced("a ```` b"), "`````\na ```` b\n`````");
    assert_eq!(fenced("a\n"), "```\na\n```");
}

#[test]
fn a_todo_list_is_the_plan_once_it_is_set() {
    let arguments =
        json!({"items": [{"text": "One", "status": "done"}, {"text": "Two", "status": "in_progress"}]});
    let call = call("todo", &arguments);
    assert_eq!(plan_of(&call), None);

    let plan = plan_of(&ended(call, "ok", None)).unwrap();

    let entries: Vec<_> = plan.iter().map(|entry| (entry.content.as_str(), entry.status)).collect();
    assert_eq!(entries, [("One", "completed"), ("Two", "in_progress")]);
}
