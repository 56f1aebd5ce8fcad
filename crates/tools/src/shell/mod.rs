//! What a command line would run, as far as that can be told before it runs. Nothing here does anything: text goes in, a
//! list of commands comes out.
//!
//! It reads bash as bash does, but only to find the commands in it: wherever one stands, in whatever it is quoted, behind
//! whatever starts it. It is lenient where bash is strict, because bash will complain itself. Where a line can't be
//! understood, that is said ([`Unseen`]) instead of guessed at.
//!
//! It is written by hand because no parser that could be had was fit for lines that a model writes. One takes exponential time
//! on nested expansions and on parentheses that are not closed. `tree-sitter-bash` takes a minute for 100 KB of `a=(`, and misses
//! commands in here documents, nested backquotes, continued words and `"${x:-'$(…)'}"` without reporting an error. This one reads
//! each character a bounded number of times and goes to a bounded depth.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `grammar` | lists, pipelines, loops, conditions, functions, redirections |
//! | `commands` | one simple command, and what it runs in turn |
//! | `word` | one word: quotes, escapes, patterns |
//! | `expansion` | what stands behind `$` and in backquotes, and here documents |
//! | `evaluation` | what is evaluated once more when it is expanded |
//! | `builtins` | builtins that take names of variables: `read`, `printf -v`, `declare` |
//! | `variables` | variables that make programs run something: `PAGER`, `PS4` |
//! | `options` | the options of a command, as `getopt` reads them |
//! | `git` | what git runs, behind its options |
//! | `wrappers` | commands that run other commands: `env`, `sudo`, `bash -c`, `xargs` |
//! | `starters` | those of them that take a text, or a place first: `ssh`, `flock`, `parallel` |
//! | `command_options` | options whose value is a command: `tar --to-command`, `rsync -e` |
//! | `languages` | code in other languages: `python -c`, `awk`, `sed` |
//! | `sleep` | K4: sleeps that are too long |

mod builtins;
mod command_options;
mod commands;
mod evaluation;
mod expansion;
mod git;
mod grammar;
mod languages;
mod options;
mod sleep;
mod starters;
mod variables;
mod word;
mod wrappers;

use std::fmt;

pub(crate) use git::without_global_options;
pub(crate) use sleep::long_sleep;

use crate::shown::{cut, shown_name};

/// No person and no model writes a longer line by hand; what is longer is data.
const LONGEST: usize = 256 * 1024;
/// How deep things may stand inside each other. Each level takes some of the stack.
const DEEPEST: usize = 50;
/// How much of a command is shown.
const MOST_SHOWN: usize = 200;

/// What a line would run.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Every simple command, in the order in which they stand.
    pub(crate) commands: Vec<Command>,
    /// The values of variables, read as the commands that a program may run them as.
    pub(crate) values: Vec<Command>,
    /// Why there may be more.
    pub(crate) unseen: Vec<Unseen>,
    /// What it does beside running them.
    pub(crate) beside: Vec<Beside>,
    names: variables::NameUses,
}

impl Script {
    /// Reads a line. What stands before something that can't be understood is seen: bash would run it.
    pub(crate) fn parse(line: &str) -> Self {
        let mut script = Self::default();
        if line.len() > LONGEST {
            script.unseen.push(Unseen::TooLong);
            return script;
        }
        grammar::Parser::new(line, &mut script).script();
        if let Some(name) = script.names.conflict() {
            script.unseen.push(Unseen::Evaluated(name.clone()));
        }
        script
    }

    /// Whether a part of the line could not even be taken apart into commands.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.unseen.iter().any(|unseen| matches!(unseen, Unseen::TooLong | Unseen::TooDeep | Unseen::Syntax))
    }
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    /// Its words as they were written, and then without each of the wrappers that only pass it on: `env A=b nice git push`,
    /// `nice git push`, `git push`. There is always one, and each has a first word.
    pub(crate) forms: Vec<Vec<Word>>,
    /// Whether the line goes on without waiting for it.
    pub(crate) background: bool,
    /// It runs code in another language that stands in the line and is not read.
    pub(crate) has_code: bool,
}

impl Command {
    /// What is run in the end.
    pub(crate) fn words(&self) -> &[Word] {
        self.forms.last().map_or(&[], Vec::as_slice)
    }
}

