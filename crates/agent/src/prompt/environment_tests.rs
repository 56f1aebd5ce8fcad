use std::fs;

use super::*;

#[test]
fn the_name_of_the_system_is_what_its_makers_call_it() {
    let text = "NAME=Debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";

    assert_eq!(pretty_name(text).as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
    assert_eq!(pretty_name("NAME=x\nPRETTY_NAME=\n"), None);
    assert!(operating_system().contains(std::env::consts::ARCH), "{}", operating_system());
}

#[test]
fn a_branch_or_a_model_that_changed_is_told_once_and_a_commit_is_not() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join(".git")).unwrap();
    let head = |text: &str| fs::write(folder.path().join(".git/HEAD"), text).unwrap();
    head("ref: refs/heads/main\n");
    let setup = SessionSetup { work_dir: Some(folder.path()), sandbox: "", model: "a/one" };
    let began = setup.capture(Some(true));
    assert_eq!(began.git.as_ref().unwrap().is_clean, Some(true));

    assert_eq!(setup.change_note(&began), None);
    fs::create_dir_all(folder.path().join(".git/refs/heads")).unwrap();
    fs::write(folder.path().join(".git/refs/heads/main"), "a".repeat(40)).unwrap();
    assert_eq!(setup.change_note(&began), None, "a commit");

    head("ref: refs/heads/other\n");
    let changed = SessionSetup { model: "a/two", ..setup };
    let note = changed.change_note(&began).unwrap();

    assert_eq!(note.text, "Git: branch other. The model that answers is a/two.");
    let told = *note.environment.unwrap();
    assert_eq!((told.model.as_str(), &told.os), ("a/two", &began.os));
    assert_eq!(changed.change_note(&told), None);
}

#[test]
fn a_folder_that_is_gone_has_no_repository() {
    let setup = SessionSetup { work_dir: Some(Path::new("/nowhere/at/all")), sandbox: "", model: "m" };

    assert_eq!(setup.capture(Some(true)).git, None);
}
