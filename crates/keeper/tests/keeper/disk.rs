//! K9: a disk that is full, limits that are reached, a folder that is gone: what is known of the command stays known.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use longhaul_keeper::{Found, Launcher, Spec, Tasks};
use longhaul_protocol::TaskStatus;

use crate::home::{Home, ended, is_alive, keeper_of, spec_in, until};
use crate::part;

/// K9
#[test]
fn how_a_command_ended_is_known_also_on_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let script =
        r#"mount -t tmpfs -o size=2m,mode=700 none "$LONGHAUL_TEST_HOME" || exit 99; exec "$0" "$@""#;
    // Root may mount without a user namespace, which some systems refuse.
    let namespaces: &[&str] = if rustix::process::getuid().is_root() {
        &["--mount"]
    } else {
        &["--user", "--map-root-user", "--mount"]
    };
    let ended = Command::new("unshare")
        .args(namespaces)
        .args(["sh", "-c", script])
        .arg(std::env::current_exe().unwrap())
        .args(["disk::fill_the_disk", "--exact", "--ignored", "--nocapture"])
        .env("LONGHAUL_TEST_HOME", folder.path())
        .stdin(Stdio::null())
        .output();

    let Ok(output) = ended else {
        eprintln!("skipped: there is no `unshare` here");
        return;
    };
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if output.status.code() == Some(99) || said.contains("unshare:") {
        eprintln!("skipped: a disk of its own is not permitted here: {said}");
        return;
    }
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "a part that the test above plays on a small disk"]
fn fill_the_disk() {
    let home = part::home();
    fs::create_dir(home.join("run")).unwrap();
    fs::write(home.join("run/token"), "open sesame").unwrap();
    let tasks = Tasks::at(&home.join("tasks"), part::keeper()).unwrap();
    let spec = Spec { output_cap: 64 << 20, ..spec_in(&home, "head -c 20000000 /dev/zero; exit 7") };

    let task = tasks.start(&spec).unwrap();
    let status = ended(&task);

    assert_eq!((status.status, status.exit_code), (TaskStatus::Failed, Some(7)));
    assert_eq!(status.printed, 20_000_000);
    assert!(status.message.unwrap().starts_with("could not save all of the output"));
    // What could not be told later is not even begun.
    let refused = tasks.start(&spec_in(&home, "touch ran")).unwrap_err().to_string();
    assert!(refused.contains("No space"), "{refused}");
    assert!(!home.join("ran").exists());
}

/// A limit on the size of files, as a shell may set it, must not end the keeper.
#[test]
fn a_keeper_survives_a_limit_on_the_size_of_files() {
    let keeper = std::env::current_exe().unwrap();
    let script = format!(
        "ulimit -f 100; exec {} part::plays_the_keeper --exact --ignored --nocapture --test-threads=1",
        keeper.display()
    );
    let home = Home::with(Launcher::new("/bin/bash", ["-c".to_owned(), script]));

    let task = home.start("head -c 300000 /dev/zero; kill -XFSZ $$; echo never");
    let status = ended(&task);

    assert!(status.message.unwrap().starts_with("could not save all of the output"));
    // The command itself is ended by it, as it would be without a keeper.
    assert_eq!((status.printed, status.signal), (300_000, Some(25)));
}

/// A keeper whose folder was removed has nobody left to tell.
#[test]
fn a_keeper_whose_folder_is_gone_ends_with_its_command() {
    let home = Home::new();
    let task = home.start("while [ ! -e go ]; do sleep 0.01; done");
    let keeper = keeper_of(&home.task_folder(task.id()));
    let connection = task.connect().unwrap();

    fs::remove_dir_all(home.folder.join("tasks")).unwrap();
    fs::write(home.folder.join("go"), "").unwrap();

    until("the keeper's end", || (!is_alive(keeper)).then_some(()));
    drop(connection);
}

/// A status that can't be written now is written when that is possible again, and meanwhile the keeper is there.
#[test]
fn a_status_that_can_not_be_written_is_tried_again_while_clients_are_heard() {
    let home = Home::new();
    let task = home.start("while [ ! -e go ]; do sleep 0.01; done; exit 5");
    let in_the_way: PathBuf = home.task_folder(task.id()).join("status.json");
    fs::create_dir(&in_the_way).unwrap();
    fs::write(home.folder.join("go"), "").unwrap();
    let partial = home.task_folder(task.id()).join("status.json.partial");
    until("a try", || fs::read_to_string(&partial).unwrap().contains("\"exit_code\":5").then_some(()));

    let connection = task.connect().expect("it is heard");
    assert!(matches!(home.tasks.find(task.id()).unwrap(), Found::Running(_)));
    fs::remove_dir(&in_the_way).unwrap();

    assert_eq!(ended(&task).exit_code, Some(5));
    drop(connection);
}
