//! Bounds, as the keeper carries them out: mechanically, and not at all where it can't.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use longhaul_keeper::{
    Bounds, Error, Network, Placeholder, Private, ProcessNamespace, Spec, UnixSockets, what_can_be_enforced,
};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::home::{Home, after_all, ended, is_alive, keeper_of, number_in, until};
use crate::part::{self, Part};

/// Commands that start while their work folder is swapped for a link and back.
const SWAP_ROUNDS: usize = 20;

/// What every command needs, and a folder that it may write.
fn bounds(home: &Home, work: &Path) -> Bounds {
    let system = ["/usr", "/etc", "/proc", "/opt", "/bin", "/lib", "/lib64"].map(PathBuf::from);
    Bounds {
        read: system.into_iter().filter_map(|path| path.canonicalize().ok()).collect(),
        write: vec![work.to_owned()],
        devices: vec!["/dev/null".into()],
        private: vec![Private { at: "/tmp".into(), kept_in: Some(home.folder.join("tmp/one/tmp")) }],
        hidden: vec![home.folder.clone()],
        kept: vec![work.to_owned()],
        ..Bounds::default()
    }
}

struct Bounded {
    home: Home,
    work: PathBuf,
}

impl Bounded {
    fn new() -> Self {
        let home = Home::new();
        let work = home.folder.parent().unwrap().join("work");
        fs::create_dir(&work).unwrap();
        Self { home, work }
    }

    fn spec(&self, command: &str) -> Spec {
        let bounds = Some(bounds(&self.home, &self.work));
        Spec { work_dir: self.work.clone(), bounds, ..self.home.spec(command) }
    }

    fn run(&self, spec: &Spec) -> String {
        let task = self.home.tasks.start(spec).unwrap();
        ended(&task);
        self.home.output(&task)
    }
}

#[test]
fn everything_can_be_enforced_where_these_tests_run() {
    let found = what_can_be_enforced(&part::keeper()).unwrap();

    assert_eq!(found.missing(Network::Closed, UnixSockets::Refused), None);
    assert_eq!(found.no_filter, None);
    assert_eq!(found.no_process_namespace, None);
}

/// P3: the limits of a user namespace are set in it alone.
#[test]
fn namespaces_that_can_not_be_made_are_named() {
    let folder = tempfile::tempdir().unwrap();

    let mut part = Part::start_in_pid_namespace("bounds::probes_without_some_namespaces", folder.path());

    let full = "No space left on device (os error 28)";
    let network = format!("making mount, IPC and network namespaces: {full}");
    let processes = format!("making mount, IPC and PID namespaces: {full}");
    assert_eq!(part.hear("mounts"), "None");
    assert_eq!(part.hear("network"), format!("{:?}", Some(network)));
    assert_eq!(part.hear("processes"), format!("{:?}", Some(processes)));
    assert_eq!(part.hear("sees"), "Shared");
}

#[test]
#[ignore = "a part that other tests play in another process"]
fn probes_without_some_namespaces() {
    part::home();
    for kind in ["net", "pid"] {
        fs::write(format!("/proc/sys/user/max_{kind}_namespaces"), "0").unwrap();
    }

    let found = what_can_be_enforced(&part::keeper()).unwrap();

    println!("mounts {:?}", found.no_namespaces);
    println!("network {:?}", found.no_network_namespace);
    println!("processes {:?}", found.no_process_namespace);
    println!("sees {:?}", found.processes());
}

/// P3
#[test]
fn a_command_within_bounds_writes_its_folder_and_nothing_else() {
    let bounded = Bounded::new();
    let outside = bounded.home.folder.parent().unwrap().join("outside");
    fs::write(&outside, "kept").unwrap();

    let command = format!("echo inside > file; cat file; echo x > {0}; cat {0} 2>&1", outside.display());
    let output = bounded.run(&bounded.spec(&command));

    assert!(output.starts_with("inside\n"), "{output}");
    assert_eq!(fs::read_to_string(bounded.work.join("file")).unwrap(), "inside\n");
    assert_eq!(fs::read_to_string(outside).unwrap(), "kept");
}

/// P3
#[test]
fn a_private_folder_is_the_same_for_the_next_command_and_nobody_elses() {
    let bounded = Bounded::new();
    let name = format!("/tmp/longhaul-test-{}", std::process::id());

    bounded.run(&bounded.spec(&format!("echo here > {name}")));
    let output = bounded.run(&bounded.spec(&format!("cat {name}")));

    assert_eq!(output, "here\n");
    assert!(!Path::new(&name).exists());
}

