use longhaul_keeper::Launcher;
use longhaul_protocol::SessionId;
use longhaul_redact::Redactor;
use longhaul_tools::{AllowList, NetworkGuard};

use super::*;

fn pool_in(home: &Path, settings: McpSettings) -> McpServers {
    let launcher = Launcher::new("/bin/false", [""; 0]);
    McpServers::new(home, launcher, settings, NetworkGuard::new(AllowList::default()), Redactor::default())
}

/// E1: a runtime that serves for months keeps nothing of sessions that are over.
#[tokio::test]
async fn the_servers_of_sessions_that_are_over_are_forgotten() {
    let home = tempfile::tempdir().unwrap();
    let own = ServerSettings { command: "x".to_owned(), shared: false, ..ServerSettings::default() };
    let servers = BTreeMap::from([("own".to_owned(), own)]);
    let folder = pool_in(home.path(), McpSettings { servers, ..McpSettings::default() });
    let servers = folder.for_folder(None, BTreeMap::new());

    for _ in 0..20 {
        let session = SessionId::generate();
        // Only looking at it makes no server.
        assert_eq!(servers.statuses(Some(session)).len(), 1);
        assert!(servers.server("own", session).is_some());
    }

    assert_eq!(folder.used().len(), 1);
}

/// J8: an editor's servers come with their tokens, which no config names.
#[test]
fn the_tokens_of_an_editors_servers_are_known_to_the_redactor() {
    let home = tempfile::tempdir().unwrap();
    let redactor = Redactor::default();
    let launcher = Launcher::new("/bin/false", [""; 0]);
    let pool = McpServers::new(
        home.path(),
        launcher,
        McpSettings::default(),
        NetworkGuard::new(AllowList::default()),
        redactor.clone(),
    );
    let variables = BTreeMap::from([("TICKETS_TOKEN".to_owned(), "tok-5f6a7b8c9d".to_owned())]);
    let headers = BTreeMap::from([("Authorization".to_owned(), "Bearer head-1a2b3c4d5e".to_owned())]);
    let program = ServerSettings { command: "x".to_owned(), variables, ..ServerSettings::default() };
    let http = ServerSettings { url: "http://x".to_owned(), headers, ..ServerSettings::default() };
    let servers = BTreeMap::from([("a".to_owned(), program), ("b".to_owned(), http)]);

    pool.set_session_servers(SessionId::generate(), servers);

    assert_eq!(redactor.redact("tok-5f6a7b8c9d and head-1a2b3c4d5e"), "[redacted] and [redacted]");
}

/// E1
#[test]
fn what_an_unused_server_keeps_is_found_after_a_month() {
    let home = tempfile::tempdir().unwrap();
    let pool = pool_in(home.path(), McpSettings::default());
    let month_ago = std::time::SystemTime::now() - UNUSED_CACHE_AGE - Duration::from_secs(60);
    let paths = ["mcp/caches/old-1", "mcp/caches/new-1", "cache/mcp/old.json", "cache/mcp/new.json"];
    let paths = paths.map(|path| home.path().join(path));
    for path in &paths {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        match path.extension() {
            Some(_) => std::fs::write(path, "{}").unwrap(),
            None => std::fs::create_dir(path).unwrap(),
        }
    }
    for old in [&paths[0], &paths[2]] {
        std::fs::File::open(old).unwrap().set_modified(month_ago).unwrap();
    }

    assert_eq!(pool.unused_caches(), [paths[0].clone(), paths[2].clone()]);
}
