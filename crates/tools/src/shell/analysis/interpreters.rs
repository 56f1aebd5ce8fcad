//! Code in other languages that is part of the line: `python -c`, `awk`, `sed`.
//!
//! The code of an interpreter is not parsed. Most awk and sed scripts run nothing, so their harmless commands are recognised.

use super::awk::awk;
use super::getopt::{OptionSpec, ParsedOptions, is_listed, parse_options};
use super::variables::is_plain_value;
use super::wrappers::{InnerCommand, is_descriptor, is_stdin_script, unseen_code};
use crate::shell::{ShellWord, UnseenReason};

/// How an interpreter gets code from the line.
struct Interpreter {
    /// Its names, separated by spaces, without version numbers.
    names: &'static str,
    options: OptionSpec,
    /// The options whose value is code, or that make it read more code from its standard input.
    code: &'static str,
    stdin: StdinUse,
}

/// When an interpreter runs its standard input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StdinUse {
    Never,
    /// Only if no file is given.
    WithoutFile,
    Always,
}

const fn interpreter(names: &'static str, options: OptionSpec, code: &'static str) -> Interpreter {
    Interpreter { names, options, code, stdin: StdinUse::WithoutFile }
}

/// An interpreter that takes commands from its standard input while it runs a file.
const fn interactive(names: &'static str, options: OptionSpec, code: &'static str) -> Interpreter {
    Interpreter { names, options, code, stdin: StdinUse::Always }
}

const fn editor(names: &'static str, options: OptionSpec, code: &'static str) -> Interpreter {
    Interpreter { names, options, code, stdin: StdinUse::Never }
}

/// Not all interpreters have a complete list of options here. After an unknown option, an option with code counts at any place.
const INTERPRETERS: [Interpreter; 14] = [
    interpreter(
        "python pypy",
        OptionSpec::leading("bBc:dEhiIm:OPqRsSuvVW:xX:?", "check-hash-based-pycs:"),
        "c i",
    ),
    interpreter(
        "perl",
        OptionSpec::leading("0123456789aC::cdD::E:e:fF::hi::I:lM:m:nopsStTuUvV::wWx::X", ""),
        "e E d",
    ),
    interpreter("ruby", OptionSpec::leading("0123456789aC:cdE:e:F:hi::I:K::lnpr:sST::UvwW::x::y", ""), "e"),
    interpreter(
        "node nodejs bun",
        OptionSpec::leading(
            "ce:C:hip:r:v",
            "eval: print:: import: loader: experimental-loader: require: conditions: env-file: check interactive test watch \
             inspect:: inspect-brk:: max-old-space-size:: enable-source-maps no-warnings",
        ),
        "e p i eval print interactive import loader experimental-loader",
    ),
    interpreter(
        "php",
        OptionSpec::leading(
            "aB:c:Cd:eE:f:F:hHilmnqr:R:sS:t:vwz:",
            "run: process-begin: process-code: process-end: define: php-ini:",
        ),
        "a r B R E run process-begin process-code process-end",
    ),
    interpreter("lua luajit", OptionSpec::leading("b:e:Eij:l:O::vW", ""), "e i"),
    interpreter(
        "R Rscript guile elixir groovy scala julia tclsh wish osascript dc",
        OptionSpec::leading("e:E:i", "eval: print: expression: interactive"),
        "e E i interactive eval print expression",
    ),
    interpreter("expect nu xonsh", OptionSpec::leading("c:", "commands:"), "c commands"),
    interpreter(
        "pwsh powershell",
        OptionSpec::leading("c:C:", "-Command: -command: -EncodedCommand:"),
        "c C Command command EncodedCommand",
    ),
    interactive(
        "gdb lldb",
        OptionSpec::leading("o:O:", "-ex: -iex: -eval-command: -init-eval-command: one-line:"),
        "o O ex iex eval-command init-eval-command one-line",
    ),
    interpreter("m4", OptionSpec::leading("D:U:I:", ""), ""),
    interactive("ed irb pry ipython bpython ptpython ghci iex", OptionSpec::leading("", ""), ""),
    interactive("vim vi nvim ex view vimdiff", OptionSpec::leading("c:S:", "cmd:"), "c S cmd"),
    editor("emacs emacsclient", OptionSpec::leading("e:", "-eval: -execute:"), "e eval execute"),
];
/// Modules of python's own library that run code from their arguments or from standard input, or run another module.
const CODE_MODULES: &str = "timeit pdb code asyncio trace profile cProfile runpy idlelib";
const SED_OPTIONS: OptionSpec = OptionSpec::permuted(
    "bnrsuEze:f:l:i::",
    "expression: file: line-length: in-place:: quiet silent regexp-extended null-data zero-terminated separate unbuffered posix debug \
     sandbox follow-symlinks binary",
);

/// What the program runs, if it is an interpreter.
pub(super) fn interpreter_code(program: &str, words: &[ShellWord]) -> Option<InnerCommand> {
    match program {
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => return Some(awk(words)),
        "sed" | "gsed" | "ssed" => {
            return Some(script_of(words, &parse_options(&words[1..], &SED_OPTIONS), "", sed_is_harmless));
        }
        "deno" if words.iter().any(|word| word.text == "eval" || word.text.starts_with("data:")) => {
            return Some(InnerCommand::Code);
        }
        _ => {}
    }
    let name = program.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    let interpreter = INTERPRETERS.iter().find(|one| is_listed(one.names, name))?;
    Some(if takes_code(interpreter, &words[1..]) { InnerCommand::Code } else { InnerCommand::Nothing })
}

