//! All paths of the work folder that git would not ignore, for completion after `@`. A thread walks the folder; keys never wait for it.
//!
//! The index begins with the first `@`, grows while the thread walks, and is walked again when it is older than [`MAX_INDEX_AGE`]. It
//! holds at most [`MAX_INDEXED_PATHS`] paths of [`MAX_INDEX_BYTES`] bytes together; what is left out is still found by typing its folder.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ignore::{DirEntry, WalkBuilder};

use super::chips::is_mark;
use super::fuzzy::{byte_set, score};

const MAX_INDEXED_PATHS: usize = 300_000;
const MAX_INDEX_BYTES: usize = 32 << 20;
/// An older index is walked again when a list opens.
const MAX_INDEX_AGE: Duration = Duration::from_secs(10);
/// Paths after which the first walk shows what it has. Then at each doubling.
const FIRST_SNAPSHOT: usize = 1_000;
/// Matches that are listed.
pub(super) const MAX_MATCHES: usize = 50;

/// Paths relative to the work folder, folders with a slash at the end.
#[derive(Debug, Clone, Default)]
struct PathList {
    text: String,
    /// Where each path ends in `text`, and the set of its bytes.
    ends: Vec<(u32, u64)>,
}

impl PathList {
    fn push(&mut self, path: &str) {
        self.text.push_str(path);
        let end = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        self.ends.push((end, byte_set(path)));
    }

    fn is_full(&self) -> bool {
        self.ends.len() >= MAX_INDEXED_PATHS || self.text.len() >= MAX_INDEX_BYTES
    }

    fn get(&self, index: u32) -> &str {
        let index = index as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before].0);
        &self.text[start as usize..self.ends[index].0 as usize]
    }
}

/// What the threads have found so far.
#[derive(Default)]
struct IndexState {
    paths: Arc<PathList>,
    /// Changes with `paths`.
    generation: u64,
    is_walking: bool,
    finished_at: Option<Instant>,
}

pub(super) struct FileIndex {
    work_dir: PathBuf,
    state: Arc<Mutex<IndexState>>,
    is_dropped: Arc<AtomicBool>,
    narrowed: Option<NarrowedMatches>,
    /// Paths that the last search has looked at.
    examined: usize,
}

/// The matches of the last pattern: a longer pattern matches only among them.
struct NarrowedMatches {
    generation: u64,
    pattern: String,
    indices: Vec<u32>,
}

impl Drop for FileIndex {
    fn drop(&mut self) {
        self.is_dropped.store(true, Ordering::Relaxed);
    }
}

impl FileIndex {
    pub(super) fn new(work_dir: PathBuf) -> Self {
        Self { work_dir, state: Arc::default(), is_dropped: Arc::default(), narrowed: None, examined: 0 }
    }

    /// Starts a walk if there was none, or if the last one is too old.
    pub(super) fn refresh(&self) {
        let mut state = lock(&self.state);
        let is_fresh = state.finished_at.is_some_and(|at| at.elapsed() < MAX_INDEX_AGE);
        if state.is_walking || is_fresh {
            return;
        }
        state.is_walking = true;
        let walk = IndexWalk {
            work_dir: self.work_dir.clone(),
            state: self.state.clone(),
            is_dropped: self.is_dropped.clone(),
            is_first: state.finished_at.is_none(),
        };
        drop(state);
        if std::thread::Builder::new().spawn(move || walk.run()).is_err() {
            lock(&self.state).is_walking = false;
        }
    }

    /// A number that changes when there are new paths.
    pub(super) fn generation(&self) -> u64 {
        lock(&self.state).generation
    }

    pub(super) fn is_walking(&self) -> bool {
        lock(&self.state).is_walking
    }