/// P3: a later command does not follow what an earlier one left in the way of a mount.
#[test]
fn a_link_that_a_command_left_in_the_way_leads_no_mount_elsewhere() {
    let bounded = Bounded::new();
    let parent = bounded.work.parent().unwrap().to_owned();
    let outside = tempfile::tempdir_in("/dev/shm").unwrap();
    fs::create_dir(outside.path().join("work")).unwrap();

    let aside = format!("mv {0} {0}.aside && ln -s {1} {0}", parent.display(), outside.path().display());
    bounded.run(&bounded.spec(&aside));
    let output = bounded.run(&bounded.spec("touch file; pwd -P"));

    assert_eq!(output.trim(), bounded.work.to_str().unwrap());
    assert!(bounded.work.join("file").exists());
    assert!(!outside.path().join("work/file").exists());
}

/// P3
#[test]
fn bounds_that_can_not_be_set_start_nothing() {
    let bounded = Bounded::new();
    let mut spec = bounded.spec("touch ran");
    let file = bounded.work.join("in-the-way");
    fs::write(&file, "").unwrap();
    spec.bounds.as_mut().unwrap().private =
        vec![Private { at: "/tmp".into(), kept_in: Some(file.join("folder")) }];

    let refused = bounded.home.tasks.start(&spec).unwrap_err();

    assert!(matches!(refused, Error::NotStarted { .. }), "{refused}");
    assert!(refused.to_string().contains("can't sandbox it"), "{refused}");
    assert!(!bounded.work.join("ran").exists());
}

/// P3: the reason comes from between fork and exec.
#[test]
fn the_step_that_failed_is_the_reason() {
    let bounded = Bounded::new();
    let mut spec = bounded.spec("touch ran");
    let bounds = spec.bounds.as_mut().unwrap();
    bounds.hidden.push(bounded.work.clone());
    bounds.kept.clear();
    bounds.private.clear();
    spec.work_dir = bounded.work.join("inner");
    fs::create_dir(&spec.work_dir).unwrap();

    let refused = bounded.home.tasks.start(&spec).unwrap_err();

    assert!(refused.to_string().contains("going to the work folder"), "{refused}");
    assert!(!bounded.work.join("ran").exists());
}

/// P3: of a start that fails nothing stays, neither in the user's folders nor as a process.
#[test]
fn a_start_that_fails_frees_the_names_that_were_taken_for_it() {
    let bounded = Bounded::new();
    let taken = bounded.work.join("taken");
    let with_names = |command: &str| {
        let mut spec = bounded.spec(command);
        let bounds = spec.bounds.as_mut().unwrap();
        bounds.placeholders = vec![Placeholder { at: taken.clone(), text: Some("a placeholder".to_owned()) }];
        bounds.read_only = vec![taken.clone()];
        bounds.processes = ProcessNamespace::Own;
        spec
    };
    let mut hidden = with_names("true");
    let bounds = hidden.bounds.as_mut().unwrap();
    bounds.private.clear();
    bounds.kept.clear();
    bounds.hidden.push(bounded.work.clone());
    hidden.work_dir = bounded.work.join("inner");
    fs::create_dir(&hidden.work_dir).unwrap();
    // Longer than the system lets an argument be.
    let long = with_names(&format!("true {}", "x".repeat(200 << 10)));

    for (spec, reason) in [(hidden, "going to the work folder"), (long, "Argument list too long")] {
        let refused = bounded.home.tasks.start(&spec).unwrap_err();

        assert!(refused.to_string().contains(reason), "{refused}");
        assert!(!taken.exists(), "{reason}");
    }
    assert_eq!(bounded.run(&with_names("cat taken")), "a placeholder");
}

/// K8
#[test]
fn killing_ends_everything_also_within_bounds() {
    let bounded = Bounded::new();
    let command = "setsid sh -c 'trap \"\" TERM; echo $$ > escaped; while :; do sleep 600; done' & \
                   trap '' TERM; echo $$ > direct; while :; do sleep 600; done";
    let task = bounded.home.tasks.start(&bounded.spec(command)).unwrap();
    let pids = ["escaped", "direct"].map(|name| number_in(&bounded.work.join(name)));

    task.kill().unwrap();

    assert!(pids.into_iter().all(|pid| !is_alive(pid)));
}