fn takes_code(interpreter: &Interpreter, arguments: &[ShellWord]) -> bool {
    let parsed = parse_options(arguments, &interpreter.options);
    // Words after `-m module` are for the module.
    let ends = |name: &&str| {
        is_listed(interpreter.code, name) || (*name == "m" && interpreter.names.starts_with("python"))
    };
    match parsed.names().find(ends) {
        Some("m") => {
            let runs_code =
                |module: &ShellWord| module.literal().is_none_or(|name| is_listed(CODE_MODULES, name));
            return parsed.values("m").any(runs_code)
                || arguments.iter().any(|word| is_descriptor(&word.text));
        }
        Some(_) => return true,
        None => {}
    }
    // If the name of a file begins or ends with a pipe, perl runs it as a command.
    let is_pipe = |word: &&ShellWord| word.text.starts_with('|') || word.text.ends_with('|');
    if interpreter.names == "perl" && parsed.operands.iter().any(is_pipe) {
        return true;
    }
    // `perl '-Mbase;code'`
    if parsed.values("M m").any(|module| !is_plain_value(module)) {
        return true;
    }
    if !parsed.is_certain && parse_options(arguments, &interpreter.options.anywhere()).has(interpreter.code) {
        return true;
    }
    let is_informing = |word: &ShellWord| matches!(word.text.as_str(), "--version" | "--help");
    match parsed.operands.first() {
        _ if interpreter.stdin == StdinUse::Always => !arguments.first().is_some_and(is_informing),
        Some(word) => word.may_be_option() || word.text.starts_with('+') || is_stdin_script(&word.text),
        None => {
            let only_informs =
                parsed.has("h V") || (parsed.has("v") && !interpreter.names.starts_with("python"));
            interpreter.stdin == StdinUse::WithoutFile && !only_informs && !arguments.iter().any(is_informing)
        }
    }
}

/// What awk or sed runs: the values of `-e`, otherwise the first operand. Files are not read, including those that the options in
/// `loads` name.
pub(super) fn script_of(
    words: &[ShellWord],
    parsed: &ParsedOptions<'_>,
    loads: &str,
    is_harmless: fn(&str) -> bool,
) -> InnerCommand {
    let scripts: Vec<&ShellWord> = parsed.values("f file E exec").collect();
    let files: Vec<&ShellWord> = scripts.iter().copied().chain(parsed.values(loads)).collect();
    if !parsed.is_certain || files.iter().any(|file| file.literal().is_none_or(is_stdin_script)) {
        return unseen_code(words);
    }
    let mut texts: Vec<&ShellWord> = parsed.values("e source expression").collect();
    if texts.is_empty() && scripts.is_empty() {
        texts.extend(parsed.operands.first());
    }
    let text = texts.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join("\n");
    match texts.iter().all(|word| word.literal().is_some()) && is_harmless(&text) {
        true if !files.is_empty() => InnerCommand::ScriptFile(super::wrappers::join_words(words)),
        true => InnerCommand::Nothing,
        false => InnerCommand::Unseen(UnseenReason::Code(text)),
    }
}

/// Whether all commands of a sed script run nothing and write no file. `e` and `w` do, also as flags of `s`.
fn sed_is_harmless(script: &str) -> bool {
    let mut rest = script;
    let mut has_label = false;
    loop {
        rest = rest
            .trim_start_matches(|letter: char| letter.is_whitespace() || matches!(letter, ';' | '{' | '}'));
        let Some(behind) = behind_addresses(rest) else { return rest.is_empty() };
        let Some(command) = behind.chars().next() else { return false };
        let after = &behind[command.len_utf8()..];
        rest = match command {
            ':' | 'b' | 't' | 'T' => {
                has_label = true;
                match behind_label(after) {
                    Some(after) => after,
                    None => return false,
                }
            }
            '#' | 'a' | 'i' | 'c' | 'r' | 'R' => {
                let (line, next) = after.split_once('\n').unwrap_or((after, ""));
                // The text continues or begins on the next line.
                if command != '#' && (line.trim().is_empty() || line.trim_end().ends_with('\\')) {
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
            // Some seds take the rest of the line as the label, so no command after a label may continue on the next line.
            'y' | 's' if has_label && spans_lines(after) => return false,
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

/// What follows a label. Some seds end a label at a space, a semicolon or a brace, others only at the end of the line. So the label
/// has to end at all of these.
fn behind_label(text: &str) -> Option<&str> {
    let label = text.trim_start_matches([' ', '\t']);
    let behind = label.trim_start_matches(|letter: char| letter.is_alphanumeric() || "_.-".contains(letter));
    let behind = behind.trim_start_matches([' ', '\t', '}']);
    (behind.is_empty() || behind.starts_with([';', '\n'])).then_some(behind)
}

/// Whether one of the two parts of an `s` or a `y` contains a line end.
fn spans_lines(text: &str) -> bool {
    behind_delimited(text, 2).is_none_or(|behind| text[..text.len() - behind.len()].contains('\n'))
}

/// What follows addresses such as `1,$!`, `/a/,/b/` and `2~3`.
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

/// What follows a text with this many parts. The first character delimits each part. Brackets in the first part must not contain that
/// character, because some seds end the part there and others do not.
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
            // No sed continues here, so the parser has lost its place.
            '\n' => return None,
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
