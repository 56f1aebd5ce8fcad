//! The shape of the house, checked: who may depend on whom, one version of what must be one, no file that holds two ideas.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use toml::Table;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read_toml(path: &Path) -> Table {
    std::fs::read_to_string(path)
        .unwrap()
        .parse()
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What each crate may use of the others; arrows go one way.
fn allowed() -> BTreeMap<&'static str, Vec<&'static str>> {
    let core = vec!["protocol", "journal", "model", "context", "keeper", "config", "redact", "schedule"];
    let below_agent = [core.clone(), vec!["tools", "memory", "skills", "mcp"]].concat();
    let all_but_cli = [below_agent.clone(), vec!["agent"]].concat();
    BTreeMap::from([
        ("protocol", vec![]),
        ("journal", vec!["protocol"]),
        ("salvage", vec!["protocol", "journal"]),
        ("postgres", vec!["protocol", "journal"]),
        ("model", vec!["protocol"]),
        ("context", vec!["protocol"]),
        ("keeper", vec!["protocol"]),
        ("config", vec!["protocol"]),
        ("redact", vec!["protocol"]),
        ("schedule", vec!["protocol"]),
        ("transcript", vec!["protocol"]),
        ("console", vec![]),
        ("jsonrpc", vec![]),
        ("tools", vec!["protocol", "keeper"]),
        ("memory", vec!["protocol", "journal", "model", "context"]),
        ("skills", vec!["protocol", "tools"]),
        ("mcp", [core, vec!["tools"]].concat()),
        ("agent", [below_agent, vec!["postgres"]].concat()),
        ("doctor", [all_but_cli.clone(), vec!["transcript"]].concat()),
        ("server", [all_but_cli.clone(), vec!["console", "doctor", "jsonrpc", "transcript"]].concat()),
        ("acp", [all_but_cli.clone(), vec!["jsonrpc", "transcript"]].concat()),
        ("cli", [all_but_cli.clone(), vec!["doctor", "salvage", "transcript", "server", "acp"]].concat()),
        ("testkit", all_but_cli),
    ])
}

/// Whatever uses another crate against the table, as `user -> used`.
fn forbidden(manifests: &BTreeMap<String, Table>) -> Vec<String> {
    let allowed = allowed();
    let mut found = Vec::new();
    for (name, manifest) in manifests {
        let Some(may_use) = allowed.get(name.as_str()) else {
            found.push(format!("{name} is not in the table"));
            continue;
        };
        let normal = ["dependencies", "build-dependencies"]
            .into_iter()
            .filter_map(|table| manifest.get(table)?.as_table());
        for used in normal.flat_map(Table::keys).filter_map(|key| key.strip_prefix("longhaul-")) {
            if !may_use.contains(&used) {
                found.push(format!("{name} -> {used}"));
            }
        }
    }
    found
}

fn manifests() -> BTreeMap<String, Table> {
    let crates = std::fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    crates
        .map(|path| {
            (path.file_name().unwrap().to_str().unwrap().to_owned(), read_toml(&path.join("Cargo.toml")))
        })
        .collect()
}

#[test]
fn crates_depend_only_on_those_below_them() {
    assert_eq!(forbidden(&manifests()), Vec::<String>::new());
}

/// The check above can fail.
#[test]
fn an_arrow_that_goes_the_wrong_way_is_found() {
    let mut manifests = manifests();
    let upward: Table = "[dependencies]\nlonghaul-agent.workspace = true".parse().unwrap();
    manifests.insert("journal".to_owned(), upward);
    manifests.insert("utils".to_owned(), Table::new());

    assert_eq!(forbidden(&manifests), ["journal -> agent", "utils is not in the table"]);
}

#[test]
fn every_dependency_has_its_reason_beside_it() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let table = manifest.split("[workspace.dependencies]").nth(1).unwrap().split("\n[").next().unwrap();
    let dependencies = table.lines().filter(|line| line.contains(" = ") && !line.starts_with("longhaul-"));

    let without: Vec<&str> =
        dependencies.filter(|line| line.split("# ").nth(1).is_none_or(|why| why.len() < 10)).collect();

    assert_eq!(without, Vec::<&str>::new());
}

