//! `exec` with real commands under real keepers, called as the runtime calls it.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul_keeper::{Launcher, Tasks};
use longhaul_protocol::{CommandReport, Effect, SessionId, TaskId, ToolStarted};
use longhaul_tools::{
    Confinement, ExecSettings, ExecTool, FileError, OutputLimit, ResumedCall, RunCall, Sandbox, SandboxMode,
    Scope, ScopeConfig, StopHandle, StopSignal, Tool, ToolInvocation, ToolOutcome, command_environment,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Less than what a keeper has for its start, so a call that returns before that did not wait for it.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

#[test]
#[ignore = "a part that other tests play in another process"]
fn plays_the_keeper() {
    longhaul_keeper::keep_here();
}

/// A home, a work folder, and the tool.
struct Workplace {
    work: PathBuf,
    tasks: PathBuf,
    scope: Arc<Scope>,
    tool: ExecTool,
    _folder: TempDir,
}

impl Workplace {
    fn new() -> Self {
        Self::keeping(64 << 20)
    }

    fn keeping(output_cap: u64) -> Self {
        let keeper = ["plays_the_keeper", "--exact", "--ignored", "--nocapture", "--test-threads=1"];
        Self::with(output_cap, Launcher::new(std::env::current_exe().unwrap(), keeper))
    }

    fn with(output_cap: u64, launcher: Launcher) -> Self {
        Self::in_mode(SandboxMode::On, output_cap, launcher)
    }

    fn in_mode(mode: SandboxMode, output_cap: u64, launcher: Launcher) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["work/inner", "outside", "home/run"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::write(root.join("home/run/token"), "open sesame").unwrap();
        let environment = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
        // The work folder is the user's home, so that its files can be keys.
        let user = BTreeMap::from([("HOME".to_owned(), root.join("work").to_str().unwrap().to_owned())]);
        let scope = Scope::for_user(&root.join("work"), &ScopeConfig::default(), &root.join("home"), &user);
        let scope = Arc::new(scope);
        let settings = ExecSettings {
            tasks: Arc::new(Tasks::at(&root.join("home/tasks"), launcher).unwrap()),
            scope: Arc::clone(&scope),
            sandbox: Sandbox::new(mode, &root.join("home"), &environment),
            environment,
            output_cap,
            token_file: "../../run/token".to_owned(),
            timeout: Duration::from_secs(600),
            max_tasks: 16,
            redact: Arc::new(str::to_owned),
        };
        let (work, tasks) = (root.join("work"), root.join("home/tasks"));
        Self { work, tasks, scope, tool: ExecTool::new(settings), _folder: folder }
    }

    async fn run(&self, arguments: Value) -> ToolOutcome {
        self.run_call(&call(&arguments)).await
    }

    async fn run_call(&self, call: &ToolInvocation) -> ToolOutcome {
        let (_stopper, stop) = StopSignal::pair();
        match self.tool.prepare(call).await {
            Ok(prepared) => in_time((prepared.run)(stop)).await,
            Err(refused) => refused,
        }
    }

    /// Starts a call and lets it run until its command has printed or done something.
    async fn begin(&self, call: &ToolInvocation) -> (StopHandle, tokio::task::JoinHandle<ToolOutcome>) {
        let (stopper, stop) = StopSignal::pair();
        let run = self.tool.prepare(call).await.unwrap().run;
        (stopper, tokio::spawn(run(stop)))
    }

    async fn resume(&self, call: &ToolInvocation) -> ResumedCall {
        let started = ToolStarted {
            call: call.id,
            name: "exec".to_owned(),
            arguments: call.arguments.clone(),
            effect: Effect::Command,
            write: None,
            writes: vec![],
            kept_in: None,
            remote_task: None,
            child: None,
            changes_nothing: false,
        };
        self.tool.resume(call, &started).await
    }

    async fn until_there(&self, name: &str) {
        let file = self.work.join(name);
        until(|| file.exists()).await;
    }

    fn task_folder(&self, call: &ToolInvocation) -> PathBuf {
        self.tasks.join(TaskId::from(call.id).to_string())
    }
}

fn call(arguments: &Value) -> ToolInvocation {
    ToolInvocation::new(SessionId::generate(), arguments.to_string())
}

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TEST_TIMEOUT, future).await.expect("it ends in time")
}

