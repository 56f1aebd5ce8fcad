//! H5: what floods get, and that others are served meanwhile.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use longhaul_server::{RateLimit, ServerOptions};
use reqwest::Method;
use serde_json::json;

use crate::attacks::exchange;
use crate::test_server::{ADMIN_TOKEN, TestServer, json_answer};

/// H5.
#[tokio::test(flavor = "multi_thread")]
async fn too_many_or_too_large_headers_are_refused() {
    let server = TestServer::with_script("[]").await;
    let host = server.address();
    let many: String = (0..500).map(|number| format!("X-{number}: y\r\n")).collect();
    let large = format!("X: {}\r\n", "y".repeat(200_000));

    for (what, headers) in [("many", many), ("large", large)] {
        let answer =
            exchange(host, format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n").as_bytes());
        // A flood that is still being sent may meet a closed connection.
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{what}: {answer}");
    }
    let long =
        exchange(host, format!("GET /{} HTTP/1.1\r\nHost: {host}\r\n\r\n", "a".repeat(70_000)).as_bytes());
    assert!(long.is_empty() || long.starts_with("HTTP/1.1 4"), "{long}");
    assert_eq!(server.get("/api/sessions").await.0, 200);
    server.shutdown().await;
}

/// H5: a body over the limit is refused with an answer that the client gets, whether its length is announced or not.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_the_limit_is_refused_with_an_answer() {
    let server = TestServer::with_script("[]").await;
    let body = format!(r#"{{"token":"{}"}}"#, "x".repeat(3 << 20));

    let post = || server.request(Method::POST, "/api/login").header("content-type", "application/json");
    let announced = json_answer(post().body(body.clone())).await;
    let host = server.address();
    let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let head = format!(
        "POST /api/login HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    );
    let chunked = exchange(host, (head + &chunk).as_bytes());

    assert_eq!((announced.0, announced.1["code"].as_str()), (413, Some("body_too_large")));
    assert!(chunked.starts_with("HTTP/1.1 413"), "{chunked}");
    server.shutdown().await;
}

/// H5: an order that takes no fields refuses a body that is too large, is not JSON or has fields, and puts nothing into the inbox.
/// An empty body may have any type: `curl -d ''` says that it sends a form.
#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_takes_no_fields_refuses_a_body_that_has_some() {
    let server = TestServer::with_script("[]").await;
    server.post("/api/sessions", &json!({"key": "a"})).await;
    let order = |name: &str, content_type: &'static str, body: &'static str| {
        let path = format!("/api/sessions/a/{name}");
        json_answer(server.request(Method::POST, &path).header("content-type", content_type).body(body))
    };

    for name in ["cancel", "retry", "continue"] {
        let mut stream = send_part(server.address(), &format!("/api/sessions/a/{name}"), 100 << 20, 0);
        let mut start = [0; 12];
        stream.read_exact(&mut start).unwrap();
        assert_eq!(&start, b"HTTP/1.1 413", "{name}");
        for (content_type, body, status, code) in [
            ("application/json", r#"{"turn": 1}"#, 400, "invalid_body"),
            ("application/json", "stop", 400, "invalid_json"),
            ("text/plain", "stop", 415, "unsupported_media_type"),
        ] {
            let answer = order(name, content_type, body).await;
            assert_eq!((answer.0, answer.1["code"].as_str()), (status, Some(code)), "{name} {body}");
        }
    }
    let inbox = server.runtime.journal().session("a").await.unwrap().unwrap().inbox_head;
    let accepted = [
        order("cancel", "application/json", "{}").await.0,
        order("cancel", "application/x-www-form-urlencoded", "").await.0,
    ];

    assert_eq!((inbox, accepted), (0, [202, 202]));
    server.shutdown().await;
}

/// Sends the head of a request and a part of its body, and keeps the connection.
fn send_part(address: SocketAddr, path: &str, length: usize, part: usize) -> TcpStream {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let _ = stream.write_all(&vec![b' '; part]);
    stream
}

/// H5: what clients without a token can make the server hold in memory is next to nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_has_a_few_kilobytes() {
    let server = TestServer::with_script("[]").await;

    let mut stream = send_part(server.address(), "/api/login", 5_000, 0);
    let mut start = [0; 12];
    stream.read_exact(&mut start).unwrap();

    assert_eq!(&start, b"HTTP/1.1 413", "it is refused before its body has come");
    server.shutdown().await;
}

fn is_answered(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let answer = stream.peek(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    !answer.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

/// H5: bodies that are in memory together have a bound. The request past it is told to come back, and is served once there
/// is room; small ones are served all the time.
#[tokio::test(flavor = "multi_thread")]
async fn the_bodies_of_all_requests_together_have_a_bound() {
    let server = TestServer::with_script("[]").await;
    // What is left of eight bodies is enough for a small one.
    let (length, part) = (1 << 20, (1 << 20) - 100_000);
    let begin_slow = || send_part(server.address(), "/api/sessions", length, part);
    let mut slow: Vec<TcpStream> = (0..8).map(|_| begin_slow()).collect();

    let large = || {
        let body = json!({"key": "b", "title": "x".repeat(900_000)}).to_string();
        server
            .request(Method::POST, "/api/sessions")
            .header("content-type", "application/json")
            .body(body)
            .send()
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    let refused = loop {
        // The slow ones arrive while this asks, and one of them may be the one that finds no room.
        let answer = large().await.unwrap();
        if answer.status() == 503 {
            break answer;
        }
        assert!(Instant::now() < deadline, "{}", answer.status());
        slow.iter_mut().filter(|slow| is_answered(slow)).for_each(|slow| *slow = begin_slow());
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let small = server.post("/api/sessions", &json!({"key": "small"})).await;
    slow.clear();
    let later = loop {
        let answer = large().await.unwrap();
        if answer.status() != 503 {
            break answer.status();
        }
        assert!(Instant::now() < deadline, "the memory is given back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };

    assert!(refused.headers().contains_key("retry-after"));
    let problem: serde_json::Value = serde_json::from_slice(&refused.bytes().await.unwrap()).unwrap();
    assert_eq!(problem["code"], "too_many_bodies");
    assert_eq!((small.0, later.as_u16()), (201, 400), "{small:?}");
    server.shutdown().await;
}

/// H5: a client that does not read its answers is closed, and so are all others like it.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_do_not_read_are_closed() {
    let write_timeout = Duration::from_secs(1);
    let server = TestServer::configured(ServerOptions { write_timeout, ..ServerOptions::default() }).await;
    let host = server.address();
    let request = format!("GET /openapi.json HTTP/1.1\r\nHost: {host}\r\n\r\n").repeat(200);
    let mut deaf: Vec<TcpStream> = (0..5).map(|_| TcpStream::connect(host).unwrap()).collect();
    for stream in &mut deaf {
        stream.write_all(request.as_bytes()).unwrap();
    }

    let connections = async || {
        let text = server.text("/metrics").await;
        let line = text.lines().find_map(|line| line.strip_prefix("longhaul_connections ")).unwrap();
        line.parse::<usize>().unwrap()
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while connections().await > 1 {
        assert!(Instant::now() < deadline, "the connections stay");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    // They are there until now; the server has closed them.
    drop(deaf);
    server.shutdown().await;
}

/// H5: clients that send their headers a byte at a time are closed, and nobody waits for them.
#[tokio::test(flavor = "multi_thread")]
async fn slow_headers_end_the_connection() {
    let options = ServerOptions { header_timeout: Duration::from_secs(1), ..ServerOptions::default() };
    let server = TestServer::configured(options).await;
    let started = Instant::now();
    let mut slow: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    for stream in &mut slow {
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: local").unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    }

    assert_eq!(server.get("/api/sessions").await.0, 200);
    for stream in &mut slow {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(!String::from_utf8_lossy(&rest).contains("200 OK"));
    }

    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    server.shutdown().await;
}

/// H5: 200 requests a second are served. Wrong tokens are not counted against right ones.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_tokens_are_limited_by_address_and_do_not_lock_out_made_ones() {
    let server = TestServer::with_script("[]").await;
    let journal = server.runtime.journal();
    let made = longhaul_server::create_token(&*journal, "made", longhaul_server::Scope::Read).await.unwrap();
    let get = |token: &str| {
        server
            .anonymous(Method::GET, "/api/sessions")
            .header("authorization", format!("Bearer {token}"))
            .send()
    };

    let mut refused = Vec::new();
    for _ in 0..40 {
        refused.push(get("wrong").await.unwrap());
    }
    let last = refused.pop().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while get(&made).await.unwrap().status() != 200 {
        assert!(Instant::now() < deadline, "a made token counts within a second");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // Time gives an address some guesses back. These use them up.
    while get("wrong").await.unwrap().status() == 401 {}
    let guessable = get(ADMIN_TOKEN).await.unwrap();

    assert_eq!((refused[0].status().as_u16(), last.status().as_u16()), (401, 429));
    assert!(last.headers().contains_key("retry-after"));
    assert_eq!(guessable.status(), 429, "it may be one of the guesses");
    let mut served = 0;
    for _ in 0..400 {
        served += u32::from(get(&made).await.unwrap().status() == 200);
    }
    assert_eq!(served, 400);
    server.shutdown().await;
}

/// H5: a body that stops is answered 408, and others are served meanwhile. One that comes slowly but steadily is read.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_stops_is_answered_and_a_slow_one_is_read() {
    let silence = Duration::from_millis(500);
    let options = ServerOptions { body_silence_timeout: silence, ..ServerOptions::default() };
    let server = TestServer::configured(options).await;
    let host = server.address();
    let head = |length: usize| {
        format!(
            "POST /api/sessions HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        )
    };
    let body = r#"{"key":"slowly"}"#;
    let connect = || {
        let stream = TcpStream::connect(host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    };

    let mut stopped = connect();
    write!(stopped, "{}{}", head(body.len()), &body[..5]).unwrap();
    let began = Instant::now();
    let steady = tokio::task::spawn_blocking({
        let (mut stream, head) = (connect(), head(body.len()));
        move || {
            stream.write_all(head.as_bytes()).unwrap();
            for byte in body.as_bytes() {
                stream.write_all(&[*byte]).unwrap();
                std::thread::sleep(silence / 10);
            }
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        }
    });
    assert_eq!(server.get("/api/sessions").await.0, 200);
    let refused = tokio::task::spawn_blocking(move || {
        let mut answer = String::new();
        stopped.read_to_string(&mut answer).unwrap();
        answer
    });
    let (refused, steady) = (refused.await.unwrap(), steady.await.unwrap());

    assert!(refused.starts_with("HTTP/1.1 408"), "{refused}");
    assert!(refused.contains(r#""code":"body_timeout""#) && refused.contains("problem+json"), "{refused}");
    assert!(began.elapsed() >= silence);
    assert!(steady.starts_with("HTTP/1.1 201"), "longer in all than one silence: {steady}");
    server.shutdown().await;
}

/// H5: a token that asks too often is told when to come back, on `/api` and on `/v1`; another token is served meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_over_its_rate_is_told_when_to_return_and_others_are_served() {
    let token_rate = RateLimit { burst: 5.0, per_second: 0.1 };
    let server = TestServer::configured(ServerOptions { token_rate, ..ServerOptions::default() }).await;
    let journal = server.runtime.journal();
    let other =
        longhaul_server::create_token(&*journal, "other", longhaul_server::Scope::Read).await.unwrap();
    let get = |path: &str, token: &str| {
        server.anonymous(Method::GET, path).header("authorization", format!("Bearer {token}")).send()
    };

    let mut statuses = Vec::new();
    for _ in 0..7 {
        statuses.push(get("/api/sessions", ADMIN_TOKEN).await.unwrap().status().as_u16());
    }
    let refused = get("/api/sessions", ADMIN_TOKEN).await.unwrap();
    let wait: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    let problem: serde_json::Value = serde_json::from_slice(&refused.bytes().await.unwrap()).unwrap();
    let of_openai = get("/v1/models", ADMIN_TOKEN).await.unwrap();
    let openai_status = of_openai.status().as_u16();
    let has_wait = of_openai.headers().contains_key("retry-after");
    let error: serde_json::Value = serde_json::from_slice(&of_openai.bytes().await.unwrap()).unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    // A new token counts within a second, and a wrong one does not use up its rate.
    while get("/api/sessions", &other).await.unwrap().status() != 200 {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    assert_eq!(statuses, [200, 200, 200, 200, 200, 429, 429]);
    assert!((1..=11).contains(&wait), "{wait}");
    assert_eq!(problem["code"], "rate_limited");
    assert!(problem["detail"].as_str().unwrap().contains("\"test\""), "{problem}");
    assert_eq!((openai_status, has_wait), (429, true), "{error}");
    assert_eq!(error["error"]["code"], "rate_limited", "{error}");
    assert_eq!(server.anonymous(Method::GET, "/healthz").send().await.unwrap().status(), 200);
    server.shutdown().await;
}
