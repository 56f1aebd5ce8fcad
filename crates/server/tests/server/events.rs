//! H2, H6: event streams.

use std::time::{Duration, Instant};

use longhaul_journal::Journal as _;
use longhaul_server::{Scope, ServerOptions, create_token};
use reqwest::Method;
use serde_json::{Value, json};

use crate::event_client::{EventStream, Message, seqs};
use crate::test_server::{TestServer, test_options};

/// H2, T14: the data of an event is what `--json` prints, and no text becomes a field of the stream.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_has_each_record_once_with_its_seq_as_id() {
    let answer = "one\nid: 99\n\ndata: {}\r\n\u{2028}two";
    let server = TestServer::with_script(&json!([answer]).to_string()).await;
    server.post("/api/sessions", &json!({"key": "a"})).await;
    let mut live = EventStream::open(&server, "/api/sessions/a/events").await;
    server.post("/api/sessions/a/inputs", &json!({"text": "go"})).await;

    let (mut ids, mut events) = (vec![], vec![]);
    loop {
        let Message::Event { id, data } = live.next().await.unwrap() else { continue };
        assert_eq!(id, data["seq"].as_u64(), "{data}");
        ids.extend(id);
        events.push(data.clone());
        if data["type"] == "turn_ended" {
            break;
        }
    }

    assert!(ids.is_sorted_by(|one, other| one < other), "{ids:?}");
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    assert!(kinds.contains(&"input_taken") && kinds.contains(&"text_delta"), "{kinds:?}");
    assert_eq!(events.last().unwrap()["text"], answer);
    let mut whole = EventStream::open(&server, "/api/sessions/a/events?from=start").await;
    let told = whole.events_until("turn_ended").await;
    assert_eq!(seqs(&told), ids, "the same from the beginning");
    server.shutdown().await;
}

/// H2: a client that comes back with its last id gets every later record once, in order, whatever it had.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reconnects_with_any_last_id_gets_the_rest() {
    let server = TestServer::with_script(r#"["One.", "Two.", "Three."]"#).await;
    server.post("/api/sessions", &json!({"key": "a"})).await;
    let session = server.runtime.session("a").await.unwrap();
    for text in ["1", "2", "3"] {
        session.send(text).await.unwrap();
    }
    let mut whole = EventStream::open(&server, "/api/sessions/a/events?from=start").await;
    let mut all = whole.events_until("turn_ended").await;
    for _ in 0..2 {
        all.extend(whole.events_until("turn_ended").await);
    }
    drop(whole);
    let all = seqs(&all);

    for last in 0..*all.last().unwrap() {
        let request = server.request(Method::GET, "/api/sessions/a/events?after=0");
        let mut stream = EventStream::of_request(request.header("last-event-id", last.to_string())).await;
        let expected: Vec<u64> = all.iter().copied().filter(|seq| *seq > last).collect();
        let mut got = Vec::new();
        while got.len() < expected.len() {
            got.extend(stream.next().await.unwrap().event().and_then(|event| event["seq"].as_u64()));
        }
        assert_eq!(got, expected, "after {last}");
    }
    server.shutdown().await;
}

/// H7: a stop of the server tells when to come back.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_streams_with_a_hint_when_to_return() {
    let server = TestServer::with_script("[]").await;
    server.post("/api/sessions", &json!({"key": "a"})).await;
    let mut stream = EventStream::open(&server, "/api/sessions/a/events").await;
    assert_eq!(stream.next().await, Some(Message::Comment));

    server.shutdown().await;

    assert!(matches!(stream.next().await, Some(Message::Retry(delay)) if delay > 0));
    assert_eq!(stream.next().await, None);
}

