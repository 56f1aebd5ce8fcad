//! Whose memory a session has. What is remembered in one scope is never recalled in another.

use std::fmt::Write as _;
use std::path::Path;

use longhaul_protocol::Hash;

/// So many bytes of a name are shown as they are; what is longer is told apart by its hash.
const LONGEST_NAME: usize = 80;
/// So many digits of a hash tell two folders of one name apart.
const DIGITS: usize = 8;

/// Tells the scope of a session from its key and its folder.
pub type ScopeFn = dyn Fn(&str, &Path) -> String + Send + Sync;

/// Who shares a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeKind {
    /// All sessions of an agent.
    Agent,
    /// All sessions that work in one folder.
    Project,
    /// All that is said under one key.
    Person,
}

/// The scope of a session with this key that works in this folder, which is canonical.
pub fn scope_of(kind: ScopeKind, agent: &str, key: &str, work_dir: &Path) -> String {
    match kind {
        ScopeKind::Agent => format!("agent-{}", name(agent)),
        ScopeKind::Project => {
            let folder = work_dir.file_name().map_or_else(|| "root".into(), |name| name.to_string_lossy());
            let hash = digits(work_dir.as_os_str().as_encoded_bytes());
            format!("project-{}-{hash}", name(&folder))
        }
        ScopeKind::Person => format!("person-{}", name(key)),
    }
}

/// A name as it may stand in a stream's name and in a path: letters, digits, `_` and `.` within it as they are, everything else as `%xx`.
fn name(text: &str) -> String {
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
    if escaped.len() > LONGEST_NAME {
        escaped.truncate(LONGEST_NAME - DIGITS - 1);
        let _ = write!(escaped, "-{}", digits(text.as_bytes()));
    }
    escaped
}

fn digits(bytes: &[u8]) -> String {
    let mut hash = Hash::of(bytes).to_string();
    hash.truncate(DIGITS);
    hash
}

#[cfg(test)]
#[path = "scope_tests.rs"]
mod tests;
