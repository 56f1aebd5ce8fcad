use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use longhaul_model::transport::TransportError;
use serde_json::json;

use super::super::{Latch, Piece, Said};
use super::*;

const PATIENCE: Duration = Duration::from_secs(60);

fn connect(server: &ModelServer) -> TcpStream {
    let stream = TcpStream::connect(server.url().strip_prefix("http://").unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn post(stream: &mut TcpStream, path: &str, body: &str, connection: &str) {
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nConnection: {connection}\r\n");
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
}

fn read_to_end(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn read_exactly(stream: &mut TcpStream, expected: &str) {
    let mut bytes = vec![0; expected.len()];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(String::from_utf8_lossy(&bytes), expected);
}

fn answer_to_one(reply: Reply) -> String {
    let server = ModelServer::start(Script::list(vec![reply]));
    let mut stream = connect(&server);
    post(&mut stream, "/", "", "close");
    read_to_end(&mut stream)
}

#[test]
fn a_stream_comes_with_a_chunk_for_each_piece() {
    let answer = answer_to_one(Reply::stream("data: 1\n\n").in_pieces(5).header("x-limit", "3"));

    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-limit: 3\r\n\
                transfer-encoding: chunked\r\nconnection: close\r\n\r\n";
    assert_eq!(answer, format!("{head}5\r\ndata:\r\n4\r\n 1\n\n\r\n0\r\n\r\n"));
}

#[test]
fn an_error_comes_with_its_length() {
    let answer = answer_to_one(Reply::error(429, "slow"));

    let head = "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\ncontent-length: 4\r\n\
                connection: close\r\n\r\n";
    assert_eq!(answer, format!("{head}slow"));
}

#[test]
fn a_connection_is_kept_and_every_request_is_remembered() {
    let replies = vec![Reply::error(500, "a"), Reply::error(500, "b")];
    let server = ModelServer::start(Script::list(replies));
    let mut stream = connect(&server);
    let answer = |body: &str| {
        let head = "HTTP/1.1 500 Internal Server Error\r\ncontent-type: application/json\r\n";
        format!("{head}content-length: 1\r\n\r\n{body}")
    };

    post(&mut stream, "/one", r#"{"n":1}"#, "keep-alive");
    read_exactly(&mut stream, &answer("a"));
    post(&mut stream, "/two?x=y", r#"{"n":2}"#, "keep-alive");
    read_exactly(&mut stream, &answer("b"));
    post(&mut stream, "/three", "", "close");
    let third = read_to_end(&mut stream);

    let seen: Vec<_> = server.requests()[..2].iter().map(|seen| (seen.path.clone(), seen.json())).collect();
    assert_eq!(seen, [("/one".to_owned(), json!({"n": 1})), ("/two?x=y".to_owned(), json!({"n": 2}))]);
    assert!(third.starts_with("HTTP/1.1 599 ") && third.contains("the script is used up"), "{third}");
}

#[test]
fn a_body_can_be_cut_at_any_byte() {
    for byte in 0..=5 {
        let answer = answer_to_one(Reply::stream("abcde").cut_at(byte));

        let body = answer.split_once("\r\n\r\n").unwrap().1;
        let expected = if byte == 0 { String::new() } else { format!("{byte}\r\n{}\r\n", &"abcde"[..byte]) };
        assert_eq!(body, expected);
    }
}

#[test]
fn an_error_that_is_cut_promises_its_whole_length() {
    let answer = answer_to_one(Reply::error(500, "abcde").cut_at(2));

    assert!(answer.contains("content-length: 5\r\n") && answer.ends_with("\r\n\r\nab"), "{answer}");
}

#[test]
fn a_reset_is_a_reset() {
    for reply in [Reply::stream("abc").ending(End::Reset), Reply::trouble(TransportError::Refused)] {
        let server = ModelServer::start(Script::list(vec![reply]));
        let mut stream = connect(&server);

        post(&mut stream, "/", "", "keep-alive");
        let error = stream.read_to_end(&mut vec![]).unwrap_err();

        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
}

#[test]
fn a_client_that_leaves_a_stalled_answer_is_noticed() {
    let server = ModelServer::start(Script::list(vec![Reply::stream("abc").ending(End::Stall)]));
    let mut stream = connect(&server);
    post(&mut stream, "/", "", "keep-alive");
    stream.read_exact(&mut [0; 20]).unwrap();

    drop(stream);

    let deadline = Instant::now() + PATIENCE;
    while server.abandoned() == 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(server.abandoned(), 1);
}

#[test]
fn many_connections_are_answered_side_by_side() {
    let latch = Latch::new();
    let gate = latch.clone();
    let server = ModelServer::start(Script::by(move |seen| match seen.path.as_str() {
        "/slow" => Reply::stream("a").then(Piece::Gate(gate.clone())).then(Piece::Bytes(b"b".to_vec())),
        _ => Reply::stream("quick"),
    }));
    let mut slow = connect(&server);
    post(&mut slow, "/slow", "", "close");

    let mut quick = connect(&server);
    post(&mut quick, "/", "", "close");
    let quick = read_to_end(&mut quick);
    latch.open();
    let slow = read_to_end(&mut slow);

    assert!(quick.ends_with("5\r\nquick\r\n0\r\n\r\n"), "{quick}");
    assert!(slow.ends_with("1\r\na\r\n1\r\nb\r\n0\r\n\r\n"), "{slow}");
}

#[test]
fn it_ends_when_it_is_dropped() {
    let server = ModelServer::start(Script::list(vec![Reply::stream("").ending(End::Stall)]));
    let address = server.url().strip_prefix("http://").unwrap().to_owned();
    let mut stream = connect(&server);
    post(&mut stream, "/", "", "keep-alive");

    drop(server);

    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(TcpStream::connect(address).is_err());
}

/// M14
#[test]
fn a_server_can_cut_prompts_so_that_only_the_usage_shows_it() {
    let server = ModelServer::start(Script::cutting_prompts(Said::text("Hello.").usage(1, 2), 100));
    let counted = |length: usize| {
        let mut stream = connect(&server);
        post(&mut stream, "/v1/chat/completions", &"x".repeat(length), "close");
        let answer = read_to_end(&mut stream);
        let (_, after) = answer.split_once(r#""prompt_tokens":"#).unwrap();
        after.split([',', '}']).next().unwrap().to_owned()
    };

    let counts = [counted(80), counted(400), counted(40_000)];

    assert_eq!(counts, ["20", "100", "100"]);
}
