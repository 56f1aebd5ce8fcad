//! `git`, whose subcommand may stand behind options: `git -C app push`.

use super::Word;

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

/// A `git` that had options before its subcommand.
#[derive(Debug)]
pub(crate) struct Git {
    /// The command without them.
    pub(crate) words: Vec<Word>,
    /// The one of them that can make it run anything, if there is one.
    pub(crate) configures: Option<String>,
}

/// The command without its options before the subcommand, if it is `git` and has some.
pub(crate) fn without_global_options(words: &[Word]) -> Option<Git> {
    let (name, arguments) = words.split_first().filter(|(name, _)| name.program() == Some("git"))?;
    let mut configures = None;
    let mut at = 0;
    while let Some(word) = arguments.get(at)
        && word.text.starts_with('-')
    {
        let option = word.text.split_once('=').map_or(word.text.as_str(), |(option, _)| option);
        if matches!(option, "-c" | "--config-env" | "--exec-path") {
            configures.get_or_insert_with(|| option.to_owned());
        }
        at += if WITH_VALUE.contains(&word.text.as_str()) { 2 } else { 1 };
    }
    let rest = arguments.get(at..).unwrap_or_default();
    (at > 0).then(|| Git { words: std::iter::once(name).chain(rest).cloned().collect(), configures })
}
