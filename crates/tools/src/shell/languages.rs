//! Code in other languages that stands in the line: `python -c`, `awk`, `sed`.
//!
//! Code of an interpreter is not read. Of awk and sed, which are mostly used for what runs nothing, the harmless part is recognised.

use super::wrappers::{Inside, Options, options_end};
use super::{Unseen, Word};

/// How an interpreter takes code in the line.
struct Interpreter {
    names: &'static [&'static str],
    /// Letters of options that are followed by code.
    short: &'static str,
    /// Long options, and options of more than one letter, that are followed by code.
    long: &'static [&'static str],
    /// Letters of options with another value.
    values: &'static str,
    /// Letters of options after which no code comes from standard input.
    other: &'static str,
    reads_input: bool,
}

const NO_INTERPRETER: Interpreter =
    Interpreter { names: &[], short: "", long: &[], values: "", other: "hvV", reads_input: true };
const INTERPRETERS: [Interpreter; 16] = [
    Interpreter { names: &["python", "pypy"], short: "c", values: "WXQ", other: "mhV", ..NO_INTERPRETER },
    Interpreter { names: &["perl"], short: "eE", values: "I", other: "hvV", ..NO_INTERPRETER },
    Interpreter { names: &["ruby"], short: "e", values: "IrC", ..NO_INTERPRETER },
    Interpreter {
        names: &["node", "nodejs", "bun"],
        short: "ep",
        long: &["--eval", "--print"],
        values: "r",
        ..NO_INTERPRETER
    },
    Interpreter { names: &["deno"], long: &["eval"], reads_input: false, ..NO_INTERPRETER },
    Interpreter {
        names: &["php"],
        short: "rBRE",
        long: &["--run"],
        values: "dcz",
        other: "hvimS",
        ..NO_INTERPRETER
    },
    Interpreter { names: &["lua", "luajit"], short: "e", values: "l", ..NO_INTERPRETER },
    Interpreter {
        names: &["R", "Rscript", "guile", "elixir", "groovy", "scala"],
        short: "e",
        ..NO_INTERPRETER
    },
    Interpreter { names: &["julia"], short: "eE", ..NO_INTERPRETER },
    Interpreter { names: &["tclsh", "wish", "ed", "osascript"], short: "e", ..NO_INTERPRETER },
    Interpreter { names: &["expect", "nu", "xonsh"], short: "c", ..NO_INTERPRETER },
    Interpreter { names: &["pwsh", "powershell"], short: "cC", long: &["-Command"], ..NO_INTERPRETER },
    Interpreter { names: &["gdb", "lldb"], long: &["-ex", "-iex", "--eval-command", "-o"], ..NO_INTERPRETER },
    Interpreter {
        names: &["vim", "vi", "nvim", "ex", "view"],
        short: "cS",
        long: &["--cmd"],
        reads_input: false,
        ..NO_INTERPRETER
    },
    Interpreter {
        names: &["emacs", "emacsclient"],
        long: &["--eval", "-eval", "-e"],
        reads_input: false,
        ..NO_INTERPRETER
    },
    Interpreter { names: &["m4"], ..NO_INTERPRETER },
];
const AWK: Options =
    Options { short: "Fvfeil", long: &["--field-separator", "--assign", "--file", "--source"], arguments: 0 };
const SED: Options =
    Options { short: "efl", long: &["--expression", "--file", "--line-length"], arguments: 0 };

/// What a program of another language runs, if it is one.
pub(super) fn code_of(program: &str, words: &[Word]) -> Option<Inside> {
    match program {
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => return Some(awk(words)),
        "sed" | "gsed" | "ssed" => return Some(sed(words)),
        _ => {}
    }
    let name = program.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    let interpreter = INTERPRETERS.iter().find(|one| one.names.contains(&name))?;
    Some(if takes_code(interpreter, &words[1..]) { Inside::Code } else { Inside::Nothing })
}

