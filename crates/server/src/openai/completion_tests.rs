//! A chat stream can't take text back.

use super::SentText;

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

    // The next message owes nothing.
    assert_eq!(sent.push("Three"), Ok("Three".to_owned()));
    assert_eq!(sent.end(), Ok(()));
}
