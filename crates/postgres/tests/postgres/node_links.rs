//! N3: the direct way between nodes is a hint, too. A link that a test makes fail costs its callers nothing, and what it loses comes
//! through the database.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use longhaul_journal::{Holder, Home, Journal, Subscription, WakeSignal, WakeSignals};
use longhaul_postgres::{DatabaseAddress, NodeLink, NodeLinkError, PostgresJournal, PostgresOptions};
use longhaul_protocol::{SessionId, StreamName};

use crate::database::TestDatabase;

const TEST_TIMEOUT: Duration = Duration::from_secs(60);
const ADDRESS: &str = "http://node-a";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behaviour {
    Works,
    Hangs,
    Fails,
    Refuses,
}

/// A link to the journal of the other node in this process.
struct TestLink {
    behaviour: Mutex<Behaviour>,
    /// When each request began, and for how many streams.
    requests: Mutex<Vec<(Instant, usize)>>,
    target: OnceLock<Arc<PostgresJournal>>,
}

impl std::fmt::Debug for TestLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TestLink")
    }
}

impl TestLink {
    fn new(behaviour: Behaviour) -> Arc<Self> {
        Arc::new(Self {
            behaviour: Mutex::new(behaviour),
            requests: Mutex::default(),
            target: OnceLock::new(),
        })
    }

    fn become_one_that(&self, behaviour: Behaviour) {
        *self.behaviour.lock().unwrap() = behaviour;
    }

    fn requests(&self) -> Vec<(Instant, usize)> {
        self.requests.lock().unwrap().clone()
    }

    async fn behave(&self, address: &str, streams: usize) -> Result<&PostgresJournal, NodeLinkError> {
        assert_eq!(address, ADDRESS);
        self.requests.lock().unwrap().push((Instant::now(), streams));
        let behaviour = *self.behaviour.lock().unwrap();
        match behaviour {
            Behaviour::Works => Ok(self.target.get().unwrap()),
            Behaviour::Hangs => std::future::pending().await,
            Behaviour::Fails => Err(NodeLinkError::Unreachable("the cable is cut".to_owned())),
            Behaviour::Refuses => Err(NodeLinkError::Refused),
        }
    }
}

#[async_trait]
impl NodeLink for TestLink {
    async fn wake(
        &self,
        address: &str,
        holder: &Holder,
        streams: &[StreamName],
    ) -> Result<(), NodeLinkError> {
        let target = self.behave(address, streams.len()).await?;
        assert!(target.wake_here(holder, streams).await.unwrap());
        Ok(())
    }

    async fn subscribe(
        &self,
        address: &str,
        holder: &Holder,
        stream: &StreamName,
    ) -> Result<Subscription, NodeLinkError> {
        let target = self.behave(address, 1).await?;
        target.subscribe_here(holder, stream).await.unwrap().ok_or(NodeLinkError::Refused)
    }
}

/// A process of another machine.
fn process_on(machine: &str) -> Holder {
    Holder { host: machine.to_owned(), boot: format!("boot of {machine}"), ..Holder::this_process() }
}

/// Two nodes with homes of their own on one database.
struct TwoNodes {
    a: Arc<PostgresJournal>,
    b: PostgresJournal,
    link: Arc<TestLink>,
    wakes: WakeSignals,
    _homes: [tempfile::TempDir; 2],
    _database: TestDatabase,
}

impl TwoNodes {
    async fn start(database: TestDatabase, behaviour: Behaviour) -> Self {
        let homes = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let address = DatabaseAddress::parse(&database.url()).unwrap();
        let link = TestLink::new(behaviour);
        let open = async |home: &tempfile::TempDir, options: PostgresOptions| {
            let home = Home::create(home.path()).unwrap();
            PostgresJournal::open_with(&address, &home, options).await.unwrap()
        };
        let holder = process_on("a");
        // The leases must not end while a busy machine runs the test.
        let lease_expiry = Duration::from_secs(3_600);
        let options = PostgresOptions { holder: holder.clone(), lease_expiry, ..PostgresOptions::default() };
        let a = Arc::new(open(&homes[0], options).await);
        let options = PostgresOptions {
            holder: process_on("b"),
            link: Some(link.clone()),
            addresses: vec![(holder, ADDRESS.to_owned())],
            ..PostgresOptions::default()
        };
        let b = open(&homes[1], options).await;
        let _ = link.target.set(a.clone());
        // Both have sockets, as nodes do.
        let wakes = a.wake_signals().await.unwrap();
        b.wake_signals().await.unwrap();
        Self { a, b, link, wakes, _homes: homes, _database: database }
    }

    /// So many streams that the first node holds.
    async fn held(&self, count: usize) -> Vec<StreamName> {
        let mut streams = Vec::new();
        for _ in 0..count {
            let stream = StreamName::session(SessionId::generate());
            self.a.acquire_lease(&stream).await.unwrap();
            streams.push(stream);
        }
        streams.sort();
        streams
    }

    /// The streams of the next wakes.
    async fn heard(&mut self, count: usize) -> Vec<StreamName> {
        let mut heard = Vec::new();
        while heard.len() < count {
            match tokio::time::timeout(TEST_TIMEOUT, self.wakes.next()).await.expect("a wake") {
                WakeSignal::Stream(stream) => heard.push(stream),
                other => panic!("{other:?}"),
            }
        }
        heard.sort();
        heard
    }
}

