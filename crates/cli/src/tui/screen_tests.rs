use longhaul_protocol::{At, Event};

use super::*;

fn words(text: &str) -> ScreenUpdate {
    let kind = EventKind::TextDelta { text: text.to_owned() };
    ScreenUpdate::Watched(Watched::Event(Event {
        seq: None,
        at: At(0),
        session: "s".to_owned(),
        turn: Some(1),
        kind,
    }))
}

/// What came, as text.
fn taken(incoming: &Receiver<ScreenInput>) -> Vec<String> {
    let text = |incoming| match incoming {
        ScreenInput::Delta(pending) => match lock(&pending).take() {
            Some(Watched::Event(Event { kind: EventKind::TextDelta { text }, .. })) => text,
            _ => panic!("no words"),
        },
        ScreenInput::Update(ScreenUpdate::Note(text)) => format!("note: {text}"),
        _ => panic!("something else"),
    };
    incoming.try_iter().map(text).collect()
}

#[test]
fn words_that_wait_are_one_piece_and_stay_in_order() {
    let (send, incoming) = channel();
    let handle = ScreenHandle::new(send);

    for tell in [words("one "), words("two "), ScreenUpdate::Note("between".to_owned()), words("three ")] {
        handle.send(tell);
    }

    assert_eq!(taken(&incoming), ["one two ", "note: between", "three "]);
}

#[test]
fn words_after_those_that_were_taken_in_are_a_piece_of_their_own() {
    let (send, incoming) = channel();
    let handle = ScreenHandle::new(send);
    handle.send(words("one "));
    let before = taken(&incoming);

    handle.send(words("two "));
    handle.send(words(&"x".repeat(MAX_DELTA_BYTES)));
    handle.send(words("three "));

    assert_eq!(before, ["one "]);
    assert_eq!(taken(&incoming), [format!("two {}", "x".repeat(MAX_DELTA_BYTES)), "three ".to_owned()]);
}
