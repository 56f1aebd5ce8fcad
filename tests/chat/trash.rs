//! A session that is open, and what is put away.

use longhaul_journal::trash_session;
use longhaul_testkit::Terminal;
use serde_json::json;

use crate::Desk;

/// S5: what somebody talks in is not put away by it, however old it is.
#[test]
fn a_conversation_does_not_put_away_its_own_session() {
    let desk = Desk::new(&json!(["One.", "Two."]));
    desk.run(&["run", "-s", "old", "hi"]);
    desk.run(&["run", "-s", "new", "hi"]);
    desk.configure("[sessions]\nkeep = 1\n");

    let (code, out, errors) = desk.talk(&["-s", "old"], "/session prune\nonce more\n");

    assert_eq!((code, out.as_str()), (0, "Two.\n"), "{errors}");
    assert!(errors.contains("nothing to prune"), "{errors}");
    let listed = desk.json(&["sessions", "list", "--json"]);
    assert_eq!(listed[0]["key"], "old", "{listed}");
}

/// S5: what is said to a session in the trash would go with it.
#[test]
fn nothing_is_said_to_a_session_that_was_put_away_meanwhile() {
    let desk = Desk::new(&json!(["One.", "Two."]));
    desk.run(&["run", "-s", "my notes", "hi"]);
    let mut terminal = Terminal::start(desk.command(&["-s", "my notes"]));
    terminal.wait_to_see("(1 turn so far)");
    desk.with_journal(|journal| async move { trash_session(&*journal, "my notes").await.unwrap() });

    terminal.keys("once more\r");
    terminal.wait_to_see("restore 'my notes'");
    let (code, _, errors) = desk.run(&["sessions", "restore", "my notes"]);
    terminal.keys("and again\r");
    terminal.wait_to_see("Two.");

    assert_eq!(code, 0, "{errors}");
    let said: Vec<_> =
        desk.records("my notes", "input_taken").iter().map(|body| body["text"].clone()).collect();
    assert_eq!(said, ["hi", "and again"]);
}

/// S3: a variable of a script that was never set names no session.
#[test]
fn an_empty_name_is_nobodys() {
    let desk = Desk::new(&json!(["One."]));
    desk.run(&["run", "-s", "only", "hi"]);

    for arguments in [&["sessions", "delete", ""][..], &["sessions", "show", " "], &["save", "-s", ""]] {
        let (code, out, errors) = desk.run(arguments);

        assert_eq!(code, 2, "{arguments:?}: {out}{errors}");
    }
    assert_eq!(desk.json(&["sessions", "list", "--json"])[0]["key"], "only");
}

/// S3, S4: what is printed to go on with can be copied, whatever the key is.
#[test]
fn commands_that_are_printed_lead_where_they_say() {
    let desk = Desk::new(&json!(["One."]));
    desk.run(&["run", "-s", "it's mine", "hi"]);

    let (_, forked, _) = desk.run(&["fork", "-s", "it's mine"]);
    let (_, deleted, _) = desk.run(&["sessions", "delete", "it's mine"]);

    assert!(forked.contains(r"longhaul -s 'it'\''s mine-fork'"), "{forked}");
    assert!(deleted.contains(r"longhaul sessions restore 'it'\''s mine'"), "{deleted}");
}
