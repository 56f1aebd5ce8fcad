//! Files that a person sends along with a message: text as text, images as images.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::file_type::{SNIFFED_BYTES, binary_kind, image_media_type};
use super::read_file::MAX_IMAGE_BYTES;
use crate::display::display_path;
use crate::scope::{Permission, Scope};

/// Bytes of a text that can be sent along. The agent reads longer files in parts.
const MAX_TEXT_BYTES: u64 = 256 << 10;

/// A file that a person sends along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attachment {
    Text(String),
    Image { media_type: &'static str, bytes: Vec<u8> },
}

impl Attachment {
    /// Reads a file within the scope. The error says why it can't be sent along.
    pub fn read_in_scope(scope: &Scope, path: &str) -> Result<Self, String> {
        let place = scope.resolve(path, Permission::Read).map_err(|error| error.to_string())?;
        let open = place.open().map_err(|error| error.to_string())?;
        Self::read(open.file, place.shown())
    }

    /// Reads an image that the user named on the command line, wherever it is.
    pub fn read_image(path: &Path) -> Result<Self, String> {
        let shown = display_path(path);
        let is_file = std::fs::metadata(path).map(|metadata| metadata.is_file());
        match is_file {
            Ok(true) => {}
            Ok(false) => return Err(format!("{shown} is not a file")),
            Err(error) => return Err(format!("{shown} can't be read: {error}")),
        }
        let file = File::open(path).map_err(|error| format!("{shown} can't be read: {error}"))?;
        match Self::read(file, &shown)? {
            Self::Text(_) => Err(format!("{shown} is not an image (PNG, JPEG, GIF or WebP)")),
            image @ Self::Image { .. } => Ok(image),
        }
    }

    /// Checks an image that a program sent as bytes. The media type is that of the bytes, whatever the sender says.
    pub fn check_image(bytes: Vec<u8>, shown: &str) -> Result<Self, String> {
        match Self::of_bytes(bytes, shown)? {
            Self::Text(_) => Err(format!("{shown} is not an image (PNG, JPEG, GIF or WebP)")),
            image @ Self::Image { .. } => Ok(image),
        }
    }

    fn read(file: File, shown: &str) -> Result<Self, String> {
        let mut bytes = Vec::new();
        let read = file.take(MAX_IMAGE_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|error| format!("{shown} can't be read: {error}"))?;
        Self::of_bytes(bytes, shown)
    }

    fn of_bytes(bytes: Vec<u8>, shown: &str) -> Result<Self, String> {
        let head = &bytes[..bytes.len().min(SNIFFED_BYTES)];
        if let Some(media_type) = image_media_type(head) {
            return match bytes.len() as u64 > MAX_IMAGE_BYTES {
                true => Err(format!("{shown} is an image of more than {} MiB", MAX_IMAGE_BYTES >> 20)),
                false => Ok(Self::Image { media_type, bytes }),
            };
        }
        if let Some(kind) = binary_kind(head) {
            return Err(format!(
                "{shown} is neither text nor an image (PNG, JPEG, GIF or WebP): it is {kind}"
            ));
        }
        if bytes.len() as u64 > MAX_TEXT_BYTES {
            let most = MAX_TEXT_BYTES >> 10;
            return Err(format!("{shown} has more than {most} KiB; ask the agent to read it"));
        }
        Ok(Self::Text(String::from_utf8_lossy(&bytes).into_owned()))
    }
}

#[cfg(test)]
#[path = "attachment_tests.rs"]
mod tests;
