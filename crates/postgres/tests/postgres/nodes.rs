//! N1–N4: nodes that share a database: who is there, what is due, and which of them may run a session.

use std::sync::Arc;
use std::time::Duration;

use longhaul_journal::{
    Append, Cluster, DueSession, Error, Home, Journal, NodeState, RunPermission, make_portable, name_session,
    place_session, put,
};
use longhaul_postgres::{DatabaseAddress, NodeOptions, PostgresJournal, PostgresOptions};
use longhaul_protocol::{
    InboxRecord, Input, InputId, JoinMode, SessionCreated, SessionId, SessionRecord, StreamName,
};

use crate::database::TestDatabase;

/// A node with a home of its own on a shared database.
struct Node {
    journal: Arc<PostgresJournal>,
    _home: tempfile::TempDir,
}

impl Node {
    async fn open(database: &TestDatabase, id: &str, dead_after: Duration) -> Self {
        let home = tempfile::tempdir().unwrap();
        let journal = Self::open_in(database, id, dead_after, home.path()).await.unwrap();
        Self { journal: Arc::new(journal), _home: home }
    }

    async fn open_in(
        database: &TestDatabase,
        id: &str,
        dead_after: Duration,
        home: &std::path::Path,
    ) -> longhaul_journal::Result<PostgresJournal> {
        let address = DatabaseAddress::parse(&database.url())?;
        let node = NodeOptions { id: Some(id.to_owned()), dead_after, ..NodeOptions::default() };
        PostgresJournal::open_with(&address, &Home::create(home)?, PostgresOptions::of_node(node)).await
    }

    async fn states(&self) -> Vec<(String, NodeState)> {
        let nodes = self.journal.nodes().await.unwrap();
        nodes.into_iter().map(|node| (node.id, node.state)).collect()
    }

    async fn due(&self) -> Vec<DueSession> {
        self.journal.due_sessions().await.unwrap()
    }

    async fn due_ids(&self) -> Vec<SessionId> {
        self.due().await.into_iter().map(|due| due.entry.id).collect()
    }
}

const LONG: Duration = Duration::from_secs(3_600);
const SHORT: Duration = Duration::from_millis(600);

async fn send(journal: &dyn Journal, key: &str) -> SessionId {
    let id = name_session(journal, key).await.unwrap();
    let input = Input::new(InputId::generate(), "hello", JoinMode::Join);
    put(journal, id, InboxRecord::Input(input).encode()).await.unwrap();
    id
}

fn created(id: SessionId) -> longhaul_protocol::NewRecord {
    let (key, version) = ("a".to_owned(), "1".to_owned());
    SessionRecord::SessionCreated(SessionCreated {
        id,
        key,
        work_dir: None,
        origin: None,
        version,
        parent: None,
    })
    .encode()
}

/// N1: a node is live while it says so, dead after it was silent for too long, and stopped after it left. It comes back under its id.
#[tokio::test]
async fn nodes_see_each_other_come_and_go() {
    let database = TestDatabase::new();
    let (ash, birch) =
        (Node::open(&database, "ash", SHORT).await, Node::open(&database, "birch", LONG).await);

    ash.journal.join().await.unwrap();
    birch.journal.join().await.unwrap();
    let both = birch.states().await;
    tokio::time::sleep(SHORT + Duration::from_millis(100)).await;
    let silent = birch.states().await;
    let refused = birch.journal.give_up("birch").await;
    birch.journal.give_up("ash").await.unwrap();
    let removed = birch.states().await;
    ash.journal.heartbeat().await.unwrap();
    let returned = birch.states().await;
    birch.journal.leave().await.unwrap();
    let left = ash.states().await;

    let states = |ash, birch| vec![("ash".to_owned(), ash), ("birch".to_owned(), birch)];
    assert_eq!(both, states(NodeState::Live, NodeState::Live));
    assert_eq!(silent, states(NodeState::Dead, NodeState::Live));
    assert!(matches!(refused, Err(Error::NodeIsLive { .. })), "{refused:?}");
    assert_eq!(removed, states(NodeState::Gone, NodeState::Live));
    assert_eq!(returned, states(NodeState::Live, NodeState::Live));
    assert_eq!(left, states(NodeState::Live, NodeState::Stopped));
    let unknown = ash.journal.set_draining("elm", true).await.unwrap_err().to_string();
    assert_eq!(unknown, "no node \"elm\"; there are: ash, birch");
}

