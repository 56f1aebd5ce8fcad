//! The processes of a command: which it sees, what becomes of those that it leaves behind, and that all end with it.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use longhaul_keeper::{Bounds, Found, ProcessNamespace, Spec, Task};
use longhaul_protocol::TaskStatus;
use rustix::process::{Pid, Signal, kill_process};

use crate::home::{Home, after_all, ended, keeper_of, until};
use crate::part::{self, Part};

/// A home whose commands have processes of their own, or none of that.
struct Place {
    home: Home,
    processes: ProcessNamespace,
    /// What the processes that a test looks for are called.
    mark: String,
}

impl Place {
    fn new(processes: ProcessNamespace) -> Self {
        let home = Home::new();
        let name = home.folder.parent().unwrap().file_name().unwrap().to_str().unwrap().replace('.', "");
        Self { home, processes, mark: format!("left-{name}") }
    }

    fn start(&self, command: &str) -> Task {
        let bounds = Bounds {
            read: vec!["/".into()],
            write: vec![self.work()],
            devices: vec!["/dev/null".into()],
            processes: self.processes,
            ..Bounds::default()
        };
        let command = format!("MARK={}\n{command}", self.mark);
        let spec = Spec { bounds: Some(bounds), work_dir: self.work(), ..self.home.spec(&command) };
        self.home.tasks.start(&spec).unwrap()
    }

    fn work(&self) -> PathBuf {
        self.home.folder.parent().unwrap().to_owned()
    }

    fn run(&self, command: &str) -> (longhaul_keeper::Status, String) {
        let task = self.start(command);
        (ended(&task), self.home.output(&task))
    }

    /// How many processes have the mark for a name.
    fn marked(&self) -> usize {
        let lines = fs::read_dir("/proc").unwrap().flatten();
        let lines = lines.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        lines.filter(|line| line.starts_with(self.mark.as_bytes())).count()
    }

    fn is_kept(&self, task: &Task) -> bool {
        self.home.tasks.is_kept(task.id()).unwrap()
    }
}

/// The number of the command's process, as its keeper wrote it down.
fn command_of(folder: &Path) -> u32 {
    let file: serde_json::Value = serde_json::from_slice(&fs::read(folder.join("pid")).unwrap()).unwrap();
    u32::try_from(file["pid"].as_u64().unwrap()).unwrap()
}

/// A process in a session of its own that goes on after the command. The command ends when that process has its name: `-z` takes each argument
/// for a line, and none of the shell's own begins with the mark.
const LEAVING: &str = "setsid bash -c \"exec -a $MARK sleep 600\" > /dev/null 2>&1 & \
                       until grep -qz \"^$MARK\" /proc/[0-9]*/cmdline 2> /dev/null; do :; done; echo started";

/// P3
#[test]
fn a_command_sees_its_own_processes_and_no_others() {
    let place = Place::new(ProcessNamespace::Own);
    // Its number says nothing: in the namespace another process may have it.
    let outside = String::from_utf8(fs::read("/proc/self/cmdline").unwrap()).unwrap().replace('\0', " ");

    let (_, output) = place.run(
        "echo $$; for number in $(ls /proc | grep '^[0-9]'); do cat /proc/$number/comm 2> /dev/null; done | sort -u; \
         cat /proc/[0-9]*/cmdline | tr '\\0' ' '",
    );

    assert!(output.starts_with("2\nbash\n"), "{output}");
    assert!(output.contains("longhaul-init") && output.contains("bash -c MARK="), "{output}");
    assert!(!output.contains("longhaul-keeper\n") && !output.contains(&outside), "{output}");
}

/// K8: also for a signal that the first process of a namespace would ignore.
#[test]
fn how_a_command_ended_is_exact_in_a_namespace_of_its_own() {
    let place = Place::new(ProcessNamespace::Own);
    let end = |command| {
        let (status, _) = place.run(command);
        (status.status, status.exit_code, status.signal)
    };

    assert_eq!(end("true"), (TaskStatus::Completed, Some(0), None));
    assert_eq!(end("exit 7"), (TaskStatus::Failed, Some(7), None));
    assert_eq!(end("kill -TERM $$"), (TaskStatus::Failed, Some(143), Some(15)));
    assert_eq!(end("kill -USR1 $$"), (TaskStatus::Failed, Some(138), Some(10)));
    assert_eq!(end("kill -KILL $$"), (TaskStatus::Failed, Some(137), Some(9)));
}