    /// The paths that match best, with their scores, the best first. `pattern` is in lower case. Hidden ones match only if the pattern
    /// asks for them.
    pub(super) fn search(&mut self, pattern: &str) -> Vec<(i32, String)> {
        let (paths, generation) = {
            let state = lock(&self.state);
            (state.paths.clone(), state.generation)
        };
        let shows_hidden = wants_hidden(pattern);
        let earlier = self.narrowed.take().filter(|earlier| {
            earlier.generation == generation
                && pattern.starts_with(&earlier.pattern)
                && wants_hidden(&earlier.pattern) == shows_hidden
        });
        let count = u32::try_from(paths.ends.len()).unwrap_or(u32::MAX);
        let candidates = earlier.map_or_else(|| (0..count).collect(), |earlier| earlier.indices);
        self.examined = candidates.len();
        let wanted = byte_set(pattern);
        let matches = |index: u32| {
            let has_bytes = paths.ends[index as usize].1 & wanted == wanted;
            let path =
                Some(paths.get(index)).filter(|path| has_bytes && (shows_hidden || !is_hidden(path)))?;
            Some((score(path, pattern)?, index))
        };
        let mut found: Vec<(i32, u32)> = candidates.into_iter().filter_map(matches).collect();
        let indices = found.iter().map(|(_, index)| *index).collect();
        self.narrowed = Some(NarrowedMatches { generation, pattern: pattern.to_owned(), indices });
        let rank = |(score, index): &(i32, u32)| {
            let path = paths.get(*index);
            (-score, path.len(), path)
        };
        if found.len() > MAX_MATCHES {
            found.select_nth_unstable_by(MAX_MATCHES, |one, other| rank(one).cmp(&rank(other)));
            found.truncate(MAX_MATCHES);
        }
        found.sort_by(|one, other| rank(one).cmp(&rank(other)));
        found.into_iter().map(|(score, index)| (score, paths.get(index).to_owned())).collect()
    }

    #[cfg(test)]
    pub(super) fn examined(&self) -> usize {
        self.examined
    }
}

/// Whether a pattern asks for hidden files: it, or its last part, begins with a dot.
fn wants_hidden(pattern: &str) -> bool {
    pattern.starts_with('.') || pattern.contains("/.")
}

fn is_hidden(path: &str) -> bool {
    path.starts_with('.') || path.contains("/.")
}

fn lock(state: &Mutex<IndexState>) -> MutexGuard<'_, IndexState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One walk over the work folder.
struct IndexWalk {
    work_dir: PathBuf,
    state: Arc<Mutex<IndexState>>,
    is_dropped: Arc<AtomicBool>,
    /// The first walk shows what it has found so far. A later one replaces the index at its end.
    is_first: bool,
}

impl IndexWalk {
    fn run(self) {
        let mut paths = PathList::default();
        let mut next_snapshot = FIRST_SNAPSHOT;
        for entry in walker(&self.work_dir).flatten() {
            if self.is_dropped.load(Ordering::Relaxed) {
                return;
            }
            let Some(path) = relative_path(&entry, &self.work_dir) else { continue };
            paths.push(&path);
            if paths.is_full() {
                break;
            }
            if self.is_first && paths.ends.len() >= next_snapshot {
                next_snapshot *= 2;
                self.publish(paths.clone());
            }
        }
        self.publish(paths);
        let mut state = lock(&self.state);
        (state.is_walking, state.finished_at) = (false, Some(Instant::now()));
    }

    fn publish(&self, paths: PathList) {
        let mut state = lock(&self.state);
        state.paths = Arc::new(paths);
        state.generation += 1;
    }
}

/// Everything but what git ignores. Without a repository the .gitignore files of the work folder count alone.
fn walker(work_dir: &Path) -> ignore::Walk {
    let is_repository = work_dir.ancestors().any(|folder| folder.join(".git").exists());
    WalkBuilder::new(work_dir)
        .hidden(false)
        .ignore(false)
        .parents(is_repository)
        .require_git(is_repository)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build()
}

/// The path of an entry for the list. `None` for the work folder itself and for names that can't be typed.
fn relative_path(entry: &DirEntry, work_dir: &Path) -> Option<String> {
    let path = entry.path().strip_prefix(work_dir).ok()?.to_str()?;
    let is_strange = |character: char| character.is_control() || character == '"' || is_mark(character);
    if path.is_empty() || path.contains(is_strange) {
        return None;
    }
    let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
    Some(if is_folder { format!("{path}/") } else { path.to_owned() })
}

#[cfg(test)]
#[path = "file_index_tests.rs"]
mod tests;
