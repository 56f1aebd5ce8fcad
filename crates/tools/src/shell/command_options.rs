//! Options whose value is a command: `tar --to-command`, `rsync -e`, `ssh -o ProxyCommand`.

use super::Word;
use super::wrappers::abbreviates;

/// For each program, its options that have a command as their value. It stands in the next word, behind `=`, or directly behind a short option.
const OPTIONS: [(&str, &[&str]); 15] = [
    (
        "tar",
        &[
            "-I",
            "-F",
            "--use-compress-program",
            "--to-command",
            "--checkpoint-action",
            "--rsh-command",
            "--rmt-command",
            "--info-script",
            "--new-volume-script",
        ],
    ),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("sort", &["--compress-program"]),
    ("split", &["--filter"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("fd", &["-x", "-X", "--exec", "--exec-batch"]),
    ("fdfind", &["-x", "-X", "--exec", "--exec-batch"]),
    ("zip", &["-TT", "--unzip-command"]),
    ("man", &["-P", "--pager"]),
    ("make", &["--eval"]),
    ("gmake", &["--eval"]),
    ("ssh", &["-o"]),
    ("scp", &["-o", "-S"]),
    ("sftp", &["-o", "-S", "-D"]),
    ("ncat", &["-e", "-c", "--exec", "--sh-exec"]),
];
/// Options of ssh whose value is a command.
const SSH_COMMANDS: [&str; 4] = ["proxycommand", "localcommand", "knownhostscommand", "remotecommand"];

/// The commands that stand in the options of a command, as texts.
pub(super) fn commands_in_options(words: &[Word]) -> Vec<Word> {
    let Some((name, arguments)) = words.split_first() else { return Vec::new() };
    let Some(program) = name.program() else { return Vec::new() };
    let assigned = arguments.iter().filter_map(|word| made_by(program, word));
    let Some((_, options)) = OPTIONS.iter().find(|(known, _)| *known == program) else {
        return assigned.collect();
    };
    let found =
        arguments.iter().enumerate().filter_map(|(at, word)| value_of(options, word, arguments.get(at + 1)));
    let commands = found.filter_map(|(option, value)| command_of(program, option, value));
    commands.chain(assigned).collect()
}

/// `make SHELL=…`, whose recipes are all run by that.
fn made_by(program: &str, word: &Word) -> Option<Word> {
    let text = word.text.strip_prefix("SHELL=").filter(|_| matches!(program, "make" | "gmake"))?;
    let is_shell = matches!(text.rsplit('/').next(), Some("sh" | "bash" | "dash" | "zsh"));
    (!is_shell).then(|| Word { text: text.to_owned(), kind: word.kind })
}

/// The option that a word is, and its value.
fn value_of<'options>(
    options: &'options [&str],
    word: &Word,
    next: Option<&Word>,
) -> Option<(&'options str, Word)> {
    let text = word.text.trim_start_matches('"');
    let attached = |value: &str| Word { text: value.to_owned(), kind: word.kind };
    options.iter().find_map(|option| {
        let value = match option.strip_prefix("--") {
            Some(_) => match text.split_once('=') {
                Some((name, value)) if abbreviates(name, option) => attached(value),
                None if abbreviates(text, option) => next?.clone(),
                _ => return None,
            },
            None => match short_value(text, &option[1..])? {
                "" => next?.clone(),
                value => attached(value),
            },
        };
        Some((*option, value))
    })
}

/// What follows the letters of a short option in a word, also where other letters stand before them.
fn short_value<'word>(text: &'word str, letters: &str) -> Option<&'word str> {
    let cluster = text.strip_prefix('-').filter(|cluster| !cluster.starts_with('-'))?;
    cluster.split_once(letters).map(|(_, value)| value)
}

/// The part of a value that is run.
fn command_of(program: &str, option: &str, value: Word) -> Option<Word> {
    let part = |text: &str| Some(Word { text: text.to_owned(), kind: value.kind });
    match (program, option) {
        ("tar", "--checkpoint-action") => match value.literal() {
            Some(text) => part(text.strip_prefix("exec=")?),
            None => Some(value),
        },
        ("ssh" | "scp" | "sftp", "-o") => {
            let text = value.text.trim_start_matches('"');
            let (key, command) = text.split_once(['=', ' '])?;
            SSH_COMMANDS.contains(&key.to_ascii_lowercase().as_str()).then(|| part(command))?
        }
        // A piece of a makefile, in which recipes and `$(shell …)` can be anything: never literal.
        ("make" | "gmake", "--eval") => Some(Word::unknown(&value.text)),
        _ => Some(value),
    }
}
