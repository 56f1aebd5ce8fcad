use ApprovalAction::{Ask, Auto, Deny};

use super::*;

fn rule(tool: &str, command: &str, action: ApprovalAction) -> ToolApprovalRule {
    let command = (!command.is_empty()).then(|| command.to_owned());
    ToolApprovalRule { tool: tool.to_owned(), command, host: None, action }
}

fn approvals(default: ApprovalAction, rules: &[(&str, ApprovalAction)]) -> ApprovalPolicy {
    let rules = rules.iter().map(|(command, action)| rule("exec", command, *action)).collect();
    ApprovalPolicy::new(default, rules).unwrap()
}

fn judge(approvals: &ApprovalPolicy, line: &str) -> ApprovalVerdict {
    approvals.judge("exec", &serde_json::json!({ "command": line }).to_string())
}

/// P4
#[test]
fn a_rule_holds_for_a_command_however_it_is_written() {
    let approvals =
        approvals(Auto, &[("git push*", Ask), ("rm -rf *", Deny), ("sudo *", Ask), ("curl * | *", Deny)]);
    let table = [
        ("git push", Ask),
        ("git push origin main", Ask),
        ("git  push\torigin", Ask),
        ("git pull", Auto),
        ("git status; ls", Auto),
        ("git pushx", Ask),
        ("git -C dir push", Ask),
        ("git --no-pager -c a=b --git-dir=x --work-tree y -P push origin", Ask),
        ("/usr/bin/git -C dir push", Ask),
        ("env git -C dir push", Ask),
        ("git -C push pull", Auto),
        ("git --no-pager log push", Auto),
        ("echo git push", Auto),
        ("echo 'git push'", Auto),
        ("echo \"; git push\"", Auto),
        ("ls # git push", Auto),
        ("grep -r 'rm -rf /' .", Auto),
        ("make && git push", Ask),
        ("make || git push", Ask),
        ("make | git push", Ask),
        ("make & git push", Ask),
        ("git push &", Ask),
        ("(git push)", Ask),
        ("{ git push; }", Ask),
        ("if true; then git push; fi", Ask),
        ("for x in 1; do git push; done", Ask),
        ("f() { git push; }; f", Ask),
        ("case x in *) git push;; esac", Ask),
        ("echo $(git push)", Ask),
        ("echo `git push`", Ask),
        ("x=$(git push)", Ask),
        ("cat <(git push)", Ask),
        ("cat <<E\n$(git push)\nE", Ask),
        ("cat <<'E'\n$(git push)\nE", Auto),
        ("g\"i\"t pu\\sh", Ask),
        ("$'git' push", Ask),
        ("git \\\n push", Ask),
        ("/usr/bin/git push", Ask),
        ("../../usr/bin/git push", Ask),
        ("A=b git push", Ask),
        ("env -i A=b git push", Ask),
        ("timeout 5 nice git push", Ask),
        ("command git push", Ask),
        ("> log git push", Ask),
        ("sudo ls", Ask),
        ("/usr/bin/sudo -u bob ls", Ask),
        ("env sudo ls", Ask),
        ("bash -c 'git push'", Ask),
        ("bash -c \"bash -c 'git push'\"", Ask),
        ("eval 'git push'", Ask),
        ("echo x | xargs git push", Ask),
        ("find . -exec git push \\;", Ask),
        ("trap 'git push' EXIT", Ask),
        ("bash <<'E'\ngit push\nE", Ask),
        ("rm -rf build", Deny),
        ("rm -rf", Deny),
        ("rm -rf $HOME", Deny),
        ("rm -rf *.o", Deny),
        ("rm -r build", Auto),
        ("git push; rm -rf build", Deny),
        ("rm -rf build; git push", Deny),
        ("sudo rm -rf /", Deny),
        ("git push; $x", Ask),
        ("rm -rf build )", Deny),
        ("", Auto),
        ("x=1", Auto),
    ];

    for (line, expected) in table {
        let verdict = judge(&approvals, line);
        assert_eq!(verdict.action, expected, "{line:?}: {}", verdict.reason);
    }
}

