//! From the name that the user typed to a session.

use std::sync::Arc;

use longhaul_agent::{Client, Redactor, Session};
use longhaul_journal::{Error, Journal, SessionEntry, all_sessions};
use longhaul_protocol::SessionId;

use crate::args::GlobalArgs;
use crate::bad_usage;
use crate::folder_session::last_session;
use crate::nearest::nearest;
use crate::output::{note, truncate};
use crate::short_id::{IdMatch, find};
use crate::suggested_command::quoted;

/// Jaro-Winkler similarity below which a key is no suggestion.
const MIN_SIMILARITY: f64 = 0.82;
/// Sessions that an error names where several fit.
const MAX_NAMED_SESSIONS: usize = 10;

/// The error of a command that needs a session in a folder that has none.
pub(crate) const NO_SESSION_HERE: &str =
    "no session was used in this folder yet: name one with -s KEY; longhaul sessions lists them";

/// The session with this key; else the only one whose key starts with `name`, or whose id is, starts or ends with it. The error names the
/// sessions that fit, or the nearest keys.
pub(crate) async fn find_session(journal: &dyn Journal, name: &str) -> anyhow::Result<SessionEntry> {
    if let Some(entry) = journal.session(name).await? {
        return Ok(entry);
    }
    // Every key starts with the empty string, which an unset variable of a script passes by mistake.
    if name.trim().is_empty() {
        return Err(bad_usage("the session's key is empty; `longhaul sessions` lists them"));
    }
    let mut sessions = all_sessions(journal).collect().await?;
    match match_name(&sessions, name) {
        NameMatch::One(index) => Ok(sessions.swap_remove(index)),
        NameMatch::Several(keys) => {
            let more = keys.len().saturating_sub(MAX_NAMED_SESSIONS);
            let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
            let lines = keys.iter().take(MAX_NAMED_SESSIONS).map(|key| format!("\n  {}", truncate(key, 200)));
            let lines: String = lines.collect();
            Err(bad_usage(format!("{name:?} matches several sessions:{lines}{more}")))
        }
        NameMatch::Nothing(near) if near.is_empty() => {
            Err(Error::NoSuchSession { key: name.to_owned() }.into())
        }
        NameMatch::Nothing(near) => {
            let near: Vec<String> = near.iter().map(|key| truncate(key, 200)).collect();
            Err(bad_usage(format!("no session {name:?}; did you mean {}?", near.join(" or "))))
        }
    }
}

/// The key of the session that `name` means, or `name` itself where no session fits: a new one gets that key.
pub(crate) async fn key_or_new(journal: &dyn Journal, name: &str) -> anyhow::Result<String> {
    if journal.session(name).await?.is_some() {
        return Ok(name.to_owned());
    }
    match match_name(&all_sessions(journal).collect().await?, name) {
        NameMatch::Nothing(_) => Ok(name.to_owned()),
        _ => Ok(find_session(journal, name).await?.key),
    }
}

/// The session with exactly this key or id: for what can't be undone.
pub(crate) async fn find_session_exactly(journal: &dyn Journal, name: &str) -> anyhow::Result<SessionEntry> {
    if let Some(entry) = journal.session(name).await? {
        return Ok(entry);
    }
    if let Ok(id) = name.trim().to_ascii_uppercase().parse::<SessionId>()
        && let Some(entry) = journal.session_with_id(id).await?
    {
        return Ok(entry);
    }
    let key = truncate(&find_session(journal, name).await?.key, 200);
    Err(bad_usage(format!("this can't be undone; give the full key: {key}")))
}

/// The name of a session for a command that needs one: `key`, the value of `-s`, or the key of the session that was last used in the folder,
/// which a note tells.
pub(crate) async fn session_name(globals: &GlobalArgs, key: Option<String>) -> anyhow::Result<String> {
    if key.is_some() || globals.session.is_some() {
        return named_session(globals, key);
    }
    match last_session_of_folder(globals).await? {
        Some(key) => {
            note(format!("session {key}"));
            Ok(key)
        }
        None => Err(bad_usage(NO_SESSION_HERE)),
    }
}

/// The key of the session that was last used in the folder.
pub(crate) async fn last_session_of_folder(globals: &GlobalArgs) -> anyhow::Result<Option<String>> {
    let folder = globals.folder()?;
    let Some(journal) = globals.open_journal().await? else { return Ok(None) };
    let last = last_session(&journal, &folder).await?;
    journal.close().await;
    Ok(last.map(|entry| entry.key))
}

