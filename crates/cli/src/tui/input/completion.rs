//! Completion of slash commands, skills and prompts of MCP servers, and of files and resources after `@`.
//!
//! After `@`, a folder that is typed with its slash lists its entries. Anything else matches fuzzily all paths of the work folder.

use std::path::PathBuf;

use longhaul_agent::mcp::PromptEntry;
use ratatui::text::Line;

use super::chips::is_mark;
use super::file_index::{FileIndex, MAX_MATCHES};
use super::files;
use super::files::{FileEntry, FileKind};
use super::fuzzy::score;
use super::graphemes::list as render_list;
use super::server_menu::ServerMenu;
use crate::tui::chat::slash::SlashCommand;
use crate::tui::chat::slash::skills::SkillCommands;

/// Rows of the list.
pub(super) const ROWS: usize = 6;
/// The longest completed part, in bytes before the cursor.
const MAX_COMPLETED_BYTES: usize = 1024;

pub(crate) struct CompletionSources {
    pub(crate) commands: &'static [SlashCommand],
    pub(crate) skills: SkillCommands,
    pub(crate) servers: ServerMenu,
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
    enter: EnterAction,
}

/// What Enter does while the list is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EnterAction {
    /// Accepts the highlighted entry.
    Complete,
    /// Accepts it and sends the line: a command that takes no arguments.
    Run,
    /// Sends the line as it is: the entry is typed in full.
    Send,
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

    /// What Enter does. `typed` is the completed part as it stands before the cursor.
    pub(super) fn enter_action(&self, typed: &str) -> EnterAction {
        let candidate = &self.candidates[self.selected];
        let is_typed = |candidate: &Candidate| candidate.text.trim_end() == typed;
        let is_whole = match self.selected_by_user {
            true => is_typed(candidate),
            false => self.candidates.iter().any(is_typed),
        };
        if is_whole { EnterAction::Send } else { candidate.enter }
    }

    pub(super) fn from(&self) -> usize {
        self.from
    }

    /// Selects the entry that was selected in an earlier list of the same part, if the user had chosen it.
    pub(super) fn keep_selection(&mut self, earlier: &Self) {
        if !earlier.selected_by_user || earlier.from != self.from {
            return;
        }
        let wanted = &earlier.candidates[earlier.selected].text;
        if let Some(index) = self.candidates.iter().position(|candidate| candidate.text == *wanted) {
            (self.selected, self.selected_by_user) = (index, true);
        }
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

/// Finds completions. Keeps the entries of a folder while the list is open, and the index of all files.
pub(super) struct Completer {
    sources: CompletionSources,
    cached: Option<(String, Vec<FileEntry>)>,
    index: FileIndex,
    /// The index, and the lists of servers, of the last list of files.
    searched: Option<(u64, u64)>,
}

impl Completer {
    pub(super) fn new(sources: CompletionSources) -> Self {
        let index = FileIndex::new(sources.work_dir.clone());
        Self { sources, cached: None, index, searched: None }
    }

    /// Whether the list of files may still change without a key.
    pub(super) fn awaits_files(&self) -> bool {
        self.searched.is_some()
            && (self.index.is_walking() || self.has_new_files() || self.sources.servers.list().is_loading)
    }

    /// Whether the index has changed since the last list of files.
    pub(super) fn has_new_files(&self) -> bool {
        let now = || (self.index.generation(), self.sources.servers.list().generation);
        self.searched.is_some_and(|searched| searched != now())
    }

    /// Forgets the entries when the list is closed.
    pub(super) fn forget(&mut self) {
        (self.cached, self.searched) = (None, None);
    }

    /// The completions of the text before the cursor.
    pub(super) fn find(&mut self, text: &str, cursor: usize) -> Option<Completion> {
        let (from, candidates) = match (command_part(text, cursor), path_part(text, cursor)) {
            (Some(part), _) => (0, self.commands(part)),
            (None, Some(path)) => {
                let mut candidates = self.files(&path);
                candidates.extend(self.resources(&path));
                (path.from, candidates)
            }
            (None, None) => {
                self.forget();
                return None;
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
            let enter = if row.arguments.is_empty() { EnterAction::Run } else { EnterAction::Complete };
            Some(Candidate { label, detail: row.help.to_owned(), text, after: After::Close, enter })
        };
        let commands = self.sources.commands.iter();
        let is_command = |name: &str| {
            commands
                .clone()
                .any(|row| row.name[1..] == *name || row.aliases.iter().any(|alias| alias[1..] == *name))
        };
        let skills =
            part.strip_prefix('/').map(|part| self.sources.skills.starting_with(part)).unwrap_or_default();
        let skills = skills.into_iter().filter(|skill| !is_command(&skill.name)).map(|skill| Candidate {
            label: format!("/{} [TEXT]", skill.name),
            detail: skill.description,
            text: format!("/{} ", skill.name),
            after: After::Close,
            enter: EnterAction::Complete,
        });
        commands.clone().filter_map(row).chain(skills).chain(self.prompts(part)).collect()
    }

    /// The prompts of MCP servers whose names begin as typed.
    fn prompts(&self, part: &str) -> impl Iterator<Item = Candidate> {
        let candidate = |prompt: PromptEntry| {
            let (name, usage) = (format!("/{}:{}", prompt.server, prompt.name), prompt.usage());
            let enter = if usage.is_empty() { EnterAction::Run } else { EnterAction::Complete };
            let label = format!("{name} {usage}").trim_end().to_owned();
            let text = if usage.is_empty() { name } else { format!("{name} ") };
            Candidate { label, detail: prompt.description, text, after: After::Close, enter }
        };
        let candidates = self.sources.servers.list().prompts.into_iter().map(candidate);
        candidates.filter(move |candidate| candidate.text.starts_with(part))
    }

    /// The resources of MCP servers that match, the best first.
    fn resources(&self, path: &PathPart) -> Vec<Candidate> {
        let pattern = path.text.to_ascii_lowercase();
        let entries =
            self.sources.servers.list().resources.into_iter().filter(|_| path.quotes == Quotes::None);
        let mut found: Vec<(i32, Candidate)> = entries
            .filter_map(|entry| {
                let label = format!("{}:{}", entry.server, entry.uri);
                let score = score(&label, &pattern)?;
                let text = format!("@{label} ");
                let (after, enter) = (After::Close, EnterAction::Complete);
                Some((score, Candidate { label, detail: entry.title, text, after, enter }))
            })
            .collect();
        found.sort_by(|(score, one), (other_score, other)| {
            (other_score, one.label.len(), &one.label).cmp(&(score, other.label.len(), &other.label))
        });
        found.truncate(MAX_MATCHES);
        found.into_iter().map(|(_, candidate)| candidate).collect()
    }

    fn files(&mut self, path: &PathPart) -> Vec<Candidate> {
        if self.searched.is_none() {
            self.index.refresh();
        }
        // Before the search: what comes meanwhile is searched again.
        self.searched = Some((self.index.generation(), self.sources.servers.list().generation));
        let pattern = path.text.to_ascii_lowercase();
        let listed = self.folder_entries(path.text);
        if path.text.is_empty() || path.text.ends_with('/') {
            return listed
                .into_iter()
                .map(|(path_of, kind)| candidate(&path_of, kind, path.quotes))
                .collect();
        }
        // The index may not be there yet, or not have this folder.
        let listed = listed.into_iter().map(|(path, kind)| match kind {
            FileKind::Folder => format!("{path}/"),
            FileKind::File => path,
        });
        let mut found: Vec<(i32, String)> =
            listed.filter_map(|path| Some((score(&path, &pattern)?, path))).collect();
        if !pattern.starts_with("./") {
            found.extend(self.index.search(&pattern));
        }
        found.sort_by(|(score, path), (other_score, other)| {
            (other_score, path.len(), path).cmp(&(score, other.len(), other))
        });
        found.dedup_by(|(_, path), (_, before)| path == before);
        found.truncate(MAX_MATCHES);
        let kind = |path: &str| if path.ends_with('/') { FileKind::Folder } else { FileKind::File };
        let candidates = found
            .iter()
            .map(|(_, found)| candidate(found.strip_suffix('/').unwrap_or(found), kind(found), path.quotes));
        candidates.collect()
    }

    /// The entries of the typed folder whose names begin as typed.
    fn folder_entries(&mut self, typed: &str) -> Vec<(String, FileKind)> {
        let name = typed.rsplit_once('/').map_or(typed, |(_, name)| name);
        let folder = &typed[..typed.len() - name.len()];
        if self.cached.as_ref().is_none_or(|(cached, _)| cached != folder) {
            self.cached = Some((folder.to_owned(), files::list(&self.sources.work_dir, folder)));
        }
        let Some((_, entries)) = &self.cached else { return Vec::new() };
        let wanted = name.to_lowercase();
        let fits = |entry: &&FileEntry| {
            entry.name.to_lowercase().starts_with(&wanted)
                && (wanted.starts_with('.') || !entry.name.starts_with('.'))
        };
        entries.iter().filter(fits).map(|entry| (format!("{folder}{}", entry.name), entry.kind)).collect()
    }
}

/// The completion to a file or a folder, in quotes if the path has white space. The quotes of a folder stay open, since the path goes on.
fn candidate(path: &str, kind: FileKind, quotes: Quotes) -> Candidate {
    let is_quoted = quotes == Quotes::Open || path.contains(char::is_whitespace);
    let quote = if is_quoted { "\"" } else { "" };
    let (label, text, after) = match kind {
        FileKind::File => (path.to_owned(), format!("@{quote}{path}{quote} "), After::Close),
        FileKind::Folder => (format!("{path}/"), format!("@{quote}{path}/"), After::Continue),
    };
    Candidate { label, detail: String::new(), text, after, enter: EnterAction::Complete }
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
