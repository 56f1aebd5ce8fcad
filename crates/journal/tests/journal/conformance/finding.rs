use longhaul_journal::{Append, Blob, Journal, Match, Search};
use longhaul_protocol::{
    AttemptId, BlobRef, Block, CallId, Item, Seq, SessionRecord, StreamName, ToolFinished,
};

use super::{Place, a_stream, append_notes};

/// The places in a stream where words are found, in order.
async fn found(journal: &dyn Journal, stream: &StreamName, words: &str) -> Vec<Seq> {
    let search =
        Search { words: words.to_owned(), matching: Match::All, streams: vec![stream.clone()], limit: 100 };
    let mut seqs: Vec<Seq> = journal.search(&search).await.unwrap().iter().map(|hit| hit.seq).collect();
    seqs.sort_unstable();
    seqs
}

pub(crate) async fn words_are_found_in_any_order_case_and_accent(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    append_notes(&*journal, &stream, &["The quick brown Fox", "a café in Zürich", "brown bread", "foxglove"])
        .await;

    assert_eq!(found(&*journal, &stream, "fox BROWN").await, [1]);
    assert_eq!(found(&*journal, &stream, "brown").await, [1, 3]);
    assert_eq!(found(&*journal, &stream, "cafe zurich").await, [2]);
    assert_eq!(found(&*journal, &stream, "fox").await, [1], "a word is not found inside another");
    assert_eq!(found(&*journal, &stream, "wolf").await, [0; 0]);
}

