use super::*;

/// Y2, Y6
#[test]
fn what_came_of_going_through_a_session_is_said() {
    let said =
        |parts, items| describe_extraction(Some(&Extraction { through: 12, parts, items, refused: vec![] }));

    assert_eq!(said(0, 0), "nothing is new since the session was last gone through (extracted through 12)");
    assert_eq!(said(1, 0), "nothing worth remembering was found (extracted through 12)");
    assert_eq!(said(2, 1), "1 item found (extracted through 12); longhaul memory shows what becomes of them");
    assert!(describe_extraction(None).contains("never used"));
}

#[test]
fn what_is_remembered_can_be_taken_back() {
    let changed = PageEdited { seq: 7, pages: vec!["core".to_owned()] };

    assert_eq!(
        remembered(&changed, " --scope agent-a"),
        "remembered in core (change 7; longhaul memory undo 7 --scope agent-a takes it back)"
    );
}
