use super::*;

#[test]
fn yes_and_no_are_understood_as_people_type_them() {
    assert_eq!(["y", " YES\n", "n", "No"].map(yes_or_no), [Some("yes"), Some("yes"), Some("no"), Some("no")]);
    assert_eq!(["", "yes, but later", "nope"].map(yes_or_no), [None, None, None]);
}
