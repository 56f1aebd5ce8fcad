use longhaul_protocol::{Answered, Note, Order, OrderId, OrderTaken, QuestionId, SessionId};
use proptest::prelude::*;

use super::*;

fn words(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn an_excerpt_shows_the_word_in_one_line() {
    let text = format!("{}the\n needle\tis here{}", "before ".repeat(100), " after".repeat(100));

    let excerpt = excerpt(&text, &words(&["needle"]));

    assert!(excerpt.contains("the needle is here"), "{excerpt}");
    assert!(excerpt.chars().count() <= 180, "{excerpt}");
}

#[test]
fn an_excerpt_shows_where_the_most_words_stand() {
    let filler = "nothing to see ".repeat(40);
    let text = format!("A gate. {filler}The passphrase of the harbour gate is osprey. {filler}A harbour.");

    let excerpt = excerpt(&text, &words(&["passphrase", "harbour", "gate"]));

    assert!(excerpt.contains("The passphrase of the harbour gate is osprey."), "{excerpt}");
}

/// A record can be found if a person could look for it.
#[test]
fn what_is_said_can_be_found_and_what_only_keeps_the_books_can_not() {
    let stream = StreamName::session(SessionId::from_bits(1));
    let record = |record: SessionRecord| {
        let new = record.encode();
        let (at, prev) = (At(0), longhaul_protocol::Hash::ZERO);
        let body = longhaul_protocol::Body::Here(new.body);
        Record { stream: stream.clone(), seq: 1, at, kind: new.kind, key: None, body, prev, hash: prev }
    };

    let said = SearchableText::from_record(&record(SessionRecord::Note(Note::new("remember the milk"))));
    let book_keeping = SearchableText::from_record(&record(SessionRecord::TurnStarted(
        longhaul_protocol::TurnStarted::new(1),
    )));

    let answer = |by| {
        let (id, answer) = (QuestionId::generate(), "withdrawn: the turn ended".to_owned());
        SearchableText::from_record(&record(SessionRecord::Answered(Answered { id, answer, by: Some(by) })))
    };
    assert!(answer(AnsweredBy::User).is_some() && answer(AnsweredBy::Runtime).is_none());
    let shown = OrderKind::AddContext { text: "what `make` printed".to_owned() };
    let shown = OrderTaken { inbox_through: 1, order: Order { id: OrderId::generate(), kind: shown } };
    let shown = SearchableText::from_record(&record(SessionRecord::OrderTaken(shown))).unwrap();
    assert_eq!(shown.text, "what `make` printed");
    assert!(!shown.describe().0.has(RecordFlags::SPEECH), "it is output");
    assert_eq!(said.unwrap().text, "remember the milk");
    assert!(book_keeping.is_none());
}

proptest! {
    #[test]
    fn no_text_and_no_search_makes_this_panic(text in any::<String>(), words in any::<BTreeSet<String>>()) {
        let _ = excerpt(&text, &words);
    }
}
