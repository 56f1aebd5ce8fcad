//! `awk`, which mostly runs nothing.

use super::getopt::{OptionSpec, parse_options};
use super::interpreters::script_of;
use super::wrappers::{InnerCommand, unseen_code};
use crate::shell::ShellWord;

const AWK_OPTIONS: OptionSpec = OptionSpec::leading(
    "F:f:v:bcCd::De:E:ghi:kIL::l:nNo::Op::MPrSstVYW:",
    "field-separator: file: assign: source: exec: include: load: characters-as-bytes traditional csv lint:: bignum optimize \
     no-optimize non-decimal-data posix re-interval sandbox use-lc-numeric",
);
/// Options that write a file, take commands for the debugger, or stand for any of the others.
const OTHER_OPTIONS: &str = "d o p D W";

pub(super) fn awk(words: &[ShellWord]) -> InnerCommand {
    let parsed = parse_options(&words[1..], &AWK_OPTIONS);
    if parsed.has(OTHER_OPTIONS) {
        return unseen_code(words);
    }
    script_of(words, &parsed, "i include l load", awk_is_harmless)
}

/// Whether a program of awk runs nothing and writes no file. It runs commands by `system` and by `|`, and calls functions by name with
/// `@`.
fn awk_is_harmless(text: &str) -> bool {
    let writes = |statement: &str| statement.split_once("print").is_some_and(|(_, rest)| rest.contains('>'));
    let writes_file = match without_strings(text) {
        Some(bare) => bare.split([';', '}', '\n']).any(writes),
        None => writes(text),
    };
    !writes_file && !text.contains("system") && !text.replace("||", " ").contains(['|', '@'])
}

/// The program with its strings empty and each statement in one line. `None` if that isn't certain: in a regular expression or a comment, a
/// quote begins no string.
fn without_strings(text: &str) -> Option<String> {
    match text.contains('/') {
        _ if text.contains('#') => None,
        true if text.contains('"') => None,
        true => on_one_line(&without_expressions(text)),
        false => on_one_line(text),
    }
}

/// The program without the marks that end a statement where they may stand in a regular expression: between the first slash and the last.
fn without_expressions(text: &str) -> String {
    let first = text.find('/').unwrap_or(text.len());
    let last = text.rfind('/').unwrap_or(text.len());
    let between = text[first..last].replace([';', '}', '\n'], " ");
    format!("{}{between}{}", &text[..first], &text[last..])
}

/// The program with empty strings, and without the line ends behind which a statement goes on. `None` if a string isn't closed.
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
            // A statement goes on behind these.
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
