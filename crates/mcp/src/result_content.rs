//! The result of a call, for the model: its text, and its images.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use longhaul_tools::{ToolImage, ToolOutcome};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// Images of one result to keep.
const MAX_IMAGES: usize = 8;
/// The largest image, in bytes.
const MAX_IMAGE_BYTES: usize = 5 << 20;
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

pub(crate) fn outcome_of(result: CallToolResult) -> ToolOutcome {
    let (mut parts, mut images) = (Vec::new(), Vec::new());
    for block in &result.content {
        match block {
            ContentBlock::Text(text) => parts.push(text.text.clone()),
            ContentBlock::Image(image) => match decode_image(&image.mime_type, &image.data, images.len()) {
                Ok(image) => images.push(image),
                Err(reason) => parts.push(format!("[an image that is left out: {reason}]")),
            },
            ContentBlock::Audio(audio) => {
                parts.push(format!("[audio ({}) that is left out]", audio.mime_type));
            }
            ContentBlock::Resource(resource) => parts.push(resource_text(&resource.resource)),
            ContentBlock::ResourceLink(link) => parts.push(format!("[resource {}: {}]", link.name, link.uri)),
            _ => parts.push("[content of an unknown kind that is left out]".to_owned()),
        }
    }
    // A server that gives data also gives it as text, says the protocol. Some don't.
    if let Some(data) = result.structured_content.filter(|_| parts.is_empty() && images.is_empty()) {
        parts.push(data.to_string());
    }
    let content = match parts.join("\n") {
        text if text.is_empty() && images.is_empty() => "(no output)".to_owned(),
        text => text,
    };
    ToolOutcome { content, is_error: result.is_error == Some(true), images, ..ToolOutcome::default() }
}

/// The text of a resource, or what is in it.
pub(crate) fn resource_text(resource: &ResourceContents) -> String {
    match resource {
        ResourceContents::TextResourceContents { text, .. } => text.clone(),
        ResourceContents::BlobResourceContents { uri, mime_type, .. } => {
            format!("[resource {uri} ({}) that is left out]", mime_type.as_deref().unwrap_or("unknown type"))
        }
        _ => "[a resource of an unknown kind that is left out]".to_owned(),
    }
}

fn decode_image(media: &str, data: &str, before: usize) -> Result<ToolImage, &'static str> {
    if !IMAGE_TYPES.contains(&media) {
        return Err("no model takes its type");
    }
    if before >= MAX_IMAGES {
        return Err("there are too many");
    }
    let bytes = STANDARD.decode(data.as_bytes()).map_err(|_| "it is damaged")?;
    if bytes.len() > MAX_IMAGE_BYTES {
        return Err("it is larger than 5 MiB");
    }
    Ok(ToolImage { media: media.to_owned(), bytes })
}

#[cfg(test)]
#[path = "result_content_tests.rs"]
mod tests;
