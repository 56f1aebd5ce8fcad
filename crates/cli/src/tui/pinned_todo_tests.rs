use longhaul_protocol::Effect;

use super::*;

fn started(call: u128, arguments: &str) -> EventKind {
    let (name, arguments) = ("todo".to_owned(), arguments.to_owned());
    EventKind::ToolStarted { call_id: CallId::from_bits(call), name, arguments, effect: Effect::Idempotent }
}

fn finished(call: u128, is_error: bool) -> EventKind {
    let (name, content) = ("todo".to_owned(), String::new());
    EventKind::ToolFinished {
        call_id: CallId::from_bits(call),
        name,
        is_error,
        content,
        diff: None,
        lines: None,
        report: Box::default(),
    }
}

const LIST: &str = r#"{"items":[{"text":"a","status":"done"},{"text":"b","status":"in_progress"},{"text":"c","status":"pending"}]}"#;

#[test]
fn a_list_counts_once_its_call_has_ended_well() {
    let mut todo = PinnedTodo::default();
    let shown = |todo: &PinnedTodo, room| -> Vec<String> {
        todo.lines(40, room).iter().map(ToString::to_string).collect()
    };

    todo.apply_event(&started(1, LIST));
    assert!(shown(&todo, 30).is_empty());
    todo.apply_event(&finished(2, false));
    assert!(shown(&todo, 30).is_empty());
    todo.apply_event(&finished(1, false));
    assert_eq!(shown(&todo, 30), ["▸ b  1 of 3 done", "☐ c"]);
    assert_eq!(shown(&todo, 8), ["▸ b  1 of 3 done, 1 more"]);
    assert!(shown(&todo, 7).is_empty());
    todo.apply_event(&started(3, r#"{"items":[]}"#));
    todo.apply_event(&finished(3, true));
    assert_eq!(shown(&todo, 30).len(), 2, "a call that failed changes nothing");
}

#[test]
fn plain_marks_are_for_terminals_that_can_show_no_others() {
    assert_eq!(marks_of(Some("de_DE.UTF-8"), Some("xterm")), TodoMarks::Unicode);
    assert_eq!(marks_of(None, None), TodoMarks::Unicode);
    assert_eq!(marks_of(Some("C.utf8"), None), TodoMarks::Unicode);
    assert_eq!(marks_of(Some("POSIX"), Some("xterm")), TodoMarks::Ascii);
    assert_eq!(marks_of(Some("de_DE.ISO-8859-1"), None), TodoMarks::Ascii);
    assert_eq!(marks_of(Some("en_GB.UTF-8"), Some("linux")), TodoMarks::Ascii);
}
