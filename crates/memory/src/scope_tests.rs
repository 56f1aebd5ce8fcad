use proptest::prelude::*;

use super::*;

/// Y12
#[test]
fn a_scope_says_whose_it_is() {
    let folder = Path::new("/home/a/web app");
    let of = |kind| scope_of(kind, "longhaul", "http:alice", Some(folder));

    assert_eq!(of(ScopeKind::Agent), "agent-longhaul");
    assert_eq!(of(ScopeKind::Person), "person-http%3aalice");
    assert!(of(ScopeKind::Project).starts_with("project-web%20app-"), "{}", of(ScopeKind::Project));
    assert_eq!(of(ScopeKind::Project).len(), "project-web%20app-".len() + 8);
}

/// Y12: two folders of one name never share a memory.
#[test]
fn folders_of_one_name_have_scopes_of_their_own() {
    let of = |folder: &str| scope_of(ScopeKind::Project, "", "", Some(Path::new(folder)));

    assert_ne!(of("/home/a/app"), of("/home/b/app"));
    assert_eq!(of("/home/a/app"), of("/home/a/app"));
}

proptest! {
    /// Y12: no key leads out of the folder of the mirrors, and no two keys to one scope.
    #[test]
    fn every_key_has_a_name_of_its_own(one in ".{0,200}", other in ".{0,200}") {
        let of = |key: &str| scope_of(ScopeKind::Person, "", key, Some(Path::new("/")));

        let scope = of(&one);
        prop_assert!(longhaul_protocol::StreamName::memory(&scope).is_ok(), "{scope}");
        prop_assert!(!scope.contains('/') && scope.len() <= 100);
        prop_assert_eq!(one == other, of(&one) == of(&other));
    }
}

/// Y12: two sessions without a work folder share nothing: nothing says that they belong together.
#[test]
fn a_session_without_a_folder_has_a_memory_of_its_own() {
    let of = |key: &str| scope_of(ScopeKind::Project, "longhaul", key, None);

    assert_eq!((&*of("demo"), &*of("http:01")), ("session-demo", "session-http%3a01"));
    assert_eq!(scope_of(ScopeKind::Agent, "longhaul", "demo", None), "agent-longhaul");
}
