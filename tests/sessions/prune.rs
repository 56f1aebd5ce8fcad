//! S5, through the real program.

use serde_json::json;

use crate::Desk;

/// S5: off until set; a dry run says what would be done, and changes nothing.
#[test]
fn sessions_beyond_the_limit_are_put_away() {
    let desk = Desk::new(&json!(["One."]));
    for key in ["a", "b", "c", "d"] {
        desk.say(key, "hello");
    }
    desk.json(&["sessions", "pin", "a", "--json"]);

    let off = desk.json(&["sessions", "prune", "--json"]);
    desk.configure("[sessions]\nkeep = 2\n");
    let said = desk.json(&["sessions", "prune", "--dry-run", "--json"]);
    let (_, told, _) = desk.run(&["sessions", "prune", "--dry-run"]);
    let before = desk.keys(&[]);
    let done = desk.json(&["sessions", "prune", "--json"]);

    assert_eq!(off["sessions"], json!([]));
    assert_eq!(said["sessions"][0]["key"], "b");
    assert_eq!(
        (said["sessions"][0]["reason"].clone(), said["sessions"][1]["key"].clone()),
        (json!("too_many"), json!("c"))
    );
    assert!(told.contains("b: would be moved to the trash") && told.contains("sessions.keep"), "{told}");
    assert_eq!(before, ["a", "d", "c", "b"]);
    assert_eq!(done, said);
    assert_eq!(desk.keys(&[]), ["a", "d"]);
    assert_eq!(desk.keys(&["--all"]).len(), 4);
    assert!(desk.is_sound());
}
