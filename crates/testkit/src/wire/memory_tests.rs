use std::time::Duration;

use tokio::time::Instant;

use super::super::Latch;
use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn outgoing() -> HttpRequest {
    HttpRequest {
        url: "http://host.test:80/v1/models?all".to_owned(),
        headers: vec![("X-Name".to_owned(), "value".to_owned())],
        body: None,
        connect_within: 10 * SECOND,
    }
}

async fn send(reply: Reply) -> Result<HttpResponse, TransportError> {
    Memory::new(Script::list(vec![reply])).send(outgoing()).await
}

async fn drain(incoming: &mut HttpResponse) -> (Vec<Vec<u8>>, Option<TransportError>) {
    let mut pieces = Vec::new();
    loop {
        match incoming.body.next().await {
            Ok(Some(bytes)) => pieces.push(bytes),
            Ok(None) => return (pieces, None),
            Err(trouble) => return (pieces, Some(trouble)),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_comes_in_its_pieces_with_its_pauses() {
    let reply =
        Reply::stream("abcde").in_pieces(2).with_pauses(SECOND).after(5 * SECOND).header("X-Limit", "3");
    let began = Instant::now();

    let mut incoming = send(reply).await.unwrap();
    let head_after = began.elapsed();
    let drained = drain(&mut incoming).await;

    assert_eq!((head_after, began.elapsed()), (5 * SECOND, 7 * SECOND));
    assert_eq!(drained, (vec![b"ab".to_vec(), b"cd".to_vec(), b"e".to_vec()], None));
    assert_eq!((incoming.status, incoming.header("x-limit")), (200, Some("3")));
}

#[tokio::test(start_paused = true)]
async fn a_request_is_remembered_as_a_server_would_see_it() {
    let memory = Memory::new(Script::list(vec![]));

    let incoming = memory.send(outgoing()).await.unwrap();

    let headers = [("x-name", "value"), ("host", "host.test:80")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let expected = Seen { method: "GET".into(), path: "/v1/models?all".into(), headers, body: vec![] };
    assert_eq!((memory.requests(), incoming.status), (vec![expected], 599));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_cut_or_reset_is_broken_after_its_last_byte() {
    for (reply, word) in
        [(Reply::stream("abcde").cut_at(3), "closed"), (Reply::stream("abc").ending(End::Reset), "reset")]
    {
        let mut incoming = send(reply).await.unwrap();

        let (pieces, trouble) = drain(&mut incoming).await;

        assert_eq!(pieces, [b"abc".to_vec()]);
        assert!(matches!(&trouble, Some(TransportError::Broken(why)) if why.contains(word)), "{trouble:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stalls_never_ends() {
    let mut incoming = send(Reply::stream("abc").ending(End::Stall)).await.unwrap();

    let drained = tokio::time::timeout(1_000_000 * SECOND, drain(&mut incoming)).await;

    assert!(drained.is_err());
}

#[tokio::test(start_paused = true)]
async fn connecting_takes_no_longer_than_it_may() {
    let began = Instant::now();

    let slow = send(Reply::stream("").connecting(11 * SECOND)).await.err();
    let after_slow = began.elapsed();
    let quick = send(Reply::stream("").connecting(10 * SECOND)).await;

    assert_eq!((slow, after_slow), (Some(TransportError::ConnectTimeout), 10 * SECOND));
    assert!(quick.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_trouble_comes_instead_of_an_answer() {
    let trouble = send(Reply::trouble(TransportError::Refused)).await.err();

    assert_eq!(trouble, Some(TransportError::Refused));
}

#[tokio::test(start_paused = true)]
async fn a_latch_holds_a_body_until_the_test_opens_it() {
    let latch = Latch::new();
    let reply = Reply::stream("a").then(Piece::Gate(latch.clone())).then(Piece::Bytes(b"b".to_vec()));
    let mut incoming = send(reply).await.unwrap();

    let first = incoming.body.next().await.unwrap();
    let held = tokio::time::timeout(SECOND, incoming.body.next()).await;
    latch.reached().await;
    latch.open();
    let second = incoming.body.next().await.unwrap();

    assert_eq!((first, held.is_err(), second), (Some(b"a".to_vec()), true, Some(b"b".to_vec())));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_stops_waiting_and_asks_again_finds_the_same_pause() {
    let reply = Reply::stream("").then(Piece::Pause(10 * SECOND)).then(Piece::Bytes(b"a".to_vec()));
    let mut incoming = send(reply).await.unwrap();
    let began = Instant::now();

    let mut given_up = 0;
    let bytes = loop {
        match tokio::time::timeout(3 * SECOND, incoming.body.next()).await {
            Ok(bytes) => break bytes.unwrap(),
            Err(_) => given_up += 1,
        }
    };

    assert_eq!((bytes, given_up, began.elapsed()), (Some(b"a".to_vec()), 3, 10 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_dropped_is_no_longer_open() {
    let memory = Memory::new(Script::by(|_| Reply::stream("").ending(End::Stall)));

    let incoming = memory.send(outgoing()).await.unwrap();
    let before = memory.open();
    drop(incoming);

    assert_eq!((before, memory.open()), (1, 0));
}
