//! The sessions of the home, as an editor names and lists them.
//!
//! A session that an editor makes has a key such as `acp:demo-01j…`, which is also its id in the protocol: it is known before anything is
//! stored, so an editor that opens a panel and closes it again leaves nothing behind. The key may change later; the id in the
//! protocol stays the key of the first record. Sessions of other clients have their session id there.

use std::path::{Path, PathBuf};

use longhaul_agent::session_title;
use longhaul_journal::{Journal, SessionEntry, record_at, session_place};
use longhaul_protocol::{NamesRecord, SessionId, SessionRecord, StreamName};
use ulid::Ulid;

use crate::error::{Error, Result};
use crate::wire::params::ListSessionsParams;
use crate::wire::reply::{ListedSession, SessionList};

const KEY_PREFIX: &str = "acp:";
/// Sessions in one answer.
const LIST_PAGE: usize = 50;
/// Sessions that are checked for one answer. Sessions of other folders are left out, so a page may have fewer entries.
const MAX_LOOKED_AT: usize = 500;

/// A key for a new session in this folder.
pub(crate) fn new_key(work_dir: &Path) -> String {
    let name = work_dir.file_name().map_or_else(|| "root".into(), |name| name.to_string_lossy());
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let name: String =
        name.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).take(60).collect();
    format!("{KEY_PREFIX}{name}-{}", Ulid::generate().to_string().to_lowercase())
}

/// The canonical path of a folder that the editor names.
pub(crate) fn work_folder(cwd: &Path) -> Result<PathBuf> {
    let refuse = |reason: String| Error::WorkFolder { path: cwd.to_owned(), reason };
    if !cwd.is_absolute() {
        return Err(refuse("the path must be absolute".to_owned()));
    }
    let folder = cwd.canonicalize().map_err(|error| refuse(error.to_string()))?;
    match folder.is_dir() && folder.to_str().is_some() {
        true => Ok(folder),
        false => Err(refuse("it is not a folder, or its name is not UTF-8".to_owned())),
    }
}

/// The session that the editor calls by this id: the key with which it was made, its key now, or its id.
pub(crate) async fn find_session(journal: &dyn Journal, name: &str) -> Result<SessionEntry> {
    let mut found = journal.session(name).await?;
    if found.is_none()
        && let Ok(id) = name.parse::<SessionId>()
    {
        found = journal.session_with_id(id).await?;
    }
    if found.is_none() {
        found = find_renamed(journal, name).await?;
    }
    let unknown = || Error::UnknownSession { session: name.to_owned() };
    found.filter(|entry| !entry.trashed).ok_or_else(unknown)
}

async fn find_renamed(journal: &dyn Journal, key: &str) -> Result<Option<SessionEntry>> {
    for record in journal.records_of_kind(&StreamName::names(), "session_renamed").await? {
        if let Ok(NamesRecord::Renamed(renamed)) = NamesRecord::decode(&record)
            && renamed.from == key
        {
            return Ok(journal.session_with_id(renamed.id).await?);
        }
    }
    Ok(None)
}

/// The work folder of a session, if it has one.
pub(crate) async fn folder_of(journal: &dyn Journal, id: SessionId) -> Result<Option<PathBuf>> {
    let place = session_place(journal, id).await?;
    Ok(place.and_then(|place| place.work_dir).map(PathBuf::from))
}

/// A page of the sessions that have a work folder, in the order of their keys.
pub(crate) async fn list_sessions(journal: &dyn Journal, params: &ListSessionsParams) -> Result<SessionList> {
    let wanted = params.cwd.as_ref().map(|cwd| cwd.canonicalize().unwrap_or_else(|_| cwd.clone()));
    let page = journal.sessions(params.cursor.as_deref(), MAX_LOOKED_AT).await?;
    let is_whole_page = page.len() == MAX_LOOKED_AT;
    let mut list = SessionList { sessions: vec![], next_cursor: None };
    let mut last_key = None;
    for entry in page {
        if list.sessions.len() == LIST_PAGE {
            list.next_cursor = last_key;
            return Ok(list);
        }
        last_key = Some(entry.key.clone());
        let folder = if entry.trashed { None } else { folder_of(journal, entry.id).await? };
        if let Some(folder) = folder.filter(|folder| wanted.as_ref().is_none_or(|wanted| wanted == folder)) {
            list.sessions.push(listed_session(journal, &entry, &folder).await?);
        }
    }
    list.next_cursor = last_key.filter(|_| is_whole_page);
    Ok(list)
}

async fn listed_session(journal: &dyn Journal, entry: &SessionEntry, folder: &Path) -> Result<ListedSession> {
    let first = record_at(journal, &StreamName::session(entry.id), 1).await?;
    let made_as = match first.as_ref().map(SessionRecord::decode) {
        Some(Ok(SessionRecord::SessionCreated(created))) => Some(created.key),
        _ => None,
    };
    let is_ours = |key: &String| key.starts_with(KEY_PREFIX);
    Ok(ListedSession {
        session_id: made_as.filter(is_ours).unwrap_or_else(|| entry.id.to_string()),
        cwd: folder.display().to_string(),
        title: session_title(journal, entry.id).await.text,
        updated_at: entry.last_at.map(|at| at.to_string()),
    })
}
