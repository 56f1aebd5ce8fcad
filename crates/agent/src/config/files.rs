//! Reads config files and instructions of the user and of projects.

use std::path::Path;

use longhaul_protocol::PrintablePath;
use longhaul_tools::{LastLink, SmallFile, read_file_above, read_small_file};

use super::config_error;
use crate::Result;

pub(crate) const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// Reads a file that the user named, if it exists. It may be a link. Pipes and devices are refused.
pub(crate) fn read_user_file(path: &Path) -> Result<Option<String>> {
    let name = path.printable().to_string();
    match read_small_file(path, LastLink::Follow, MAX_CONFIG_BYTES) {
        Ok(Some(file)) => decode_text(file).map(Some).map_err(|reason| config_error(&name, &reason)),
        Ok(None) => Ok(None),
        Err(error) => Err(config_error(&name, &error)),
    }
}

/// Where a project's file lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilePlace {
    WorkFolder,
    /// Above the work folder, where the user may not even know of it.
    Above,
}

/// Reads the file of a project, if it exists. The error says why it is not used. A file that another user could have
/// written is refused.
pub(crate) fn read_project_file(
    path: &Path,
    place: FilePlace,
) -> std::result::Result<Option<String>, String> {
    let read = match place {
        FilePlace::WorkFolder => read_small_file(path, LastLink::Refuse, MAX_CONFIG_BYTES),
        FilePlace::Above => read_file_above(path, MAX_CONFIG_BYTES),
    };
    match read {
        Ok(Some(SmallFile { foreign: Some(why), .. })) => Err(why),
        Ok(Some(file)) => decode_text(file).map(Some),
        Ok(None) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

pub(crate) fn decode_text(file: SmallFile) -> std::result::Result<String, String> {
    if file.is_cut {
        return Err("the file is larger than 1 MiB".to_owned());
    }
    String::from_utf8(file.bytes).map_err(|_| "the file is not valid UTF-8".to_owned())
}