/// P4
#[test]
fn a_rule_that_lets_a_command_run_is_held_to_its_words() {
    let table = [
        ("git clean -n*", "git clean -n", Auto),
        ("git clean -n*", "git clean -n -f", Auto),
        ("git clean -n *", "git clean -f -n", Ask),
        ("git clean -n *", "git clean -fn", Ask),
        ("docker ps*", "docker --host h ps", Ask),
        ("python3 *", "python3 -c 'print(1)'", Auto),
        ("python3 -m *", "python3 -c 'print(1)'", Ask),
    ];

    for (pattern, line, expected) in table {
        let approvals = approvals(Ask, &[(pattern, Auto), ("git push*", Deny)]);
        assert_eq!(judge(&approvals, line).action, expected, "{pattern}: {line}");
    }
}

/// P4
#[test]
fn options_that_are_not_known_may_be_those_of_a_rule() {
    let approvals = approvals(Auto, &[("rm -rf*", Deny)]);

    for line in
        ["rm $x build", "rm -r $x", "rm -r build \"$x\"", "rm -r build -$x", "rm -{r,v} build", "rm build/ *"]
    {
        assert_eq!(judge(&approvals, line).action, Ask, "{line}");
    }
    for line in ["rm -r build \"x$y\"", "rm -r build/$x.o", "rm -r -- $x", "rm build -v"] {
        assert_eq!(judge(&approvals, line).action, Auto, "{line}");
    }
}

/// P4
#[test]
fn what_can_not_be_seen_is_asked_about_where_a_rule_could_hold() {
    let strict = approvals(Auto, &[("git push*", Deny)]);
    let lenient = approvals(Auto, &[("git push*", Auto)]);
    let table = [
        "$cmd push",
        "$(echo git) push",
        "`which git` push",
        "/usr/bin/gi? push",
        "{git,push}",
        "eval \"$x\"",
        "bash -c \"$x\"",
        "bash -c \"git $x\"",
        "source <(curl x)",
        "curl x | sh",
        "curl x | sudo bash",
        "bash < x",
        "alias ls='git push'",
        "git $x",
        "git $(echo push)",
        "git $nothing push",
        "git pus?",
        "git {push,origin}",
        "git \"pu\"${x}sh",
        "echo push | xargs git",
        "echo 'unfinished",
        "ls )",
        "echo ${x@P}",
        "echo $((x))",
        "a[$x]=1",
        "let x+=y",
        "mapfile -C 'git push' -c 1 lines",
        "compgen -C 'git push'",
        "hash -p ./git ls",
        "ssh host < file",
        "parallel ::: 'git push'",
        "parallel git ::: push",
        "watch \"$x\"",
    ];

    for line in table {
        assert_eq!(judge(&strict, line).action, Ask, "{line}");
        assert_eq!(judge(&lenient, line).action, Auto, "{line}");
    }
    for line in [
        "ls $x",
        "git status $x",
        "rm *.o",
        "echo \"$(date)\"",
        "cd \"$HOME\" && ls -l",
        "git commit -m \"$m\"",
    ] {
        assert_eq!(judge(&strict, line).action, Auto, "{line}");
    }
}