/// K8: what a command leaves behind goes on, is counted, and is ended with its task.
#[test]
fn what_is_left_behind_goes_on_and_is_ended_with_its_task() {
    let place = Place::new(ProcessNamespace::Own);
    let task = place.start(LEAVING);
    let status = ended(&task);

    let left = place.home.tasks.left_behind(task.id()).unwrap().unwrap();
    let listed = place.home.tasks.all_left_behind();
    let found = place.home.tasks.find(task.id()).unwrap();
    assert_eq!((status.status, place.marked(), left.processes), (TaskStatus::Completed, 1, 1));
    assert_eq!((left.started.task_id, &listed[..]), (task.id(), &[left.clone()][..]));
    assert!(matches!(found, Found::Ended(_)));

    place.home.tasks.kill(task.id()).unwrap();

    assert_eq!(place.marked(), 0);
    assert_eq!(place.home.tasks.left_behind(task.id()).unwrap(), None);
    assert_eq!(task.status().unwrap(), Some(status));
}

/// K8: the number of a command that was reaped, and so of its group, can be given to another process at any time.
#[test]
fn killing_what_is_left_behind_spares_a_stranger_with_the_number_of_the_command() {
    let folder = tempfile::tempdir().unwrap();

    let mut part = Part::start_in_pid_namespace("processes::kills_beside_a_stranger", folder.path());

    assert_eq!(part.hear("marked"), "0");
    assert_eq!(part.hear("stranger"), "exit status: 7");
}

#[test]
#[ignore = "a part that other tests play in another process"]
fn kills_beside_a_stranger() {
    part::home();
    let place = Place::new(ProcessNamespace::Own);
    let task = place.start(LEAVING);
    ended(&task);
    let number = command_of(&place.home.task_folder(task.id()));
    fs::write("/proc/sys/kernel/ns_last_pid", (number - 1).to_string()).unwrap();
    let mut stranger = Command::new("sh")
        .args(["-c", "read line; exit 7"])
        .process_group(0)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    assert_eq!(stranger.id(), number);

    place.home.tasks.kill(task.id()).unwrap();

    println!("marked {}", place.marked());
    drop(stranger.stdin.take());
    println!("stranger {}", stranger.wait().unwrap());
}

/// K8: without a namespace of its own, what a command leaves behind is on its own, and its keeper goes.
#[test]
fn without_a_namespace_what_is_left_behind_is_on_its_own() {
    let place = Place::new(ProcessNamespace::Shared);
    let task =
        place.start("(until [ -e go ]; do sleep 0.01; done; echo > gone) > /dev/null 2>&1 & echo started");
    ended(&task);

    until("the keeper's end", || (!place.is_kept(&task)).then_some(()));
    assert_eq!(place.home.tasks.left_behind(task.id()).unwrap(), None);
    fs::write(place.work().join("go"), "").unwrap();
    until("the end of what was left behind", || fs::read(place.work().join("gone")).ok());
}

/// P3: it has the rights that the command gave up.
#[test]
fn a_command_can_not_look_into_the_first_process() {
    let place = Place::new(ProcessNamespace::Own);

    let (_, output) = place.run(
        "for what in cwd/ root/; do ls /proc/1/$what > /dev/null && echo reached $what; done; \
         for what in environ maps mem; do head -c 1 /proc/1/$what > /dev/null && echo reached $what; done; \
         head -c 1 /proc/self/environ > /dev/null && echo own",
    );

    assert!(output.lines().any(|line| line == "own") && !output.contains("reached"), "{output}");
}

/// K8: a connection to the keeper of a command that has ended closes at once, also while it keeps what was left behind.
#[test]
fn the_end_of_a_command_is_told_while_something_is_left_behind() {
    let place = Place::new(ProcessNamespace::Own);
    let task = place.start(LEAVING);
    ended(&task);

    let again = ended(&task);
    let (_, following) = task.follow().unwrap();

    assert_eq!(again.status, TaskStatus::Completed);
    assert_eq!(following.printed(), again.printed);
}

