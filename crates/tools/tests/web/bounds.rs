//! Answers that never end, that are too large, or that say something else than they are.

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use longhaul_tools::{GuardedClient, WebError, WebLimits};

use longhaul_testkit::{WebReply, WebServer, web_page};

use crate::lookup::{client, get, guard, limits};

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn compressed(body: &[u8]) -> Vec<u8> {
    let head = format!(
        "{HEAD}content-encoding: gzip\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn small(server: &WebServer, bytes: usize) -> GuardedClient {
    let limits = WebLimits { bytes, ..limits() };
    GuardedClient::new(guard(&[&server.address.to_string()]), limits)
}

/// P5
#[tokio::test]
async fn of_an_endless_answer_only_so_much_is_read_as_may_be() {
    for head in [format!("{HEAD}\r\n"), format!("{HEAD}content-length: 1000000000000\r\n\r\n")] {
        let server =
            WebServer::start(move |_| WebReply::Endless(head.clone().into_bytes(), vec![b'x'; 10_000])).await;

        let page = get(&small(&server, 100_000), &server.url("/")).await.unwrap();

        assert_eq!((page.body.len(), page.is_cut), (100_000, true));
    }
}

/// P5: 256 MiB of zeros in 256 KiB.
#[tokio::test]
async fn a_compressed_bomb_unpacks_into_no_more_than_may_be() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    for _ in 0..256 {
        encoder.write_all(&vec![0; 1 << 20]).unwrap();
    }
    let answer = compressed(&encoder.finish().unwrap());
    let server = WebServer::start(move |_| WebReply::Bytes(answer.clone())).await;

    let page = get(&small(&server, 100_000), &server.url("/")).await.unwrap();

    assert_eq!((page.body.len(), page.is_cut), (100_000, true));
}

#[tokio::test]
async fn a_compressed_page_is_read_and_a_broken_one_is_an_error() {
    let whole = compressed(&gzip(b"hello"));
    let broken = compressed(b"no gzip at all");
    let mut half = gzip(b"hello hello hello");
    half.truncate(12);
    let half = compressed(&half);
    let server = WebServer::start(move |head| {
        let path = head.split(' ').nth(1).unwrap();
        WebReply::Bytes(match path {
            "/whole" => whole.clone(),
            "/half" => half.clone(),
            "/brotli" => b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 1\r\n\r\nx".to_vec(),
            _ => broken.clone(),
        })
    })
    .await;
    let client = client(&[&server.address.to_string()]);

    assert_eq!(get(&client, &server.url("/whole")).await.unwrap().body, b"hello");
    for path in ["/broken", "/half", "/brotli"] {
        let got = get(&client, &server.url(path)).await;

        assert!(matches!(got, Err(WebError::Broken { .. })), "{path}: {got:?}");
    }
}

/// P5
#[tokio::test]
async fn a_server_that_never_finishes_is_given_up() {
    let server = WebServer::start(|head| {
        WebReply::Silent(if head.starts_with("GET /silent") {
            vec![]
        } else {
            format!("{HEAD}\r\nx").into_bytes()
        })
    })
    .await;
    let limits = WebLimits { total: Duration::from_millis(200), ..limits() };
    let client = GuardedClient::new(guard(&[&server.address.to_string()]), limits);

    for path in ["/silent", "/slow"] {
        let got = get(&client, &server.url(path)).await;

        assert!(matches!(got, Err(WebError::TimedOut { .. })), "{path}: {got:?}");
    }
}

/// P5: nothing of the user goes along.
#[tokio::test]
async fn a_request_carries_no_cookies_no_keys_and_no_referrer() {
    let server = WebServer::start(|head| {
        let answer = String::from_utf8(web_page("text/plain", b"x")).unwrap();
        WebReply::Bytes(match head.starts_with("GET /again") {
            true => answer.into_bytes(),
            false => answer
                .replace("200 OK\r\n", "302 Found\r\nset-cookie: a=b\r\nlocation: /again#part\r\n")
                .into_bytes(),
        })
    })
    .await;
    let client = client(&[&server.address.to_string()]);

    get(&client, &server.url("/first?key=1")).await.unwrap();
    get(&client, &server.url("/again")).await.unwrap();

    let requests = server.requests().join("").to_lowercase();
    assert_eq!(server.requests().len(), 3);
    for header in ["cookie", "authorization", "referer", "origin"] {
        assert!(!requests.contains(&format!("\n{header}:")), "{header}: {requests}");
    }
}
