//! list_files, find_files, search_text.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use longhaul_tools::StopSignal;
use serde_json::{Value, json};

use crate::workplace::{Workplace, call, content, error};

async fn list(place: &Workplace, arguments: Value) -> String {
    content(place.call("list_files", arguments).await)
}

async fn find(place: &Workplace, arguments: Value) -> String {
    content(place.call("find_files", arguments).await)
}

async fn search(place: &Workplace, arguments: Value) -> String {
    content(place.call("search_text", arguments).await)
}

fn project() -> Workplace {
    let place = Workplace::new();
    place.put("src/main.rs", "fn main() {\n    greet();\n}\n");
    place.put("src/deep/greet.rs", "fn greet() {}\n");
    place.put("Cargo.toml", "[package]\n");
    place.put(".github/ci.yml", "on: push\n");
    place.put(".git/config", "greet\n");
    place
}

#[tokio::test]
async fn a_folder_is_listed_as_deep_as_is_asked() {
    let place = project();
    symlink("src/main.rs", place.path("link")).unwrap();

    assert_eq!(list(&place, json!({})).await, ".github/\nCargo.toml (10 bytes)\nlink -> src/main.rs\nsrc/");
    assert_eq!(
        list(&place, json!({ "path": "src", "depth": 2 })).await,
        "src/deep/\nsrc/deep/greet.rs (14 bytes)\nsrc/main.rs (27 bytes)"
    );
    fs::create_dir(place.path("empty")).unwrap();
    assert_eq!(list(&place, json!({ "path": "empty" })).await, "[empty is empty, or all in it is ignored]");
    assert_eq!(
        error(place.call("list_files", json!({ "path": "Cargo.toml" })).await),
        "Cargo.toml is not a folder"
    );
}

#[tokio::test]
async fn files_are_found_by_pattern_and_sorted_by_path() {
    let place = project();

    assert_eq!(find(&place, json!({ "pattern": "*.rs" })).await, "src/deep/greet.rs\nsrc/main.rs");
    assert_eq!(find(&place, json!({ "pattern": "src/*.rs" })).await, "src/main.rs");
    assert_eq!(find(&place, json!({ "pattern": "**/*.{toml,yml}" })).await, ".github/ci.yml\nCargo.toml");
    assert_eq!(find(&place, json!({ "pattern": "*.rs", "path": "src/deep" })).await, "src/deep/greet.rs");
    assert_eq!(find(&place, json!({ "pattern": "*.py" })).await, "[no file in . fits *.py]");
    assert!(error(place.call("find_files", json!({ "pattern": "../*" })).await).contains("go up"));
    assert!(
        error(place.call("find_files", json!({ "pattern": "a[" })).await).contains("can't be understood")
    );
}

#[tokio::test]
async fn text_is_found_with_its_line_and_what_is_around_it() {
    let place = project();

    assert_eq!(
        search(&place, json!({ "pattern": r"greet\(" })).await,
        "src/deep/greet.rs:1:fn greet() {}\nsrc/main.rs:2:    greet();"
    );
    assert_eq!(
        search(&place, json!({ "pattern": "greet", "path": "src/main.rs", "context": 1 })).await,
        "src/main.rs-1-fn main() {\nsrc/main.rs:2:    greet();\nsrc/main.rs-3-}"
    );
    assert_eq!(
        search(&place, json!({ "pattern": "(?i)^FN.*\\{$", "glob": "src/*.rs" })).await,
        "src/main.rs:1:fn main() {"
    );
    assert_eq!(
        search(&place, json!({ "pattern": "nowhere" })).await,
        "[no line matches nowhere in .; 4 files searched]"
    );
    let said = error(place.call("search_text", json!({ "pattern": "(open" })).await);
    assert!(
        said.contains("the pattern `(open` can't be understood") && said.contains("unclosed group"),
        "{said}"
    );
}

#[tokio::test]
async fn what_git_ignores_is_left_out_unless_it_is_asked_for_by_name() {
    let place = project();
    place.put(".gitignore", "target/\n*.log\n!keep.log\n");
    place.put("src/.gitignore", "generated.rs\n");
    place.put("target/out.txt", "greet");
    place.put("a.log", "greet");
    place.put("keep.log", "greet");
    place.put("src/generated.rs", "greet");
    place.put("generated.rs", "greet");

    assert_eq!(
        search(&place, json!({ "pattern": "^greet$" })).await,
        "generated.rs:1:greet\nkeep.log:1:greet"
    );
    assert!(!list(&place, json!({ "depth": 3 })).await.contains("target"));
    assert_eq!(
        find(&place, json!({ "pattern": "*.rs", "path": "src" })).await,
        "src/deep/greet.rs\nsrc/main.rs"
    );
    assert_eq!(list(&place, json!({ "path": "target" })).await, "target/out.txt (5 bytes)");
    assert_eq!(search(&place, json!({ "pattern": "greet", "path": "a.log" })).await, "a.log:1:greet");
}

/// P1
#[tokio::test]
async fn links_are_not_followed() {
    let place = Workplace::new();
    symlink(place.outside(), place.path("folder")).unwrap();
    symlink(place.outside().join("secret.txt"), place.path("file.txt")).unwrap();
    symlink("..", place.path("up")).unwrap();

    assert!(search(&place, json!({ "pattern": "secret" })).await.starts_with("[no line matches"));
    assert_eq!(find(&place, json!({ "pattern": "*.txt" })).await, "file.txt");
    assert!(!list(&place, json!({ "depth": 9 })).await.contains("folder/"));
}

