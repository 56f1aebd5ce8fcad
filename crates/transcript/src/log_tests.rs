use longhaul_protocol::{At, EventKind};

use super::*;
use crate::fold::Transcript;

fn logged(event: &Event) -> Option<String> {
    let updates = Transcript::new().apply(event);
    updates.iter().find_map(|update| log_line(event, update, |id, _| format!("answer {id}")))
}

fn warning(session: &str, text: &str) -> Event {
    let kind = EventKind::Warning { code: "memory_mirror".to_owned(), text: text.to_owned() };
    Event { seq: None, at: At(0), session: session.to_owned(), turn: None, kind }
}

#[test]
fn what_concerns_no_session_stands_alone() {
    let lines = ["", "a"].map(|session| logged(&warning(session, "it is a link")));

    assert_eq!(lines.map(Option::unwrap), ["warning: it is a link", "a warning: it is a link"]);
}

#[test]
fn a_command_that_a_warning_names_is_shown_to_its_end() {
    let path = format!("/home/somebody/{}/core.md", "a-folder-with-a-long-name".repeat(5));
    let advice = format!("{path} was changed by hand: `longhaul memory edit core --file {path}` takes it in");

    let line = logged(&warning("", &advice)).unwrap();

    assert!(line.ends_with("takes it in"), "{line}");
}
