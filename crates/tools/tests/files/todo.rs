//! todo.

use longhaul_protocol::{Todo, TodoStatus};
use serde_json::json;

use crate::workplace::{Workplace, content, error};

#[tokio::test]
async fn the_list_is_replaced_and_shown() {
    let place = Workplace::new();
    let items = json!([{ "text": "look", "status": "done" }, { "text": "write", "status": "in_progress" }]);

    let finished = place.call("todo", json!({ "items": items })).await;

    let expected = vec![
        Todo { text: "look".to_owned(), status: TodoStatus::Done },
        Todo { text: "write".to_owned(), status: TodoStatus::InProgress },
    ];
    assert_eq!(finished.todo, Some(expected));
    assert_eq!(content(finished), "[x] look\n[>] write");
    assert_eq!(place.call("todo", json!({ "items": [] })).await.todo, Some(vec![]));
}

#[tokio::test]
async fn a_list_that_is_too_long_is_refused() {
    let place = Workplace::new();
    let item = json!({ "text": "x", "status": "pending" });

    assert!(error(place.call("todo", json!({ "items": vec![item; 201] })).await).contains("at most 200"));
    for text in [String::new(), "x".repeat(2_001)] {
        let items = json!([{ "text": text, "status": "pending" }]);
        assert!(error(place.call("todo", json!({ "items": items })).await).contains("`items[0].text`"));
    }
}