#[tokio::test]
async fn names_that_could_mislead_are_escaped() {
    let place = Workplace::new();
    File::create(place.path("a\nb.txt (3 bytes)")).unwrap();
    fs::write(place.work().join(OsStr::from_bytes(b"caf\xe9.txt")), "found").unwrap();

    assert_eq!(list(&place, json!({})).await, "a\\nb.txt (3 bytes) (0 bytes)\ncaf\\xe9.txt (5 bytes)");
    assert_eq!(search(&place, json!({ "pattern": "found" })).await, "caf\\xe9.txt:1:found");
    assert_eq!(find(&place, json!({ "pattern": "*.txt" })).await, "caf\\xe9.txt");
}

#[tokio::test]
async fn a_huge_folder_is_listed_found_and_searched_up_to_the_limits() {
    let place = Workplace::new();
    for index in 0..1_200 {
        place.put(&format!("{index:04}.txt"), "match\n");
    }

    let listed = list(&place, json!({})).await;
    assert_eq!(listed.lines().count(), 1_001);
    assert!(listed.ends_with("[the first 1000 entries; list a folder further down, or use find_files]"));
    let found = find(&place, json!({ "pattern": "*" })).await;
    assert_eq!(found.lines().count(), 501);
    assert!(found.starts_with("0000.txt\n") && found.contains("there are more"));
    let searched = search(&place, json!({ "pattern": "match" })).await;
    assert_eq!(searched.lines().count(), 501);
    assert!(searched.contains("[the first 500 matches; there are more"));
    assert!(!search(&place, json!({ "pattern": "match", "path": "0007.txt" })).await.contains("more"));
}

#[tokio::test]
async fn long_lines_are_cut_and_binary_files_are_passed_over() {
    let place = Workplace::new();
    place.put("long.txt", format!("{}match\n", "é".repeat(1_000)));
    place.put("binary", b"match\n\x00\x01");

    let found = search(&place, json!({ "pattern": "match" })).await;

    assert_eq!(found, format!("long.txt:1:{} … [cut: a line of 2005 bytes]", "é".repeat(250)));
}

#[tokio::test]
async fn a_line_too_long_for_memory_is_named_and_the_rest_is_searched() {
    let place = Workplace::new();
    let mut file = File::create(place.path("line.txt")).unwrap();
    for _ in 0..50 {
        file.write_all(&vec![b'x'; 1 << 20]).unwrap();
    }
    place.put("other.txt", "match");

    let found = search(&place, json!({ "pattern": "match" })).await;

    assert!(found.starts_with("other.txt:1:match\n[not searched to the end: line.txt;"), "{found}");
}

#[tokio::test]
async fn a_sparse_gigabyte_is_passed_over_quickly() {
    let place = Workplace::new();
    let mut file = File::create(place.path("huge")).unwrap();
    file.seek(SeekFrom::Start(1 << 30)).unwrap();
    file.write_all(b"match").unwrap();
    let start = Instant::now();

    assert!(search(&place, json!({ "pattern": "match" })).await.starts_with("[no line matches"));

    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_deep_tree_is_walked_without_end_of_stack_or_handles() {
    let place = Workplace::new();
    let deep = "d/".repeat(300);
    place.put(&format!("{deep}file.txt"), "deep");

    let found = find(&place, json!({ "pattern": "*.txt" })).await;

    assert!(found.contains("not all was looked at in d/d/"), "{found}");
}

/// T7: a cancelled search ends soon.
#[test]
fn a_search_stops_when_it_is_asked_to_and_when_it_is_dropped() {
    let place = Workplace::new();
    // Gigabytes to search, in the room of a few megabytes.
    let first = place.put("0.txt", "a line that is no match at all\n".repeat(128 << 10));
    for index in 1..2_000 {
        fs::hard_link(&first, place.path(&format!("{index}.txt"))).unwrap();
    }
    let arguments = json!({ "pattern": r"[\pL\s]{5,30}\d" });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
    let start = Instant::now();

    runtime.block_on(async {
        let prepare = || async {
            place
                .tool("search_text")
                .prepare(&call(&arguments))
                .await
                .map_err(|finished| finished.content)
                .unwrap()
        };
        let (stopper, stop) = StopSignal::pair();
        stopper.stop();
        assert_eq!(error(((prepare().await).run)(stop).await), "stopped before it was done");
        let (_stopper, stop) = StopSignal::pair();
        let dropped = tokio::time::timeout(Duration::from_millis(10), ((prepare().await).run)(stop)).await;
        assert!(dropped.is_err(), "it takes longer than that");
    });
    // This waits for the threads on which it searched.
    drop(runtime);

    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_glob_is_for_the_name_too_where_the_path_is_a_file() {
    let place = Workplace::new();
    place.put("src/main.rs", "fn main() {}\n");
    let within = |glob: &str| json!({ "pattern": "fn", "path": "src/main.rs", "glob": glob });

    assert_eq!(search(&place, within("*.rs")).await, "src/main.rs:1:fn main() {}");
    assert!(search(&place, within("*.toml")).await.contains("0 files searched"));
}
