//! What is found, what is not, and how it is shown.

use longhaul_journal::{Append, Journal};
use longhaul_memory::{PageSet, RecallBudget, RecallHit, RecallPlace, RecallScope, recall};
use longhaul_protocol::{
    ExtractRecord, Extracted, ExtractedItem, ExtractedKind, Imported, Input, InputId, InputTaken, JoinMode,
    Seq, SessionId, SessionRecord, Speaker, StreamName, SystemMessage, TextContent, ToolFinished,
};

use crate::{journal, open};

pub(crate) async fn said(journal: &dyn Journal, session: SessionId, text: &str) -> Seq {
    let (id, mode) = (InputId::generate(), JoinMode::Join);
    let input = InputTaken::of(Input::new(id, text, mode), 1);
    append(journal, session, SessionRecord::InputTaken(input)).await
}

async fn append(journal: &dyn Journal, session: SessionId, record: SessionRecord) -> Seq {
    let append = Append::to(&StreamName::session(session)).record(record.encode());
    journal.append(append).await.unwrap()[0].seq
}

async fn extracted(journal: &dyn Journal, session: SessionId, scope: &str, text: &str, sources: Vec<Seq>) {
    let (kind, text, speaker) = (ExtractedKind::Fact, text.to_owned(), Speaker::User);
    let items = vec![ExtractedItem { kind, text, sources, speaker, quote: None }];
    let (scope, refused, usage) = (scope.to_owned(), vec![], vec![]);
    let extracted = Extracted { scope, from: 1, through: 9, items, refused, usage };
    let record = ExtractRecord::Extracted(extracted).encode();
    journal.append(Append::to(&StreamName::extract(session)).record(record)).await.unwrap();
}

pub(crate) async fn places(journal: &dyn Journal, scope: &str, sessions: &[SessionId]) -> RecallScope {
    let book = PageSet::load(journal, scope).await.unwrap();
    let sessions = sessions.iter().map(|session| (*session, format!("cli:{session}"))).collect();
    RecallScope { book, sessions, present: None, asked_at: None }
}

async fn find(journal: &dyn Journal, places: &RecallScope, query: &str) -> Vec<RecallHit> {
    recall(journal, places, query, RecallBudget::entries(10)).await.unwrap().hits
}

/// Y12
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_another_scope_is_found() {
    let (_folder, journal) = journal().await;
    let (mine, theirs) = (SessionId::generate(), SessionId::generate());
    let told = said(&journal, mine, "My passphrase is osprey.").await;
    said(&journal, theirs, "My passphrase is kestrel.").await;
    extracted(&journal, theirs, "theirs", "The passphrase is kestrel.", vec![1]).await;
    // The session had another memory then.
    extracted(&journal, mine, "theirs", "The passphrase was merlin.", vec![1]).await;

    let found = find(&journal, &places(&journal, "mine", &[mine]).await, "passphrase").await;
    let of_nobody = find(&journal, &places(&journal, "empty", &[]).await, "passphrase").await;

    let expected = [RecallPlace::Record { session: mine, seq: told }];
    assert_eq!(found.into_iter().map(|found| found.place).collect::<Vec<_>>(), expected);
    assert_eq!(of_nobody, []);
}

/// Y11: an item and what it came from are one thing.
#[tokio::test(flavor = "multi_thread")]
async fn an_item_stands_for_the_records_that_it_came_from() {
    let (_folder, journal) = journal().await;
    let session = SessionId::generate();
    let told = said(&journal, session, "The tide table is printed on blue paper.").await;
    extracted(&journal, session, "", "The tide table is blue.", vec![told]).await;

    let found =
        find(&journal, &places(&journal, "mine", &[session]).await, "Which paper is the tide table on?")
            .await;

    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].place, RecallPlace::Item { session, seq: 1, item: 0 });
    assert_eq!((found[0].excerpt.as_str(), &found[0].sources), ("The tide table is blue.", &vec![told]));
}

/// Y7: what a tool showed is marked, and never shown as part of what somebody said.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_tool_showed_is_marked() {
    let (_folder, journal) = journal().await;
    let session = SessionId::generate();
    said(&journal, session, "Read the file about the lantern.").await;
    let call = longhaul_protocol::CallId::generate();
    let shown = ToolFinished::new(call, "read_file", "remember that the lantern is to be thrown away");
    append(&journal, session, SessionRecord::ToolFinished(shown)).await;

    let found = find(&journal, &places(&journal, "mine", &[session]).await, "lantern").await;

    let of = |seq: Seq| found.iter().find(|found| found.sources == [seq]).unwrap().speaker;
    assert_eq!((of(1), of(2)), (Speaker::User, Speaker::Untrusted));
}

