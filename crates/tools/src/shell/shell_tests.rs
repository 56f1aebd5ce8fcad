use std::path::Path;

use proptest::prelude::*;

use super::*;

/// The commands of a line as they are run in the end, one after the other, `?` for an unknown word.
fn seen(line: &str) -> String {
    let shown = |command: &ShellCommand| {
        let words = command.words().iter().map(|word| match word.kind {
            WordKind::Unknown | WordKind::Words => "?",
            WordKind::Literal | WordKind::Pattern => word.text.as_str(),
        });
        let words = words.collect::<Vec<_>>().join(" ");
        format!("{words}{}", if command.background { " &" } else { "" })
    };
    ShellScript::parse(line).commands.iter().map(shown).collect::<Vec<_>>().join(" | ")
}

#[track_caller]
fn assert_seen(table: &[(&str, &str)]) {
    for (line, expected) in table {
        assert_eq!(seen(line), *expected, "{line:?}: {:?}", ShellScript::parse(line));
        assert_eq!(ShellScript::parse(line).unseen, [], "{line:?}");
    }
}

#[test]
fn a_command_is_seen_wherever_it_stands() {
    assert_seen(&[
        ("a=(x)then ls y", "ls y"),
        ("", ""),
        ("  # only a comment", ""),
        ("git push", "git push"),
        ("git push # and a comment", "git push"),
        ("a; b && c || d\ne", "a | b | c | d | e"),
        ("a | b |& c", "a | b | c"),
        ("a & b", "a & | b"),
        ("a && b & c", "a & | b & | c"),
        ("! a; time -p b; time c", "a | b | c"),
        ("(a; b) & c", "a & | b & | c"),
        ("{ a; b; } & c", "a & | b & | c"),
        ("((a); (b))", "a | b"),
        ("if a; then b; elif c; then d; else e; fi; f", "a | b | c | d | e | f"),
        ("if a; then { b; } fi", "a | b"),
        ("if (a) then (b) fi", "a | b"),
        ("while a; do b; done; until c\ndo d\ndone", "a | b | c | d"),
        ("while a; do b; done & c", "a & | b & | c"),
        ("for x in 1 2 3; do a; done", "a"),
        ("for x in $(a) `b`\ndo c; done", "a | b | c"),
        ("for x; do a; done; for x do b; done", "a | b"),
        ("for ((i = 0; i < 3; i++)); do a; done", "a"),
        ("select x in a b; do c; done", "c"),
        ("case $x in a) b;; (c|d) e;& f) g ;; *) h; esac; i", "b | e | g | h | i"),
        ("case x in a) ;; esac", ""),
        ("echo $(case x in a) b;; esac)", "b | echo ?"),
        ("f() { a; }; g () ( b ); function h { c; }; function i() { d; }", "a | b | c | d"),
        ("f() if a; then b; fi", "a | b"),
        ("coproc a b", "a b &"),
        ("coproc NAME { a; }", "a &"),
        ("[[ $(a) == b && -n `c` ]] && d", "a | c | d"),
        ("[[ $x =~ ^(a|b)[0-9]+$ ]] || c", "c"),
        ("[ -f x ] && a", "[ -f x ] | a"),
        ("(( 1 < 2 )) && a", "a"),
        ("x=1", ""),
        ("x=$(a) y=`b`", "a | b"),
        ("x=1 y=2 a b=3", "a b=3"),
        ("x=(1 $(a) \"$(b)\" # c\n d) e", "a | b | e"),
        ("x[1 + 2]=3 a", "a"),
        ("declare -a x=(1 $(a))", "a | declare -a ?"),
        ("a <(b) >(c) 2> >(d)", "b | c | d | a ? ?"),
        ("a \"${x:-'$(b)'}\"", "b | a ?"),
        ("a \"${x#'\"'}\" b", "a ? b"),
        ("a ${ b; } ${| c; }", "b | c | a ? ?"),
        ("a `b \\`c\\``", "c | b ? | a ?"),
        ("a \"`b \\\"c d\\\"`\"", "b c d | a ?"),
        ("> out a 2>&1 b < in &> all >> more >| most c", "a b c"),
        ("a 3<>x b {fd}>y c", "a b c"),
        ("a <<< \"$(b)\"", "b | a"),
        ("a\r\nb", "a\r | b"),
    ]);
}

