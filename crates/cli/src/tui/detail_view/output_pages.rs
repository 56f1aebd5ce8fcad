//! A long output that is read in pages: as text with a sparse index of its lines, in an unnamed file or in memory.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};

/// A larger text goes to a file, if there can be one.
const MAX_BYTES_IN_MEMORY: usize = 256 << 10;
/// Bytes of a text that are kept where no file can be made.
const MAX_BYTES_WITHOUT_FILE: usize = 8 << 20;
/// Lines between two entries of the index, which are read at once.
const PAGE_LINES: usize = 256;
/// A longer line is continued in the next one, so that a page stays small.
const MAX_LINE_BYTES: usize = 4 << 10;

/// The lines of an output. Only one page of them is in memory, unless the output is small.
#[derive(Debug)]
pub(crate) struct OutputPages {
    source: PageSource,
    /// Where each page begins.
    pages: Vec<u64>,
    bytes: u64,
    lines: usize,
    /// The page that was read last, by its number.
    cached: Option<(usize, Vec<String>)>,
}

#[derive(Debug)]
enum PageSource {
    Memory(Vec<u8>),
    /// A file without a name: it is gone when it is closed, also after a crash.
    File(File),
}

impl OutputPages {
    /// A text that is small enough for memory.
    pub(crate) fn of_text(text: &str) -> Self {
        let mut writer = OutputPagesWriter::new(None);
        writer.push(text);
        writer.finish()
    }

    pub(crate) fn line_count(&self) -> usize {
        self.lines
    }

    /// A line, counted from 0. Empty where there is none, and where the file can't be read.
    pub(crate) fn line(&mut self, number: usize) -> &str {
        let page = number / PAGE_LINES;
        if self.cached.as_ref().is_none_or(|(cached, _)| *cached != page) {
            self.cached = Some((page, self.read_page(page)));
        }
        let lines = self.cached.as_ref().map_or(&[][..], |(_, lines)| lines);
        lines.get(number % PAGE_LINES).map_or("", String::as_str)
    }

    fn read_page(&self, page: usize) -> Vec<String> {
        let Some(from) = self.pages.get(page).copied() else { return vec![] };
        let end = self.pages.get(page + 1).copied().unwrap_or(self.bytes);
        let mut bytes = vec![0; usize::try_from(end.saturating_sub(from)).unwrap_or(0)];
        match &self.source {
            PageSource::Memory(text) => {
                let from = usize::try_from(from).unwrap_or(text.len());
                let end = from + bytes.len();
                bytes.copy_from_slice(&text[from..end]);
            }
            PageSource::File(file) if file.read_exact_at(&mut bytes, from).is_ok() => {}
            PageSource::File(_) => return vec![],
        }
        String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
    }
}

/// Writes the lines of an output and builds their index.
pub(crate) struct OutputPagesWriter {
    /// Where a file can be made.
    folder: Option<std::path::PathBuf>,
    file: Option<File>,
    /// Text that is not in the file yet.
    buffer: Vec<u8>,
    pages: Vec<u64>,
    bytes: u64,
    lines: usize,
    /// Bytes of the last line, if it has no end yet.
    open_line_bytes: usize,
    /// Nothing more can be kept.
    is_full: bool,
}

impl OutputPagesWriter {
    /// A large text goes to an unnamed file in this folder. Without one, only its beginning is kept.
    pub(crate) fn new(folder: Option<&Path>) -> Self {
        Self {
            folder: folder.map(Path::to_owned),
            file: None,
            buffer: Vec::new(),
            pages: vec![0],
            bytes: 0,
            lines: 0,
            open_line_bytes: 0,
            is_full: false,
        }
    }

    pub(crate) fn push(&mut self, text: &str) {
        for line in text.split_inclusive('\n') {
            let mut rest = line;
            while self.open_line_bytes + rest.len() > MAX_LINE_BYTES {
                let end = rest.floor_char_boundary(MAX_LINE_BYTES.saturating_sub(self.open_line_bytes));
                self.push_part(&rest[..end]);
                self.push_part("\n");
                rest = &rest[end..];
            }
            self.push_part(rest);
        }
    }

    /// A line, or a part of one.
    fn push_part(&mut self, part: &str) {
        if part.is_empty() || self.is_full {
            return;
        }
        if self.open_line_bytes == 0 {
            if self.lines > 0 && self.lines.is_multiple_of(PAGE_LINES) {
                self.pages.push(self.bytes);
            }
            self.lines += 1;
        }
        self.bytes += part.len() as u64;
        self.buffer.extend_from_slice(part.as_bytes());
        self.open_line_bytes = if part.ends_with('\n') { 0 } else { self.open_line_bytes + part.len() };
        if self.buffer.len() > MAX_BYTES_IN_MEMORY {
            self.write_buffer();
        }
    }

    /// Moves the buffer to the file, if there is one.
    fn write_buffer(&mut self) {
        if self.file.is_none() {
            self.file = self.folder.take().and_then(|folder| unnamed_file(&folder));
        }
        let Some(file) = &mut self.file else {
            self.is_full = self.buffer.len() > MAX_BYTES_WITHOUT_FILE;
            return;
        };
        if file.write_all(&self.buffer).is_err() {
            // The disk is full: what was written before stays readable.
            self.bytes -= self.buffer.len() as u64;
            self.is_full = true;
        }
        self.buffer.clear();
    }

    pub(crate) fn finish(mut self) -> OutputPages {
        if self.file.is_some() {
            self.write_buffer();
        }
        let source = match self.file {
            Some(file) => PageSource::File(file),
            None => PageSource::Memory(self.buffer),
        };
        OutputPages { source, pages: self.pages, bytes: self.bytes, lines: self.lines, cached: None }
    }
}

/// A file that no other program can open.
fn unnamed_file(folder: &Path) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, folder, flags, Mode::RUSR | Mode::WUSR).ok().map(File::from)
}

#[cfg(test)]
#[path = "output_pages_tests.rs"]
mod tests;