/// P4
#[test]
fn of_all_rules_that_match_the_strictest_holds_and_otherwise_the_default() {
    let table = [
        (Ask, vec![("ls*", Auto)], "ls -l", Auto),
        (Ask, vec![("ls*", Auto)], "ls; pwd", Ask),
        (Ask, vec![("ls*", Auto)], "/bin/ls", Ask),
        (Ask, vec![("/bin/ls*", Auto)], "/bin/ls", Auto),
        (Ask, vec![("ls*", Auto)], "timeout 5 ls", Auto),
        (Ask, vec![("ls*", Auto)], "sudo ls", Ask),
        (Ask, vec![("ls*", Auto)], "bash -c ls", Ask),
        (Ask, vec![("ls*", Auto), ("bash -c *", Auto)], "bash -c ls", Auto),
        (Ask, vec![("ls*", Auto), ("bash -c *", Auto)], "bash -c 'ls; pwd'", Ask),
        (Deny, vec![("ls*", Auto)], "ls )", Deny),
        (Deny, vec![("ls*", Auto)], "$x", Deny),
        (Deny, vec![("*", Auto)], "$x", Auto),
        (Deny, vec![("ls*", Ask)], "", Deny),
        (Auto, vec![("git *", Ask), ("git push*", Deny)], "git push", Deny),
        (Auto, vec![("git push*", Deny), ("git *", Ask)], "git push", Deny),
        (Auto, vec![("git *", Ask), ("git status*", Auto)], "git status", Ask),
        (Auto, vec![("", Ask), ("ls", Auto)], "ls", Ask),
        (Auto, vec![("", Ask), ("ls", Deny)], "ls", Deny),
        (Auto, vec![("", Auto), ("ls", Deny)], "pwd", Auto),
        (Deny, vec![("", Auto)], "pwd; $x", Auto),
        (Auto, vec![("*/deploy.sh *", Ask)], "./scripts/deploy.sh prod", Ask),
        (Auto, vec![("*secret*", Deny)], "cat my.secret.txt", Deny),
        (Auto, vec![("git push ?", Ask)], "git push ab", Auto),
        (Auto, vec![("[ *", Ask)], "[ -f x ]", Ask),
    ];

    for (default, rules, line, expected) in table {
        let verdict = judge(&approvals(default, &rules), line);
        assert_eq!(verdict.action, expected, "{default:?} {rules:?} {line:?}: {}", verdict.reason);
    }
}

/// P4
#[test]
fn a_variable_in_front_of_a_command_is_plain_or_asked_about() {
    let lets_run = approvals(
        Ask,
        &["cargo test*", "npm test*", "ls*", "export *", "printf *", "read *", "unset *"]
            .map(|command| (command, Auto)),
    );
    let plain = [
        "RUST_LOG=debug cargo test",
        "RUST_BACKTRACE=1 CARGO_TERM_COLOR=never timeout 60 cargo test",
        "CI=1 npm test",
        "LC_ALL=C NO_COLOR=$x ls",
        "env LANG=C ls",
        "export TZ=UTC; ls",
        "n=3; ls $n",
        "printf -v line %s x; ls",
    ];
    let other = [
        "NODE_OPTIONS='--require ./x' npm test",
        "NODE_OPTIONS=x; npm test",
        "GOFLAGS=-toolexec=x ls",
        "LESS='+!x' ls",
        "RUSTFLAGS='-C linker=./x' cargo test",
        "CARGO_BUILD_RUSTC_WRAPPER=./x cargo test",
        "JDK_JAVA_OPTIONS=@x ls",
        "npm_config_script_shell=./x npm test",
        "npm_config_script_shell=./x; npm test",
        "LD_LIBRARY_PATH=. ls",
        "unheard_of=1 ls",
        "env 'un heard=1' ls",
        "export NODE_OPTIONS=x; npm test",
        "printf -v NODE_OPTIONS x; npm test",
        "printf -v 'NODE_OPTIONS[0]' x; npm test",
        "read NODE_OPTIONS; npm test",
        "unset PATH; ls",
        ": ${NODE_OPTIONS:=x}; npm test",
    ];

    for line in plain {
        let verdict = judge(&lets_run, line);
        assert_eq!(verdict.action, Auto, "{line}: {}", verdict.reason);
    }
    for line in other {
        assert_eq!(judge(&lets_run, line).action, Ask, "{line}");
    }
}

