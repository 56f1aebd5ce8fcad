//! A reader of SQLite's file format that trusts nothing. It works page by page, only from the bytes.
//!
//! Damage on a page costs the rows there and nothing else. No input makes this panic, loop forever, or take more memory
//! than the file has bytes.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// The page size of every journal, for a file whose header is damaged.
const DEFAULT_PAGE_SIZE: usize = 4096;
/// The header of the file, at the beginning of page 1.
const FILE_HEADER: usize = 100;
/// The header of a leaf, before the offsets of its cells.
const LEAF_HEADER: usize = 8;

const INTERIOR_OF_INDEX: u8 = 0x02;
const INTERIOR_OF_TABLE: u8 = 0x05;
const LEAF_OF_INDEX: u8 = 0x0a;
const LEAF_OF_TABLE: u8 = 0x0d;
/// The first byte of overflow pages and pages of the free list, in a file of less than 64 GiB: they begin with a page
/// number. In a larger file, some of them are scanned in vain.
const NO_TREE: u8 = 0x00;

/// A file as a list of pages.
pub(crate) struct PageFile {
    file: File,
    length: u64,
    page_size: usize,
}

impl PageFile {
    pub(crate) fn open(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let mut header = [0; FILE_HEADER];
        fill(&file, &mut header, 0)?;
        let page_size = page_size(&header, length);
        Ok(Self { file, length, page_size })
    }

    /// The number of the last page.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.length.div_ceil(self.page_size as u64)).unwrap_or(u32::MAX)
    }

    /// A page by its number, from 1. Bytes past the end of the file are zero.
    pub(crate) fn page(&self, number: u32) -> io::Result<PageBytes> {
        let mut bytes = vec![0; self.page_size];
        fill(&self.file, &mut bytes, u64::from(number.saturating_sub(1)) * self.page_size as u64)?;
        Ok(PageBytes { start: if number == 1 { FILE_HEADER } else { 0 }, bytes })
    }

    /// The bytes of a row, with those on overflow pages; `None` if the chain of these is broken.
    pub(crate) fn payload<'page>(
        &self,
        page: &'page PageBytes,
        cell: &Cell,
    ) -> io::Result<Option<Cow<'page, [u8]>>> {
        let Some(local) = page.bytes.get(cell.local.clone()) else { return Ok(None) };
        let Some(mut next) = cell.overflow else { return Ok(Some(Cow::Borrowed(local))) };
        if cell.size as u64 > self.length {
            return Ok(None);
        }
        let mut payload = Vec::with_capacity(cell.size);
        payload.extend_from_slice(local);
        // Each page adds bytes, so this ends. A cycle of pages has no last page and is rejected below.
        while payload.len() < cell.size {
            if next < 2 || next > self.count() {
                return Ok(None);
            }
            let PageBytes { bytes, .. } = self.page(next)?;
            let (number, content) = bytes.split_at(4);
            let missing = cell.size - payload.len();
            payload.extend_from_slice(&content[..missing.min(content.len())]);
            next = number.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
        }
        Ok((next == 0).then_some(Cow::Owned(payload)))
    }
}

/// The page size in the header, if it is consistent with the file's length and the page count. Otherwise the default.
fn page_size(header: &[u8; FILE_HEADER], length: u64) -> usize {
    let size = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 1 << 16,
        size => usize::from(size),
    };
    let pages = u32::from_be_bytes([header[28], header[29], header[30], header[31]]);
    let plausible = size >= 512 && size.is_power_of_two() && u64::from(pages) * size as u64 == length;
    if plausible { size } else { DEFAULT_PAGE_SIZE }
}

