//! Which session a folder has.

use std::path::Path;

use longhaul_journal::Journal;

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

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
