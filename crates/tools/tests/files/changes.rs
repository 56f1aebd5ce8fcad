//! `delete_file`, `move_file` and `patch`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use longhaul_protocol::{FileChange, Hash};
use serde_json::json;

use crate::workplace::{Workplace, call, call_having_seen, content};

fn patch(lines: &[&str]) -> serde_json::Value {
    json!({ "patch": format!("*** Begin Patch\n{}\n*** End Patch", lines.join("\n")) })
}

/// P2
#[tokio::test]
async fn a_file_is_deleted_and_its_hash_is_on_record_before() {
    let place = Workplace::new();
    let path = place.put("a.txt", "old");

    let call = call(&json!({"path": "a.txt"}));
    let prepared = place.tool("delete_file").prepare(&call).await.map_err(|refused| refused.content).unwrap();
    let writes = prepared.writes.clone();
    assert!(path.exists(), "nothing happens before it is recorded");
    let deleted = crate::workplace::run(prepared).await;

    let change =
        FileChange { path: path.to_str().unwrap().to_owned(), before: Some(Hash::of("old")), after: None };
    assert_eq!(writes, [change]);
    assert_eq!(content(deleted), "deleted a.txt");
    assert_eq!(place.names(&place.work()), Vec::<String>::new());
}

/// P2: with its mode.
#[tokio::test]
async fn a_file_is_moved_with_its_mode_into_folders_that_are_made() {
    let place = Workplace::new();
    let path = place.put("a.sh", "run");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();

    let moved = place.call("move_file", json!({"from": "a.sh", "to": "bin/deep/b.sh"})).await;

    assert_eq!(content(moved), "moved a.sh to bin/deep/b.sh");
    assert_eq!(place.text("bin/deep/b.sh"), "run");
    assert_eq!(fs::metadata(place.path("bin/deep/b.sh")).unwrap().permissions().mode() & 0o777, 0o750);
    assert_eq!(place.names(&place.work()), ["bin"]);
}

/// P1, P2: what is refused, with the reason, and nothing changes.
#[tokio::test]
async fn what_must_not_be_deleted_or_moved_is_refused() {
    let place = Workplace::new();
    place.put("a.txt", "a");
    place.put("b.txt", "b");
    place.put("folder/c.txt", "c");
    symlink(place.path("a.txt"), place.path("link")).unwrap();
    symlink(place.outside().join("secret.txt"), place.path("out")).unwrap();
    let table = [
        ("delete_file", json!({"path": "none.txt"}), "none.txt does not exist"),
        ("delete_file", json!({"path": "folder"}), "folder is a folder"),
        ("delete_file", json!({"path": "link"}), "link is a link, and is not followed"),
        ("delete_file", json!({"path": "out"}), "out is a link, and is not followed"),
        ("delete_file", json!({"path": "../outside/secret.txt"}), "outside of what is allowed"),
        ("delete_file", json!({"path": "../home/journal.db"}), "is denied"),
        ("move_file", json!({"from": "a.txt", "to": "b.txt"}), "b.txt exists already"),
        ("move_file", json!({"from": "a.txt", "to": "folder"}), "folder is a folder"),
        ("move_file", json!({"from": "a.txt", "to": "../outside/a.txt"}), "outside of what is allowed"),
        ("move_file", json!({"from": "../outside/secret.txt", "to": "c.txt"}), "outside of what is allowed"),
        ("move_file", json!({"from": "none.txt", "to": "c.txt"}), "none.txt does not exist"),
        ("move_file", json!({"from": "link", "to": "c.txt"}), "is a link"),
    ];

    for (tool, arguments, expected) in table {
        let refused = place.call(tool, arguments.clone()).await;
        assert!(refused.is_error && refused.content.contains(expected), "{arguments}: {}", refused.content);
    }

    assert_eq!(place.names(&place.work()), ["a.txt", "b.txt", "folder", "link", "out"]);
    assert_eq!((place.text("a.txt").as_str(), place.text("b.txt").as_str()), ("a", "b"));
    assert!(place.outside().join("secret.txt").exists());
}

