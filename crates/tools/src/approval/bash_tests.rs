//! Lines that make bash run a command in ways that are easy to miss. A real bash shows that they do.

use std::path::Path;
use std::process::{Command, Stdio};

use super::ApprovalAction::{Ask, Auto, Deny};
use super::*;
use crate::shell::ShellScript;
use hidden_commands::HIDING_LINES;

#[path = "hidden_commands_tests.rs"]
mod hidden_commands;

/// Programs that need not be there.
const OPTIONAL_PROGRAMS: [&str; 14] = [
    "git", "python3", "perl", "ssh", "vim", "make", "awk", "tar", "timeout", "find", "ed", "gdb", "strace",
    "xargs",
];
/// Commands whose purpose is to run what they are given: a rule that lets them run means that.
const RUNNERS: [&str; 16] = [
    "env", "eval", "bash", "sh", "source", ".", "trap", "python3", "perl", "vim", "make", "ssh", "ed", "ex",
    "vi", "gdb",
];

fn is_there(program: &str) -> bool {
    std::env::split_paths(&std::env::var_os("PATH").unwrap()).any(|folder| folder.join(program).exists())
}

/// Whether bash runs the command of a line.
fn runs(line: &str) -> bool {
    makes(line, "m")
}

/// Whether this file is there after bash has run a line.
fn makes(line: &str, file: &str) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let bash = ["/bin/bash", "/usr/bin/bash"].into_iter().find(|bash| Path::new(bash).exists()).unwrap();
    let status = Command::new("timeout")
        .args(["-s", "KILL", "5", bash, "-c", line])
        .current_dir(&folder)
        .env("HOME", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.unwrap();
    folder.path().join(file).exists()
}

/// P4: the table is honest. Another bash may have closed a few of these ways.
#[test]
fn bash_runs_the_hidden_command_of_these_lines() {
    let possible =
        |line: &&&str| OPTIONAL_PROGRAMS.iter().all(|program| !line.contains(program) || is_there(program));
    let lines: Vec<&str> = HIDING_LINES.iter().filter(possible).copied().collect();
    let silent: Vec<&str> = lines.iter().filter(|line| !runs(line)).copied().collect();

    assert!(silent.len() * 5 < lines.len(), "{silent:#?}");
}

/// P4
#[test]
fn no_way_of_hiding_a_command_gets_round_a_rule() {
    for action in [Ask, Deny] {
        let approvals = approvals(Auto, &[("touch*", action)]);
        let slipped: Vec<&&str> =
            HIDING_LINES.iter().filter(|line| judge(&approvals, line).action == Auto).collect();
        assert!(slipped.is_empty(), "{slipped:#?}");
    }
}

/// P4: what is let run does nothing else, whatever else is let run.
#[test]
fn no_way_of_hiding_a_command_passes_for_a_command_that_is_let_run() {
    let slips = |line: &&&str| {
        let script = ShellScript::parse(line);
        let names = script.commands.iter().filter_map(|command| command.words()[0].program());
        let names: Vec<String> =
            names.filter(|name| *name != "touch").map(|name| format!("{name}*")).collect();
        let rules: Vec<(&str, ApprovalAction)> = names.iter().map(|name| (name.as_str(), Auto)).collect();
        !names.iter().any(|name| RUNNERS.contains(&name.trim_end_matches('*')))
            && judge(&approvals(Ask, &rules), line).action != Ask
    };
    let slipped: Vec<&&str> = HIDING_LINES.iter().filter(slips).collect();

    assert!(slipped.is_empty(), "{slipped:#?}");
}

/// Each of them writes the file `f`, beside running a command that may be let run.
const WRITING_LINES: &[&str] = &[
    r##"awk 'BEGIN{print "a;" > "f"}'"##,
    r##"awk 'BEGIN{print "a}" > "f"}'"##,
    r##"awk 'BEGIN{print "a",
"b" > "f"}'"##,
    r##"awk 'BEGIN{print "a" \
> "f"}'"##,
    r##"awk 'BEGIN{print 1 &&
2 > "f"}'"##,
    r##"awk 'BEGIN{print "\";" > "f"}'"##,
    r##"awk '/"/ {print "a" > "f"} END {print "a" > "f"}' /dev/null"##,
    r##"awk -v x=f 'BEGIN{print /;/ > x}'"##,
    r##"awk -v x=f 'BEGIN{print 1 / 2; print /;/ > x; print 1 / 2}'"##,
    r##"awk 'BEGIN{print 1, # "
2 > "f" # "
}'"##,
    r##"awk -v x=f 'BEGIN{printf "%s}", 1 >> x}'"##,
    r##"env time -o f -f TEXT ls"##,
    r##"command time -ao f ls"##,
    r##"\time --output=f ls"##,
    r##"env time --out f ls"##,
    r##"nice env time -of ls"##,
];

