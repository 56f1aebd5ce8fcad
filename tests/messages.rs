//! Every text that a person may read, on one page: the help of each command, and the sentences in the source.
//!
//! `cargo nextest run -p longhaul-cli --test messages` writes the page to `$CARGO_TARGET_TMPDIR/messages.md`. Read it
//! aloud from time to time. The tests hold the rules that a program can check.

#[path = "messages/literals.rs"]
mod literals;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use literals::{Literal, string_literals};

/// Crates with texts for people. Texts of the others reach people through these or through errors.
const CRATES: [&str; 13] = [
    "cli",
    "acp",
    "transcript",
    "agent",
    "config",
    "journal",
    "keeper",
    "memory",
    "model",
    "redact",
    "salvage",
    "tools",
    "context",
];

/// Words of the implementation. People who use the program know turns, sessions, tasks and messages.
const INTERNAL_WORDS: [&str; 9] =
    ["epoch", "epochs", "keeper", "keepers", "doorbell", "inbox", "record", "records", "seq"];

/// Words that hide who acts, or that no other program uses.
const STIFF_WORDS: [&str; 6] = ["whoever", "nobody", "somebody", "anybody", "mend", "gone through"];

/// Crates whose sentences are all for people. The others talk to models, too.
const CRATES_FOR_PEOPLE: [&str; 8] =
    ["cli", "transcript", "config", "journal", "keeper", "model", "redact", "salvage"];

/// What may be said all the same: names of flags and arguments, and a shell script.
const ALLOWED: [&str; 4] = ["--records", "[SEQ]", "<SEQ>", "$(seq"];

/// The longest help of a command in the list of all commands.
const MAX_SHORT_HELP: usize = 60;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn help_of(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_longhaul")).args(words).arg("--help").output();
    String::from_utf8(output.expect("the program starts").stdout).expect("help is UTF-8")
}

/// The names of the subcommands in a help page.
fn subcommands(help: &str) -> Vec<String> {
    let rows = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let rows = rows.take_while(|line| !line.is_empty());
    let names = rows.filter(|row| row.starts_with("  ") && !row.starts_with("   "));
    let names = names.filter_map(|row| row.split_whitespace().next().map(str::to_owned));
    names.filter(|name| name != "help").collect()
}

/// The help of the program, of each command and of their subcommands, with the words that lead there.
fn all_help() -> Vec<(String, String)> {
    let top = help_of(&[]);
    let mut pages = vec![("longhaul".to_owned(), top.clone())];
    for name in subcommands(&top) {
        let help = help_of(&[&name]);
        pages.push((format!("longhaul {name}"), help.clone()));
        for below in subcommands(&help) {
            pages.push((format!("longhaul {name} {below}"), help_of(&[&name, &below])));
        }
    }
    pages
}

/// The source files of a crate without its tests.
fn sources(name: &str) -> Vec<PathBuf> {
    let mut folders = vec![repository().join("crates").join(name).join("src")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a source folder can be read") {
            let path = entry.expect("an entry can be read").path();
            let is_source = path.extension().is_some_and(|extension| extension == "rs");
            let is_test = path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("_tests"));
            match path.is_dir() {
                // The suite of every engine: tests, although other crates run them.
                true if path.ends_with("conformance") => {}
                true => folders.push(path),
                false if is_source && !is_test => files.push(path),
                false => {}
            }
        }
    }
    files.sort();
    files
}

/// Whether a literal reads like a sentence for a person.
fn is_sentence(literal: &Literal) -> bool {
    let words = literal.text.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic)).count();
    let is_sql = ["SELECT ", "INSERT ", "UPDATE ", "DELETE ", "CREATE ", "PRAGMA ", "ALTER ", "WITH "]
        .iter()
        .any(|start| literal.text.trim_start().starts_with(start));
    let is_reason = ["expect(", "reason = ", "assert", "unreachable!(", "panic!("]
        .iter()
        .any(|call| literal.before.trim_end().ends_with(call) || literal.before.contains(call));
    words >= 3 && !is_sql && !is_reason
}