/// P2
#[tokio::test]
async fn a_file_that_changed_since_it_was_read_is_not_deleted_moved_or_patched() {
    let place = Workplace::new();
    let path = place.put("a.txt", "theirs\n");
    let update = patch(&["*** Update File: a.txt", "@@", "-theirs", "+mine"]);
    let calls = [
        ("delete_file", json!({"path": "a.txt"})),
        ("move_file", json!({"from": "a.txt", "to": "b.txt"})),
        ("patch", update),
    ];

    for (tool, arguments) in calls {
        let call = call_having_seen(&arguments, &path, Hash::of("what the model saw"));
        let refused = place.make(tool, &call).await;
        assert!(
            refused.is_error && refused.content.contains("changed since it was read"),
            "{}",
            refused.content
        );

        // Also between the check and the change.
        let call = call_having_seen(&arguments, &path, Hash::of("theirs\n"));
        let prepared = place.tool(tool).prepare(&call).await.map_err(|refused| refused.content).unwrap();
        place.put("a.txt", "theirs again\n");
        let refused = crate::workplace::run(prepared).await;
        assert!(refused.is_error && refused.content.contains("changed"), "{}", refused.content);
        assert_eq!(place.names(&place.work()), ["a.txt"], "{tool}");
        assert_eq!(place.text("a.txt"), "theirs again\n");
        place.put("a.txt", "theirs\n");
    }
}

