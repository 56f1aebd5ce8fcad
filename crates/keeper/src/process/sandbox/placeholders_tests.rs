use std::fs;

use super::*;

fn placeholder(at: &Path, text: Option<&str>) -> Placeholder {
    Placeholder { at: at.to_owned(), text: text.map(str::to_owned) }
}

/// P3
#[test]
fn a_placeholder_goes_with_the_last_keeper_that_holds_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap().join("commondir");
    let wanted = [placeholder(&path, Some("."))];

    let (first, second) = (Placeholders::make(&wanted).unwrap(), Placeholders::make(&wanted).unwrap());
    let made = fs::read_to_string(&path).unwrap();
    for (placeholder, file) in first.held {
        drop(file);
        let _ = remove_file(&placeholder);
    }
    let is_there_for_second = path.exists();
    for (placeholder, file) in second.held {
        drop(file);
        remove_file(&placeholder).unwrap();
    }

    assert_eq!((made.as_str(), is_there_for_second, path.exists()), (".", true, false));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// P3
#[test]
fn what_is_there_already_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::write(root.join("file"), "the user's").unwrap();
    fs::create_dir(root.join("folder")).unwrap();
    fs::write(root.join("folder/inside"), "").unwrap();
    let wanted = [placeholder(&root.join("file"), Some(".")), placeholder(&root.join("folder"), None)];

    Placeholders::make(&wanted).unwrap().remove();

    assert_eq!(fs::read_to_string(root.join("file")).unwrap(), "the user's");
    assert!(root.join("folder/inside").exists());
}

/// P3
#[test]
fn nothing_is_made_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir(root.join("real")).unwrap();
    std::os::unix::fs::symlink("real", root.join("link")).unwrap();

    let through = Placeholders::make(&[placeholder(&root.join("link/file"), Some("."))]);

    assert!(through.is_err());
    assert_eq!(fs::read_dir(root.join("real")).unwrap().count(), 0);
}

/// P3
#[test]
fn what_was_made_goes_if_the_rest_can_not_be_made() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let wanted = ["first", "missing/second"].map(|name| placeholder(&root.join(name), Some(".")));

    let made = Placeholders::make(&wanted);

    assert!(made.is_err());
    assert_eq!(fs::read_dir(root).unwrap().count(), 0);
}
