//! A command that runs and ends: what it gets, and what is known of it.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use longhaul_keeper::{Error, Found, Spec};
use longhaul_protocol::TaskStatus;

use crate::home::{Home, ended};

/// K8
#[test]
fn exit_0_is_completed_and_its_output_is_kept() {
    let home = Home::new();

    let (status, output) = home.run("echo hello");

    assert_eq!((status.status, status.exit_code, status.signal), (TaskStatus::Completed, Some(0), None));
    assert_eq!(output, "hello\n");
    assert_eq!(status.printed, 6);
    assert_eq!(status.message, None);
    assert!(status.started_at <= status.ended_at);
}

/// K8
#[test]
fn another_exit_code_is_failed_with_that_code() {
    let home = Home::new();

    let (status, _) = home.run("exit 3");

    assert_eq!((status.status, status.exit_code, status.signal), (TaskStatus::Failed, Some(3), None));
}

/// K8
#[test]
fn a_command_that_a_signal_ends_is_failed_as_shells_count() {
    let home = Home::new();

    let (status, _) = home.run("kill -SEGV $$");

    assert_eq!((status.status, status.exit_code, status.signal), (TaskStatus::Failed, Some(139), Some(11)));
}

/// K13
#[test]
fn standard_input_is_at_its_end() {
    let home = Home::new();

    let (status, output) = home.run("cat; read line || echo nothing");

    assert_eq!(status.status, TaskStatus::Completed);
    assert_eq!(output, "nothing\n");
}

/// K10
#[test]
fn both_outputs_are_kept_in_one_order() {
    let home = Home::new();

    let (_, output) = home.run("for n in 1 2 3; do echo out $n; echo err $n >&2; done");

    assert_eq!(output, "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n");
}

/// K17
#[test]
fn the_environment_is_exactly_what_the_spec_says_and_the_mark() {
    let home = Home::new();
    let mut spec = home.spec("cat /proc/self/environ | tr '\\0' '\\n' | sort");
    spec.environment.insert("GREETING".to_owned(), "hello world".to_owned());
    let path = spec.environment["PATH"].clone();

    let task = home.tasks.start(&spec).unwrap();
    ended(&task);

    // The shell adds these three by itself.
    let printed = home.output(&task);
    let ours =
        printed.lines().filter(|line| !["PWD=", "SHLVL=", "_="].iter().any(|name| line.starts_with(name)));
    let expected =
        ["GREETING=hello world".to_owned(), format!("LONGHAUL_TASK={}", task.id()), format!("PATH={path}")];
    assert_eq!(ours.collect::<Vec<_>>(), expected);
}

/// K17: what the runtime knows can't be read from the process that keeps the command either.
#[test]
fn the_keeper_has_no_environment() {
    let home = Home::new();

    let (_, output) = home.run("tr '\\0' '\\n' < /proc/$PPID/environ; echo end");

    assert_eq!(output, "end\n");
}

#[test]
fn the_command_has_no_files_open_but_its_own_three() {
    let home = Home::new();

    let (_, output) = home.run("exec ls -l /proc/self/fd");

    let files = output.lines().filter_map(|line| line.split_once(" -> ")).map(|(_, file)| file);
    // The fourth is the listing itself.
    let kinds: Vec<&str> = files.map(|file| file.split([':', '[']).next().unwrap()).collect();
    assert_eq!(kinds[..3], ["/dev/null", "pipe", "pipe"]);
    assert!(kinds.len() == 4 && kinds[3].starts_with("/proc/"), "{kinds:?}");
}

#[test]
fn no_signal_is_blocked_or_ignored_in_the_command() {
    let home = Home::new();

    let (_, output) = home.run("sed -n 's/^Sig\\(Blk\\|Ign\\):\\t//p' /proc/self/status");

    // The C library keeps two signals for itself, which no program can change.
    let reserved = 0b11 << 31;
    let masks: Vec<u64> =
        output.lines().map(|mask| u64::from_str_radix(mask, 16).unwrap() & !reserved).collect();
    assert_eq!(masks, [0, 0]);
}

#[test]
fn a_writer_whose_reader_is_gone_ends() {
    let home = Home::new();

    let (status, output) = home.run("yes | head -1");

    assert_eq!((status.status, output.as_str()), (TaskStatus::Completed, "y\n"));
}