#[test]
fn what_a_command_prints_into_arithmetic_is_evaluated() {
    let table = [
        ("for ((i = 0; i < $(a); i++)) { b; }", "a | b"),
        ("((x = $(a))); b", "a | b"),
        ("x[$(a)]=1 b", "a | b"),
        ("x[\n$(a) + 1]=3 b", "a | b"),
        ("a $(b \"$(c)\") ${x:-$(d)} \"${y:-`e`}\" $((1 + $(f)))", "c | b ? | d | e | f | a ? ? ? ?"),
    ];

    for (line, expected) in table {
        assert_eq!(seen(line), expected, "{line:?}");
        assert!(
            matches!(ShellScript::parse(line).unseen.as_slice(), [UnseenReason::Evaluated(_)]),
            "{line:?}"
        );
    }
}

#[test]
fn a_here_document_is_text_in_which_only_what_is_expanded_runs() {
    assert_seen(&[
        ("cat <<E\ngit push $(a) `b` \\$(c)\nE\nd", "cat | a | b | d"),
        ("cat <<'E'\n$(a)\nE\nb", "cat | b"),
        ("cat <<\\E\n$(a)\nE\nb", "cat | b"),
        ("cat <<-E | a\n\t$(b)\n\tE\nc", "cat | a | b | c"),
        ("cat <<A <<B; a\n$(b)\nA\n$(c)\nB\nd", "cat | a | b | c | d"),
        ("cat <<E\n'$(a)' it's\nE\nb", "cat | a | b"),
        ("cat <<E\n$(a)", "cat | a"),
        ("if a; then cat <<E; b; fi\n$(c)\nE\nd", "a | cat | b | c | d"),
        ("x=$(cat <<E\n$(a)\nE\n); b", "cat | a | b"),
        ("bash <<'E'\ngit push\nE\na", "bash | git push | a"),
        ("bash -s <<E\ngit push\nE", "bash -s | git push"),
        ("sudo sh <<-E\n\tgit push\n\tE", "sudo sh | sh | git push"),
        ("bash <<E\ngit \\\n  push\nE\na", "bash | git push | a"),
        ("cat <<E\nRUN a && \\\n    b\nE\nc", "cat | c"),
        ("cat <<E\na\\\\\nE\nb", "cat | b"),
        ("cat <<-E\n\ta\\\n\tE\n\tE\nb", "cat | b"),
        ("cat <<'E'\na\\\nE\nb", "cat | b"),
        ("(cat <<E\nE)\nE\n); b", "cat | b"),
        ("x=$(cat <<EOF\n(a)\nEOF\n); b", "cat | b"),
        ("[[ a &&\n# c\nb ]]; d", "d"),
    ]);
}

#[test]
fn quotes_and_escapes_make_no_difference() {
    assert_seen(&[
        ("g\"i\"t pu\\sh", "git push"),
        ("'git' \"push\"", "git push"),
        ("\\git push", "git push"),
        ("$'git' $'pu\\x73h' $'a\\'b\\u00e9\\101'", "git push a'b\u{e9}A"),
        ("$\"git\" push", "git push"),
        ("echo 'git push; $(a) `b`'", "echo git push; $(a) `b`"),
        ("echo \"git push; \\$(a) \\`b\\`\"", "echo git push; $(a) `b`"),
        ("echo \\$", "echo $"),
        ("echo a#b", "echo a#b"),
        ("echo $ a$ \"$\"", "echo $ a$ $"),
        ("echo \"a\\b\"", "echo a\\b"),
        ("echo ''", "echo "),
    ]);
}

#[test]
fn a_continued_line_between_words_makes_no_difference() {
    assert_seen(&[
        ("a \\\n  --b \\\n  c", "a --b c"),
        ("a b\\\n  c", "a b c"),
        ("\\\na \\\n\\\nb \\\n", "a b"),
        ("a &&\\\nb ||\\\n  c |\\\nd", "a | b | c | d"),
        ("(\\\na; b)", "a | b"),
        ("if a; then\\\n  b; fi", "a | b"),
        ("a \"b\\\nc \\\n$(d)\"", "d | a ?"),
        ("a 'b\\\nc'", "a b\\\nc"),
        ("a # b\\\nc", "a | c"),
        ("cat <<'E'\na\\\nE\nb", "cat | b"),
        ("cat <<E\na \\\n  && b\nE\nc", "cat | c"),
    ]);
}

