//! `git`, whose subcommand may stand behind options, and which runs commands from its config and for some subcommands.

use super::wrappers::abbreviates;
use super::{Unseen, Word};

/// Options whose value is the next word.
const WITH_VALUE: [&str; 8] = [
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--super-prefix",
    "--config-env",
    "--attr-source",
];
/// Sections and keys of the config that run nothing, whatever their value is. All others may.
const HARMLESS_KEYS: [&str; 24] = [
    "user.name",
    "user.email",
    "color.",
    "advice.",
    "column.",
    "log.",
    "status.",
    "fetch.",
    "push.",
    "pull.",
    "rerere.",
    "branch.",
    "core.quotepath",
    "core.autocrlf",
    "core.eol",
    "core.filemode",
    "core.abbrev",
    "core.longpaths",
    "core.ignorecase",
    "init.defaultbranch",
    "commit.gpgsign=false",
    "tag.gpgsign=false",
    "core.pager=cat",
    "safe.directory",
];
/// Options of subcommands whose value is a command.
const OPTIONS: [(&str, &[&str]); 9] = [
    ("rebase", &["-x", "--exec"]),
    ("difftool", &["-x", "--extcmd"]),
    ("grep", &["-O", "--open-files-in-pager"]),
    ("clone", &["-u", "--upload-pack"]),
    ("fetch", &["--upload-pack"]),
    ("pull", &["--upload-pack"]),
    ("ls-remote", &["--upload-pack", "--exec"]),
    ("push", &["--receive-pack", "--exec"]),
    ("archive", &["--exec"]),
];

/// A `git` that had options before its subcommand.
#[derive(Debug)]
pub(crate) struct Git {
    /// The command without them.
    pub(crate) words: Vec<Word>,
    /// The one of them that can make it run anything, if there is one.
    pub(crate) configures: Option<String>,
}

/// The command without its options before the subcommand, if it is `git` and has some. `git-push` is `git push`, too.
pub(crate) fn without_global_options(words: &[Word]) -> Option<Git> {
    let (name, arguments) = words.split_first()?;
    if let Some(subcommand) = name.program().and_then(|name| name.strip_prefix("git-")) {
        let words = ["git", subcommand].map(Word::of_literal);
        return Some(Git {
            words: words.into_iter().chain(arguments.iter().cloned()).collect(),
            configures: None,
        });
    }
    if name.program() != Some("git") {
        return None;
    }
    let mut configures = None;
    let mut at = 0;
    while let Some(word) = arguments.get(at)
        && word.text.starts_with('-')
    {
        let option = option_of(word);
        if matches!(option, "-c" | "--config-env" | "--exec-path") {
            configures.get_or_insert_with(|| option.to_owned());
        }
        at += if WITH_VALUE.contains(&word.text.as_str()) { 2 } else { 1 };
    }
    let rest = arguments.get(at..).unwrap_or_default();
    (at > 0).then(|| Git { words: std::iter::once(name).chain(rest).cloned().collect(), configures })
}

fn option_of(word: &Word) -> &str {
    word.text.split_once('=').map_or(word.text.as_str(), |(option, _)| option)
}

/// What a `git` runs that is not its subcommand.
#[derive(Debug, Default)]
pub(super) struct GitRuns {
    /// Commands, as texts.
    pub(super) texts: Vec<Word>,
    pub(super) unseen: Option<Unseen>,
}