fn sentences() -> Vec<(PathBuf, Vec<Literal>)> {
    let files = CRATES.iter().flat_map(|name| sources(name));
    let found = files.map(|file| {
        let code = std::fs::read_to_string(&file).expect("a source file is UTF-8");
        let literals = string_literals(&code).into_iter().filter(is_sentence).collect();
        (file.strip_prefix(repository()).expect("it is in the repository").to_owned(), literals)
    });
    found.filter(|(_, literals): &(_, Vec<_>)| !literals.is_empty()).collect()
}

#[test]
fn all_messages_are_printed_on_one_page() {
    let mut page = String::from("# Every message\n\n");
    for (words, help) in all_help() {
        let _ = writeln!(page, "## {words}\n\n```\n{help}```\n");
    }
    for (file, literals) in sentences() {
        let _ = writeln!(page, "## {}\n", file.display());
        for Literal { line, text, .. } in literals {
            let _ = writeln!(page, "- {line}: {}", text.replace('\n', "⏎"));
        }
        page.push('\n');
    }

    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("messages.md");
    std::fs::write(&path, &page).expect("the page can be written");

    println!("{}", path.display());
    assert!(page.contains("## longhaul sessions list"), "help of subcommands is on the page");
    assert!(page.contains("## crates/cli/src/"), "sentences of the source are on the page");
}

/// Whether a text has one of these words or phrases, apart from what is allowed.
fn has_any(text: &str, unwanted: &[&str]) -> bool {
    let text = ALLOWED.iter().fold(text.to_owned(), |text, allowed| text.replace(allowed, ""));
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
    let spoken = format!(" {} ", words.join(" "));
    unwanted.iter().any(|phrase| spoken.contains(&format!(" {phrase} ")))
}

#[test]
fn help_uses_no_words_of_the_implementation() {
    let mut found = String::new();
    for (words, help) in all_help() {
        for line in help.lines().filter(|line| has_any(line, &INTERNAL_WORDS) || has_any(line, &STIFF_WORDS))
        {
            let _ = writeln!(found, "{words}: {}", line.trim());
        }
    }

    assert_eq!(found, "");
}

#[test]
fn messages_for_people_name_the_actor_and_no_parts_of_the_implementation() {
    let is_for_people = |file: &Path| {
        CRATES_FOR_PEOPLE.iter().any(|name| file.starts_with(Path::new("crates").join(name).join("src")))
    };
    let mut found = String::new();
    for (file, literals) in sentences().into_iter().filter(|(file, _)| is_for_people(file)) {
        for Literal { line, text, .. } in literals {
            if has_any(&without_arguments(&text), &INTERNAL_WORDS) || has_any(&text, &STIFF_WORDS) {
                let _ = writeln!(found, "{}:{line}: {text}", file.display());
            }
        }
    }

    assert_eq!(found, "");
}

/// A format string without what stands in braces: that is the name of a variable.
fn without_arguments(text: &str) -> String {
    text.split('{')
        .map(|part| part.split_once('}').map_or(part, |(_, rest)| rest))
        .collect::<Vec<_>>()
        .join("_")
}

#[test]
fn the_list_of_commands_has_one_short_line_for_each() {
    for (words, help) in all_help() {
        let rows = help.lines().skip_while(|line| *line != "Commands:").skip(1);
        for row in rows.take_while(|row| !row.is_empty()) {
            let (_, text) =
                row.trim().split_once("  ").unwrap_or_else(|| panic!("{words}: {row:?} is wrapped"));
            let text = text.trim();
            assert!(text.starts_with(char::is_uppercase) && !text.ends_with('.'), "{words}: {text}");
            assert!(text.len() <= MAX_SHORT_HELP, "{words}: {text}");
        }
    }
}