#[test]
fn a_continued_line_inside_of_a_token_is_said_and_read_on() {
    let line = "git pu\\\nsh; sleep 100";

    let script = ShellScript::parse(line);

    assert_eq!(seen(line), "git push | sleep 100");
    assert_eq!(script.unseen, [UnseenReason::JoinedLines]);
    assert!(script.is_cut_short());
    assert!(long_sleep(line).is_some());
}

#[test]
fn wrappers_are_looked_through() {
    assert_seen(&[
        ("env git push", "git push"),
        ("env -i -u X --unset=Y --chdir / A=b TZ=\"$d\" git push", "git push"),
        ("env - A=b git push", "git push"),
        ("env -S 'git push' origin", "env -S git push origin | git push origin"),
        ("env -iS'A=b git push'", "env -iSA=b git push | git push"),
        ("env", "env"),
        ("/usr/bin/env /usr/bin/git push", "/usr/bin/git push"),
        ("nohup git push &", "git push &"),
        ("nice git push; nice -n 5 git push; nice -5 git push", "git push | git push | git push"),
        ("timeout 5 git push; timeout -k 1 -s KILL 5 git push", "git push | git push"),
        ("timeout --signal=KILL --kill-after \"$T\" 5 git push", "git push"),
        ("/usr/bin/time -f %e git push; command time -v git push", "git push | git push"),
        ("exec git push; exec -c git push; exec > log", "git push | git push | exec"),
        (
            "command git push; command -p git push; builtin eval 'git push'",
            "git push | git push | eval git push | git push",
        ),
        ("command -v git", "command -v git"),
        ("stdbuf -oL -e 0 git push; setsid -w git push", "git push | git push"),
        ("busybox sleep 5", "sleep 5"),
        ("nice env A=b timeout 5 git push", "git push"),
        ("sudo git push", "sudo git push | git push"),
        ("sudo -u bob -E A=b git push", "sudo -u bob -E A=b git push | git push"),
        ("sudo --user bob -- git push", "sudo --user bob -- git push | git push"),
        ("sudo -nu bob git push", "sudo -nu bob git push | git push"),
        ("sudo -l", "sudo -l"),
        ("a | xargs -n 1 git push", "a | xargs -n 1 git push | git push ?"),
        ("a | xargs -I% -P4 git % x%", "a | xargs -I% -P4 git % x% | git ? ?"),
        ("a | xargs", "a | xargs"),
        ("a | xargs sed -i s/a/b/", "a | xargs sed -i s/a/b/ | sed -i s/a/b/ ?"),
        ("a | xargs tar cf x --", "a | xargs tar cf x -- | tar cf x -- ?"),
        ("a | xargs -I{} tar xf {}", "a | xargs -I{} tar xf {} | tar xf ?"),
        ("find src/* -name *.rs", "find src/* -name *.rs"),
        (
            "find . -exec grep \"$x\" {} + -o -exec cp {} \"$y\" \\;",
            "find . -exec grep ? {} + -o -exec cp {} ? ; | grep ? ? | cp ? ?",
        ),
        (
            "find . -name x -exec git add {} + -o -execdir rm -f {} \\;",
            "find . -name x -exec git add {} + -o -execdir rm -f {} ; | git add ? | rm -f ?",
        ),
        ("bash -c 'git push; a'", "bash -c git push; a | git push | a"),
        ("bash -lc 'git push' x y", "bash -lc git push x y | git push"),
        ("sh -e -o pipefail -c 'git push'", "sh -e -o pipefail -c git push | git push"),
        ("bash -c 'sh -c \"git push\"'", "bash -c sh -c \"git push\" | sh -c git push | git push"),
        ("bash <<< 'git push'", "bash | git push"),
        ("bash script.sh -c 'git push'", "bash script.sh -c git push"),
        ("eval 'git push'; eval git push", "eval git push | git push | eval git push | git push"),
        ("trap 'git push' EXIT; trap - EXIT", "trap git push EXIT | git push | trap - EXIT"),
        ("su -c 'git push' bob", "su -c git push bob | git push"),
        ("(bash -c 'a; b') &", "bash -c a; b & | a & | b &"),
        ("source venv/bin/activate; . ./x", "source venv/bin/activate | . ./x"),
    ]);
}