impl fmt::Display for Command {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.forms.first().map_or(&[][..], Vec::as_slice);
        formatter
            .write_str(&shown(&words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")))
    }
}

/// What a line does beside running commands, which changes what they do or where it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Beside {
    /// It sets this variable, for one command or for those that follow.
    Variable(String),
    /// It writes this file.
    File(String),
    /// A command that mostly reads writes a file because of this option.
    Option(String),
    /// A command such as sed runs code from a file.
    ScriptFile(String),
}

impl fmt::Display for Beside {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(formatter, "the line sets `{}`", shown(name)),
            Self::File(name) => write!(formatter, "the line writes `{}`", shown(name)),
            Self::Option(option) => write!(formatter, "`{}` writes a file", shown(option)),
            Self::ScriptFile(command) => write!(formatter, "`{}` runs code from a file", shown(command)),
        }
    }
}

/// A text from a command, short and on one line.
pub(crate) fn shown(text: &str) -> String {
    let short = cut(text, MOST_SHOWN);
    let dots = if short.len() < text.len() { "…" } else { "" };
    format!("{}{dots}", shown_name(short.as_bytes()))
}

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// Without quotes; as it was written, if nobody can know what it will be.
    pub(crate) text: String,
    pub(crate) kind: Kind,
}

impl Word {
    fn unknown(text: &str) -> Self {
        Self { text: text.to_owned(), kind: Kind::Unknown }
    }

    pub(crate) fn of_literal(text: &str) -> Self {
        Self { text: text.to_owned(), kind: Kind::Literal }
    }

    /// The value of a variable that had another one before: only a number stays what it is.
    fn appended(self) -> Self {
        let is_number = self.text.bytes().all(|byte| byte.is_ascii_digit());
        Self { kind: if is_number { self.kind } else { self.kind.max(Kind::Unknown) }, ..self }
    }

    /// What it is sure to begin with.
    pub(crate) fn certain_beginning(&self) -> &str {
        let text = match self.kind {
            Kind::Literal => return &self.text,
            Kind::Pattern => self.text.as_str(),
            Kind::Unknown | Kind::Words => self.text.strip_prefix('"').unwrap_or(&self.text),
        };
        let end = text
            .find(['$', '`', '"', '\'', '\\', '*', '?', '[', '{', '~', '(', '<', '>', '…', '@', '!', '+']);
        &text[..end.unwrap_or(text.len())]
    }

    /// Whether it may become an option, though nothing of it says so yet.
    pub(crate) fn may_be_option(&self) -> bool {
        let beginning = self.certain_beginning();
        self.kind != Kind::Literal && (beginning.is_empty() || beginning.starts_with('-'))
    }

    /// Whether it may become several words, some of them perhaps options.
    pub(crate) fn may_become_several(&self) -> bool {
        matches!(self.kind, Kind::Pattern | Kind::Words)
    }

    /// Whether it is a list in braces that may have options in it: `{-e,x}`.
    fn may_become_options(&self) -> bool {
        self.kind == Kind::Words && self.may_be_option() && !self.text.contains(['$', '`'])
    }

    /// What it will be, if that is certain.
    pub(crate) fn literal(&self) -> Option<&str> {
        (self.kind == Kind::Literal).then_some(self.text.as_str())
    }

    /// The name of the program, if it is certain, without the folder in which it is.
    pub(crate) fn program(&self) -> Option<&str> {
        self.literal().map(|name| name.rsplit('/').next().unwrap_or(name))
    }
}

/// How much is known of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// All of it.
    Literal,
    /// It has a pattern of file names in it, which may stay as it is.
    Pattern,
    /// It has an expansion in it.
    Unknown,
    /// It has an expansion or braces in it that may become several words, or none.
    Words,
}

/// Why not everything that a line runs can be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unseen {
    TooLong,
    TooDeep,
    Syntax,
    /// The name of a command is known only when it runs.
    Name(String),
    /// A text is run as commands that is known only when it runs.
    Text(String),
    /// A shell runs what comes to its standard input.
    Input(String),
    /// What is in a variable is evaluated, which can run anything.
    Evaluated(String),
    /// A variable is set that makes programs run something.
    Variable(String),
    /// A program is given something to run in a way that is not read here.
    Code(String),
    /// A name gets another meaning.
    Alias,
}

impl fmt::Display for Unseen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(formatter, "it is longer than {} KiB", LONGEST / 1024),
            Self::TooDeep => write!(formatter, "it is nested more than {DEEPEST} deep"),
            Self::Syntax => formatter.write_str("its syntax is not understood"),
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
