use std::os::unix::fs::PermissionsExt;

use super::*;

fn store(home: &Path, name: &str, url: &str) -> (LoginStore, Redactor) {
    let redactor = Redactor::default();
    let settings = ServerSettings { url: url.to_owned(), ..ServerSettings::default() };
    (LoginStore::new(home, name, &settings, redactor.clone()), redactor)
}

fn credentials(access: &str, renewal: &str) -> StoredCredentials {
    let token = serde_json::json!({
        "access_token": access, "token_type": "Bearer", "refresh_token": renewal, "expires_in": 60,
    });
    StoredCredentials::new("client".to_owned(), serde_json::from_value(token).ok(), vec![], Some(1))
}

/// E1
#[tokio::test]
async fn a_login_is_private_and_known_to_the_redactor() {
    let home = tempfile::tempdir().unwrap();
    let (store, redactor) = store(home.path(), "web", "https://one.example/mcp");
    assert_eq!(store.state(), LoginState::NotNeeded);

    store.save(credentials("access-0123", "renewal-0123")).await.unwrap();

    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&store.path), mode(store.path.parent().unwrap())), (0o600, 0o700));
    assert_eq!(store.state(), LoginState::LoggedIn);
    assert_eq!(redactor.redact("access-0123 renewal-0123"), "[redacted] [redacted]");
    let mut secrets = stored_secrets(home.path());
    secrets.sort_unstable();
    assert_eq!(secrets, ["access-0123", "renewal-0123"]);
}

/// E1: a server that moved, or another one under its name, never gets the token.
#[tokio::test]
async fn a_server_with_another_address_has_no_login() {
    let home = tempfile::tempdir().unwrap();
    let (one, _) = store(home.path(), "web", "https://one.example/mcp");
    let (moved, _) = store(home.path(), "web", "https://two.example/mcp");

    one.save(credentials("access-0123", "renewal-0123")).await.unwrap();

    assert!(moved.load().await.unwrap().is_none());
}

/// E1: after a refusal, a login is needed, and asks for what was missing; a new one clears that.
#[tokio::test]
async fn a_login_that_was_refused_is_needed_again_until_the_next_one() {
    let home = tempfile::tempdir().unwrap();
    let (store, _) = store(home.path(), "web", "https://one.example/mcp");
    store.save(credentials("access-0123", "renewal-0123")).await.unwrap();

    store
        .update(|file| {
            file.is_needed = true;
            file.wanted_scopes.push("write".to_owned());
        })
        .unwrap();
    let refused = store.state();
    store.save(credentials("access-4567", "renewal-4567")).await.unwrap();

    assert_eq!((refused, store.state()), (LoginState::Needed, LoginState::LoggedIn));
    assert_eq!(store.read().unwrap().unwrap().wanted_scopes, Vec::<String>::new());
    assert!(store.remove().unwrap());
    assert!(!store.remove().unwrap());
}

/// E1: a file that is damaged is told, and a new login replaces it.
#[tokio::test]
async fn a_damaged_login_is_needed_again() {
    let home = tempfile::tempdir().unwrap();
    let (store, _) = store(home.path(), "web", "https://one.example/mcp");
    store.create_folder().unwrap();
    std::fs::write(&store.path, "{").unwrap();

    assert_eq!(store.state(), LoginState::Needed);
    assert!(store.load().await.is_err());
    store.save(credentials("access-0123", "renewal-0123")).await.unwrap();
    assert_eq!(store.state(), LoginState::LoggedIn);
}

/// E1, E7: a server can ask for other rights with each answer.
#[test]
fn the_rights_that_a_server_asks_for_are_limited_in_number_and_size() {
    let mut many = LoginFile::default();
    let mut long = LoginFile::default();

    for number in 0..10_000 {
        many.want_scope(format!("s{number}"));
        long.want_scope(format!("{number:0>1000}"));
    }
    long.want_scope("write".to_owned());
    long.want_scope("write".to_owned());

    assert_eq!(many.wanted_scopes.len(), MAX_WANTED_SCOPES);
    assert_eq!(long.wanted_scopes.len(), 5);
    assert_eq!(long.wanted_scopes[4], "write");
}
