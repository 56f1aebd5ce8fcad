//! The sessions of a work folder: which one was used last, and which were interrupted.
//!
//! The conversations of a folder have keys that begin with its name and a hash of its path, or had such a key before they were
//! renamed. `longhaul run` gives each session a key of its own (`run:…`), so these are found by the work folder in their first record.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use longhaul_agent::now;
use longhaul_journal::{
    Journal, Page, SessionEntry, import_mark, newest_import, record_at, records, session_place,
};
use longhaul_protocol::{
    At, NamesRecord, Seq, SessionId, SessionRecord, StreamName, is_invisible, is_misleading,
};

/// Conversations of a folder that are compared by their last input. Further ones were not used for longer.
const MAX_COMPARED: usize = 16;
/// Sessions that are read from the list at a time.
const LIST_PAGE: usize = 64;
/// Sessions of `longhaul run` that are looked at.
const MAX_RUNS: usize = 500;
/// How far back sessions of `longhaul run` are looked for: the longest time that has at most [`MAX_RUNS`] of them.
const RUN_AGES_MS: [i64; 4] = [30 * DAY_MS, 7 * DAY_MS, DAY_MS, DAY_MS / 24];
const DAY_MS: i64 = 86_400_000;
/// Records from the end of a session in which the beginning or the end of its last turn is looked for.
const MAX_TURN_RECORDS: u64 = 2_000;
const RUN_PREFIX: &str = "run:";

/// The key of the first session of a folder: its name, and a hash of its path.
pub(crate) fn key_of(folder: &Path) -> String {
    let canonical = canonical(folder);
    let name = canonical.file_name().map_or_else(|| "root".into(), |name| name.to_string_lossy());
    let is_hidden = |letter: char| is_misleading(letter) || is_invisible(letter);
    let name = name.replace(is_hidden, "_");
    let hash = blake3::hash(canonical.as_os_str().as_encoded_bytes()).to_hex();
    format!("cli:{name}-{}", &hash[..8])
}

