//! The session of a work folder.

use std::path::Path;

use longhaul_journal::{Journal, import_mark, records};
use longhaul_protocol::{NamesRecord, StreamName};

/// The key of the session of a folder: its name, and a hash of its path.
pub(crate) fn key_of(folder: &Path) -> String {
    let canonical = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let name = canonical.file_name().map_or_else(|| "root".into(), |name| name.to_string_lossy());
    let typed = |character: char| if character.is_control() { '_' } else { character };
    let name: String = name.chars().map(typed).collect();
    let hash = blake3::hash(canonical.as_os_str().as_encoded_bytes()).to_hex();
    format!("cli:{name}-{}", &hash[..8])
}

/// `base`, `base-2`, `base-3` and so on.
fn numbered_keys(base: &str) -> impl Iterator<Item = String> {
    let numbered = (2_u64..).map(move |number| format!("{base}-{number}"));
    std::iter::once(base.to_owned()).chain(numbered)
}

/// The first of the numbered keys that no session has.
pub(crate) async fn free_key(journal: &dyn Journal, base: String) -> anyhow::Result<String> {
    for key in numbered_keys(&base) {
        if journal.session(&key).await?.is_none() {
            return Ok(key);
        }
    }
    Ok(base)
}

/// The key of the session that a folder opens. A renamed session is found under its new key. One that is in the trash, or was imported from
/// another user, is skipped for the next number.
pub(crate) async fn folder_key(journal: &dyn Journal, base: String) -> anyhow::Result<String> {
    for key in numbered_keys(&base) {
        match journal.session(&key).await? {
            Some(entry) if entry.trashed => {}
            Some(entry) if import_mark(journal, entry.id).await?.foreign_through > 0 => {}
            Some(_) => return Ok(key),
            None if key == base => return Ok(renamed_to(journal, &base).await?.unwrap_or(key)),
            None => return Ok(key),
        }
    }
    Ok(base)
}

/// The present key of the session that was last renamed from `key`, unless it is in the trash.
async fn renamed_to(journal: &dyn Journal, key: &str) -> anyhow::Result<Option<String>> {
    let mut renamed = None;
    let mut cursor = records(journal, &StreamName::names(), 1);
    while let Some(record) = cursor.next().await? {
        match NamesRecord::decode(&record) {
            Ok(NamesRecord::Renamed(change)) if change.from == key => renamed = Some(change.id),
            _ => {}
        }
    }
    let Some(id) = renamed else { return Ok(None) };
    Ok(journal.session_with_id(id).await?.filter(|entry| !entry.trashed).map(|entry| entry.key))
}

#[cfg(test)]
#[path = "folder_session_tests.rs"]
mod tests;
