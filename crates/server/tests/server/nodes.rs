//! Two nodes of a cluster: two runtimes with homes of their own on one database, and their servers on loopback.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use longhaul_agent::model::{Model, ScriptedModel};
use longhaul_agent::{ClusterToken, Follower, HttpNodeLink, Runtime, RuntimeBuilder, Watched};
use longhaul_journal::{Holder, Home, Journal, WakeSignal};
use longhaul_postgres::{DatabaseAddress, NodeLink, PostgresJournal, PostgresOptions};
use longhaul_protocol::{Event, EventKind, Input, InputId, JoinMode, SessionId, StreamName};
use longhaul_server::{Scope, Server, ServerOptions, TokenStore};
use longhaul_testkit::{GatedModel, PgBouncer, PostgresServer, TestHome};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::test_server::ADMIN_TOKEN;

pub(crate) const CLUSTER_TOKEN: &str = "cluster-token-of-the-test-0123456789";
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A process of another machine.
pub(crate) fn process_on(machine: &str) -> Holder {
    Holder { host: machine.to_owned(), boot: format!("boot of {machine}"), ..Holder::this_process() }
}

pub(crate) fn cluster_token(text: &str) -> ClusterToken {
    ClusterToken::new(text, "the test").unwrap()
}

/// An empty database, and whether it delivers notifications.
pub(crate) struct TestDatabase {
    server: PostgresServer,
    name: String,
    pooler: Option<PgBouncer>,
}

impl TestDatabase {
    pub(crate) fn new() -> Self {
        let server = PostgresServer::shared();
        Self { name: server.create_database(), server, pooler: None }
    }

    /// Behind a pooler that takes LISTEN and delivers nothing.
    pub(crate) fn without_notifications() -> Self {
        let mut database = Self::new();
        database.pooler = Some(PgBouncer::start(&database.server, "transaction"));
        database
    }

    /// The journal of a machine whose process sees these addresses.
    pub(crate) async fn journal(
        &self,
        home: &TestHome,
        machine: &str,
        addresses: Vec<(Holder, String)>,
    ) -> Arc<PostgresJournal> {
        let url = self.pooler.as_ref().map_or_else(|| self.server.url(&self.name), |one| one.url(&self.name));
        let link: Arc<dyn NodeLink> = Arc::new(HttpNodeLink::new(cluster_token(CLUSTER_TOKEN)));
        let options = PostgresOptions {
            lease_expiry: Duration::from_secs(3_600),
            link: Some(link),
            addresses,
            holder: process_on(machine),
            ..PostgresOptions::default()
        };
        let (address, home) = (DatabaseAddress::parse(&url).unwrap(), Home::create(&home.home()).unwrap());
        Arc::new(PostgresJournal::open_with(&address, &home, options).await.unwrap())
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        self.server.sql("postgres", &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
    }
}

pub(crate) struct Node {
    pub(crate) journal: Arc<PostgresJournal>,
    pub(crate) runtime: Runtime,
    pub(crate) server: Server,
    _home: TestHome,
}

impl Node {
    pub(crate) async fn start(
        database: &TestDatabase,
        machine: &str,
        listener: TcpListener,
        addresses: Vec<(Holder, String)>,
        model: Arc<dyn Model>,
    ) -> Self {
        let home = TestHome::new();
        let journal = database.journal(&home, machine, addresses).await;
        let builder = RuntimeBuilder::new(home.config()).model(model).journal(journal.clone());
        let runtime = builder.open().await.unwrap();
        let mut tokens = TokenStore::default();
        tokens.insert("test", Scope::Admin, ADMIN_TOKEN);
        let options =
            ServerOptions { cluster_token: Some(cluster_token(CLUSTER_TOKEN)), ..ServerOptions::default() };
        let server = Server::start(listener, runtime.clone(), tokens, &options).unwrap();
        Self { journal, runtime, server, _home: home }
    }

