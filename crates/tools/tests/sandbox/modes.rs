//! What each mode lets a command do, besides the scope.

use std::fs;

use longhaul_keeper::Network;
use longhaul_tools::{AllowedTarget, DeniedTarget, Permission, SandboxMode, ScopeConfig};

use crate::workplace::{SECRET, Workplace};

fn on() -> Workplace {
    Workplace::new(SandboxMode::On)
}

/// P3
#[test]
fn a_command_can_do_what_commands_do() {
    let workplace = on();
    let commands = [
        "mkdir -p a/b && mv a c && echo 1 > c/b/file && ln c/b/file d && rm -r c && cat d",
        "echo 1 | tee /dev/null | cat <(cat) > /dev/stdout",
        "f=$(mktemp) && echo 1 > $f && cat $f && rm $f",
        "f=$(mktemp -p /var/tmp) && echo 1 > $f && cat $f && rm $f",
        "python3 -c 'print(1)'",
        "python3 -c 'import threading; t = threading.Thread(target=lambda: print(1)); t.start(); t.join()'",
        "python3 -c 'import multiprocessing as m; print(m.Value(\"i\", 1).value)'",
        "python3 -c 'import pty, os; a, b = pty.openpty(); print(int(os.isatty(b)))'",
        "cat $LIBRARY/file > copy && echo 1",
        "cat ~/.docker/plugins > copy && echo 1",
        "getent hosts localhost > /dev/null && echo 1",
        "nice ionice -c 3 taskset 1 prlimit --nofile=100 chrt -b 0 sh -c 'ulimit -n 50; echo 1'",
        "python3 -c 'import os; os.setpriority(os.PRIO_PROCESS, 0, 19); os.setpriority(os.PRIO_PGRP, 0, 19); print(1)'",
        "id > /dev/null && date > /dev/null && ps > /dev/null && echo 1",
    ];

    for command in commands {
        assert_eq!(workplace.run(command), "1\n", "{command}");
    }
}

/// P3: what a session's commands leave in `/tmp` goes with them unless the command has a session.
#[test]
fn temporary_folders_are_nobody_elses() {
    let workplace = on();
    let name = format!("longhaul-{}", std::process::id());

    let output = workplace.run(&format!(
        "for folder in /tmp /var/tmp /dev/shm; do ls -A $folder; echo here > $folder/{name}; cat $folder/{name}; done"
    ));

    assert_eq!(output, "here\nhere\nhere\n");
    assert!(
        ["/tmp", "/var/tmp", "/dev/shm"]
            .iter()
            .all(|folder| !fs::exists(format!("{folder}/{name}")).unwrap())
    );
}

/// P3
#[test]
fn toolchains_and_caches_are_for_on_and_not_for_strict() {
    let look = "cat ~/.cargo/bin/tool 2>/dev/null; echo 1 > ~/.cache/file; cat ~/.cache/file 2>/dev/null; \
                echo 2 > ~/.cargo/bin/new; cat ~/.cargo/credentials.toml ~/.npmrc; echo end";
    let outputs = [SandboxMode::On, SandboxMode::Strict].map(|mode| {
        let workplace = Workplace::new(mode);
        let user = workplace.root.join("user");
        fs::create_dir_all(user.join(".cargo/bin")).unwrap();
        fs::create_dir_all(user.join(".cache")).unwrap();
        fs::write(user.join(".cargo/bin/tool"), "tool\n").unwrap();
        fs::write(user.join(".cargo/credentials.toml"), SECRET).unwrap();
        fs::write(user.join(".npmrc"), SECRET).unwrap();
        let output = workplace.run(&format!("{{ {look}; }} 2>/dev/null"));
        assert!(!user.join(".cargo/bin/new").exists());
        output
    });

    assert_eq!(outputs, ["tool\n1\nend\n", "end\n"]);
}

/// P3
#[test]
fn strict_has_no_network_but_its_own() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo open || echo closed");
    let own = "python3 -c \"import socket; s=socket.create_server(('127.0.0.1', 0)); \
               socket.create_connection(s.getsockname()); print('own')\"";

    let on = on().run(&connect);
    let strict = Workplace::new(SandboxMode::Strict);

    assert_eq!(on, "open\n");
    assert_eq!(strict.run(&connect), "closed\n");
    // It may lie in the user's own folder.
    if strict.run("python3 -V").starts_with("Python") {
        assert_eq!(strict.run(own), "own\n");
    }
}

