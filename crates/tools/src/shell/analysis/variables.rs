//! Variables that a line sets.
//!
//! Any program may run the value of a variable (`PAGER`, `NODE_OPTIONS`, `RUSTC_WRAPPER`), and a list of such variables can never be
//! complete. So the list here has the harmless names, whose values never run. The value of any other name is parsed as a command. It
//! has to be a single plain word, which can only name a program or a file.

use std::collections::HashSet;

use super::wrappers::is_descriptor;
use crate::shell::parser::ShellParser;
use crate::shell::{ShellCommand, ShellWord, SideEffect, UnseenReason};

/// Names that decide how a program prints, in which language, how much, or for which target. `*` matches any ending.
const PLAIN_NAMES: &str = "LANG LC_* TZ TERM COLUMNS LINES NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE CI DEBUG VERBOSE PORT HOST \
    NODE_ENV RUST_LOG RUST_BACKTRACE CARGO_TERM_* CARGO_TARGET_DIR CARGO_INCREMENTAL GOOS GOARCH CGO_ENABLED PYTHONUNBUFFERED \
    PYTHONDONTWRITEBYTECODE DEBIAN_FRONTEND GIT_TERMINAL_PROMPT GIT_AUTHOR_* GIT_COMMITTER_*";
/// Folders where programs and libraries are searched. They contain files, and the parser reads no files.
const FOLDER_NAMES: [&str; 3] = ["PATH", "HOME", "_DIR"];
/// Variables that make bash, the loader or git load code or change the meaning of a name, even if the value is a plain word.
const LOADING_NAMES: &str = "BASH_ENV BASH_CMDS BASH_ALIASES BASH_FUNC_* BASHOPTS SHELLOPTS ENV LD_PRELOAD LD_AUDIT GIT_CONFIG* GIT_EXEC_PATH";

/// Which programs see a variable.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in crate::shell) enum VariableScope {
    #[default]
    /// Only the shell. Programs see the variable only if it was exported before.
    Shell,
    /// A program that the line starts.
    Environment,
}

fn is_listed(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|known| match known.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == known,
    })
}

/// Whether a value is a single word that names something: no option, no list, and nothing that the shell expands or splits.
pub(super) fn is_plain_value(value: &ShellWord) -> bool {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_./:,@%+~-".contains(letter);
    let names = |text: &str| {
        text.chars().all(is_plain) && !text.starts_with(['-', '+', '@', '%']) && !is_descriptor(text)
    };
    value.literal().is_some_and(names)
}

impl ShellParser<'_, '_> {
    /// Records that a variable is set, with its value if that is one word.
    pub(in crate::shell) fn record_variable(
        &mut self,
        name: &str,
        value: Option<&ShellWord>,
        scope: VariableScope,
    ) {
        let text = value.and_then(ShellWord::literal);
        let is_number = text.is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        if !is_number {
            self.script.names.texts.insert(name.to_owned());
        }
        let is_own = name.contains(|letter: char| letter.is_ascii_lowercase()) && !name.starts_with("npm_");
        if is_listed(PLAIN_NAMES, name) || (is_own && scope == VariableScope::Shell) {
            return;
        }
        self.script.side_effects.push(SideEffect::Variable(name.to_owned()));
        let is_unseen = match name {
            "PS0" | "PS1" | "PS2" | "PS3" | "PS4" => {
                self.expansions_in(text.unwrap_or_default());
                text.is_none()
            }
            "RANDOM" | "SRANDOM" | "OPTIND" | "HISTCMD" | "SECONDS" => !is_number,
            _ if is_listed(LOADING_NAMES, name) => text != Some(""),
            _ => {
                self.read_value(text.unwrap_or_default());
                let is_folder = FOLDER_NAMES.iter().any(|end| name.ends_with(end));
                let is_plain = is_folder || value.is_some_and(is_plain_value);
                if !is_plain {
                    self.script.names.unexported.insert(name.to_owned());
                }
                scope == VariableScope::Environment && !is_plain
            }
        };
        if is_unseen {
            self.script.unseen.push(UnseenReason::Variable(name.to_owned()));
        }
    }

    /// Parses a value as the command that it may be. A value that can't be parsed is not a command.
    fn read_value(&mut self, value: &str) {
        let (commands, unseen) = (self.script.commands.len(), self.script.unseen.len());
        if !value.trim().is_empty() {
            self.inner_script(&format!("{value} \"$argument\""));
        }
        self.script.unseen.truncate(unseen);
        let values =
            self.script.commands.drain(commands..).map(|command| ShellCommand { has_code: false, ..command });
        self.script.values.extend(values);
    }
}

/// How a line uses the names of its variables, as far as that decides what bash evaluates.
#[derive(Debug, Default)]
pub(in crate::shell) struct NameUses {
    /// Names that the line sets to a text.
    pub(in crate::shell) texts: HashSet<String>,
    /// Names that the line makes arrays.
    pub(in crate::shell) arrays: HashSet<String>,
    /// Names that are numbers because an arithmetic expression sets them.
    pub(in crate::shell) numbers: HashSet<String>,
    /// Names in `declare a="$x"`. Bash would evaluate the value if the name were an array.
    pub(in crate::shell) declared: HashSet<String>,
    /// Names that the line sets in the shell to a value that a program might run.
    pub(in crate::shell) unexported: HashSet<String>,
    /// The line exports all names with `set -a`.
    pub(in crate::shell) exports_all: bool,
}

impl NameUses {
    /// A name that one part of the line needs to be harmless and another part makes unsafe.
    pub(in crate::shell) fn conflict(&self) -> Option<&String> {
        let exported = self.unexported.iter().filter(|_| self.exports_all);
        let evaluated =
            self.numbers.intersection(&self.texts).chain(self.declared.intersection(&self.arrays));
        evaluated.chain(exported).min()
    }
}