/// H6: many followers of one busy session get the same, while a follower that never reads holds up nobody.
#[tokio::test(flavor = "multi_thread")]
async fn many_followers_of_one_session_get_everything_and_a_stuck_one_holds_up_nobody() {
    let words: Vec<String> = (0..200).map(|number| format!("word{number}")).collect();
    let script = json!([{"text": words.join(" "), "piece_ms": 2}]);
    let server = TestServer::with_script(&script.to_string()).await;
    server.post("/api/sessions", &json!({"key": "a"})).await;
    let stuck = server.request(Method::GET, "/api/sessions/a/events").send().await.unwrap();
    let mut streams = Vec::new();
    for _ in 0..200 {
        streams.push(EventStream::open(&server, "/api/sessions/a/events").await);
    }

    let began = Instant::now();
    server.post("/api/sessions/a/inputs", &json!({"text": "go"})).await;
    let reading = streams
        .into_iter()
        .map(|mut stream| tokio::spawn(async move { stream.events_until("turn_ended").await }));
    let mut told = Vec::new();
    for reader in reading.collect::<Vec<_>>() {
        told.push(reader.await.unwrap());
    }

    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
    let first = seqs(&told[0]);
    assert!(!first.is_empty() && told.iter().all(|events| seqs(events) == first));
    let text = |events: &[Value]| -> String {
        events
            .iter()
            .filter(|event| event["type"] == "text_delta")
            .filter_map(|event| event["text"].as_str())
            .collect()
    };
    assert!(told.iter().all(|events| text(events) == words.join(" ")));
    drop(stuck);
    server.shutdown().await;
}

/// H6: a follower that does not read is closed once it is too far behind, and can come back for the rest.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_follower_is_closed_and_can_come_back() {
    let big = "x".repeat(200_000);
    let answers: Vec<Value> = (0..80).map(|_| json!(big)).collect();
    let server = TestServer::with_script(&json!(answers).to_string()).await;
    server.post("/api/sessions", &json!({"key": "a"})).await;
    let mut slow = EventStream::open(&server, "/api/sessions/a/events?from=start").await;
    let mut fast = EventStream::open(&server, "/api/sessions/a/events?from=start").await;
    let session = server.runtime.session("a").await.unwrap();
    let writing = tokio::spawn(async move {
        for _ in 0..80 {
            session.send("more").await.unwrap();
        }
    });
    let mut all = Vec::new();
    for _ in 0..80 {
        all.extend(fast.events_until("turn_ended").await);
    }
    writing.await.unwrap();

    let mut seen = Vec::new();
    while let Some(message) = slow.next().await {
        seen.extend(message.event().cloned());
    }

    let (all, seen) = (seqs(&all), seqs(&seen));
    assert!(seen.len() < all.len() && all.starts_with(&seen), "{} of {}", seen.len(), all.len());
    let path = format!("/api/sessions/a/events?after={}", seen.last().copied().unwrap_or(0));
    let mut back = EventStream::open(&server, &path).await;
    let mut rest = Vec::new();
    while seen.len() + rest.len() < all.len() {
        rest.extend(back.next().await.unwrap().event().and_then(|event| event["seq"].as_u64()));
    }
    assert_eq!([seen, rest].concat(), all);
    server.shutdown().await;
}

/// The overview begins with every session and then tells changes.
#[tokio::test(flavor = "multi_thread")]
async fn the_overview_shows_sessions_and_their_changes() {
    let server = TestServer::with_script(r#"[{"text": "one two", "piece_ms": 300}]"#).await;
    for key in ["a", "b"] {
        server.post("/api/sessions", &json!({"key": key})).await;
    }
    let mut stream = EventStream::open(&server, "/api/events").await;
    let mut next = async || loop {
        let message = stream.next().await.unwrap();
        if let Some(event) = message.event() {
            return (event["key"].clone(), event["state"].clone());
        }
    };
    let mut first = [next().await, next().await];
    first.sort_by_key(|(key, _)| key.to_string());
    assert_eq!(first, [(json!("a"), json!("idle")), (json!("b"), json!("idle"))]);

    server.post("/api/sessions/a/inputs", &json!({"text": "go"})).await;
    let mut states = Vec::new();
    while states.last() != Some(&json!("idle")) {
        let (key, state) = next().await;
        assert_eq!(key, "a");
        states.push(state);
    }

    assert_eq!(states[0], "working", "{states:?}");
    let gone = server.request(Method::DELETE, "/api/sessions/b").send().await.unwrap();
    assert_eq!(gone.status(), 200);
    assert_eq!(next().await, (json!("b"), json!("trashed")));
    server.shutdown().await;
}

/// The words of an answer as they came.
fn words(events: &[Value]) -> String {
    let said = events.iter().filter(|event| event["type"] == "text_delta" || event["type"] == "partial");
    said.filter_map(|event| event["text"].as_str()).collect()
}

/// H2, T14: a client that has the headers of its stream sees every event of what it does next, live ones too: the first
/// input of a session, and one of a session that no worker has in memory.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_stream_misses_no_live_event_of_what_its_client_does_next() {
    let answer = "Once upon a time.";
    let server = TestServer::with_script(&json!([answer, answer]).to_string()).await;
    for number in 0..25 {
        let session = format!("/api/sessions/s{number}");
        server.post("/api/sessions", &json!({"key": format!("s{number}")})).await;
        for input in 0..2 {
            let mut stream = EventStream::open(&server, &format!("{session}/events")).await;
            server.post(&format!("{session}/inputs"), &json!({"text": "go"})).await;
            let events = stream.events_until("turn_ended").await;

            assert_eq!(events[0]["type"], "input_accepted", "{session}, input {input}: {events:?}");
            assert_eq!(words(&events), answer, "{session}, input {input}: {events:?}");
            let deltas = events.iter().filter(|event| event["type"] == "text_delta").count();
            assert!(deltas > 1, "as it comes, not at its end: {events:?}");
        }
    }
    server.shutdown().await;
}