/// P3
#[test]
fn the_network_is_a_switch_of_its_own() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo open || echo closed");
    let run = |mode, network| Workplace::with_network(mode, network).run(&connect);

    assert_eq!(run(SandboxMode::On, Network::Closed), "closed\n");
    assert_eq!(run(SandboxMode::Strict, Network::Open), "open\n");
}

/// P3: in the scope a socket is reached like a file; `strict` has no Unix sockets but pairs that lead nowhere else.
#[test]
fn strict_has_no_unix_sockets() {
    let connect = "perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Peer => \"service.sock\") and print 1'";
    let pair = "perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) and print 1'";
    let datagrams = "perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_DGRAM, 0) and print 1'";
    let run = |mode| [connect, pair, datagrams].map(|command| Workplace::new(mode).run(command));

    assert_eq!(run(SandboxMode::On), ["1", "1", "1"]);
    assert_eq!(run(SandboxMode::Strict), ["", "1", ""]);
}

/// P3: these use Unix sockets where they can, to look up users and hosts, and do without.
#[test]
fn common_programs_run_in_strict() {
    let workplace = Workplace::new(SandboxMode::Strict);
    let commands = [
        "id -un > /dev/null && echo 1",
        "getent passwd root > /dev/null && echo 1",
        "perl -e 'print getpwuid($<) ? 1 : 0, \"\\n\"'",
        "/usr/bin/git init -q one && /usr/bin/git -C one status > /dev/null && echo 1",
        "echo 1 | cat | sort",
        "ls > /dev/null && date > /dev/null && ps > /dev/null && echo 1",
    ];

    for command in commands {
        assert_eq!(workplace.run(command), "1\n", "{command}");
    }
}

/// P1, P3: what is denied is out of reach for commands as for file tools, also where that is everything.
#[test]
fn a_denied_work_folder_runs_no_command() {
    for target in ["/", "./", "..", "/usr"] {
        let denied = DeniedTarget { target: target.to_owned(), permission: Permission::Read };
        let scope = ScopeConfig { allow: Vec::new(), deny: vec![denied] };
        let workplace = Workplace::with_scope(SandboxMode::On, &scope);

        let refused = workplace.try_result("cat denied/secret").unwrap_err();

        assert!(refused.contains("the scope denies"), "{target}: {refused}");
    }
}

/// P1, P3
#[test]
fn where_all_writing_is_denied_a_command_writes_nothing_and_reads_on() {
    let scope = ScopeConfig {
        allow: vec![AllowedTarget { target: "/".to_owned(), permission: Permission::Write }],
        deny: vec![DeniedTarget { target: "/".to_owned(), permission: Permission::Write }],
    };
    let workplace = Workplace::with_scope(SandboxMode::On, &scope);

    let output = workplace
        .run("cat fixed/file; echo; echo > new; chmod 777 fixed/file; echo x >> $OUTSIDE/movable; ls new");

    assert!(output.starts_with("to be read\n"), "{output}");
    assert!(!workplace.work.join("new").exists(), "{output}");
    assert_eq!(fs::read_to_string(workplace.root.join("outside/movable")).unwrap(), SECRET);
}

/// P3
#[test]
fn off_holds_nobody() {
    let workplace = Workplace::new(SandboxMode::Off);

    assert_eq!(workplace.run("cat $OUTSIDE/secret"), SECRET);
}

/// P3: a setuid program grants no rights, and root has only those over files and its own processes.
#[test]
fn a_command_gets_no_rights_by_what_it_runs() {
    let status = on().run("grep -E 'NoNewPrivs|CapBnd' /proc/self/status");

    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    let rights = status.lines().find_map(|line| line.strip_prefix("CapBnd:\t")).unwrap();
    // Changing owners, modes and files of any owner, ending processes, becoming another user, and low ports.
    assert_eq!(u64::from_str_radix(rights, 16).unwrap() & !0x4fb, 0, "{status}");
}
