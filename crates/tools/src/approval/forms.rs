//! How a command may be written, for a rule to be held against, and whether it is sure to be what it looks like.
//!
//! Who lets `ls*` run means the program of that name, and nothing that a line does beside it. So where a command is only asked
//! about or refused because that is the default, a rule must not lift that if there is a doubt.

use super::pattern::Text;
use crate::shell::{Command, Script, Unseen, Word, without_global_options};

/// One form of a command.
pub(super) struct Form {
    pub(super) text: Text,
    /// Why it may do more than it says.
    pub(super) doubt: Option<String>,
}

/// What a line does beside its commands, if that is anything.
pub(super) fn doubt_of(script: &Script) -> Option<String> {
    let evaluated = script.unseen.iter().find(|unseen| matches!(unseen, Unseen::Evaluated(_)));
    script.beside.first().map(ToString::to_string).or_else(|| evaluated.map(ToString::to_string))
}

/// All forms of a command: as it was written, without what only passes it on, without the folder of its program, without the
/// options of git.
pub(super) fn forms_of(command: &Command, doubt_of_line: Option<&String>) -> Vec<Form> {
    let configured = command.forms.iter().find_map(|form| without_global_options(form)?.configures);
    let configured = configured.map(|option| format!("`git {option}` can make it run anything"));
    let mut doubt = doubt_of_line.cloned().or(configured);
    let mut forms = Vec::new();
    for (index, words) in command.forms.iter().enumerate() {
        let by_path = words.first().and_then(by_path);
        let git = without_global_options(words);
        let variants = [Some(words), git.as_ref().map(|git| &git.words)];
        for variant in variants.into_iter().flatten() {
            forms.push(Form { text: Text::of_words(variant), doubt: doubt.clone() });
            if let Some(text) = Text::without_folder(variant) {
                forms.push(Form { text, doubt: doubt.clone().or_else(|| by_path.clone()) });
            }
        }
        // What is behind a program that may be another one is no surer than that.
        let next = command.forms.get(index + 1).map_or(0, Vec::len);
        let passed = &words[..words.len().saturating_sub(next)];
        doubt = doubt.or(by_path).or_else(|| sets_variable(passed));
    }
    forms
}

fn by_path(name: &Word) -> Option<String> {
    let program = name.program().filter(|program| *program != name.text)?;
    Some(format!("`{}` need not be the `{program}` that is meant", crate::shell::shown(&name.text)))
}

/// What `env` and its like set for the command behind them.
fn sets_variable(words: &[Word]) -> Option<String> {
    let set = words.iter().skip(1).find(|word| word.text.contains('=') && !word.text.starts_with('-'))?;
    let name = set.text.split('=').next().unwrap_or_default();
    Some(format!("`{}` is set for it", crate::shell::shown(name)))
}
