//! A conversation whose lines come from a pipe.

use serde_json::json;

use crate::Desk;

/// S1: the end of input finishes what was entered, then leaves.
#[test]
fn each_line_is_a_turn_and_the_end_of_input_leaves() {
    let desk = Desk::new(&json!(["One.", "Two."]));

    let (code, out, errors) = desk.talk(&[], "first\n\nsecond");

    assert_eq!((code, out.as_str()), (0, "One.\nTwo.\n"), "{errors}");
    assert_eq!(desk.recorded("input_taken", "text"), [json!("first"), json!("second")]);
}

/// S6
#[test]
fn commands_are_answered_here_and_two_slashes_send_one() {
    let desk = Desk::new(&json!(["Sent."]));

    let (code, out, errors) =
        desk.talk(&[], "/help\n/stauts\n/cancel\n/model\n//etc/hosts?\n/exit\nnever read\n");

    assert_eq!((code, out.as_str()), (0, "Sent.\n"), "{errors}");
    assert!(errors.contains("/quit") && errors.contains("did you mean /status?"), "{errors}");
    assert!(errors.contains("no turn is running") && errors.contains("script.json"), "{errors}");
    assert_eq!(desk.recorded("input_taken", "text"), [json!("/etc/hosts?")]);
}

/// S2
#[test]
fn a_folder_opens_its_session_again_and_new_begins_another() {
    let desk = Desk::new(&json!(["One.", "Two."]));

    let nothing = desk.talk(&[], "");
    let before = desk.keys();
    let first = desk.talk(&[], "hi\n");
    let again = desk.talk(&[], "hi\n");
    let other = desk.talk(&["--new"], "hi\n");

    assert_eq!((nothing.0, before.len()), (0, 0), "no empty session is stored");
    assert!(first.2.contains("(new)"), "{}", first.2);
    assert!(again.2.contains("(1 turn so far)"), "{}", again.2);
    assert_eq!((again.1.as_str(), other.1.as_str()), ("Two.\n", "One.\n"));
    let keys = desk.keys();
    assert!(keys[0].starts_with("cli:work-") && keys[1] == format!("{}-2", keys[0]), "{keys:?}");
}

#[test]
fn a_turn_that_fails_is_told_with_the_ways_on_and_gives_its_exit_code() {
    let desk = Desk::new(&json!([{"text": "half", "error": "boom"}]));

    let (code, out, errors) = desk.talk(&[], "hi\n/retry\n");

    assert_eq!((code, out.as_str()), (1, ""), "{errors}");
    assert_eq!(errors.matches("boom").count(), 2, "{errors}");
    assert!(
        errors.contains("to retry: /retry") && errors.contains("to continue the answer: /continue"),
        "{errors}"
    );
}

/// T12
#[test]
fn what_is_open_is_told_joined_or_resumed() {
    // The line that joins has to reach the inbox while the turn runs, also on a machine that has much else to do.
    let slow = |text: &str| json!([{"text": text, "wait_ms": 1_000}]);
    let desk = Desk::new(&slow("One."));
    let open = |desk: &Desk| {
        let sent = desk.run(&["send", "-s", &desk.key(), "waiting"]);
        assert_eq!(sent.0, 0, "{}", sent.2);
    };

    open(&desk);
    let left = desk.talk(&[], "");
    let joined = desk.talk(&[], "more\n");
    let other = Desk::new(&slow("Two."));
    open(&other);
    let resumed = other.talk(&["--resume"], "");

    assert_eq!((left.0, left.2.contains("longhaul resume cli:")), (2, true), "{}", left.2);
    assert_eq!((joined.0, joined.1.as_str()), (0, "One.\n"), "{}", joined.2);
    assert!(joined.2.contains("your messages join it"), "{}", joined.2);
    assert_eq!((resumed.0, resumed.1.as_str()), (0, "Two.\n"), "{}", resumed.2);
}