fn canonical(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

/// A new key for a session of `longhaul run`. It begins with the time.
pub(crate) fn run_key() -> String {
    format!("{RUN_PREFIX}{}", SessionId::generate())
}

/// The first of `base`, `base-2`, `base-3` and so on that no session has and that is not among `taken`.
pub(crate) async fn free_key(
    journal: &dyn Journal,
    base: String,
    taken: &HashSet<String>,
) -> anyhow::Result<String> {
    let numbered = (2_u64..).map(|number| format!("{base}-{number}"));
    for key in std::iter::once(base.clone()).chain(numbered) {
        if !taken.contains(&key) && journal.session(&key).await?.is_none() {
            return Ok(key);
        }
    }
    Ok(base)
}

/// S2: the key of the conversation that was last used in a folder; a free key if there is none.
pub(crate) async fn last_conversation_key(journal: &dyn Journal, folder: &Path) -> anyhow::Result<String> {
    match conversations(journal, folder).await?.into_iter().next() {
        Some(entry) => Ok(entry.key),
        None => free_key(journal, key_of(folder), &HashSet::new()).await,
    }
}

/// The session that was last used in a folder, in a conversation or by `longhaul run`.
pub(crate) async fn last_session(
    journal: &dyn Journal,
    folder: &Path,
) -> anyhow::Result<Option<SessionEntry>> {
    let conversation = conversations(journal, folder).await?.into_iter().next();
    let mut last = None;
    for entry in conversation.into_iter().chain(runs(journal, folder).await?) {
        let used = last_use(journal, &entry).await;
        if last.as_ref().is_none_or(|(last_used, _)| used > *last_used) {
            last = Some((used, entry));
        }
    }
    Ok(last.map(|(_, entry)| entry))
}

/// The conversations of a folder, the one that was used last first. Without those in the trash, those that were imported from another
/// user, and those that work in another folder: a program may have chosen their key.
async fn conversations(journal: &dyn Journal, folder: &Path) -> anyhow::Result<Vec<SessionEntry>> {
    let (base, folder) = (key_of(folder), canonical(folder));
    let mut entries = keyed(journal, &base).await?;
    entries.extend(renamed(journal, &base).await?);
    entries.retain(|entry| !entry.trashed);
    entries.sort_by_key(|entry| Reverse(entry.last_at.max(Some(entry.id.made_at()))));
    let mut conversations = Vec::new();
    for entry in entries.into_iter().take(MAX_COMPARED) {
        let mark = import_mark(journal, entry.id).await?;
        if mark.foreign_through == 0 && (mark.seq > 0 || works_in(journal, &entry, &folder).await) {
            conversations.push((last_use(journal, &entry).await, entry));
        }
    }
    conversations.sort_by_key(|(used, _)| Reverse(*used));
    Ok(conversations.into_iter().map(|(_, entry)| entry).collect())
}

/// Whether a session works in this folder. One whose first record can't be read, or is not there yet, may.
async fn works_in(journal: &dyn Journal, entry: &SessionEntry, folder: &Path) -> bool {
    match session_place(journal, entry.id).await {
        Ok(Some(place)) => place.work_dir.is_some_and(|work_dir| Path::new(&work_dir) == folder),
        Ok(None) | Err(_) => true,
    }
}

/// The sessions whose key is `base`, or `base` with an addition: a number, or the mark of a fork.
async fn keyed(journal: &dyn Journal, base: &str) -> anyhow::Result<Vec<SessionEntry>> {
    let mut found: Vec<SessionEntry> = journal.session(base).await?.into_iter().collect();
    let numbered = format!("{base}-");
    let mut after = base.to_owned();
    loop {
        let page = journal.sessions(Some(&after), LIST_PAGE).await?;
        let Some(last) = page.last() else { return Ok(found) };
        let is_end = page.len() < LIST_PAGE || !last.key.starts_with(base);
        last.key.clone_into(&mut after);
        found.extend(page.into_iter().filter(|entry| entry.key.starts_with(&numbered)));
        if is_end {
            return Ok(found);
        }
    }
}

/// The sessions that had such a key before they were renamed.
async fn renamed(journal: &dyn Journal, base: &str) -> anyhow::Result<Vec<SessionEntry>> {
    let is_of_folder =
        |key: &str| key.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    let mut ids: Vec<SessionId> = Vec::new();
    for record in journal.records_of_kind(&StreamName::names(), "session_renamed").await? {
        if let Ok(NamesRecord::Renamed(change)) = NamesRecord::decode(&record)
            && is_of_folder(&change.from)
            && !ids.contains(&change.id)
        {
            ids.push(change.id);
        }
    }
    let mut found = Vec::new();
    for id in ids {
        let entry = journal.session_with_id(id).await?;
        found.extend(entry.filter(|entry| !is_of_folder(&entry.key)));
    }
    Ok(found)
}

/// The sessions of `longhaul run` in a folder that were begun lately.
async fn runs(journal: &dyn Journal, folder: &Path) -> anyhow::Result<Vec<SessionEntry>> {
    let mut listed = Vec::new();
    for age in RUN_AGES_MS {
        let since = u128::try_from(now().0.saturating_sub(age)).unwrap_or(0);
        // A ULID begins with ten letters that are its time.
        let earliest = SessionId::from_bits(since << 80).to_string();
        let after = format!("{RUN_PREFIX}{}", &earliest[..10]);
        listed = journal.sessions(Some(&after), MAX_RUNS).await?;
        listed.retain(|entry| entry.key.starts_with(RUN_PREFIX));
        if listed.len() < MAX_RUNS {
            break;
        }
    }
    let (folder, mut found) = (canonical(folder), Vec::new());
    for entry in listed.into_iter().filter(|entry| !entry.trashed) {
        let first = record_at(journal, &StreamName::session(entry.id), 1).await.ok().flatten();
        if let Some(Ok(SessionRecord::SessionCreated(created))) = first.as_ref().map(SessionRecord::decode)
            && created.work_dir.is_some_and(|work_dir| Path::new(&work_dir) == folder)
            && import_mark(journal, entry.id).await?.foreign_through == 0
        {
            found.push(entry);
        }
    }
    Ok(found)
}

/// When a person or a program last sent something to a session, or imported it. What the runtime does by itself, such as a compaction,
/// doesn't count.
async fn last_use(journal: &dyn Journal, entry: &SessionEntry) -> Option<At> {
    let made_at = Some(entry.id.made_at());
    if entry.inbox_head == 0 {
        return entry.last_at.max(made_at);
    }
    let last = record_at(journal, &StreamName::inbox(entry.id), entry.inbox_head).await.ok().flatten();
    let imported = newest_import(journal, entry.id, Seq::MAX).await.ok().flatten().map(|record| record.at);
    last.map_or(entry.last_at, |record| Some(record.at)).max(made_at).max(imported)
}

/// The sessions of a folder, apart from the one with the key `open`, that have an open turn which no process runs.
pub(crate) async fn interrupted_sessions(
    journal: &dyn Journal,
    folder: &Path,
    open: &str,
) -> anyhow::Result<Vec<SessionEntry>> {
    let mut entries = conversations(journal, folder).await?;
    entries.extend(runs(journal, folder).await?);
    let mut interrupted = Vec::new();
    for entry in entries.into_iter().filter(|entry| entry.key != open) {
        let stream = StreamName::session(entry.id);
        if has_open_turn(journal, &entry).await && journal.live_holder(&stream).await?.is_none() {
            interrupted.push(entry);
        }
    }
    Ok(interrupted)
}

/// Whether the last turn of a session has begun and not ended. Reads from the end; what can't be read counts as ended.
async fn has_open_turn(journal: &dyn Journal, entry: &SessionEntry) -> bool {
    let (stream, head) = (StreamName::session(entry.id), entry.head.seq);
    let oldest = head.saturating_sub(MAX_TURN_RECORDS) + 1;
    // Most sessions end with the end of a turn.
    let (mut through, mut count) = (head, 1);
    while through >= oldest.max(1) {
        let from = through.saturating_sub(count - 1).max(oldest);
        let page = Page { records: 512, bytes: usize::MAX };
        let mut cursor = records(journal, &stream, from).through(through).in_pages_of(page);
        let mut last = None;
        while let Ok(Some(record)) = cursor.next_undamaged().await {
            match record.kind.as_str() {
                "turn_started" => last = Some(true),
                "turn_ended" => last = Some(false),
                _ => {}
            }
        }
        if let Some(is_open) = last {
            return is_open;
        }
        (through, count) = (from - 1, (count * 8).min(512));
    }
    false
}

#[cfg(test)]
#[path = "folder_session_tests.rs"]
mod tests;
