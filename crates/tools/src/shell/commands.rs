//! What a simple command runs: itself, behind wrappers, from its options, from its standard input.

use super::command_options::{commands_in_options, writes_file};
use super::git::git_runs;
use super::grammar::{Input, Parser};
use super::variables::VariableScope;
use super::wrappers::{Inside, inside, settings};
use super::{Beside, Command, Unseen, Word};

/// A command behind more wrappers than this is behind too many.
const MOST_WRAPPERS: usize = 16;

impl Parser<'_, '_> {
    /// Notes a command, and what it runs in turn.
    pub(super) fn found(&mut self, words: Vec<Word>, input: Option<&Input>) {
        let mut forms = vec![words];
        let mut further = Vec::new();
        let mut text = None;
        let mut has_code = false;
        while let Some(words) = forms.last() {
            match inside(words) {
                Inside::Nothing => break,
                Inside::Same(_) if forms.len() == MOST_WRAPPERS => {
                    self.script.unseen.push(Unseen::TooDeep);
                    break;
                }
                Inside::Same(words) => forms.push(words),
                Inside::Own(commands) => {
                    further = commands;
                    break;
                }
                Inside::Text(script) => {
                    text = Some(script);
                    break;
                }
                Inside::Code => {
                    has_code = true;
                    break;
                }
                Inside::ScriptFile(command) => {
                    self.script.beside.push(Beside::ScriptFile(command));
                    break;
                }
                Inside::Unseen(unseen) => {
                    self.script.unseen.push(unseen);
                    break;
                }
                Inside::Input(shell) => {
                    text = self.script_from(input, shell);
                    break;
                }
            }
        }
        self.look_inside(&forms);
        self.script.commands.push(Command { forms, background: false, has_code });
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

    /// Notes what a command runs or sets in other ways than by being what it is.
    fn look_inside(&mut self, forms: &[Vec<Word>]) {
        for word in forms.iter().flat_map(|words| settings(words)) {
            let (name, value) = word.text.trim_start_matches('"').split_once('=').unwrap_or_default();
            let value = Word { text: value.to_owned(), kind: word.kind };
            self.variable_set(name, Some(&value), VariableScope::Environment);
        }
        let Some(words) = forms.last() else { return };
        self.builtin_names(words);
        let git = git_runs(words);
        self.script.unseen.extend(git.unseen);
        for command in commands_in_options(words).into_iter().chain(git.texts) {
            match command.literal() {
                Some(text) => self.inner_script(&format!("{text} \"$argument\"")),
                None => self.script.unseen.push(Unseen::Code(command.text)),
            }
        }
        self.script.beside.extend(writes_file(words).map(Beside::Option));
    }

    /// What a shell without arguments would run, if it stands here.
    fn script_from(&mut self, input: Option<&Input>, shell: String) -> Option<String> {
        match input {
            Some(Input::HereDocument(index)) => {
                if let Some(document) = self.here_documents.get_mut(*index) {
                    document.is_script = true;
                }
                return None;
            }
            Some(Input::Text(word)) if word.literal().is_some() => return Some(word.text.clone()),
            Some(Input::Text(word)) => self.script.unseen.push(Unseen::Text(word.text.clone())),
            Some(Input::Other) | None => self.script.unseen.push(Unseen::Input(shell)),
        }
        None
    }

    /// Reads another text as commands, which may fail without keeping anybody from reading on here.
    pub(super) fn inner_script(&mut self, text: &str) {
        let depth = self.depth;
        let mut inner = Parser { depth, ..Parser::new(text, self.script) };
        inner.script();
    }
}
