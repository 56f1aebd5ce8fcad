//! Whose memory is meant.

use serde_json::json;

use super::{Desk, names, without_model, write};

/// Y12
#[test]
fn a_memory_of_a_project_is_that_of_the_work_folder() {
    let desk = without_model();
    write(&desk, "core", "- tea\n");
    std::fs::create_dir(desk.path("other")).unwrap();
    let other = desk.path("other");

    let listing = desk.json(&["memory", "--json"]);
    let elsewhere = desk.json(&["memory", "--json", "--work-dir", other.to_str().unwrap()]);

    let scope = listing["scope"].as_str().unwrap();
    assert!(scope.starts_with("project-work-"), "{scope}");
    assert!(elsewhere["scope"].as_str().unwrap().starts_with("project-other-"), "{elsewhere}");
    assert_eq!(elsewhere["pages"], json!([]));
    assert_eq!(elsewhere["other_scopes"], json!([scope]));
    let named = desk.json(&["memory", "show", "core", "--json", "--scope", scope]);
    assert_eq!(named["scope"], scope);
}

#[test]
fn a_memory_that_is_not_there_is_named_with_those_that_are() {
    let desk = without_model();
    write(&desk, "core", "- tea\n");
    let refused = |arguments: &[&str]| {
        let (code, out, errors) = desk.run(&[&["memory"], arguments].concat());
        assert_eq!(code, 2, "{arguments:?}: {out}{errors}");
        errors
    };

    let errors = refused(&["--scope", "agent-none"]);
    assert!(errors.contains("no memory named \"agent-none\"; available: project-work-"), "{errors}");
    assert!(refused(&["list", "--scope", "../memory"]).contains("no memory named"));
    assert!(refused(&["-s", "nobody"]).contains("nobody"));
    assert!(refused(&["-s", "a", "--scope", "b"]).contains("can't be used together"));
}

/// Y12: what is said under one key is nobody else's.
#[test]
fn a_memory_of_a_person_is_that_of_a_key() {
    let desk = Desk::new(&json!(["Hello.", "Hello."]));
    desk.configure("[memory]\nscope = \"person\"\n");
    for key in ["http:alice", "http:bob"] {
        assert_eq!(desk.run(&["run", "-s", key, "hello"]).0, 0);
    }

    let (code, out, errors) = desk.run(&["remember", "-s", "http:alice", "She", "likes", "tea."]);

    assert_eq!(code, 0, "{errors}");
    let undo = "to undo: longhaul memory undo 1 --scope person-http%3aalice";
    assert!(out.contains(undo), "{out}");
    let of = |key: &str| desk.run(&["memory", "show", "core", "-s", key]);
    assert!(of("http:alice").1.contains("She likes tea."));
    assert_eq!(of("http:bob").0, 2);
    assert!(names(&desk).is_empty(), "the folder's own conversation has another memory");
    let (code, _, errors) = desk.run(&["memory", "undo", "1", "--scope", "person-http%3aalice"]);
    assert_eq!(code, 0, "{errors}");
}

/// Y12: the memory of a session is that of the folder it works in, wherever it is asked for.
#[test]
fn a_session_has_the_memory_of_its_folder() {
    let desk = Desk::new(&json!(["Hello."]));
    std::fs::create_dir(desk.path("other")).unwrap();
    let other = desk.path("other");
    assert_eq!(desk.run(&["run", "-s", "a", "hello", "--work-dir", other.to_str().unwrap()]).0, 0);

    let listing = desk.json(&["memory", "-s", "a", "--json"]);
    let status = desk.json(&["status", "-s", "a", "--json"]);

    assert!(listing["scope"].as_str().unwrap().starts_with("project-other-"), "{listing}");
    assert_eq!(status["memory"]["scope"], listing["scope"]);
}
