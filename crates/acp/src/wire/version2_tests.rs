use super::*;
use crate::wire::update::{PlanEntry, ToolKind, ToolStatus};

#[test]
fn a_call_is_one_kind_of_update_and_its_diff_names_the_file() {
    let diff =
        |old_text| ToolContent::Diff { path: "/a.txt".to_owned(), old_text, new_text: "2\n".to_owned() };
    let call = ToolCall {
        tool_call_id: "c1".to_owned(),
        title: Some("edit a.txt".to_owned()),
        kind: Some(ToolKind::Edit),
        status: Some(ToolStatus::Completed),
        content: vec![diff(Some("1\n".to_owned())), diff(None)],
        ..ToolCall::default()
    };

    let shown = update(&SessionUpdate::ToolCall(call)).unwrap();

    assert_eq!(shown["sessionUpdate"], "tool_call_update");
    assert_eq!(
        shown["content"][0],
        json!({"type": "diff", "changes": [{"operation": "modify", "path": "/a.txt"}]})
    );
    assert_eq!(shown["content"][1]["content"]["text"], "```diff\n-1\n+2\n```");
    assert_eq!(shown["content"][2]["changes"][0]["operation"], "add");
}

#[test]
fn the_plan_has_an_id_the_mode_is_an_option_and_commands_have_types() {
    let entry = PlanEntry { content: "Rest".to_owned(), priority: "medium", status: "pending" };
    let plan = update(&SessionUpdate::Plan { entries: vec![entry] }).unwrap();
    let mode = update(&SessionUpdate::CurrentModeUpdate { current_mode_id: "auto" });
    let listed = vec![json!({"name": "compact", "description": "Compact", "input": {"hint": "focus"}})];
    let commands = update(&SessionUpdate::AvailableCommandsUpdate { available_commands: listed }).unwrap();

    assert_eq!(
        (plan["plan"]["type"].as_str(), plan["plan"]["planId"].as_str()),
        (Some("items"), Some("todo"))
    );
    assert_eq!(mode, None);
    let expected = json!({"type": "command", "name": "compact", "description": "Compact", "input": {"type": "text", "hint": "focus"}});
    assert_eq!(commands["availableCommands"], json!([expected]));
}
