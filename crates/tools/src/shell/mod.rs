//! Finds the commands that a line would run, before it runs. Pure: text goes in, a list of commands comes out.
//!
//! The parser reads a line as bash does, and finds commands at any place, in any quotes and after any wrapper. Where bash would report
//! a syntax error, the parser may continue. Where it is not certain, it does not guess: it adds an [`UnseenReason`].
//!
//! It is written by hand because the parsers that exist don't suit lines that a model writes. One takes exponential time on nested
//! expansions and open parentheses. `tree-sitter-bash` takes a minute for 100 KB of `a=(`, and misses commands in here documents,
//! nested backquotes, continued words and `"${x:-'$(…)'}"` without reporting an error. This one reads each character a bounded
//! number of times, to a bounded depth.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `parser` | lists, pipelines, loops, conditions, functions, redirections |
//! | `analysis` | one simple command, and what it runs in turn |
//! | `word` | one word: quotes, escapes, patterns |
//! | `line_continuation` | lines that a backslash joins |
//! | `expansion` | expansions that begin with `$`, and backquotes |
//! | `here_document` | here documents |
//! | `arithmetic` | arithmetic and subscripts, in which the shell evaluates the values of variables |
//! | `analysis::builtins` | builtins that take names of variables: `read`, `printf -v`, `declare` |
//! | `analysis::variables` | variables that make programs run something: `PAGER`, `PS4` |
//! | `analysis::getopt` | the options of a command, as `getopt` reads them |
//! | `analysis::git` | what git runs, with and without its global options |
//! | `analysis::wrappers` | commands that run other commands: `env`, `sudo`, `bash -c`, `xargs` |
//! | `analysis::find` | what `find` runs |
//! | `analysis::launchers` | more of those, each with a syntax of its own: `ssh`, `flock`, `parallel` |
//! | `analysis::command_options` | options whose value is a command: `tar --to-command`, `rsync -e` |
//! | `analysis::interpreters` | code in other languages: `python -c`, `sed` |
//! | `analysis::awk` | programs of `awk` |
//! | `sleep` | K4: sleeps that are too long |

mod analysis;
mod arithmetic;
mod expansion;
mod here_document;
mod line_continuation;
mod parser;
mod sleep;
mod word;

use std::fmt;

pub(crate) use analysis::without_global_options;
pub(crate) use sleep::long_sleep;

use crate::display::{display_name, truncate_with_ellipsis};

/// Longer lines are not parsed. They contain data rather than commands.
const MAX_LINE_BYTES: usize = 256 * 1024;
/// The deepest nesting. Each level uses some of the stack.
const MAX_NESTING: usize = 50;
/// Bytes of a command to show in a reason.
const MAX_SHOWN_BYTES: usize = 200;

/// Represents the words that `xargs` adds.
const ADDED_BY_XARGS: &str = "…";

/// A parsed line.
#[derive(Debug, Default)]
pub(crate) struct ShellScript {
    /// Every simple command, in the order of the line.
    pub(crate) commands: Vec<ShellCommand>,
    /// Commands in the values of variables. A program may run them.
    pub(crate) values: Vec<ShellCommand>,
    /// Why the line may run more than these commands.
    pub(crate) unseen: Vec<UnseenReason>,
    /// What the line does apart from running commands.
    pub(crate) side_effects: Vec<SideEffect>,
    names: analysis::NameUses,
}

impl ShellScript {
    /// Parses a line. Commands before a syntax error are found, because bash would run them.
    pub(crate) fn parse(line: &str) -> Self {
        let mut script = Self::default();
        if line.len() > MAX_LINE_BYTES {
            script.unseen.push(UnseenReason::TooLong);
            return script;
        }
        parser::ShellParser::new(line, &mut script).script();
        if let Some(name) = script.names.conflict() {
            script.unseen.push(UnseenReason::Evaluated(name.clone()));
        }
        script
    }

    /// Whether a part of the line could not be parsed.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.unseen.iter().any(|unseen| {
            matches!(
                unseen,
                UnseenReason::TooLong
                    | UnseenReason::TooDeep
                    | UnseenReason::Syntax
                    | UnseenReason::JoinedLines
            )
        })
    }
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShellCommand {
    /// Its words as written, and then without each wrapper that only passes it on: `env A=b nice git push`, `nice git push`,
    /// `git push`. There is at least one form, and each has at least one word.
    pub(crate) forms: Vec<Vec<ShellWord>>,
    /// Whether the line continues without waiting for the command.
    pub(crate) background: bool,
    /// The command runs code in another language, which is not parsed.
    pub(crate) has_code: bool,
}

impl ShellCommand {
    /// The command without its wrappers.
    pub(crate) fn words(&self) -> &[ShellWord] {
        self.forms.last().map_or(&[], Vec::as_slice)
    }
}

impl fmt::Display for ShellCommand {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.forms.first().map_or(&[][..], Vec::as_slice);
        formatter
            .write_str(&shown(&words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")))
    }
}

/// What a line does apart from running commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SideEffect {
    /// Sets this variable, for one command or for all later ones.
    Variable(String),
    /// Writes this file.
    File(String),
    /// With this option the program writes a file, although it usually only reads.
    Option(String),
    /// An option that makes a wrapper do more than pass a command on.
    Wrapper(String),
    /// Runs this command, such as sed, with code from a file.
    ScriptFile(String),
}