/// Here the database delivers no notifications.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_woken_directly() {
    let mut nodes = TwoNodes::start(TestDatabase::behind_pooler("transaction"), Behaviour::Works).await;
    let streams = nodes.held(300).await;

    let wakes = streams.iter().map(|stream| nodes.b.wake_holder(stream));
    for wake in wakes {
        wake.await.unwrap();
    }

    assert_eq!(nodes.heard(300).await, streams, "each once");
    let requests = nodes.link.requests();
    assert_eq!(requests.iter().map(|(_, streams)| streams).sum::<usize>(), 300);
    for pair in requests.windows(2) {
        let is_next_part = pair[0].1 == 100;
        let wait = pair[1].0 - pair[0].0;
        assert!(is_next_part || wait >= Duration::from_millis(9), "{wait:?} between two requests");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_hangs_costs_nothing_and_is_woken_through_the_database() {
    let mut nodes = TwoNodes::start(TestDatabase::new(), Behaviour::Hangs).await;
    assert!(nodes.a.delivers_wakes().await.unwrap());
    let streams = nodes.held(20).await;

    let begun = Instant::now();
    for stream in &streams {
        nodes.b.wake_holder(stream).await.unwrap();
    }
    let waited = begun.elapsed();
    let asked = nodes.link.requests();

    assert_eq!(nodes.heard(20).await, streams);
    // Well below the second that the first request takes to fail. One request was under way all the time.
    assert!(waited < Duration::from_millis(900) || asked.len() > 1, "{waited:?}");
    // While the address is left alone, wakes don't wait for it.
    let before = nodes.link.requests().len();
    let begun = Instant::now();
    nodes.b.wake_holder(&streams[0]).await.unwrap();
    assert_eq!(nodes.heard(1).await, streams[..1]);
    assert!(nodes.link.requests().len() == before || begun.elapsed() >= Duration::from_millis(500));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_fails_is_left_alone_for_a_while() {
    for behaviour in [Behaviour::Fails, Behaviour::Refuses] {
        let mut nodes = TwoNodes::start(TestDatabase::new(), behaviour).await;
        assert!(nodes.a.delivers_wakes().await.unwrap());
        let streams = nodes.held(1).await;
        for _ in 0..5 {
            nodes.b.wake_holder(&streams[0]).await.unwrap();
            assert_eq!(nodes.heard(1).await, streams);
        }
        let followed = nodes.b.subscribe(&process_on("a"), &streams[0]).await.unwrap();
        let requests = nodes.link.requests();

        assert!(followed.is_none());
        let spans: Vec<Duration> = requests.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        match behaviour {
            Behaviour::Refuses => assert_eq!(requests.len(), 6, "a node that answers is asked again"),
            _ => assert!(spans.iter().all(|span| *span >= Duration::from_millis(990)), "{spans:?}"),
        }

        // When it works again, it is used again.
        nodes.link.become_one_that(Behaviour::Works);
        let begun = Instant::now();
        while nodes.b.subscribe(&process_on("a"), &streams[0]).await.unwrap().is_none() {
            assert!(begun.elapsed() < TEST_TIMEOUT);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_cross_nodes_until_either_end_is_gone() {
    let nodes = TwoNodes::start(TestDatabase::new(), Behaviour::Works).await;
    let streams = nodes.held(1).await;
    let mut subscribers = nodes.a.subscribers().await.unwrap();
    let subscribe = async || nodes.b.subscribe(&process_on("a"), &streams[0]).await.unwrap().unwrap();

    let mut subscription = subscribe().await;
    let mut subscriber = subscribers.next().await.unwrap();
    assert_eq!(subscriber.stream(), &streams[0]);
    assert!(subscriber.tell("one\ntwo\n").await);
    assert_eq!(subscription.next().await.as_deref(), Some("one"));
    assert_eq!(subscription.next().await.as_deref(), Some("two"));
    drop(subscriber);
    assert_eq!(subscription.next().await, None);

    let subscription = subscribe().await;
    let mut subscriber = subscribers.next().await.unwrap();
    drop(subscription);
    tokio::time::timeout(TEST_TIMEOUT, subscriber.hung_up()).await.unwrap();
}

/// H5: a node passes on nothing to a process that is not in its home, and to no socket but that of a process there.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_serves_only_the_processes_of_its_home() {
    let nodes = TwoNodes::start(TestDatabase::new(), Behaviour::Works).await;
    let stream = nodes.held(1).await.remove(0);
    let other = |holder: Holder| Holder { pid: holder.pid + 1, ..holder };
    let socket = tempfile::tempdir().unwrap();
    let path = socket.path().join("x.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    listener.set_nonblocking(true).unwrap();
    let climbing = format!("../../../../../../..{}", path.display());

    for holder in [
        process_on("b"),
        other(process_on("a")),
        Holder { socket: climbing, ..other(process_on("a")) },
        Holder { socket: path.display().to_string(), ..other(process_on("a")) },
    ] {
        assert!(!nodes.a.wake_here(&holder, std::slice::from_ref(&stream)).await.unwrap(), "{holder:?}");
        assert!(nodes.a.subscribe_here(&holder, &stream).await.unwrap().is_none(), "{holder:?}");
    }

    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}