/// H2, T14: however long it takes to load the session that a stream is opened for.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_stream_waits_until_it_hears_a_session_that_loads_slowly() {
    let answer = "Once upon a time.";
    let (server, journal) = TestServer::with_faulty_journal(&json!([answer]).to_string()).await;
    server.post("/api/sessions", &json!({"key": "a"})).await;

    journal.read_slowly(Duration::from_millis(200));
    let mut stream = EventStream::open(&server, "/api/sessions/a/events").await;
    server.post("/api/sessions/a/inputs", &json!({"text": "go"})).await;
    journal.read_slowly(Duration::ZERO);
    let events = stream.events_until("turn_ended").await;

    assert_eq!(
        (&events[0]["type"], words(&events).as_str()),
        (&json!("input_accepted"), answer),
        "{events:?}"
    );
    server.shutdown().await;
}

/// S3, H2: a session that is renamed goes on in its open streams, in the middle of an answer and after it, with nothing lost,
/// and its events have the new key.
#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_session_goes_on_in_its_open_stream() {
    let long: Vec<String> = (0..40).map(|number| format!("word{number}")).collect();
    let mut script = vec![json!({"text": long.join(" "), "piece_ms": 10})];
    script.extend((0..200).map(|_| json!("Once upon a time.")));
    let server = TestServer::with_script(&json!(script).to_string()).await;
    server.post("/api/sessions", &json!({"key": "a"})).await;
    let mut stream = EventStream::open(&server, "/api/sessions/a/events").await;
    let rename = async |from: &str, to: &str| {
        let request = server.request(Method::PATCH, &format!("/api/sessions/{from}"));
        let body = json!({"key": to}).to_string();
        let answer = request.header("content-type", "application/json").body(body).send().await.unwrap();
        assert_eq!(answer.status(), 200);
    };

    server.post("/api/sessions/a/inputs", &json!({"text": "go"})).await;
    let mut first = stream.events_until("text_delta").await;
    rename("a", "b").await;
    first.extend(stream.events_until("turn_ended").await);
    assert_eq!(words(&first), long.join(" "));

    // Each time the worker has let go, so that the next input begins in another slot.
    let mut all = first;
    let mut names = vec!["b".to_owned()];
    for number in 0..5 {
        let old = names.last().unwrap().clone();
        server.runtime.session(&old).await.unwrap().release().await;
        let new = format!("c{number}");
        rename(&old, &new).await;
        for _ in 0..2 {
            assert_eq!(
                server.post(&format!("/api/sessions/{new}/inputs"), &json!({"text": "go"})).await.0,
                202
            );
            let events = stream.events_until("turn_ended").await;
            assert_eq!(events[0]["type"], "input_accepted", "as {new}: {events:?}");
            assert_eq!(words(&events), "Once upon a time.", "as {new}: {events:?}");
            all.extend(events);
            server.runtime.session(&new).await.unwrap().release().await;
        }
        names.push(new);
    }

    let mut whole = EventStream::open(&server, "/api/sessions/c4/events?from=start").await;
    let mut told = Vec::new();
    for _ in 0..11 {
        told.extend(whole.events_until("turn_ended").await);
    }
    assert_eq!(seqs(&told)[seqs(&told).len() - seqs(&all).len()..], seqs(&all), "every record once");
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        server.post("/api/sessions/c4/inputs", &json!({"text": "go"})).await;
        let events = stream.events_until("turn_ended").await;
        if events.iter().all(|event| event["session"] == "c4") {
            break;
        }
        assert!(Instant::now() < deadline, "the new key is known after a second: {events:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    server.shutdown().await;
}

