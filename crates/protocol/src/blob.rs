use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Hash;

/// A reference to a blob. In a body, every object with a field `blob` is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobRef {
    /// The hash of the bytes, which is also their address.
    #[serde(rename = "blob")]
    pub hash: Hash,
    /// The size of the blob.
    pub bytes: u64,
    /// The media type, such as `text/plain` or `image/png`.
    pub media: String,
}

impl BlobRef {
    /// The reference to these bytes.
    pub fn to(bytes: &[u8], media: &str) -> Self {
        Self { hash: Hash::of(bytes), bytes: bytes.len() as u64, media: media.to_owned() }
    }

    /// Whether the bytes are text, so that they can be shown and searched.
    pub fn is_text(&self) -> bool {
        self.media.starts_with("text/") || self.media == "application/json"
    }
}

/// The blobs that a body refers to, in their order, each once.
///
/// A journal keeps a blob as long as a record refers to it. The references are in the body, which the hash chain protects,
/// so an index of them can be rebuilt.
pub fn blob_refs(body: &str) -> Vec<BlobRef> {
    // Most bodies have none, so skip parsing them.
    if !body.contains("\"blob\"") {
        return Vec::new();
    }
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    if let Ok(value) = serde_json::from_str::<Value>(body) {
        collect(&value, &mut |blob: BlobRef| {
            if seen.insert(blob.hash) {
                found.push(blob);
            }
        });
    }
    found
}

fn collect(value: &Value, found: &mut impl FnMut(BlobRef)) {
    match value {
        Value::Object(fields) if fields.contains_key("blob") => {
            if let Ok(blob) = BlobRef::deserialize(value) {
                found(blob);
            }
        }
        Value::Object(fields) => fields.values().for_each(|field| collect(field, found)),
        Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
