//! Commands that run other commands: `env`, `sudo`, `bash -c`, `xargs`.

use longhaul_protocol::single_quoted;

use super::builtins::exports_all;
use super::find::commands_run_by_find;
use super::getopt::{OptionSpec, ParsedOptions, is_listed, parse_options};
use super::interpreters::interpreter_code;
use super::launchers::{SU_OPTIONS, changes_parsing, launched_command, text_of_c_option};
use crate::shell::{ShellWord, UnseenReason, WordKind};

/// What a command runs in addition to itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InnerCommand {
    Nothing,
    /// It only passes this command on, as `nice` does. Both count as one command.
    Same(Vec<ShellWord>),
    /// It runs these commands, as `sudo` and `xargs` do. The wrapper and each of them count as separate commands.
    Own(Vec<Vec<ShellWord>>),
    /// It runs this text as a script.
    Text(String),
    /// It runs its standard input as a script.
    Input(String),
    /// It runs code in another language that is part of the line.
    Code,
    /// It runs code from a file, as `sed -f` does.
    ScriptFile(String),
    Unseen(UnseenReason),
}

/// A command that runs the words after its options.
pub(super) struct Wrapper {
    pub(super) options: OptionSpec,
    /// The number of operands before the command.
    pub(super) operands: usize,
}

/// Finds a program in a table of entries `names | operands | short options | long options;`. A test
/// checks that all entries have this form.
pub(super) fn find_wrapper(table: &'static str, program: &str) -> Option<Wrapper> {
    table.split(';').find_map(|entry| {
        let mut fields = entry.split('|').map(str::trim);
        fields.next().filter(|names| is_listed(names, program))?;
        let operands = fields.next()?.parse().ok()?;
        Some(Wrapper { options: OptionSpec::leading(fields.next()?, fields.next()?), operands })
    })
}

const NO_OPTIONS: OptionSpec = OptionSpec::leading("", "");
/// Wrappers that pass a command on without changing what it does. Options that choose a program or a library are left out, so that
/// they count as unknown.
const PASSING_WRAPPERS: &str = "
    nohup builtin | 0 | | ;
    command | 0 | pvV | ;
    exec | 0 | a:cl | ;
    setsid | 0 | cfw | ctty fork wait;
    nice | 0 | n:0123456789 | adjustment:;
    ionice | 0 | c:n:p:P:u:t | class: classdata: pid: pgid: uid: ignore;
    timeout | 1 | k:s:vfp | kill-after: signal: verbose foreground preserve-status;
    time | 0 | f:o:apqv | format: output: append portability quiet verbose;
    stdbuf | 0 | i:o:e: | input: output: error:;
    chronic | 0 | ev | ;
    caffeinate | 0 | dimsut:w: | ;
    fakeroot | 0 | u | unknown-is-real;
    dbus-run-session | 0 | | ;
    xvfb-run | 0 | an:ls:w: | auto-servernum server-num: listen-tcp server-args: wait:;
";
const ENV_OPTIONS: OptionSpec = OptionSpec::leading(
    "-i0u:C:S:va:",
    "ignore-environment null unset: chdir: split-string: debug argv0: block-signal:: default-signal:: ignore-signal:: \
     list-signal-handling",
);
const SUDO_OPTIONS: OptionSpec = OptionSpec::leading(
    "ABbEeHiKklNnPSsVva:C:c:D:g:h:p:R:r:T:t:U:u:",
    "askpass background bell edit set-home login remove-timestamp reset-timestamp list no-update non-interactive \
     preserve-env:: preserve-groups stdin shell validate auth-type: close-from: login-class: chdir: group: host: prompt: \
     chroot: role: command-timeout: type: other-user: user:",
);
const DOAS_OPTIONS: OptionSpec = OptionSpec::leading("C:u:Lns", "");
const XARGS_OPTIONS: OptionSpec = OptionSpec::leading(
    "0a:d:E:e::I:i::L:l::n:oP:prs:tx",
    "null arg-file: delimiter: eof:: replace:: max-lines:: max-args: open-tty max-procs: interactive process-slot-var: \
     no-run-if-empty max-chars: show-limits verbose exit",
);
/// `uv run`, `poetry run`, `bundle exec`.
const ENVIRONMENTS: &str = "uv poetry pipenv pdm hatch rye conda mamba bundle rbenv pyenv";
const ENVIRONMENT_OPTIONS: OptionSpec =
    OptionSpec::leading("qvC:", "quiet verbose directory: project: no-ansi");
