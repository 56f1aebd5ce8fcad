//! Programs that run commands and have a syntax of their own: `ssh`, `flock`, `parallel`.

use super::getopt::{OptionSpec, is_listed, parse_options};
use super::wrappers::{
    InnerCommand, command_behind_options, find_wrapper, join_words, separate_command, text_of, unseen_code,
};
use crate::shell::{ShellWord, UnseenReason, WordKind};

/// Programs that run the words after their options and operands as a separate command, and do nothing else with them.
pub(super) const LAUNCHERS: &str = "
    pkexec | 0 | u: | user: disable-internal-agent keep-cwd;
    ltrace | 0 | A:a:bCcD:e:F:fhiLl:n:o:p:rSs:Ttu:Vw:x: | align: config: debug: demangle indent: library:
        output: no-signals where:;
    setpriv | 0 | d | dump nnp no-new-privs list-caps keep-groups clear-groups init-groups reset-env ruid:
        euid: reuid: rgid: egid: regid: groups: inh-caps: ambient-caps: bounding-set: securebits: pdeathsig:
        selinux-label: apparmor-profile:;
    unshare | 0 | CcfG:iml:npR:rS:TUuw: | mount:: uts:: ipc:: net:: pid:: user:: cgroup:: time:: fork
        mount-proc:: map-root-user map-current-user map-auto keep-caps kill-child:: root: wd: setuid:
        setgid: propagation: setgroups: map-user: map-group: map-users: map-groups: monotonic: boottime:;
    taskset | 1 | acp | all-tasks cpu-list pid;
    chrt | 1 | abdfimoprvRT:P:D: | all-tasks batch deadline fifo idle other rr max pid reset-on-fork verbose
        sched-runtime: sched-period: sched-deadline:;
    prlimit | 0 | p:o:c::d::e::f::i::l::m::n::q::r::s::t::u::v::x::y:: | pid: output: noheadings raw verbose
        core:: data:: nice:: fsize:: sigpending:: memlock:: rss:: nofile:: msgqueue:: rtprio:: stack:: cpu::
        nproc:: as:: locks:: rttime::;
    chroot | 1 | | groups: userspec: skip-chdir;
    systemd-run | 0 | p:M:u:E:H:dGPqrSt | property: unit: slice: machine: host: setenv: description: uid:
        gid: nice: service-type: working-directory: user system scope pty pipe quiet collect wait shell
        no-block same-dir remain-after-exit on-active: on-calendar:;
    nsenter | 0 | aC::Fi::m::n::p::r::S:G:T::t:U::u::w::Z | all target: setuid: setgid: mount:: uts:: ipc::
        net:: pid:: cgroup:: user:: time:: root:: wd:: no-fork preserve-credentials follow-context env;
";
const WATCH_OPTIONS: OptionSpec = OptionSpec::leading(
    "bCcd::eghn:pq:rtwx",
    "beep color no-color differences:: errexit chgexit interval: precise equexit: no-rerun no-title no-wrap exec",
);
const FLOCK_OPTIONS: OptionSpec = OptionSpec::leading(
    "sexnuw:oE:F",
    "shared exclusive nonblock nb unlock timeout: wait: close conflict-exit-code: no-fork verbose",
);
const STRACE_OPTIONS: OptionSpec = OptionSpec::leading(
    "a:b:CcDdE:e:FfhI:iknO:o:P:p:qrS:s:TtU:u:vVwX:xyYzZ",
    "attach: env: output: trace: trace-path: user: string-limit: follow-forks output-separately summary summary-only seccomp-bpf \
     quiet:: timestamps:: syscall-times:: relative-timestamps:: decode-fds:: decode-pids:: columns: abbrev: verbose: raw: signal: \
     status: inject: fault: daemonize:: interruptible: no-abbrev stack-traces successful-only failed-only tips::",
);
const PARALLEL_OPTIONS: OptionSpec = OptionSpec::leading(
    "0a:C:D:d:E:I:i::J:j:kL:l::M:mN:n:P:pqrS:s:tuvX",
    "jobs: arg-file: colsep: delimiter: max-args: max-procs: joblog: results: delay: timeout: retries: sshlogin: workdir: tmpdir: \
     halt: load: memfree: block: tagstring: env: keep-order null quote tag line-buffer ungroup group dry-run bar progress eta \
     no-run-if-empty will-cite verbose pipe shuf silent xargs",
);
const SSH_OPTIONS: OptionSpec =
    OptionSpec::leading("46AaB:b:Cc:D:E:e:F:fGgI:i:J:KkL:l:Mm:NnO:o:P:p:Q:qR:S:sTtVvW:w:XxYy", "");
