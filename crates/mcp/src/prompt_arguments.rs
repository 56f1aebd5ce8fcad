//! The arguments of a prompt, as a user types them behind its name: `name=value`, or values in the order of the arguments. The menu shows
//! the names in capitals, so that case does not matter. Quotes
//! take a value with spaces. The last argument takes all words that are left.

use serde_json::{Map, Value};

use crate::PromptParameter;

/// The arguments in a text. The error says which are missing or too many.
pub(crate) fn parse_arguments(
    parameters: &[PromptParameter],
    text: &str,
) -> Result<Map<String, Value>, String> {
    let mut arguments = Map::new();
    let mut in_order = Vec::new();
    for word in words(text) {
        let named = word.split_once('=').and_then(|(name, value)| {
            let exact = parameters.iter().find(|known| known.name == name);
            let alike = || parameters.iter().find(|known| known.name.eq_ignore_ascii_case(name));
            Some((exact.or_else(alike)?.name.clone(), value))
        });
        match named {
            Some((name, value)) => drop(arguments.insert(name, value.into())),
            None => in_order.push(word),
        }
    }
    let open: Vec<&PromptParameter> =
        parameters.iter().filter(|parameter| !arguments.contains_key(&parameter.name)).collect();
    if open.is_empty() && !in_order.is_empty() {
        return Err(match parameters.is_empty() {
            true => "the prompt takes no arguments".to_owned(),
            false => format!("the prompt has no argument for {:?}", in_order.join(" ")),
        });
    }
    let mut values = in_order.into_iter();
    for (index, parameter) in open.iter().enumerate() {
        let is_last = index + 1 == open.len();
        let value = if is_last {
            values.by_ref().collect::<Vec<_>>().join(" ")
        } else {
            values.next().unwrap_or_default()
        };
        if !value.is_empty() {
            arguments.insert(parameter.name.clone(), value.into());
        }
    }
    let is_missing =
        |parameter: &&PromptParameter| parameter.is_required && !arguments.contains_key(&parameter.name);
    let missing: Vec<&str> =
        parameters.iter().filter(is_missing).map(|missing| missing.name.as_str()).collect();
    match missing.is_empty() {
        true => Ok(arguments),
        false => Err(format!("the prompt needs {}: type NAME=VALUE behind its name", missing.join(", "))),
    }
}

/// Splits a text at white space that is not in quotes.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), None::<String>, false);
    for letter in text.chars() {
        match letter {
            '"' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            letter if letter.is_whitespace() && !is_quoted => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
#[path = "prompt_arguments_tests.rs"]
mod tests;
