//! P1 with random paths through random links.

use std::fs;
use std::os::unix::fs::symlink;

use proptest::prelude::*;
use serde_json::json;

use crate::workplace::{SECRET, Workplace};

/// A part of a path: folders and files that are there and that are not, links in and out, up, here, and odd ones.
fn part() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "..",
        ".",
        "a",
        "b",
        "in",
        "out",
        "chain",
        "file",
        "secret.txt",
        "outside",
        "work",
        "missing",
        "denied",
        "Denied",
        "~",
        "home",
        "up",
        " ",
        "",
    ])
}

fn path() -> impl Strategy<Value = String> {
    (
        prop::sample::select(vec!["", "/", "ROOT/", "~/", "/proc/self/root/", "/proc/self/cwd/"]),
        prop::collection::vec(part(), 1..8),
    )
        .prop_map(|(start, parts)| format!("{start}{}", parts.join("/")))
}

fn maze() -> Workplace {
    let place = Workplace::denying(&["denied"]);
    place.put("a/b/file", "inside");
    place.put("denied/secret.txt", SECRET);
    for (target, link) in
        [("a", "in"), ("../outside", "out"), ("out", "chain"), ("../..", "a/up"), ("../denied", "a/out")]
    {
        symlink(target, place.path(link)).unwrap();
    }
    place
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// P1
    #[test]
    fn no_path_leads_outside(paths in prop::collection::vec(path(), 1..6)) {
        let place = maze();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for path in paths {
            let path = path.replace("ROOT", place.root.to_str().unwrap());
            let calls = [
                ("read_file", json!({ "path": path })),
                ("write_file", json!({ "path": path, "content": "written" })),
                ("edit_file", json!({ "path": path, "edits": [{ "old": "secret", "new": "written" }] })),
                ("list_files", json!({ "path": path, "depth": 4 })),
                ("search_text", json!({ "path": path, "pattern": "e" })),
            ];
            for (tool, arguments) in calls {
                let finished = runtime.block_on(place.call(tool, arguments));
                prop_assert!(!finished.content.contains(SECRET), "{tool} {path}: {}", finished.content);
            }
        }
        prop_assert_eq!(place.names(&place.root), ["home", "outside", "work"]);
        prop_assert_eq!(place.names(&place.outside()), ["secret.txt"]);
        prop_assert_eq!(place.names(&place.root.join("home")), ["journal.db"]);
        prop_assert_eq!(place.names(&place.path("denied")), ["secret.txt"]);
        for secret in ["outside/secret.txt", "home/journal.db", "work/denied/secret.txt"] {
            prop_assert_eq!(fs::read_to_string(place.root.join(secret)).unwrap(), SECRET);
        }
    }
}
