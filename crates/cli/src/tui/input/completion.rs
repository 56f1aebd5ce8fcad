//! Completion of slash commands, and of files after `@`.

use std::path::PathBuf;

use ratatui::text::Line;

use super::chips::is_mark;
use super::files;
use super::files::{FileEntry, FileKind};
use super::graphemes::list as render_list;
use crate::tui::chat::slash::SlashCommand;

/// Rows of the list.
pub(super) const ROWS: usize = 6;
/// The longest completed part, in bytes before the cursor.
const MAX_COMPLETED_BYTES: usize = 1024;

pub(crate) struct CompletionSources {
    pub(crate) commands: &'static [SlashCommand],
    /// Paths are relative to this folder.
    pub(crate) work_dir: PathBuf,
}

/// A possible completion.
struct Candidate {
    label: String,
    detail: String,
    /// Replaces the completed part.
    text: String,
    after: After,
}

/// What happens after a completion is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Close,
    /// The completion of a folder goes on with its entries.
    Continue,
}

/// The open list.
pub(super) struct Completion {
    /// Start of the completed part, which ends at the cursor.
    from: usize,
    candidates: Vec<Candidate>,
    selected: usize,
    /// Enter accepts only a row that the user has selected.
    selected_by_user: bool,
}

impl Completion {
    pub(super) fn up(&mut self) {
        self.selected_by_user = true;
        self.selected = self.selected.checked_sub(1).unwrap_or(self.candidates.len() - 1);
    }

    pub(super) fn down(&mut self) {
        self.selected_by_user = true;
        self.selected = (self.selected + 1) % self.candidates.len();
    }

    pub(super) fn was_selected_by_user(&self) -> bool {
        self.selected_by_user
    }

    /// The start of the completed part, its replacement, and what comes next.
    pub(super) fn accept(&self) -> (usize, &str, After) {
        let candidate = &self.candidates[self.selected];
        (self.from, &candidate.text, candidate.after)
    }

    pub(super) fn lines(&self, width: usize, height: usize) -> Vec<Line<'static>> {
        let rows =
            self.candidates.iter().map(|candidate| (candidate.label.as_str(), candidate.detail.as_str()));
        render_list(rows, self.selected, width, height.min(ROWS))
    }
}

/// Finds completions. Keeps the entries of a folder while the list is open.
pub(super) struct Completer {
    sources: CompletionSources,
    cached: Option<(String, Vec<FileEntry>)>,
}

impl Completer {
    pub(super) fn new(sources: CompletionSources) -> Self {
        Self { sources, cached: None }
    }

    /// Forgets the entries when the list is closed.
    pub(super) fn forget(&mut self) {
        self.cached = None;
    }

    /// The completions of the text before the cursor.
    pub(super) fn find(&mut self, text: &str, cursor: usize) -> Option<Completion> {
        let (from, candidates) = match command_part(text, cursor) {
            Some(part) => (0, self.commands(part)),
            None => {
                let path = path_part(text, cursor)?;
                (path.from, self.files(&path))
            }
        };
        let is_empty = candidates.is_empty();
        (!is_empty).then_some(Completion { from, candidates, selected: 0, selected_by_user: false })
    }

    fn commands(&self, part: &str) -> Vec<Candidate> {
        let row = |row: &'static SlashCommand| {
            let names = std::iter::once(&row.name).chain(row.aliases);
            let name = names.copied().find(|name| name.starts_with(part))?;
            let (label, text) = match row.arguments.is_empty() {
                true => (name.to_owned(), name.to_owned()),
                false => (format!("{name} {}", row.arguments), format!("{name} ")),
            };
            Some(Candidate { label, detail: row.help.to_owned(), text, after: After::Close })
        };
        self.sources.commands.iter().filter_map(row).collect()
    }

    fn files(&mut self, path: &PathPart) -> Vec<Candidate> {
        let (folder, name) = path
            .text
            .rsplit_once('/')
            .map_or(("", path.text), |(_, name)| (&path.text[..path.text.len() - name.len()], name));
        if self.cached.as_ref().is_none_or(|(cached, _)| cached != folder) {
            self.cached = Some((folder.to_owned(), files::list(&self.sources.work_dir, folder)));
        }
        let Some((_, entries)) = &self.cached else { return Vec::new() };
        let wanted = name.to_lowercase();
        let fits = |entry: &&FileEntry| {
            entry.name.to_lowercase().starts_with(&wanted)
                && (wanted.starts_with('.') || !entry.name.starts_with('.'))
        };
        entries.iter().filter(fits).map(|entry| candidate(folder, entry, path.quotes)).collect()
    }
}

/// The completion to a file or a folder, in quotes if the path has white space. The quotes of a folder stay open, since the path goes on.
fn candidate(folder: &str, entry: &FileEntry, quotes: Quotes) -> Candidate {
    let path = format!("{folder}{}", entry.name);
    let is_quoted = quotes == Quotes::Open || path.contains(char::is_whitespace);
    let quote = if is_quoted { "\"" } else { "" };
    let (label, text, after) = match entry.kind {
        FileKind::File => (entry.name.clone(), format!("@{quote}{path}{quote} "), After::Close),
        FileKind::Folder => (format!("{}/", entry.name), format!("@{quote}{path}/"), After::Continue),
    };
    Candidate { label, detail: String::new(), text, after }
}

/// The slash command being typed, which must be the whole text.
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

/// The path being typed: the offset of its `@`, and the text up to the cursor.
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