fn takes_code(interpreter: &Interpreter, arguments: &[Word]) -> bool {
    let mut rest = arguments.iter();
    let mut reads_input = interpreter.reads_input;
    while let Some(word) = rest.next() {
        let text = word.text.as_str();
        let option = text.split_once('=').map_or(text, |(option, _)| option);
        if interpreter.long.contains(&option) || word.may_be_option() || text.starts_with('+') {
            return true;
        }
        match text.strip_prefix('-') {
            None => return false,
            Some("" | "-") => return reads_input && rest.next().is_none(),
            Some(long) if long.starts_with('-') => reads_input &= !matches!(text, "--version" | "--help"),
            Some(letters) => {
                if letters.contains(|letter| interpreter.short.contains(letter)) {
                    return true;
                }
                reads_input &= !letters.contains(|letter| interpreter.other.contains(letter));
                if interpreter.other.contains('m') && letters.ends_with('m') {
                    return false;
                }
                if letters.ends_with(|letter| interpreter.values.contains(letter)) {
                    rest.next();
                }
            }
        }
    }
    reads_input
}

fn runs_code(text: &str) -> Inside {
    Inside::Unseen(Unseen::Code(text.to_owned()))
}

/// It runs commands by `system` and by `|`, and calls functions by name with `@`.
fn awk(words: &[Word]) -> Inside {
    let Some(program) = script_of(words, &AWK, 'e', "--source") else { return Inside::Nothing };
    let is_harmless = |text: &str| {
        let text = text.replace("||", " ");
        !text.contains("system") && !text.contains(['|', '@'])
    };
    match program {
        Script::Text(text) if is_harmless(&text) => Inside::Nothing,
        Script::Text(text) | Script::Unknown(text) => runs_code(&text),
    }
}

fn sed(words: &[Word]) -> Inside {
    let words: Vec<Word> = words.iter().map(without_backup_suffix).collect();
    let Some(program) = script_of(&words, &SED, 'e', "--expression") else { return Inside::Nothing };
    match program {
        Script::Text(text) if sed_is_harmless(&text) => Inside::Nothing,
        Script::Text(text) | Script::Unknown(text) => runs_code(&text),
    }
}

/// `-i` has its value only where it is attached to it: in `-i.l`, `l` is no option.
fn without_backup_suffix(word: &Word) -> Word {
    let mut word = word.clone();
    let letters = word.text.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    let suffix =
        letters.and_then(|letters| letters.find('i').filter(|at| !letters[..*at].contains(['e', 'f', 'l'])));
    if let Some(at) = suffix {
        word.text.truncate("-".len() + at + "i".len());
    }
    word
}

enum Script {
    Text(String),
    Unknown(String),
}

/// The code of awk or sed: the values of an option, or else the first argument. None, if it is in a file.
fn script_of(words: &[Word], options: &Options, code: char, long: &str) -> Option<Script> {
    let end = options_end(words, options);
    let mut texts: Vec<Word> = Vec::new();
    let mut has_file = false;
    let mut at = 1;
    while at < end {
        let word = &words[at];
        let next = words.get(at + 1);
        match word.text.strip_prefix('-') {
            Some(text) if text.starts_with('-') => {
                let (name, value) = word
                    .text
                    .split_once('=')
                    .map_or((word.text.as_str(), None), |(name, value)| (name, Some(value)));
                has_file |= name.len() > 3 && "--file".starts_with(name);
                if name.len() > 2 && long.starts_with(name) {
                    let value = value.map(|value| Word { text: value.to_owned(), kind: word.kind });
                    texts.extend(value.or_else(|| next.cloned()));
                }
                at += usize::from(
                    value.is_none()
                        && options.long.iter().any(|long| name.len() > 2 && long.starts_with(name)),
                );
            }
            Some(letters) => {
                if let Some(value) = letters.find(|letter| options.short.contains(letter)) {
                    let attached = &letters[value + 1..];
                    has_file |= letters[value..].starts_with('f');
                    if letters[value..].starts_with(code) {
                        let attached = Word { text: attached.to_owned(), kind: word.kind };
                        texts.extend(if attached.text.is_empty() { next.cloned() } else { Some(attached) });
                    }
                    at += usize::from(attached.is_empty());
                }
            }
            None => {}
        }
        at += 1;
    }
    if texts.is_empty() && !has_file {
        texts.extend(words.get(end).cloned());
    }
    if texts.is_empty() {
        return None;
    }
    let joined = texts.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join("\n");
    Some(if texts.iter().all(|word| word.literal().is_some()) {
        Script::Text(joined)
    } else {
        Script::Unknown(joined)
    })
}