    pub(crate) async fn shutdown(self) {
        self.server.shutdown().await;
        self.runtime.shutdown().await.unwrap();
    }
}

fn script(text: &str) -> ScriptedModel {
    ScriptedModel::from_json(text).unwrap()
}

/// A node that hosts, and another one. Each has the address of the other.
async fn two_nodes(database: &TestDatabase, model: Arc<dyn Model>) -> (Node, Node) {
    let listeners =
        [TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap()];
    let url = |listener: &TcpListener| format!("http://{}", listener.local_addr().unwrap());
    let addresses =
        vec![(process_on("a"), url(&listeners[0])), (process_on("b"), format!("{}/", url(&listeners[1])))];
    let [of_a, of_b] = listeners;
    let a = Node::start(database, "a", of_a, addresses.clone(), model).await;
    a.runtime.start().await.unwrap();
    let b = Node::start(database, "b", of_b, addresses, Arc::new(script("[]"))).await;
    (a, b)
}

fn said(text: &str) -> Input {
    Input::new(InputId::generate(), text, JoinMode::Join)
}

/// Everything up to and with the first event that this is true of.
async fn until(follower: &mut Follower, last: impl Fn(&EventKind) -> bool) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        let next = tokio::time::timeout(TEST_TIMEOUT, follower.next()).await;
        let next = next.unwrap_or_else(|_| panic!("it did not come; until then there were {events:#?}"));
        let Some(Watched::Event(event)) = next else { panic!("{next:?}") };
        let is_last = last(&event.kind);
        events.push(event);
        if is_last {
            return events;
        }
    }
}

/// N1, T14: an input for a session of another node wakes that node directly, and the words of its answer come while they are said.
/// The database delivers no notifications here.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_another_node_is_woken_and_followed_live() {
    let database = TestDatabase::without_notifications();
    let (model, gate) = GatedModel::new(script(r#"["Once upon a time.", "The end."]"#));
    let (a, b) = two_nodes(&database, model).await;
    let session = a.runtime.session("tale").await.unwrap();
    session.put(said("tell"), None).await.unwrap();
    gate.reached().await;

    let visitor = b.runtime.session("tale").await.unwrap();
    let mut follower = visitor.follow(0).await.unwrap();
    let begun = until(&mut follower, |kind| matches!(kind, EventKind::Partial { .. })).await;
    gate.open();
    until(&mut follower, |kind| matches!(kind, EventKind::TurnEnded { .. })).await;
    visitor.put(said("more"), None).await.unwrap();
    let is_whole = |kind: &EventKind| matches!(kind, EventKind::TextDelta { text } if text.ends_with("end."));
    until(&mut follower, is_whole).await;
    gate.open();
    let last = until(&mut follower, |kind| matches!(kind, EventKind::TurnEnded { .. })).await;

    let partial = &begun.last().unwrap().kind;
    assert!(matches!(partial, EventKind::Partial { text, .. } if text == "Once upon a time."), "{partial:?}");
    assert!(matches!(&last.last().unwrap().kind, EventKind::TurnEnded { text, .. } if text == "The end."));
    a.shutdown().await;
    b.shutdown().await;
}

/// N3: the time from a wake on one node to its signal on the other, directly.
#[tokio::test(flavor = "multi_thread")]
async fn a_wake_crosses_nodes_without_the_database() {
    let database = TestDatabase::without_notifications();
    let (a, b) = two_nodes(&database, Arc::new(script("[]"))).await;
    let streams: Vec<StreamName> = (0..250).map(|_| StreamName::session(SessionId::generate())).collect();
    for stream in &streams {
        a.journal.acquire_lease(stream).await.unwrap();
    }
    let mut wakes = a.journal.wake_signals().await.unwrap();

    for stream in &streams {
        b.journal.wake_holder(stream).await.unwrap();
    }

    let mut heard = BTreeSet::new();
    while heard.len() < streams.len() {
        let wake = tokio::time::timeout(TEST_TIMEOUT, wakes.next()).await.expect("a wake");
        if let WakeSignal::Stream(stream) = wake {
            heard.insert(stream);
        }
    }
    assert_eq!(heard, streams.into_iter().collect());
    a.shutdown().await;
    b.shutdown().await;
}

/// N3: whatever answers at the address of a node, an input is durable at once and its session goes on. The database delivers no
/// notifications here, so the input is found by looking for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_is_no_node_delays_nothing_and_gets_no_more_than_one_request() {
    let database = TestDatabase::without_notifications();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let answers = serde_json::to_string(&["Fine."; Peer::ALL.len()]).unwrap();
    let a = Node::start(&database, "a", listener, vec![], Arc::new(script(&answers))).await;
    a.runtime.start().await.unwrap();
    let session = a.runtime.session("tale").await.unwrap();
    session.create_without_folder().await.unwrap();
    let stream = StreamName::session(session.id().unwrap());
    // Somebody holds the session, whatever its worker does.
    let host = process_on("a");
    for peer in Peer::ALL {
        let (address, strangers) = peer.start().await;
        let home = TestHome::new();
        let journal = database.journal(&home, "b", vec![(host.clone(), address)]).await;
        let client = longhaul_agent::Client::new(journal.clone(), longhaul_agent::Redactor::default());
        let visitor = client.session("tale").await.unwrap();
        let turns = session.state().await.unwrap().turn_count;

        let begun = Instant::now();
        let subscription = journal.subscribe(&host, &stream).await.unwrap();
        let waited = begun.elapsed();
        visitor.put(said("go on"), None).await.unwrap();

        assert_eq!(subscription.is_some(), peer == Peer::SaysYes, "{peer:?}");
        assert!(waited < Duration::from_secs(10), "{peer:?}: {waited:?}");
        if let Some(mut subscription) = subscription {
            assert_eq!(subscription.next().await.as_deref(), Some("these are no"));
            assert_eq!(subscription.next().await, None, "what is no text ends the subscription");
        }
        let deadline = Instant::now() + TEST_TIMEOUT;
        let mut state = session.state().await.unwrap();
        while state.turn_count == turns || state.turn.is_some() {
            assert!(Instant::now() < deadline, "{peer:?}: the input is not found");
            tokio::time::sleep(Duration::from_millis(20)).await;
            state = session.state().await.unwrap();
        }
        assert_eq!(strangers.load(Ordering::SeqCst), 0, "{peer:?}: a redirect was followed with the token");
        journal.close().await;
    }
    a.shutdown().await;
}

