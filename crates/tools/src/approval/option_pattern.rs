//! Options in any order. For a rule that asks or denies, `rm -rf x`, `rm -r -f x` and `rm x --force --recursive` are the same command.

use std::collections::HashSet;

use super::glob_pattern::{CommandText, GlobPattern};
use crate::shell::ShellWord;

/// Programs whose long options have a single dash, such as `find -delete`.
const LONG_WITH_ONE_DASH: &str =
    "find java javac go gcc g++ cc clang terraform openssl ffmpeg convert magick ip gdb qemu";
/// In a pattern, a single dash with more letters than this is one option, not a bundle.
const MAX_BUNDLED_LETTERS: usize = 4;
/// Options of well-known programs that have several names. The first name represents all of them.
const OPTION_ALIASES: [(&str, &[&[&str]]); 12] = [
    ("rm", &[&["-r", "-R", "--recursive"], &["-f", "--force"], &["-d", "--dir"], &["-v", "--verbose"]]),
    ("cp", &[&["-r", "-R", "--recursive"], &["-f", "--force"], &["-a", "--archive"]]),
    ("mv", &[&["-f", "--force"]]),
    ("ln", &[&["-f", "--force"], &["-s", "--symbolic"]]),
    ("chmod", &[&["-R", "--recursive"]]),
    ("chown", &[&["-R", "--recursive"]]),
    ("chgrp", &[&["-R", "--recursive"]]),
    ("git", &[&["-f", "--force"], &["-d", "--delete"], &["-a", "--all"], &["-n", "--dry-run"]]),
    ("curl", &[&["-X", "--request"], &["-d", "--data"], &["-o", "--output"], &["-T", "--upload-file"]]),
    ("docker", &[&["-f", "--force"], &["-v", "--volume"]]),
    ("tar", &[&["-x", "--extract", "--get"], &["-c", "--create"]]),
    ("sed", &[&["-i", "--in-place"], &["-n", "--quiet", "--silent"]]),
];

/// A command with its options separated from its other words.
#[derive(Debug)]
pub(super) struct CommandOptions {
    operands: CommandText,
    options: HashSet<String>,
    /// One of its words may become an option at run time.
    may_have_more: bool,
}

/// A pattern with its options separated from its other words.
#[derive(Debug, Clone)]
pub(super) struct OptionPattern {
    operands: GlobPattern,
    required: Vec<RequiredOption>,
    /// The pattern has a `*`, so the command may have other options too.
    is_open: bool,
}

#[derive(Debug, Clone)]
struct RequiredOption {
    option: String,
    /// The option may be longer: `--force*`.
    is_prefix: bool,
}

impl CommandOptions {
    pub(super) fn of_words(words: &[ShellWord]) -> Option<Self> {
        let (name, arguments) = words.split_first()?;
        let program = name.program()?;
        let end = arguments.iter().position(|word| word.text == "--").unwrap_or(arguments.len());
        let (before, behind) = arguments.split_at(end);
        let is_option = |word: &&ShellWord| word.text.len() > 1 && word.text.starts_with('-');
        let mut options = HashSet::new();
        for word in before.iter().filter(is_option) {
            options.extend(options_in(program, &word.text, usize::MAX));
        }
        let operands = before.iter().filter(|word| !is_option(word)).chain(behind.iter().skip(1));
        let operands: Vec<ShellWord> =
            std::iter::once(ShellWord::of_literal(program)).chain(operands.cloned()).collect();
        let may_have_more = before.iter().any(ShellWord::may_be_option);
        Some(Self { operands: CommandText::of_words(&operands), options, may_have_more })
    }
}

impl OptionPattern {
    /// `None` if the pattern has no options, or options that can't be told apart from operands.
    pub(super) fn of_command(pattern: &str) -> Option<Self> {
        let mut words = pattern.split(' ').filter(|word| !word.is_empty());
        let name = words.next().filter(|name| !name.contains(['*', '?']))?;
        let program = name.rsplit('/').next().unwrap_or(name);
        let mut operands = vec![program];
        let mut required = Vec::new();
        let mut is_cut = false;
        for word in words {
            if !word.starts_with('-') || word.len() == 1 {
                operands.push(word);
                continue;
            }
            let (option, is_prefix) = word.strip_suffix('*').map_or((word, false), |option| (option, true));
            if option.contains(['*', '?']) {
                return None;
            }
            is_cut |= is_prefix;
            let is_long = option.starts_with("--");
            let options = options_in(program, option, MAX_BUNDLED_LETTERS).into_iter();
            required.extend(options.map(|option| RequiredOption { option, is_prefix: is_prefix && is_long }));
        }
        if is_cut {
            operands.push("*");
        }
        let is_open = pattern.contains('*');
        let operands = GlobPattern::of_command(&operands.join(" "));
        (is_open || !required.is_empty()).then_some(Self { operands, required, is_open })
    }

    pub(super) fn matches(&self, command: &CommandOptions) -> bool {
        self.has_all(command) && self.has_only(command) && self.operands.matches(&command.operands)
    }

    /// Whether it matches for some value of the words that are known only at run time.
    pub(super) fn may_match(&self, command: &CommandOptions) -> bool {
        let has_all = self.has_all(command);
        let fits = self.operands.may_match(&command.operands)
            || (command.may_have_more && self.operands.matches(&command.operands));
        fits && (has_all || command.may_have_more) && self.has_only(command)
    }

    fn has_all(&self, command: &CommandOptions) -> bool {
        self.required.iter().all(|required| command.options.iter().any(|option| required.is(option)))
    }

    fn has_only(&self, command: &CommandOptions) -> bool {
        self.is_open
            || command.options.iter().all(|option| self.required.iter().any(|required| required.is(option)))
    }
}

impl RequiredOption {
    fn is(&self, option: &str) -> bool {
        // Programs accept abbreviated long options.
        let abbreviates = option.len() > 2 && option.starts_with("--") && self.option.starts_with(option);
        option == self.option || abbreviates || (self.is_prefix && option.starts_with(&self.option))
    }
}

/// The options in a word, each by the first of its names.
fn options_in(program: &str, word: &str, most_letters: usize) -> Vec<String> {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    let letters = &word[1..];
    let is_cluster = !letters.starts_with('-')
        && !LONG_WITH_ONE_DASH.split(' ').any(|known| known == program)
        && letters.chars().count() <= most_letters;
    match is_cluster {
        true => letters.chars().map(|letter| canonical_option(program, &format!("-{letter}"))).collect(),
        false => vec![canonical_option(program, name)],
    }
}

fn canonical_option(program: &str, option: &str) -> String {
    let is = |name: &&str| {
        *name == option || (option.len() > 2 && option.starts_with("--") && name.starts_with(option))
    };
    let groups =
        OPTION_ALIASES.iter().find(|(known, _)| *known == program).map_or(&[][..], |(_, groups)| groups);
    let group = groups.iter().find(|names| names.iter().any(is));
    group.map_or(option, |names| names[0]).to_owned()
}
