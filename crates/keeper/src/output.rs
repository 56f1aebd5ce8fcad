//! Reads a command's output, while it runs or afterwards.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use longhaul_protocol::At;

use crate::folder::{Folder, name};
use crate::tail::Tail;
use crate::{Error, Result};

/// The most memory that one read takes.
const MAX_READ_BYTES: usize = 16 << 20;

/// The output of a command. Offsets count printed bytes, even if the middle was dropped.
#[derive(Debug)]
pub struct Output {
    folder: Folder,
}

/// A chunk of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The range before these bytes that was printed but dropped.
    pub dropped: Option<Range<u64>>,
    pub bytes: Vec<u8>,
    /// The offset for the next read. It stays the same if the command has printed nothing more.
    pub next: u64,
}

impl Output {
    pub(crate) fn of(folder: Folder) -> Self {
        Self { folder }
    }

    /// How many bytes were printed: the offset of the next one.
    pub fn printed(&self) -> Result<u64> {
        match self.tail()? {
            Some((_, tail)) => Ok(tail.written),
            None => self.head()?.map_or(Ok(0), |head| self.length(&head)),
        }
    }

    /// When the command printed last; `None` if it has printed nothing.
    pub fn printed_at(&self) -> Result<Option<At>> {
        if self.printed()? == 0 {
            return Ok(None);
        }
        let (head, tail) = (self.folder.changed_at(name::HEAD)?, self.folder.changed_at(name::TAIL)?);
        Ok(head.max(tail))
    }

    /// Reads up to `limit` bytes from an offset. If these bytes were dropped, reads the next ones and reports the
    /// dropped range.
    pub fn read(&self, offset: u64, limit: usize) -> Result<Chunk> {
        let limit = limit.min(MAX_READ_BYTES);
        let tail = self.tail()?;
        let head_end = tail.as_ref().map_or(u64::MAX, |(_, tail)| tail.begins);
        if offset < head_end {
            let most = usize::try_from(head_end - offset).unwrap_or(usize::MAX).min(limit);
            let bytes = match self.head()? {
                Some(head) => self.bytes_at(&head, name::HEAD, offset, most)?,
                None => Vec::new(),
            };
            // A power loss can truncate the head. The tail is still readable.
            let cut = bytes.is_empty() && most > 0 && tail.is_some();
            if !cut {
                let next = offset + bytes.len() as u64;
                return Ok(Chunk { dropped: None, bytes, next });
            }
        }
        match tail {
            Some((file, tail)) => self.read_tail(&file, tail, offset, limit),
            None => Ok(Chunk { dropped: None, bytes: Vec::new(), next: offset }),
        }
    }

    fn read_tail(&self, file: &File, tail: Tail, offset: u64, limit: usize) -> Result<Chunk> {
        let kept = tail.kept();
        if offset >= kept.end {
            return Ok(Chunk { dropped: None, bytes: Vec::new(), next: offset });
        }
        let from = offset.max(kept.start);
        let wanted = from..kept.end.min(from.saturating_add(limit as u64));
        let mut bytes = Vec::new();
        for (place, length) in tail.places(&wanted) {
            let length = usize::try_from(length).unwrap_or(0);
            bytes.extend(self.bytes_at(file, name::TAIL, place, length)?);
        }
        let read_to = from + bytes.len() as u64;

        // The command may have overwritten some of these bytes while they were read.
        let still_from = self.load(file)?.map_or(wanted.end, |tail| tail.kept().start).clamp(from, read_to);
        bytes.drain(..usize::try_from(still_from - from).unwrap_or(0));
        let dropped = (offset < still_from).then_some(offset..still_from);
        Ok(Chunk { dropped, bytes, next: read_to })
    }

    fn head(&self) -> Result<Option<File>> {
        self.folder.open(name::HEAD)
    }

    fn tail(&self) -> Result<Option<(File, Tail)>> {
        let Some(file) = self.folder.open(name::TAIL)? else { return Ok(None) };
        Ok(self.load(&file)?.map(|tail| (file, tail)))
    }

    fn load(&self, file: &File) -> Result<Option<Tail>> {
        Tail::load(file).map_err(|error| Error::Damaged {
            file: self.folder.title(name::TAIL),
            reason: error.to_string(),
        })
    }

    fn length(&self, file: &File) -> Result<u64> {
        let metadata =
            file.metadata().map_err(Error::io(format!("reading {}", self.folder.title(name::HEAD))))?;
        Ok(metadata.len())
    }

    /// Up to `most` bytes, fewer at the file's end. Allocates only for the bytes that exist.
    fn bytes_at(&self, file: &File, name: &str, place: u64, most: usize) -> Result<Vec<u8>> {
        let said = || Error::io(format!("reading {}", self.folder.title(name)));
        let there = file.metadata().map_err(said())?.len().saturating_sub(place);
        let mut bytes = vec![0; most.min(usize::try_from(there).unwrap_or(usize::MAX))];
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], place + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(said()(error)),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }
}