/// Whether a script of sed consists of commands that run nothing and write no file. `e` and `w` do, also as flags of `s`.
fn sed_is_harmless(script: &str) -> bool {
    let mut rest = script;
    loop {
        rest = rest
            .trim_start_matches(|letter: char| letter.is_whitespace() || matches!(letter, ';' | '{' | '}'));
        let Some(behind) = behind_addresses(rest) else { return rest.is_empty() };
        let Some(command) = behind.chars().next() else { return false };
        let after = &behind[command.len_utf8()..];
        rest = match command {
            // Old seds take the whole line for the label, newer ones end it at a semicolon.
            ':' => {
                let label = after.trim_start_matches(' ');
                let after = label.trim_start_matches(|letter: char| !matches!(letter, ';' | '\n' | '}'));
                if label[..label.len() - after.len()].contains(char::is_whitespace) {
                    return false;
                }
                after
            }
            '#' | 'a' | 'i' | 'c' | 'r' | 'R' => {
                let (line, next) = after.split_once('\n').unwrap_or((after, ""));
                // The text goes on in the next line.
                if line.ends_with('\\') {
                    return false;
                }
                next
            }
            'p' | 'P' | 'd' | 'D' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | 'z' | '=' | 'F' | '{' | '}' => {
                after
            }
            'q' | 'Q' | 'l' | 'L' => {
                after.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == ' ')
            }
            'b' | 't' | 'T' => after.trim_start_matches(|letter: char| !matches!(letter, ';' | '\n' | '}')),
            'y' => match behind_delimited(after, 2) {
                Some(after) => after,
                None => return false,
            },
            's' => match behind_delimited(after, 2) {
                Some(flags) => {
                    flags.trim_start_matches(|flag: char| flag.is_ascii_digit() || "gpiIM".contains(flag))
                }
                None => return false,
            },
            _ => return false,
        };
        let is_ended =
            rest.is_empty() || rest.starts_with(|next: char| next.is_whitespace() || ";}#".contains(next));
        if !is_ended && !matches!(command, '{' | '#' | 'a' | 'i' | 'c' | 'r' | 'R') {
            return false;
        }
    }
}

/// What follows `1,$!`, `/a/,/b/`, `2~3` and their like.
fn behind_addresses(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|letter: char| letter.is_ascii_digit() || " \t,$!~+".contains(letter));
        rest = match rest.chars().next()? {
            '/' => behind_delimited(rest, 1)?,
            '\\' => behind_delimited(&rest[1..], 1)?,
            _ => return Some(rest),
        };
        rest = rest.trim_start_matches(['I', 'M']);
    }
}

/// What follows a text with this many parts, each ended by the letter that it begins with. Brackets in the first part must not have
/// that letter in them: it ends the part in some seds and not in others.
fn behind_delimited(text: &str, parts: usize) -> Option<&str> {
    let delimiter = text.chars().next().filter(|letter| !matches!(letter, '\\' | '\n'))?;
    let mut left = parts;
    let mut in_brackets = false;
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => {
                letters.next();
            }
            '[' if left == parts => in_brackets = true,
            ']' => in_brackets = false,
            _ if letter == delimiter && in_brackets => return None,
            _ if letter == delimiter => {
                left -= 1;
                if left == 0 {
                    return Some(&text[at + letter.len_utf8()..]);
                }
            }
            _ => {}
        }
    }
    None
}
