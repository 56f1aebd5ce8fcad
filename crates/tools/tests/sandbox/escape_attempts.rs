//! Attempts to leave the scope. Each is made twice: without a sandbox, where it must succeed, or it would prove nothing; and
//! with one, where it must not.

use std::fs;
use std::time::{Duration, Instant};

use longhaul_keeper::ProcessNamespace;
use longhaul_tools::SandboxMode;

use crate::workplace::{SECRET, SandboxChoice, Workplace};

/// An attempt succeeds if it prints the secret or this, or if there is a file `outside/reached`.
const REACHED: &str = "-reached-";
/// What goes on after the command has this long. It says that it is done by a file `work/tried`.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Who can make an attempt succeed at all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nobody,
    /// The superuser.
    Root,
}

struct Attempt {
    name: &'static str,
    needs: Needs,
    /// Commands of one session, one after the other.
    commands: &'static [&'static str],
}

const fn attempt(name: &'static str, commands: &'static [&'static str]) -> Attempt {
    Attempt { name, needs: Needs::Nobody, commands }
}

const fn as_root(name: &'static str, commands: &'static [&'static str]) -> Attempt {
    Attempt { name, needs: Needs::Root, commands }
}

/// Connects to a socket. In perl, which every system has outside of home folders.
macro_rules! connect {
    ($path:literal) => {
        concat!(
            "perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Peer => \"",
            $path,
            "\") and print \"-reached-\"'"
        )
    };
}

const READING: &[Attempt] = &[
    attempt("a relative path", &["cat ../outside/secret"]),
    attempt("an absolute path", &["cat $OUTSIDE/secret"]),
    attempt("a link to a file", &["ln -s $OUTSIDE/secret link; cat link"]),
    attempt("a link to a folder", &["ln -s $OUTSIDE folder; cat folder/secret"]),
    attempt("a link from an earlier command", &["ln -s $OUTSIDE folder", "cat folder/secret"]),
    attempt("a hard link", &["ln $OUTSIDE/secret hard; cat hard"]),
    attempt("its own root", &["cat /proc/self/root$OUTSIDE/secret"]),
    attempt("moving in", &["mv $OUTSIDE/movable . ; cat movable"]),
    attempt("an archive", &["tar cf - -C $OUTSIDE secret | tar xf - ; cat secret"]),
    attempt("a copy of a folder", &["cp -a $OUTSIDE copy; cat copy/secret"]),
    attempt(
        "a file that is open for its path only",
        &["python3 -c \"import os; f=os.open(os.environ['OUTSIDE']+'/secret', os.O_PATH); \
         print(open('/proc/self/fd/%d' % f).read())\""],
    ),
    attempt("an open file by its number", &["exec 3< $OUTSIDE/secret; cat /dev/fd/3"]),
    attempt("a key of the user", &["cat ~/.ssh/id_ed25519"]),
    attempt(
        "a key beside something that is allowed",
        &["cat ~/.docker/plugins >/dev/null && cat ~/.docker/config.json"],
    ),
    attempt("a password of the user", &["cat ~/.netrc"]),
    attempt("the size of a file in the home folder", &["stat -c %s ~/.netrc && echo -reached-"]),
    attempt("whether the home folder has a folder", &["cd ~/.ssh && echo -reached-"]),
    as_root("the system's passwords", &["head -c 1 /etc/shadow && echo -reached-"]),
    attempt("temporary files of others", &["cat $TEMPORARY/secret"]),
    attempt("a denied folder", &["cat denied/secret"]),
    attempt("the names in a denied folder", &["ls denied | grep -q secret && echo -reached-"]),
    attempt("a denied file", &["cat denied-file"]),
    attempt("a hard link to a denied file", &["ln denied-file other; cat other"]),
    attempt("a denied file that is moved", &["mv denied-file other; cat other"]),
    attempt("a denied folder that is moved", &["mv denied other", "cat other/secret"]),
    attempt(
        "a folder that is moved with a denied one in it",
        &["mv holder other", "cat other/denied/secret"],
    ),
    attempt("a copy of a folder with a denied one in it", &["cp -a holder copy; cat copy/denied/secret"]),
    attempt(
        "a link in place of a toolchain that lies in a cache",
        &[
            "mv $VIRTUAL_ENV $VIRTUAL_ENV.old && ln -s $OUTSIDE $VIRTUAL_ENV",
            "cat $VIRTUAL_ENV/secret $OUTSIDE/secret",
        ],
    ),
    attempt("the token", &["cat $LONGHAUL/run/token"]),
    attempt("other tasks", &["cat $LONGHAUL/tasks/*/spec.json | grep -q format && echo -reached-"]),
];

const WRITING: &[Attempt] = &[
    attempt("a relative path", &["echo > ../outside/reached"]),
    attempt("a link", &["ln -s $OUTSIDE folder; echo > folder/reached"]),
    attempt("moving out", &["echo > file; mv file $OUTSIDE/reached"]),
    attempt("an exchange by hard link", &["echo > file; ln file $OUTSIDE/reached"]),
    attempt("a new folder", &["mkdir $OUTSIDE/reached"]),
    attempt("removing", &["rm $OUTSIDE/movable && echo -reached-"]),
    attempt(
        "cutting to nothing",
        &["python3 -c \"import os; os.truncate(os.environ['OUTSIDE']+'/movable', 0)\" && echo -reached-"],
    ),
    attempt("appending", &["echo >> $OUTSIDE/movable && echo -reached-"]),
    attempt("a file's mode", &["chmod 777 $OUTSIDE/secret && echo -reached-"]),
    attempt("a file's times", &["touch -d yesterday $OUTSIDE/secret && echo -reached-"]),
    attempt("a session of its own", &["setsid sh -c 'echo > $OUTSIDE/reached' >/dev/null 2>&1 & wait"]),
    attempt(
        "after the command's end",
        &["setsid sh -c 'sleep 0.5; (echo > $OUTSIDE/reached); echo > tried' >/dev/null 2>&1 &"],
    ),
    attempt("a process that ignores hanging up", &["nohup sh -c 'echo > $OUTSIDE/reached' >/dev/null 2>&1"]),
    attempt("a library that may be read", &["echo x >> $LIBRARY/file && echo -reached-"]),
    attempt("the mode of what may be read", &["chmod 777 $LIBRARY/file && echo -reached-"]),
    attempt("what may not be written in the work folder", &["echo x >> fixed/file && echo -reached-"]),
    attempt(
        "what is allowed or denied inside of what may not be written",
        &["echo > fixed/deep/file && echo -reached-"],
    ),
    attempt(
        "moving what may not be written",
        &["mv fixed elsewhere", "echo x >> elsewhere/file && echo -reached-"],
    ),
    attempt(
        "a link in place of a cache that lies in another",
        &["ln -s $OUTSIDE $PIP_CACHE_DIR", "echo > $OUTSIDE/reached"],
    ),
    attempt("the journal", &["echo x >> $LONGHAUL/journal.db && echo -reached-"]),
    attempt("its own keeper's files", &["echo > $LONGHAUL/tasks/$LONGHAUL_TASK/void && echo -reached-"]),
    attempt("temporary files of others", &["echo > $TEMPORARY/file && echo -reached-"]),
    attempt("the settings of the user's shell", &["echo >> ~/.bashrc && echo -reached-"]),
    as_root(
        "a program of the system",
        &["echo > /usr/local/bin/longhaul-was-here && rm /usr/local/bin/longhaul-was-here && echo -reached-"],
    ),
    as_root(
        "a setting of the kernel",
        &["cat /proc/sys/kernel/hostname > /proc/sys/kernel/hostname && echo -reached-"],
    ),
];

/// Sockets of programs that act for the user, in the home folder.
const SOCKETS: &[Attempt] = &[
    attempt("the socket of containers", &[connect!("$ENV{HOME}/.colima/default/docker.sock")]),
    attempt("the socket of keys", &[connect!("$ENV{HOME}/.1password/agent.sock")]),
    attempt("the socket of any program", &[connect!("$ENV{HOME}/tool/socket")]),
    attempt("a link to a socket", &["ln -s ~/.1password/agent.sock link", connect!("link")]),
    attempt("the socket of Longhaul", &[connect!("$ENV{LONGHAUL}/run/doorbell")]),
    attempt("an abstract socket", &[connect!("\\0$ENV{ABSTRACT}")]),
];

/// In a user namespace of its own, where it has every right over that and a copy of the mounts. A program that is executed there
/// would have none, so it is one program. Such a namespace is refused already; what would hold in one is not relied on alone.
macro_rules! in_namespaces {
    ($python:literal) => {
        concat!(
            "mkdir mnt; cat > attempt.py <<'E'\n",
            "import ctypes, os\nc = ctypes.CDLL(None)\nassert c.unshare(0x10020000) == 0\n",
            "root = os.environ['ROOT']\n",
            $python,
            "\nE\npython3 attempt.py"
        )
    };
}

const UNDOING: &[Attempt] = &[
    attempt("making a user namespace", &[in_namespaces!("print('-reached-')")]),
    attempt(
        "System V memory of another process",
        &["ipcs --shmems --id $MEMORY | grep -q bytes && echo -reached-"],
    ),
    attempt("a user namespace", &[in_namespaces!("print(open(root + '/outside/secret').read())")]),
    attempt(
        "unmounting a mask",
        &[in_namespaces!(
            "c.umount2(b'denied', 2), c.umount2(b'denied', 0)\nprint(open('denied/secret').read())"
        )],
    ),
    attempt(
        "mounting the system anew",
        &[in_namespaces!(
            "c.mount(b'/', b'mnt', None, 0x5000, None)\nprint(open('mnt/' + root + '/work/denied/secret').read())"
        )],
    ),
    attempt(
        "mounting a folder elsewhere",
        &[in_namespaces!(
            "c.mount(root.encode() + b'/outside', b'mnt', None, 0x5000, None)\nprint(open('mnt/secret').read())"
        )],
    ),
    attempt(
        "making the system writable",
        &[in_namespaces!(
            "c.mount(None, b'/', None, 0x1020, None)\nos.chmod(root + '/outside/secret', 0o777)\nprint('-reached-')"
        )],
    ),
    attempt(
        "a copy of the tree without its masks",
        &[in_namespaces!(
            "f = c.syscall(428, -100, root.encode() + b'/work', 0x8001)\n\
         g = c.syscall(428, -100, root.encode() + b'/work', 1)\n\
         print(open('/proc/self/fd/%d/denied/secret' % max(f, g)).read())"
        )],
    ),
    attempt("another root", &[in_namespaces!("os.chroot(root + '/outside')\nprint(open('/secret').read())")]),
    as_root(
        "mounting with the rights of root",
        &["mkdir mnt; unshare -m sh -c 'mount --bind $OUTSIDE mnt; cat mnt/secret'"],
    ),
    as_root("unmounting with the rights of root", &["unshare -m sh -c 'umount denied; cat denied/secret'"]),
    as_root("a device", &["mknod device c 1 5 && head -c 1 device >/dev/null && echo -reached-"]),
    attempt("a terminal of somebody else", &["echo > $TERMINAL && echo -reached-"]),
    attempt(
        "a socket in the home",
        &["python3 -c \"import os,socket; s=socket.socket(socket.AF_UNIX); \
         s.connect(os.environ['LONGHAUL']+'/run/doorbell'); print('-reached-')\""],
    ),
    attempt(
        "the keeper's socket",
        &[
            "cd / && python3 -c \"import os,socket; os.chdir(os.environ['LONGHAUL']+'/tasks/'+os.environ['LONGHAUL_TASK']); \
         s=socket.socket(socket.AF_UNIX); s.connect('socket'); print('-reached-')\"",
        ],
    ),
    attempt(
        "an abstract socket",
        &["python3 -c \"import os,socket; s=socket.socket(socket.AF_UNIX); \
         s.connect('\\0'+os.environ['ABSTRACT']); print('-reached-')\""],
    ),
];

/// Reaching other processes. Where a command has a PID namespace, their numbers mean nothing in it; Landlock, the filter of system calls and
/// missing rights refuse all of this where it has none.
const REACHING_PROCESSES: &[Attempt] = &[
    attempt("another process's root", &["cat /proc/$VICTIM/root$OUTSIDE/secret /proc/1/root$OUTSIDE/secret"]),
    attempt("another process's folder", &["cat /proc/$VICTIM/cwd/secret"]),
    attempt("another process's open file", &["cat /proc/$VICTIM/fd/0"]),
    attempt("another process's environment", &["tr '\\0' '\\n' < /proc/$VICTIM/environ"]),
    attempt("another process's memory", &["head -c 1 /proc/$VICTIM/maps && echo -reached-"]),
    attempt("the keeper's folder", &["grep -q format /proc/$PPID/cwd/spec.json && echo -reached-"]),
    attempt("the keeper's open files", &["readlink /proc/$PPID/fd/1 && echo -reached-"]),
    attempt("the keeper's environment", &["cat /proc/$PPID/environ && echo -reached-"]),
    as_root("another process's mounts", &["nsenter -t $VICTIM -m cat $OUTSIDE/secret"]),
    attempt("a signal to the keeper", &["[ $PPID -gt 0 ] && kill -0 $PPID && echo -reached-"]),
    attempt("a signal to somebody else", &["kill -9 $VICTIM && echo -reached-"]),
    attempt("a limit of another process", &["prlimit --pid $VICTIM --cpu=0:0 && echo -reached-"]),
    attempt("another process's priority", &["renice -n 5 -p $VICTIM && echo -reached-"]),
    attempt("another process's priority for disks", &["ionice -c 3 -p $VICTIM && echo -reached-"]),
    attempt("another process's processors", &["taskset -p 1 $VICTIM && echo -reached-"]),
    attempt("another process's scheduling", &["chrt -b -p 0 $VICTIM && echo -reached-"]),
    as_root(
        "taking another process over",
        &["python3 -c \"import ctypes, os; c=ctypes.CDLL(None); p=int(os.environ['VICTIM']); \
         print('-reached-' if c.ptrace(0x4206, p, 0, 0) == 0 else '')\""],
    ),
];

/// Seeing that other processes are there, which only a PID namespace keeps a command from.
const SEEING_PROCESSES: &[Attempt] = &[
    attempt("another process's command line", &["grep -q 600 /proc/$VICTIM/cmdline && echo -reached-"]),
    attempt("the processes of the user", &["ls -d /proc/$VICTIM && echo -reached-"]),
];

/// Whether an attempt succeeds, with what it printed.
fn succeeds(attempt: &Attempt, sandbox: impl Into<SandboxChoice>) -> (bool, String) {
    let workplace = Workplace::new(sandbox);
    let output: String = attempt.commands.iter().map(|command| workplace.run(command)).collect();
    let reached = workplace.root.join("outside/reached");
    let since = Instant::now();
    let goes_on = attempt.commands.iter().any(|command| command.ends_with('&'));
    while goes_on && !workplace.work.join("tried").exists() && since.elapsed() < TEST_TIMEOUT {
        std::thread::sleep(Duration::from_millis(20));
    }
    (output.contains(SECRET) || output.contains(REACHED) || reached.exists(), output)
}

fn make(attempts: &[Attempt]) {
    make_in(SandboxMode::On.into(), attempts);
}

fn make_in(sandbox: SandboxChoice, attempts: &[Attempt]) {
    let is_root = rustix::process::geteuid().is_root();
    let mut wrong = Vec::new();
    for attempt in attempts.iter().filter(|attempt| is_root || attempt.needs == Needs::Nobody) {
        let (without, output) = succeeds(attempt, SandboxMode::Off);
        if !without {
            wrong.push(format!(
                "{} proves nothing, because it fails without a sandbox: {output}",
                attempt.name
            ));
        }
        let (within, output) = succeeds(attempt, sandbox);
        if within {
            wrong.push(format!("{} succeeds: {output}", attempt.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// P3
#[test]
fn nothing_outside_is_read() {
    make(READING);
}

/// P3
#[test]
fn nothing_outside_is_written() {
    make(WRITING);
}

/// P3
#[test]
fn nothing_undoes_the_sandbox_and_nobody_outside_is_reached() {
    make(UNDOING);
}

/// P3
#[test]
fn no_other_process_is_seen_or_reached() {
    make(REACHING_PROCESSES);
    make(SEEING_PROCESSES);
}

/// P3: where there can be no PID namespace, the other means hold.
#[test]
fn no_other_process_is_reached_where_all_are_seen() {
    let sandbox = SandboxChoice { processes: ProcessNamespace::Shared, ..SandboxMode::On.into() };

    for attempt in SEEING_PROCESSES {
        let (is_seen, output) = succeeds(attempt, sandbox);
        assert!(is_seen, "{} fails, so what follows proves nothing: {output}", attempt.name);
    }
    make_in(sandbox, REACHING_PROCESSES);
}

/// P3
#[test]
fn no_socket_in_the_home_folder_is_reached() {
    make_in(SandboxMode::On.into(), SOCKETS);
    make_in(SandboxMode::Strict.into(), SOCKETS);
}

/// P3: the same where everything lies in a folder for temporary files, of which the command sees another.
#[test]
fn nothing_outside_is_read_where_all_of_it_is_temporary() {
    let folder = || tempfile::tempdir_in("/tmp").unwrap();
    let commands = "cat ../outside/secret $OUTSIDE/secret denied/secret denied-file ../home/run/token \
                    /proc/self/root$OUTSIDE/secret; ls ..";

    let without = Workplace::within(folder(), SandboxMode::Off).run(commands);
    let within = Workplace::within(folder(), SandboxMode::On);
    let output = within.run(commands);

    assert_eq!(without.matches(SECRET).count(), 6, "{without}");
    assert!(!output.contains(SECRET), "{output}");
    assert_eq!(within.run("echo here > file; cat file ../library/file"), "here\nto be read");
    assert_eq!(fs::read_to_string(within.work.join("file")).unwrap(), "here\n");
}
