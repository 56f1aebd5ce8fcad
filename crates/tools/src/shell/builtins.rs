//! Builtins of the shell that take names of variables: `read`, `printf -v`, `declare`.
//!
//! Bash evaluates the subscript of such a name, so that `printf -v 'a[$(git push)]' x` runs `git push`. Only a plain name, or one with a
//! number as its subscript, is sure to run nothing.

use super::evaluation::evaluates;
use super::grammar::Parser;
use super::variables::{VariableUse, variable_use};
use super::word::is_name;
use super::{Kind, Unseen, Word};

/// What a builtin does with names.
#[derive(Debug, Default, PartialEq, Eq)]
struct Names<'words> {
    /// Names that it sets or looks up, without a value.
    names: Vec<&'words Word>,
    /// Words such as `name` or `name=value`.
    declarations: Vec<&'words Word>,
    /// Names that become arrays.
    arrays: Vec<&'words Word>,
    /// It evaluates its arguments in any case.
    evaluates: bool,
}

impl Parser<'_, '_> {
    /// Notes that a variable is set, with its value if that is one word.
    pub(super) fn variable_set(&mut self, name: &str, value: Option<&Word>) {
        let text = value.and_then(Word::literal);
        let is_number = text.is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        if !is_number {
            self.script.names.texts.insert(name.to_owned());
        }
        match (variable_use(name), text) {
            (None, _) | (_, Some("")) => {}
            (Some(VariableUse::Integer), _) if is_number => {}
            (Some(VariableUse::Prompt), Some(text)) => self.expansions_in(text),
            (Some(VariableUse::Command), Some(text)) => self.inner_script(&format!("{text} \"$argument\"")),
            (Some(_), _) => self.script.unseen.push(Unseen::Variable(name.to_owned())),
        }
    }

    /// Looks at the names that a builtin gets, if the command is one that takes some.
    pub(super) fn builtin_names(&mut self, words: &[Word]) {
        let Some((name, arguments)) = words.split_first() else { return };
        let Some(found) = name.literal().and_then(|name| names_of(name, arguments)) else { return };
        let is_evaluated = found.evaluates || found.names.iter().any(|word| !is_plain(word));
        if is_evaluated {
            self.note_evaluated(words);
        }
        for word in found.names.iter().filter(|word| is_name(&word.text)) {
            self.variable_set(&word.text, None);
        }
        self.script.names.arrays.extend(found.arrays.iter().map(|word| word.text.clone()));
        for word in found.declarations {
            self.declaration(word, words);
        }
    }

    /// `name`, `name=value` or `name[1]=value`, as `declare` takes them.
    fn declaration(&mut self, word: &Word, words: &[Word]) {
        // What is not literal stands as it was written.
        let text = if word.kind == Kind::Literal { &word.text } else { word.text.trim_start_matches('"') };
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name.strip_suffix('+').unwrap_or(name), Some(value)),
            None => (text, None),
        };
        if !is_plain(&Word::of_literal(name)) || (value.is_none() && word.kind != Kind::Literal) {
            return self.note_evaluated(words);
        }
        let Some(value) = value else { return };
        let is_array = word.kind >= Kind::Unknown && value.starts_with('(');
        if word.kind == Kind::Literal && value.starts_with('(') {
            return self.note_evaluated(words);
        }
        if word.kind >= Kind::Unknown && !is_array {
            self.script.names.declared.insert(name.to_owned());
        }
        let value = Word { text: value.to_owned(), kind: word.kind };
        self.variable_set(name, Some(&value));
    }

    fn note_evaluated(&mut self, words: &[Word]) {
        let line = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
        self.script.unseen.push(Unseen::Evaluated(line));
    }
}

/// A name of a variable, or of an element of an array whose subscript is a number.
fn is_plain(word: &Word) -> bool {
    let Some(text) = word.literal() else { return false };
    match text.split_once('[') {
        None => is_name(text) || !text.contains(['[', '$', '`']),
        Some((name, subscript)) => {
            is_name(name) && subscript.strip_suffix(']').is_some_and(|subscript| !evaluates(subscript))
        }
    }
}

