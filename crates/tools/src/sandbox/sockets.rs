//! Unix sockets in a home folder.
//!
//! Landlock does not restrict connecting to a socket that is a file. Where the scope contains the home folder, its
//! sockets are hidden one by one when a command starts: those in folders that are known to hold some (`protected`),
//! and those in the kernel's table.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Every Unix socket of this network namespace. Its path, if it has one, is the last of eight fields.
const SOCKET_TABLE: &str = "/proc/net/unix";
const PATH_FIELD: usize = 7;

/// The sockets in a folder that a program has bound. A socket that was bound by a relative path, or in another network
/// namespace, is not found.
pub(super) fn bound_sockets(folder: &Path) -> BTreeSet<PathBuf> {
    let list = fs::read(SOCKET_TABLE).unwrap_or_default();
    let paths = list.split(|byte| *byte == b'\n').filter_map(path_of).collect::<BTreeSet<_>>();
    let canonical = paths.into_iter().filter_map(|path| path.canonicalize().ok());
    canonical.filter(|path| path.starts_with(folder)).collect()
}

/// The absolute path in a line of the table. Fields are separated by spaces, and the path may contain spaces.
fn path_of(line: &[u8]) -> Option<&Path> {
    let mut rest = line;
    for _ in 0..PATH_FIELD {
        let end = rest.trim_ascii_start().iter().position(|byte| *byte == b' ')?;
        rest = rest.trim_ascii_start().get(end..)?;
    }
    let path = Path::new(OsStr::from_bytes(rest.strip_prefix(b" ")?));
    path.is_absolute().then_some(path)
}