const RUN_OPTIONS: OptionSpec = OptionSpec::leading(
    "qvp:n:",
    "quiet verbose frozen locked offline isolated no-sync no-project no-dev all-extras extra: group: with: with-editable: \
     with-requirements: python: project: directory: package: name: prefix: env-file:",
);

/// Options of passing wrappers that write a file, or choose files for the command.
const DOUBTFUL_OPTIONS: &str = "o output s server-args C directory project p python n name package prefix with with-editable \
     with-requirements env-file";

/// Long options of bash, which also accepts them with a single dash.
const LONG_SHELL_OPTIONS: &str = "login noprofile norc noediting posix restricted verbose rcfile init-file debugger dump-strings dump-po-strings help version";
/// Options of fish without a text to run. Some of its other options have such a text as their value.
const PLAIN_FISH_OPTIONS: &str =
    "-c -i -l -n -N -P -ic -lc --interactive --login --no-config --no-execute --private --help --version";

/// What the command of these words runs.
pub(super) fn inner_command_of(words: &[ShellWord]) -> InnerCommand {
    let Some((name, arguments)) = words.split_first() else { return InnerCommand::Nothing };
    let Some(program) = name.program() else {
        return InnerCommand::Unseen(UnseenReason::Name(name.text.clone()));
    };
    if let Some(wrapper) = find_wrapper(PASSING_WRAPPERS, program) {
        return passed_command(words, &wrapper.options, wrapper.operands);
    }
    match program {
        "env" => env(words),
        program if is_environment(program) => in_environment(words),
        "busybox" | "toybox" if arguments.first().is_some_and(|word| !word.text.starts_with('-')) => {
            InnerCommand::Same(arguments.to_vec())
        }
        "sudo" => separate_command(words, &SUDO_OPTIONS, 0),
        "doas" => separate_command(words, &DOAS_OPTIONS, 0),
        "xargs" => xargs(words),
        "find" => commands_run_by_find(words),
        "bash" | "sh" | "dash" | "zsh" | "ksh" | "mksh" | "yash" | "ash" | "rbash" | "fish" | "csh"
        | "tcsh" => shell(words),
        "su" => {
            text_of_c_option(arguments, &SU_OPTIONS).unwrap_or_else(|| InnerCommand::Input("su".to_owned()))
        }
        "eval" if arguments.is_empty() => InnerCommand::Nothing,
        "eval" => text_of(arguments.strip_prefix(&[ShellWord::of_literal("--")]).unwrap_or(arguments)),
        "trap" => trap(arguments),
        "source" | "." => sourced_file(arguments),
        "alias" if arguments.iter().any(|word| word.text.contains('=') || word.kind >= WordKind::Unknown) => {
            InnerCommand::Unseen(UnseenReason::Alias)
        }
        _ => launched_command(program, words)
            .or_else(|| interpreter_code(program, words))
            .unwrap_or(InnerCommand::Nothing),
    }
}

