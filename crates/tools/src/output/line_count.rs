//! How many lines a command has printed.

use longhaul_keeper::{Output, Result};

const READ_BYTES: usize = 256 << 10;

/// Lines among the first `end` bytes of an output, read in parts. None if the keeper has dropped some of them.
pub(crate) fn count_lines(output: &Output, end: u64) -> Result<Option<u64>> {
    let (mut offset, mut lines, mut last) = (0, 0, b'\n');
    while offset < end {
        let most = usize::try_from(end - offset).unwrap_or(READ_BYTES).min(READ_BYTES);
        let chunk = output.read(offset, most)?;
        if chunk.dropped.is_some() || chunk.next == offset {
            return Ok(None);
        }
        lines += chunk.bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        last = chunk.bytes.last().copied().unwrap_or(last);
        offset = chunk.next;
    }
    Ok(Some(lines + u64::from(last != b'\n')))
}
