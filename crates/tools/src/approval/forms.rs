//! How a command may be written, for a rule to be held against, and whether it is sure to be what it looks like.
//!
//! Who lets `ls*` run means the program of that name, and nothing that a line does beside it. So where a command is only asked
//! about or refused because that is the default, a rule must not lift that if there is a doubt.

use super::options::CommandOptions;
use super::pattern::Text;
use crate::shell::{Command, Script, Unseen, Word, without_global_options};

/// Words before a subcommand that are looked at.
const MOST_LEADING: usize = 8;

/// One form of a command.
pub(super) struct Form {
    pub(super) text: Text,
    /// The same without regard to the order of its options, for rules that ask or deny.
    pub(super) options: Option<CommandOptions>,
    /// It is only a guess at what the command is, for rules that ask or deny.
    pub(super) is_guess: bool,
    /// Why it may do more than it says.
    pub(super) doubt: Option<String>,
}

/// What a line does beside its commands, if that is anything.
pub(super) fn doubt_of(script: &Script) -> Option<String> {
    let runs_more = |unseen: &&Unseen| {
        matches!(unseen, Unseen::Evaluated(_) | Unseen::Variable(_) | Unseen::Code(_) | Unseen::Alias)
    };
    let unseen = script.unseen.iter().find(runs_more);
    script.beside.first().map(ToString::to_string).or_else(|| unseen.map(ToString::to_string))
}

/// All forms of a command: as it was written, without what only passes it on, without the folder of its program, without the
/// options of git.
pub(super) fn forms_of(command: &Command, doubt_of_line: Option<&String>) -> Vec<Form> {
    let mut doubt = doubt_of_line.cloned();
    let mut forms = Vec::new();
    for words in &command.forms {
        let by_path = words.first().and_then(by_path);
        let git = without_global_options(words);
        let variants = [Some(words), git.as_ref().filter(|git| *git != words)];
        for variant in variants.into_iter().flatten() {
            // What stands before the subcommand of git is no option of the subcommand.
            let is_whole = git.as_ref().is_none_or(|git| git == variant);
            let options = is_whole.then(|| CommandOptions::of_words(variant)).flatten();
            forms.push(Form {
                text: Text::of_words(variant),
                options,
                is_guess: false,
                doubt: doubt.clone(),
            });
            if let Some(text) = Text::without_folder(variant) {
                let doubt = doubt.clone().or_else(|| by_path.clone());
                forms.push(Form { text, options: None, is_guess: false, doubt });
            }
        }
        // What is behind a program that may be another one is no surer than that.
        doubt = doubt.or(by_path);
    }
    forms.extend(guesses(command.words()));
    forms
}

/// The command without the options before its subcommand, as far as they may reach: `docker --host x push` may be `docker push`.
fn guesses(words: &[Word]) -> Vec<Form> {
    let Some((name, arguments)) = words.split_first().filter(|(name, _)| name.program() != Some("git"))
    else {
        return Vec::new();
    };
    let is_option = |word: &Word| word.text.starts_with('-');
    let is_value = |at: usize| at > 0 && is_option(&arguments[at - 1]) && !is_option(&arguments[at]);
    let leading =
        (0..arguments.len().min(MOST_LEADING)).take_while(|at| is_option(&arguments[*at]) || is_value(*at));
    let starts = leading.filter_map(|at| is_value(at).then_some(at + 1));
    let program = Word::of_literal(name.program().unwrap_or(&name.text));
    let words_from =
        |at: usize| std::iter::once(&program).chain(&arguments[at..]).cloned().collect::<Vec<_>>();
    let form = |words: Vec<Word>| Form {
        text: Text::of_words(&words),
        options: CommandOptions::of_words(&words),
        is_guess: true,
        doubt: None,
    };
    starts.map(|at| form(words_from(at))).collect()
}

fn by_path(name: &Word) -> Option<String> {
    let program = name.program().filter(|program| *program != name.text)?;
    Some(format!("`{}` need not be the `{program}` that is meant", crate::shell::shown(&name.text)))
}