/// P4
#[test]
fn the_value_of_a_variable_is_read_as_a_command_and_has_to_be_a_plain_word() {
    let approvals = approvals(Auto, &[("git push*", Deny), ("touch*", Deny)]);
    let table = [
        ("CARGO_BUILD_RUSTC_WRAPPER=touch cargo build", Deny),
        ("UNHEARD_OF='git push' make", Deny),
        ("PAGER='git push'; git log", Deny),
        ("NODE_OPTIONS='--require ./x' npm test", Ask),
        ("NODE_OPTIONS=--require=./x npm test", Ask),
        ("GOFLAGS=-toolexec=x go build", Ask),
        ("LESS='+!x' less y", Ask),
        ("JDK_JAVA_OPTIONS=@x java y", Ask),
        ("RUSTFLAGS='-C linker=x' cargo build", Ask),
        ("UNHEARD_OF=\"$x\" make", Ask),
        ("UNHEARD_OF='a b'; export UNHEARD_OF; make", Ask),
        ("set -a; UNHEARD_OF='-x y'; make", Ask),
        ("set -o allexport; UNHEARD_OF='-x y'; make", Ask),
        ("DATABASE_URL=postgres://user@host/name cargo test", Auto),
        ("CC=clang PYTHON=python3 make", Auto),
        ("RUST_LOG='a=debug, b=info' cargo test", Auto),
        ("PATH=.:$PATH PYTHONPATH=\"$PWD/src\" pytest", Auto),
        ("DIR=$(mktemp -d); MESSAGE=\"it's (not) done\"; echo \"$DIR $MESSAGE\"", Auto),
        ("set -a; source .env; set +a; make", Auto),
    ];

    for (line, expected) in table {
        let verdict = judge(&approvals, line);
        assert_eq!(verdict.action, expected, "{line}: {}", verdict.reason);
    }
}

/// P4: an option that isn't known may have the next word as its value, and so the word behind that may be the command.
#[test]
fn a_command_behind_an_option_that_is_not_known_is_asked_about() {
    let approvals = approvals(Auto, &[("git push*", Deny)]);
    let table = [
        ("git config --comment get alias.p push", Ask),
        ("git config --default list alias.p push", Ask),
        ("git config --unheard-of get alias.p push", Ask),
        ("git config alias.p --get", Ask),
        ("git config set --comment get alias.p push", Ask),
        ("git config --rename-section user alias", Ask),
        ("git config --get alias.p", Auto),
        ("git config get alias.p", Auto),
        ("git config --comment x user.email y", Auto),
        ("git clone -c alias.p=push x", Ask),
        ("git clone -c user.name=x y", Auto),
        ("env --unheard-of x git push", Ask),
        ("sudo --unheard-of x git push", Ask),
        ("uv --unheard-of x run git push", Ask),
        ("uv run --unheard-of x git push", Ask),
        ("env -a x git push", Deny),
        ("uv --directory x run git push", Deny),
        ("git submodule --quiet foreach git push", Deny),
        ("env A=b -C x git push", Auto),
    ];

    for (line, expected) in table {
        let verdict = judge(&approvals, line);
        assert_eq!(verdict.action, expected, "{line}: {}", verdict.reason);
    }
}