impl fmt::Display for SideEffect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(formatter, "the line sets `{}`", shown(name)),
            Self::File(name) => write!(formatter, "the line writes `{}`", shown(name)),
            Self::Option(option) => write!(formatter, "`{}` writes a file", shown(option)),
            Self::Wrapper(option) => {
                write!(formatter, "`{}` does more than pass a command on", shown(option))
            }
            Self::ScriptFile(command) => write!(formatter, "`{}` runs code from a file", shown(command)),
        }
    }
}

/// The text of a command, truncated and escaped for one line.
pub(crate) fn shown(text: &str) -> String {
    let short = truncate_with_ellipsis(text, MAX_SHOWN_BYTES);
    display_name(short.as_bytes())
}

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShellWord {
    /// The text without quotes. As written if it is known only at run time.
    pub(crate) text: String,
    pub(crate) kind: WordKind,
}

impl ShellWord {
    fn unknown(text: &str) -> Self {
        Self { text: text.to_owned(), kind: WordKind::Unknown }
    }

    pub(crate) fn of_literal(text: &str) -> Self {
        Self { text: text.to_owned(), kind: WordKind::Literal }
    }

    /// The word as the second part of a value whose first part is unknown. Digits stay digits.
    fn appended(self) -> Self {
        let is_number = self.text.bytes().all(|byte| byte.is_ascii_digit());
        Self { kind: if is_number { self.kind } else { self.kind.max(WordKind::Unknown) }, ..self }
    }

    /// The part before the first expansion or pattern.
    pub(crate) fn certain_beginning(&self) -> &str {
        let text = match self.kind {
            WordKind::Literal => return &self.text,
            WordKind::Pattern => self.text.as_str(),
            WordKind::Unknown | WordKind::Words => self.text.strip_prefix('"').unwrap_or(&self.text),
        };
        let end = text
            .find(['$', '`', '"', '\'', '\\', '*', '?', '[', '{', '~', '(', '<', '>', '…', '@', '!', '+']);
        &text[..end.unwrap_or(text.len())]
    }

    /// Whether it may become an option at run time.
    pub(crate) fn may_be_option(&self) -> bool {
        let beginning = self.certain_beginning();
        self.kind != WordKind::Literal && (beginning.is_empty() || beginning.starts_with('-'))
    }

    /// Whether it may become several words at run time.
    pub(crate) fn may_become_several(&self) -> bool {
        matches!(self.kind, WordKind::Pattern | WordKind::Words)
    }

    /// What `xargs` adds to a command: any words, and options among them.
    fn added_by_xargs() -> Self {
        Self { text: ADDED_BY_XARGS.to_owned(), kind: WordKind::Words }
    }

    fn is_added_by_xargs(&self) -> bool {
        self.kind == WordKind::Words && self.text == ADDED_BY_XARGS
    }

    /// Whether the word is a list in braces that may contain options: `{-e,x}`.
    fn may_become_options(&self) -> bool {
        self.kind == WordKind::Words
            && self.may_be_option()
            && !self.text.contains(['$', '`'])
            && !self.is_added_by_xargs()
    }

    /// Its text, if that is known.
    pub(crate) fn literal(&self) -> Option<&str> {
        (self.kind == WordKind::Literal).then_some(self.text.as_str())
    }

    /// The name of a program without its folder, if that is known.
    pub(crate) fn program(&self) -> Option<&str> {
        self.literal().map(|name| name.rsplit('/').next().unwrap_or(name))
    }
}

/// How much of a word is known before the line runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WordKind {
    /// All of it.
    Literal,
    /// The word contains a file pattern. It stays unchanged if no file matches.
    Pattern,
    /// The word contains an expansion.
    Unknown,
    /// The word contains an expansion or braces that may become several words, or none.
    Words,
}

/// Why a line may run more than the commands that were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UnseenReason {
    TooLong,
    TooDeep,
    Syntax,
    /// A backslash at the end of a line joins two parts of a token.
    JoinedLines,
    /// The name of a command is known only at run time.
    Name(String),
    /// The command runs a text that is known only at run time.
    Text(String),
    /// A shell runs its standard input.
    Input(String),
    /// The shell evaluates the value of a variable, which can run anything.
    Evaluated(String),
    /// This variable may make a program run something.
    Variable(String),
    /// A program runs code that the parser does not read.
    Code(String),
    /// An alias changes the meaning of a name.
    Alias,
}

impl fmt::Display for UnseenReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(formatter, "it is longer than {} KiB", MAX_LINE_BYTES / 1024),
            Self::TooDeep => write!(formatter, "it is nested more than {MAX_NESTING} deep"),
            Self::Syntax => formatter.write_str("its syntax is not understood"),
            Self::JoinedLines => {
                formatter.write_str("a backslash at the end of a line is not behind a blank")
            }
            Self::Name(name) => {
                write!(formatter, "which command `{}` is, is known only when it runs", shown(name))
            }
            Self::Text(text) => write!(formatter, "what `{}` runs is known only when it runs", shown(text)),
            Self::Input(shell) => {
                write!(formatter, "`{}` runs whatever comes to its standard input", shown(shell))
            }
            Self::Evaluated(text) => {
                write!(
                    formatter,
                    "`{}` evaluates what is in a variable, and that can run anything",
                    shown(text)
                )
            }
            Self::Variable(name) => {
                write!(formatter, "the variable `{}` makes programs run what it says", shown(name))
            }
            Self::Code(text) => write!(formatter, "`{}` can run other commands", shown(text)),
            Self::Alias => formatter.write_str("`alias` gives a name another meaning"),
        }
    }
}

#[cfg(test)]
#[path = "shell_tests.rs"]
mod tests;
