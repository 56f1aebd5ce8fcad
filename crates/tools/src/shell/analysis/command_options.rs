//! Options whose value is a command, or a file to write: `tar --to-command`, `rsync -e`, `sort -o`.

use super::getopt::{OptionSpec, is_listed, parse_options};
use super::wrappers::{is_stdin_script, join_words};
use crate::shell::ShellWord;

type ProgramOptions = (&'static str, OptionSpec);

/// For each program, its options whose value is a command.
const COMMAND_OPTIONS: [ProgramOptions; 15] = [
    (
        "tar",
        OptionSpec::partial(
            "I:F:",
            "use-compress-program: to-command: checkpoint-action: rsh-command: rmt-command: info-script: new-volume-script:",
        ),
    ),
    ("rsync", OptionSpec::partial("e:", "rsh: rsync-path:")),
    ("sort", OptionSpec::partial("", "compress-program:")),
    ("split", OptionSpec::partial("", "filter:")),
    ("rg", OptionSpec::partial("", "pre: hostname-bin:")),
    ("fd fdfind", OptionSpec::partial("x:X:", "exec: exec-batch:")),
    ("zip", OptionSpec::partial("", "-TT: unzip-command:")),
    ("man", OptionSpec::partial("P:H::", "pager: html::")),
    ("make gmake", OptionSpec::partial("E:f:", "eval: file: makefile:")),
    ("ssh", OptionSpec::partial("o:", "")),
    ("scp sftp", OptionSpec::partial("o:S:D:", "")),
    ("ncat nc", OptionSpec::partial("e:c:", "exec: sh-exec:")),
    ("go", OptionSpec::partial("", "-exec: -toolexec: -vettool:")),
    ("cargo", OptionSpec::partial("", "config:")),
    ("npm npx pnpm yarn", OptionSpec::partial("", "script-shell: node-options: shell: editor: viewer: git:")),
];
/// For each program that usually only reads, its options that write a file.
const FILE_OPTIONS: [ProgramOptions; 4] = [
    ("find", OptionSpec::partial("", "-fprint: -fprint0: -fprintf: -fls:")),
    ("sort", OptionSpec::partial("o:", "output:")),
    ("git", OptionSpec::partial("", "output:")),
    ("sed", OptionSpec::partial("i::", "in-place::")),
];
/// Options of ssh whose value is a command.
const SSH_COMMANDS: &str = "proxycommand localcommand knownhostscommand remotecommand";

fn options_of<'table>(
    table: &'table [ProgramOptions],
    words: &[ShellWord],
) -> Option<(&'static str, &'table OptionSpec)> {
    let program = words.first()?.program()?;
    table.iter().find_map(|(names, options)| Some((names.split(' ').find(|name| *name == program)?, options)))
}

/// The commands in the options of a command, as texts.
pub(super) fn commands_in_options(words: &[ShellWord]) -> Vec<ShellWord> {
    let Some((program, options)) = options_of(&COMMAND_OPTIONS, words) else { return Vec::new() };
    let found = parse_options(&words[1..], options).with_values();
    let commands = found.filter_map(|(option, value)| command_of(program, option, value));
    commands
        .chain(words[1..].iter().filter_map(|word| make_variable(program, word)))
        .chain(old_style_option(program, words))
        .chain(options_by_xargs(words))
        .collect()
}

/// The words that xargs adds may be any of these options, unless `--` ends the options first.
fn options_by_xargs(words: &[ShellWord]) -> Option<ShellWord> {
    let added = words.last().filter(|word| word.is_added_by_xargs())?;
    let are_ended = words.iter().any(|word| word.text == "--");
    (!are_ended).then(|| ShellWord::unknown(&format!("{} {}", words[0].text, added.text)))
}

/// The option of a command that makes it write a file, if it has one.
pub(super) fn writes_file(words: &[ShellWord]) -> Option<String> {
    let (program, options) = options_of(&FILE_OPTIONS, words)?;
    let option = parse_options(&words[1..], options).names().next()?;
    Some(format!("{program} {}{option}", if option.len() == 1 || program == "find" { "-" } else { "--" }))
}

/// `make CC=…`: recipes run the values of variables, and make expands `$(shell …)` in them.
fn make_variable(program: &str, word: &ShellWord) -> Option<ShellWord> {
    let (name, value) = word.text.split_once('=').filter(|_| matches!(program, "make" | "gmake"))?;
    let is_shell = matches!(value.rsplit('/').next(), Some("sh" | "bash" | "dash" | "zsh"));
    let is_run = value.contains(' ') && !value.starts_with('-') || name == "SHELL" && !is_shell;
    match value.contains('$') {
        true => Some(ShellWord::unknown(value)),
        false => is_run.then(|| ShellWord { text: value.to_owned(), kind: word.kind }),
    }
}

/// `tar cIf program archive`: letters without a dash, whose values follow in the same order.
fn old_style_option(program: &str, words: &[ShellWord]) -> Option<ShellWord> {
    let letters = words.get(1).filter(|word| program == "tar" && !word.text.starts_with('-'))?;
    letters.text.contains(['I', 'F']).then(|| ShellWord::unknown(&join_words(words)))
}

/// The part of an option's value that is run.
fn command_of(program: &str, option: &str, value: ShellWord) -> Option<ShellWord> {
    let part = |text: &str| Some(ShellWord { text: text.to_owned(), kind: value.kind });
    match (program, option) {
        ("tar", "checkpoint-action") => match value.literal() {
            Some(text) => part(text.strip_prefix("exec=")?),
            None => Some(value),
        },
        ("ssh" | "scp" | "sftp", "o") => {
            let text = value.text.trim_start_matches(['"', ' ', '\t']);
            match text.split_once(['=', ' ', '\t', '"']) {
                Some((key, command)) if is_listed(SSH_COMMANDS, &key.to_ascii_lowercase()) => part(command),
                Some((key, _)) if !key.contains(['$', '`']) => None,
                _ => value.literal().is_none().then_some(value),
            }
        }
        // The file is not read, but its name has to be known.
        ("make" | "gmake", "f" | "file" | "makefile") => {
            let is_file = |text: &str| !is_stdin_script(text);
            (!value.literal().is_some_and(is_file)).then(|| ShellWord::unknown(&value.text))
        }
        // A makefile, a config, or options of node. A command can be anywhere in these, so the value is never literal.
        ("make" | "gmake" | "cargo", _) | (_, "node-options") => Some(ShellWord::unknown(&value.text)),
        _ => Some(value),
    }
}