#[test]
fn programs_that_start_others_are_looked_through() {
    let table = [
        "watch -n 1 git push",
        "watch 'true; git push'",
        "watch -x git push",
        "flock /tmp/lock git push",
        "flock -w 5 -n lock -c 'git push'",
        "script -qc 'git push' /dev/null",
        "script log -c 'git push'",
        "script --command='git push'",
        "script -q log -- git push",
        "strace -f -e trace=file -o log git push",
        "ltrace -S git push",
        "taskset -c 0,1 git push",
        "taskset 0x3 git push",
        "chrt -f 50 git push",
        "setpriv --reuid 1000 --no-new-privs git push",
        "prlimit --nofile=100 git push",
        "unshare -rn git push",
        "unshare --root dir git push",
        "sg users -c 'git push'",
        "sg users 'git push'",
        "npx -p pkg -c 'git push'",
        "npx --call 'git push'",
        "parallel -j 4 git push ::: a b",
        "parallel 'cd {}; git push' ::: a b",
        "ssh host git push",
        "ssh -p 22 -o A=b me@host -t 'cd app; git push'",
        "su -lc 'git push'",
        "su bob -c 'git push'",
    ];

    for line in table {
        let commands = ShellScript::parse(line).commands;
        let is_push = |command: &ShellCommand| {
            let words: Vec<&str> = command.words().iter().map(|word| word.text.as_str()).collect();
            words.starts_with(&["git", "push"])
        };
        assert!(commands.iter().any(is_push), "{line}: {commands:?}");
        assert!(commands.len() > 1, "{line}: a command of its own, too");
    }
    assert_seen(&[
        ("ssh -N -L 1:h:1 host", "ssh -N -L 1:h:1 host"),
        ("npx tsc -c x", "npx tsc -c x"),
        ("hash -r", "hash -r"),
        ("ssh-agent -s", "ssh-agent -s"),
        ("valgrind --leak-check=full ./a -b", "valgrind --leak-check=full ./a -b | ./a -b"),
        ("perf record -g -o x ./a", "perf record -g -o x ./a | ./a"),
    ]);
}

#[test]
fn sed_and_awk_that_run_nothing_are_not_asked_about() {
    let lines = [
        "sed ':a;N;$!ba;s/\\n/ /g' x",
        "sed -e :a -e '$!{N;ba}' -e 's/x/y/' x",
        "sed ':a\ns/^\\(.*\\)x/\\1/\nta' x",
        "sed '/a/b end ; s/b/c/; :end' x",
        "sed '/a/{s/b/c/;t}; p' x",
        "sed '/a/{ b end }\ns/b/c/' x",
        "sed '1i # header\n/a/a text' x",
        "sed 's/a/b\\\nc/' x",
        "sed '/x/r file' x",
    ];

    for line in lines {
        assert_eq!(ShellScript::parse(line).unseen, [], "{line:?}");
    }
}

