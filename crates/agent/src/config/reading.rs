//! Reading files of the user and of projects.

use std::path::Path;

use longhaul_protocol::PrintablePath;
use longhaul_tools::{LastLink, SmallFile, read_small_file};

use super::bad;
use crate::Result;

/// The largest file that is read.
pub(crate) const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// What a file says that the user named, if it is there. It may be a link. What would block is not read, nor what has no end.
pub(crate) fn users_text(path: &Path) -> Result<Option<String>> {
    let name = path.printable().to_string();
    match read_small_file(path, LastLink::Follow, MAX_CONFIG_BYTES) {
        Ok(Some(file)) => text_of(file).map(Some).map_err(|reason| bad(&name, &reason)),
        Ok(None) => Ok(None),
        Err(error) => Err(bad(&name, &error)),
    }
}

/// What the file of a project says, if it is there; or why it is not used. Another user must not have been able to write it.
pub(crate) fn project_text(path: &Path) -> std::result::Result<Option<String>, String> {
    match read_small_file(path, LastLink::Refuse, MAX_CONFIG_BYTES) {
        Ok(Some(SmallFile { foreign: Some(why), .. })) => Err(why),
        Ok(Some(file)) => text_of(file).map(Some),
        Ok(None) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// The bytes of a small file as text.
pub(crate) fn text_of(file: SmallFile) -> std::result::Result<String, String> {
    if file.is_cut {
        return Err("it has more than 1 MiB".to_owned());
    }
    String::from_utf8(file.bytes).map_err(|_| "it is not UTF-8".to_owned())
}