/// N1: a second home with the id of a node that is heard of gets an error that names the first one. Once the first is silent, the second
/// takes its place, and the first one learns it.
#[tokio::test]
async fn two_homes_with_one_id_are_noticed() {
    let database = TestDatabase::new();
    let first = Node::open(&database, "ash", Duration::from_secs(2)).await;
    let second = Node::open(&database, "ash", Duration::from_secs(2)).await;
    first.journal.join().await.unwrap();

    let beating = Arc::clone(&first.journal);
    let heart = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(500)).await;
            beating.heartbeat().await.unwrap();
        }
    });
    let refused = second.journal.join().await.unwrap_err().to_string();
    heart.abort();
    second.journal.join().await.unwrap();
    let replaced = first.journal.heartbeat().await;

    assert!(refused.contains("the node id \"ash\" is in use by process"), "{refused}");
    assert!(refused.contains(&first.journal.home_folder().display().to_string()), "{refused}");
    assert!(refused.contains("node.id"), "{refused}");
    assert!(matches!(replaced, Err(Error::NodeInUse { .. })), "{replaced:?}");
}

/// N1: a home gets an id once, and all its processes have it.
#[tokio::test]
async fn a_home_keeps_the_id_that_was_made_for_it() {
    let database = TestDatabase::new();

    let first = database.try_open().await.unwrap();
    let again = database.try_open().await.unwrap();
    let bad = Node::open_in(&database, "two words", LONG, database.home.path()).await;

    assert_eq!(first.node(), again.node());
    assert_eq!(std::fs::read_to_string(database.home.path().join("node")).unwrap().trim(), first.node());
    let bad = bad.err().unwrap().to_string();
    assert!(bad.contains("node.id \"two words\" is not an id"), "{bad}");
}

/// N3: work is found by one statement, without any notification: what came into an inbox, and what a process left that is gone or
/// let its lease expire. A session that was found at rest is listed no more, unless something has happened since.
#[tokio::test]
async fn what_is_due_is_listed_until_it_was_found_at_rest() {
    let database = TestDatabase::new();
    let (ash, birch) =
        (Node::open(&database, "ash", SHORT).await, Node::open(&database, "birch", SHORT).await);
    let (journal, other) = (&*ash.journal, &*birch.journal);

    let nothing = ash.due().await;
    let id = send(journal, "a").await;
    let stream = StreamName::session(id);
    let sent = birch.due().await;
    send(journal, "a").await;
    other.settle(&sent).await.unwrap();
    let changed_since = birch.due().await;
    other.settle(&changed_since).await.unwrap();
    let at_rest = birch.due().await;
    let lease = journal.acquire_lease(&stream).await.unwrap();
    journal.append(Append::under(&lease).expecting(0).record(created(id))).await.unwrap();
    let held = (ash.due().await, birch.due().await);
    tokio::time::sleep(SHORT + Duration::from_millis(100)).await;
    let expired = birch.due_ids().await;
    journal.renew_lease(&lease).await.unwrap();
    journal.release_lease(&lease).await.unwrap();
    let released = birch.due_ids().await;
    journal.remove(&stream, None).await.unwrap();

    assert_eq!(nothing, vec![]);
    assert_eq!(sent.len(), 1);
    assert_eq!(changed_since.len(), 1, "an input came in between");
    assert_eq!(at_rest, vec![]);
    assert_eq!(held, (vec![], vec![]));
    assert_eq!((expired, released), (vec![id], vec![id]));
    assert_eq!(database.sql("SELECT count(*) FROM longhaul.due"), "0");
}

/// N3: an input that is committed while a node marks the session as being at rest is not overlooked.
#[tokio::test(flavor = "multi_thread")]
async fn an_input_is_never_lost_to_a_node_that_settles() {
    let database = TestDatabase::new();
    let ash = Node::open(&database, "ash", LONG).await;
    let id = send(&*ash.journal, "a").await;

    for _ in 0..100 {
        let seen = ash.due().await;
        let (sending, settling) = (Arc::clone(&ash.journal), Arc::clone(&ash.journal));
        let send = tokio::spawn(async move { send(&*sending, "a").await });
        let settle = tokio::spawn(async move { settling.settle(&seen).await.unwrap() });
        send.await.unwrap();
        settle.await.unwrap();

        assert_eq!(ash.due_ids().await, vec![id]);
    }
}

