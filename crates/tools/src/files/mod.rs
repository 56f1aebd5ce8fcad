//! Reading and writing files.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `read`, `excerpt`, `magic` | read_file; the lines that were asked for out of a stream; what a file is by its first bytes |
//! | `write`, `edit`, `edits` | write_file; edit_file; making edits in a text, as a pure function |
//! | `plan` | what both writers share: a write that is decided, then recorded, then made, and found again after a crash |
//! | `replace`, `temporary` | putting a new file in place of an old one at once, and never over someone else's change |

mod atomic_replace;
mod edit_file;
mod file_type;
mod line_range;
mod read_file;
mod temporary_file;
mod text_edits;
mod write_file;
mod write_plan;

use std::fs::File;
use std::io::{self, Read, Seek};

pub(crate) use edit_file::{EditFile, about as edit_file_about};
use longhaul_protocol::Hash;
pub(crate) use read_file::{ReadFile, about as read_file_about};
pub(crate) use write_file::{WriteFile, about as write_file_about};

/// The most that a written file may hold.
const MAX_WRITTEN_BYTES: usize = 8 << 20;
/// The most that a file may hold that is written over.
const MAX_REPLACED_BYTES: u64 = 64 << 20;

/// The hash of a whole file, without holding it in memory. One that is larger than what may be replaced has none, or hashing
/// a file that grows would go on for ever.
fn hash_of(file: &mut File) -> io::Result<Hash> {
    file.rewind()?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(Hash::from_bytes(hasher.finalize().into())),
            Ok(length) => drop(hasher.update(&buffer[..length])),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if hasher.count() > MAX_REPLACED_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
    }
}
