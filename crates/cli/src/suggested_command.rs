//! How a session is gone on with: as a command that does so when it is copied word for word.

use crate::args::GlobalArgs;

/// The command that goes on with what is unfinished in a session.
pub(crate) fn resume(globals: &GlobalArgs, key: &str) -> String {
    command(globals, &["resume", key])
}

/// The command that opens the conversation of a session.
pub(crate) fn open_chat(globals: &GlobalArgs, key: &str) -> String {
    command(globals, &["-s", key])
}

/// A command of this program with the same `--home`, `--config` and `--model`.
pub(crate) fn command(globals: &GlobalArgs, words: &[&str]) -> String {
    with_flags(globals.flags(), words)
}

/// A command of this program with the same `--home`.
pub(crate) fn home_command(globals: &GlobalArgs, words: &[&str]) -> String {
    with_flags(globals.home_flag().into_iter().collect(), words)
}

fn with_flags(flags: Vec<(&'static str, String)>, words: &[&str]) -> String {
    let given = flags.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]);
    let words = given.chain(unmistakable(words));
    std::iter::once("longhaul".to_owned())
        .chain(words.map(|word| quoted(&word)))
        .collect::<Vec<_>>()
        .join(" ")
}

/// The words of a command, of which only `-s` is a flag: a key may begin like one.
fn unmistakable(words: &[&str]) -> Vec<String> {
    let mut said = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match (*word, words.as_slice().first()) {
            ("-s", Some(key)) if key.starts_with('-') => {
                said.push(format!("-s={key}"));
                words.next();
            }
            ("-s", _) => said.push("-s".to_owned()),
            (word, _) if word.starts_with('-') => said.extend(["--".to_owned(), word.to_owned()]),
            (word, _) => said.push(word.to_owned()),
        }
    }
    said
}

/// A word as a shell takes it for one.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@%+,".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
#[path = "suggested_command_tests.rs"]
mod tests;