pub(super) fn join_words(words: &[ShellWord]) -> String {
    words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// `poetry run git push`, `bundle exec git push`.
fn in_environment(words: &[ShellWord]) -> InnerCommand {
    let is_run = |word: &ShellWord| matches!(word.text.as_str(), "run" | "exec");
    let parsed = parse_options(&words[1..], &ENVIRONMENT_OPTIONS);
    if !parsed.is_certain && words.iter().any(is_run) {
        return unseen_code(words);
    }
    let at = words.len() - parsed.operands.len();
    if words.get(at).is_some_and(is_run) {
        passed_command(&words[at..], &RUN_OPTIONS, 0)
    } else {
        InnerCommand::Nothing
    }
}

/// The option that makes a passing wrapper do more than pass the command on, if it has one.
pub(super) fn doubtful_option(words: &[ShellWord]) -> Option<String> {
    let program = words.first()?.program()?;
    let options = match program {
        "time" | "xvfb-run" => find_wrapper(PASSING_WRAPPERS, program)?.options,
        _ if is_environment(program) => ENVIRONMENT_OPTIONS,
        _ => return None,
    };
    let parsed = parse_options(&words[1..], &options);
    let run = words.get(words.len() - parsed.operands.len() + 1..).filter(|_| is_environment(program));
    let of_run = run.map(|arguments| parse_options(arguments, &RUN_OPTIONS));
    let mut names = parsed.names().chain(of_run.iter().flat_map(ParsedOptions::names));
    let option = names.find(|name| is_listed(DOUBTFUL_OPTIONS, name))?;
    Some(format!("{program} {}{option}", if option.len() == 1 { "-" } else { "--" }))
}

/// Whether a wrapper gives its command another name. Git and other programs act by that name: `exec -a git-push git`.
pub(super) fn renames(words: &[ShellWord]) -> bool {
    let options = match words.first().and_then(ShellWord::program) {
        Some("exec") => find_wrapper(PASSING_WRAPPERS, "exec").map(|wrapper| wrapper.options),
        Some("env") => Some(ENV_OPTIONS),
        _ => None,
    };
    options.is_some_and(|options| parse_options(&words[1..], &options).has("a argv0"))
}

fn is_environment(program: &str) -> bool {
    is_listed(ENVIRONMENTS, program)
}

fn passed_command(words: &[ShellWord], options: &OptionSpec, operands: usize) -> InnerCommand {
    match command_behind_options(words, options, operands) {
        // `command -v` only looks a command up.
        Some((parsed, _)) if parsed.has("v V") && words[0].program() == Some("command") => {
            InnerCommand::Nothing
        }
        Some((_, [])) => InnerCommand::Nothing,
        Some((_, command)) => InnerCommand::Same(command.to_vec()),
        None => unseen_code(words),
    }
}

pub(super) fn separate_command(words: &[ShellWord], options: &OptionSpec, operands: usize) -> InnerCommand {
    match command_behind_options(words, options, operands) {
        Some((_, [])) => InnerCommand::Nothing,
        Some((_, command)) => InnerCommand::Own(vec![command.to_vec()]),
        None => unseen_code(words),
    }
}

pub(super) fn unseen_code(words: &[ShellWord]) -> InnerCommand {
    InnerCommand::Unseen(UnseenReason::Code(join_words(words)))
}

/// The options of a wrapper and the command after them. `None` if the place where the command begins is not certain.
pub(super) fn command_behind_options<'words>(
    words: &'words [ShellWord],
    options: &OptionSpec,
    operands: usize,
) -> Option<(ParsedOptions<'words>, &'words [ShellWord])> {
    let parsed = parse_options(words.get(1..)?, options);
    let options_end = words.len() - parsed.operands.len();
    let at = words.len().min(options_end + variable_settings(words).len() + operands);
    let may_shift = |word: &ShellWord| word.may_become_several() || word.may_be_option();
    let is_certain = parsed.is_certain && !words[options_end..at].iter().any(may_shift);
    is_certain.then(|| (parsed, &words[at..]))
}

/// The variables that a wrapper sets for its command: words with `=` after the options, with any name.
pub(super) fn variable_settings(words: &[ShellWord]) -> &[ShellWord] {
    let options = match words.first().and_then(ShellWord::program) {
        Some("env") => &ENV_OPTIONS,
        Some("sudo") => &SUDO_OPTIONS,
        Some("doas") => &DOAS_OPTIONS,
        _ => return &[],
    };
    let behind = &words[words.len() - parse_options(&words[1..], options).operands.len()..];
    let is_setting = |word: &&ShellWord| word.text.contains('=');
    &behind[..behind.iter().take_while(is_setting).count()]
}

