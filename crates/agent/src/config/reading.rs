//! Reading a file that somebody else may have put there.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use super::bad;
use crate::Result;

/// The largest file that is read.
const LONGEST: u64 = 1 << 20;

/// What a file says, if it is there. What would block is not read, nor what has no end.
pub(crate) fn text_of(path: &Path) -> Result<Option<String>> {
    let name = path.display().to_string();
    let said = |error: std::io::Error| bad(&name, &error);
    match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(said(error)),
        Ok(_) => {}
    }
    if !path.metadata().map_err(said)?.is_file() {
        return Err(bad(&name, "it is not a file"));
    }
    let mut text = String::new();
    let length = File::open(path).map_err(said)?.take(LONGEST + 1).read_to_string(&mut text).map_err(said)?;
    if length as u64 > LONGEST {
        return Err(bad(&name, "it has more than 1 MiB"));
    }
    Ok(Some(text))
}
