//! What was entered before, in this run and in others: one private file, to which every process appends.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul_agent::Redactor;
use longhaul_journal::ReplacingFile;
use rustix::fs::OFlags;

use super::chips::clean;

/// How many entries are kept.
const MAX_ENTRIES: usize = 1_000;
/// An entry that is longer than this is kept for this run, and not in the file.
const MAX_STORED_BYTES: usize = 64 * 1024;
/// How much memory the entries may take.
const MAX_MEMORY_BYTES: usize = 32 * 1024 * 1024;
/// How much of the file is read, from its end.
const MAX_READ_BYTES: u64 = 16 * 1024 * 1024;
/// The first line of a file whose entries are escaped.
const VERSION: &str = "#V2";
/// How often and how long is waited for another process that rewrites the file.
const LOCK_ATTEMPTS: u32 = 10;
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(5);

/// What was entered before, the oldest first.
pub(crate) struct History {
    entries: VecDeque<String>,
    bytes: usize,
    /// Whether the newest entry was only cleared away: what is entered next may be the same, and is stored.
    newest_is_stored: Stored,
    file: Option<PathBuf>,
    /// How many entries the file has, as far as this process knows.
    in_file: usize,
    redactor: Redactor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    Yes,
    No,
}

impl History {
    /// What the file has. One that can't be read is no reason not to type.
    pub(crate) fn load(path: &Path, redactor: Redactor) -> Self {
        let mut history = Self { file: Some(path.to_owned()), redactor, ..Self::none() };
        let entries = read(path).unwrap_or_default();
        history.in_file = entries.len();
        for entry in entries {
            history.push(entry);
        }
        history
    }

    /// One that remembers this run only.
    pub(crate) fn none() -> Self {
        Self {
            entries: VecDeque::new(),
            bytes: 0,
            newest_is_stored: Stored::Yes,
            file: None,
            in_file: 0,
            redactor: Redactor::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, place: usize) -> Option<&str> {
        self.entries.get(place).map(String::as_str)
    }

    /// Keeps what was entered, without its secrets; what is the same as the one before only once.
    pub(super) fn add(&mut self, entry: &str) {
        let entry = self.redactor.redact(entry).into_owned();
        let is_same = self.entries.back() == Some(&entry);
        if is_same && self.newest_is_stored == Stored::Yes {
            return;
        }
        if let Some(path) = &self.file
            && entry.len() <= MAX_STORED_BYTES
            && append(path, &entry).is_ok()
        {
            self.in_file += 1;
            if self.in_file >= 2 * MAX_ENTRIES && rewrite(path).is_ok() {
                self.in_file = MAX_ENTRIES;
            }
        }
        if !is_same {
            self.push(entry);
        }
        self.newest_is_stored = Stored::Yes;
    }

    /// Keeps what was cleared away, for this run only.
    pub(super) fn add_for_this_run(&mut self, text: &str) {
        if self.entries.back().is_none_or(|newest| newest != text) {
            self.push(text.to_owned());
            self.newest_is_stored = Stored::No;
        }
    }

    fn push(&mut self, entry: String) {
        self.bytes += entry.len();
        self.entries.push_back(entry);
        while self.entries.len() > MAX_ENTRIES || (self.bytes > MAX_MEMORY_BYTES && self.entries.len() > 1) {
            self.bytes -= self.entries.pop_front().map_or(0, |oldest| oldest.len());
        }
    }
}

/// The entries of a file, the oldest first.
fn read(path: &Path) -> io::Result<Vec<String>> {
    // A pipe or a device would never end, nor is a link followed.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let is_escaped = is_escaped(&file)?;
    let skipped = about.len().saturating_sub(MAX_READ_BYTES);
    file.seek(SeekFrom::Start(skipped))?;
    let mut bytes = Vec::new();
    file.take(MAX_READ_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    // The first line of a part is most likely half of one.
    let lines = text.lines().skip(usize::from(skipped > 0));
    let entries = lines.filter(|line| !line.trim().is_empty() && *line != VERSION);
    Ok(entries.map(|line| clean(&if is_escaped { unescaped(line) } else { line.to_owned() })).collect())
}

/// Whether the entries of a file are escaped; those of an empty one will be.
fn is_escaped(file: &File) -> io::Result<bool> {
    let mut first = [0; VERSION.len() + 1];
    let count = file.read_at(&mut first, 0)?;
    Ok(count == 0 || first.strip_prefix(VERSION.as_bytes()).is_some_and(|rest| matches!(rest, b"\n" | b"\r")))
}

/// Adds an entry by one write, so that two processes never mix theirs.
fn append(path: &Path, entry: &str) -> io::Result<()> {
    let file = open(path)?;
    if !is_escaped(&file)? {
        drop(file);
        rewrite(path)?;
        return append_to(&open(path)?, entry);
    }
    append_to(&file, entry)
}

fn append_to(mut file: &File, entry: &str) -> io::Result<()> {
    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if length > 0 {
        file.read_at(&mut last, length - 1)?;
    }
    let before = match (length, last) {
        (0, _) => format!("{VERSION}\n"),
        // Half an entry, of a process that was ended in the middle.
        (_, [byte]) if byte != b'\n' => "\n".to_owned(),
        _ => String::new(),
    };
    file.write_all(format!("{before}{}\n", escaped(entry)).as_bytes())
}

/// Opens the file for appending, so that nobody replaces it meanwhile.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let no_link = OFlags::NOFOLLOW.bits().cast_signed();
    options.create(true).read(true).append(true).mode(0o600).custom_flags(no_link);
    for _ in 0..LOCK_ATTEMPTS {
        let file = options.open(path)?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_RETRY_DELAY),
            // A file system without locks: two processes that meet here may lose an entry.
            Err(TryLockError::Error(_)) => return Ok(file),
            Ok(()) if is_at(&file, path) => return Ok(file),
            Ok(()) => {}
        }
    }
    options.open(path)
}

/// Whether the file still has this name.
fn is_at(file: &File, path: &Path) -> bool {
    let named = std::fs::metadata(path).map(|about| (about.dev(), about.ino()));
    matches!((file.metadata(), named), (Ok(open), Ok(named)) if (open.dev(), open.ino()) == named)
}

/// Leaves the newest entries in the file. Whoever appends waits until it has taken its place.
fn rewrite(path: &Path) -> io::Result<()> {
    let held = OpenOptions::new().read(true).write(true).open(path)?;
    if matches!(held.try_lock(), Err(TryLockError::WouldBlock)) || !is_at(&held, path) {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let entries = read(path)?;
    let newest = &entries[entries.len().saturating_sub(MAX_ENTRIES)..];
    let lines: String = newest.iter().map(|entry| format!("{}\n", escaped(entry))).collect();
    let mut file = ReplacingFile::create(path).map_err(io::Error::other)?;
    file.write_all(format!("{VERSION}\n{lines}").as_bytes())?;
    file.finish().map_err(io::Error::other)
}

fn escaped(entry: &str) -> String {
    entry.replace('\\', "\\\\").replace('\n', "\\n")
}

/// An entry as it was. What nobody escaped stays as it stands.
fn unescaped(line: &str) -> String {
    let mut entry = String::with_capacity(line.len());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (character, characters.clone().next()) {
            ('\\', Some('n')) => entry.push('\n'),
            ('\\', Some('\\')) => entry.push('\\'),
            _ => {
                entry.push(character);
                continue;
            }
        }
        characters.next();
    }
    entry
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