/// `env -S` splits a text into words. It treats spaces and quotes like a shell, but little else.
fn env(words: &[ShellWord]) -> InnerCommand {
    let parsed = parse_options(&words[1..], &ENV_OPTIONS);
    let Some(split) = parsed.values("S split-string").next() else {
        return passed_command(words, &ENV_OPTIONS, 0);
    };
    let is_plain = |letter: char| letter.is_alphanumeric() || " \t_./:,@%+=-'\"".contains(letter);
    let is_split_alike = split.text.chars().all(is_plain);
    if words.iter().any(|word| word.kind != WordKind::Literal) || !parsed.is_certain || !is_split_alike {
        return InnerCommand::Unseen(UnseenReason::Text(split.text.clone()));
    }
    let rest: String = parsed.operands.iter().map(|word| format!(" {}", single_quoted(&word.text))).collect();
    InnerCommand::Text(format!("env {}{rest}", split.text))
}

/// Quotes the text, so that the shell reads it as one word.
/// `xargs` adds arguments that are known only at run time.
fn xargs(words: &[ShellWord]) -> InnerCommand {
    let Some((parsed, command)) = command_behind_options(words, &XARGS_OPTIONS, 0) else {
        return unseen_code(words);
    };
    if command.is_empty() {
        return InnerCommand::Nothing;
    }
    let placeholder = parsed.values("I i replace").next().map_or("{}", |word| word.text.as_str());
    let mut command: Vec<ShellWord> =
        command.iter().map(|word| with_placeholder(word, placeholder)).collect();
    let replaces = parsed.has("I i replace") && !parsed.has("n max-args L l max-lines");
    if !replaces {
        command.push(ShellWord::added_by_xargs());
    }
    InnerCommand::Own(vec![command])
}

/// The word, marked as unknown if it contains the placeholder.
pub(super) fn with_placeholder(word: &ShellWord, placeholder: &str) -> ShellWord {
    let is_replaced = !placeholder.is_empty() && word.text.contains(placeholder);
    if is_replaced { ShellWord::unknown(&word.text) } else { word.clone() }
}

/// A shell that runs a text, a file or its standard input.
fn shell(words: &[ShellWord]) -> InnerCommand {
    let mut takes_text = false;
    let mut reads_input = false;
    let mut at = 1;
    let is_fish = words[0].program() == Some("fish");
    while let Some(word) = words.get(at) {
        let text = word.text.as_str();
        match text.strip_prefix(['-', '+']) {
            None => break,
            // `-` and `--` end the options, `+` doesn't.
            Some("") if text == "+" => return unseen_code(words),
            Some("" | "-") => {
                at += 1;
                break;
            }
            Some(_) if is_fish && !is_listed(PLAIN_FISH_OPTIONS, text) => return unseen_code(words),
            Some(long) if long.starts_with('-') || is_listed(LONG_SHELL_OPTIONS, long) => {
                let long = long.trim_start_matches('-');
                if !is_fish && !is_listed(LONG_SHELL_OPTIONS, long) {
                    return unseen_code(words);
                }
                let names_file = matches!(long, "rcfile" | "init-file");
                if let Some(file) = words.get(at + 1).filter(|file| names_file && file.literal().is_none()) {
                    return InnerCommand::Unseen(UnseenReason::Text(file.text.clone()));
                }
                at += if names_file { 2 } else { 1 };
            }
            Some(_) if word.kind != WordKind::Literal => {
                return InnerCommand::Unseen(UnseenReason::Text(text.to_owned()));
            }
            // Each of these letters takes a value: in bash the next word, in zsh the rest of this word.
            Some(short) if short.find(['o', 'O']).is_some_and(|at| at + 1 < short.len()) => {
                return unseen_code(words);
            }
            Some(short) => {
                // Dash accepts `+c` as `-c`.
                takes_text |= short.contains('c');
                reads_input |= text.starts_with('-') && short.contains('s');
                let next = at + if short.ends_with(['o', 'O']) { 2 } else { 1 };
                let option = words.get(at..next).unwrap_or_default();
                let is_literal = option.iter().all(|word| word.literal().is_some());
                if !is_literal || changes_parsing(option) || exports_all(option) {
                    return unseen_code(words);
                }
                at = next;
            }
        }
    }
    let shell = words[0].text.clone();
    match words.get(at) {
        Some(word) if takes_text => text_of(std::slice::from_ref(word)),
        None => InnerCommand::Input(shell),
        Some(_) if reads_input => InnerCommand::Input(shell),
        Some(word) => match word.literal() {
            Some(file) if is_stdin_script(file) => script_of_descriptor(file, shell),
            Some(_) => InnerCommand::Nothing,
            None => InnerCommand::Unseen(UnseenReason::Text(word.text.clone())),
        },
    }
}

