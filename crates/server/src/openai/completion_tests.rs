//! A chat stream can't take text back.

use longhaul_agent::TurnStep;
use longhaul_protocol::{InputId, Outcome, TurnEnded};
use serde_json::{Value, json};

use super::{Completion, CompletionChunks, SentText};

fn message(text: &str) -> [TurnStep; 2] {
    let text = text.to_owned();
    [TurnStep::Text(text.clone()), TurnStep::MessageEnded { text, goes_on: false }]
}

fn ended() -> TurnStep {
    TurnStep::Ended(TurnEnded {
        turn: 1,
        outcome: Outcome::Completed,
        limit: None,
        text: String::new(),
        error: None,
        code: None,
        inbox_through: None,
    })
}

/// H4: the chunks are the same text as the answer that is not streamed.
#[test]
fn the_messages_of_a_turn_are_paragraphs_of_one_answer() {
    let completion = Completion::new(InputId::from_bits(1), "longhaul".to_owned(), None);
    let mut chunks = CompletionChunks::new(completion);
    let steps = message("One").into_iter().chain(message("Two")).chain([ended()]);

    let parts: Vec<Value> = steps.filter_map(|step| chunks.apply(step).unwrap()).collect();

    let contents: Vec<&Value> = parts.iter().map(|chunk| &chunk["choices"][0]["delta"]["content"]).collect();
    assert_eq!(contents, [&json!("One"), &json!("\n\nTwo")]);
    assert_eq!(chunks.completion.json()["choices"][0]["message"]["content"], "One\n\nTwo");
    let last = chunks.finish(true).unwrap();
    assert_eq!(last.len(), 1, "no provider told a usage: {last:?}");
    assert_eq!(last[0]["choices"][0]["finish_reason"], "stop");
}

/// H4.
#[test]
fn after_a_discarded_answer_the_stream_goes_on_where_the_new_one_agrees() {
    let mut sent = SentText::default();
    assert_eq!(sent.push("One "), Ok("One ".to_owned()));
    assert_eq!(sent.push("two "), Ok("two ".to_owned()));
    sent.discard();

    assert_eq!(sent.push("One "), Ok(String::new()));
    sent.discard();
    assert_eq!(sent.push("One "), Ok(String::new()));
    assert_eq!(sent.push("two thr"), Ok("thr".to_owned()));
    assert_eq!(sent.push("ee"), Ok("ee".to_owned()));
}

/// H4.
#[test]
fn a_new_answer_that_contradicts_what_was_sent_is_an_error() {
    let mut sent = SentText::default();
    sent.push("One ").unwrap();
    sent.discard();

    assert_eq!(sent.push("Two "), Err(()));
}

/// H4.
#[test]
fn a_new_answer_that_is_shorter_than_what_was_sent_is_an_error() {
    let mut sent = SentText::default();
    sent.push("One ").unwrap();
    sent.push("two ").unwrap();
    sent.discard();
    assert_eq!(sent.push("One "), Ok(String::new()));
    assert_eq!(sent.end(), Err(()));

    // The next message has nothing to repeat.
    assert_eq!(sent.push("Three"), Ok("Three".to_owned()));
    assert_eq!(sent.end(), Ok(()));
}