/// P4
#[test]
fn a_rule_lets_no_line_run_that_writes_a_file_as_well() {
    let approvals = approvals(Deny, &[("awk*", Auto), ("ls*", Auto)]);
    let slipped: Vec<&&str> =
        WRITING_LINES.iter().filter(|line| judge(&approvals, line).action == Auto).collect();
    let silent: Vec<&&str> = WRITING_LINES.iter().filter(|line| !makes(line, "f")).collect();

    assert!(slipped.is_empty(), "{slipped:#?}");
    assert!(silent.len() * 2 < WRITING_LINES.len(), "{silent:#?}");
}

/// P4: an option of a wrapper may name a program or a file, and so may an option of awk.
#[test]
fn a_rule_lets_no_option_of_a_wrapper_run_something_else() {
    let approvals = approvals(Deny, &[("awk*", Auto), ("gawk*", Auto), ("ls*", Auto)]);
    let doubtful = [
        "dbus-run-session --dbus-daemon=./evil ls",
        "dbus-run-session --config-file x ls",
        "fakeroot -l ./x.so ls",
        "fakeroot --faked=./x ls",
        "fakeroot -s x ls",
        "xvfb-run -e x ls",
        "xvfb-run -a -s '-x y' ls",
        "exec -a x ls",
        "env -a x ls",
        "env --argv0=x ls",
        "uv run --with x ls",
        "uv run --env-file x ls",
        "uv --project x run ls",
        "poetry -C x run ls",
        "conda run -n x ls",
        "gawk -i x.awk 1",
        "gawk --include=x.awk 1",
        "gawk -l x 1",
        "gawk -dFILE 1",
        "gawk -E x",
        "gawk -o 1",
        "gawk -ox 1",
        "gawk -p 1",
        "gawk -D 1",
        "gawk --profile=x 1",
        "awk -W dump=x 1",
    ];
    let plain = [
        "env time ls",
        "command time -v -f %e ls",
        "nice -n 5 timeout -k 1 5 stdbuf -oL ls -o",
        "env -u X -C x ls",
        "xvfb-run -a ls",
        "dbus-run-session -- ls",
        "uv run -q --frozen --extra x ls",
        "poetry run ls",
        "awk '$3 > 5 {print $1}' x",
        "awk '{print $1} END {if (n > 5) print n}' x",
        "awk '{print \"a;b\"; if ($1 > 5) print \"b\"}' x",
        "awk '{print $1\nif ($1 > 5) n++}' x",
        "awk '/x/ {print $1; if ($2 > 1) n++} END {print n}' x",
        "awk -F: '/x/ {print $1 \"/\" $2}' x",
        "gawk -v x=1 -e '{print x}' y",
    ];

    for line in doubtful {
        assert_eq!(judge(&approvals, line).action, Deny, "{line:?}");
    }
    for line in plain {
        assert_eq!(judge(&approvals, line).action, Auto, "{line:?}: {}", judge(&approvals, line).reason);
    }
}

/// A line that a model writes must not cost more than its length.
#[test]
fn judging_takes_time_in_proportion_to_the_line() {
    let openings = [
        "a=(",
        "a=(a=",
        "a=([x",
        "rm -r ",
        "rm -",
        "-r",
        "--x ",
        "nice -n 5 ",
        "git -c a=b ",
        "$((a=",
        "$((a=1,",
        "((i=0;",
        "[[ -v ",
        "[[ a -eq ",
        "sed 's/[/",
        "sed s/a/b/;",
        "sed 'ba;",
        "sed -e p ",
        "awk 'a",
        "awk '\"a;",
        "awk 'print/;",
        "awk ',\n",
        "declare a=",
        "read a ",
        "PAGER='",
        "PAGER=ls ",
        "PS4='$(",
        "env A=b ",
        "docker -x y ",
        "${!x",
        "${a:=",
        "python -W x ",
        "tar -I ",
        "test -v a ",
        "make SHELL=",
        "printf -v ",
        "{a[",
        "@(",
        "git rebase -x ",
        "git config set ",
        "git config --type ",
        "env A=$x ",
        "find {a,b} ",
        "declare 'a[$x]=1' ",
        "A='a b' ",
        "find -exec a ; ",
        "\\\n",
        "a\\\n",
        "a \\\n",
        "\"a\\\n",
    ];
    let approvals = approvals(
        Auto,
        &[("rm -rf*", Deny), ("docker push*", Ask), ("git push --force*", Ask), ("* -x *", Ask)],
    );
    let time = |line: &str| {
        let began = std::time::Instant::now();
        judge(&approvals, line);
        began.elapsed().as_secs_f64()
    };

    for opening in openings {
        // An even number of times, so that quotes are closed in both.
        let line = |bytes: usize| opening.repeat(bytes / opening.len() / 2 * 2);
        let (short, long) = (line(5_000), line(25_000));
        // A line that is five times as long may take five times the time, but not 25 times. Another process may get in the way of one try.
        let is_in_proportion = || time(&long) < 15.0 * time(&short).max(0.002);
        assert!((0..5).any(|_| is_in_proportion()), "{opening:?}");
    }
}