#[test]
fn what_a_command_is_behind_is_kept() {
    let script = ShellScript::parse("env A=b nice /bin/git push");

    let forms: Vec<String> = script.commands[0]
        .forms
        .iter()
        .map(|form| form.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(forms, ["env A=b nice /bin/git push", "nice /bin/git push", "/bin/git push"]);
}

#[test]
fn what_can_not_be_seen_is_said() {
    let text = |text: &str| vec![UnseenReason::Text(text.to_owned())];
    let name = |name: &str| vec![UnseenReason::Name(name.to_owned())];
    let input = |shell: &str| vec![UnseenReason::Input(shell.to_owned())];
    let code = |code: &str| vec![UnseenReason::Code(code.to_owned())];
    let deep = "nice ".repeat(40);
    let table = [
        ("$cmd push", name("$cmd")),
        ("$(which git) push", name("$(which git)")),
        ("`x`", name("`x`")),
        ("/usr/bin/gi? push", name("/usr/bin/gi?")),
        ("{git,push}", name("{git,push}")),
        ("env $x", name("$x")),
        ("sudo \"$@\"", name("\"$@\"")),
        ("$'git\\0' push", name("$'git\\0'")),
        ("eval \"$x\"", text("\"$x\"")),
        ("eval git $x", text("git $x")),
        ("bash -c \"$x\"", text("\"$x\"")),
        ("bash $x", text("$x")),
        ("bash <(curl x)", text("<(curl x)")),
        ("source $x", text("$x")),
        (". <(curl x)", text("<(curl x)")),
        ("bash <<E\ngit $x\nE", text("git $x\n")),
        ("bash <<< \"$x\"", text("\"$x\"")),
        ("trap \"$x\" EXIT", text("\"$x\"")),
        ("curl x | sh", input("sh")),
        ("curl x | sudo bash -s -- y", input("bash")),
        ("curl x | bash /dev/stdin", input("bash")),
        ("bash < x", input("bash")),
        ("fish --command 'git push'", code("fish --command git push")),
        ("fish -C 'git push' x", code("fish -C git push x")),
        ("zsh --emulate sh x", code("zsh --emulate sh x")),
        ("exec -a git-push git", code("exec -a git-push git")),
        ("zsh -c 'noglob git push'", code("zsh -c noglob git push")),
        ("fish -c 'and git push'", code("fish -c and git push")),
        ("setarch x86_64 git push", code("setarch x86_64 git push")),
        ("hyperfine 'git push'", code("hyperfine git push")),
        ("fakeroot -l ./x.so ls", code("fakeroot -l ./x.so ls")),
        ("alias ls=x", vec![UnseenReason::Alias]),
        ("ssh host", input("ssh")),
        ("script log", input("script")),
        ("parallel", input("parallel")),
        ("echo $((x + 1))", vec![UnseenReason::Evaluated("x + 1".to_owned())]),
        ("echo ${x@P}", vec![UnseenReason::Evaluated("${x@P}".to_owned())]),
        ("x[1 + y[1]]=3", vec![UnseenReason::Evaluated("1 + y[1]".to_owned())]),
        ("git push )", vec![UnseenReason::Syntax]),
        ("echo 'git push", vec![UnseenReason::Syntax]),
        ("echo $(git push", vec![UnseenReason::Syntax]),
        ("if a; then b", vec![UnseenReason::Syntax]),
        ("a; ; b", vec![UnseenReason::Syntax]),
        ("a\nreboot\\", vec![UnseenReason::JoinedLines]),
        ("&& a", vec![UnseenReason::Syntax]),
        ("bash -c 'a )'", vec![UnseenReason::Syntax]),
        (&deep, vec![UnseenReason::TooDeep]),
    ];

    for (line, expected) in table {
        assert_eq!(ShellScript::parse(line).unseen, expected, "{line:?}");
    }
    assert_eq!(ShellScript::parse(&"a".repeat(MAX_LINE_BYTES + 1)).unseen, [UnseenReason::TooLong]);
}

#[test]
fn what_stands_before_a_mistake_is_seen() {
    assert_eq!(seen("git push\n)"), "git push");
    assert!(ShellScript::parse("git push\n)").is_cut_short());
}

/// What bash really runs of a line: each command that isn't there is logged, and no program is there.
fn run_by_bash(line: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "command_not_found_handle() {{ printf '%s\\0' \"$1\" >> log; return 1; }}\nPATH=/nowhere\n{line}"
    );
    let bash = ["/bin/bash", "/usr/bin/bash"].into_iter().find(|bash| Path::new(bash).exists()).unwrap();
    let output = std::process::Command::new("timeout")
        .args(["2", bash, "-c", &script])
        .current_dir(&folder)
        .stdin(std::process::Stdio::null())
        .output();
    output.unwrap();
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
    log.split_terminator('\0').map(str::to_owned).collect()
}

#[track_caller]
fn assert_that_bash_runs_nothing_else(line: &str) -> usize {
    let script = ShellScript::parse(line);
    let names: Vec<&str> =
        script.commands.iter().filter_map(|command| command.words()[0].program()).collect();
    let run = run_by_bash(line);
    for name in &run {
        assert!(
            !script.unseen.is_empty() || names.contains(&name.as_str()),
            "{name:?} of {line:?}: {names:?}"
        );
    }
    run.len()
}

#[test]
fn bash_runs_nothing_else() {
    let lines = [
        "a1; b1 && c1 || d1 | e1",
        "((a1); (b1))",
        "if (a1) then (b1) fi",
        "f() if a1; then b1; fi; f",
        "for x in 1; do a1 $(b1); done",
        "case x in (y|x) a1;& z) b1;; esac",
        "echo $(case x in x) a1;; esac)",
        "x[1 + 2]=3 a1",
        "x=(1 $(a1) \"`b1`\") c1",
        "cat <<E\n$(a1) `b1` '$(c1)' \\$(d1)\nE\ne1",
        "echo \"${x:-'$(a1)'}\" \"${x#'\"'}\"; b1",
        "echo `echo \\`a1\\``",
        "a1 <(b1) > >(c1)",
        "echo ${x:-$(a1 \"$(b1)\")} $((1 + $(c1; echo 1))) $[2 + $(d1; echo 2)]",
        "a\\\n1 x",
        "$'\\x61\\061'",
        "{ a1; } 2> x; b1 >x 2>&1 & wait",
        "eval 'a1; eval \"b1\"'; trap c1 EXIT",
        "time a1; ! b1 | c1",
        "coproc a1; wait; coproc N { b1; }; wait",
        "[[ $(a1) == b && x ]] || b1",
        "git() { a1; }; git push # b1",
        "a1 {fd}>x; b1 2>x; c1 <<<\"$(d1)\"",
        "while a1; do b1; done; select x in 1; do c1; done",
        "(a1)|(b1)&&c1;{ d1;}",
        "for ((i = $(a1; echo 0); i < 1; i++)) { b1; }",
        "x=$(cat <<E\n$(a1)\nE\n); b1",
        "x[ $(a1; echo 1) ]=3 b1",
        "declare -a x=($(a1)); b1",
    ];

    for line in lines {
        assert_ne!(assert_that_bash_runs_nothing_else(line), 0, "{line}");
    }
}