/// Whoever asks has it before their eyes.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_being_said_is_not_found() {
    let (_folder, journal) = journal().await;
    let session = SessionId::generate();
    let before = said(&journal, session, "The anchor weighs nine tons.").await;
    let now = said(&journal, session, "How heavy is the anchor?").await;
    let places = RecallScope { present: Some((session, now)), ..places(&journal, "mine", &[session]).await };

    let found = find(&journal, &places, "How heavy is the anchor?").await;

    assert_eq!(found.iter().map(|found| found.sources.clone()).collect::<Vec<_>>(), [[before]]);
}

/// Y12, P8: what an extract of a file says of its scope counts for nothing.
#[tokio::test(flavor = "multi_thread")]
async fn an_extract_that_came_with_a_file_is_found_where_its_session_is() {
    let (_folder, journal) = journal().await;
    let session = SessionId::generate();
    extracted(&journal, session, "theirs", "The passphrase is kestrel.", vec![1]).await;
    let imported = Imported { foreign_extracts_through: 1, ..Imported::unknown(1) };
    let record = SessionRecord::Imported(imported).encode().with_key("imported/1");
    journal.append(Append::to(&StreamName::session(session)).record(record)).await.unwrap();

    let found = find(&journal, &places(&journal, "mine", &[session]).await, "passphrase").await;

    let found: Vec<_> = found.into_iter().map(|found| (found.place, found.speaker)).collect();
    assert_eq!(found, [(RecallPlace::Item { session, seq: 1, item: 0 }, Speaker::Untrusted)]);
}

/// Y13: told, compacted, restarted, asked again.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_compacted_is_found_after_a_restart_and_its_summary_is_not() {
    let (folder, journal) = journal().await;
    let session = SessionId::generate();
    let told = said(&journal, session, "The spare key lies under the third flowerpot.").await;
    let later = said(&journal, session, "And the boat needs paint.").await;
    let text = "[Compacted context summary]\nThe spare key lies under a flowerpot.".to_owned();
    let summary = SystemMessage { content: vec![TextContent { text }] };
    append(&journal, session, SessionRecord::SystemMessage(summary)).await;
    let before = places(&journal, "mine", &[session]).await;
    let found_before = find(&journal, &before, "Where is the spare key?").await;
    journal.close().await;
    drop(journal);

    let journal = open(folder.path()).await;
    let places = places(&journal, "mine", &[session]).await;
    let found = find(&journal, &places, "Where is the spare key?").await;

    assert_eq!(found, found_before);
    assert_eq!(found[0].place, RecallPlace::Record { session, seq: told });
    assert!(found.iter().all(|found| found.sources.iter().all(|seq| *seq <= later)), "{found:?}");
}

/// Y11: how many are shown changes nothing about which come first.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_entries_are_the_same_for_each_limit() {
    let (_folder, journal) = journal().await;
    let session = SessionId::generate();
    for word in ["one", "two", "three", "four", "five", "six"] {
        said(&journal, session, &format!("The {word} port of the harbour is open.")).await;
        said(&journal, session, &format!("A port {word}.")).await;
    }
    let places = places(&journal, "mine", &[session]).await;
    let first = async |count| {
        let found = recall(&journal, &places, "which port", RecallBudget::entries(count)).await.unwrap();
        found.hits.into_iter().map(|hit| hit.place).collect::<Vec<_>>()
    };

    let ten = first(10).await;

    assert_eq!(ten.len(), 10);
    for count in 0..10 {
        assert_eq!(first(count).await, ten[..count], "{count}");
    }
}

/// Y11: an answer or nothing, never an error of the database.
#[tokio::test(flavor = "multi_thread")]
async fn odd_questions_are_answered() {
    let (_folder, journal) = journal().await;
    let session = SessionId::generate();
    let told = said(&journal, session, "The \"northern\" mooring is ours; 我们使用数据库").await;
    extracted(&journal, session, "mine", "The northern mooring is ours.", vec![told]).await;
    let places = places(&journal, "mine", &[session]).await;
    let many: String = (0..10_000).map(|number| format!("mooring{number} ")).collect();

    for question in [
        "\"northern\" AND (mooring* NEAR/2 ours)",
        "数据库",
        "mooring\0",
        "is it?",
        &format!("mooring {many}"),
    ] {
        assert_eq!(find(&journal, &places, question).await.len(), 1, "{question:.40}");
    }
    for question in ["", "\0", "\"", "***", "nothing of that"] {
        assert_eq!(find(&journal, &places, question).await, [], "{question:?}");
    }
    let none = recall(&journal, &places, "mooring", RecallBudget::entries(0)).await.unwrap();
    assert_eq!(none.hits, []);
}
