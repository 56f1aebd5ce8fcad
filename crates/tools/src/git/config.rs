//! Parses git's configuration, to find which files git takes more configuration and hooks from.

use std::path::{Path, PathBuf};

use crate::small_file::{LastLink, read_whole};

/// A larger configuration file is not read.
const MAX_BYTES: u64 = 1 << 20;

/// The variables of a configuration file in their order, with lower-case names: `core.hookspath`, `remote.origin.url`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct GitConfig(Vec<(String, String)>);

impl GitConfig {
    /// Reads a file. A missing file has no variables; `None` if the file can't be read.
    pub(crate) fn read(file: &Path, link: LastLink) -> Option<Self> {
        let text = read_whole(file, link, MAX_BYTES).ok()?;
        Some(Self::parse(&text.unwrap_or_default()))
    }

    pub(crate) fn parse(text: &str) -> Self {
        let mut variables = Vec::new();
        let mut section = String::new();
        let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
        while let Some(first) = rest.trim_start().chars().next() {
            rest = rest.trim_start();
            match first {
                '#' | ';' => rest = after_line(rest),
                '[' => (section, rest) = parse_section(rest),
                _ => {
                    let (name, value, after) = parse_variable(rest);
                    variables.push((format!("{section}.{name}"), value));
                    rest = after;
                }
            }
        }
        Self(variables)
    }

    /// The last value of a variable, which is the one that counts.
    pub(crate) fn last(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(of, _)| of == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        let is_true = |value: &str| matches!(value.to_lowercase().as_str(), "true" | "yes" | "on" | "1");
        self.last(name).is_some_and(is_true)
    }

    /// The files that this one includes, under any condition, as written.
    pub(crate) fn includes(&self) -> impl Iterator<Item = &str> {
        let is_include =
            |name: &str| name == "include.path" || name.starts_with("includeif.") && name.ends_with(".path");
        self.0.iter().filter(move |(name, _)| is_include(name)).map(|(_, value)| value.as_str())
    }

    /// The variables whose value git runs as a program or a command line.
    pub(crate) fn programs(&self) -> Vec<&str> {
        let names = self.0.iter().filter(|(name, value)| runs_program(name, value));
        names.map(|(name, _)| name.as_str()).collect()
    }
}

/// Whether git runs the value of this variable, or reads a program from where it points.
fn runs_program(name: &str, value: &str) -> bool {
    const PROGRAM_SETTINGS: &[&str] = &[
        "core.alternaterefscommand",
        "core.askpass",
        "core.editor",
        "core.fsmonitor",
        "core.gitproxy",
        "core.hookspath",
        "core.pager",
        "core.sshcommand",
        "core.worktree",
        "diff.external",
        "include.path",
        "sequence.editor",
    ];
    const PROGRAM_KEYS: &str = "clean cmd command driver helper path process program proxy receivepack smudge textconv uploadpack vcs";
    let is_listed = |list: &str, name: &str| list.split(' ').any(|listed| listed == name);
    let last = name.rsplit('.').next().unwrap_or(name);
    let first = name.split('.').next().unwrap_or(name);
    match first {
        // git's own monitor, or none.
        "core" if name == "core.fsmonitor" => !matches!(value.to_lowercase().as_str(), "" | "true" | "false"),
        "alias" => value.starts_with('!'),
        "submodule" => last == "update" && value.starts_with('!'),
        "pager" | "hook" => true,
        _ => {
            PROGRAM_SETTINGS.contains(&name)
                || name.matches('.').count() >= 1 && first != "core" && is_listed(PROGRAM_KEYS, last)
        }
    }
}

/// Expands a path of the configuration as git does.
pub(crate) fn expand(path: &str, relative_to: &Path, home: Option<&Path>) -> Option<PathBuf> {
    match path.strip_prefix("~/") {
        Some(below) => Some(home?.join(below)),
        None if path.is_empty() || path.starts_with('~') || path.starts_with("%(") => None,
        None => Some(relative_to.join(path)),
    }
}

fn after_line(text: &str) -> &str {
    text.split_once('\n').map_or("", |(_, rest)| rest)
}

/// Parses `[section "sub"]`: the name in lower case, the part in quotes as it is. The rest of the line may hold a
/// variable.
fn parse_section(text: &str) -> (String, &str) {
    let line = text.split('\n').next().unwrap_or(text);
    let (mut name, mut sub, mut in_quotes) = (String::new(), String::new(), false);
    let mut chars = line.char_indices().skip(1);
    while let Some((at, char)) = chars.next() {
        match (char, in_quotes) {
            ('"', _) => in_quotes = !in_quotes,
            ('\\', true) => sub.extend(chars.next().map(|(_, char)| char)),
            (char, true) => sub.push(char),
            (']', false) => {
                let name = name.trim().to_lowercase();
                let section = if sub.is_empty() { name } else { format!("{name}.{sub}") };
                return (section, &text[at + 1..]);
            }
            (char, false) => name.push(char),
        }
    }
    (name.trim().to_lowercase(), &text[line.len()..])
}

/// Parses `name = value`. A value may have quoted parts and escapes, and go on in the next line.
fn parse_variable(text: &str) -> (String, String, &str) {
    let end = text.find(['=', '\n', '#', ';']).unwrap_or(text.len());
    let name = text[..end].trim().to_lowercase();
    if !text[end..].starts_with('=') {
        // A variable without a value is true.
        return (name, "true".to_owned(), after_line(&text[end..]));
    }
    let (value, rest) = parse_value(&text[end + 1..]);
    (name, value, rest)
}

fn parse_value(text: &str) -> (String, &str) {
    let (mut value, mut kept, mut in_quotes) = (String::new(), 0, false);
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '\n' => return (trimmed(value, kept), &text[at + 1..]),
            '#' | ';' if !in_quotes => return (trimmed(value, kept), after_line(&text[at..])),
            '"' => {
                in_quotes = !in_quotes;
                kept = value.len();
            }
            '\\' => {
                match chars.next() {
                    Some((_, '\n')) | None => {}
                    Some((_, '\r')) => drop(chars.next()),
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, 't')) => value.push('\t'),
                    Some((_, 'b')) => drop(value.pop()),
                    Some((_, other)) => value.push(other),
                }
                kept = value.len();
            }
            char if char.is_whitespace() && !in_quotes => {
                if !value.is_empty() {
                    value.push(char);
                }
            }
            char => {
                value.push(char);
                kept = value.len();
            }
        }
    }
    (trimmed(value, kept), "")
}

/// Without the unquoted blanks at the end.
fn trimmed(mut value: String, kept: usize) -> String {
    value.truncate(kept);
    value
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
