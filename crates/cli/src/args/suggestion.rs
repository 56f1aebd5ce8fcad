//! Suggestions for a command line that can't be parsed.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};

use crate::args::Arguments;
use crate::suggested_command::quoted;

/// Jaro similarity below which a flag is no suggestion.
const MIN_SIMILARITY: f64 = 0.7;
/// The same for a command. A word may also be the first one of a prompt, so this has to be higher.
const MIN_COMMAND_SIMILARITY: f64 = 0.8;

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
        ErrorKind::UnknownArgument if !has_tip => server_command_without_dashes(&error, words)
            .or_else(|| prompt_without_quotes(&error, words))
            .or_else(|| flag_of_another(&error)),
        _ => None,
    };
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// The error for a single word that is no command.
pub(crate) fn unknown_command(word: &str) -> String {
    let nearest = nearest_command(word).map(|name| format!("\n\n  tip: did you mean '{name}'?"));
    let (nearest, said) = (nearest.unwrap_or_default(), quoted(word));
    format!(
        "there is no command '{word}'{nearest}\n\n  tip: to send it to the agent, use: longhaul -- {said}"
    )
}

fn nearest_command(word: &str) -> Option<String> {
    let command = Arguments::command();
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    let names = shown.map(|command| command.get_name().to_owned());
    // Of short words, one with two letters in the wrong order is hardly alike by that measure.
    let similarity = |name: &str| match has_swapped_letters(name, word) {
        true => 1.0,
        false => strsim::jaro(name, word),
    };
    let near = names.map(|name| (similarity(&name), name));
    let best = near.max_by(|one, other| one.0.total_cmp(&other.0))?;
    (best.0 >= MIN_COMMAND_SIMILARITY).then_some(best.1)
}

/// Whether a word is another one with two neighbouring letters swapped.
fn has_swapped_letters(name: &str, word: &str) -> bool {
    name.len() == word.len() && strsim::levenshtein(name, word) == 2 && strsim::osa_distance(name, word) == 1
}

/// The program of `mcp add` stands behind `--`.
fn server_command_without_dashes(error: &clap::Error, words: &[String]) -> Option<String> {
    let wrong = text(error, ContextKind::InvalidArg)?;
    let add = words.windows(2).position(|pair| pair == ["mcp", "add"])?;
    let extra = words.iter().position(|word| word == wrong).filter(|extra| *extra > add + 2)?;
    let program: Vec<String> = words[extra..].iter().map(|word| quoted(word)).collect();
    let program = program.join(" ");
    (!wrong.starts_with('-'))
        .then(|| format!("the program stands behind --: longhaul mcp add {} -- {program}", words[add + 2]))
}

/// Extra arguments of `run`, or without a command, are most likely a prompt without quotes.
fn prompt_without_quotes(error: &clap::Error, words: &[String]) -> Option<String> {
    let wrong = text(error, ContextKind::InvalidArg)?;
    let command = Arguments::command();
    let named = words.iter().position(|word| command.find_subcommand(word).is_some());
    let extra = words.iter().position(|word| word == wrong)?;
    if wrong.starts_with('-') {
        return None;
    }
    match named.filter(|named| *named < extra) {
        Some(run) if words[run] == "run" && extra > run + 1 => {
            Some(format!("quote the prompt: longhaul run {}", prompt(&words[extra - 1..])))
        }
        Some(_) => None,
        None => {
            let first = extra.checked_sub(1)?;
            Some(match nearest_command(&words[first]) {
                Some(name) => format!("did you mean '{name}'?"),
                None => format!("quote the prompt: longhaul {}", prompt(&words[first..])),
            })
        }
    }
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