fn names_of<'words>(builtin: &str, arguments: &'words [Word]) -> Option<Names<'words>> {
    Some(match builtin {
        "printf" => printf(arguments),
        "test" | "[" => test(arguments),
        "read" => operands(arguments, "adinNptu", 'a'),
        "mapfile" | "readarray" => {
            let found = operands(arguments, "dnOsuCc", '\0');
            Names { arrays: found.names.clone(), ..found }
        }
        "unset" => operands(arguments, "", '\0'),
        "wait" => {
            let found = operands(arguments, "p", 'p');
            Names { names: found.arrays, ..Names::default() }
        }
        "getopts" => Names { names: arguments.get(1).into_iter().collect(), ..Names::default() },
        "declare" | "typeset" | "local" | "export" | "readonly" => declared(arguments),
        "let" => Names {
            evaluates: arguments.iter().any(|word| word.kind >= Kind::Unknown || evaluates(&word.text)),
            ..Names::default()
        },
        _ => return None,
    })
}

fn printf(arguments: &[Word]) -> Names<'_> {
    let mut found = Names::default();
    match arguments {
        [option, name, ..] if option.text == "-v" => found.names.push(name),
        [first, ..] => {
            let attached = first.text.strip_prefix("-v").is_some_and(|name| !is_name(name));
            found.evaluates = attached || first.may_be_option();
        }
        [] => {}
    }
    found
}

/// `-v` may stand anywhere, and so may a word that becomes several.
fn test(arguments: &[Word]) -> Names<'_> {
    let operands = arguments.strip_suffix(&[Word::of_literal("]")]).unwrap_or(arguments);
    let behind_v = operands.windows(2).filter(|pair| pair[0].text == "-v").map(|pair| &pair[1]);
    let is_unknown_operator = matches!(operands, [operator, _] if operator.may_be_option());
    let splits = operands.iter().any(|word| word.kind == Kind::Words);
    Names { names: behind_v.collect(), evaluates: splits || is_unknown_operator, ..Names::default() }
}

/// All arguments that are no options or values of options, which these letters have. The value of one of them is the name of an array.
fn operands<'words>(arguments: &'words [Word], with_value: &str, array: char) -> Names<'words> {
    let mut found = Names::default();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let Some(letters) = word.text.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            found.names.push(word);
            found.names.extend(rest);
            break;
        };
        if letters == "-" {
            found.names.extend(rest);
            break;
        }
        let Some(at) = letters.find(|letter| with_value.contains(letter)) else { continue };
        let is_array = letters[at..].starts_with(array);
        let value = if letters[at..].chars().count() == 1 { rest.next() } else { None };
        match value {
            Some(value) if is_array => {
                found.evaluates |= !is_plain(value);
                found.arrays.push(value);
            }
            None if is_array => found.evaluates |= !is_name(&letters[at + 1..]),
            _ => {}
        }
    }
    found
}

/// With `-i` a value is evaluated, with `-n` it is a name; with `-a` it may be a list in which everything is expanded.
fn declared(arguments: &[Word]) -> Names<'_> {
    let end = arguments.iter().position(|word| !word.text.starts_with(['-', '+'])).unwrap_or(arguments.len());
    let (options, operands) = arguments.split_at(end);
    let has = |letters: &[char]| {
        options.iter().any(|word| word.text.starts_with('-') && word.text.contains(letters))
    };
    if has(&['f', 'F', 'p']) {
        return Names::default();
    }
    let is_list =
        |word: &&Word| word.kind >= Kind::Unknown && !word.text.contains("=(") && word.text.contains('=');
    let evaluates = has(&['i', 'n']) && !operands.is_empty()
        || has(&['a', 'A']) && operands.iter().any(|word| is_list(&word));
    Names { declarations: operands.iter().collect(), evaluates, ..Names::default() }
}