/// Lines, and what becomes of them where the default asks.
const DOUBTFUL_LINES: &[(&str, ApprovalAction)] = &[
    ("ls -l > /dev/null 2>&1", Auto),
    ("ls &> /dev/null < in", Auto),
    ("ls 2> /dev/stderr >&2 2>&-", Auto),
    ("x=1; ls $x", Auto),
    ("cat=1 true", Ask),
    ("for f in a b; do ls $f; done", Auto),
    ("echo $((1 + 2)) ${x:0:2} ${#x}", Auto),
    ("for ((i = 0; i < 3; i++)); do ls; done", Auto),
    ("echo ${a[1]:-${b[2]}} ${a[@]} ${#a[*]} ${a[1]}", Auto),
    ("timeout 5 ls", Auto),
    ("git -C app log", Auto),
    ("git --no-pager log", Auto),
    ("./ls", Ask),
    ("/tmp/ls -l", Ask),
    ("/tmp/env ls", Ask),
    ("./timeout 5 ls", Ask),
    ("PATH=.:$PATH ls", Ask),
    ("LD_PRELOAD=./x.so ls", Ask),
    ("GIT_PAGER='sh -c id' git log", Ask),
    ("env LD_PRELOAD=./x.so ls", Ask),
    ("PATH=.; ls", Ask),
    ("for PATH in .; do ls; done", Ask),
    ("echo x >> .git/hooks/pre-commit", Ask),
    ("echo x &> file", Ask),
    ("echo x >& file", Ask),
    ("echo x > $file", Ask),
    ("echo x 1<> file", Ask),
    ("echo x >| file", Ask),
    ("{ ls; } > file", Ask),
    ("for x in 1; do ls; done > file", Ask),
    ("ls; > file", Ask),
    ("ls $(echo x > file)", Ask),
    ("echo ${x@P}", Ask),
    ("echo \"${x[0]@P}\"", Ask),
    ("echo $((x))", Ask),
    ("echo $(($1 + 1))", Ask),
    ("echo $[x]", Ask),
    ("echo ${a[$i]}", Ask),
    ("echo ${a:i}", Ask),
    ("a[x]=1; echo", Ask),
    ("((x)); echo", Ask),
    ("git -c core.pager=id log", Ask),
    ("git --exec-path=. log", Ask),
    ("git --config-env=core.pager=X log", Ask),
    ("env git -c core.pager=id log", Ask),
    ("git -c color.ui=never log", Auto),
    ("git -C $x log", Ask),
    ("git log --output=file", Ask),
    ("sort -k 2 file", Auto),
    ("sort -ofile file", Ask),
    ("find . -name '*.rs' -newer x", Auto),
    ("find . -fprintf file x", Ask),
    ("sed -n 's/a/b/p' file", Auto),
    ("sed -i.bak 's/a/b/' file", Ask),
    ("sed -f code.sed file", Ask),
    ("awk '$3 > 5 { print $1 }' file", Auto),
    ("awk '{ print $1 > \"file\" }' file", Ask),
    ("awk -f code.awk file", Ask),
    ("cargo test --config build.rustc-wrapper=./x", Ask),
    ("npm test --script-shell=./x", Ask),
    ("go test -run X ./...", Auto),
    ("go test -exec ./x", Ask),
    ("make CC=clang V=1 'CFLAGS=-O2 -g'", Auto),
    ("make CC='ls; id'", Ask),
    ("make X='$(shell id)'", Ask),
    ("sort --compress-program=\"$x\" file", Ask),
];

/// P4: what is let run in spite of the default is what it looks like, and does nothing beside.
#[test]
fn a_rule_lets_nothing_run_that_may_do_more_than_it_says() {
    let lets_run = [
        "ls*",
        "echo*",
        "git log*",
        "git *",
        "timeout *",
        "true",
        "sort*",
        "find*",
        "sed*",
        "awk*",
        "cargo test*",
        "npm test*",
        "go test*",
        "make*",
    ];
    let lets_run = lets_run.map(|command| (command, Auto));

    for (line, expected) in DOUBTFUL_LINES.iter().copied() {
        let verdict = judge(&approvals(Ask, &lets_run), line);
        assert_eq!(verdict.action, expected, "{line:?}: {}", verdict.reason);
        let refused = judge(&approvals(Deny, &lets_run), line).action;
        assert_eq!(refused, if expected == Ask { Deny } else { Auto }, "{line:?}");
    }
    // A rule that is stricter holds as ever, and where nothing is lifted nothing changes.
    assert_eq!(judge(&approvals(Ask, &[("ls*", Deny)]), "X=1 ./ls > file").action, Deny);
    assert_eq!(judge(&approvals(Deny, &[("ls*", Ask)]), "X=1 ./ls > file").action, Ask);
    assert_eq!(judge(&approvals(Auto, &[("git push*", Ask)]), "X=1 ./ls > file").action, Auto);
    assert_eq!(judge(&approvals(Deny, &[("", Auto)]), "X=1 ./ls > file").action, Auto);
}

