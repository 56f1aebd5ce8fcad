//! Connections that fail, over real sockets: what they are called, because that decides what is done about them.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};

use longhaul_model::{AnswerPart, FailureClass, Model, ModelFailure, ModelSpec, Models, Protocol, Request};
use longhaul_testkit::wire::ScriptedAnswer;

/// What a server does with a connection.
#[derive(Debug, Clone, Copy)]
enum Does {
    /// Closes it before it has read anything.
    Close,
    /// Reads the request, or the beginning of a handshake, and closes it.
    ReadAndClose,
    /// Resets it after reading.
    Reset,
    /// Breaks off in the middle of the head of its answer.
    HalfAHead,
    Answer,
}

/// A server on loopback that treats every connection like this.
fn server(does: Does) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| serve(does, stream)));
    address
}

fn serve(does: Does, mut stream: TcpStream) {
    let mut buffer = [0; 65_536];
    let wanted = match does {
        Does::Close => 0,
        // Closing a connection with something unread in it resets it.
        Does::Reset => 1,
        Does::ReadAndClose | Does::HalfAHead | Does::Answer => buffer.len(),
    };
    let _ = stream.read(&mut buffer[..wanted]);
    match does {
        Does::Close | Does::ReadAndClose | Does::Reset => {}
        Does::HalfAHead => stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-ty").unwrap(),
        Does::Answer => {
            let answer = ScriptedAnswer::text("Fine.").bytes(Protocol::OpenaiChat);
            let head =
                format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", answer.len());
            stream.write_all(&[head.as_bytes(), &answer].concat()).unwrap();
        }
    }
}

/// A port of loopback where nothing listens.
fn closed_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn model(home: &tempfile::TempDir, base_url: &str) -> std::sync::Arc<dyn Model> {
    let wanted = ModelSpec {
        name: "m".to_owned(),
        base_url: Some(base_url.to_owned()),
        context_window: Some(1_000),
        ..ModelSpec::default()
    };
    Models::at(home.path()).unwrap().open(&wanted).unwrap()
}

async fn ask(model: &dyn Model) -> Result<(), ModelFailure> {
    let mut answer = model
        .ask(Request::default(), &longhaul_model::CallPermit::unreserved(longhaul_protocol::Cause::Turn))
        .await?;
    while !matches!(answer.next().await?, AnswerPart::End(_)) {}
    Ok(())
}

/// M3: each is a connection failure, which is tried again, and is told with the address.
#[tokio::test]
async fn a_connection_that_breaks_before_an_answer_is_a_connection_failure() {
    let home = tempfile::tempdir().unwrap();
    let table = [
        ("http", Does::Close),
        ("http", Does::ReadAndClose),
        ("http", Does::Reset),
        ("http", Does::HalfAHead),
        ("https", Does::Close),
        ("https", Does::ReadAndClose),
        ("https", Does::Reset),
    ];

    for (scheme, does) in table {
        let address = server(does);
        let failure = ask(&*model(&home, &format!("{scheme}://{address}/v1"))).await.unwrap_err();
        assert_eq!(failure.class, FailureClass::Connection, "{scheme}, {does:?}: {}", failure.message);
        assert!(failure.class.is_retried());
        assert!(failure.message.contains(&format!("{address} did not answer")), "{}", failure.message);
    }
}

/// M4: a refusal by loopback counts as a connection failure and says what to do, also after the server has answered before.
#[tokio::test]
async fn a_refusal_by_loopback_says_to_start_the_server() {
    let home = tempfile::tempdir().unwrap();
    let address = closed_port();

    let failure = ask(&*model(&home, &format!("http://{address}/v1"))).await.unwrap_err();

    assert_eq!(failure.class, FailureClass::Connection, "{}", failure.message);
    assert!(failure.message.contains(&format!("no server is running at {address}")), "{}", failure.message);
    assert!(failure.message.contains("start the server"), "{}", failure.message);
}

/// M4: a name that leads nowhere, of a host that never answered. The label is longer than a name server takes, so nobody is asked.
#[tokio::test]
async fn a_name_that_leads_nowhere_fails_at_once_and_says_what_set_it() {
    let home = tempfile::tempdir().unwrap();
    let host = format!("{}.test", "a".repeat(64));

    let failure = ask(&*model(&home, &format!("http://{host}/v1"))).await.unwrap_err();

    assert_eq!(failure.class, FailureClass::Unreachable, "{}", failure.message);
    assert!(!failure.class.is_retried());
    assert!(failure.message.contains("can't reach "), "{}", failure.message);
    assert!(failure.message.contains("the address is set by"), "{}", failure.message);
}

/// M4: a host with a name that is not loopback's own, which answers and then is gone, is offline; one that never answered is not.
#[tokio::test]
async fn a_refusal_by_a_host_that_has_answered_before_is_being_offline() {
    // It answers once and is gone.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        drop(listener);
        serve(Does::Answer, stream);
    });
    let leads_here = |name: &&str| {
        let mut found = (*name, port).to_socket_addrs().ok().into_iter().flatten();
        found.any(|address| address.ip().is_loopback() && address.is_ipv4())
    };
    // Names by which a machine may know its loopback, and which the program does not.
    let hostname = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    let names = ["localhost.", "localhost.localdomain", "ip4-localhost", hostname.trim()];
    let Some(name) = names.into_iter().find(leads_here) else {
        eprintln!("no other name leads to loopback here");
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let other = closed_port().port();

    let never = ask(&*model(&home, &format!("http://{name}:{other}/v1"))).await.unwrap_err();
    ask(&*model(&home, &format!("http://{name}:{port}/v1"))).await.unwrap();
    let offline = ask(&*model(&home, &format!("http://{name}:{port}/v1"))).await.unwrap_err();

    assert_eq!(never.class, FailureClass::Unreachable, "{}", never.message);
    assert_eq!(offline.class, FailureClass::Offline, "{}", offline.message);
}
