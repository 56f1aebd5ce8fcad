use std::os::unix::fs::symlink;

use longhaul_tools::FileError;

use super::*;

/// A2, P1: what a subagent may use was checked when it was started; its tools are made later, and again after a restart.
#[test]
fn a_link_in_place_of_a_subagents_folder_leads_out_of_no_scope() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for name in ["work/docs", "outside", "home"] {
        std::fs::create_dir_all(root.join(name)).unwrap();
    }
    std::fs::write(root.join("outside/key"), "key").unwrap();
    let docs = root.join("work/docs");
    let scope = vec![ScopedTarget { path: docs.to_str().unwrap().to_owned(), write: false }];
    let profile = ToolProfile {
        work_dir: Some(root.join("work")),
        subagent: Some(SubagentProfile { scope: Some(scope), tools: None, depth: 1 }),
    };
    let config = Config::at(root.join("home"));
    let check = |permission| profile.scope(&config).unwrap().check_path("docs/key", permission);

    assert!(check(Permission::Read).is_ok());
    assert!(matches!(check(Permission::Write), Err(FileError::ReadOnly { .. })));
    std::fs::remove_dir(&docs).unwrap();
    symlink(root.join("outside"), &docs).unwrap();

    assert!(matches!(check(Permission::Read), Err(FileError::Outside { .. })));
}

/// W3: a subagent makes no schedules, whatever its kind lists.
#[test]
fn a_subagent_has_no_schedules() {
    let subagent = |tools| ToolProfile {
        work_dir: None,
        subagent: Some(SubagentProfile { scope: None, tools, depth: 1 }),
    };

    assert!(ToolProfile::of_folder(None).allows(SCHEDULE));
    assert!(!subagent(None).allows(SCHEDULE));
    assert!(!subagent(Some(vec![SCHEDULE.to_owned()])).allows(SCHEDULE));
    assert!(subagent(None).allows(EXEC));
}