async fn until(mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < TEST_TIMEOUT, "it did not come");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The fields of a result, without the one that is different each time.
fn fields(finished: &ToolOutcome) -> Value {
    assert!(!finished.is_error, "{}", finished.content);
    let mut fields = CommandReport::parse_to_json(&finished.content).unwrap();
    fields.as_object_mut().unwrap().remove("duration_ms");
    fields
}

fn running(resumed: ResumedCall) -> RunCall {
    match resumed {
        ResumedCall::Running { run, .. } => run,
        ResumedCall::Finished(finished) => panic!("it ended: {finished:?}"),
        ResumedCall::RunAgain => panic!("it was not started"),
        ResumedCall::Unknown(why) => panic!("{why}"),
    }
}

/// K1
#[tokio::test]
async fn a_result_has_a_head_with_its_fields_in_order_and_the_output() {
    let place = Workplace::new();

    let finished = place.run(json!({"command": "echo hello; echo oops >&2"})).await;

    assert_eq!(fields(&finished), json!({"status": "completed", "output": "hello\noops\n", "exit_code": 0}));
    let places = ["status: completed\n", "exit_code: 0\n", "duration_ms: ", "\n\nhello\noops\n"]
        .map(|name| finished.content.find(name));
    assert!(places.is_sorted() && places[0].is_some(), "{}", finished.content);
    assert_eq!(finished.whole, None);
}

/// K1
#[tokio::test]
async fn a_non_zero_exit_is_a_result_and_not_an_error() {
    let place = Workplace::new();

    let finished = place.run(json!({"command": "echo no; exit 3"})).await;

    assert_eq!(fields(&finished), json!({"status": "failed", "output": "no\n", "exit_code": 3}));
}

/// K1
#[tokio::test]
async fn a_call_that_does_not_fit_is_refused_before_anything_happens() {
    let place = Workplace::new();
    let table = [
        (json!({}), "`command` is missing"),
        (json!({"command": " "}), "`command` is empty"),
        (json!({"command": "a\u{0}b"}), "zero byte"),
        (json!({"command": "true", "timeout": 0}), "at least 1"),
        (json!({"command": "true", "max_runtime": 0}), "at least 1"),
        (json!({"command": "true", "shell": "fish"}), "no field `shell`"),
        (json!({"command": "true", "work_dir": "nowhere"}), "nowhere does not exist"),
        (json!({"command": "true", "work_dir": "../outside"}), "outside of what is allowed"),
        (json!({"command": "true", "work_dir": "../home"}), "denied"),
    ];

    for (arguments, expected) in table {
        let finished = place.run(arguments.clone()).await;

        assert!(
            finished.is_error && finished.content.contains(expected),
            "{arguments}: {}",
            finished.content
        );
    }
    assert_eq!(task_folders(&place.tasks), Vec::<PathBuf>::new());
}

/// K2
#[tokio::test]
async fn a_timeout_that_is_too_long_is_clamped_and_said() {
    let place = Workplace::new();

    let finished = place.run(json!({"command": "true", "timeout": 7000, "run_in_background": false})).await;

    let expected = json!({"status": "completed", "output": "", "exit_code": 0, "message": "`timeout` was taken as 600, not 7000"});
    assert_eq!(fields(&finished), expected);
}

/// K4
#[tokio::test]
async fn a_long_sleep_in_the_foreground_is_refused_and_one_in_the_background_runs() {
    let place = Workplace::new();

    let refused = place.run(json!({"command": "touch begun; sleep 5"})).await;
    let run = place.run(json!({"command": "sleep 5 > log & echo sleep 5"})).await;

    assert!(refused.is_error, "{}", refused.content);
    assert!(refused.content.starts_with("exec was not run: `sleep 5` would wait"), "{}", refused.content);
    assert!(!place.work.join("begun").exists());
    assert_eq!(fields(&run)["output"], "sleep 5\n");
}

