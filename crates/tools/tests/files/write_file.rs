//! P2: writing keeps mode and owner, is atomic, and fails if the file changed since the model read it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

use longhaul_protocol::{FileSeen, FileWrite, Hash};
use serde_json::json;

use crate::workplace::{Workplace, call, call_having_seen, content, error, run};

#[tokio::test]
async fn a_new_file_is_written_with_the_folders_that_it_needs() {
    let place = Workplace::new();

    let finished = place.write("src/deep/a.rs", "fn a() {}\n").await;

    let path = place.path("src/deep/a.rs").to_str().unwrap().to_owned();
    assert_eq!(finished.seen, Some(FileSeen { path, hash: Hash::of("fn a() {}\n") }));
    assert_eq!(content(finished), "wrote 10 bytes to src/deep/a.rs (new)");
    assert_eq!(place.text("src/deep/a.rs"), "fn a() {}\n");
    assert_eq!(place.names(&place.path("src/deep")), ["a.rs"]);
}

/// P2
#[tokio::test]
async fn what_will_be_written_is_known_before_and_nothing_is_changed_yet() {
    let place = Workplace::new();
    let path = place.put("a.txt", "old");

    let call = call(&json!({ "path": "a.txt", "content": "new" }));
    let prepared =
        place.tool("write_file").prepare(&call).await.map_err(|finished| finished.content).unwrap();

    let expected = FileWrite {
        path: path.to_str().unwrap().to_owned(),
        before: Some(Hash::of("old")),
        after: Hash::of("new"),
    };
    assert_eq!(prepared.write, Some(expected));
    assert_eq!(place.text("a.txt"), "old");
    assert_eq!(content(run(prepared).await), "wrote 3 bytes to a.txt");
    assert_eq!(place.text("a.txt"), "new");
}

#[tokio::test]
async fn the_change_is_known_as_a_diff_before_and_after_the_write() {
    let place = Workplace::new();
    place.put("a.txt", "one\n  two\nthree\n");
    place.put("bytes", "old");
    fs::write(place.path("bytes"), b"\xff\xfe").unwrap();
    let expected = "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-  two\n+  2\n three\n";

    let call = call(&json!({ "path": "a.txt", "content": "one\n  2\nthree\n" }));
    let prepared =
        place.tool("write_file").prepare(&call).await.map_err(|finished| finished.content).unwrap();
    assert_eq!(prepared.diff.as_deref(), Some(expected));
    assert_eq!(run(prepared).await.diff.as_deref(), Some(expected));

    let edit = json!({ "path": "a.txt", "edits": [{ "old": "three", "new": "3" }] });
    let edited = place.call("edit_file", edit).await.diff.unwrap();
    assert!(edited.ends_with("@@ -1,3 +1,3 @@\n one\n   2\n-three\n+3\n"), "{edited}");
    let new = place.write("new.txt", "a\n").await.diff.unwrap();
    assert_eq!(new, "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+a\n");
    assert_eq!(place.write("bytes", "text").await.diff, None, "what it replaces is no text");
}

/// P2
#[tokio::test]
async fn mode_and_owner_are_kept() {
    let place = Workplace::new();
    let path = place.put("run.sh", "old");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let other_owner = chown(&path, Some(1234), Some(5678)).is_ok();
    let before = fs::metadata(&path).unwrap();

    content(place.write("run.sh", "new").await);
    content(
        place
            .call("edit_file", json!({ "path": "run.sh", "edits": [{ "old": "new", "new": "newer" }] }))
            .await,
    );

    let after = fs::metadata(&path).unwrap();
    assert_eq!(after.mode(), before.mode());
    assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
    assert_eq!(place.text("run.sh"), "newer");
    if !other_owner {
        eprintln!("not tested with another owner: this process may not give files away");
    }
}

/// P2
#[tokio::test]
async fn a_file_that_changed_since_it_was_read_is_not_written() {
    let place = Workplace::new();
    let path = place.put("a.txt", "as it is now");
    let arguments = json!({ "path": "a.txt", "content": "mine" });

    let finished =
        place.make("write_file", &call_having_seen(&arguments, &path, Hash::of("as it was"))).await;

    assert_eq!(error(finished), "a.txt changed since it was read; read it again");
    assert_eq!(place.text("a.txt"), "as it is now");
    let seen_as_it_is = call_having_seen(&arguments, &path, Hash::of("as it is now"));
    content(place.make("write_file", &seen_as_it_is).await);
    assert_eq!(place.text("a.txt"), "mine");
}

/// P2: there is nothing to read again, and nothing to lose.
#[tokio::test]
async fn a_file_that_was_read_and_is_gone_can_be_written() {
    let place = Workplace::new();
    let arguments = json!({ "path": "a.txt", "content": "mine" });

    let call = call_having_seen(&arguments, &place.path("a.txt"), Hash::of("as it was"));

    assert_eq!(content(place.make("write_file", &call).await), "wrote 4 bytes to a.txt (new)");
}