/// What may be at the address of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Peer {
    Refuses,
    Hangs,
    /// A byte at a time.
    IsSlow,
    SendsGarbage,
    /// Another web server.
    IsAnotherServer,
    Redirects,
    /// Claims to have passed on every wake, and sends lines that mean nothing.
    SaysYes,
}

impl Peer {
    const ALL: [Self; 7] = [
        Self::Refuses,
        Self::Hangs,
        Self::IsSlow,
        Self::SendsGarbage,
        Self::IsAnotherServer,
        Self::Redirects,
        Self::SaysYes,
    ];

    /// Its address, and how many connections another address that it names has got.
    async fn start(self) -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let strangers = Arc::new(AtomicUsize::new(0));
        let (counted, redirect) = (strangers.clone(), elsewhere.local_addr().unwrap());
        tokio::spawn(async move {
            while elsewhere.accept().await.is_ok() {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        if self != Self::Refuses {
            tokio::spawn(async move {
                while let Ok((connection, _)) = listener.accept().await {
                    tokio::spawn(self.answer(connection, redirect));
                }
            });
        }
        (address, strangers)
    }

    async fn answer(self, mut connection: TcpStream, redirect: SocketAddr) {
        let mut request = vec![0; 16 << 10];
        let length = connection.read(&mut request).await.unwrap_or_default();
        let is_wake = request[..length].starts_with(b"POST /cluster/wake ");
        let head = |status: &str, rest: &str| format!("HTTP/1.1 {status}\r\nConnection: close\r\n{rest}\r\n");
        let page = head("200 OK", "Content-Type: text/html\r\n") + "<h1>It works!</h1>";
        let answer = match self {
            Self::Refuses => return,
            Self::Hangs => return std::future::pending().await,
            Self::IsSlow => {
                for byte in page.bytes() {
                    if connection.write_all(&[byte]).await.is_err() {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(300)).await;
                }
                return;
            }
            Self::SendsGarbage => b"\0\xff no HTTP\r\n\r\n".to_vec(),
            Self::IsAnotherServer => page.into_bytes(),
            Self::Redirects => {
                head("307 Temporary Redirect", &format!("Location: http://{redirect}/\r\n")).into_bytes()
            }
            Self::SaysYes if is_wake => head("204 No Content", "").into_bytes(),
            Self::SaysYes => {
                let head = head("200 OK", "Content-Type: application/x-ndjson\r\n");
                [head.as_bytes(), b"\n\nthese are no\nli\xffnes\nat all\n"].concat()
            }
        };
        let _ = connection.write_all(&answer).await;
    }
}