#[test]
fn the_command_runs_in_its_work_folder_with_nothing_wrapped_around_it() {
    let home = Home::new();
    let mut spec = home.spec("pwd; echo $0; echo \"it's \\\"quoted\\\"\" # a comment");
    spec.work_dir = home.folder.join("run").canonicalize().unwrap();

    let task = home.tasks.start(&spec).unwrap();
    ended(&task);

    assert_eq!(home.output(&task), format!("{}\nbash\nit's \"quoted\"\n", spec.work_dir.display()));
}

#[test]
fn files_that_the_command_makes_have_the_usual_mode_and_those_of_the_keeper_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let usual = {
        let file = home.folder.join("by-the-test");
        fs::write(&file, "").unwrap();
        fs::metadata(file).unwrap().permissions().mode() & 0o777
    };

    let task = home.start("touch by-the-command; while [ ! -e go ]; do sleep 0.01; done");
    let folder = home.task_folder(task.id());
    crate::home::until("the command's file", || home.folder.join("by-the-command").exists().then_some(()));

    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(home.folder.join("by-the-command")), usual);
    let all_are_private = || {
        assert_eq!(mode(folder.clone()), 0o700);
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(mode(path.clone()), 0o600, "{}", path.display());
        }
    };
    assert!(folder.join("socket").exists());
    all_are_private();
    fs::write(home.folder.join("go"), "").unwrap();
    ended(&task);
    all_are_private();
}

/// K1: a start that fails says why, and later nobody has to guess.
#[test]
fn a_work_folder_that_is_gone_is_a_failed_start() {
    let home = Home::new();
    let spec = Spec { work_dir: PathBuf::from("/nonexistent/folder"), ..home.spec("touch ran") };

    let error = home.tasks.start(&spec).unwrap_err();

    let Error::NotStarted { reason } = error else { panic!("{error}") };
    assert_eq!(reason, "the work folder /nonexistent/folder does not exist");
    let Found::Ended(status) = home.tasks.find(spec.task_id).unwrap() else { panic!("its end is known") };
    assert_eq!(status.never_started(), Some(reason.as_str()));
}

/// K18
#[test]
fn a_target_that_is_not_this_machine_is_a_failed_start() {
    let home = Home::new();
    let spec = Spec { target: "moon".to_owned(), ..home.spec("touch ran") };

    let error = home.tasks.start(&spec).unwrap_err();

    assert!(matches!(&error, Error::NotStarted { reason } if reason.contains("\"moon\"")), "{error}");
    assert!(!home.folder.join("ran").exists());
}

/// K1: why it did not start is told also where it can't be recorded.
#[test]
fn a_failed_start_that_can_not_be_recorded_says_why_all_the_same() {
    let keeper = std::env::current_exe().unwrap();
    let script = format!(
        "/bin/mkdir status.json; exec {} part::plays_the_keeper --exact --ignored --nocapture --test-threads=1",
        keeper.display()
    );
    let home = Home::with(longhaul_keeper::Launcher::new("/bin/sh", ["-c".to_owned(), script]));
    let spec = Spec { work_dir: PathBuf::from("/nonexistent/folder"), ..home.spec("touch ran") };

    let error = home.tasks.start(&spec).unwrap_err();

    assert!(matches!(&error, Error::NotStarted { reason } if reason.contains("does not exist")), "{error}");
}

#[test]
fn a_command_that_no_system_takes_is_a_failed_start() {
    let home = Home::new();
    let spec = home.spec(&"x".repeat(300_000));

    let error = home.tasks.start(&spec).unwrap_err();

    assert!(matches!(&error, Error::NotStarted { reason } if reason.contains("too long")), "{error}");
}

#[test]
fn a_program_that_is_no_keeper_is_an_error() {
    let home = Home::with(longhaul_keeper::Launcher::new("/bin/true", [""; 0]));
    let spec = home.spec("touch ran");

    let error = home.tasks.start(&spec).unwrap_err();

    assert!(matches!(error, Error::Interrupted { .. }), "{error}");
    assert!(matches!(home.tasks.find(spec.task_id).unwrap(), Found::NotStarted));
    assert!(!home.folder.join("ran").exists());
}

/// K3
#[test]
fn a_command_that_runs_longer_than_it_may_is_timed_out() {
    let home = Home::new();
    let spec = Spec { max_runtime_s: Some(5), ..home.spec("echo begun; sleep 600") };

    let task = home.tasks.start(&spec).unwrap();
    let status = ended(&task);

    assert_eq!(status.status, TaskStatus::TimedOut);
    assert_eq!(home.output(&task), "begun\n");
    assert!(Duration::from_millis(status.duration_ms) >= Duration::from_secs(5));
}
