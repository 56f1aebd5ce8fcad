//! H2, H4: the numbers of events are derived from the records.

use longhaul_protocol::{At, Outcome, SessionId, TurnEnded};
use serde_json::{Value, json};

use super::{ResponseFold, ResponseHead, TurnStep};

fn numbers(steps: &[TurnStep]) -> Vec<(u64, String)> {
    let head = ResponseHead {
        session: SessionId::from_bits(1),
        model: "longhaul".to_owned(),
        instructions: None,
        max_output_tokens: None,
        previous_response_id: None,
        metadata: json!({}),
        background: false,
        store: true,
    };
    let mut fold = ResponseFold::new(head, 0);
    let events = steps.iter().flat_map(|step| fold.apply(step.clone()));
    let number = |event: &Value| event["sequence_number"].as_u64().unwrap();
    events.map(|event| (number(&event), event["type"].as_str().unwrap().to_owned())).collect()
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
    let steps = [vec![TurnStep::Started { turn: 1, at: At(0) }], answer()].concat();

    let numbers = numbers(&steps);

    assert_eq!(numbers.iter().map(|(number, _)| *number).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    assert_eq!(numbers[9].1, "response.completed");
}

/// H2: after a crash in the middle of an answer, the cut answer has no events; the others have the numbers that they have
/// without the crash in between.
#[test]
fn what_follows_a_discarded_answer_has_the_same_numbers_whether_a_client_saw_that_answer_or_not() {
    let started = vec![TurnStep::Started { turn: 1, at: At(0) }];
    let seen = vec![TurnStep::Text("One ".to_owned()), TurnStep::Text("too".to_owned())];
    let discarded = vec![TurnStep::Discarded { had_text: true }];

    let live = numbers(&[started.clone(), seen.clone(), discarded.clone(), answer()].concat());
    let replayed = numbers(&[started, discarded, answer()].concat());

    assert_eq!(live[..2], replayed[..2]);
    assert_eq!(live[6..], replayed[2..]);
    assert!(live[5].0 < live[6].0, "{live:?}");
}
