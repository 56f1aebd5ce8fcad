//! K8, K14: a command is ended also where its keeper can't be talked to.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;

use longhaul_keeper::{Found, Launcher, Task};
use longhaul_protocol::TaskStatus;
use rustix::process::{Pid, Signal, kill_process};

use crate::home::{Home, is_alive, keeper_of, number_in, until};

fn send(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// A command, its process, and that of its keeper.
fn started(home: &Home) -> (Task, i32, i32) {
    let task = home.start("echo $$ > command; sleep 600");
    let command = number_in(&home.folder.join("command"));
    let keeper = keeper_of(&home.task_folder(task.id()));
    (task, command, keeper)
}

fn is_stopped(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") T "))
}

/// K8
#[test]
fn a_keeper_that_was_stopped_is_let_go_on_to_end_its_command() {
    let home = Home::new();
    let (task, command, keeper) = started(&home);
    send(keeper, Signal::STOP);
    until("the keeper to stop", || is_stopped(keeper).then_some(()));

    task.kill().unwrap();

    assert!(!is_alive(command));
    let status = task.status().unwrap().unwrap();
    assert_eq!((status.status, status.message), (TaskStatus::Killed, None), "it heard, and was not forced");
}

/// K8: keepers listen for so many at a time; more are not waited for.
#[test]
fn a_keeper_that_was_stopped_and_has_a_queue_is_let_go_on() {
    let home = Home::new();
    let (task, command, keeper) = started(&home);
    send(keeper, Signal::STOP);
    until("the keeper to stop", || is_stopped(keeper).then_some(()));
    let socket = home.task_folder(task.id()).join("socket");
    let queue = std::thread::spawn(move || {
        let _full = (0..5000).map_while(|_| UnixStream::connect(&socket).ok()).count();
    });

    task.kill().unwrap();

    assert!(!is_alive(command));
    assert_eq!(task.status().unwrap().unwrap().status, TaskStatus::Killed);
    queue.join().unwrap();
}

/// K8: what is needed to talk to a keeper may be gone.
#[test]
fn a_command_is_ended_also_without_token_socket_or_spec() {
    for missing in ["run/token", "socket", "spec.json"] {
        let home = Home::new();
        let (task, command, _) = started(&home);
        let file = match missing {
            "run/token" => home.folder.join(missing),
            _ => home.task_folder(task.id()).join(missing),
        };
        fs::remove_file(file).unwrap();
        let Found::Running(task) = home.tasks.find(task.id()).unwrap() else { panic!("{missing}: it runs") };

        task.kill().unwrap();

        assert!(!is_alive(command), "{missing}");
        let status = task.status().unwrap().expect(missing);
        assert_eq!(status.status, TaskStatus::Killed);
        assert_eq!(status.message.as_deref(), Some("its supervisor was stopped (SIGTERM)"));
        assert!(!status.unasked, "somebody asked, if not through the socket");
    }
}

/// Plays a keeper that heeds nothing: it has the lock, and its command runs.
const DEAF: &str = r#"PATH=/usr/bin:/bin; trap '' TERM; exec 9>>lock; flock 9
    system="$(cat /proc/sys/kernel/random/boot_id) $(readlink /proc/self/ns/pid)"
    echo '{"format":1,"keeper":{"pid":'$$',"start_time":'$(cut -d' ' -f22 /proc/$$/stat)'},"system":"'$system'"}' > lock
    : > spawning
    LONGHAUL_TASK=$(basename "$(pwd -P)") sleep 600 9>&- <&- & echo $! > ../../child
    echo '{"format":1}' >&0; wait"#;

/// K8
#[test]
fn a_keeper_that_heeds_nothing_is_killed_and_what_is_left_of_its_command() {
    let home = Home::with(Launcher::new("/bin/bash", ["-c", DEAF]));
    let task = home.start("");
    let child = number_in(&home.folder.join("child"));

    home.tasks.kill(task.id()).unwrap();

    until("the child's end", || (!is_alive(child)).then_some(()));
    assert!(matches!(home.tasks.find(task.id()).unwrap(), Found::Unknown));
}

/// K8: to be dropped by a keeper that has too much to do is not the news that the command has ended.
#[test]
fn a_keeper_with_too_many_watchers_still_hears_whoever_wants_to_kill() {
    let home = Home::new();
    let (task, command, _) = started(&home);
    let socket = home.task_folder(task.id()).join("socket");
    let watchers: Vec<UnixStream> = (0..200)
        .map(|_| {
            let mut stream = UnixStream::connect(&socket).unwrap();
            let _ = stream.write_all(b"{\"token\":\"open sesame\"}\n{\"watch\":true}\n");
            // It has been heard when it was answered.
            let _ = std::io::Read::read(&mut stream, &mut [0; 1]);
            stream
        })
        .collect();

    let newest = task.connect().unwrap();
    newest.set_nonblocking(true).unwrap();
    assert!(
        std::io::Read::read(&mut &newest, &mut [0; 1]).is_err(),
        "the newest is not the one that is dropped"
    );
    task.kill().unwrap();

    assert!(!is_alive(command));
    assert_eq!(task.status().unwrap().unwrap().status, TaskStatus::Killed);
    drop(watchers);
}

/// K14: a start whose keeper is on its way can be given up, and the command never begins.
#[test]
fn a_start_can_be_given_up_while_its_keeper_is_on_its_way() {
    let home = Home::with(Launcher::new(
        "/bin/bash",
        ["-c", "PATH=/usr/bin:/bin; touch ../../waiting; exec -a longhaul-keeper sleep 600"],
    ));
    let spec = home.spec("touch ran");

    let started = std::thread::scope(|scope| {
        let starting = scope.spawn(|| home.tasks.start(&spec));
        until("the keeper to be on its way", || home.folder.join("waiting").exists().then_some(()));
        home.tasks.kill(spec.task_id).unwrap();
        until("the start's end", || starting.is_finished().then_some(()));
        starting.join().unwrap()
    });

    assert!(started.unwrap_err().to_string().contains("given up"));
    assert!(matches!(home.tasks.find(spec.task_id).unwrap(), Found::NotStarted));
    let aside = home.task_folder(spec.task_id).with_file_name(format!("{}.void-1", spec.task_id));
    send(keeper_of(&aside), Signal::KILL);
}

/// K8: a keeper of an earlier version has not written down which process it is. It is known by its socket then.
#[test]
fn a_keeper_that_wrote_nothing_of_itself_is_known_by_its_socket() {
    let home = Home::new();
    let (task, command, keeper) = started(&home);
    let folder = home.task_folder(task.id());
    fs::write(folder.join("lock"), "").unwrap();
    fs::write(folder.join("pid"), "{\"format\":1,\"pid\":1,\"start_time\":1}").unwrap();
    fs::remove_file(home.folder.join("run/token")).unwrap();
    send(keeper, Signal::STOP);

    task.kill().unwrap();

    assert!(!is_alive(command));
    assert_eq!(task.status().unwrap().unwrap().status, TaskStatus::Killed);
}