/// N2: a session that is bound to a node is run by no other one, also if that one is away, until it is portable.
#[tokio::test]
async fn a_bound_session_waits_for_its_node() {
    let database = TestDatabase::new();
    let (ash, birch) =
        (Node::open(&database, "ash", SHORT).await, Node::open(&database, "birch", LONG).await);
    ash.journal.join().await.unwrap();
    birch.journal.join().await.unwrap();
    let id = send(&*ash.journal, "a").await;

    let placed = place_session(&*ash.journal, &*ash.journal, id, "ash").await.unwrap();
    let again = place_session(&*birch.journal, &*birch.journal, id, "birch").await.unwrap();
    let (own, live) = (ash.due_ids().await, birch.journal.run_permission(id).await.unwrap());
    let other = birch.due_ids().await;
    let woken = birch.journal.host_for(&StreamName::session(id)).await.unwrap();
    tokio::time::sleep(SHORT + Duration::from_millis(100)).await;
    let away = birch.journal.run_permission(id).await.unwrap();
    let made = make_portable(&*birch.journal, &*birch.journal, id).await.unwrap();
    let twice = make_portable(&*birch.journal, &*birch.journal, id).await.unwrap();
    let portable = birch.journal.run_permission(id).await.unwrap();

    assert_eq!((placed.as_deref(), again.as_deref()), (Some("ash"), Some("ash")));
    assert_eq!((own, other), (vec![id], vec![]));
    assert!(matches!(live, RunPermission::Refused(Error::OtherNode { is_live: true, .. })), "{live:?}");
    assert_eq!(woken.as_str(), "host/ash");
    let RunPermission::Refused(away) = away else { panic!("{away:?}") };
    assert!(away.to_string().contains("on node ash, last seen 0 s ago: it waits for that node"), "{away}");
    assert!(away.to_string().contains("longhaul sessions portable"), "{away}");
    assert_eq!((made, twice), (true, false));
    assert_eq!(portable, RunPermission::Granted { is_placed: true });
    assert_eq!(birch.due_ids().await, vec![id]);
}

/// N1: a node that drains leaves sessions to the others, if there are any; those that are bound to it stay.
#[tokio::test]
async fn a_draining_node_leaves_sessions_to_the_others() {
    let database = TestDatabase::new();
    let (ash, birch) = (Node::open(&database, "ash", LONG).await, Node::open(&database, "birch", LONG).await);
    ash.journal.join().await.unwrap();
    let (free, bound) = (send(&*ash.journal, "free").await, send(&*ash.journal, "bound").await);
    place_session(&*ash.journal, &*ash.journal, bound, "ash").await.unwrap();

    birch.journal.set_draining("ash", true).await.unwrap();
    let alone = ash.journal.run_permission(free).await.unwrap();
    birch.journal.join().await.unwrap();
    let told = ash.journal.heartbeat().await.unwrap();
    let handed_over = ash.journal.run_permission(free).await.unwrap();
    let stays = ash.journal.run_permission(bound).await.unwrap();
    let woken = ash.journal.host_for(&StreamName::session(free)).await.unwrap();
    let due = (ash.due_ids().await, birch.due_ids().await);
    birch.journal.set_draining("ash", false).await.unwrap();
    let back = ash.journal.run_permission(free).await.unwrap();

    assert_eq!(alone, RunPermission::Granted { is_placed: false }, "no other node is there");
    assert!(told.is_draining);
    assert!(matches!(handed_over, RunPermission::Refused(Error::Draining { .. })), "{handed_over:?}");
    assert_eq!(stays, RunPermission::Granted { is_placed: true });
    assert_eq!(woken.as_str(), "host/birch");
    assert_eq!(due, (vec![bound], vec![free]));
    assert_eq!(back, RunPermission::Granted { is_placed: false });
}

/// N1: a lease that was confirmed long ago is confirmed again before an effect, and a process that was replaced meanwhile learns it
/// instead of acting. While the database is away, nothing is certain.
#[tokio::test]
async fn an_old_lease_is_confirmed_before_an_effect() {
    let database = TestDatabase::new();
    let (ash, birch) =
        (Node::open(&database, "ash", SHORT).await, Node::open(&database, "birch", SHORT).await);
    let stream = StreamName::session(SessionId::generate());

    let lease = ash.journal.acquire_lease(&stream).await.unwrap();
    let before = database.sql("SELECT expires_at FROM longhaul.stream WHERE token IS NOT NULL");
    ash.journal.confirm_lease(&lease).await.unwrap();
    let fresh = database.sql("SELECT expires_at FROM longhaul.stream WHERE token IS NOT NULL");
    tokio::time::sleep(SHORT * 8 / 10).await;
    ash.journal.confirm_lease(&lease).await.unwrap();
    let old = database.sql("SELECT expires_at FROM longhaul.stream WHERE token IS NOT NULL");
    tokio::time::sleep(SHORT + Duration::from_millis(100)).await;
    birch.journal.acquire_lease(&stream).await.unwrap();
    let replaced = ash.journal.confirm_lease(&lease).await;

    assert_eq!(before, fresh, "it needed no statement");
    assert_ne!(fresh, old, "it was renewed");
    assert!(matches!(replaced, Err(Error::Fenced { .. })), "{replaced:?}");
}

/// N1: nodes that start together on an empty database: one makes the tables, the others wait and use them.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_start_together_make_the_tables_once() {
    for _ in 0..5 {
        let database = Arc::new(TestDatabase::new());
        let opening: Vec<_> = (0..6)
            .map(|number| {
                let database = Arc::clone(&database);
                tokio::spawn(async move { Node::open(&database, &format!("node-{number}"), LONG).await })
            })
            .collect();
        for opened in opening {
            opened.await.unwrap();
        }
    }
}