/// Those that have more of the words, and rarer ones, come first.
pub(crate) async fn any_of_the_words_finds_and_ranks(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    let texts = [
        "the gate of the park",
        "the passphrase of the harbour gate is osprey",
        "the harbour at night",
        "nothing of the kind",
        "the weather of the day",
        "the price of the ticket",
        "sand",
    ];
    append_notes(&*journal, &stream, &texts).await;
    let any = |words: &str, limit: usize| {
        let (words, streams) = (words.to_owned(), vec![stream.clone()]);
        Search { words, matching: Match::Any, streams, limit }
    };

    let best = journal.search(&any("the harbour passphrase of yesterday", 1)).await.unwrap();
    let all = journal.search(&any("harbour passphrase yesterday", 10)).await.unwrap();
    let none = journal.search(&any("yesterday \"", 10)).await.unwrap();
    let many = journal.search(&any(&"osprey ".repeat(1_000), 10)).await.unwrap();

    assert_eq!(best.iter().map(|hit| hit.seq).collect::<Vec<_>>(), [2]);
    assert_eq!(all.iter().map(|hit| hit.seq).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(none, []);
    assert_eq!(many.len(), 1, "however many words there are");
}

/// C10: they would stand before what they repeat.
pub(crate) async fn what_the_tools_of_history_show_is_not_found(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    let call = CallId::generate();
    let asked = |name: &str| {
        let (name, arguments) = (name.to_owned(), r#"{"query": "osprey"}"#.to_owned());
        let item = Item::ToolCall { call, wire_id: None, name, arguments, signature: None };
        SessionRecord::Block(Block { attempt: AttemptId::generate(), index: 0, item }).encode()
    };
    let said = |name: &str| SessionRecord::ToolFinished(ToolFinished::new(call, name, "an osprey")).encode();
    let mut append = Append::to(&stream);
    for name in ["history_search", "history_read", "read_file"] {
        append = append.record(asked(name)).record(said(name));
    }
    journal.append(append).await.unwrap();

    assert_eq!(found(&*journal, &stream, "osprey").await, [5, 6]);
}

/// What was cut out of a result is found, and shown.
pub(crate) async fn an_excerpt_shows_what_only_the_whole_output_has(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    let whole = format!("{}the osprey of the harbour\n{}", "line\n".repeat(500), "line\n".repeat(500));
    let finished = ToolFinished {
        whole: Some(BlobRef::to(whole.as_bytes(), "text/plain")),
        ..ToolFinished::new(CallId::generate(), "exec", "line\n[…]\nline")
    };
    let append = Append::to(&stream).record(SessionRecord::ToolFinished(finished).encode());
    journal.append(append.blob(Blob::new(whole.as_bytes()))).await.unwrap();

    let (words, streams) = ("osprey harbour".to_owned(), vec![stream.clone()]);
    let hits = journal.search(&Search { words, matching: Match::All, streams, limit: 1 }).await.unwrap();

    assert!(hits[0].excerpt.contains("the osprey of the harbour"), "{hits:?}");
}

pub(crate) async fn scripts_without_spaces_are_found(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    let texts = [
        "我们决定使用数据库",
        "東京タワーに行きました",
        "ฉันชอบกินข้าวผัด",
        "학교에서 공부합니다",
        "日本 mixed 中文text",
    ];
    append_notes(&*journal, &stream, &texts).await;

    assert_eq!(found(&*journal, &stream, "数据库").await, [1]);
    assert_eq!(found(&*journal, &stream, "使用").await, [1], "two characters");
    assert_eq!(found(&*journal, &stream, "库").await, [1], "one character");
    assert_eq!(found(&*journal, &stream, "据数").await, [0; 0], "not in this order");
    assert_eq!(found(&*journal, &stream, "タワー").await, [2]);
    assert_eq!(found(&*journal, &stream, "กินข้าว").await, [3], "with its vowel signs");
    assert_eq!(found(&*journal, &stream, "학교").await, [4], "without its ending");
    assert_eq!(found(&*journal, &stream, "中文 mixed").await, [5]);
}

pub(crate) async fn odd_searches_are_no_error(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    append_notes(&*journal, &stream, &["plain text with \"quotes\" and a-hyphen"]).await;

    for nothing in ["", "   ", "***", "\"", "AND OR NOT(", "NEAR", "\0", "plain\0absent"] {
        assert_eq!(found(&*journal, &stream, nothing).await, [0; 0], "{nothing:?}");
    }
    for something in ["\"quotes\"", "a-hyphen", "text*", "(plain)", "text:plain", "quotes' --"] {
        assert!(found(&*journal, &stream, something).await.len() <= 1, "{something:?} must not fail");
    }
    assert_eq!(found(&*journal, &stream, "\"quotes\" a-hyphen").await, [1]);
}

/// The index has a cursor of its own: it catches up before it answers, whoever appended.
pub(crate) async fn a_search_sees_what_was_appended_before_it(place: &impl Place) {
    let stream = a_stream();
    let (searcher, writer) = (place.open().await, place.open().await);

    for round in 1..=3 {
        append_notes(&*writer, &stream, &["needle"]).await;
        let expected: Vec<Seq> = (1..=round).collect();
        assert_eq!(found(&*searcher, &stream, "needle").await, expected);
    }
}

pub(crate) async fn a_search_stays_within_the_streams_that_it_names(place: &impl Place) {
    let (one, two) = (a_stream(), a_stream());
    let journal = place.open().await;
    append_notes(&*journal, &one, &["wherefore"]).await;
    append_notes(&*journal, &two, &["nothing", "wherefore"]).await;

    let everywhere = Search { words: "wherefore".into(), matching: Match::All, streams: vec![], limit: 10 };
    let mut hits: Vec<_> = journal.search(&everywhere).await.unwrap();
    hits.sort_by_key(|hit| hit.seq);

    assert_eq!(found(&*journal, &one, "wherefore").await, [1]);
    assert_eq!(found(&*journal, &two, "wherefore").await, [2]);
    let places: Vec<_> = hits.iter().map(|hit| (hit.stream.clone(), hit.seq)).collect();
    assert_eq!(places, [(one, 1), (two, 2)]);
    assert_eq!(hits[0].excerpt, "wherefore");
}

pub(crate) async fn a_search_forgets_a_stream_that_was_removed(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    append_notes(&*journal, &stream, &["ephemeral", "filler"]).await;
    assert_eq!(found(&*journal, &stream, "ephemeral").await, [1]);

    journal.remove(&stream, None).await.unwrap();
    append_notes(&*journal, &stream, &["something", "ephemeral"]).await;

    assert_eq!(found(&*journal, &stream, "ephemeral").await, [2]);
}
