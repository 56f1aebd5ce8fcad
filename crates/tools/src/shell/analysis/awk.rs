//! Programs of `awk`. Most of them run no command.

use super::getopt::{OptionSpec, parse_options};
use super::interpreters::script_of;
use super::wrappers::{InnerCommand, unseen_code};
use crate::shell::ShellWord;

const AWK_OPTIONS: OptionSpec = OptionSpec::leading(
    "F:f:v:bcCd::De:E:ghi:kIL::l:nNo::Op::MPrSstVYW:",
    "field-separator: file: assign: source: exec: include: load: characters-as-bytes traditional csv lint:: bignum optimize \
     no-optimize non-decimal-data posix re-interval sandbox use-lc-numeric",
);
/// Options that write a file, take commands for the debugger, or can mean any other option.
const OTHER_OPTIONS: &str = "d o p D W";

pub(super) fn awk(words: &[ShellWord]) -> InnerCommand {
    let parsed = parse_options(&words[1..], &AWK_OPTIONS);
    if parsed.has(OTHER_OPTIONS) {
        return unseen_code(words);
    }
    script_of(words, &parsed, "i include l load", awk_is_harmless)
}

/// Whether an awk program runs no command and writes no file. Awk runs commands with `system` and `|`, and `@` calls a function by its
/// name.
fn awk_is_harmless(text: &str) -> bool {
    let writes = |statement: &str| statement.split_once("print").is_some_and(|(_, rest)| rest.contains('>'));
    let writes_file = match without_strings(text) {
        Some(bare) => bare.split([';', '}', '\n']).any(writes),
        None => writes(text),
    };
    !writes_file && !text.contains("system") && !text.replace("||", " ").contains(['|', '@'])
}

/// The program with empty strings and each statement on one line. `None` if the strings can't be found with certainty, because a quote
/// in a regular expression or a comment does not begin a string.
fn without_strings(text: &str) -> Option<String> {
    match text.contains('/') {
        _ if text.contains('#') => None,
        true if text.contains('"') => None,
        true => on_one_line(&without_expressions(text)),
        false => on_one_line(text),
    }
}

/// The program without characters that would end a statement but may be part of a regular expression: those between the first slash
/// and the last.
fn without_expressions(text: &str) -> String {
    let first = text.find('/').unwrap_or(text.len());
    let last = text.rfind('/').unwrap_or(text.len());
    let between = text[first..last].replace([';', '}', '\n'], " ");
    format!("{}{between}{}", &text[..first], &text[last..])
}

/// The program with empty strings, and without the line ends that do not end a statement. `None` if a string is not closed.
fn on_one_line(text: &str) -> Option<String> {
    let mut bare = String::new();
    let mut last = '\n';
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => loop {
                match letters.next()? {
                    '"' => break,
                    '\\' => letters.next().map(|_| ())?,
                    _ => {}
                }
            },
            // A statement continues after these.
            '\n' if matches!(last, ',' | '\\' | '&' | '|') => continue,
            _ => {}
        }
        bare.push(letter);
        if !matches!(letter, ' ' | '\t' | '\r') {
            last = letter;
        }
    }
    Some(bare)
}
