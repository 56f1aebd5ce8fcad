//! Earlier inputs, of this run and of others, in one private file to which every process appends.

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

const MAX_ENTRIES: usize = 1_000;
/// Longer entries are kept for this run only.
const MAX_STORED_BYTES: usize = 64 * 1024;
const MAX_MEMORY_BYTES: usize = 32 * 1024 * 1024;
/// Bytes read from the end of the file.
const MAX_READ_BYTES: u64 = 16 * 1024 * 1024;
/// The first line of a file whose entries are escaped.
const VERSION: &str = "#V2";
/// How often, and with which pause, to retry while another process rewrites the file.
const LOCK_ATTEMPTS: u32 = 10;
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(5);

pub(crate) struct History {
    entries: VecDeque<String>,
    bytes: usize,
    /// False if the newest entry was discarded and not entered: the same text is stored when it is entered.
    newest_is_stored: bool,
    file: Option<PathBuf>,
    /// Entries in the file, as far as this process knows.
    in_file: usize,
    redactor: Redactor,
}

impl History {
    /// Loads the file. An unreadable file counts as empty.
    pub(crate) fn load(path: &Path, redactor: Redactor) -> Self {
        let mut history = Self { file: Some(path.to_owned()), redactor, ..Self::none() };
        let entries = read(path).unwrap_or_default();
        history.in_file = entries.len();
        for entry in entries {
            history.push(entry);
        }
        history
    }

    /// A history without a file.
    pub(crate) fn none() -> Self {
        Self {
            entries: VecDeque::new(),
            bytes: 0,
            newest_is_stored: true,
            file: None,
            in_file: 0,
            redactor: Redactor::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, index: usize) -> Option<&str> {
        self.entries.get(index).map(String::as_str)
    }

    /// Adds an entered text, with secrets redacted, unless it repeats the newest entry.
    pub(super) fn add(&mut self, entry: &str) {
        let entry = self.redactor.redact(entry).into_owned();
        let is_same = self.entries.back() == Some(&entry);
        if is_same && self.newest_is_stored {
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
        self.newest_is_stored = true;
    }

    /// Adds a discarded text, for this run only.
    pub(super) fn add_for_this_run(&mut self, text: &str) {
        if self.entries.back().is_none_or(|newest| newest != text) {
            self.push(text.to_owned());
            self.newest_is_stored = false;
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

fn read(path: &Path) -> io::Result<Vec<String>> {
    // Never a link, a pipe or a device.
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
    // The first line of a partial read is most likely incomplete.
    let lines = text.lines().skip(usize::from(skipped > 0));
    let entries = lines.filter(|line| !line.trim().is_empty() && *line != VERSION);
    Ok(entries.map(|line| clean(&if is_escaped { unescaped(line) } else { line.to_owned() })).collect())
}

/// Whether the entries of the file are escaped. True for an empty file.
fn is_escaped(file: &File) -> io::Result<bool> {
    let mut first = [0; VERSION.len() + 1];
    let count = file.read_at(&mut first, 0)?;
    Ok(count == 0 || first.strip_prefix(VERSION.as_bytes()).is_some_and(|rest| matches!(rest, b"\n" | b"\r")))
}

/// Appends an entry in one write, so that entries of two processes never mix.
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
        // A process was killed in the middle of its write.
        (_, [byte]) if byte != b'\n' => "\n".to_owned(),
        _ => String::new(),
    };
    file.write_all(format!("{before}{}\n", escaped(entry)).as_bytes())
}

/// Opens the file for appending under a shared lock, so that no process replaces it meanwhile.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let no_link = OFlags::NOFOLLOW.bits().cast_signed();
    options.create(true).read(true).append(true).mode(0o600).custom_flags(no_link);
    for _ in 0..LOCK_ATTEMPTS {
        let file = options.open(path)?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_RETRY_DELAY),
            // A file system without locks: two processes may lose an entry.
            Err(TryLockError::Error(_)) => return Ok(file),
            Ok(()) if is_at(&file, path) => return Ok(file),
            Ok(()) => {}
        }
    }
    options.open(path)
}

/// Whether the path still leads to this file.
fn is_at(file: &File, path: &Path) -> bool {
    let named = std::fs::metadata(path).map(|about| (about.dev(), about.ino()));
    matches!((file.metadata(), named), (Ok(open), Ok(named)) if (open.dev(), open.ino()) == named)
}

/// Rewrites the file with the newest entries, under an exclusive lock.
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

/// Unknown escapes stay as they are.
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