/// Whether the text is for a shell with keywords of its own before a command (`noglob`, `and`, `repeat`) and with other expansions
/// than bash.
pub(super) fn reads_another_syntax(words: &[ShellWord]) -> bool {
    let program = words.first().and_then(ShellWord::program);
    matches!(program, Some("zsh" | "fish" | "csh" | "tcsh")) && matches!(shell(words), InnerCommand::Text(_))
}

/// Joins the words that the command runs as one text.
pub(super) fn text_of(words: &[ShellWord]) -> InnerCommand {
    let text = join_words(words);
    match words.iter().all(|word| word.kind == WordKind::Literal) {
        true => InnerCommand::Text(text),
        false => InnerCommand::Unseen(UnseenReason::Text(text)),
    }
}

fn trap(arguments: &[ShellWord]) -> InnerCommand {
    match arguments {
        [action, _, ..] if !action.text.starts_with('-') => text_of(std::slice::from_ref(action)),
        [dashes, action, _, ..] if dashes.text == "--" => text_of(std::slice::from_ref(action)),
        _ => InnerCommand::Nothing,
    }
}

/// Whether a path names a descriptor, such as the standard input, and not a file. It may be written as `/dev/./stdin`, or as `fd/0`
/// after a `cd /dev`.
pub(super) fn is_descriptor(file: &str) -> bool {
    let mut parts = file.rsplit('/').filter(|part| !part.is_empty() && *part != ".");
    let last = parts.next();
    last == Some("stdin") || (file.contains('/') && last.is_some_and(is_number) && parts.next() == Some("fd"))
}

/// Whether the name of a script is `-` or a descriptor. After a `cd /dev/fd` a descriptor is just a number.
pub(super) fn is_stdin_script(file: &str) -> bool {
    file == "-" || is_descriptor(file) || is_number(file.trim_start_matches("./"))
}

/// The standard input, if the file certainly is that. Another descriptor may have another text.
fn script_of_descriptor(file: &str, shell: String) -> InnerCommand {
    match file {
        "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0" => InnerCommand::Input(shell),
        _ => InnerCommand::Unseen(UnseenReason::Input(shell)),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `source` of a file. Files are not read, but the name of the file has to be known.
fn sourced_file(arguments: &[ShellWord]) -> InnerCommand {
    match parse_options(arguments, &NO_OPTIONS).operands.first() {
        None => InnerCommand::Nothing,
        Some(word) => match word.literal() {
            Some(file) if is_stdin_script(file) => script_of_descriptor(file, "source".to_owned()),
            Some(_) => InnerCommand::Nothing,
            None => InnerCommand::Unseen(UnseenReason::Text(word.text.clone())),
        },
    }
}

#[cfg(test)]
#[path = "wrappers_tests.rs"]
mod tests;