/// K3
#[tokio::test]
async fn a_command_that_runs_longer_than_it_may_is_ended() {
    let place = Workplace::new();

    let finished = place.run(json!({"command": "echo begun; sleep 600 & wait", "max_runtime": 5})).await;

    let fields = fields(&finished);
    assert_eq!((&fields["status"], &fields["output"]), (&json!("timed_out"), &json!("begun\n")));
    assert_eq!(fields["message"], "it was ended because it ran longer than `max_runtime` (5 s)");
}

#[tokio::test]
async fn a_command_runs_in_the_work_folder_or_in_one_below() {
    let place = Workplace::new();

    let here = place.run(json!({"command": "pwd"})).await;
    let below = place.run(json!({"command": "pwd", "work_dir": "inner"})).await;

    assert_eq!(fields(&here)["output"], format!("{}\n", place.work.display()));
    assert_eq!(fields(&below)["output"], format!("{}/inner\n", place.work.display()));
}

/// K1: a work folder that goes between the check and the start.
#[tokio::test]
async fn a_command_that_can_not_start_is_an_error_also_when_it_is_asked_for_later() {
    let place = Workplace::new();
    let call = call(&json!({"command": "true", "work_dir": "inner"}));
    let (_stopper, stop) = StopSignal::pair();
    let prepared = place.tool.prepare(&call).await.unwrap();
    fs::remove_dir(place.work.join("inner")).unwrap();

    let finished = in_time((prepared.run)(stop)).await;
    let resumed = place.resume(&call).await;

    assert!(finished.is_error && finished.content.contains("inner does not exist"), "{}", finished.content);
    assert!(matches!(resumed, ResumedCall::Finished(again) if again == finished));
}

/// K13
#[tokio::test]
async fn colours_are_taken_out_and_what_is_no_text_is_replaced() {
    let place = Workplace::new();

    let finished = place.run(json!({"command": r"printf '\e[31mred\e[0m \xff\n10%%\r100%%\n'"})).await;

    assert_eq!(fields(&finished)["output"], "red \u{fffd}\n100%\n");
}

