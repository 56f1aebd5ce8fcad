use crate::{Append, Blob, Journal, SearchQuery};
use longhaul_protocol::{
    AttemptId, BlobRef, Block, CallId, Input, InputId, InputTaken, Item, JoinMode, NewRecord, Role, Seq,
    SessionRecord, StreamName, ToolFinished,
};

use super::{Place, a_stream, append_notes};

/// The places in a stream where any of the words is found, the best first.
async fn found(journal: &dyn Journal, stream: &StreamName, words: &str) -> Vec<Seq> {
    let search = SearchQuery::new(words, 100).within(vec![stream.clone()]);
    journal.search(&search).await.unwrap().hits.iter().map(|hit| hit.seq).collect()
}

/// The same in the order of the places.
async fn found_in_order(journal: &dyn Journal, stream: &StreamName, words: &str) -> Vec<Seq> {
    let mut seqs = found(journal, stream, words).await;
    seqs.sort_unstable();
    seqs
}

pub async fn words_are_found_in_any_order_case_and_accent(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    append_notes(&*journal, &stream, &["The quick brown Fox", "a café in Zürich", "brown bread", "foxglove"])
        .await;

    assert_eq!(found(&*journal, &stream, "fox BROWN").await, [1, 3], "what has both comes first");
    assert_eq!(found_in_order(&*journal, &stream, "brown").await, [1, 3]);
    assert_eq!(found(&*journal, &stream, "cafe zurich").await, [2]);
    assert_eq!(found(&*journal, &stream, "fox").await, [1], "a word is not found inside another");
    assert_eq!(found(&*journal, &stream, "wolf").await, [0; 0]);
}

