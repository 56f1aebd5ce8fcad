use super::*;

#[test]
fn a_call_with_a_former_name_becomes_a_call_of_the_tool_of_today() {
    let table = [
        ("task_list", "", "task_output", r#"{}"#),
        ("task_wait", r#"{"task_id":"task_1"}"#, "task_output", r#"{"task_id":"task_1","wait":60}"#),
        (
            "task_wait",
            r#"{"task_id":"task_1","seconds":5}"#,
            "task_output",
            r#"{"task_id":"task_1","wait":5}"#,
        ),
        (
            "history_search",
            r#"{"query":"a","limit":3}"#,
            "recall",
            r#"{"limit":3,"query":"a","scope":"session"}"#,
        ),
        ("memory_search", r#"{"query":"a"}"#, "recall", r#"{"query":"a","scope":"memory"}"#),
        ("history_read", r#"{"from":3}"#, "recall_read", r##"{"ref":"#3"}"##),
        ("history_read", r#"{"from":3,"to":9}"#, "recall_read", r##"{"ref":"#3-9"}"##),
        ("memory_read", r#"{"page":"cli:a#3"}"#, "recall_read", r##"{"ref":"cli:a#3"}"##),
        ("history_read", "{", "recall_read", "{"),
    ];

    for (name, arguments, now, expected) in table {
        let (found, arguments) = renamed_call(name, arguments).unwrap();

        assert_eq!((found, arguments.as_str()), (now, expected), "{name}");
    }
}

#[test]
fn any_other_call_stays_as_it_is() {
    assert_eq!(renamed_call("task_output", r#"{"task_id":"task_1"}"#), None);
    assert_eq!(renamed_call("no_such_tool", "{}"), None);
}
