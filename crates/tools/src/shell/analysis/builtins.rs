//! Builtins of the shell that take names of variables: `read`, `printf -v`, `declare`.
//!
//! Bash evaluates the subscript of such a name: `printf -v 'a[$(git push)]' x` runs `git push`. Only a plain name, or one with a
//! number as its subscript, certainly runs nothing.

use super::getopt::{OptionSpec, parse_options};
use super::variables::VariableScope;
use super::wrappers::join_words;
use crate::shell::arithmetic::evaluates;
use crate::shell::parser::ShellParser;
use crate::shell::word::is_name;
use crate::shell::{ShellWord, UnseenReason, WordKind};

/// The variable names among the arguments of a builtin.
#[derive(Debug, Default, PartialEq, Eq)]
struct BuiltinNames {
    /// Names that the builtin sets or looks up, without a value.
    names: Vec<ShellWord>,
    /// Words such as `name` or `name=value`.
    declarations: Vec<ShellWord>,
    /// Names that the builtin makes arrays.
    arrays: Vec<ShellWord>,
    /// The builtin evaluates its arguments whatever they are.
    evaluates: bool,
    /// Which programs see the declared variables.
    scope: VariableScope,
    /// The builtin makes the shell export every variable that is set from then on.
    exports_all: bool,
}

impl ShellParser<'_, '_> {
    /// Records the variable names among the arguments, if the command is such a builtin.
    pub(super) fn record_builtin_names(&mut self, words: &[ShellWord]) {
        let Some((name, arguments)) = words.split_first() else { return };
        let Some(found) = name.literal().and_then(|name| names_of(name, arguments)) else { return };
        let names = || found.names.iter().chain(&found.arrays);
        let mut is_evaluated = found.evaluates || names().any(|word| !is_plain(word));
        for name in
            names().map(|word| word.text.split('[').next().unwrap_or_default()).filter(|name| is_name(name))
        {
            self.record_variable(name, None, VariableScope::Shell);
        }
        self.script.names.exports_all |= found.exports_all;
        self.script.names.arrays.extend(found.arrays.iter().map(|word| word.text.clone()));
        for word in &found.declarations {
            is_evaluated |= self.declaration(word, found.scope);
        }
        if is_evaluated {
            self.script.unseen.push(UnseenReason::Evaluated(join_words(words)));
        }
    }

    /// Records `name`, `name=value` or `name[1]=value`, as `declare` takes them. Returns whether bash evaluates it.
    fn declaration(&mut self, word: &ShellWord, scope: VariableScope) -> bool {
        // A word that is not literal has its text as written.
        let text =
            if word.kind == WordKind::Literal { &word.text } else { word.text.trim_start_matches('"') };
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name.strip_suffix('+').unwrap_or(name), Some(value)),
            None => (text, None),
        };
        if !is_plain(&ShellWord::of_literal(name)) || (value.is_none() && word.kind != WordKind::Literal) {
            return true;
        }
        let name = name.split('[').next().unwrap_or_default();
        let Some(value) = value else {
            if scope == VariableScope::Environment {
                self.record_variable(name, None, scope);
            }
            return false;
        };
        let is_array = word.kind >= WordKind::Unknown && value.starts_with('(');
        if word.kind == WordKind::Literal && value.starts_with('(') {
            return true;
        }
        if word.kind >= WordKind::Unknown && !is_array {
            self.script.names.declared.insert(name.to_owned());
        }
        let value = ShellWord { text: value.to_owned(), kind: word.kind };
        let value = if text.contains("+=") { value.appended() } else { value };
        self.record_variable(name, Some(&value), scope);
        false
    }
}

/// Whether the word is the name of a variable, or of an array element whose subscript is a number.
fn is_plain(word: &ShellWord) -> bool {
    let Some(text) = word.literal() else { return false };
    match text.split_once('[') {
        None => is_name(text) || !text.contains(['[', '$', '`']),
        Some((name, subscript)) => {
            is_name(name) && subscript.strip_suffix(']').is_some_and(|subscript| !evaluates(subscript))
        }
    }
}

