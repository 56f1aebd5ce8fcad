//! P1 with a real bind mount, in a mount namespace of its own.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use longhaul_tools::{DeniedTarget, Permission, Scope, ScopeConfig, file_tools};
use serde_json::json;

use crate::workplace::{Workplace, call, error, run};

const FOLDER: &str = "LONGHAUL_TEST_FOLDER";

/// P1
#[test]
fn a_bind_mount_is_no_way_around_a_denied_folder() {
    let place = Workplace::new();
    place.put("denied/key.txt", "key");
    std::fs::create_dir(place.path("other")).unwrap();
    let program = std::env::current_exe().unwrap();
    let script = "mount --bind \"$0/denied\" \"$0/other\" || exit 99
        exec \"$1\" --exact --ignored mounts::part_that_reads_through_a_bind_mount";

    let ended = Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", script])
        .args([place.work().as_os_str(), program.as_os_str()])
        .env(FOLDER, place.work())
        .output();

    let Ok(output) = ended else {
        eprintln!("skipped: there is no `unshare` here");
        return;
    };
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    if output.status.code() == Some(99) || said.contains("unshare:") {
        eprintln!("skipped: a bind mount is not permitted here: {said}");
        return;
    }
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[tokio::test]
#[ignore = "a part of the test above, which runs it inside the mount namespace"]
async fn part_that_reads_through_a_bind_mount() {
    let work = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    assert_eq!(std::fs::read_to_string(work.join("other/key.txt")).unwrap(), "key", "it is mounted");
    let deny = vec![DeniedTarget { target: "denied".to_owned(), permission: Permission::Read }];
    let config = ScopeConfig { deny, ..ScopeConfig::default() };
    let scope = Arc::new(Scope::new(&work, &config, &work.join("../home")));

    for tool in file_tools(scope) {
        let arguments = match &*tool.definition().name {
            "read_file" => json!({ "path": "other/key.txt" }),
            "search_text" => json!({ "path": "other", "pattern": "key" }),
            _ => continue,
        };
        let prepared = tool.prepare(&call(&arguments)).await.map_err(|finished| finished.content).unwrap();
        assert!(error(run(prepared).await).contains("is denied"));
    }
}
