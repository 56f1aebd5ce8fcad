//! What a simple command runs: itself, the command after its wrappers, and commands from its options and its standard input.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `getopt` | the options of a command, as `getopt` reads them |
//! | `wrappers` | commands that run other commands: `env`, `sudo`, `bash -c`, `xargs` |
//! | `launchers` | more of those, each with a syntax of its own: `ssh`, `flock`, `parallel` |
//! | `interpreters`, `awk` | code in other languages: `python -c`, `sed`, `awk` |
//! | `command_options` | options whose value is a command: `tar --to-command`, `rsync -e` |
//! | `git`, `find` | what `git` and `find` run |
//! | `builtins` | builtins that take names of variables: `read`, `printf -v`, `declare` |
//! | `variables` | variables that make programs run something: `PAGER`, `PS4` |

mod awk;
mod builtins;
mod command_options;
mod find;
mod getopt;
mod git;
mod interpreters;
mod launchers;
mod variables;
mod wrappers;

use crate::shell::parser::{ShellParser, StdinSource};
use crate::shell::{ShellCommand, ShellWord, SideEffect, UnseenReason};
use command_options::{commands_in_options, writes_file};
use git::commands_run_by_git;
pub(crate) use git::without_global_options;
pub(super) use variables::{NameUses, VariableScope};
use wrappers::{
    InnerCommand, doubtful_option, inner_command_of, join_words, reads_another_syntax, renames,
    variable_settings,
};

/// The most wrappers before one command.
const MAX_WRAPPERS: usize = 16;

impl ShellParser<'_, '_> {
    /// Adds a command to the script, and the commands that it runs.
    pub(in crate::shell) fn record_command(&mut self, words: Vec<ShellWord>, input: Option<&StdinSource>) {
        let mut forms = vec![words];
        let mut further = Vec::new();
        let mut text = None;
        let mut has_code = false;
        while let Some(words) = forms.last() {
            match inner_command_of(words) {
                InnerCommand::Nothing => break,
                InnerCommand::Same(_) if forms.len() == MAX_WRAPPERS => {
                    self.script.unseen.push(UnseenReason::TooDeep);
                    break;
                }
                InnerCommand::Same(words) => forms.push(words),
                InnerCommand::Own(commands) => {
                    further = commands;
                    break;
                }
                InnerCommand::Text(script) => {
                    text = Some(script);
                    break;
                }
                InnerCommand::Code => {
                    has_code = true;
                    break;
                }
                InnerCommand::ScriptFile(command) => {
                    self.script.side_effects.push(SideEffect::ScriptFile(command));
                    break;
                }
                InnerCommand::Unseen(unseen) => {
                    self.script.unseen.push(unseen);
                    break;
                }
                InnerCommand::Input(shell) => {
                    text = self.script_from(input, shell);
                    break;
                }
            }
        }
        self.record_inner_commands(&forms);
        self.script.commands.push(ShellCommand { forms, background: false, has_code });
        for words in further {
            let nested = self.nested(|parser| {
                parser.record_command(words, input);
                Ok(())
            });
            if let Err(unseen) = nested {
                self.script.unseen.push(unseen);
            }
        }
        if let Some(text) = text {
            self.inner_script(&text);
        }
    }

    /// Adds what a command runs and sets by its variables, its options and its config.
    fn record_inner_commands(&mut self, forms: &[Vec<ShellWord>]) {
        for word in forms.iter().flat_map(|words| variable_settings(words)) {
            let (name, value) = word.text.trim_start_matches('"').split_once('=').unwrap_or_default();
            let value = ShellWord { text: value.to_owned(), kind: word.kind };
            self.record_variable(name, Some(&value), VariableScope::Environment);
        }
        let doubtful = forms.iter().filter_map(|words| doubtful_option(words));
        self.script.side_effects.extend(doubtful.map(SideEffect::Wrapper));
        let unread = forms.iter().filter(|words| renames(words) || reads_another_syntax(words));
        self.script.unseen.extend(unread.map(|words| UnseenReason::Code(join_words(words))));
        let Some(words) = forms.last() else { return };
        self.record_builtin_names(words);
        let git = commands_run_by_git(words);
        self.script.unseen.extend(git.unseen);
        for command in commands_in_options(words).into_iter().chain(git.texts) {
            match command.literal() {
                Some(text) => self.inner_script(&format!("{text} \"$argument\"")),
                None => self.script.unseen.push(UnseenReason::Code(command.text)),
            }
        }
        self.script.side_effects.extend(writes_file(words).map(SideEffect::Option));
    }

    /// The script that a shell reads from its standard input, if the line contains it.
    fn script_from(&mut self, input: Option<&StdinSource>, shell: String) -> Option<String> {
        match input {
            Some(StdinSource::HereDocument(index)) => {
                if let Some(document) = self.here_documents.get_mut(*index) {
                    document.is_script = true;
                }
                return None;
            }
            Some(StdinSource::Text(word)) if word.literal().is_some() => return Some(word.text.clone()),
            Some(StdinSource::Text(word)) => self.script.unseen.push(UnseenReason::Text(word.text.clone())),
            Some(StdinSource::Other) | None => self.script.unseen.push(UnseenReason::Input(shell)),
        }
        None
    }

    /// Parses a nested text. A syntax error in it does not end the parsing of this one.
    pub(in crate::shell) fn inner_script(&mut self, text: &str) {
        let depth = self.depth;
        let mut inner = ShellParser { depth, ..ShellParser::new(text, self.script) };
        inner.script();
    }
}