#[test]
fn nothing_is_too_deep_or_too_long_to_be_looked_at() {
    let openings = [
        "(",
        "((",
        "( ",
        "$(",
        "$((",
        "${a:-",
        "${a[",
        "`",
        "\\`",
        "{ ",
        "if ",
        "while ",
        "case x in x) ",
        "a <(",
        "\"$(",
        "\"${a:-",
        "a=(",
        "a=(a=",
        "@(",
        "[[ ( ",
        "! ",
        "time ",
        "coproc ",
        "function f ",
        "f() ",
        "eval ",
        "sudo ",
        "env ",
        "bash -c '",
        "$[",
        "a <<E\n",
        "a <<E; ",
        "a[",
        "a[ ",
        "\\",
        "'",
        "\"",
        "$'",
        "xargs ",
        "find -exec ",
        "${ ",
        "x=$(cat <<E\n",
        "{",
        "[",
        "a; ",
        "a|",
        "a&&",
        ";;",
    ];

    for opening in openings {
        for times in [60, 2_000, MAX_LINE_BYTES / opening.len(), 100_000] {
            let line = opening.repeat(times);
            ShellScript::parse(&line);
        }
    }
    ShellScript::parse(&"a ".repeat(500_000));
    ShellScript::parse(&format!("cat <<E\n{}\nE", "line $(a)\n".repeat(20_000)));
}

proptest! {
    #[test]
    fn no_text_is_too_strange(line in any::<String>()) {
        ShellScript::parse(&line);
    }

    #[test]
    fn no_heap_of_syntax_is_too_strange(
        parts in proptest::collection::vec(
            proptest::sample::select(vec![
                "(", ")", "((", "))", "$(", "${", "}", "{", "`", "'", "\"", "\\", "\n", "<<E", "E\n", "<<<", "<(", "&", "&&", "|", ";", ";;",
                "if ", "then ", "fi ", "for ", "in ", "do ", "done ", "case ", "esac ", "x", "=", "a=(", "[", "]", "$", "#", " ", "[[ ", " ]]",
                "eval ", "bash -c ", "env ", "sudo ", "xargs ", "$'", "\\x", "é", "*", "?", "@(", "function ", "coproc ", "time ", "! ", "2>",
            ]),
            0..60,
        )
    ) {
        ShellScript::parse(&parts.concat());
    }

    #[test]
    fn bash_runs_nothing_else_of_a_heap_of_syntax(
        parts in proptest::collection::vec(
            proptest::sample::select(vec![
                "(", ")", "((", "))", "$(", "${x:-", "}", "{ ", "`", "'", "\"", "\\", "\n", "<<E\n", "\nE\n", "<<<", "<(", "&", "&&", "|", ";", ";;",
                "if ", "then ", "fi ", "for x in ", "do ", "done ", "case x in x) ", "esac ", "x=", "a=(", "[[ ", " ]]", "$((", "x[",
                "a1 ", "b1 ", "c1 ", "d1;", "e1\n", "f1", "#", " ", "eval ", "2>x ", "! ", "f() ", "${x#", ")", "\"$(", ")\"", "$'", "]=", "\\\n", "E\\\n", "E)\n", "$",
            ]),
            1..14,
        )
    ) {
        assert_that_bash_runs_nothing_else(&parts.concat());
    }

    #[test]
    fn what_is_quoted_for_echo_is_only_shown(text in "[^'\0]*") {
        let line = format!("echo '{text}'");
        prop_assert_eq!(seen(&line), format!("echo {text}"));
        prop_assert_eq!(long_sleep(&line), None);
    }
}
