//! Scopes: which sessions share a memory. Recall in one scope never finds memories of another.

use std::fmt::Write as _;
use std::path::Path;

use longhaul_protocol::Hash;

/// Longer names are truncated, and a hash keeps them distinct.
const MAX_NAME_BYTES: usize = 80;
const HASH_DIGITS: usize = 8;

/// Computes the scope of a session from the key that it began with and its folder, if it has one.
pub type ScopeFn = dyn Fn(&str, Option<&Path>) -> String + Send + Sync;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeKind {
    /// All sessions of an agent.
    Agent,
    /// All sessions that work in one folder. A session without a folder has a memory of its own.
    Project,
    /// All sessions with one key.
    Person,
}

/// The scope of a session with this key and this canonical work folder, if it has one.
pub fn scope_of(kind: ScopeKind, agent: &str, key: &str, work_dir: Option<&Path>) -> String {
    match kind {
        ScopeKind::Agent => format!("agent-{}", escaped_name(agent)),
        ScopeKind::Project => {
            let Some(work_dir) = work_dir else { return format!("session-{}", escaped_name(key)) };
            let folder = work_dir.file_name().map_or_else(|| "root".into(), |name| name.to_string_lossy());
            let hash = hash_digits(work_dir.as_os_str().as_encoded_bytes());
            format!("project-{}-{hash}", escaped_name(&folder))
        }
        ScopeKind::Person => format!("person-{}", escaped_name(key)),
    }
}

/// A name for streams and paths: letters, digits, `_`, `-` and inner `.` stay unchanged, everything else becomes
/// `%xx`.
fn escaped_name(text: &str) -> String {
    let mut escaped = String::new();
    for (index, byte) in text.bytes().enumerate() {
        let is_plain =
            byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-' || (byte == b'.' && index > 0);
        if is_plain {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02x}");
        }
    }
    if escaped.len() > MAX_NAME_BYTES {
        escaped.truncate(MAX_NAME_BYTES - HASH_DIGITS - 1);
        let _ = write!(escaped, "-{}", hash_digits(text.as_bytes()));
    }
    escaped
}

fn hash_digits(bytes: &[u8]) -> String {
    let mut hash = Hash::of(bytes).to_string();
    hash.truncate(HASH_DIGITS);
    hash
}

#[cfg(test)]
#[path = "scope_tests.rs"]
mod tests;
