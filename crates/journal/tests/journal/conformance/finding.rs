use longhaul_journal::{Journal, Search};
use longhaul_protocol::{Seq, StreamName};

use super::{Place, a_stream, append_notes};

/// The places in a stream where words are found, in order.
async fn found(journal: &dyn Journal, stream: &StreamName, words: &str) -> Vec<Seq> {
    let search = Search { words: words.to_owned(), streams: vec![stream.clone()], limit: 100 };
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

    let everywhere = Search { words: "wherefore".into(), streams: vec![], limit: 10 };
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
