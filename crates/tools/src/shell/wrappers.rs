//! Commands that run other commands: `env`, `sudo`, `bash -c`, `xargs`.

use super::languages::code_of;
use super::starters::{after_c, started};
use super::word::is_name;
use super::{Kind, Unseen, Word};

/// What a command runs besides itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Inside {
    Nothing,
    /// It only passes this one on, as `nice` does: both are one command.
    Same(Vec<Word>),
    /// It runs these, and is a command of its own, as `sudo` and `xargs` are.
    Own(Vec<Vec<Word>>),
    /// It runs this text.
    Text(String),
    /// It runs what comes to its standard input.
    Input(String),
    /// It runs code in another language that stands in the line.
    Code,
    Unseen(Unseen),
}

/// How the command is found among the arguments of a wrapper.
pub(super) struct Options {
    /// Letters of options whose value is in the next argument, unless it follows at once.
    pub(super) short: &'static str,
    /// The same for long options, unless they have a `=`.
    pub(super) long: &'static [&'static str],
    /// How many other arguments come before the command.
    pub(super) arguments: usize,
}

pub(super) const NONE: Options = Options { short: "", long: &[], arguments: 0 };
const SUDO: Options = Options {
    short: "aCcDghpRrTtUu",
    long: &[
        "--auth-type",
        "--close-from",
        "--login-class",
        "--chdir",
        "--group",
        "--host",
        "--prompt",
        "--chroot",
        "--role",
        "--command-timeout",
        "--type",
        "--other-user",
        "--user",
    ],
    arguments: 0,
};
const XARGS: Options = Options {
    short: "adEILnPs",
    long: &["--arg-file", "--delimiter", "--max-args", "--max-chars", "--max-procs", "--process-slot-var"],
    arguments: 0,
};

/// What the command of these words runs.
pub(super) fn inside(words: &[Word]) -> Inside {
    let Some((name, arguments)) = words.split_first() else { return Inside::Nothing };
    let Some(program) = name.program() else { return Inside::Unseen(Unseen::Name(name.text.clone())) };
    match program {
        "env" => env(words),
        "nohup" | "builtin" | "setsid" | "fakeroot" | "chronic" | "xvfb-run" | "caffeinate"
        | "dbus-run-session" => passed_on(words, &NONE),
        "uv" | "poetry" | "pipenv" | "pdm" | "hatch" | "rye" | "conda" | "mamba" | "bundle" | "rbenv"
        | "pyenv" => in_environment(words),
        "nice" => passed_on(words, &Options { short: "n", long: &["--adjustment"], ..NONE }),
        "ionice" => passed_on(words, &Options { short: "cnpPu", long: &["--class", "--classdata"], ..NONE }),
        "timeout" => {
            passed_on(words, &Options { short: "ks", long: &["--kill-after", "--signal"], arguments: 1 })
        }
        "time" => passed_on(words, &Options { short: "fo", long: &["--format", "--output"], ..NONE }),
        "stdbuf" => {
            passed_on(words, &Options { short: "ioe", long: &["--input", "--output", "--error"], ..NONE })
        }
        "exec" => passed_on(words, &Options { short: "a", ..NONE }),
        "command" if arguments.first().is_some_and(|word| matches!(word.text.as_str(), "-v" | "-V")) => {
            Inside::Nothing
        }
        "command" => passed_on(words, &NONE),
        "busybox" if arguments.first().is_some_and(|word| !word.text.starts_with('-')) => {
            Inside::Same(arguments.to_vec())
        }
        "sudo" => own(words, &SUDO),
        "doas" => own(words, &Options { short: "Cu", ..NONE }),
        "xargs" => xargs(words),
        "find" if arguments.iter().any(|word| word.kind == Kind::Words) => {
            Inside::Unseen(Unseen::Code(joined(words)))
        }
        "find" => Inside::Own(executed_by_find(arguments)),
        "bash" | "sh" | "dash" | "zsh" | "ksh" | "mksh" | "yash" | "ash" | "rbash" | "fish" | "csh"
        | "tcsh" => shell(words),
        "su" => after_c(arguments, "gGsw").unwrap_or_else(|| Inside::Input("su".to_owned())),
        "eval" if arguments.is_empty() => Inside::Nothing,
        "eval" => text_of(arguments.strip_prefix(&[Word::of_literal("--")]).unwrap_or(arguments)),
        "trap" => trap(arguments),
        "source" | "." => sourced(arguments),
        "alias" if arguments.iter().any(|word| word.text.contains('=') || word.kind >= Kind::Unknown) => {
            Inside::Unseen(Unseen::Alias)
        }
        _ => started(program, words).or_else(|| code_of(program, words)).unwrap_or(Inside::Nothing),
    }
}

