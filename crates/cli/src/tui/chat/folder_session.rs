//! Which session a folder has.

use std::path::Path;

use longhaul_journal::{Journal, import_mark, records};
use longhaul_protocol::{NamesRecord, StreamName};

/// The key of a folder's session. Two folders of one name never share one.
pub(crate) fn key_of(folder: &Path) -> String {
    let canonical = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let name = canonical.file_name().map_or_else(|| "root".into(), |name| name.to_string_lossy());
    let typed = |character: char| if character.is_control() { '_' } else { character };
    let name: String = name.chars().map(typed).collect();
    let hash = blake3::hash(canonical.as_os_str().as_encoded_bytes()).to_hex();
    format!("cli:{name}-{}", &hash[..8])
}

/// The keys that a folder can give to sessions, in their order: its own, and that with a number.
fn keys_of(base: &str) -> impl Iterator<Item = String> {
    let numbered = (2_u64..).map(move |number| format!("{base}-{number}"));
    std::iter::once(base.to_owned()).chain(numbered)
}

/// The first key of a folder that leads nowhere yet.
pub(crate) async fn free_key(journal: &dyn Journal, base: String) -> anyhow::Result<String> {
    for key in keys_of(&base) {
        if journal.session(&key).await?.is_none() {
            return Ok(key);
        }
    }
    Ok(base)
}

/// The key of the session that a folder opens: its own; the one that it was given instead; where it was put away, or came from somebody else's
/// file, the next.
pub(crate) async fn folder_key(journal: &dyn Journal, base: String) -> anyhow::Result<String> {
    for key in keys_of(&base) {
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

/// The key that the session now has which was last renamed from this one, if it is still there.
async fn renamed_to(journal: &dyn Journal, key: &str) -> anyhow::Result<Option<String>> {
    let names = StreamName::names();
    let (mut names, mut renamed) = (records(journal, &names, 1), None);
    while let Some(record) = names.next().await? {
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
