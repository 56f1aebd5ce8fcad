use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

fn work_folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().canonicalize().unwrap().join("work");
    fs::create_dir(&work).unwrap();
    (folder, work)
}

fn denying(work: &Path, target: &str, permission: Permission) -> Scope {
    let deny = vec![DeniedTarget { target: target.to_owned(), permission }];
    Scope::new(work, &ScopeConfig { deny, ..ScopeConfig::default() }, &work.join("../home"))
}

fn is_denied<T>(result: &Result<T, FileError>) -> bool {
    matches!(result, Err(FileError::Denied { .. }))
}

/// P1: a bind mount needs rights that tests don't have, but what it makes is this: the same folder under a path that no
/// rule knows.
#[test]
fn another_name_of_a_denied_folder_is_denied_by_its_identity() {
    let (_folder, work) = work_folder();
    fs::create_dir(work.join("secret")).unwrap();
    fs::write(work.join("secret/key"), "key").unwrap();
    let scope = denying(&work, "secret", Permission::Read);

    fs::rename(work.join("secret"), work.join("other")).unwrap();

    let place = scope.resolve("other/key", Permission::Read).unwrap();
    assert!(is_denied(&place.open()));
    assert!(is_denied(&scope.check_folder("other", Permission::Read)));
}

/// P1: also where a denied folder is known by what it is and not by its path, it is not told where a link in it leads.
#[test]
fn what_is_denied_by_its_identity_is_named_as_it_was_written() {
    let (_folder, work) = work_folder();
    fs::create_dir(work.join("secret")).unwrap();
    fs::write(work.join("secret/hidden"), "key").unwrap();
    symlink("hidden", work.join("secret/link")).unwrap();
    let scope = denying(&work, "secret", Permission::Read);
    fs::rename(work.join("secret"), work.join("other")).unwrap();

    let opened = scope.resolve("other/link", Permission::Read).unwrap().open();

    assert!(matches!(opened, Err(FileError::Denied { path, .. }) if path == "other/link"));
}

/// P1
#[test]
fn a_second_name_of_a_denied_file_is_denied_by_its_identity() {
    let (_folder, work) = work_folder();
    fs::write(work.join(".env"), "key").unwrap();
    fs::hard_link(work.join(".env"), work.join("innocent")).unwrap();
    let scope = denying(&work, ".env", Permission::Read);

    assert!(is_denied(&scope.resolve("innocent", Permission::Read).unwrap().open()));
}

/// P1: on a file system that ignores case these are one name.
#[test]
fn a_denied_name_is_denied_in_any_case() {
    let (_folder, work) = work_folder();
    let scope = denying(&work, "Secret", Permission::Read);

    for path in ["secret", "SECRET/key", "Secret/key"] {
        assert!(is_denied(&scope.resolve(path, Permission::Write)), "{path}");
    }
    assert!(scope.resolve("secrets", Permission::Write).is_ok());
}

/// P1: otherwise a command that may write in the work folder could turn an allowed target into any other folder.
#[test]
fn a_link_put_in_place_of_an_allowed_target_does_not_move_it() {
    let (folder, work) = work_folder();
    fs::create_dir(folder.path().join("outside")).unwrap();
    let allow = vec![AllowedTarget { target: "out".to_owned(), permission: Permission::Write }];
    let scope = Scope::new(&work, &ScopeConfig { allow, deny: vec![] }, &folder.path().join("home"));

    symlink(folder.path().join("outside"), work.join("out")).unwrap();

    assert!(matches!(scope.resolve("out/file", Permission::Read), Err(FileError::Outside { .. })));
}

/// P1
#[test]
fn a_denied_link_denies_what_it_leads_to() {
    let (_folder, work) = work_folder();
    fs::create_dir(work.join("real")).unwrap();
    symlink("real", work.join("link")).unwrap();
    let scope = denying(&work, "link", Permission::Read);

    assert!(is_denied(&scope.resolve("real/file", Permission::Read)));
    assert!(is_denied(&scope.resolve("link/file", Permission::Read)));
}

/// P1
#[test]
fn denying_writing_leaves_reading() {
    let (_folder, work) = work_folder();
    let scope = denying(&work, "locked", Permission::Write);

    assert!(scope.resolve("locked/file", Permission::Read).is_ok());
    assert!(is_denied(&scope.resolve("locked/file", Permission::Write)));
}

