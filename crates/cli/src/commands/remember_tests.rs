use super::*;

/// Y2, Y6
#[test]
fn what_came_of_going_through_a_session_is_said() {
    let said =
        |parts, items| describe_extraction(Some(&Extraction { through: 12, parts, items, refused: vec![] }));

    assert_eq!(said(0, 0), "nothing new to remember (read up to entry 12)");
    assert_eq!(said(1, 0), "nothing worth remembering (read up to entry 12)");
    assert_eq!(said(2, 1), "found 1 item (read up to entry 12); see `longhaul memory`");
    assert!(describe_extraction(None).contains("the session is empty"));
}

#[test]
fn what_is_remembered_can_be_taken_back() {
    let changed = PageEdited { seq: 7, pages: vec!["core".to_owned()] };

    assert_eq!(
        remembered(&changed, " --scope agent-a"),
        "remembered in core (change 7; to undo: longhaul memory undo 7 --scope agent-a)"
    );
}
