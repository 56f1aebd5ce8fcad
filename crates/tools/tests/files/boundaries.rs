//! P1: nothing outside the scope is read or written.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::{Duration, Instant};

use longhaul_tools::Permission;
use serde_json::json;

use crate::workplace::{SECRET, Workplace, content, error};

/// Tries every tool on a path that must not be reached, and checks that the outside is as it was.
async fn nothing_reaches(place: &Workplace, path: &str) {
    let before = fs::read_to_string(place.outside().join("secret.txt")).unwrap();
    let tries = [
        ("read_file", json!({ "path": path })),
        ("write_file", json!({ "path": path, "content": "overwritten" })),
        ("edit_file", json!({ "path": path, "edits": [{ "old": "the secret", "new": "x" }] })),
        ("list_files", json!({ "path": path, "depth": 3 })),
        ("find_files", json!({ "path": path, "pattern": "*" })),
        ("search_text", json!({ "path": path, "pattern": "secret" })),
    ];
    for (tool, arguments) in tries {
        let said = error(place.call(tool, arguments).await);
        assert!(
            said.contains("outside of what is allowed")
                || said.contains("is denied")
                || said.contains("does not exist"),
            "{tool}: {said}"
        );
    }
    assert_eq!(fs::read_to_string(place.outside().join("secret.txt")).unwrap(), before);
    assert_eq!(place.names(&place.outside()), ["secret.txt"]);
}

/// P1
#[tokio::test]
async fn a_path_that_goes_up_or_is_absolute_does_not_leave_the_work_folder() {
    let place = Workplace::new();
    fs::create_dir(place.path("sub")).unwrap();
    let absolute = place.outside().join("secret.txt");

    for path in
        ["../outside/secret.txt", "sub/../../outside/secret.txt", "./../outside", absolute.to_str().unwrap()]
    {
        nothing_reaches(&place, path).await;
    }
    nothing_reaches(&place, "missing/../../outside/secret.txt").await;
    nothing_reaches(&place, "~/no-such-file-of-longhaul").await;
    assert!(error(place.read("../outside/secret.txt").await).contains("Allowed: ./ (read and write)"));
}

/// P1
#[tokio::test]
async fn a_link_to_the_outside_is_not_followed_and_neither_is_a_chain_of_them() {
    let place = Workplace::new();
    symlink(place.outside().join("secret.txt"), place.path("file")).unwrap();
    symlink("../outside", place.path("folder")).unwrap();
    symlink("folder", place.path("chain")).unwrap();

    for path in
        ["file", "folder/secret.txt", "folder", "chain/secret.txt", "chain/new.txt", "chain/new/new.txt"]
    {
        nothing_reaches(&place, path).await;
    }
}

/// P1: a link that leads nowhere would be created where it leads.
#[tokio::test]
async fn a_link_that_leads_nowhere_is_not_written_through() {
    let place = Workplace::new();
    symlink(place.outside().join("new.txt"), place.path("file")).unwrap();
    symlink("loop", place.path("loop")).unwrap();

    for path in ["file", "loop", "loop/x"] {
        assert!(error(place.write(path, "x").await).contains("link"), "{path}");
    }
    assert_eq!(place.names(&place.outside()), ["secret.txt"]);
}

/// P1
#[tokio::test]
async fn a_link_within_the_scope_is_followed_to_the_file_that_it_leads_to() {
    let place = Workplace::new();
    place.put("real.txt", "old");
    symlink("real.txt", place.path("link.txt")).unwrap();

    assert_eq!(content(place.read("link.txt").await), "old");
    assert_eq!(content(place.write("link.txt", "new").await), "wrote 3 bytes to real.txt");
    assert_eq!(place.text("real.txt"), "new");
    assert!(place.path("link.txt").is_symlink());
}

/// P1
#[tokio::test]
async fn the_magic_links_of_proc_lead_nowhere_else() {
    let place = Workplace::new();
    let outside = place.outside();
    let root = format!("/proc/self/root{}/secret.txt", outside.display());
    symlink("/proc/self/root", place.path("root")).unwrap();

    nothing_reaches(&place, &root).await;
    nothing_reaches(&place, &format!("root{}/secret.txt", outside.display())).await;
    for path in ["/proc/self/environ", "/proc/self/cwd/Cargo.toml", "/proc/self/fd/0", "/dev/stdin"] {
        assert!(error(place.read(path).await).contains("outside of what is allowed"), "{path}");
    }
}

/// P1
#[tokio::test]
async fn deny_wins_over_allow_and_what_is_denied_is_not_even_listed() {
    let place = Workplace::denying(&["secret", "sub/.env"]);
    place.put("secret/key.txt", "key");
    place.put("sub/.env", "key");
    place.put("sub/open.txt", "key");

    for path in ["secret/key.txt", "secret", "sub/.env", "sub/../secret/key.txt"] {
        let said = error(place.read(path).await);
        assert!(said.contains("is denied") && said.contains("./ (read and write)"), "{said}");
    }
    assert_eq!(
        content(place.call("list_files", json!({ "depth": 5 })).await),
        "sub/\nsub/open.txt (3 bytes)"
    );
    assert_eq!(content(place.call("find_files", json!({ "pattern": "*" })).await), "sub/open.txt");
    assert_eq!(content(place.call("search_text", json!({ "pattern": "key" })).await), "sub/open.txt:1:key");
}

