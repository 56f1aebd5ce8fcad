use std::os::unix::fs::PermissionsExt;

use super::*;

fn grant(line: &str) -> ApprovalGrant {
    let (tool, line) = ("exec".to_owned(), Some(line.to_owned()));
    ApprovalGrant {
        tool,
        command: None,
        line,
        work_dir: None,
        host: None,
        reasons: vec!["a \"reason\"\n".to_owned()],
    }
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

const SAVING_PROCESSES: usize = 4;
const RULES_OF_EACH: usize = 25;

#[test]
#[ignore = "a part that another process plays"]
fn save_many_rules() {
    let (Ok(home), Ok(name)) = (std::env::var("SAVE_IN_HOME"), std::env::var("SAVE_AS")) else { return };
    for number in 0..RULES_OF_EACH {
        save_project_grant(Path::new(&home), Path::new("/projects/one"), &grant(&format!("{name} {number}")))
            .unwrap();
    }
}

/// P4: an acknowledged rule is not lost to another process that saves one at the same moment.
#[test]
fn rules_that_several_processes_save_at_once_are_all_kept() {
    let home = tempfile::tempdir().unwrap();
    let start = |name: usize| {
        std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--ignored", "project_approvals::tests::save_many_rules"])
            .env("SAVE_IN_HOME", home.path())
            .env("SAVE_AS", name.to_string())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let processes: Vec<_> = (0..SAVING_PROCESSES).map(start).collect();

    let succeeded = processes.into_iter().all(|mut process| process.wait().unwrap().success());

    let kept = load_project_grants(home.path(), Path::new("/projects/one"));
    assert!(succeeded);
    assert_eq!(kept.len(), SAVING_PROCESSES * RULES_OF_EACH);
}