/// P2
#[tokio::test]
async fn a_change_between_preparing_and_running_is_refused_and_nothing_is_lost() {
    let place = Workplace::new();
    place.put("old.txt", "old");
    let mine = |path: &str| call(&json!({ "path": path, "content": "mine" }));
    let tool = place.tool("write_file");
    let changed = tool.prepare(&mine("old.txt")).await.map_err(|finished| finished.content).unwrap();
    let created = tool.prepare(&mine("new.txt")).await.map_err(|finished| finished.content).unwrap();
    let folder = tool.prepare(&mine("sub")).await.map_err(|finished| finished.content).unwrap();

    place.put("old.txt", "theirs");
    place.put("new.txt", "theirs");
    fs::create_dir(place.path("sub")).unwrap();

    for prepared in [changed, created, folder] {
        assert!(error(run(prepared).await).contains("changed while it was being written"));
    }
    assert_eq!(place.text("old.txt"), "theirs");
    assert_eq!(place.text("new.txt"), "theirs");
    assert_eq!(place.names(&place.work()), ["new.txt", "old.txt", "sub"]);
}

/// P2: the file that was prepared for is gone; writing it anew would hide that.
#[tokio::test]
async fn a_file_that_is_removed_between_preparing_and_running_is_not_made_again() {
    let place = Workplace::new();
    let path = place.put("a.txt", "old");
    let call = call(&json!({ "path": "a.txt", "content": "mine" }));
    let prepared =
        place.tool("write_file").prepare(&call).await.map_err(|finished| finished.content).unwrap();

    fs::remove_file(&path).unwrap();

    assert!(error(run(prepared).await).contains("changed while it was being written"));
    assert!(!path.exists());
}

#[tokio::test]
async fn more_than_may_be_written_is_refused() {
    let place = Workplace::new();

    let said = error(place.write("a.txt", &"x".repeat((8 << 20) + 1)).await);

    assert_eq!(said, "`content` has 8388609 bytes; at most 8388608 are written");
    assert!(!place.path("a.txt").exists());
}

/// A file that is too large to be compared is not even read.
#[tokio::test]
async fn a_file_that_is_too_large_is_neither_replaced_nor_edited() {
    let place = Workplace::new();
    let large = fs::File::create(place.path("large")).unwrap();
    // To hash so much would take hours; a file with a hole in it takes no room.
    large.set_len(4 << 40).unwrap();
    let edits = json!({ "path": "large", "edits": [{ "old": "a", "new": "b" }] });

    let written = error(place.write("large", "small").await);
    let edited = error(place.call("edit_file", edits).await);

    assert_eq!(written, "large has 4398046511104 bytes; write_file replaces files up to 67108864");
    assert_eq!(edited, "large has 4398046511104 bytes; edit_file edits files up to 8388608");
    assert_eq!(fs::metadata(place.path("large")).unwrap().len(), 4 << 40);
}

#[tokio::test]
async fn a_write_that_fails_leaves_no_folders_behind() {
    let place = Workplace::new();
    place.put("there/a.txt", "a");
    let too_long = "n".repeat(300);

    error(place.write(&format!("new/deep/{too_long}"), "x").await);
    error(place.write(&format!("new/{too_long}/a.txt"), "x").await);
    error(place.write(&format!("there/new/{too_long}"), "x").await);

    assert_eq!(place.names(&place.work()), ["there"]);
    assert_eq!(place.names(&place.path("there")), ["a.txt"]);
}

#[tokio::test]
async fn a_path_that_ends_like_a_folder_is_no_file() {
    let place = Workplace::new();
    place.put("sub/a.txt", "a");

    for path in ["sub/a.txt/", "sub/a.txt/."] {
        assert_eq!(error(place.write(path, "x").await), "sub/a.txt is not a folder");
        assert_eq!(error(place.read(path).await), "sub/a.txt is not a folder");
    }
    for path in ["new/", "new/."] {
        assert!(error(place.write(path, "x").await).contains("can only be a folder"));
    }
    assert!(error(place.write("sub/", "x").await).contains("sub is a folder"));
    assert_eq!(content(place.call("list_files", json!({ "path": "sub/." })).await), "sub/a.txt (1 bytes)");
    assert_eq!(place.names(&place.work()), ["sub"]);
}

#[tokio::test]
async fn a_folder_is_not_written_over_and_a_file_is_no_folder() {
    let place = Workplace::new();
    place.put("sub/a.txt", "a");

    assert!(error(place.write("sub", "x").await).contains("is a folder"));
    assert!(error(place.write(".", "x").await).contains("is a folder"));
    assert_eq!(error(place.write("sub/a.txt/b/c.txt", "x").await), "sub/a.txt is not a folder");
}

#[tokio::test]
async fn writing_what_is_there_already_changes_nothing() {
    let place = Workplace::new();
    let path = place.put("a.txt", "same");
    let before = fs::metadata(&path).unwrap().ino();

    assert_eq!(content(place.write("a.txt", "same").await), "wrote 4 bytes to a.txt");

    assert_eq!(fs::metadata(&path).unwrap().ino(), before);
}

/// A record names a file in Unicode, so a write that could not be recorded is not made.
#[tokio::test]
async fn a_file_whose_path_is_not_unicode_can_be_read_but_not_written() {
    let place = Workplace::new();
    let folder = place.work().join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.txt"), "old").unwrap();
    symlink(&folder, place.path("link")).unwrap();

    let read = place.read("link/a.txt").await;

    assert_eq!(read.seen, None);
    assert_eq!(content(read), "old");
    let said = error(place.write("link/a.txt", "new").await);
    assert!(said.contains("caf\\xe9/a.txt can't be written: its path is not Unicode"), "{said}");
}
