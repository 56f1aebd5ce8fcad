//! Which session a folder has.

use std::path::Path;

use longhaul_journal::{Journal, Page};
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

/// The first key of a folder that leads nowhere yet: its own, or that with a number.
pub(crate) async fn free_key(journal: &dyn Journal, base: String) -> anyhow::Result<String> {
    let mut key = base.clone();
    let mut number = 1;
    while journal.session(&key).await?.is_some() {
        number += 1;
        key = format!("{base}-{number}");
    }
    Ok(key)
}

/// The key of the session that a folder opens: its own; the one that it was given instead; where it was put away, a new one.
pub(crate) async fn folder_key(journal: &dyn Journal, base: String) -> anyhow::Result<String> {
    match journal.session(&base).await? {
        Some(entry) if entry.trashed => free_key(journal, base).await,
        Some(_) => Ok(base),
        None => Ok(renamed_to(journal, &base).await?.unwrap_or(base)),
    }
}

/// The key that the session now has which was last renamed from this one, if it is still there.
async fn renamed_to(journal: &dyn Journal, key: &str) -> anyhow::Result<Option<String>> {
    let names = StreamName::names();
    let (mut next, mut renamed) = (1, None);
    loop {
        let page = journal.read(&names, next, Page::default()).await?;
        let Some(last) = page.last() else { break };
        next = last.seq + 1;
        for record in &page {
            match NamesRecord::decode(record) {
                Ok(NamesRecord::Renamed(change)) if change.from == key => renamed = Some(change.id),
                _ => {}
            }
        }
    }
    let Some(id) = renamed else { return Ok(None) };
    Ok(journal.session_with_id(id).await?.filter(|entry| !entry.trashed).map(|entry| entry.key))
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
