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
        let way = Way::around(&root.join(path), &[]).unwrap();
        assert_eq!((way.place, way.exists), (root.join(path).canonicalize().unwrap(), true), "{path}");
    }
}

/// P3
#[test]
fn what_is_missing_is_as_it_was_written_and_leads_nowhere_if_it_goes_up() {
    let (_folder, root) = world(&["a"], &[("circle", "circle")]);

    let missing = Way::around(&root.join("a/missing/b"), &[]).unwrap();

    assert_eq!((missing.place, missing.exists), (root.join("a/missing/b"), false));
    assert_eq!(Way::around(&root.join("a/missing/../b"), &[]), None);
    assert_eq!(Way::around(&root.join("circle"), &[]), None);
}

/// P3
#[test]
fn a_link_in_a_place_that_commands_may_write_is_not_followed_however_it_is_reached() {
    let (_folder, root) = world(&["a", "secret"], &[("a/link", "../secret"), ("to-a", "a")]);

    for path in ["a/link/file", "to-a/link/file", "secret/../a/link/file"] {
        let way = Way::around(&root.join(path), &[root.join("a")]).unwrap();
        assert_eq!((way.place, way.is_barred), (root.join("a/link/file"), true), "{path}");
    }
}

/// P3
#[test]
fn of_places_that_lead_through_each_other_only_those_without_links_are_sure() {
    let (_folder, root) =
        world(&["a/b", "c", "d"], &[("a/b/link", "../../a"), ("c/to-d", "../d"), ("d/to-c", "../c")]);
    let ways =
        ["a/b", "a/b/link", "c/to-d", "d/to-c"].map(|path| Way::around(&root.join(path), &[]).unwrap());

    let unbent: Vec<PathBuf> = unbent(ways.into(), &[]).into_iter().map(|way| way.place).collect();

    assert_eq!(unbent, [root.join("a/b")]);
}
