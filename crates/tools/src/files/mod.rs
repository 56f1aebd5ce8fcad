//! Reading and writing files.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `read_file`, `line_range`, `file_type` | read_file; the requested lines out of a stream; what a file is by its first bytes |
//! | `write_file`, `edit_file`, `text_edits` | write_file; edit_file; edits of a text, as a pure function |
//! | `writing_tool`, `write_plan` | what both writers share: a write is planned, recorded, performed, and checked after a crash |
//! | `delete_file`, `move_file`, `patch` | delete_file; move_file; patch, which changes several files |
//! | `patch_format`, `patch_hunks` | the text of a patch; its hunks applied to a text, as a pure function |
//! | `changing_tool`, `change_plan` | what those three share: changes of several files, recorded and checked like a write |
//! | `file_removal` | removing and moving a file, and never another program's change |
//! | `unified_diff` | the change that a write makes, for people |
//! | `attachment` | files that a person sends along with a message |
//! | `atomic_replace`, `temporary_file` | replacing a file at once, and never over another program's change |

mod atomic_replace;
mod attachment;
mod change_plan;
mod changing_tool;
pub(crate) mod delete_file;
pub(crate) mod edit_file;
mod file_removal;
mod file_type;
mod line_range;
pub(crate) mod move_file;
pub(crate) mod patch;
mod patch_format;
mod patch_hunks;
pub(crate) mod read_file;
mod temporary_file;
mod text_edits;
mod unified_diff;
pub(crate) mod write_file;
mod write_plan;
mod writing_tool;

pub use attachment::Attachment;

use std::fs::File;
use std::io::{self, Read, Seek};

use longhaul_protocol::Hash;
pub use unified_diff::{omissions_of_diff, unified_diff};

const MAX_WRITTEN_BYTES: usize = 8 << 20;
/// The largest file that may be replaced.
const MAX_REPLACED_BYTES: u64 = 64 << 20;

/// The hash of a whole file, read in parts. A file larger than [`MAX_REPLACED_BYTES`] is an error: hashing one that grows
/// would never end.
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