pub(super) const SU_OPTIONS: OptionSpec = OptionSpec::permuted(
    "-lmpfPg:G:s:w:c:u:T",
    "login preserve-environment fast pty no-pty group: supp-group: shell: whitelist-environment: command: session-command: user:",
);
const SCRIPT_OPTIONS: OptionSpec = OptionSpec::permuted(
    "aefqc:B:E:I:O:T:m:o:t::",
    "append return flush force quiet command: log-in: log-out: log-io: log-timing: logging-format: output-limit: echo: timing::",
);
const PERF_OPTIONS: OptionSpec = OptionSpec::leading(
    "aBbC:c:D:de:F:gI:ij:o:p:qr:sTt:uvx:",
    "all-cpus call-graph: event: output: repeat: quiet verbose pid: cpu: freq: interval-print: detailed",
);
/// Programs that run their arguments. They are too rare for a list of their options.
const OTHER_LAUNCHERS: &str = "setarch linux32 linux64 i386 x86_64 numactl choom firejail bwrap proot unbuffer rlwrap proxychains \
    proxychains4 torsocks torify gosu su-exec tini dumb-init chpst setuidgid envuidgid softlimit envdir start-stop-daemon daemonize \
    hyperfine entr catchsegv capsh sem ssh-agent gpg-agent debconf ld.so";
const NPM_OPTIONS: OptionSpec = OptionSpec::partial("c:", "call:");
/// The words that `parallel` replaces with its arguments.
const PARALLEL_PLACEHOLDERS: [&str; 9] = ["{}", "{.}", "{/}", "{//}", "{/.}", "{#}", "{%}", "{1}", "{2}"];

/// What the program runs, if it is a launcher.
pub(super) fn launched_command(program: &str, words: &[ShellWord]) -> Option<InnerCommand> {
    if let Some(launcher) = find_wrapper(LAUNCHERS, program) {
        return Some(separate_command(words, &launcher.options, launcher.operands));
    }
    let arguments = &words[1..];
    let has = |letters: &str| letters.chars().any(|letter| has_option(arguments, letter));
    let may_have = |letters: &str| has(letters) || arguments.iter().any(ShellWord::may_be_option);
    Some(match program {
        "strace" => strace(words),
        "watch" => watch(words),
        "flock" => flock(words),
        "script" => match text_of_c_option(arguments, &SCRIPT_OPTIONS) {
            Some(text) => text,
            None => behind_dashes(arguments).unwrap_or(InnerCommand::Input(program.to_owned())),
        },
        "sg" => text_of_c_option(arguments, &SU_OPTIONS)
            .or_else(|| arguments.get(1).map(one_text))
            .unwrap_or(InnerCommand::Nothing),
        "runuser" => text_of_c_option(arguments, &SU_OPTIONS).unwrap_or_else(|| {
            separate_command(
                words,
                &OptionSpec::leading("-lmpfPg:G:s:w:u:T", "user: group: supp-group: login pty"),
                0,
            )
        }),
        "npm" | "pnpm" | "yarn"
            if arguments.iter().any(|word| ["exec", "x", "dlx"].contains(&word.text.as_str())) =>
        {
            text_of_c_option(arguments, &NPM_OPTIONS).unwrap_or(InnerCommand::Nothing)
        }
        "npx" => {
            // Options after the name of a package are for the package.
            let options =
                OptionSpec::leading("c:p:w:yq", "call: package: workspace: yes no quiet workspaces");
            text_of_c_option(arguments, &options).unwrap_or(InnerCommand::Nothing)
        }
        "parallel" => parallel(words),
        "ssh" => ssh(words),
        "mapfile" | "readarray" if may_have("C") => unseen_code(words),
        "compgen" | "complete" if may_have("CFW") => unseen_code(words),
        "hash" if may_have("p") => unseen_code(words),
        "bind" if may_have("x") => unseen_code(words),
        "enable" if may_have("f") => unseen_code(words),
        "fc" if !has("l") => unseen_code(words),
        "newgrp" => InnerCommand::Input(program.to_owned()),
        program
            if program.starts_with("ld-linux")
                || is_listed(OTHER_LAUNCHERS, program)
                    && arguments.iter().any(|word| !word.text.starts_with('-')) =>
        {
            unseen_code(words)
        }
        // Values are attached to its options.
        "valgrind" => {
            let options = arguments.iter().take_while(|word| word.text.starts_with('-')).count();
            match &arguments[options..] {
                [] => InnerCommand::Nothing,
                command => InnerCommand::Own(vec![command.to_vec()]),
            }
        }
        "perf"
            if arguments
                .first()
                .is_some_and(|word| matches!(word.text.as_str(), "stat" | "record" | "trace")) =>
        {
            separate_command(arguments, &PERF_OPTIONS, 0)
        }
        "jobs" if has("x") => separate_command(words, &OptionSpec::leading("lnprsx", ""), 0),
        "jobs" if may_have("x") => unseen_code(words),
        "set" | "shopt" if changes_parsing(arguments) => unseen_code(words),
        _ => return None,
    })
}