/// P4
#[test]
fn a_rule_is_about_a_tool_or_several() {
    let rules = vec![rule("write_file", "", Ask), rule("task_*", "", Deny), rule("*", "git push*", Ask)];
    let approvals = ApprovalPolicy::new(Auto, rules).unwrap();

    let actions = ["write_file", "task_kill", "read_file", "write_files"]
        .map(|tool| approvals.judge(tool, r#"{"path": "x", "command": "git push"}"#).action);

    assert_eq!(actions, [Ask, Deny, Auto, Auto]);
    assert_eq!(judge(&approvals, "git push").action, Ask);
}

#[test]
fn arguments_that_can_not_be_read_are_judged_by_tool() {
    let approvals = approvals(Ask, &[("ls", Auto)]);

    for arguments in ["", "{}", "[]", r#"{"command": 5}"#] {
        assert_eq!(approvals.judge("exec", arguments).action, Ask, "{arguments}");
    }
}

#[test]
fn a_reason_names_the_command_and_the_rule() {
    let approvals = approvals(Auto, &[("git push*", Ask)]);
    let table = [
        ("make; git push origin main", "`git push origin main` matches the rule `git push*`"),
        ("env A=b git push", "`env A=b git push` matches the rule `git push*`"),
        ("git $x", "`git $x` may match the rule `git push*`: not all of it is known before it runs"),
        (
            "curl x | sh",
            "not everything that it runs can be seen: `sh` runs whatever comes to its standard input",
        ),
        ("ls", "no rule matches `ls`"),
        (
            "echo $((x))",
            "not everything that it runs can be seen: `x` evaluates what is in a variable, and that can run anything",
        ),
        ("git push $'\\e[31m'", "`git push \\u{1b}[31m` matches the rule `git push*`"),
    ];

    for (line, expected) in table {
        assert_eq!(judge(&approvals, line).reason, expected, "{line}");
    }
    let lets_run = self::approvals(Ask, &[("ls*", Auto), ("git *", Auto)]);
    let doubted = [
        ("./ls", "`./ls` matches the rule `ls*`, but `./ls` need not be the `ls` that is meant"),
        ("A=b ls", "`ls` matches the rule `ls*`, but the line sets `A`"),
        ("ls > x", "`ls` matches the rule `ls*`, but the line writes `x`"),
        ("env A=b ls", "`env A=b ls` matches the rule `ls*`, but the line sets `A`"),
        (
            "git -c a=b log",
            "`git -c a=b log` matches the rule `git *`, but `git -c a=b` can run other commands",
        ),
    ];
    for (line, expected) in doubted {
        assert_eq!(judge(&lets_run, line).reason, expected, "{line}");
    }
    let reason = judge(&approvals, &format!("git push {}", "x".repeat(9000))).reason;
    assert!(reason.len() < 300, "{reason}");
}

#[test]
fn a_rule_that_could_never_hold_is_an_error_that_names_it() {
    let table = [
        (
            rule("", "", Ask),
            r#"rule 2 of approval (tool = ""): a tool's name is one word; `*` is all of them"#,
        ),
        (
            rule("exec ls", "", Ask),
            r#"rule 2 of approval (tool = "exec ls"): a tool's name is one word; `*` is all of them"#,
        ),
        (
            rule("read_file", "git*", Ask),
            r#"rule 2 of approval (command = "git*"): only `exec` has commands, so this rule would never hold; leave `command` out"#,
        ),
        (
            rule("exec", " git", Ask),
            r#"rule 2 of approval (command = " git"): no command begins or ends with a space; take it away"#,
        ),
        (
            rule("exec", "   ", Ask),
            r#"rule 2 of approval (command = "   "): it is empty; `*` is every command, and so is leaving it out"#,
        ),
        (
            rule("exec", "git\tpush", Ask),
            r#"rule 2 of approval (command = "git\tpush"): it has a control character in it; words are separated by spaces"#,
        ),
    ];

    for (wrong, expected) in table {
        let error = ApprovalPolicy::new(Auto, vec![rule("exec", "ls", Ask), wrong]).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[path = "bash_tests.rs"]
mod bash_tests;
#[path = "doc_tests.rs"]
mod doc_tests;

/// P4: a rule of an earlier version goes on to hold when its tool has another name.
#[test]
fn a_rule_with_a_former_name_holds_for_the_tool_of_today() {
    let rules = vec![rule("task_wait", "", Ask), rule("history_*", "", Deny), rule("memory_read", "", Auto)];
    let approvals = ApprovalPolicy::new(Auto, rules).unwrap();

    let judged =
        ["task_output", "recall", "recall_read", "task_kill"].map(|tool| approvals.judge(tool, "{}").action);

    assert_eq!(judged, [Ask, Deny, Deny, Auto]);
}