/// Those that have more of the words, and rarer ones, come first.
pub async fn any_of_the_words_finds_and_ranks(place: &impl Place) {
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
    let any = |words: &str, limit: usize| SearchQuery::new(words, limit).within(vec![stream.clone()]);

    let best = journal.search(&any("the harbour passphrase of yesterday", 1)).await.unwrap().hits;
    let all = journal.search(&any("harbour passphrase yesterday", 10)).await.unwrap().hits;
    let none = journal.search(&any("yesterday \"", 10)).await.unwrap().hits;
    let many = journal.search(&any(&"osprey ".repeat(1_000), 10)).await.unwrap().hits;

    assert_eq!(best.iter().map(|hit| hit.seq).collect::<Vec<_>>(), [2]);
    assert_eq!(all.iter().map(|hit| hit.seq).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(none, []);
    assert_eq!(many.len(), 1, "however many words there are");
}

/// C10, Y11: they would stand before what they repeat.
pub async fn what_tools_show_of_the_past_is_not_found(place: &impl Place) {
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
    for name in ["recall", "recall_read", "history_search", "memory_read", "memory_note", "read_file"] {
        append = append.record(asked(name)).record(said(name));
    }
    journal.append(append).await.unwrap();

    assert_eq!(found_in_order(&*journal, &stream, "osprey").await, [11, 12]);
}

/// What was cut out of a result is found, and shown.
pub async fn an_excerpt_shows_what_only_the_whole_output_has(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    let whole = format!("{}the osprey of the harbour\n{}", "line\n".repeat(500), "line\n".repeat(500));
    let finished = ToolFinished {
        whole: Some(BlobRef::to(whole.as_bytes(), "text/plain")),
        ..ToolFinished::new(CallId::generate(), "exec", "line\n[…]\nline")
    };
    let append = Append::to(&stream).record(SessionRecord::ToolFinished(finished).encode());
    journal.append(append.blob(Blob::new(whole.as_bytes()))).await.unwrap();

    let search = SearchQuery::new("osprey harbour", 1).within(vec![stream.clone()]);
    let hits = journal.search(&search).await.unwrap().hits;

    assert!(hits[0].excerpt.contains("the osprey of the harbour"), "{hits:?}");
}

pub async fn scripts_without_spaces_are_found(place: &impl Place) {
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

pub async fn odd_searches_are_no_error(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    append_notes(&*journal, &stream, &["plain text with \"quotes\" and a-hyphen"]).await;

    for nothing in ["", "   ", "***", "\"", "NEAR", "\0", "stems:absent", "\u{301}"] {
        assert_eq!(found(&*journal, &stream, nothing).await, [0; 0], "{nothing:?}");
    }
    let somethings = [
        "\"quotes\"",
        "a-hyphen",
        "text*",
        "(plain)",
        "text:plain",
        "quotes' --",
        "plain\0absent",
        "AND OR NOT(",
        "NEAR(plain text, 2)",
        "^plain",
        "{plain}",
        "with and",
    ];
    for something in somethings {
        assert_eq!(found(&*journal, &stream, something).await, [1], "{something:?}");
        journal.streams_with_words(something).await.unwrap();
    }
    let many: String = (0..10_000).map(|number| format!("word{number} ")).collect();
    assert_eq!(found(&*journal, &stream, &format!("plain {many}")).await, [1]);
    assert_eq!(journal.streams_with_words(&many).await.unwrap().streams, []);
    let none = journal.search(&SearchQuery::new("plain", 0)).await.unwrap();
    let nowhere = journal.search(&SearchQuery::new("plain", 10).within(vec![])).await.unwrap();
    let unknown = journal.search(&SearchQuery::new("plain", 10).within(vec![a_stream()])).await.unwrap();
    assert_eq!((none.hits, nowhere.hits, unknown.hits), (vec![], vec![], vec![]));
}

/// The index has a cursor of its own: it catches up before it answers, whoever appended.
pub async fn a_search_sees_what_was_appended_before_it(place: &impl Place) {
    let stream = a_stream();
    let (searcher, writer) = (place.open().await, place.open().await);

    for round in 1..=3 {
        append_notes(&*writer, &stream, &["needle"]).await;
        let expected: Vec<Seq> = (1..=round).collect();
        assert_eq!(found_in_order(&*searcher, &stream, "needle").await, expected);
    }
}

pub async fn a_search_stays_within_the_streams_that_it_names(place: &impl Place) {
    let (one, two) = (a_stream(), a_stream());
    let journal = place.open().await;
    append_notes(&*journal, &one, &["wherefore"]).await;
    append_notes(&*journal, &two, &["nothing", "wherefore"]).await;

    let mut hits = journal.search(&SearchQuery::new("wherefore", 10)).await.unwrap().hits;
    hits.sort_by_key(|hit| hit.seq);

    assert_eq!(found(&*journal, &one, "wherefore").await, [1]);
    assert_eq!(found(&*journal, &two, "wherefore").await, [2]);
    let places: Vec<_> = hits.iter().map(|hit| (hit.stream.clone(), hit.seq)).collect();
    assert_eq!(places, [(one, 1), (two, 2)]);
    assert_eq!(hits[0].excerpt, "wherefore");
}

pub async fn a_search_forgets_a_stream_that_was_removed(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    append_notes(&*journal, &stream, &["ephemeral", "filler"]).await;
    assert_eq!(found(&*journal, &stream, "ephemeral").await, [1]);

    journal.remove(&stream, None).await.unwrap();
    append_notes(&*journal, &stream, &["something", "ephemeral"]).await;

    assert_eq!(found(&*journal, &stream, "ephemeral").await, [2]);
}

fn asked(text: &str) -> NewRecord {
    let id = InputId::generate();
    let input = InputTaken::of(Input::new(id, text, JoinMode::Join), 1);
    SessionRecord::InputTaken(input).encode()
}

fn answered(text: &str) -> NewRecord {
    let item = Item::Text { role: Role::Assistant, text: text.to_owned() };
    SessionRecord::Block(Block { attempt: AttemptId::generate(), index: 0, item }).encode()
}

fn printed(text: &str) -> NewRecord {
    SessionRecord::ToolFinished(ToolFinished::new(CallId::generate(), "exec", text)).encode()
}

/// The places in some streams where words stand or were said nearby, the best first.
async fn found_around(journal: &dyn Journal, streams: &[StreamName], words: &str) -> Vec<(usize, Seq)> {
    let search = SearchQuery::new(words, 100).within(streams.to_vec());
    let hits = journal.search(&search).await.unwrap().hits;
    assert!(hits.windows(2).all(|pair| pair[0].score >= pair[1].score), "{hits:?}");
    let number = |stream: &StreamName| streams.iter().position(|known| known == stream).unwrap();
    hits.iter().map(|hit| (number(&hit.stream), hit.seq)).collect()
}

/// Y11: what was said around a thing says what it is about.
pub async fn a_record_is_found_by_what_was_said_around_it(place: &impl Place) {
    let streams = [a_stream()];
    let journal = place.open().await;
    let append = Append::to(&streams[0])
        .record(asked("Good morning!"))
        .record(answered("Good morning."))
        .record(asked("Which harbour should the ferry use?"))
        .record(printed("a list of harbours"))
        .record(answered("Let us take the northern one."))
        .record(asked("Fine. And now something else."))
        .record(answered("Gladly."))
        .record(asked("Thank you."));
    journal.append(append).await.unwrap();

    let mut ferry = found_around(&*journal, &streams, "ferry").await;
    let harbours = found_around(&*journal, &streams, "harbours").await;
    let list = found_around(&*journal, &streams, "list").await;

    assert_eq!(ferry.remove(0), (0, 3), "its own words count more");
    ferry.sort_unstable();
    assert_eq!(ferry, [(0, 1), (0, 2), (0, 4), (0, 5), (0, 6), (0, 7), (0, 8)]);
    let mut harbours: Vec<Seq> = harbours[..2].iter().map(|(_, seq)| *seq).collect();
    harbours.sort_unstable();
    assert_eq!(harbours, [3, 4], "in any form");
    assert_eq!(list, [(0, 4)], "what a tool printed says nothing about its neighbours");
}

/// However many searches came in between.
pub async fn what_is_said_later_is_added_to_what_it_follows(place: &impl Place) {
    let streams = [a_stream(), a_stream()];
    let journal = place.open().await;
    let words = ["amber", "birch", "cedar", "dogwood", "elder", "fir", "gorse", "hazel", "iris", "juniper"];
    let record = |number: usize| match number % 4 {
        0 => asked(words[number]),
        3 => printed(words[number]),
        _ => answered(words[number]),
    };
    for (number, word) in words.iter().enumerate() {
        journal.append(Append::to(&streams[0]).record(record(number))).await.unwrap();
        assert!(!found_around(&*journal, &streams[..1], word).await.is_empty());
    }
    let at_once =
        (0..words.len()).fold(Append::to(&streams[1]), |append, number| append.record(record(number)));
    journal.append(at_once).await.unwrap();

    for word in words {
        let mut one = found_around(&*journal, &streams[..1], word).await;
        let mut other = found_around(&*journal, &streams[1..], word).await;
        one.sort_unstable();
        other.sort_unstable();
        assert_eq!(one, other, "{word}");
    }
    let mut cedar = found_around(&*journal, &streams[..1], "cedar").await;
    cedar.sort_unstable();
    assert_eq!(cedar.iter().map(|(_, seq)| *seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
}

/// Y12: however many streams there are, nothing else is looked at.
pub async fn many_streams_are_looked_at_and_no_others(place: &impl Place) {
    let streams: Vec<StreamName> = (0..20).map(|_| a_stream()).collect();
    let journal = place.open().await;
    for stream in &streams {
        append_notes(&*journal, stream, &["a lantern", "nothing"]).await;
    }
    let some: Vec<StreamName> = streams.iter().step_by(2).cloned().collect();

    let mut found = found_around(&*journal, &some, "lantern").await;

    found.sort_unstable();
    assert_eq!(found, (0..10).map(|number| (number, 1)).collect::<Vec<_>>());
}

pub async fn a_rare_word_counts_more(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    append_notes(
        &*journal,
        &stream,
        &["quartz", "quartzes", "basalt", "quartz and more quartz", "sand", "mud"],
    )
    .await;

    let search = SearchQuery::new("the quartz and the basalt", 10).within(vec![stream.clone()]);
    let answer = journal.search(&search).await.unwrap();

    let words: Vec<&str> = answer.words.iter().map(|word| word.stem.as_str()).collect();
    assert_eq!(words, ["quartz", "basalt"]);
    assert!(answer.words[1].weight > answer.words[0].weight, "{answer:?}");
    assert_eq!(answer.hits[0].seq, 3);
}

/// S2: the streams in which all words stand in one record, however often another stream has them.
pub async fn streams_are_found_by_all_words(place: &impl Place) {
    let (loud, quiet, other) = (a_stream(), a_stream(), a_stream());
    let journal = place.open().await;
    append_notes(&*journal, &loud, &["a vermilion kestrel"; 30]).await;
    append_notes(&*journal, &quiet, &["nothing", &format!("vermilion {} kestrels", "and more ".repeat(100))])
        .await;
    append_notes(&*journal, &other, &["vermilion", "kestrel"]).await;

    let mut found = journal.streams_with_words("Kestrels vermilion").await.unwrap().streams;
    found.sort();
    let mut expected = vec![loud, quiet];
    expected.sort();

    assert_eq!(found, expected);
    assert_eq!(journal.streams_with_words("vermilion walrus").await.unwrap().streams, []);
    assert_eq!(journal.streams_with_words("?!").await.unwrap().streams, []);
}

/// Y11: what the question says beside its words.
pub async fn an_answer_is_found_with_its_request(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    let append = Append::to(&stream)
        .record(asked("Which berth is free?"))
        .record(printed("a list"))
        .record(answered("The northern mooring."));
    journal.append(append).await.unwrap();

    let search = SearchQuery::new("mooring", 10).within(vec![stream.clone()]);
    let hits = journal.search(&search).await.unwrap().hits;

    assert_eq!((hits[0].seq, hits[0].request), (3, Some(1)));
    let input = hits.iter().find(|hit| hit.seq == 1).unwrap();
    assert_eq!(input.request, None);
}
