//! Connections that fail, over real sockets: what the turn does about them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};

use longhaul_agent::{Config, Runtime};
use longhaul_model::Protocol;
use longhaul_protocol::{EventKind, Outcome};
use longhaul_testkit::wire::ScriptedAnswer;
use longhaul_testkit::{TestHome, collect_until, ended_turn};

use crate::wire;

const CHAT: Protocol = Protocol::OpenaiChat;

/// A config whose model is behind this address.
fn config(place: &TestHome, address: SocketAddr) -> Config {
    let mut config = wire::config(place, CHAT);
    config.settings.model.base_url = Some(format!("http://{address}/v1"));
    config
}

fn waits(events: &[longhaul_protocol::Event]) -> Vec<(String, u32, u32)> {
    let wait = |event: &longhaul_protocol::Event| match &event.kind {
        EventKind::RetryWait { class, attempt, of, .. } => Some((class.clone(), *attempt, *of)),
        _ => None,
    };
    events.iter().filter_map(wait).collect()
}

fn retries(count: u32) -> Vec<(String, u32, u32)> {
    (1..=count).map(|retry| ("connection".to_owned(), retry, 4)).collect()
}

/// M3, M1: a server that drops connections before it answers is asked again, and the turn completes.
#[tokio::test(flavor = "multi_thread")]
async fn dropped_connections_are_tried_again_until_the_server_answers() {
    let place = TestHome::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (count, mut stream) in listener.incoming().flatten().enumerate() {
            let mut buffer = [0; 65_536];
            let _ = stream.read(&mut buffer);
            if count < 3 {
                continue;
            }
            let answer = ScriptedAnswer::text("Fine.").bytes(CHAT);
            let head =
                format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", answer.len());
            stream.write_all(&[head.as_bytes(), &answer].concat()).unwrap();
        }
    });
    let runtime = Runtime::open(config(&place, address)).await.unwrap();
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();

    let ended = session.send("hello").await.unwrap();

    let events = collect_until(&mut watcher, ended_turn).await;
    assert_eq!((ended.outcome, ended.text.as_str()), (Outcome::Completed, "Fine."));
    assert_eq!(waits(&events), retries(3));
    runtime.shutdown().await.unwrap();
}

/// M4, M1: where nothing listens on loopback the tries are spent, and the error says how to go on.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_by_loopback_spends_the_tries_and_says_to_start_the_server() {
    let place = TestHome::new();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let runtime = Runtime::open(config(&place, address)).await.unwrap();
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();

    let ended = session.send("hello").await.unwrap();

    let events = collect_until(&mut watcher, ended_turn).await;
    let told = ended.error.unwrap();
    assert_eq!((ended.outcome, ended.code.as_deref()), (Outcome::Failed, Some("connection")), "{told}");
    assert_eq!(waits(&events), retries(4));
    assert!(told.contains("start the server") && told.contains("gave up after 5 requests"), "{told}");
    runtime.shutdown().await.unwrap();
}