#[tokio::test]
async fn a_patch_changes_several_files_at_once() {
    let place = Workplace::new();
    place.put("src/a.rs", "fn a() {\n    one();\n}\n");
    let script = place.put("old.sh", "echo old\n");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    place.put("gone.txt", "x");

    let patched = place
        .call(
            "patch",
            patch(&[
                "*** Add File: new/b.txt",
                "+hello",
                "*** Update File: src/a.rs",
                "@@ fn a() {",
                "-    one();",
                "+    two();",
                "*** Update File: old.sh",
                "*** Move to: bin/new.sh",
                "@@",
                "-echo old",
                "+echo new",
                "*** Delete File: gone.txt",
            ]),
        )
        .await;

    let expected =
        "added new/b.txt\nupdated src/a.rs\nupdated old.sh and moved it to bin/new.sh\ndeleted gone.txt";
    assert_eq!(content(patched), expected);
    assert_eq!(place.text("new/b.txt"), "hello\n");
    assert_eq!(place.text("src/a.rs"), "fn a() {\n    two();\n}\n");
    assert_eq!(place.text("bin/new.sh"), "echo new\n");
    assert_eq!(fs::metadata(place.path("bin/new.sh")).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(place.names(&place.work()), ["bin", "new", "src"]);
}

/// All or nothing: everything is checked before the first file is changed.
#[tokio::test]
async fn a_patch_of_which_a_part_does_not_fit_changes_nothing() {
    let place = Workplace::new();
    place.put("a.txt", "one\n");
    place.put("b.txt", "x\nx\n");
    let fits = ["*** Update File: a.txt", "@@", "-one", "+two"];
    let table: [(&[&str], &str); 8] = [
        (
            &["*** Update File: b.txt", "@@", "-x", "+y"],
            "nothing was changed: b.txt: hunk 1 of 1: its lines are in the file 2 times",
        ),
        (&["*** Update File: c.txt", "@@", "-x", "+y"], "c.txt does not exist"),
        (&["*** Add File: b.txt", "+x"], "b.txt exists already"),
        (&["*** Delete File: c.txt"], "c.txt does not exist"),
        (&["*** Update File: ./a.txt", "@@", "-one", "+three"], "a.txt is named twice"),
        (&["*** Update File: b.txt", "*** Move to: a.txt"], "a.txt exists already"),
        (&["*** Add File: ../outside/new.txt", "+x"], "outside of what is allowed"),
        (&["*** Add File: .git/hooks/pre-commit", "+x"], ".git/hooks/pre-commit"),
    ];

    for (wrong, expected) in table {
        let refused = place.call("patch", patch(&[&fits, wrong].concat())).await;
        assert!(refused.is_error && refused.content.contains(expected), "{expected}: {}", refused.content);
        assert_eq!((place.text("a.txt").as_str(), place.text("b.txt").as_str()), ("one\n", "x\nx\n"));
        assert_eq!(place.names(&place.work()), ["a.txt", "b.txt"]);
    }
}

/// All or nothing, as far as files allow: what fails only when it is done takes back what was done before.
#[tokio::test]
async fn a_change_that_fails_takes_back_those_before_it() {
    let place = Workplace::new();
    place.put("a.txt", "one\n");
    place.put("closed/b.txt", "b\n");
    let lines = [
        "*** Update File: a.txt",
        "@@",
        "-one",
        "+two",
        "*** Add File: new.txt",
        "+x",
        "*** Update File: closed/b.txt",
        "@@",
        "-b",
        "+c",
    ];
    let call = call(&patch(&lines));
    let prepared = place.tool("patch").prepare(&call).await.map_err(|refused| refused.content).unwrap();
    // A name that is taken by a folder makes the last write fail after the others.
    let temporary = |name: &str| place.path(&format!("closed/{name}"));
    let blocked = temporary_name(&call, &place.path("closed/b.txt"));
    fs::create_dir_all(temporary(&blocked).join("full")).unwrap();

    let failed = crate::workplace::run(prepared).await;

    assert!(failed.is_error && failed.content.starts_with("nothing was changed: "), "{}", failed.content);
    assert_eq!((place.text("a.txt").as_str(), place.text("closed/b.txt").as_str()), ("one\n", "b\n"));
    assert!(!place.path("new.txt").exists());
}

/// A removal can't be taken back, so what was moved stays where it was moved to: nothing is lost.
#[tokio::test]
async fn a_removal_that_fails_after_another_loses_nothing() {
    let place = Workplace::new();
    place.put("one.txt", "one\n");
    place.put("closed/two.txt", "two\n");
    let lines = [
        "*** Update File: one.txt",
        "*** Move to: first.txt",
        "@@",
        "-one",
        "+first",
        "*** Update File: closed/two.txt",
        "*** Move to: second.txt",
        "@@",
        "-two",
        "+second",
    ];
    let call = call(&patch(&lines));
    let prepared = place.tool("patch").prepare(&call).await.map_err(|refused| refused.content).unwrap();
    let blocked = temporary_name(&call, &place.path("closed/two.txt"));
    fs::create_dir_all(place.path(&format!("closed/{blocked}/full"))).unwrap();

    let failed = crate::workplace::run(prepared).await;

    assert!(failed.is_error && failed.content.contains("and stay so: "), "{}", failed.content);
    assert_eq!(place.text("first.txt"), "first\n", "{}", failed.content);
    assert_eq!(place.text("closed/two.txt"), "two\n");
}

/// A person who is asked about a patch sees all of it: what has no diff is named.
#[tokio::test]
async fn the_diff_of_a_patch_names_what_it_does_not_show() {
    let place = Workplace::new();
    place.put("a.txt", "one\n");
    fs::write(place.path("data.bin"), [0xff, 0xfe, 0]).unwrap();
    let lines = ["*** Update File: a.txt", "@@", "-one", "+two", "*** Delete File: data.bin"];

    let call = call(&patch(&lines));
    let prepared = place.tool("patch").prepare(&call).await.map_err(|refused| refused.content).unwrap();

    let diff = prepared.diff.unwrap();
    assert!(diff.contains("-one\n+two\n"), "{diff}");
    assert!(diff.contains("data.bin (not shown)"), "{diff}");
}

/// The name of the temporary file of a file that a call changes.
pub(crate) fn temporary_name(call: &longhaul_tools::ToolInvocation, path: &std::path::Path) -> String {
    let hash = Hash::of(format!("{} {}", call.id, path.to_str().unwrap()));
    let bits = hash.as_bytes().iter().take(16).fold(0, |bits, byte| bits << 8 | u128::from(*byte));
    format!(".longhaul-{}", longhaul_protocol::CallId::from_bits(bits).to_string().to_lowercase())
}