/// P1: where a link leads that lies in a place that may not be looked at is not told.
#[tokio::test]
async fn what_is_refused_is_named_as_it_was_written() {
    let place = Workplace::denying(&["secret"]);
    place.put("secret/hidden", "key");
    symlink("hidden", place.path("secret/link")).unwrap();
    fs::write(place.outside().join("hidden"), "key").unwrap();
    symlink("hidden", place.outside().join("link")).unwrap();
    symlink("../outside/link", place.path("chain")).unwrap();

    for path in ["secret/link", "../outside/link", "chain", "secret/./link"] {
        let said = error(place.read(path).await);
        assert!(said.starts_with(&format!("{path} is ")) && !said.contains("hidden"), "{said}");
    }
}

/// P1
#[tokio::test]
async fn what_is_denied_before_it_exists_is_denied_once_it_does() {
    let place = Workplace::denying(&["later/secret"]);

    assert!(error(place.write("later/secret/key.txt", "x").await).contains("is denied"));
    assert!(!place.path("later").exists());

    place.put("later/secret/key.txt", "key");
    assert!(error(place.read("later/secret/key.txt").await).contains("is denied"));
    assert_eq!(content(place.call("list_files", json!({ "depth": 5 })).await), "later/");
}

/// P1
#[tokio::test]
async fn the_home_is_denied_even_where_everything_is_allowed() {
    let place = Workplace::allowing(&[("/", Permission::Write)]);
    let home = place.root.join("home");

    for path in ["../home/journal.db", home.join("journal.db").to_str().unwrap()] {
        assert!(error(place.read(path).await).contains("is denied"));
        assert!(error(place.write(path, "x").await).contains("is denied"));
    }
    assert!(
        !content(place.call("list_files", json!({ "path": "..", "depth": 3 })).await).contains("journal.db")
    );
    assert_eq!(content(place.read("../outside/secret.txt").await), SECRET);
}

/// P1
#[tokio::test]
async fn what_may_be_read_is_not_written() {
    let place = Workplace::allowing(&[("./", Permission::Write), ("../outside", Permission::Read)]);

    assert_eq!(content(place.read("../outside/secret.txt").await), SECRET);
    let said = error(place.write("../outside/secret.txt", "x").await);
    assert!(said.contains("may be read but not written"), "{said}");
    assert!(said.contains("../outside (read)"), "{said}");
}

/// P1
#[tokio::test]
async fn a_single_file_can_be_allowed_and_what_is_beside_it_is_not() {
    let place = Workplace::allowing(&[("notes.txt", Permission::Write)]);
    place.put("notes.txt", "notes");
    place.put("notes.txt.bak", "other");

    assert_eq!(content(place.read("notes.txt").await), "notes");
    content(place.write("notes.txt", "new").await);
    assert!(error(place.read("notes.txt.bak").await).contains("outside of what is allowed"));
    assert!(error(place.call("list_files", json!({})).await).contains("outside of what is allowed"));
}

/// P1: opening a pipe waits for someone at its other end.
#[tokio::test]
async fn a_pipe_a_socket_and_a_device_are_refused_at_once() {
    let place = Workplace::allowing(&[("./", Permission::Write), ("/dev", Permission::Read)]);
    assert!(Command::new("mkfifo").arg(place.path("pipe")).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(place.path("socket")).unwrap();
    let start = Instant::now();

    assert_eq!(error(place.read("pipe").await), "pipe is a pipe, not a file");
    assert_eq!(error(place.write("pipe", "x").await), "pipe is a pipe, not a file");
    assert_eq!(error(place.read("socket").await), "socket is a socket, not a file");
    assert_eq!(error(place.read("/dev/zero").await), "/dev/zero is a device, not a file");
    assert!(content(place.call("search_text", json!({ "pattern": "x" })).await).contains("no line matches"));
    assert_eq!(content(place.call("list_files", json!({})).await), "pipe (a pipe)\nsocket (a socket)");

    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

/// A call of every tool that needs the work folder.
fn all_calls() -> Vec<(&'static str, serde_json::Value)> {
    vec![
        ("read_file", json!({ "path": "secret.txt" })),
        ("write_file", json!({ "path": "a", "content": "" })),
        ("edit_file", json!({ "path": "secret.txt", "edits": [{ "old": "s", "new": "b" }] })),
        ("move_file", json!({ "from": "secret.txt", "to": "b" })),
        ("delete_file", json!({ "path": "secret.txt" })),
        ("list_files", json!({})),
        ("find_files", json!({ "pattern": "*" })),
        ("search_text", json!({ "pattern": "s" })),
    ]
}

/// A path of which the work folder is gone could be anything.
#[tokio::test]
async fn every_tool_says_that_the_work_folder_is_gone() {
    let place = Workplace::new();
    fs::remove_dir(place.work()).unwrap();

    for (tool, arguments) in all_calls() {
        let said = error(place.call(tool, arguments).await);
        assert!(
            said.contains(&format!("the work folder {} is gone", place.work().display())),
            "{tool}: {said}"
        );
    }
    assert!(!place.work().exists());
}

/// P1: the model is not told where the link leads.
#[tokio::test]
async fn every_tool_says_that_the_work_folder_was_replaced_by_a_link() {
    let place = Workplace::new();
    fs::remove_dir(place.work()).unwrap();
    symlink(place.outside(), place.work()).unwrap();

    for (tool, arguments) in all_calls() {
        let said = error(place.call(tool, arguments).await);
        assert!(
            said.contains(&format!("the work folder {} was replaced by a link", place.work().display())),
            "{tool}: {said}"
        );
        assert!(!said.contains("outside"), "{tool}: {said}");
    }
    assert_eq!(place.names(&place.outside()), ["secret.txt"]);
}
