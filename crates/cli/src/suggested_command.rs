//! Commands that the program suggests, to be copied into a shell as they are.

pub(crate) use longhaul_transcript::shell_quoted as quoted;

use crate::args::GlobalArgs;

pub(crate) fn resume(globals: &GlobalArgs, key: &str) -> String {
    command(globals, &["resume", key])
}

/// The command that opens the conversation of a session.
pub(crate) fn open_chat(globals: &GlobalArgs, key: &str) -> String {
    command(globals, &["-s", key])
}

/// A command with the same `--home`, `--config` and `--model` as this one.
pub(crate) fn command(globals: &GlobalArgs, words: &[&str]) -> String {
    with_flags(globals.flags(), words)
}

/// A command with the same `--home` as this one.
pub(crate) fn home_command(globals: &GlobalArgs, words: &[&str]) -> String {
    with_flags(globals.home_flag().into_iter().collect(), words)
}

/// A command with these flags.
pub(crate) fn with_flags(flags: Vec<(&'static str, String)>, words: &[&str]) -> String {
    let flags = flags.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]);
    let words = flags.chain(guard_keys(words)).map(|word| quoted(&word));
    std::iter::once("longhaul".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// Keeps a key that starts with `-` from being read as a flag. The only flag among `words` is `-s`.
fn guard_keys(words: &[&str]) -> Vec<String> {
    let mut guarded = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match (*word, words.as_slice().first()) {
            ("-s", Some(key)) if key.starts_with('-') => {
                guarded.push(format!("-s={key}"));
                words.next();
            }
            ("-s", _) => guarded.push("-s".to_owned()),
            (word, _) if word.starts_with('-') => guarded.extend(["--".to_owned(), word.to_owned()]),
            (word, _) => guarded.push(word.to_owned()),
        }
    }
    guarded
}

#[cfg(test)]
#[path = "suggested_command_tests.rs"]
mod tests;