/// C8
#[tokio::test]
async fn a_long_output_is_shown_with_head_and_tail_and_kept_whole() {
    let place = Workplace::new();
    let output_limit = OutputLimit { lines: 100, bytes: 1000 };
    let call = ToolInvocation { output_limit, ..call(&json!({"command": "seq 10000"})) };

    let finished = place.run_call(&call).await;

    let output = fields(&finished)["output"].as_str().unwrap().to_owned();
    assert!(
        output.len() <= 1000 && output.starts_with("1\n2\n") && output.ends_with("9999\n10000\n"),
        "{output}"
    );
    assert!(output.contains(&format!("read_file with the path \"output:{}\"", call.id)), "{output}");
    let whole: String = (1..=10_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(finished.whole, Some(whole.into_bytes()));
    assert_eq!(finished.lines, Some(10_000));
}

/// C8, K10
#[tokio::test]
async fn of_a_very_long_output_one_mebibyte_is_kept() {
    let place = Workplace::new();

    let finished = place.run(json!({"command": "seq -f '%015.0f' 0 655359"})).await;

    assert_eq!(finished.lines, Some(655_360), "also those that are not kept are counted");
    let whole = String::from_utf8(finished.whole.unwrap()).unwrap();
    assert!(whole.len() <= 1 << 20 && whole.len() > 1_000_000, "{}", whole.len());
    assert!(whole.starts_with("000000000000000\n") && whole.ends_with("000000000655359\n"));
    let odd: Vec<&str> = whole.lines().filter(|line| line.len() != 15).collect();
    assert_eq!(odd, ["[… 9437312 bytes were not kept …]"]);
    assert!(finished.content.len() <= 32 << 10, "{}", finished.content.len());
}

/// C8, K10: the keeper may keep less than what could be shown.
#[tokio::test]
async fn of_a_long_output_that_was_hardly_kept_head_and_tail_are_shown() {
    for output_cap in [0, 1, 4096, 64 << 10] {
        let place = Workplace::keeping(output_cap);

        let finished = place.run(json!({"command": "seq -f '%015.0f' 0 299999"})).await;

        assert_eq!(finished.lines, None, "lines that are gone can't be counted");
        let output = fields(&finished)["output"].as_str().unwrap().to_owned();
        assert!(output.starts_with("000000000000000\n") && output.ends_with("000000000299999\n"), "{output}");
        let odd: Vec<&str> = output.lines().filter(|line| line.len() != 15).collect();
        assert!(odd.len() == 1 && !odd[0].contains(" lines"), "{odd:?}");
    }
}

/// K1, C8: nothing is escaped, so what fits as it was printed is shown as it was printed.
#[tokio::test]
async fn an_output_is_shown_as_it_was_printed() {
    let place = Workplace::new();

    for (what, shown) in [("\\\\", '\\'), ("\"", '"'), ("x", 'x')] {
        let command = format!("head -c 30000 /dev/zero | tr '\\0' '{what}'");

        let finished = place.run(json!({"command": command})).await;

        assert_eq!(fields(&finished)["output"], shown.to_string().repeat(30_000));
        assert_eq!(finished.whole, None);
    }
}

/// K10: what the keeper itself has dropped is said, too.
#[tokio::test]
async fn an_output_of_which_not_all_was_kept_says_so() {
    let place = Workplace::keeping(8192);

    let finished = place.run(json!({"command": "seq 10000"})).await;

    let output = fields(&finished)["output"].as_str().unwrap().to_owned();
    assert!(output.contains("\n[… 40702 bytes were not kept …]\n"), "{output}");
    assert!(output.starts_with("1\n2\n") && output.ends_with("10000\n"));
}

/// K14
#[tokio::test]
async fn a_command_that_is_stopped_is_killed_and_its_output_kept() {
    let place = Workplace::new();
    let call = call(&json!({"command": "echo begun; touch begun; sleep 600 & wait"}));
    let (stopper, result) = place.begin(&call).await;
    place.until_there("begun").await;

    stopper.stop();
    let finished = in_time(result).await.unwrap();

    let expected =
        json!({"status": "killed", "output": "begun\n", "exit_code": 143, "message": "it was stopped"});
    assert_eq!(fields(&finished), expected);
    assert!(place.task_folder(&call).join("status.json").exists());
}

/// K9: a call that stops waiting leaves the command to its keeper.
#[tokio::test]
async fn a_command_goes_on_when_nobody_waits_and_is_found_running() {
    let place = Workplace::new();
    let call = call(
        &json!({"command": "echo started >> starts; echo one; while [ ! -e go ]; do sleep 0.01; done; echo two; exit 4"}),
    );
    let (_stopper, result) = place.begin(&call).await;
    place.until_there("starts").await;

    result.abort();
    assert!(result.await.unwrap_err().is_cancelled());
    let run = running(place.resume(&call).await);
    fs::write(place.work.join("go"), "").unwrap();
    let (_stopper, stop) = StopSignal::pair();
    let finished = in_time(run(stop)).await;

    assert_eq!(fields(&finished), json!({"status": "failed", "output": "one\ntwo\n", "exit_code": 4}));
    assert_eq!(fs::read_to_string(place.work.join("starts")).unwrap(), "started\n");
}

/// K9, K14
#[tokio::test]
async fn a_command_that_was_found_running_can_be_stopped() {
    let place = Workplace::new();
    let call = call(&json!({"command": "touch begun; sleep 600 & wait"}));
    let (_stopper, result) = place.begin(&call).await;
    place.until_there("begun").await;
    result.abort();

    let run = running(place.resume(&call).await);
    let (stopper, stop) = StopSignal::pair();
    stopper.stop();
    let finished = in_time(run(stop)).await;

    assert_eq!(fields(&finished)["status"], "killed");
}

/// K9
#[tokio::test]
async fn a_command_that_ended_while_nobody_waited_has_the_same_result() {
    let place = Workplace::new();
    let call = call(&json!({"command": "seq 3000; exit 1", "timeout": 601}));
    let finished = place.run_call(&call).await;

    let resumed = place.resume(&call).await;

    assert!(finished.whole.is_some());
    assert!(matches!(resumed, ResumedCall::Finished(again) if again == finished));
}

/// K9
#[tokio::test]
async fn what_became_of_a_command_after_a_crash() {
    let place = Workplace::new();
    let crashed = |files: &[&str]| {
        let call = call(&json!({"command": "touch ran"}));
        fs::create_dir(place.task_folder(&call)).unwrap();
        for name in files {
            fs::write(place.task_folder(&call).join(name), "begun\n").unwrap();
        }
        call
    };
    let not_started = call(&json!({"command": "touch ran"}));
    let before = crashed(&["spec.json"]);
    let while_starting = crashed(&["spec.json", "spawning"]);
    let while_running = crashed(&["spec.json", "spawning", "pid", "output.head"]);
    let nonsense = ToolInvocation { arguments: "{".to_owned(), ..call(&json!({})) };

    assert!(matches!(place.resume(&not_started).await, ResumedCall::RunAgain));
    assert!(matches!(place.resume(&before).await, ResumedCall::RunAgain));
    assert!(
        matches!(place.resume(&while_starting).await, ResumedCall::Unknown(why) if why.contains("may or may not have started"))
    );
    assert!(matches!(place.resume(&nonsense).await, ResumedCall::Unknown(_)));
    let ResumedCall::Finished(lost) = place.resume(&while_running).await else { panic!("it is lost") };
    assert_eq!(fields(&lost)["status"], "lost");
    assert_eq!(fields(&lost)["output"], "begun\n");
    assert!(!place.work.join("ran").exists());
}

/// K9, K14: what is needed to talk to a keeper may be gone.
#[tokio::test]
async fn a_command_is_waited_for_and_can_be_stopped_also_without_token_socket_or_spec() {
    for missing in ["../../run/token", "socket", "spec.json"] {
        let place = Workplace::new();
        let call = call(&json!({"command": "touch begun; sleep 600 & wait"}));
        let (_stopper, result) = place.begin(&call).await;
        place.until_there("begun").await;
        result.abort();
        let _ = result.await;
        fs::remove_file(place.task_folder(&call).join(missing)).unwrap();

        let run = running(place.resume(&call).await);
        let (stopper, stop) = StopSignal::pair();
        stopper.stop();
        let finished = in_time(run(stop)).await;

        assert_eq!(fields(&finished)["status"], "killed", "{missing}");
    }
}

/// K9: trouble that passes is no end.
#[tokio::test]
async fn a_command_whose_folder_can_not_be_opened_for_a_moment_is_waited_for() {
    let place = Workplace::new();
    let call = call(&json!({"command": "touch begun; while [ ! -e go ]; do sleep 0.01; done; echo done"}));
    let (_stopper, result) = place.begin(&call).await;
    place.until_there("begun").await;
    result.abort();
    let (folder, aside) = (place.task_folder(&call), place.tasks.join("aside"));
    fs::rename(&folder, &aside).unwrap();
    fs::write(&folder, "in the way").unwrap();

    let run = running(place.resume(&call).await);
    let (_stopper, stop) = StopSignal::pair();
    let result = tokio::spawn(run(stop));
    fs::remove_file(&folder).unwrap();
    fs::rename(&aside, &folder).unwrap();
    fs::write(place.work.join("go"), "").unwrap();

    let finished = in_time(result).await.unwrap();
    assert_eq!(fields(&finished), json!({"status": "completed", "output": "done\n", "exit_code": 0}));
}

/// K14: also a command that has not begun, because its keeper is slow.
#[tokio::test]
async fn a_command_that_is_stopped_before_it_began_never_begins() {
    let late = format!(
        "PATH=/usr/bin:/bin; touch ../../waiting; while [ ! -e ../../gate ]; do sleep 0.01; done; touch ../../passed; \
         exec {} plays_the_keeper --exact --ignored --nocapture --test-threads=1",
        std::env::current_exe().unwrap().display()
    );
    // A keeper that is slow could not be asked in time what can be enforced.
    let launcher = Launcher::new("/bin/sh", ["-c".to_owned(), late]);
    let place = Workplace::in_mode(SandboxMode::Off, 1 << 20, launcher);
    let home = place.tasks.parent().unwrap().to_owned();
    let call = call(&json!({"command": "touch ran"}));
    let (stopper, result) = place.begin(&call).await;
    until(|| home.join("waiting").exists()).await;

    stopper.stop();
    let finished = in_time(result).await.unwrap();

    assert!(
        finished.is_error && finished.content.contains("before the command began"),
        "{}",
        finished.content
    );
    fs::write(home.join("gate"), "").unwrap();
    until(|| home.join("passed").exists()).await;
    let [aside] = task_folders(&place.tasks).try_into().unwrap();
    until(|| nobody_is_in(&aside)).await;
    assert!(!place.work.join("ran").exists());
}

/// P1: the first command of a session could move a key before anything has looked at the protected files.
#[tokio::test]
async fn a_key_stays_protected_after_a_command_without_a_sandbox_moved_it() {
    let keeper = ["plays_the_keeper", "--exact", "--ignored", "--nocapture", "--test-threads=1"];
    let launcher = Launcher::new(std::env::current_exe().unwrap(), keeper);
    let place = Workplace::in_mode(SandboxMode::Off, 1 << 20, launcher);
    fs::write(place.work.join(".netrc"), "key").unwrap();

    let moved = place.run(json!({"command": "mv .netrc innocent"})).await;

    assert!(!moved.is_error, "{}", moved.content);
    let read = place.scope.read_in_work_dir("innocent", 100);
    assert!(matches!(read, Err(FileError::Protected { .. })), "{read:?}");
}

fn task_folders(tasks: &std::path::Path) -> Vec<PathBuf> {
    fs::read_dir(tasks).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect()
}

fn nobody_is_in(folder: &std::path::Path) -> bool {
    let mut processes = fs::read_dir("/proc").unwrap().flatten();
    processes.all(|process| fs::read_link(process.path().join("cwd")).map_or(true, |cwd| cwd != folder))
}

/// K17: what it leaves out is tested where it is made.
#[test]
fn the_environment_of_commands_is_that_of_this_process() {
    let visible = command_environment(&["CARGO_PKG_NAME".to_owned()]);

    assert_eq!(visible.get("PATH"), std::env::var("PATH").ok().as_ref());
    assert!(std::env::var_os("CARGO_PKG_NAME").is_some() && !visible.contains_key("CARGO_PKG_NAME"));
}

/// K17, P3: a second run outside has the same environment, no bounds and a folder of its own, and starts once.
#[tokio::test]
async fn a_second_run_outside_the_sandbox_starts_once_without_bounds_and_without_keys() {
    let place = Workplace::new();
    let first = call(&json!({"command": "echo run >> log.txt; env; ls / > /dev/null"}));
    let second = ToolInvocation { confinement: Confinement::Outside, ..first.clone() };

    let refused = place.run_call(&first).await;
    let finished = place.run_call(&second).await;
    let again = place.resume(&second).await;

    assert!(refused.refusal.is_some() && finished.refusal.is_none(), "{refused:?}");
    assert!(finished.content.contains("it ran twice"), "{}", finished.content);
    let mut names = finished.content.lines().filter_map(|line| Some(line.split_once('=')?.0));
    let allowed = ["PATH", "PWD", "SHLVL", "_", "OLDPWD", "LONGHAUL_TASK"];
    assert!(names.all(|name| allowed.contains(&name)), "{}", finished.content);
    assert!(matches!(again, ResumedCall::Finished(ended) if ended.content == finished.content));
    assert_eq!(fs::read_to_string(place.work.join("log.txt")).unwrap(), "run\nrun\n");
    let spec = place.tasks.join(TaskId::outside_sandbox(first.id).to_string()).join("spec.json");
    let spec: Value = serde_json::from_slice(&fs::read(spec).unwrap()).unwrap();
    assert_eq!(spec["bounds"], Value::Null);
}
