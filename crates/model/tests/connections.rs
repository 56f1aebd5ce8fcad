//! Connections over real sockets: their clock, and whether they are used again.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

use std::time::{Duration, Instant};

use longhaul_model::transport::{HttpRequest, HttpTransport, Transport};
use longhaul_model::{AnswerPart, ModelSpec, Models, Protocol, Request};
use longhaul_testkit::wire::ScriptedAnswer;

/// M7: the clock for connecting is that of the request, not that of the first one that anybody made.
#[tokio::test]
async fn connecting_takes_as_long_as_this_request_allows() {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    // Nobody accepts: when the queue is full, whoever comes is not answered.
    let mut full = Vec::new();
    for _ in 0..8 {
        if let Ok(Ok(stream)) =
            tokio::time::timeout(Duration::from_millis(100), tokio::net::TcpStream::connect(address)).await
        {
            full.push(stream);
        }
    }
    let http = HttpTransport::default();
    let ask = |within: u64| HttpRequest {
        url: format!("http://{address}/v1"),
        headers: vec![],
        body: None,
        connect_within: Duration::from_millis(within),
    };
    let began = Instant::now();
    let first = http.send(ask(200)).await.err();
    eprintln!("{first:?} after {:?}", began.elapsed());
    let began = Instant::now();
    let second = http.send(ask(2_000)).await.err();
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(1_500), "{second:?} after {took:?}, and 2 s were allowed");
}

/// Connections are used again, and one that the server closed while it was idle costs nobody a failure.
#[tokio::test]
async fn a_connection_is_used_again_when_its_end_comes_after_the_end_mark() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = connections.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                loop {
                    match stream.read(&mut buffer).await {
                        Ok(1..) => {}
                        _ => return,
                    }
                    let answer = ScriptedAnswer::text("Fine.").bytes(Protocol::OpenaiChat);
                    let head = format!(
                        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n",
                        answer.len()
                    );
                    stream.write_all(&[head.as_bytes(), &answer, b"\r\n"].concat()).await.unwrap();
                    stream.flush().await.unwrap();
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    if stream.write_all(b"0\r\n\r\n").await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    let home = tempfile::tempdir().unwrap();
    let wanted = ModelSpec {
        name: "m".to_owned(),
        base_url: Some(format!("http://{address}/v1")),
        context_window: Some(1_000),
        ..ModelSpec::default()
    };
    let model = Models::at(home.path()).unwrap().open(&wanted).unwrap();

    let (mut asked, since) = (0, Instant::now());
    let made = || connections.load(std::sync::atomic::Ordering::SeqCst);
    // On a machine that is busy one or the other may come too late, but not always.
    while asked < 5 || made() == asked {
        asked += 1;
        let mut answer = model
            .ask(Request::default(), &longhaul_model::CallPermit::unreserved(longhaul_protocol::Cause::Turn))
            .await
            .unwrap();
        // The end mark is read; the end of the body is a moment away.
        while !matches!(answer.next().await.unwrap(), AnswerPart::End(_)) {}
        drop(answer);
        tokio::time::sleep(Duration::from_millis(60)).await;
        assert!(since.elapsed() < Duration::from_secs(60), "{asked} requests made {} connections", made());
    }
}

#[tokio::test]
async fn a_connection_that_was_closed_while_idle_costs_no_failure() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                if stream.read(&mut buffer).await.unwrap_or(0) > 0 {
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
                }
            });
        }
    });
    let http = HttpTransport::default();
    for round in 0..200 {
        let sent = http
            .send(HttpRequest {
                url: format!("http://{address}/"),
                headers: vec![],
                body: Some(vec![1]),
                connect_within: Duration::from_secs(30),
            })
            .await;
        let mut incoming = match sent {
            Ok(incoming) => incoming,
            Err(trouble) => panic!("round {round}: {trouble:?}"),
        };
        while incoming.body.next().await.unwrap().is_some() {}
    }
}

/// What the server says about a model and the first request to it need one connection, also where it knows nothing.
#[tokio::test]
async fn asking_about_a_model_leaves_the_connection_to_the_first_request() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (counted, mut connections) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            counted.send(()).unwrap();
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                while stream.read(&mut buffer).await.unwrap_or(0) > 0 {
                    let reply = match buffer.starts_with(b"GET") {
                        true => b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}",
                        false => b"HTTP/1.1 418 A Teapot \r\ncontent-length: 2\r\n\r\n{}",
                    };
                    stream.write_all(reply).await.unwrap();
                }
            });
        }
    });
    let home = tempfile::tempdir().unwrap();
    let base_url = Some(format!("http://{address}/v1"));
    let wanted = ModelSpec { name: "m".to_owned(), base_url, ..ModelSpec::default() };
    let model = Models::at(home.path()).unwrap().open(&wanted).unwrap();

    model.capabilities().await;
    let refused = model
        .ask(Request::default(), &longhaul_model::CallPermit::unreserved(longhaul_protocol::Cause::Turn))
        .await
        .map(drop)
        .unwrap_err();

    assert_eq!(refused.status, Some(418));
    assert!(connections.recv().await.is_some() && connections.try_recv().is_err(), "one connection");
}
