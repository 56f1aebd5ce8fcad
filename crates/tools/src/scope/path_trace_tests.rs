use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

fn world(folders: &[&str], links: &[(&str, &str)]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for name in folders {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    for (link, leads_to) in links {
        symlink(leads_to, root.join(link)).unwrap();
    }
    (folder, root)
}

/// P3
#[test]
fn a_way_leads_where_the_system_leads() {
    let (_folder, root) = world(&["a/b", "c"], &[("a/b/up", ".."), ("c/far", "../a/b/up/b")]);

    for path in ["a/b", "a/../c", "c/far", "c/far/../b/up", "c/far/up/b"] {
        let trace = PathTrace::follow(&root.join(path), &[]).unwrap();
        assert_eq!((trace.target, trace.exists), (root.join(path).canonicalize().unwrap(), true), "{path}");
    }
}

/// P3
#[test]
fn what_is_missing_is_as_it_was_written_and_leads_nowhere_if_it_goes_up() {
    let (_folder, root) = world(&["a"], &[("circle", "circle")]);

    let missing = PathTrace::follow(&root.join("a/missing/b"), &[]).unwrap();

    assert_eq!((missing.target, missing.exists), (root.join("a/missing/b"), false));
    assert_eq!(PathTrace::follow(&root.join("a/missing/../b"), &[]), None);
    assert_eq!(PathTrace::follow(&root.join("circle"), &[]), None);
}

/// P3
#[test]
fn a_link_in_a_place_that_commands_may_write_is_not_followed_however_it_is_reached() {
    let (_folder, root) = world(&["a", "secret"], &[("a/link", "../secret"), ("to-a", "a")]);

    for path in ["a/link/file", "to-a/link/file", "secret/../a/link/file"] {
        let trace = PathTrace::follow(&root.join(path), &[root.join("a")]).unwrap();
        assert_eq!((trace.target, trace.is_link_refused), (root.join("a/link/file"), true), "{path}");
    }
}

/// P3
#[test]
fn of_places_that_lead_through_each_other_only_those_without_links_are_sure() {
    let (_folder, root) =
        world(&["a/b", "c", "d"], &[("a/b/link", "../../a"), ("c/to-d", "../d"), ("d/to-c", "../c")]);
    let traces =
        ["a/b", "a/b/link", "c/to-d", "d/to-c"].map(|path| PathTrace::follow(&root.join(path), &[]).unwrap());

    let untampered: Vec<PathBuf> =
        untampered(traces.into(), &[]).into_iter().map(|trace| trace.target).collect();

    assert_eq!(untampered, [root.join("a/b")]);
}
