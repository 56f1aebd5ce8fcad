//! A prompt of the editor as a message to the session.
//!
//! What the user typed are the user's words. A resource that the editor sends along is data (P8): it stands in a marked block after the
//! words, whatever it contains. A link is only named; the agent reads it with its tools, within its scope.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longhaul_agent::{AttachedImage, UserMessage};
use longhaul_context::{marked_block, with_blocks};
use longhaul_transcript::truncate;
use percent_encoding::percent_decode_str;

use crate::error::{Error, Result};
use crate::wire::params::{EmbeddedResource, PromptBlock};

const METHOD: &str = "session/prompt";
/// Characters of a link's name or address.
const MAX_LINK_CHARS: usize = 1_000;

/// The message that a prompt stands for.
pub(crate) fn message_of(prompt: Vec<PromptBlock>) -> Result<UserMessage> {
    let (mut said, mut blocks, mut images) = (String::new(), Vec::new(), Vec::new());
    for block in prompt {
        match block {
            PromptBlock::Text { text } => said.push_str(&text),
            // Editors put a link where the user typed the mention of a file.
            PromptBlock::ResourceLink { uri, name } => said.push_str(&link_text(&uri, &name)),
            PromptBlock::Resource { resource } => match embedded(resource)? {
                Embedded::Text(block) => blocks.push(block),
                Embedded::Image(image) => images.push(image),
            },
            PromptBlock::Image { data, mime_type } => images.push(image(&data, &mime_type)?),
            PromptBlock::Audio {} => return Err(refuse("audio is not supported")),
        }
    }
    if images.len() > AttachedImage::MAX_PER_MESSAGE {
        return Err(refuse(&format!("a message may have {} images", AttachedImage::MAX_PER_MESSAGE)));
    }
    let text = with_blocks(&said, &blocks);
    if text.trim().is_empty() && images.is_empty() {
        return Err(refuse("the prompt is empty"));
    }
    Ok(UserMessage { text, images })
}

enum Embedded {
    Text(String),
    Image(AttachedImage),
}

fn embedded(resource: EmbeddedResource) -> Result<Embedded> {
    let EmbeddedResource { uri, mime_type, text, blob } = resource;
    let name = truncate(&path_of(&uri), MAX_LINK_CHARS);
    match (text, blob, mime_type) {
        (Some(text), _, _) => Ok(Embedded::Text(marked_block(&format!("file {name}"), &text))),
        (None, Some(data), Some(mime_type)) if mime_type.starts_with("image/") => {
            Ok(Embedded::Image(image(&data, &mime_type)?))
        }
        _ => Err(refuse(&format!("{name} is neither text nor an image"))),
    }
}

fn image(data: &str, mime_type: &str) -> Result<AttachedImage> {
    let bytes = STANDARD.decode(data).map_err(|error| refuse(&format!("an image is not base64: {error}")))?;
    AttachedImage::check(bytes, mime_type, "an image").map_err(|reason| refuse(&reason))
}

/// `@src/main.rs` for a file, `name (address)` for anything else.
fn link_text(uri: &str, name: &str) -> String {
    let (path, name) = (truncate(&path_of(uri), MAX_LINK_CHARS), truncate(name, MAX_LINK_CHARS));
    if uri.starts_with("file://") { format!("@{path}") } else { format!("{name} ({path})") }
}

/// The path of a `file:` address; any other address as it is.
fn path_of(uri: &str) -> String {
    match uri.strip_prefix("file://") {
        Some(path) => percent_decode_str(path).decode_utf8_lossy().into_owned(),
        None => uri.to_owned(),
    }
}

fn refuse(reason: &str) -> Error {
    Error::params(METHOD, reason)
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
