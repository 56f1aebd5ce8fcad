use longhaul_journal::{Home, SqliteJournal};
use longhaul_protocol::PermissionMode;

use super::*;

/// A2, B1: a subagent has its prompt only once its first record names its parent, so that the parent's limits always hold for it. A
/// worker that was woken too early holds the session.
#[tokio::test(flavor = "multi_thread")]
async fn a_subagent_gets_no_prompt_before_its_parent_is_on_record() {
    let folder = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(&Home::create(folder.path()).unwrap()).await.unwrap();
    let (session, redactor) = (SessionId::generate(), Redactor::default());
    let parent = ParentLink {
        session: SessionId::generate(),
        call: CallId::generate(),
        ancestors: vec![],
        name: "agent".to_owned(),
        instructions: None,
        tools: None,
        model: None,
        scope: None,
        mode: PermissionMode::Ask,
        budget_nano: Some(1),
        background: false,
    };
    let child = ChildSession { session, key: "agent:1".to_owned() };
    let new = || NewChild { child: &child, parent: &parent, work_dir: None, prompt: "Go." };
    let lease = journal.acquire_lease(&StreamName::session(session)).await.unwrap();

    let held = start_child(&journal, &redactor, new()).await.unwrap();
    let prompts = journal.head(&StreamName::inbox(session)).await.unwrap().seq;
    journal.release_lease(&lease).await.unwrap();
    let started = start_child(&journal, &redactor, new()).await.unwrap();

    assert_eq!((held, prompts, started), (ChildStart::Held, 0, ChildStart::Started));
    assert_eq!(parent_link(&journal, session).await.unwrap().as_deref(), Some(&parent));
    assert_eq!(journal.head(&StreamName::inbox(session)).await.unwrap().seq, 1);
    journal.close().await;
}