/// K9
#[test]
fn a_command_within_bounds_does_not_outlive_its_keeper() {
    let bounded = Bounded::new();
    let task = bounded.home.tasks.start(&bounded.spec("echo $$ > pid; sleep 600")).unwrap();
    let pid = number_in(&bounded.work.join("pid"));

    let keeper = keeper_of(&bounded.home.task_folder(task.id()));
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(keeper).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    after_all(&bounded.home.tasks, task.id());

    until("its end", || (!is_alive(pid)).then_some(()));
}

/// P3
#[test]
fn no_mount_of_a_command_shows_outside_of_it() {
    let bounded = Bounded::new();
    let before = fs::read_to_string("/proc/self/mountinfo").unwrap();

    let task = bounded.home.tasks.start(&bounded.spec("touch ready; sleep 600")).unwrap();
    until("its start", || bounded.work.join("ready").exists().then_some(()));
    let during = fs::read_to_string("/proc/self/mountinfo").unwrap();
    task.kill().unwrap();

    let ours = |table: &str| table.lines().filter(|line| line.contains("longhaul")).count();
    assert_eq!(ours(&during), ours(&before));
    let home = bounded.home.folder.to_str().unwrap();
    assert!(!during.contains(home) && !during.contains(bounded.work.to_str().unwrap()));
}

/// P3
#[test]
fn a_closed_network_has_a_loopback_and_nothing_else() {
    let bounded = Bounded::new();
    let mut spec = bounded.spec("cut -d: -f1 /proc/net/dev | tail -n +3; cat /proc/net/if_inet6 | wc -l");
    spec.bounds.as_mut().unwrap().network = Network::Closed;

    let output = bounded.run(&spec);

    assert!(output.trim_start().starts_with("lo\n"), "{output}");
    assert_eq!(output.lines().count(), 2, "{output}");
}

/// P3
#[test]
fn where_everything_may_be_written_what_is_hidden_stays_hidden_and_the_kernel_is_not_set() {
    let bounded = Bounded::new();
    let outside = bounded.home.folder.parent().unwrap().join("outside");
    fs::create_dir(&outside).unwrap();
    let bounds =
        Bounds { write: vec!["/".into()], hidden: vec![bounded.home.folder.clone()], ..Bounds::default() };
    let command = format!(
        "echo written > {0}/file; ls {1} 2>/dev/null; {{ read v < /proc/sys/vm/swappiness; echo $v > /proc/sys/vm/swappiness; }} 2>/dev/null || echo fixed",
        outside.display(),
        bounded.home.folder.display()
    );

    let output = bounded.run(&Spec { bounds: Some(bounds), ..bounded.spec(&command) });

    assert_eq!(output, "fixed\n");
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "written\n");
}

/// P1: a command of a session in the folder above can put a link in place of a work folder, at any moment.
#[test]
fn a_work_folder_that_is_swapped_for_a_link_starts_no_command_elsewhere() {
    let bounded = Bounded::new();
    let root = bounded.work.parent().unwrap().to_owned();
    fs::create_dir(root.join("outside")).unwrap();
    fs::write(root.join("outside/name"), "outside").unwrap();
    fs::write(bounded.work.join("name"), "inside").unwrap();
    symlink(root.join("outside"), root.join("aside")).unwrap();
    let swap = || renameat_with(CWD, &bounded.work, CWD, root.join("aside"), RenameFlags::EXCHANGE).unwrap();
    let free = |command: &str| Spec { work_dir: bounded.work.clone(), ..bounded.home.spec(command) };
    let held = |command: &str| bounded.spec(command);

    // First as a link for the whole start, then swapped while keepers start.
    swap();
    for spec in [free("touch ran"), held("touch ran")] {
        let Error::NotStarted { reason } = bounded.home.tasks.start(&spec).unwrap_err() else { panic!() };
        assert!(reason.contains("was replaced by a link, which is not followed"), "{reason}");
    }
    swap();
    let (is_over, seen) = (AtomicBool::new(false), std::sync::Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                swap();
                std::thread::sleep(Duration::from_micros(300));
            }
        });
        for _ in 0..SWAP_ROUNDS {
            for spec in [free("cat name; touch ran-$$"), held("cat name; touch ran-$$")] {
                if let Ok(task) = bounded.home.tasks.start(&spec) {
                    ended(&task);
                    seen.lock().unwrap().push(bounded.home.output(&task));
                }
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });

    let seen = seen.into_inner().unwrap();
    assert!(!seen.iter().any(|output| output.contains("outside")), "{seen:?}");
    assert_eq!(fs::read_dir(root.join("outside")).unwrap().count(), 1);
    assert!(seen.iter().any(|output| output == "inside"), "{seen:?}");
}
