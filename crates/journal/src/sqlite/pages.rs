//! SQLite's file format, read without trusting it: page by page, from the bytes alone.
//!
//! What is damaged on a page costs what stood there and nothing else. No bytes whatever make this panic, go on for
//! ever, or take more memory than the file has bytes.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// The size of a page where the file does not say so: the one that SQLite gives to every file of ours.
const USUAL_PAGE_SIZE: usize = 4096;
/// The header of the file, at the beginning of page 1.
const FILE_HEADER: usize = 100;
/// The header of a leaf, before the places of its cells.
const LEAF_HEADER: usize = 8;

const INTERIOR_OF_INDEX: u8 = 0x02;
const INTERIOR_OF_TABLE: u8 = 0x05;
const LEAF_OF_INDEX: u8 = 0x0a;
const LEAF_OF_TABLE: u8 = 0x0d;
/// Overflow pages and pages of the free list begin with the number of a page, whose first byte this is in a file of
/// less than 64 GiB. In a larger one some of them are searched in vain.
const NO_TREE: u8 = 0x00;

/// A file as a list of pages.
pub(crate) struct Pages {
    file: File,
    length: u64,
    page_size: usize,
}

impl Pages {
    pub(crate) fn of(file: File) -> io::Result<Self> {
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

    /// A page by its number, from 1. What the file has not got of it is zero.
    pub(crate) fn page(&self, number: u32) -> io::Result<Page> {
        let mut bytes = vec![0; self.page_size];
        fill(&self.file, &mut bytes, u64::from(number.saturating_sub(1)) * self.page_size as u64)?;
        Ok(Page { start: if number == 1 { FILE_HEADER } else { 0 }, bytes })
    }

    /// The bytes of a row, gathered from the pages that it runs over to; none if they can't be followed.
    pub(crate) fn payload<'page>(
        &self,
        page: &'page Page,
        cell: &Cell,
    ) -> io::Result<Option<Cow<'page, [u8]>>> {
        let Some(local) = page.bytes.get(cell.local.clone()) else { return Ok(None) };
        let Some(mut next) = cell.overflow else { return Ok(Some(Cow::Borrowed(local))) };
        if cell.size as u64 > self.length {
            return Ok(None);
        }
        let mut payload = Vec::with_capacity(cell.size);
        payload.extend_from_slice(local);
        // Each page brings bytes, so this ends. A ring of pages has no last one, and is found out by that.
        while payload.len() < cell.size {
            if next < 2 || next > self.count() {
                return Ok(None);
            }
            let Page { bytes, .. } = self.page(next)?;
            let (number, content) = bytes.split_at(4);
            let missing = cell.size - payload.len();
            payload.extend_from_slice(&content[..missing.min(content.len())]);
            next = number.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
        }
        Ok((next == 0).then_some(Cow::Owned(payload)))
    }
}

/// The size of the pages, if the header says one with which the file is as long as the header says.
fn page_size(header: &[u8; FILE_HEADER], length: u64) -> usize {
    let size = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 1 << 16,
        size => usize::from(size),
    };
    let pages = u32::from_be_bytes([header[28], header[29], header[30], header[31]]);
    let plausible = size >= 512 && size.is_power_of_two() && u64::from(pages) * size as u64 == length;
    if plausible { size } else { USUAL_PAGE_SIZE }
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

/// One page.
pub(crate) struct Page {
    bytes: Vec<u8>,
    /// Where its own header begins.
    start: usize,
}

impl Page {
    /// The rows on this page, if it is a leaf of a table: those that its header lists, and if that does not add up,
    /// whatever else on it could be one.
    pub(crate) fn cells(&self) -> Vec<Cell> {
        match self.bytes[self.start] {
            LEAF_OF_TABLE => {
                let listed = self.listed();
                if self.adds_up(&listed) {
                    return listed;
                }
                let others = self.others(&listed);
                listed.into_iter().chain(others).collect()
            }
            NO_TREE | INTERIOR_OF_INDEX | INTERIOR_OF_TABLE | LEAF_OF_INDEX => Vec::new(),
            // There is no such kind: damage has struck the byte that says what this was.
            _ => self.others(&[]),
        }
    }

    /// The cells at the places that the header lists.
    fn listed(&self) -> Vec<Cell> {
        let places = self.bytes[self.start + LEAF_HEADER..].chunks_exact(2).take(self.cell_count());
        places.filter_map(|place| self.cell(usize::from(u16::from_be_bytes([place[0], place[1]])))).collect()
    }

    /// Whether these cells and the free space are all that there is between the first cell and the end, so that none
    /// is missing.
    fn adds_up(&self, cells: &[Cell]) -> bool {
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

    /// The bytes in the chain of free blocks; none if it is not a chain.
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

    /// What could be rows elsewhere than in these cells. Whoever asks must be able to tell whether it is one.
    fn others(&self, listed: &[Cell]) -> Vec<Cell> {
        let mut taken = vec![false; self.bytes.len()];
        for cell in listed {
            taken[cell.extent.clone()].fill(true);
        }
        let free = (self.start + LEAF_HEADER..self.bytes.len()).filter(|place| !taken[*place]);
        // The number of a row is kept beside it, and null stands in the column that is a name for it.
        free.filter_map(|place| self.cell(place))
            .filter(|cell| cell.columns.len() > 1 && cell.columns[0] == Column::Null)
            .collect()
    }

    /// The cell at a place, if the sizes that it gives agree with each other.
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

/// How many bytes of a row of this size stand on the leaf itself; the rest runs over to other pages.
fn local_size(size: usize, page_size: usize) -> usize {
    let most = page_size - 35;
    if size <= most {
        return size;
    }
    let least = (page_size - 12) * 32 / 255 - 23;
    let filling = least + (size - least) % (page_size - 4);
    if filling <= most { filling } else { least }
}

/// A row as it lies on a leaf.
pub(crate) struct Cell {
    /// The number of the row.
    pub(crate) row: i64,
    /// How many bytes it has, wherever they are.
    pub(crate) size: usize,
    /// Where its columns begin.
    header: usize,
    columns: Vec<Column>,
    local: Range<usize>,
    /// The page on which it goes on.
    overflow: Option<u32>,
    /// What it takes of the leaf.
    extent: Range<usize>,
}

impl Cell {
    /// The columns of the row; none if these are not its bytes.
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

/// What stands in a column. Text may not be UTF-8 any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'bytes> {
    Null,
    Integer(i64),
    /// No table of ours has any.
    Real,
    Text(&'bytes [u8]),
    Blob(&'bytes [u8]),
}

/// How a column is stored, with its width.
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

/// The size of a row's header, and the columns that it lists. Tables of ours have headers of a few bytes, so one that
/// is not all on the leaf is none of ours.
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

/// A number of one to nine bytes, the high ones first: seven bits in each, and all eight in a ninth.
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
#[path = "pages_tests.rs"]
mod tests;