/// K8
#[test]
fn a_keeper_goes_when_nothing_is_left() {
    let place = Place::new(ProcessNamespace::Own);
    let plain = place.start("true");
    let leaving = place.start(
        "(until [ -e ask ]; do sleep 0.01; done; echo > here; until [ -e go ]; do sleep 0.01; done) \
         > /dev/null 2>&1 & echo started",
    );
    ended(&plain);
    ended(&leaving);

    until("its end", || (!place.is_kept(&plain)).then_some(()));
    fs::write(place.work().join("ask"), "").unwrap();
    until("its answer", || fs::read(place.work().join("here")).ok());
    assert!(place.is_kept(&leaving));
    fs::write(place.work().join("go"), "").unwrap();
    until("its end", || (!place.is_kept(&leaving)).then_some(()));
}

/// K8: a process that the command made its sibling (`CLONE_PARENT`) is the keeper's child, so the first process of the namespace does not hear
/// of its end from the system.
#[test]
fn a_keeper_goes_when_a_sibling_of_the_command_ends_last() {
    let place = Place::new(ProcessNamespace::Own);
    let clone_parent = libc::CLONE_PARENT | libc::SIGCHLD;
    let sibling = format!(
        "exec perl -e 'my $number = syscall({}, {clone_parent}, 0, 0, 0, 0); die $! if $number < 0; \
         if ($number == 0) {{ open(STDOUT, q(>), q(here)); select(undef, undef, undef, 0.01) until -e q(go) }}'",
        libc::SYS_clone
    );
    let task = place.start(&sibling);
    let status = ended(&task);
    until("the sibling", || place.work().join("here").exists().then_some(()));

    assert_eq!((status.status, place.is_kept(&task)), (TaskStatus::Completed, true));
    fs::write(place.work().join("go"), "").unwrap();

    until("its end", || (!place.is_kept(&task)).then_some(()));
}

/// K9: nothing of a command outlives its keeper in a namespace of its own, not even what has a session and an environment of its own.
#[test]
fn what_is_left_behind_in_a_namespace_ends_with_the_keeper() {
    let place = Place::new(ProcessNamespace::Own);
    let left = place.start(&LEAVING.replace("setsid", "env -i PATH=$PATH setsid"));
    ended(&left);
    let runs = place.start("exec -a $MARK sleep 600");
    until("both", || (place.marked() == 2).then_some(()));

    for task in [&left, &runs] {
        let keeper = keeper_of(&place.home.task_folder(task.id()));
        kill_process(Pid::from_raw(keeper).unwrap(), Signal::KILL).unwrap();
    }

    until("the end of both", || (place.marked() == 0).then_some(()));
    assert!(matches!(after_all(&place.home.tasks, left.id()), Found::Ended(_)));
    assert!(matches!(after_all(&place.home.tasks, runs.id()), Found::Lost));
}

/// K8
#[test]
fn killing_ends_everything_in_a_namespace() {
    let place = Place::new(ProcessNamespace::Own);
    let command = "setsid bash -c \"trap '' TERM; exec -a $MARK sleep 600\" & trap '' TERM; \
                   for i in 1 2 3; do (trap '' TERM; exec -a $MARK sleep 600) & done; wait";
    let task = place.start(command);
    until("all of them", || (place.marked() == 4).then_some(()));

    task.kill().unwrap();

    assert_eq!(place.marked(), 0);
    assert_eq!(task.status().unwrap().unwrap().status, TaskStatus::Killed);
    until("its end", || (!place.is_kept(&task)).then_some(()));
}

/// K16
#[test]
fn a_task_does_not_expire_as_long_as_it_has_left_something_behind() {
    let place = Place::new(ProcessNamespace::Own);
    let task = place.start(LEAVING);
    ended(&task);

    let with_some = place.home.tasks.expire(Duration::ZERO, |_| false).unwrap();
    place.home.tasks.kill(task.id()).unwrap();
    until("its end", || (!place.is_kept(&task)).then_some(()));
    let with_none = place.home.tasks.expire(Duration::ZERO, |_| false).unwrap();

    assert_eq!((with_some, with_none), (vec![], vec![task.id()]));
}
