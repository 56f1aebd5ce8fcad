//! Files in the cache folder to which processes append lines. They may be deleted at any time.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// A larger file is ignored, and the next append starts it anew.
const MAX_BYTES: u64 = 4 << 20;

/// The text of a file. Empty if it is missing, too large or no regular file.
pub(crate) fn read_lines(path: &Path) -> String {
    let mut text = String::new();
    let read = open(OpenOptions::new().read(true), path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text));
    match read {
        Ok(length) if length as u64 <= MAX_BYTES => text,
        _ => String::new(),
    }
}

/// Appends one short line in one write, so that several processes can append at the same time. Starts a file that is
/// too large anew.
pub(crate) fn append_line(path: &Path, line: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut file = open(OpenOptions::new().create(true).append(true).mode(0o600), path)?;
    if file.metadata()?.len() > MAX_BYTES {
        file.set_len(0)?;
    }
    file.write_all(format!("{line}\n").as_bytes())
}

/// Opens a regular file. Does not follow a symbolic link or wait at a pipe.
fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = options.custom_flags(flags.bits().cast_signed()).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}

#[cfg(test)]
#[path = "cache_file_tests.rs"]
mod tests;
