//! H2, H4: the numbers of events are derived from the records.

use longhaul_protocol::{At, Outcome, SessionId, TurnEnded};
use serde_json::Value;

use super::{ResponseFold, TurnStep};

fn numbers(steps: &[TurnStep]) -> Vec<(u64, String)> {
    let mut fold = ResponseFold::new(SessionId::from_bits(1));
    let events = steps.iter().flat_map(|step| fold.apply(step.clone()));
    let number = |event: &Value| event["sequence_number"].as_u64().unwrap();
    events.map(|event| (number(&event), event["type"].as_str().unwrap().to_owned())).collect()
}

fn started() -> Vec<TurnStep> {
    vec![TurnStep::Started { turn: 1, at: At(0), request: None }]
}

fn cut_text() -> Vec<TurnStep> {
    vec![TurnStep::Text("One ".to_owned()), TurnStep::Text("too".to_owned())]
}

fn answer() -> Vec<TurnStep> {
    vec![
        TurnStep::Text("One ".to_owned()),
        TurnStep::Text("two".to_owned()),
        TurnStep::MessageEnded { text: "One two".to_owned(), goes_on: false },
        TurnStep::Ended(TurnEnded {
            turn: 1,
            outcome: Outcome::Completed,
            limit: None,
            text: "One two".to_owned(),
            error: None,
            code: None,
            inbox_through: None,
        }),
    ]
}

/// H4.
#[test]
fn events_are_counted_without_a_gap() {
    let steps = [started(), answer()].concat();

    let numbers = numbers(&steps);

    assert_eq!(numbers.iter().map(|(number, _)| *number).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    assert_eq!(numbers[9].1, "response.completed");
}

/// H4: an answer that broke off is an item that ends as incomplete, and the next one has the numbers after it.
#[test]
fn an_answer_that_is_asked_for_again_leaves_no_gap() {
    let discarded = vec![TurnStep::Discarded { missed: vec!["far ".to_owned()], is_cut: false }];

    let numbers = numbers(&[started(), cut_text(), discarded, answer()].concat());

    assert_eq!(
        numbers.iter().map(|(number, _)| *number).collect::<Vec<_>>(),
        (0..numbers.len() as u64).collect::<Vec<_>>()
    );
    assert_eq!(
        (numbers[7].1.as_str(), numbers[8].1.as_str()),
        ("response.output_item.done", "response.output_item.added")
    );
}

/// H2: after a crash in the middle of an answer, what follows it has the same numbers in every stream.
#[test]
fn what_follows_a_cut_answer_has_the_same_numbers_whether_a_client_saw_that_answer_or_not() {
    let cut = vec![TurnStep::Discarded { missed: vec![], is_cut: true }];

    let live = numbers(&[started(), cut_text(), cut.clone(), answer()].concat());
    let replayed = numbers(&[started(), cut, answer()].concat());

    assert_eq!(live[..2], replayed[..2]);
    assert_eq!(live[6..], replayed[2..]);
    assert!(live[5].0 < live[6].0, "{live:?}");
}