pub(super) fn git_runs(words: &[Word]) -> GitRuns {
    let mut found = GitRuns::default();
    let stripped = without_global_options(words);
    let Some((name, arguments)) =
        words.split_first().filter(|_| stripped.is_some() || words[0].program() == Some("git"))
    else {
        return found;
    };
    let command = stripped.map_or_else(|| words.to_vec(), |git| git.words);
    let globals = &arguments[..(words.len() - 1).min(words.len().saturating_sub(command.len()))];
    if name.program() == Some("git")
        && let Some(setting) = configured(globals)
    {
        found.unseen = Some(Unseen::Code(format!("git {setting}")));
    }
    let Some((subcommand, arguments)) = command.get(1..).and_then(<[Word]>::split_first) else {
        return found;
    };
    match (subcommand.text.as_str(), arguments) {
        ("config", _) if sets_config(arguments) => {
            found.unseen = Some(Unseen::Code(super::wrappers::joined(words)));
        }
        ("bisect", [run, command @ ..]) if run.text == "run" => found.texts.extend(one_text(command)),
        ("submodule", [foreach, command @ ..]) if foreach.text == "foreach" => {
            let at = command.iter().position(|word| !word.text.starts_with('-')).unwrap_or(command.len());
            found.texts.extend(one_text(&command[at..]));
        }
        ("filter-branch", _) => found.unseen = Some(Unseen::Code("git filter-branch".to_owned())),
        (subcommand, _) => {
            let options = OPTIONS
                .iter()
                .find(|(known, _)| *known == subcommand)
                .map_or(&[][..], |(_, options)| options);
            let values = (0..arguments.len()).filter_map(|at| command_value(options, &arguments[at..]));
            found.texts.extend(values);
        }
    }
    found
}

/// The option before the subcommand that can make git run anything, if there is one.
fn configured(globals: &[Word]) -> Option<String> {
    globals.iter().enumerate().find_map(|(at, word)| match option_of(word) {
        "-c" if word.text == "-c" => {
            let setting = globals.get(at + 1)?;
            (!is_harmless(setting)).then(|| format!("-c {}", setting.text))
        }
        option @ ("--config-env" | "--exec-path") if option == "--config-env" || word.text.contains('=') => {
            Some(word.text.clone())
        }
        _ => None,
    })
}

/// Whether `key=value` runs nothing.
fn is_harmless(setting: &Word) -> bool {
    let text = setting.text.trim_start_matches('"').to_ascii_lowercase();
    HARMLESS_KEYS.iter().any(|key| match key.ends_with('.') {
        true => text.starts_with(key),
        false => text.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('=')),
    })
}

/// Whether `git config` with these arguments writes a key that can make git run something.
fn sets_config(arguments: &[Word]) -> bool {
    let reads = |word: &Word| {
        let text = word.text.as_str();
        text.starts_with("--get")
            || matches!(text, "-l" | "--list" | "get" | "list" | "--unset" | "--unset-all" | "unset")
    };
    if arguments.iter().any(reads) {
        return false;
    }
    if arguments.iter().any(|word| matches!(word.text.as_str(), "-e" | "--edit" | "edit")) {
        return true;
    }
    let with_value = ["-f", "--file", "--blob", "--type", "--default", "--comment"];
    let mut operands = Vec::new();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        if with_value.contains(&word.text.as_str()) {
            rest.next();
        } else if !word.text.starts_with('-') && word.text != "set" {
            operands.push(word);
        }
    }
    match operands.as_slice() {
        [key, value, ..] => !is_harmless(&Word {
            text: format!("{}={}", key.text, value.text),
            kind: key.kind.max(value.kind),
        }),
        _ => false,
    }
}

fn command_value(options: &[&str], words: &[Word]) -> Option<Word> {
    let word = &words[0];
    options.iter().find_map(|option| {
        let attached = |value: &str| Word { text: value.to_owned(), kind: word.kind };
        match word.text.split_once('=') {
            Some((name, value)) if option.starts_with("--") && abbreviates(name, option) => {
                Some(attached(value))
            }
            None if option.starts_with("--") && abbreviates(&word.text, option) => words.get(1).cloned(),
            _ if option.starts_with("--") => None,
            _ => match word.text.strip_prefix(option)? {
                "" => words.get(1).cloned(),
                value => Some(attached(value)),
            },
        }
    })
}

/// Words that are joined and run.
fn one_text(words: &[Word]) -> Option<Word> {
    let kind = words.iter().map(|word| word.kind).max()?;
    Some(Word { text: super::wrappers::joined(words), kind })
}
