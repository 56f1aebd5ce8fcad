//! What could be meant by what is typed so far: slash commands, and files after `@`.

use std::path::PathBuf;

use ratatui::text::Line;

use super::chips::is_mark;
use super::files;
use super::files::{FileEntry, FileKind};
use super::graphemes::list as listed;
use crate::tui::chat::slash::SlashCommand;

/// How many rows the list has.
pub(super) const ROWS: usize = 6;
/// How far before the cursor a path may begin.
const MAX_COMPLETED_BYTES: usize = 1024;

/// Where completions come from.
pub(crate) struct CompletionSources {
    pub(crate) commands: &'static [SlashCommand],
    /// The folder that the paths of files begin at.
    pub(crate) work_dir: PathBuf,
}

/// What may be put in place of what is typed.
struct Candidate {
    shown: String,
    about: String,
    text: String,
    after: After,
}

/// What happens after a completion is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// It is complete.
    Close,
    /// A folder: what is in it may be meant.
    GoOn,
}

/// The list that is open.
pub(super) struct Completion {
    /// Where in the text the completed part begins; it ends at the cursor.
    from: usize,
    candidates: Vec<Candidate>,
    chosen: usize,
    choice: SelectedBy,
}

/// Who chose the row: Enter takes only what a person has chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SelectedBy {
    First,
    Person,
}

impl Completion {
    pub(super) fn up(&mut self) {
        self.choice = SelectedBy::Person;
        self.chosen = self.chosen.checked_sub(1).unwrap_or(self.candidates.len() - 1);
    }

    pub(super) fn down(&mut self) {
        self.choice = SelectedBy::Person;
        self.chosen = (self.chosen + 1) % self.candidates.len();
    }

    /// Whether Enter accepts the row.
    pub(super) fn was_chosen(&self) -> bool {
        self.choice == SelectedBy::Person
    }

    /// Where the accepted text goes, the text, and what happens then.
    pub(super) fn accepted(&self) -> (usize, &str, After) {
        let candidate = &self.candidates[self.chosen];
        (self.from, &candidate.text, candidate.after)
    }

    pub(super) fn lines(&self, width: usize, height: usize) -> Vec<Line<'static>> {
        let rows =
            self.candidates.iter().map(|candidate| (candidate.shown.as_str(), candidate.about.as_str()));
        listed(rows, self.chosen, width, height.min(ROWS))
    }
}

/// Finds completions; remembers the folder that it has looked at while its list is open.
pub(super) struct Completer {
    sources: CompletionSources,
    seen: Option<(String, Vec<FileEntry>)>,
}

impl Completer {
    pub(super) fn new(sources: CompletionSources) -> Self {
        Self { sources, seen: None }
    }

    /// The list was closed: the next one looks at the folder again.
    pub(super) fn forget(&mut self) {
        self.seen = None;
    }

    /// What could be meant by the text before the cursor.
    pub(super) fn find(&mut self, text: &str, cursor: usize) -> Option<Completion> {
        let (from, candidates) = match command_part(text, cursor) {
            Some(part) => (0, self.commands(part)),
            None => {
                let path = path_part(text, cursor)?;
                (path.from, self.files(&path))
            }
        };
        let is_empty = candidates.is_empty();
        (!is_empty).then_some(Completion { from, candidates, chosen: 0, choice: SelectedBy::First })
    }

    fn commands(&self, part: &str) -> Vec<Candidate> {
        let row = |row: &'static SlashCommand| {
            let names = std::iter::once(&row.name).chain(row.aliases);
            let name = names.copied().find(|name| name.starts_with(part))?;
            let (shown, text) = match row.arguments.is_empty() {
                true => (name.to_owned(), name.to_owned()),
                false => (format!("{name} {}", row.arguments), format!("{name} ")),
            };
            Some(Candidate { shown, about: row.help.to_owned(), text, after: After::Close })
        };
        self.sources.commands.iter().filter_map(row).collect()
    }

    fn files(&mut self, path: &PathPart) -> Vec<Candidate> {
        let (folder, name) = path
            .text
            .rsplit_once('/')
            .map_or(("", path.text), |(_, name)| (&path.text[..path.text.len() - name.len()], name));
        if self.seen.as_ref().is_none_or(|(seen, _)| seen != folder) {
            self.seen = Some((folder.to_owned(), files::list(&self.sources.work_dir, folder)));
        }
        let Some((_, entries)) = &self.seen else { return Vec::new() };
        let wanted = name.to_lowercase();
        let is_meant = |entry: &&FileEntry| {
            entry.name.to_lowercase().starts_with(&wanted)
                && (wanted.starts_with('.') || !entry.name.starts_with('.'))
        };
        entries.iter().filter(is_meant).map(|entry| candidate(folder, entry, path.quotes)).collect()
    }
}

/// How a file or a folder is put into the text: in quotes, if it would not be one word otherwise. Those of a folder stay
/// open, since a path goes on after it.
fn candidate(folder: &str, entry: &FileEntry, quotes: Quotes) -> Candidate {
    let path = format!("{folder}{}", entry.name);
    let is_quoted = quotes == Quotes::Open || path.contains(char::is_whitespace);
    let (shown, text, after) = match (entry.kind, is_quoted) {
        (FileKind::File, true) => (entry.name.clone(), format!("@\"{path}\" "), After::Close),
        (FileKind::File, false) => (entry.name.clone(), format!("@{path} "), After::Close),
        (FileKind::Folder, true) => (format!("{}/", entry.name), format!("@\"{path}/"), After::GoOn),
        (FileKind::Folder, false) => (format!("{}/", entry.name), format!("@{path}/"), After::GoOn),
    };
    Candidate { shown, about: String::new(), text, after }
}

/// The beginning of a command: the whole text, which has no other words yet.
fn command_part(text: &str, cursor: usize) -> Option<&str> {
    let is_part = text.starts_with('/')
        && cursor == text.len()
        && text.len() <= MAX_COMPLETED_BYTES
        && !text.contains(|character: char| character.is_whitespace() || is_mark(character));
    is_part.then_some(text)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Open,
}

/// The beginning of a path: where its `@` stands, and what follows up to the cursor.
struct PathPart<'a> {
    from: usize,
    text: &'a str,
    quotes: Quotes,
}

fn path_part(text: &str, cursor: usize) -> Option<PathPart<'_>> {
    if text[cursor..].chars().next().is_some_and(|after| !after.is_whitespace()) {
        return None;
    }
    let earliest = text.ceil_char_boundary(cursor.saturating_sub(MAX_COMPLETED_BYTES));
    let line = text[earliest..cursor].rfind('\n').map_or(earliest, |at| earliest + at + 1);
    let before = &text[line..cursor];
    let is_free = |at: usize| text[..line + at].chars().next_back().is_none_or(char::is_whitespace);
    let quoted = before.rfind("@\"").filter(|at| is_free(*at) && !before[at + 2..].contains('"'));
    if let Some(at) = quoted {
        return Some(PathPart { from: line + at, text: &before[at + 2..], quotes: Quotes::Open });
    }
    let at = before
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8));
    let path = before[at..].strip_prefix('@').filter(|_| is_free(at))?;
    (!path.contains(['"', '@'])).then_some(PathPart { from: line + at, text: path, quotes: Quotes::None })
}

#[cfg(test)]
#[path = "completion_tests.rs"]
mod tests;