/// Whether these options of `set`, `shopt` or a shell change how it reads the commands that follow: with history expansion, with
/// variables among the arguments, with every variable exported, or without comments. [`super::builtins`] handles `set -a`.
pub(super) fn changes_parsing(options: &[ShellWord]) -> bool {
    let is_end = |word: &&ShellWord| word.text == "--" || word.text == "-";
    let changes = |word: &ShellWord| match word.literal() {
        Some(text) if text.starts_with('-') => text.contains(['H', 'k']),
        Some(text) => matches!(text, "histexpand" | "keyword" | "interactive_comments"),
        None => word.may_be_option(),
    };
    options.iter().take_while(|word| !is_end(word)).any(changes)
}

/// `strace` pipes its output into a command if the name of the output file begins with `|` or `!`.
fn strace(words: &[ShellWord]) -> InnerCommand {
    let parsed = parse_options(&words[1..], &STRACE_OPTIONS);
    let is_file = |name: &ShellWord| match name.literal() {
        Some(name) => !name.starts_with(['|', '!']),
        None => !name.certain_beginning().is_empty(),
    };
    match parsed.values("o output").all(is_file) {
        true => separate_command(words, &STRACE_OPTIONS, 0),
        false => unseen_code(words),
    }
}

/// The text after `-c`, `--command` or `--call`.
pub(super) fn text_of_c_option(arguments: &[ShellWord], options: &OptionSpec) -> Option<InnerCommand> {
    let parsed = parse_options(arguments, options);
    parsed.values("c command session-command call").next().map(one_text)
}

/// `watch` runs its words as one text, or as separate words with `-x`.
fn watch(words: &[ShellWord]) -> InnerCommand {
    match command_behind_options(words, &WATCH_OPTIONS, 0) {
        None => unseen_code(words),
        Some((_, [])) => InnerCommand::Nothing,
        Some((parsed, command)) if parsed.has("x exec") => InnerCommand::Own(vec![command.to_vec()]),
        Some((_, command)) => text_of(command),
    }
}

/// `flock` takes a file and a command, or a file, `-c` and a text. A number alone is a descriptor.
fn flock(words: &[ShellWord]) -> InnerCommand {
    match command_behind_options(words, &FLOCK_OPTIONS, 1) {
        None => unseen_code(words),
        Some((_, [])) => InnerCommand::Nothing,
        Some((_, [option, text, ..])) if matches!(option.text.as_str(), "-c" | "--command") => one_text(text),
        Some((_, command)) => InnerCommand::Own(vec![command.to_vec()]),
    }
}

/// The words of `parallel` are a text to which it adds arguments that are known only at run time. Without words it runs the arguments.
fn parallel(words: &[ShellWord]) -> InnerCommand {
    let Some((_, rest)) = command_behind_options(words, &PARALLEL_OPTIONS, 0) else {
        return unseen_code(words);
    };
    let is_source = |word: &ShellWord| word.text.starts_with(":::");
    let end = rest.iter().position(is_source).unwrap_or(rest.len());
    let (command, sources) = rest.split_at(end);
    if command.is_empty() {
        return match sources {
            [] => InnerCommand::Input(words[0].text.clone()),
            _ => InnerCommand::Unseen(UnseenReason::Text(join_words(sources))),
        };
    }
    if command.iter().any(|word| word.kind >= WordKind::Unknown) {
        return InnerCommand::Unseen(UnseenReason::Text(join_words(command)));
    }
    // Represents the unknown argument.
    let argument = "\"$argument\"";
    let text = join_words(command);
    let filled = PARALLEL_PLACEHOLDERS.iter().fold(text.clone(), |text, place| text.replace(place, argument));
    InnerCommand::Text(if filled == text { format!("{text} {argument}") } else { filled })
}

/// `ssh` runs the words after the host on that host, as one text. Options may also follow the host. Without words it runs a shell,
/// unless an option says that it only connects.
fn ssh(words: &[ShellWord]) -> InnerCommand {
    let connects = "N O Q V G W f";
    let (before, after) = match command_behind_options(words, &SSH_OPTIONS, 0) {
        None => return unseen_code(words),
        Some((_, [])) => return InnerCommand::Nothing,
        Some((before, host)) => (before, command_behind_options(host, &SSH_OPTIONS, 0)),
    };
    match after {
        None => unseen_code(words),
        Some((after, [])) if before.has(connects) || after.has(connects) => InnerCommand::Nothing,
        Some((_, [])) => InnerCommand::Input(words[0].text.clone()),
        Some((_, command)) => text_of(command),
    }
}

/// The words after `--`.
fn behind_dashes(arguments: &[ShellWord]) -> Option<InnerCommand> {
    let at = arguments.iter().position(|word| word.text == "--")?;
    let command = arguments.get(at + 1..).filter(|command| !command.is_empty())?;
    Some(InnerCommand::Own(vec![command.to_vec()]))
}

fn one_text(word: &ShellWord) -> InnerCommand {
    text_of(std::slice::from_ref(word))
}

fn has_option(arguments: &[ShellWord], letter: char) -> bool {
    let is_short = |word: &&ShellWord| word.text.starts_with('-') && !word.text.starts_with("--");
    arguments.iter().filter(is_short).any(|word| word.text.contains(letter))
}
