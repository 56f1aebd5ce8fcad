//! Suggestions for a command line that can't be parsed.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};

use crate::args::Arguments;
use crate::suggested_command::quoted;

/// Jaro similarity below which a flag is no suggestion.
const MIN_SIMILARITY: f64 = 0.7;

/// Adds a suggestion to the error where the parser has none.
pub(crate) fn with_suggestion(mut error: clap::Error, words: &[String]) -> clap::Error {
    let has_tip = [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedValue,
        ContextKind::SuggestedCommand,
    ]
    .into_iter()
    .any(|kind| error.get(kind).is_some());
    let tip = match error.kind() {
        ErrorKind::InvalidSubcommand => prompt_without_run(&error, words, has_tip),
        ErrorKind::UnknownArgument if !has_tip => {
            prompt_without_quotes(&error, words).or_else(|| flag_of_another(&error))
        }
        _ => None,
    };
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// An unknown command is most likely a prompt without `run`.
fn prompt_without_run(error: &clap::Error, words: &[String], has_tip: bool) -> Option<String> {
    let wrong = text(error, ContextKind::InvalidSubcommand)?;
    let at = words.iter().position(|word| word == wrong)?;
    let said = &words[at..];
    let is_sentence = said.len() > 1 || wrong.contains(char::is_whitespace);
    let of_command = words[..at].iter().any(|word| Arguments::command().find_subcommand(word).is_some());
    if of_command || (has_tip && !is_sentence) {
        return None;
    }
    Some(format!("to prompt the agent, use: longhaul run {}", prompt(said)))
}

/// Extra arguments of `run` are most likely a prompt without quotes.
fn prompt_without_quotes(error: &clap::Error, words: &[String]) -> Option<String> {
    let wrong = text(error, ContextKind::InvalidArg)?;
    let at = words.iter().position(|word| word == "run")?;
    let extra = words.iter().skip(at + 1).position(|word| word == wrong)?;
    if wrong.starts_with('-') || extra == 0 {
        return None;
    }
    Some(format!("quote the prompt: longhaul run {}", prompt(&words[at + extra..])))
}

fn prompt(words: &[String]) -> String {
    match words.iter().any(|word| word.starts_with('-')) || words.concat().len() > 60 {
        true => "\"…\"".to_owned(),
        false => quoted(&words.join(" ")),
    }
}

/// An unknown flag that another command has.
fn flag_of_another(error: &clap::Error) -> Option<String> {
    let wrong = text(error, ContextKind::InvalidArg)?.strip_prefix("--")?.split('=').next()?.to_owned();
    let mut flags = Vec::new();
    collect_flags(&Arguments::command(), "longhaul", &mut flags);
    let alike = |(_, flag): &(String, String)| strsim::jaro(flag, &wrong);
    let best = flags.iter().max_by(|one, other| alike(one).total_cmp(&alike(other)))?;
    let (best, at_best) = (best.1.clone(), alike(best));
    if at_best < MIN_SIMILARITY {
        return None;
    }
    let mut owners: Vec<String> =
        flags.into_iter().filter(|(_, flag)| *flag == best).map(|(owner, _)| owner).collect();
    owners.dedup();
    let more = if owners.len() > 3 { " and others" } else { "" };
    owners.truncate(3);
    Some(format!("--{best} is an option of {}{more}", owners.join(", ")))
}

/// Every long flag of a command and its subcommands, with the command.
fn collect_flags(command: &Command, name: &str, flags: &mut Vec<(String, String)>) {
    let own = command.get_arguments().filter_map(|flag| flag.get_long());
    flags.extend(own.map(|flag| (name.to_owned(), flag.to_owned())));
    for below in command.get_subcommands() {
        collect_flags(below, &format!("{name} {}", below.get_name()), flags);
    }
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
#[path = "suggestion_tests.rs"]
mod tests;