/// Reads as many bytes as there are.
fn fill(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.read_at(bytes, offset) {
            Ok(0) => break,
            Ok(read) => {
                bytes = &mut bytes[read..];
                offset += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub(crate) struct PageBytes {
    bytes: Vec<u8>,
    /// The offset of the page's own header.
    start: usize,
}

impl PageBytes {
    /// The rows on this page, if it is a leaf of a table: those that its header lists, and if these don't fill the page,
    /// everything else on it that could be a row.
    pub(crate) fn cells(&self) -> Vec<Cell> {
        match self.bytes[self.start] {
            LEAF_OF_TABLE => {
                let listed = self.listed_cells();
                if self.is_complete(&listed) {
                    return listed;
                }
                let others = self.possible_cells(&listed);
                listed.into_iter().chain(others).collect()
            }
            NO_TREE | INTERIOR_OF_INDEX | INTERIOR_OF_TABLE | LEAF_OF_INDEX => Vec::new(),
            // There is no such kind, so the byte is damaged.
            _ => self.possible_cells(&[]),
        }
    }

    /// The cells at the offsets that the header lists.
    fn listed_cells(&self) -> Vec<Cell> {
        let places = self.bytes[self.start + LEAF_HEADER..].chunks_exact(2).take(self.cell_count());
        places.filter_map(|place| self.cell(usize::from(u16::from_be_bytes([place[0], place[1]])))).collect()
    }

    /// Whether these cells and the free space fill the page from the first cell to its end, so that no cell is missing.
    fn is_complete(&self, cells: &[Cell]) -> bool {
        let first = match self.number(self.start + 5) {
            Some(0) => 1 << 16,
            first => first.unwrap_or_default(),
        };
        let fragments = usize::from(self.bytes[self.start + 7]);
        let used: usize = cells.iter().map(|cell| cell.extent.len()).sum();
        cells.len() == self.cell_count()
            && self.free_bytes().is_some_and(|free| first + used + free + fragments == self.bytes.len())
    }

    fn cell_count(&self) -> usize {
        self.number(self.start + 3).unwrap_or_default()
    }

    /// The bytes in the chain of free blocks; `None` if the chain is broken.
    fn free_bytes(&self) -> Option<usize> {
        let (mut free, mut block) = (0, self.number(self.start + 1)?);
        while block != 0 {
            let next = self.number(block)?;
            free += self.number(block + 2)?;
            if next != 0 && next <= block {
                return None;
            }
            block = next;
        }
        Some(free)
    }

    /// Everything outside these cells that could be a row. The caller must check each of them.
    fn possible_cells(&self, listed: &[Cell]) -> Vec<Cell> {
        let mut taken = vec![false; self.bytes.len()];
        for cell in listed {
            taken[cell.extent.clone()].fill(true);
        }
        let free = (self.start + LEAF_HEADER..self.bytes.len()).filter(|place| !taken[*place]);
        // The column of the row id is always null, because SQLite stores the id outside the columns.
        free.filter_map(|place| self.cell(place))
            .filter(|cell| cell.columns.len() > 1 && cell.columns[0] == Column::Null)
            .collect()
    }

    /// The cell at an offset, if its sizes are consistent.
    fn cell(&self, place: usize) -> Option<Cell> {
        let mut at = place;
        let size = usize::try_from(varint(&self.bytes, &mut at)?).ok()?;
        let row = varint(&self.bytes, &mut at)?.cast_signed();
        let local = at..at.checked_add(local_size(size, self.bytes.len()))?;
        let (header, columns) = columns(self.bytes.get(local.clone())?)?;
        let content = columns.iter().try_fold(header, |sum, column| sum.checked_add(column.width()))?;
        let (overflow, end) = if local.len() < size {
            let number = self.bytes.get(local.end..local.end + 4)?;
            (Some(u32::from_be_bytes(number.try_into().ok()?)), local.end + 4)
        } else {
            (None, local.end)
        };
        (content == size).then_some(Cell { row, size, header, columns, local, overflow, extent: place..end })
    }

    /// Two bytes as a number.
    fn number(&self, place: usize) -> Option<usize> {
        let bytes = self.bytes.get(place..place.checked_add(2)?)?;
        Some(usize::from(bytes[0]) << 8 | usize::from(bytes[1]))
    }
}

/// How many bytes of a row of this size are on the leaf. The rest is on overflow pages.
fn local_size(size: usize, page_size: usize) -> usize {
    let most = page_size - 35;
    if size <= most {
        return size;
    }
    let least = (page_size - 12) * 32 / 255 - 23;
    let filling = least + (size - least) % (page_size - 4);
    if filling <= most { filling } else { least }
}

/// A row on a leaf.
pub(crate) struct Cell {
    /// The row id.
    pub(crate) row: i64,
    /// All its bytes, on the leaf and on overflow pages.
    pub(crate) size: usize,
    /// The length of its header, where its columns begin.
    header: usize,
    columns: Vec<Column>,
    local: Range<usize>,
    /// Its first overflow page.
    overflow: Option<u32>,
    /// The range that it occupies on the leaf.
    extent: Range<usize>,
}

impl Cell {
    /// The columns of the row; `None` if these are not its bytes.
    pub(crate) fn values<'bytes>(&self, payload: &'bytes [u8]) -> Option<Vec<Value<'bytes>>> {
        let mut rest = payload.get(self.header..)?;
        let mut value = |column: &Column| {
            let (bytes, after) = rest.split_at_checked(column.width())?;
            rest = after;
            Some(match *column {
                Column::Null => Value::Null,
                Column::Integer(_) => Value::Integer(integer(bytes)),
                Column::Constant(number) => Value::Integer(number),
                Column::Real => Value::Real,
                Column::Text(_) => Value::Text(bytes),
                Column::Blob(_) => Value::Blob(bytes),
            })
        };
        self.columns.iter().map(&mut value).collect()
    }
}

/// The value of a column. Damaged text may not be UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'bytes> {
    Null,
    Integer(i64),
    /// No table of a journal has one.
    Real,
    Text(&'bytes [u8]),
    Blob(&'bytes [u8]),
}

/// The storage class of a column, with its width in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Null,
    Integer(usize),
    Constant(i64),
    Real,
    Text(usize),
    Blob(usize),
}

impl Column {
    fn of(serial: u64) -> Option<Self> {
        Some(match serial {
            0 => Self::Null,
            1..=4 => Self::Integer(usize::try_from(serial).ok()?),
            5 => Self::Integer(6),
            6 => Self::Integer(8),
            7 => Self::Real,
            8 => Self::Constant(0),
            9 => Self::Constant(1),
            10 | 11 => return None,
            _ if serial.is_multiple_of(2) => Self::Blob(usize::try_from((serial - 12) / 2).ok()?),
            _ => Self::Text(usize::try_from((serial - 13) / 2).ok()?),
        })
    }

    fn width(self) -> usize {
        match self {
            Self::Null | Self::Constant(_) => 0,
            Self::Real => 8,
            Self::Integer(width) | Self::Text(width) | Self::Blob(width) => width,
        }
    }
}

/// The size of a row's header, and the columns that it lists. The headers in a journal have a few bytes, so one that
/// extends beyond the leaf is invalid.
fn columns(local: &[u8]) -> Option<(usize, Vec<Column>)> {
    let mut at = 0;
    let size = usize::try_from(varint(local, &mut at)?).ok()?;
    let header = local.get(..size)?;
    let mut columns = Vec::new();
    while at < size {
        columns.push(Column::of(varint(header, &mut at)?)?);
    }
    (at == size).then_some((size, columns))
}

/// A big-endian number of one to nine bytes: seven bits in each, and all eight in a ninth.
fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut number = 0;
    for length in 1..=9 {
        let byte = *bytes.get(*at)?;
        *at += 1;
        if length == 9 {
            return Some(number << 8 | u64::from(byte));
        }
        number = number << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            break;
        }
    }
    Some(number)
}

fn integer(bytes: &[u8]) -> i64 {
    let negative = bytes.first().is_some_and(|byte| *byte >= 0x80);
    bytes.iter().fold(if negative { -1 } else { 0 }, |number, byte| number << 8 | i64::from(*byte))
}

#[cfg(test)]
#[path = "file_format_tests.rs"]
mod tests;