fn names_of(builtin: &str, arguments: &[ShellWord]) -> Option<BuiltinNames> {
    Some(match builtin {
        "printf" => printf(arguments),
        "test" | "[" => test(arguments),
        "read" => behind_options(arguments, "a:d:ei:n:N:p:rst:u:"),
        "mapfile" | "readarray" => {
            let found = behind_options(arguments, "d:n:O:s:tu:C:c:");
            BuiltinNames { arrays: found.names, names: Vec::new(), ..found }
        }
        "unset" => behind_options(arguments, "fvn"),
        "wait" => BuiltinNames { names: Vec::new(), ..behind_options(arguments, "fnp:") },
        "getopts" => {
            BuiltinNames { names: arguments.get(1).cloned().into_iter().collect(), ..BuiltinNames::default() }
        }
        "declare" | "typeset" | "local" | "export" | "readonly" => declared(builtin, arguments),
        "set" | "shopt" => BuiltinNames { exports_all: exports_all(arguments), ..BuiltinNames::default() },
        "let" => BuiltinNames {
            evaluates: arguments.iter().any(|word| word.kind >= WordKind::Unknown || evaluates(&word.text)),
            ..BuiltinNames::default()
        },
        _ => return None,
    })
}

/// Whether these options of `set`, `shopt` or a shell make it export every variable.
pub(super) fn exports_all(options: &[ShellWord]) -> bool {
    let exports =
        |word: &ShellWord| word.text == "allexport" || word.text.starts_with('-') && word.text.contains('a');
    options.iter().take_while(|word| word.text != "--").any(exports)
}

fn printf(arguments: &[ShellWord]) -> BuiltinNames {
    let parsed = parse_options(arguments, &OptionSpec::leading("v:", ""));
    let names = parsed.values("v").cloned().collect();
    let evaluates = arguments.first().is_some_and(ShellWord::may_be_option);
    BuiltinNames { names, evaluates, ..BuiltinNames::default() }
}

/// `-v` may be at any place, and so may a word that becomes several.
fn test(arguments: &[ShellWord]) -> BuiltinNames {
    let operands = arguments.strip_suffix(&[ShellWord::of_literal("]")]).unwrap_or(arguments);
    let behind_v = operands.windows(2).filter(|pair| pair[0].text == "-v").map(|pair| pair[1].clone());
    let is_unknown_operator = operands.windows(2).any(|pair| pair[0].may_be_option() && !is_plain(&pair[1]));
    let splits = operands.iter().any(|word| word.kind == WordKind::Words);
    BuiltinNames {
        declarations: behind_v.collect(),
        evaluates: splits || is_unknown_operator,
        ..BuiltinNames::default()
    }
}

/// The operands are names. So is the value of `-a`, or of `-p` if there is no `-a`.
fn behind_options(arguments: &[ShellWord], short: &'static str) -> BuiltinNames {
    let parsed = parse_options(arguments, &OptionSpec::leading(short, ""));
    let array = if short.contains("a:") { "a" } else { "p" };
    let arrays = parsed.values(array).cloned().collect();
    let names = parsed.operands.iter().copied().cloned().collect();
    BuiltinNames { names, arrays, evaluates: !parsed.is_certain, ..BuiltinNames::default() }
}

/// With `-i` bash evaluates a value, and with `-n` the value is a name. With `-a` it may be a list in which everything is expanded.
fn declared(builtin: &str, arguments: &[ShellWord]) -> BuiltinNames {
    let end = arguments.iter().position(|word| !word.text.starts_with(['-', '+'])).unwrap_or(arguments.len());
    let (options, operands) = arguments.split_at(end);
    let has = |letters: &[char]| {
        options.iter().any(|word| word.text.starts_with('-') && word.text.contains(letters))
    };
    // `export -p` and `readonly -p` still assign.
    let prints = has(&['p']) && !matches!(builtin, "export" | "readonly");
    if prints || has(&['f', 'F']) {
        return BuiltinNames::default();
    }
    let is_list = |word: &&ShellWord| {
        word.kind >= WordKind::Unknown && !word.text.contains("=(") && word.text.contains('=')
    };
    let evaluates = has(&['i', 'n']) && !operands.is_empty()
        || has(&['a', 'A']) && operands.iter().any(|word| is_list(&word));
    let is_exported = builtin == "export" || has(&['x']);
    let scope = if is_exported { VariableScope::Environment } else { VariableScope::Shell };
    BuiltinNames { declarations: operands.to_vec(), evaluates, scope, ..BuiltinNames::default() }
}