pub(super) fn joined(words: &[Word]) -> String {
    words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// `poetry run git push`, `bundle exec git push`.
fn in_environment(words: &[Word]) -> Inside {
    let at = options_end(words, &NONE);
    match words.get(at).map(|word| word.text.as_str()) {
        Some("run" | "exec") => {
            let options =
                Options { short: "pn", long: &["--with", "--python", "--name", "--prefix"], ..NONE };
            passed_on(&words[at..], &options)
        }
        _ => Inside::Nothing,
    }
}

fn passed_on(words: &[Word], options: &Options) -> Inside {
    match behind(words, options) {
        Ok([]) => Inside::Nothing,
        Ok(command) => Inside::Same(command.to_vec()),
        Err(unseen) => Inside::Unseen(unseen),
    }
}

pub(super) fn own(words: &[Word], options: &Options) -> Inside {
    match behind(words, options) {
        Ok([]) => Inside::Nothing,
        Ok(command) => Inside::Own(vec![command.to_vec()]),
        Err(unseen) => Inside::Unseen(unseen),
    }
}

/// The command behind what a wrapper takes for itself, unless that may become more words than it is.
fn behind<'words>(words: &'words [Word], options: &Options) -> Result<&'words [Word], Unseen> {
    let (skipped, command) = words.split_at(command_at(words, options));
    match skipped.iter().find(|word| word.kind == Kind::Words && !is_assignment(&word.text)) {
        Some(_) => Err(Unseen::Code(joined(words))),
        None => Ok(command),
    }
}

/// Where the command begins, behind options, variables and what else the wrapper takes. At the end, if there is none.
pub(super) fn command_at(words: &[Word], options: &Options) -> usize {
    let mut at = options_end(words, options);
    while words.get(at).is_some_and(|word| is_assignment(&word.text)) {
        at += 1;
    }
    words.len().min(at + options.arguments)
}

pub(super) fn options_end(words: &[Word], options: &Options) -> usize {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let text = word.text.as_str();
        match text.strip_prefix('-') {
            None => break,
            Some("-") => return at + 1,
            Some(long) if long.starts_with('-') => {
                at += if options.long.iter().any(|long| abbreviates(text, long)) { 2 } else { 1 };
            }
            Some(short) => {
                let value = short.find(|letter| options.short.contains(letter));
                let is_next = value.is_some_and(|value| short[value..].chars().count() == 1);
                at += if is_next { 2 } else { 1 };
            }
        }
    }
    words.len().min(at)
}

/// Whether a long option is this one, or the beginning of it: most programs take both.
pub(super) fn abbreviates(option: &str, long: &str) -> bool {
    option.len() > 2 && long.starts_with(option)
}

pub(super) fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// With `-S` it takes a text apart into words, nearly as a shell does.
fn env(words: &[Word]) -> Inside {
    let options = Options { short: "uC", long: &["--unset", "--chdir"], ..NONE };
    let end = options_end(words, &options);
    for (at, word) in words[..end].iter().enumerate().skip(1) {
        let text = word.text.as_str();
        let long = text.split_once('=').filter(|(option, _)| abbreviates(option, "--split-string"));
        let split = long.map(|(_, split)| split).or_else(|| {
            let short = text.strip_prefix('-').filter(|short| !short.starts_with('-'))?;
            short
                .find('S')
                .filter(|before| !short[..*before].contains(['u', 'C']))
                .map(|before| &short[before + 1..])
        });
        let (split, rest) = match split {
            Some(split) if !split.is_empty() => (split, &words[at + 1..]),
            None if !abbreviates(text, "--split-string") => continue,
            _ => match words.get(at + 1) {
                Some(next) => (next.text.as_str(), &words[at + 2..]),
                None => return Inside::Nothing,
            },
        };
        if words[at..].iter().any(|word| word.kind >= Kind::Unknown) {
            return Inside::Unseen(Unseen::Text(split.to_owned()));
        }
        let rest: String = rest.iter().map(|word| format!(" {}", quoted(&word.text))).collect();
        return Inside::Text(format!("env {split}{rest}"));
    }
    passed_on(words, &options)
}