#[test]
fn the_scope_is_read_from_config_and_an_unknown_key_is_an_error() {
    let config = r#"{"allow": [{"target": "./", "permission": "write"}], "deny": [{"target": "secret"}]}"#;
    let read: ScopeConfig = serde_json::from_str(config).unwrap();

    assert_eq!(read.allow, [AllowedTarget { target: "./".to_owned(), permission: Permission::Write }]);
    assert_eq!(read.deny, [DeniedTarget { target: "secret".to_owned(), permission: Permission::Read }]);
    assert!(serde_json::from_str::<ScopeConfig>(r#"{"allowed": []}"#).is_err());
}

/// P1: a command of an earlier session may write what it may, and so may have put a link in place of an allowed target.
#[test]
fn a_target_that_is_a_link_in_what_may_be_written_is_not_followed() {
    let (folder, work) = work_folder();
    fs::create_dir(folder.path().join("outside")).unwrap();
    fs::write(folder.path().join("outside/file"), "").unwrap();
    symlink("../outside", work.join("data")).unwrap();
    let allowed = |target: &str, permission| AllowedTarget { target: target.to_owned(), permission };
    let allow = vec![allowed("./", Permission::Write), allowed("data", Permission::Read)];

    let scope = Scope::new(&work, &ScopeConfig { allow, deny: vec![] }, &folder.path().join("home"));

    assert!(scope.allowed().all(|(path, _)| path.starts_with(&work)));
    let refused = scope.resolve("data/file", Permission::Read).unwrap_err().to_string();
    assert!(refused.contains("name what it leads to"), "{refused}");
}

/// P1
#[test]
fn a_target_that_is_a_link_elsewhere_is_followed() {
    let (folder, work) = work_folder();
    fs::create_dir(folder.path().join("outside")).unwrap();
    symlink("outside", folder.path().join("link")).unwrap();
    let allow = vec![AllowedTarget { target: "../link".to_owned(), permission: Permission::Write }];

    let scope = Scope::new(&work, &ScopeConfig { allow, deny: vec![] }, &folder.path().join("home"));

    let outside = folder.path().canonicalize().unwrap().join("outside");
    assert!(scope.allowed().eq([(outside.as_path(), Permission::Write)]));
}

/// P1
#[test]
fn a_file_that_may_not_be_written_is_so_whatever_is_allowed() {
    let (folder, work) = work_folder();
    fs::write(work.join("config.toml"), "").unwrap();
    let scope = Scope::new(&work, &ScopeConfig::default(), &folder.path().join("home"));

    let scope = scope.without_writing(&work.join("config.toml"));

    assert!(is_denied(&scope.resolve("config.toml", Permission::Write)));
    assert!(scope.resolve("config.toml", Permission::Read).is_ok());
    assert!(scope.resolve("other.toml", Permission::Write).is_ok());
}

/// P1
#[test]
fn a_file_that_is_left_out_of_a_scope_is_neither_read_nor_written() {
    let (folder, work) = work_folder();
    fs::write(work.join("password"), "").unwrap();
    let scope = Scope::new(&work, &ScopeConfig::default(), &folder.path().join("home"));

    let scope = scope.without_file(&work.join("password"));

    assert!(is_denied(&scope.resolve("password", Permission::Read)));
    assert!(is_denied(&scope.resolve("password", Permission::Write)));
    assert!(scope.resolve("other", Permission::Write).is_ok());
}

/// P1: a runtime with many work folders opens each protected place once.
#[test]
fn scopes_of_one_user_share_what_they_keep_open_of_protected_places() {
    let (_folder, work) = work_folder();
    let environment = |home: &str| BTreeMap::from([("HOME".to_owned(), home.to_owned())]);
    let scope =
        |home| Scope::for_user(&work, &ScopeConfig::default(), &work.join("../home"), &environment(home));

    let (one, other, of_another_user) = (scope("/one"), scope("/one"), scope("/other"));

    assert!(std::ptr::eq(one.protected(), other.protected()));
    assert!(!std::ptr::eq(one.protected(), of_another_user.protected()));
}

/// P1: a key that appears after the first scope was made is protected in all of them.
#[test]
fn a_key_that_appears_later_is_protected() {
    let (_folder, work) = work_folder();
    let environment = BTreeMap::from([("HOME".to_owned(), work.to_str().unwrap().to_owned())]);
    let scope = || Scope::for_user(&work, &ScopeConfig::default(), &work.join("../home"), &environment);
    let (early, late) = (scope(), scope());

    fs::write(work.join(".netrc"), "key").unwrap();
    fs::hard_link(work.join(".netrc"), work.join("innocent")).unwrap();

    for scope in [early, late] {
        let by_name = scope.resolve(".netrc", Permission::Read);
        let by_identity = scope.resolve("innocent", Permission::Read).unwrap().open();
        assert!(matches!(by_name, Err(FileError::Protected { .. })));
        assert!(matches!(by_identity, Err(FileError::Protected { .. })));
    }
}

/// P1: a command of a session above may have put the link there before the scope was made, and removed it since.
#[test]
fn a_link_in_place_of_the_work_folder_moves_no_scope_even_if_it_goes_later() {
    let (folder, work) = work_folder();
    let outside = folder.path().canonicalize().unwrap().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "").unwrap();
    fs::remove_dir(&work).unwrap();
    symlink("outside", &work).unwrap();
    let inner = ScopeConfig {
        allow: vec![AllowedTarget { target: "data".to_owned(), permission: Permission::Write }],
        deny: vec![],
    };

    for config in [ScopeConfig::default(), inner] {
        let scope = Scope::new(&work, &config, &folder.path().join("home"));
        assert_eq!(scope.work_dir_leads_to(), Some(outside.clone()));
        let moved = scope.resolve("file", Permission::Read);
        assert!(matches!(moved, Err(FileError::WorkFolderMoved { .. })), "{moved:?}");

        fs::remove_file(&work).unwrap();
        fs::create_dir(&work).unwrap();
        assert!(scope.check_work_dir().is_ok());
        assert!(scope.allowed().all(|(path, _)| path.starts_with(&work)));
        let file = outside.join("file");
        let by_path = scope.resolve(file.to_str().unwrap(), Permission::Read);
        assert!(matches!(by_path, Err(FileError::Outside { .. })), "{by_path:?}");
        fs::remove_dir(&work).unwrap();
        symlink("outside", &work).unwrap();
    }
}

/// A2, P1: the targets of a subagent were resolved when it was started, and another command may have put a link there since.
#[test]
fn a_narrowed_scope_follows_no_link_to_its_targets() {
    let (folder, work) = work_folder();
    let outside = folder.path().canonicalize().unwrap().join("outside");
    for path in [&outside, &work.join("real"), &work.join("there")] {
        fs::create_dir(path).unwrap();
        fs::write(path.join("file"), "").unwrap();
    }
    symlink(&outside, work.join("docs")).unwrap();
    symlink("real", work.join("inside")).unwrap();
    let targets = ["docs", "docs/file", "inside", "there", "missing"];

    let scope = Scope::new(&work, &ScopeConfig::default(), &folder.path().join("home"))
        .narrow_to(targets.map(|target| (work.join(target), Permission::Read)));

    for path in ["docs/file", "inside/file", "real/file"] {
        let refused = scope.resolve(path, Permission::Read);
        assert!(matches!(refused, Err(FileError::Outside { .. })), "{path}: {refused:?}");
    }
    assert!(scope.resolve("there/file", Permission::Read).is_ok());
    assert!(scope.allowed().map(|(path, _)| path).eq([work.join("there"), work.join("missing")]));
}

/// A2, P1
#[test]
fn a_narrowed_scope_has_nothing_that_the_whole_one_has_not() {
    let (folder, work) = work_folder();
    let outside = folder.path().canonicalize().unwrap().join("outside");
    fs::create_dir(&outside).unwrap();
    let allow = vec![AllowedTarget { target: "./".to_owned(), permission: Permission::Read }];
    let deny = vec![DeniedTarget { target: "secret".to_owned(), permission: Permission::Read }];
    let whole = || {
        let config = ScopeConfig { allow: allow.clone(), deny: deny.clone() };
        Scope::new(&work, &config, &folder.path().join("home"))
    };
    let targets = [
        (outside, Permission::Read),
        (work.join("written"), Permission::Write),
        (work.join("secret/key"), Permission::Read),
    ];

    let nothing = whole().narrow_to(targets);

    assert_eq!(nothing.allowed().count(), 0);
    let refused = nothing.resolve("file", Permission::Read).unwrap_err().to_string();
    assert!(refused.contains("nothing: every path"), "{refused}");
    let read = whole().narrow_to([(work.join("read"), Permission::Read)]);
    assert!(read.allowed().eq([(work.join("read").as_path(), Permission::Read)]));
}

/// A2, P4: the agent that starts a subagent is not the user, and can lift no protection by naming a file.
#[test]
fn only_the_user_names_startup_files() {
    let (folder, work) = work_folder();
    let home = work.to_str().unwrap().to_owned();
    let environment = BTreeMap::from([("HOME".to_owned(), home)]);
    let bashrc = work.join(".bashrc");
    let allowed = |target: &str| AllowedTarget { target: target.to_owned(), permission: Permission::Write };
    let narrowed = |targets: &[&str]| {
        let allow = targets.iter().map(|target| allowed(target)).collect();
        let config = ScopeConfig { allow, deny: vec![] };
        let whole = Scope::for_user(&work, &config, &folder.path().join("home"), &environment);
        whole.narrow_to([(bashrc.clone(), Permission::Write)])
    };

    assert!(narrowed(&["./"]).is_startup_file(&bashrc));
    assert!(!narrowed(&["./", ".bashrc"]).is_startup_file(&bashrc));
}
