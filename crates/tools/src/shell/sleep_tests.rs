use super::*;

/// K4
#[test]
fn a_long_sleep_in_the_foreground_is_found() {
    let table = [
        "sleep 2",
        "sleep 5",
        "sleep 2.0",
        "sleep 2s",
        "sleep 1m",
        "sleep .1h",
        "sleep 0.001d",
        "sleep 1e1",
        "sleep 0x10",
        "sleep +3",
        "sleep infinity",
        "sleep inf",
        "sleep 1 1",
        "sleep 1 0.5 .5s",
        "sleep -- 5",
        "  sleep\t5 # a while",
        "sl\"ee\"p '5'",
        "\\sleep 5",
        "$'sleep' 5",
        "sle\\\nep 5",
        "/bin/sleep 5",
        "env sleep 5",
        "env -i A=b sleep 5",
        "A=b sleep 5",
        "sudo sleep 5",
        "sudo -u bob sleep 5",
        "timeout 1 sleep 10",
        "timeout -k 1 60 sleep 10",
        "nohup sleep 5",
        "nice -n 5 sleep 5",
        "time sleep 5",
        "exec sleep 5",
        "command sleep 5",
        "busybox sleep 5",
        "stdbuf -oL sleep 5",
        "setsid sleep 5",
        "make; sleep 5; make test",
        "make && sleep 5",
        "make || sleep 5",
        "sleep 5 | cat",
        "(sleep 5)",
        "{ sleep 5; }",
        "while true; do sleep 5; done",
        "until test -e x; do sleep 5; done",
        "for i in 1 2; do sleep 3; done",
        "if sleep 5; then true; fi",
        "case x in x) sleep 5;; esac",
        "f() { sleep 5; }; f",
        "echo $(sleep 5)",
        "x=`sleep 5`",
        "echo \"${x:-$(sleep 5)}\"",
        "cat <(sleep 5)",
        "cat <<E\n$(sleep 5)\nE",
        "bash -c 'sleep 5'",
        "bash -lc \"make; sleep 5\"",
        "eval sleep 5",
        "bash <<'E'\nsleep 5\nE",
        "sleep 1 & sleep 5",
        "sleep 5 > log 2>&1",
        "! sleep 5",
        "find . -exec sleep 5 \\;",
    ];

    for line in table {
        assert!(long_sleep(line).is_some(), "{line}");
    }
}

/// K4
#[test]
fn anything_else_runs() {
    let table = [
        "sleep 1",
        "sleep 1.99",
        "sleep 0.03m",
        "sleep 1 0.9",
        "sleep 1; sleep 1",
        "sleep 1 && sleep 1.5",
        "for i in 1 2 3; do sleep 1; done",
        "echo sleep 5",
        "echo 'sleep 5'",
        "echo \"; sleep 5\"",
        "echo a # sleep 5",
        "grep 'sleep 5' *.sh",
        "git commit -m 'sleep 5'",
        "sleep $N",
        "sleep \"$N\"",
        "sleep $((5))",
        "sleep $(cat length)",
        "sleep 5 $N",
        "sleep {5,6}",
        "sleep 5 &",
        "sleep 5 & wait",
        "(sleep 5; echo x) &",
        "{ sleep 5; } & echo x",
        "while true; do sleep 5; done &",
        "make && sleep 5 &",
        "nohup sleep 5 > log 2>&1 &",
        "bash -c 'sleep 5' &",
        "bash -c 'sleep 5 &'",
        "coproc sleep 5",
        "sleep",
        "sleep -5",
        "sleep soon",
        "sleep 5x",
        "sleep --help",
        "sleep 5 --version",
        "sleepy 5",
        "./sleep.sh 5",
        "cat <<E\nsleep 5\nE",
        "cat > x.sh <<'E'\nsleep 5\n$(sleep 5)\nE",
        "command -v sleep 5",
        "man sleep 5",
        "sleep 5 )",
        "sleep 5; echo 'unfinished",
        "",
    ];

    for line in table {
        assert_eq!(long_sleep(line), None, "{line}");
    }
}

#[test]
fn it_says_which_sleep_and_what_to_do_instead() {
    let text = long_sleep("make; timeout 60 sleep \"30\"").unwrap().to_string();

    assert!(text.starts_with("`sleep 30` would wait for 2 seconds or more"), "{text}");
    for advice in ["`run_in_background`", "`task_output` and `wait`", "`until "] {
        assert!(text.contains(advice), "{text}");
    }
}