/// `key`, or the value of `-s`: for what is done to no session that the user has not named.
pub(crate) fn named_session(globals: &GlobalArgs, key: Option<String>) -> anyhow::Result<String> {
    match (key, &globals.session) {
        (Some(key), Some(session)) if key != *session => {
            Err(bad_usage(format!("two sessions are named, {key:?} and -s {session:?}: name one")))
        }
        (Some(key), _) => Ok(key),
        (None, Some(session)) => Ok(session.clone()),
        (None, None) => Err(bad_usage("which session? name it; longhaul sessions lists them")),
    }
}

/// The journal. In a home without one no session has this name.
pub(crate) async fn open_journal_with(globals: &GlobalArgs, name: &str) -> anyhow::Result<Arc<dyn Journal>> {
    globals.open_journal().await?.ok_or_else(|| Error::NoSuchSession { key: name.to_owned() }.into())
}

/// The journal with the session that `name` means.
pub(crate) async fn open_session(
    globals: &GlobalArgs,
    name: &str,
) -> anyhow::Result<(Arc<dyn Journal>, SessionEntry)> {
    let journal = open_journal_with(globals, name).await?;
    let entry = find_session(&journal, name).await?;
    Ok((journal, entry))
}

/// Like [`open_session`], but refuses a session in the trash.
pub(crate) async fn open_live_entry(
    globals: &GlobalArgs,
    name: &str,
) -> anyhow::Result<(Arc<dyn Journal>, SessionEntry)> {
    let (journal, entry) = open_session(globals, name).await?;
    refuse_trashed(&journal, &entry.key).await?;
    Ok((journal, entry))
}

/// A client's handle to the session that `name` means. Refuses a session in the trash.
pub(crate) async fn open_live_session(
    globals: &GlobalArgs,
    name: &str,
    redactor: Redactor,
) -> anyhow::Result<Session> {
    let (journal, entry) = open_live_entry(globals, name).await?;
    Ok(Client::new(Arc::new(journal), redactor).session(&entry.key).await?)
}

pub(crate) async fn refuse_trashed(journal: &dyn Journal, key: &str) -> anyhow::Result<()> {
    match journal.session(key).await? {
        Some(entry) if entry.trashed => {
            let restore = format!("longhaul sessions restore {}", quoted(key));
            Err(bad_usage(format!("session {key:?} is in the trash; to restore it: {restore}")))
        }
        _ => Ok(()),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum NameMatch<'a> {
    /// An index into the sessions.
    One(usize),
    /// All keys that fit.
    Several(Vec<&'a str>),
    /// The nearest keys.
    Nothing(Vec<&'a str>),
}

fn match_name<'a>(sessions: &'a [SessionEntry], name: &str) -> NameMatch<'a> {
    let key = |index: &usize| sessions[*index].key.as_str();
    let prefixed: Vec<usize> =
        (0..sessions.len()).filter(|index| sessions[*index].key.starts_with(name)).collect();
    match &prefixed[..] {
        [one] => return NameMatch::One(*one),
        [] => {}
        // A session in the trash counts only where no other fits.
        several => {
            let live: Vec<usize> =
                several.iter().copied().filter(|index| !sessions[*index].trashed).collect();
            return match live[..] {
                [one] => NameMatch::One(one),
                _ => NameMatch::Several(several.iter().map(key).collect()),
            };
        }
    }
    let index_of = |id: SessionId| sessions.iter().position(|entry| entry.id == id);
    match find(sessions.iter().map(|entry| entry.id), name) {
        IdMatch::One(id) => index_of(id).map_or(NameMatch::Nothing(vec![]), NameMatch::One),
        IdMatch::Several(ids) => {
            NameMatch::Several(ids.into_iter().filter_map(index_of).map(|index| key(&index)).collect())
        }
        IdMatch::Nothing => {
            let live = sessions.iter().filter(|entry| !entry.trashed).map(|entry| entry.key.as_str());
            NameMatch::Nothing(nearest(live, name, MIN_SIMILARITY))
        }
    }
}

#[cfg(test)]
#[path = "session_lookup_tests.rs"]
mod tests;
