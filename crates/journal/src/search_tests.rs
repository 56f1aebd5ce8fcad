use longhaul_protocol::{Note, SessionId};
use proptest::prelude::*;

use super::*;

#[test]
fn characters_of_scripts_without_spaces_stand_apart() {
    assert_eq!(space_out("用db库"), " 用 db 库 ");
    assert_eq!(space_out("plain text"), "plain text");
}

#[test]
fn an_excerpt_shows_the_word_in_one_line() {
    let text = format!("{}the\n needle\tis here{}", "before ".repeat(100), " after".repeat(100));

    let excerpt = excerpt(&text, "Needle");

    assert!(excerpt.contains("the needle is here"), "{excerpt}");
    assert!(excerpt.chars().count() <= 180, "{excerpt}");
}

#[test]
fn an_excerpt_shows_where_the_most_words_stand() {
    let filler = "nothing to see ".repeat(40);
    let text = format!("A gate. {filler}The passphrase of the harbour gate is osprey. {filler}A harbour.");

    let excerpt = excerpt(&text, "passphrase: \"harbour\" gate");

    assert!(excerpt.contains("The passphrase of the harbour gate is osprey."), "{excerpt}");
}

/// A record can be found if a person could look for it.
#[test]
fn what_is_said_can_be_found_and_what_only_keeps_the_books_can_not() {
    let stream = StreamName::session(SessionId::from_bits(1));
    let record = |record: SessionRecord| {
        let new = record.encode();
        let (at, prev) = (longhaul_protocol::At(0), longhaul_protocol::Hash::ZERO);
        let body = longhaul_protocol::Body::Here(new.body);
        Record { stream: stream.clone(), seq: 1, at, kind: new.kind, key: None, body, prev, hash: prev }
    };

    let said = SearchableText::from_record(&record(SessionRecord::Note(Note::new("remember the milk"))));
    let book_keeping =
        SearchableText::from_record(&record(SessionRecord::TurnStarted(longhaul_protocol::TurnStarted {
            turn: 1,
        })));

    assert_eq!(said.unwrap().text, "remember the milk");
    assert!(book_keeping.is_none());
}

proptest! {
    #[test]
    fn no_text_and_no_search_makes_these_panic(text in any::<String>(), words in any::<String>()) {
        let _ = excerpt(&text, &words);
        prop_assert!(terms(&words).all(|term| term.chars().any(char::is_alphanumeric)));
        let kept: String = space_out(&text).chars().filter(|character| *character != ' ').collect();
        let expected: String = text.chars().filter(|character| *character != ' ').collect();
        prop_assert_eq!(kept, expected);
    }
}

/// S2: a session in which a word was said very often does not hide another one.
#[tokio::test]
async fn a_session_with_many_hits_hides_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let journal = crate::SqliteJournal::open(&crate::Home::create(folder.path()).unwrap()).await.unwrap();
    let (loud, quiet) = (SessionId::generate(), SessionId::generate());
    // The best hits come first, and a long text is a worse one.
    for (session, notes, more) in [(loud, 20, ""), (quiet, 1, &*" and pears".repeat(100))] {
        for number in 0..notes {
            let note = SessionRecord::Note(Note::new(format!("apples {number}{more}"))).encode();
            journal.append(crate::Append::to(&StreamName::session(session)).record(note)).await.unwrap();
        }
    }

    let found = find_sessions(&journal, "apples", 5).await.unwrap();

    assert_eq!(found, HashSet::from([loud, quiet]));
    journal.close().await;
}
