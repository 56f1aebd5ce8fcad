//! The forms of a command that the rules are compared with, and the reasons to doubt that a command is what it looks like.
//!
//! A user who allows `ls*` means the program `ls`, and nothing else that the line does. So where the default asks or denies, a rule
//! allows a command only if there is no doubt about it.

use super::glob_pattern::CommandText;
use super::option_pattern::CommandOptions;
use crate::shell::{ShellCommand, ShellScript, ShellWord, UnseenReason, without_global_options};

/// How many words before a subcommand may be options of the program.
const MAX_LEADING_WORDS: usize = 8;

/// One form of a command.
pub(super) struct CommandForm {
    pub(super) text: CommandText,
    /// The words without the order of the options, for rules that ask or deny.
    pub(super) options: Option<CommandOptions>,
    /// The form is a guess. It counts only for rules that ask or deny.
    pub(super) is_guess: bool,
    /// Why the command may do more than its words say.
    pub(super) doubt: Option<String>,
}

/// Why a line may do more than its commands say.
pub(super) fn doubt_of_script(script: &ShellScript) -> Option<String> {
    let runs_more = |unseen: &&UnseenReason| {
        matches!(
            unseen,
            UnseenReason::Evaluated(_)
                | UnseenReason::Variable(_)
                | UnseenReason::Code(_)
                | UnseenReason::Alias
        )
    };
    let unseen = script.unseen.iter().find(runs_more);
    script.side_effects.first().map(ToString::to_string).or_else(|| unseen.map(ToString::to_string))
}

/// All forms of a command: as written, without wrappers that only pass it on, without the folder of its program, without the global
/// options of git.
pub(super) fn forms_of(command: &ShellCommand, doubt_of_line: Option<&String>) -> Vec<CommandForm> {
    let mut doubt = doubt_of_line.cloned();
    let mut forms = Vec::new();
    for words in &command.forms {
        let by_path = words.first().and_then(by_path);
        let git = without_global_options(words);
        let variants = [Some(words), git.as_ref().filter(|git| *git != words)];
        for (index, variant) in variants.into_iter().flatten().enumerate() {
            // `./git-log` is not certainly the log of git.
            let of_git = (index > 0).then(|| by_path.clone().or_else(|| other_name_of_git(words))).flatten();
            // Options before the subcommand of git are not options of the subcommand.
            let is_whole = git.as_ref().is_none_or(|git| git == variant);
            let options = is_whole.then(|| CommandOptions::of_words(variant)).flatten();
            forms.push(CommandForm {
                text: CommandText::of_words(variant),
                options,
                is_guess: false,
                doubt: doubt.clone().or(of_git),
            });
            if let Some(text) = CommandText::without_folder(variant) {
                let doubt = doubt.clone().or_else(|| by_path.clone());
                forms.push(CommandForm { text, options: None, is_guess: false, doubt });
            }
        }
        // A doubt about a wrapper is also a doubt about the command that it runs.
        doubt = doubt.or(by_path);
    }
    forms.extend(guessed_forms(command.words()));
    forms
}

/// The doubt about a program such as `git-log`, which is read as `git log`.
fn other_name_of_git(words: &[ShellWord]) -> Option<String> {
    let name = words.first()?.literal();
    (name != Some("git")).then(|| "its program may be another than git".to_owned())
}

/// The forms that result if the words before a subcommand are options: `docker --host x push` may be `docker push`.
fn guessed_forms(words: &[ShellWord]) -> Vec<CommandForm> {
    let Some((name, arguments)) = words.split_first().filter(|(name, _)| name.program() != Some("git"))
    else {
        return Vec::new();
    };
    let is_option = |word: &ShellWord| word.text.starts_with('-');
    let is_value = |at: usize| at > 0 && is_option(&arguments[at - 1]) && !is_option(&arguments[at]);
    let leading = (0..arguments.len().min(MAX_LEADING_WORDS))
        .take_while(|at| is_option(&arguments[*at]) || is_value(*at));
    let starts = leading.filter_map(|at| is_value(at).then_some(at + 1));
    let program = ShellWord::of_literal(name.program().unwrap_or(&name.text));
    let words_from =
        |at: usize| std::iter::once(&program).chain(&arguments[at..]).cloned().collect::<Vec<_>>();
    let form = |words: Vec<ShellWord>| CommandForm {
        text: CommandText::of_words(&words),
        options: CommandOptions::of_words(&words),
        is_guess: true,
        doubt: None,
    };
    starts.map(|at| form(words_from(at))).collect()
}

fn by_path(name: &ShellWord) -> Option<String> {
    let program = name.program().filter(|program| *program != name.text)?;
    Some(format!("`{}` need not be the `{program}` that is meant", crate::shell::shown(&name.text)))
}