/// H2: a session that can't be read is an error before the stream begins, not a stream that ends at once, again and again.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_cannot_be_followed_is_a_problem_and_no_stream() {
    let (server, journal) = TestServer::with_faulty_journal(r#"["Hello."]"#).await;
    server.post("/api/sessions", &json!({"key": "a"})).await;
    server.runtime.session("a").await.unwrap().send("hi").await.unwrap();

    let entry = journal.session("a").await.unwrap().unwrap();
    let (stream, reason) = (longhaul_protocol::StreamName::session(entry.id), "scratched".to_owned());
    journal.refuse_reads(Some(longhaul_journal::Error::Damaged { stream, seq: 1, reason }));
    let refused = server.get("/api/sessions/a/events?from=start").await;
    journal.refuse_reads(None);
    let mut stream = EventStream::open(&server, "/api/sessions/a/events?from=start").await;

    assert_eq!((refused.0, &refused.1["code"]), (503, &json!("journal_unavailable")), "{refused:?}");
    assert!(refused.1["detail"].as_str().unwrap().contains("scratched"), "{refused:?}");
    stream.events_until("turn_ended").await;
    server.shutdown().await;
}

/// H5, H6: one token does not take the room of all followers.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_takes_at_most_half_of_the_streams() {
    let options = ServerOptions { max_followers: 4, ..test_options() };
    let server = TestServer::with_options("[]", options).await;
    server.post("/api/sessions", &json!({"key": "a"})).await;
    let other = create_token(&*server.runtime.journal(), "other", Scope::Read).await.unwrap();
    server.poll("/api/tokens", |tokens| tokens["items"].as_array().unwrap().len() == 2).await;
    let open = || server.request(Method::GET, "/api/sessions/a/events").send();

    let (first, second, third) = (open().await.unwrap(), open().await.unwrap(), open().await.unwrap());
    let of_other = server.anonymous(Method::GET, "/api/events");
    let of_other = of_other.header("authorization", format!("Bearer {other}")).send().await.unwrap();

    assert_eq!(
        [&first, &second, &third, &of_other].map(|answer| answer.status().as_u16()),
        [200, 200, 503, 200]
    );
    drop((first, second, third, of_other));
    server.shutdown().await;
}

/// B3: a soft limit asks where somebody follows who may answer. A reader can't, so the turn goes on with a warning.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_does_not_attend_a_session() {
    let server = TestServer::with_settings(r#"["Hello."]"#, |config| {
        config.settings.limits.tokens_per_turn = 1_000_000;
        config.settings.limits.soft = 0.000_001;
    })
    .await;
    let reader = create_token(&*server.runtime.journal(), "reader", Scope::Read).await.unwrap();
    server.poll("/api/tokens", |tokens| tokens["items"].as_array().unwrap().len() == 2).await;
    let send = async |key: &str, token: Option<&str>| {
        server.post("/api/sessions", &json!({"key": key})).await;
        let path = format!("/api/sessions/{key}/events");
        let request = match token {
            Some(token) => {
                server.anonymous(Method::GET, &path).header("authorization", format!("Bearer {token}"))
            }
            None => server.request(Method::GET, &path),
        };
        let stream = EventStream::of_request(request).await;
        server.post(&format!("/api/sessions/{key}/inputs"), &json!({"text": "go"})).await;
        stream
    };

    let mut read = send("read", Some(&reader)).await;
    let warned = read.events_until("turn_ended").await;
    let mut attended = send("attended", None).await;
    let asked = attended.events_until("question").await;

    assert_eq!(warned.last().unwrap()["outcome"], "completed", "{warned:?}");
    assert_eq!(asked.last().unwrap()["kind"], "budget");
    server.shutdown().await;
}