/// As a shell would need it to get the same word again.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The command gets more arguments than can be seen.
fn xargs(words: &[Word]) -> Inside {
    let at = command_at(words, &XARGS);
    if at == words.len() {
        return Inside::Nothing;
    }
    let options = &words[..at];
    let placeholder =
        options.iter().enumerate().find_map(|(at, word)| match word.text.strip_prefix("-I")? {
            "" => options.get(at + 1).map(|word| word.text.as_str()),
            attached => Some(attached),
        });
    let placeholder = placeholder.unwrap_or("{}");
    let mut command: Vec<Word> = words[at..].iter().map(|word| filled_in(word, placeholder)).collect();
    command.push(Word::unknown("…"));
    Inside::Own(vec![command])
}

/// A word in which something is replaced when it runs.
fn filled_in(word: &Word, placeholder: &str) -> Word {
    let is_replaced = !placeholder.is_empty() && word.text.contains(placeholder);
    if is_replaced { Word::unknown(&word.text) } else { word.clone() }
}

fn executed_by_find(arguments: &[Word]) -> Vec<Vec<Word>> {
    let mut commands = Vec::new();
    let mut rest = arguments;
    let starts = |word: &Word| matches!(word.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
    while let Some(start) = rest.iter().position(starts) {
        rest = &rest[start + 1..];
        let is_end = |at: usize| match rest[at].text.as_str() {
            ";" => true,
            "+" => at > 0 && rest[at - 1].text == "{}",
            _ => false,
        };
        let end = (0..rest.len()).find(|at| is_end(*at)).unwrap_or(rest.len());
        if end > 0 {
            commands.push(rest[..end].iter().map(|word| filled_in(word, "{}")).collect());
        }
        rest = &rest[end..];
    }
    commands
}

/// A shell with a text, a file, or neither.
fn shell(words: &[Word]) -> Inside {
    let mut takes_text = false;
    let mut reads_input = false;
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let text = word.text.as_str();
        match text.strip_prefix(['-', '+']) {
            None | Some("") => break,
            Some("-") => {
                at += 1;
                break;
            }
            Some(long) if long.starts_with('-') => {
                let names_file = matches!(text, "--rcfile" | "--init-file");
                if let Some(file) = words.get(at + 1).filter(|file| names_file && file.literal().is_none()) {
                    return Inside::Unseen(Unseen::Text(file.text.clone()));
                }
                at += if names_file { 2 } else { 1 };
            }
            Some(_) if word.kind >= Kind::Unknown => return Inside::Unseen(Unseen::Text(text.to_owned())),
            Some(short) => {
                takes_text |= text.starts_with('-') && short.contains('c');
                reads_input |= text.starts_with('-') && short.contains('s');
                at += if short.contains(['o', 'O']) { 2 } else { 1 };
            }
        }
    }
    let shell = words[0].text.clone();
    match words.get(at) {
        Some(word) if takes_text => text_of(std::slice::from_ref(word)),
        None => Inside::Input(shell),
        Some(_) if reads_input => Inside::Input(shell),
        Some(word) => match word.literal() {
            Some(file) if file == "-" || is_descriptor(file) => Inside::Input(shell),
            Some(_) => Inside::Nothing,
            None => Inside::Unseen(Unseen::Text(word.text.clone())),
        },
    }
}

/// Words that are joined and run.
pub(super) fn text_of(words: &[Word]) -> Inside {
    let text = joined(words);
    match words.iter().all(|word| word.kind == Kind::Literal) {
        true => Inside::Text(text),
        false => Inside::Unseen(Unseen::Text(text)),
    }
}

fn trap(arguments: &[Word]) -> Inside {
    match arguments {
        [action, _, ..] if !action.text.starts_with('-') => text_of(std::slice::from_ref(action)),
        [dashes, action, _, ..] if dashes.text == "--" => text_of(std::slice::from_ref(action)),
        _ => Inside::Nothing,
    }
}

/// A file that is what another descriptor leads to. For any but the standard input it is not known what that is.
fn is_descriptor(file: &str) -> bool {
    file == "/dev/stdin"
        || file.starts_with("/dev/fd/")
        || (file.starts_with("/proc/") && file.contains("/fd/"))
}

/// A file with a certain name is like any script that is run; only its name has to be certain.
fn sourced(arguments: &[Word]) -> Inside {
    match arguments.first() {
        None => Inside::Nothing,
        Some(word) => match word.literal() {
            Some(file) if is_descriptor(file) => Inside::Input("source".to_owned()),
            Some(_) => Inside::Nothing,
            None => Inside::Unseen(Unseen::Text(word.text.clone())),
        },
    }
}