/// The versions of a package in a lock file.
fn versions(lock: &Table, name: &str) -> BTreeSet<String> {
    let packages = lock["package"].as_array().unwrap().iter().filter_map(|package| package.as_table());
    let of_name = packages.filter(|package| package["name"].as_str() == Some(name));
    of_name.map(|package| package["version"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn there_is_one_version_of_what_must_be_one() {
    let lock = read_toml(&root().join("Cargo.lock"));

    for name in ["reqwest", "hyper", "rustls", "rusqlite", "tokio"] {
        let versions = versions(&lock, name);
        assert!(versions.len() <= 1, "{name}: {versions:?}");
    }
    assert_eq!(versions(&lock, "rusqlite").len(), 1, "the check reads the lock file");
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| if path.is_dir() { sources(&path) } else { vec![path] };
    entries.flat_map(below).filter(|path| path.extension().is_some_and(|ending| ending == "rs")).collect()
}

#[test]
fn no_file_is_longer_than_600_lines() {
    let folders = ["crates", "tests", "benches"].map(|folder| sources(&root().join(folder)));
    let lines = |path: &PathBuf| std::fs::read_to_string(path).unwrap().lines().count();

    let long: Vec<_> = folders
        .concat()
        .into_iter()
        .map(|path| (lines(&path), path))
        .filter(|(lines, _)| *lines > 600)
        .collect();

    assert_eq!(long, vec![]);
}

/// The files of programs that make a permit for a model call, with the function that they call. Visibility can't express that
/// only the ledger may: it is in another crate.
fn permit_makers(files: &[(String, String)]) -> BTreeSet<(&str, &str)> {
    let code = files.iter().map(|(name, text)| {
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        (name.as_str(), lines.collect::<String>())
    });
    let makers = code.flat_map(|(name, code)| {
        let made = ["CallPermit::for_reservation", "CallPermit::unreserved"].into_iter();
        made.filter(move |function| code.contains(function)).map(move |function| (name, function))
    });
    makers.collect()
}

/// B1: only the ledger makes the permits that models are called with. Memory alone has others, for those who keep account
/// themselves; the program gives it the ledger's.
#[test]
fn only_the_ledger_makes_permits_for_model_calls() {
    let is_program = |path: &PathBuf| {
        let name = path.to_string_lossy();
        name.contains("/src/") && !name.contains("/testkit/") && !name.ends_with("_tests.rs")
    };
    let files = sources(&root().join("crates")).into_iter().filter(is_program);
    let files: Vec<(String, String)> = files
        .map(|path| {
            let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    assert!(files.len() > 100, "{}", files.len());

    let makers = permit_makers(&files);

    let expected = [
        ("crates/agent/src/spend/ledger.rs", "CallPermit::for_reservation"),
        ("crates/memory/src/background.rs", "CallPermit::unreserved"),
    ];
    assert_eq!(makers, BTreeSet::from(expected));
    let uses_unbudgeted = |(name, text): &&(String, String)| {
        !name.starts_with("crates/memory/src/") && text.contains("Unbudgeted")
    };
    assert_eq!(files.iter().filter(uses_unbudgeted).map(|(name, _)| name).collect::<Vec<_>>(), [""; 0]);
}

/// The check above can fail.
#[test]
fn a_permit_that_something_else_makes_is_found() {
    let text = "let permit = CallPermit::unreserved(cause);\n// CallPermit::for_reservation";
    let files = [("crates/agent/src/turn/title.rs".to_owned(), text.to_owned())];

    let found = permit_makers(&files);

    assert_eq!(found, BTreeSet::from([("crates/agent/src/turn/title.rs", "CallPermit::unreserved")]));
}

/// The pages that newcomers begin with name only files that exist.
#[test]
fn every_path_in_the_pages_for_newcomers_exists() {
    let mut missing = Vec::new();
    for page in ["ARCHITECTURE.md", "docs/finding-things.md", "AGENTS.md", "README.md"] {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        for quoted in text.split('`').skip(1).step_by(2) {
            let is_path =
                quoted.ends_with(".rs") && quoted.contains('/') && !quoted.contains(['*', ' ', '{']);
            // Paths are given from the root, from `crates`, or from the sources of the two crates that most are about.
            let bases = ["", "crates", "crates/agent/src", "crates/cli/src"];
            if is_path && !bases.iter().any(|base| root().join(base).join(quoted).exists()) {
                missing.push(format!("{page}: {quoted}"));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}
