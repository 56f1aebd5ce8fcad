use longhaul_protocol::{At, JoinMode};

use super::*;
use crate::session::fixtures::{
    after, answered, attempt, attempt_id, broke, input, record, step, text, turn,
};

/// Progress in the middle of an answer, after five records.
fn during_an_answer() -> FollowProgress {
    FollowProgress::new("a", after(&[input(JoinMode::Join), turn(), step(1), attempt()]))
}

fn event(kind: EventKind) -> Line {
    Line::Event(Box::new(Event { seq: None, at: At(0), session: "a".to_owned(), turn: Some(1), kind }))
}

fn delta(text: &str) -> Line {
    event(EventKind::TextDelta { text: text.to_owned() })
}

fn so_far(text: &str) -> Line {
    event(EventKind::Partial { attempt: attempt_id(), text: text.to_owned() })
}

/// What is shown, in short.
fn shown(action: LineAction) -> String {
    match action {
        LineAction::Show(Followed::Live(event)) => words(&event.kind),
        other => format!("{other:?}"),
    }
}

fn words(kind: &EventKind) -> String {
    match kind {
        EventKind::TextDelta { text } => format!("+{text}"),
        EventKind::Partial { text, .. } => format!("={text}"),
        EventKind::Message { content, .. } => format!("message {content}"),
        other => format!("{other:?}"),
    }
}

/// What is shown of records that come.
fn of_records(progress: &mut FollowProgress, facts: &[longhaul_protocol::SessionRecord]) -> Vec<String> {
    let mut said = Vec::new();
    for fact in facts {
        let next = record(progress.head() + 1, fact);
        for followed in progress.apply_record(next).unwrap() {
            match followed {
                Followed::Live(event) | Followed::Record(_, Some(event)) => said.push(words(&event.kind)),
                Followed::Record(_, None) => {}
            }
        }
    }
    said
}

/// T14
#[test]
fn whoever_calls_twice_during_an_answer_is_shown_no_words_twice() {
    let mut progress = during_an_answer();

    let first = [so_far("On"), delta("ce "), so_far("Once upon"), so_far("Once upon"), delta(" a time")];
    let said = first.map(|line| shown(progress.apply_line(line, 5)));

    assert_eq!(said, ["=On", "+ce ", "+upon", "Nothing", "+ a time"]);
}

#[test]
fn what_was_said_before_records_that_were_read_already_is_passed_over_and_asked_for_again() {
    let mut progress = during_an_answer();

    let late = shown(progress.apply_line(delta("On"), 4));
    let with_a_gap = shown(progress.apply_line(delta("ce"), 5));
    let mended = shown(progress.apply_line(so_far("Once"), 5));
    let after = shown(progress.apply_line(delta(" more"), 5));

    assert_eq!([late, with_a_gap, mended, after], ["Nothing", "Resubscribe", "=Once", "+ more"]);
}

/// A session that no worker has loaded announces no record before its first input.
#[test]
fn an_accepted_input_is_shown_whatever_the_holder_has_announced() {
    let mut progress = during_an_answer();
    let id = longhaul_protocol::InputId::from_bits(1);

    let said = shown(progress.apply_line(event(EventKind::InputAccepted { input_seq: 7, id }), 0));

    assert!(said.starts_with("InputAccepted"), "{said}");
}

#[test]
fn words_of_an_answer_that_were_not_heard_come_before_its_message() {
    let mut progress = during_an_answer();
    progress.apply_line(delta("s"), 5);

    let heard_in_part = of_records(&mut progress, &[text(), answered(1)]);
    let not_heard = of_records(&mut during_an_answer(), &[text(), answered(1)]);

    assert_eq!(heard_in_part, ["+o", "message so"]);
    assert_eq!(not_heard, ["message so"], "the message is enough");
}

#[test]
fn text_of_an_attempt_that_is_over_is_not_shown() {
    let mut progress = during_an_answer();
    progress.apply_line(delta("s"), 5);
    of_records(&mut progress, &[broke(0)]);

    let old = shown(progress.apply_line(so_far("so"), 5));

    assert_eq!(old, "Nothing");
}

#[test]
fn lines_say_how_far_the_records_go_also_those_of_a_newer_version() {
    let mut progress = during_an_answer();
    let lines = [
        r#"{"head":9}"#,
        r#"{"seq":8,"at":"2026-01-01T00:00:00Z","session":"a","type":"turn_started"}"#,
        r#"{"seq":7,"type":"something_new"}"#,
        r#"{"type":"something_new"}"#,
        r#"{"type":"missed","events":3,"from":null}"#,
        "no JSON",
    ];

    let said = lines.map(|line| shown(progress.apply_line(Line::parse(line), 5)));

    assert_eq!(said, ["Read(9)", "Read(8)", "Read(7)", "Nothing", "Resubscribe", "Nothing"]);
}
