use super::*;
use crate::wrap::spans_width;

fn list(items: &[(&str, TodoStatus)]) -> Vec<Todo> {
    items.iter().map(|(text, status)| Todo { text: (*text).to_owned(), status: *status }).collect()
}

fn shown(rows: &[StyledLine]) -> String {
    rows.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn work() -> Vec<Todo> {
    use TodoStatus::{Done, InProgress, Pending};
    list(&[
        ("find the cause", Done),
        ("write a test that fails", Pending),
        ("correct the parser", InProgress),
        ("run all tests", Pending),
    ])
}

#[test]
fn a_list_is_shown_with_a_mark_before_each_item() {
    insta::assert_snapshot!(shown(&todo_lines(&work(), TodoMarks::Unicode, 20)), @r"
    ☑ find the cause
    ☐ write a test
      that fails
    ▸ correct the
      parser
    ☐ run all tests
    ");
    insta::assert_snapshot!(shown(&todo_lines(&work(), TodoMarks::Ascii, 40)), @r"
    [x] find the cause
    [ ] write a test that fails
    [>] correct the parser
    [ ] run all tests
    ");
}

#[test]
fn a_long_list_is_shown_around_its_current_item() {
    let items: Vec<Todo> = (1..=60)
        .map(|number| Todo {
            text: format!("step {number}"),
            status: if number < 20 { TodoStatus::Done } else { TodoStatus::Pending },
        })
        .collect();

    let rows = todo_lines(&items, TodoMarks::Unicode, 40);

    assert_eq!(rows[0].to_string(), "  … 16 items before");
    assert_eq!(rows[1].to_string(), "  ☑ step 17");
    assert_eq!(rows[rows.len() - 1].to_string(), "  … 24 items more");
    assert_eq!(rows.len(), 22);
}

#[test]
fn the_pinned_list_begins_with_what_is_done_now_and_ends_with_the_list() {
    insta::assert_snapshot!(shown(&pinned_todo_lines(&work(), TodoMarks::Unicode, 60, 2)), @r"
    ▸ correct the parser  1 of 4 done, 1 more
    ☐ write a test that fails
    ");
    assert_eq!(shown(&pinned_todo_lines(&work(), TodoMarks::Unicode, 12, 1)), "▸ correct t…");
    assert!(pinned_todo_lines(&work(), TodoMarks::Unicode, 60, 0).is_empty());
    assert!(pinned_todo_lines(&[], TodoMarks::Unicode, 60, 3).is_empty());
    assert!(pinned_todo_lines(&list(&[("a", TodoStatus::Done)]), TodoMarks::Unicode, 60, 3).is_empty());
}

#[test]
fn only_the_arguments_of_a_todo_call_are_a_list() {
    let arguments = r#"{"items":[{"text":"a","status":"in_progress"}]}"#;

    assert_eq!(todo_of_call("todo", arguments), Some(list(&[("a", TodoStatus::InProgress)])));
    assert_eq!(todo_of_call("exec", arguments), None);
    assert_eq!(todo_of_call("todo", r#"{"items":[{"text":"a"}]}"#), None);
    assert_eq!(todo_of_call("todo", "[]"), None);
}

#[test]
fn wide_and_right_to_left_items_fit_into_any_width() {
    let items = list(&[
        ("修正する、とても長い項目", TodoStatus::Pending),
        ("\u{202e}מימין לשמאל\u{1b}[31m", TodoStatus::InProgress),
    ]);
    for width in [1, 2, 3, 20] {
        let pinned = pinned_todo_lines(&items, TodoMarks::Unicode, width, 5);
        for row in todo_lines(&items, TodoMarks::Unicode, width).iter().chain(&pinned) {
            assert!(spans_width(&row.spans) <= usize::from(width), "{width}: {row}");
            assert!(!row.to_string().contains(['\u{1b}', '\u{202e}']));
        }
    }
}
