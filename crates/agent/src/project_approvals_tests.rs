use std::os::unix::fs::PermissionsExt;

use super::*;

fn grant(line: &str) -> ApprovalGrant {
    let (tool, line) = ("exec".to_owned(), Some(line.to_owned()));
    ApprovalGrant { tool, command: None, line, work_dir: None, reasons: vec!["a \"reason\"\n".to_owned()] }
}

/// P4: kept by folder, privately, each rule once.
#[test]
fn a_rule_is_kept_for_its_folder_in_a_private_file() {
    let home = tempfile::tempdir().unwrap();
    let (one, other) = (Path::new("/projects/one"), Path::new("/projects/o\"ther"));
    let odd = grant("echo 'a' \"b\" \\ \n$(x)\u{7}");

    save_project_grant(home.path(), one, &grant("make")).unwrap();
    save_project_grant(home.path(), one, &grant("make")).unwrap();
    save_project_grant(home.path(), other, &odd).unwrap();

    assert_eq!(load_project_grants(home.path(), one), [grant("make")]);
    assert_eq!(load_project_grants(home.path(), other), [odd]);
    assert_eq!(load_project_grants(home.path(), Path::new("/work")), []);
    let mode = std::fs::metadata(home.path().join(FILE_NAME)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// P4: a file that can't be trusted allows nothing, and is not overwritten.
#[test]
fn a_damaged_or_foreign_file_allows_nothing_and_is_kept() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(FILE_NAME);
    let folder = Path::new("/projects/one");

    std::fs::write(&path, "[[project]\n").unwrap();
    assert_eq!(load_project_grants(home.path(), folder), []);
    assert!(save_project_grant(home.path(), folder, &grant("make")).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "[[project]\n");

    std::fs::remove_file(&path).unwrap();
    save_project_grant(home.path(), folder, &grant("make")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(load_project_grants(home.path(), folder), [], "others may write it");
}
