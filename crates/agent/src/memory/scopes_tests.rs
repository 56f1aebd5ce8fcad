use longhaul_journal::{Append, Home, SqliteJournal, name_session};
use longhaul_protocol::{SessionCreated, SessionRecord, StreamName};

use super::*;

async fn session(journal: &SqliteJournal, key: &str, folder: &str) -> SessionId {
    let id = name_session(journal, key).await.unwrap();
    let (work_dir, origin) = (Some(folder.to_owned()), None);
    let created =
        SessionCreated { id, key: key.to_owned(), work_dir, origin, version: "0".to_owned(), parent: None };
    let record = SessionRecord::SessionCreated(created).encode();
    journal.append(Append::to(&StreamName::session(id)).record(record)).await.unwrap();
    id
}

/// Y12
#[tokio::test(flavor = "multi_thread")]
async fn a_scope_has_the_sessions_whose_scope_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(&Home::create(folder.path()).unwrap()).await.unwrap();
    let one = session(&journal, "cli:one", "/home/a/web").await;
    let other = session(&journal, "cli:other", "/home/a/web").await;
    let elsewhere = session(&journal, "cli:third", "/home/a/app").await;
    name_session(&journal, "cli:never-used").await.unwrap();
    let journal: Arc<dyn Journal> = Arc::new(journal);
    let scopes = Scopes::new(journal, |_, folder: Option<&Path>| folder.unwrap().display().to_string());

    let sessions = scopes.sessions("/home/a/web").await.unwrap();

    assert_eq!(sessions, [(one, "cli:one".to_owned()), (other, "cli:other".to_owned())]);
    assert_eq!(scopes.of(elsewhere).await.unwrap().as_deref(), Some("/home/a/app"));
    assert_eq!(scopes.of(SessionId::generate()).await.unwrap(), None);
}
