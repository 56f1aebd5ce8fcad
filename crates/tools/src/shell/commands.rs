//! What a simple command runs: itself, behind wrappers, from its options, from its standard input.

use super::command_options::{commands_in_options, writes_file};
use super::git::git_runs;
use super::grammar::{ShellParser, StdinSource};
use super::variables::VariableScope;
use super::wrappers::{
    InnerCommand, doubtful_option, inside, joined, reads_another_syntax, renames, settings,
};
use super::{ShellCommand, ShellWord, SideEffect, UnseenReason};

/// Wrappers in front of one command.
const MAX_WRAPPERS: usize = 16;

impl ShellParser<'_, '_> {
    /// Adds a command to the script, and the commands that it runs.
    pub(super) fn found(&mut self, words: Vec<ShellWord>, input: Option<&StdinSource>) {
        let mut forms = vec![words];
        let mut further = Vec::new();
        let mut text = None;
        let mut has_code = false;
        while let Some(words) = forms.last() {
            match inside(words) {
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
        self.look_inside(&forms);
        self.script.commands.push(ShellCommand { forms, background: false, has_code });
        for words in further {
            let nested = self.nested(|parser| {
                parser.found(words, input);
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
    fn look_inside(&mut self, forms: &[Vec<ShellWord>]) {
        for word in forms.iter().flat_map(|words| settings(words)) {
            let (name, value) = word.text.trim_start_matches('"').split_once('=').unwrap_or_default();
            let value = ShellWord { text: value.to_owned(), kind: word.kind };
            self.variable_set(name, Some(&value), VariableScope::Environment);
        }
        let doubtful = forms.iter().filter_map(|words| doubtful_option(words));
        self.script.side_effects.extend(doubtful.map(SideEffect::Wrapper));
        let unread = forms.iter().filter(|words| renames(words) || reads_another_syntax(words));
        self.script.unseen.extend(unread.map(|words| UnseenReason::Code(joined(words))));
        let Some(words) = forms.last() else { return };
        self.builtin_names(words);
        let git = git_runs(words);
        self.script.unseen.extend(git.unseen);
        for command in commands_in_options(words).into_iter().chain(git.texts) {
            match command.literal() {
                Some(text) => self.inner_script(&format!("{text} \"$argument\"")),
                None => self.script.unseen.push(UnseenReason::Code(command.text)),
            }
        }
        self.script.side_effects.extend(writes_file(words).map(SideEffect::Option));
    }

    /// The script that a shell reads from its standard input, if it stands in the line.
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

    /// Parses another text. A syntax error in it doesn't end the parsing of this one.
    pub(super) fn inner_script(&mut self, text: &str) {
        let depth = self.depth;
        let mut inner = ShellParser { depth, ..ShellParser::new(text, self.script) };
        inner.script();
    }
}
