//! Which session somebody means.

use longhaul_journal::{Error, Journal, SessionEntry, SqliteJournal};
use longhaul_protocol::SessionId;

use crate::BadUsage;
use crate::args::GlobalArgs;
use crate::output::shortened;
use crate::short_id::{IdMatch, find};
use crate::suggested_command::quoted;

/// Keys that are less alike than this were hardly meant.
const MIN_SIMILARITY: f64 = 0.82;

/// So many sessions are named where several fit.
const MAX_NAMED_SESSIONS: usize = 10;

/// All sessions, by their keys.
pub(crate) async fn all_sessions(journal: &dyn Journal) -> Result<Vec<SessionEntry>, Error> {
    let mut sessions: Vec<SessionEntry> = Vec::new();
    loop {
        let after = sessions.last().map(|entry| entry.key.as_str());
        let page = journal.sessions(after, 1_000).await?;
        if page.is_empty() {
            return Ok(sessions);
        }
        sessions.extend(page);
    }
}

/// The session that a name means: the one with this key; else the only one whose key begins so, or with this id, or whose id begins or
/// ends so. Where several fit, or none does, the error says which there are.
pub(crate) async fn find_session(journal: &dyn Journal, name: &str) -> anyhow::Result<SessionEntry> {
    if let Some(entry) = journal.session(name).await? {
        return Ok(entry);
    }
    // Every key begins with nothing, and a variable of a script that was never set means none of them.
    if name.trim().is_empty() {
        return Err(
            BadUsage("which session? Its name is empty; longhaul sessions lists them".to_owned()).into()
        );
    }
    let mut sessions = all_sessions(journal).await?;
    match match_name(&sessions, name) {
        NameMatch::One(index) => Ok(sessions.swap_remove(index)),
        NameMatch::Several(keys) => {
            let more = keys.len().saturating_sub(MAX_NAMED_SESSIONS);
            let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
            let lines =
                keys.iter().take(MAX_NAMED_SESSIONS).map(|key| format!("\n  {}", shortened(key, 200)));
            let lines: String = lines.collect();
            Err(BadUsage(format!("{name:?} fits several sessions:{lines}{more}")).into())
        }
        NameMatch::Nothing(near) if near.is_empty() => {
            Err(Error::NoSuchSession { key: name.to_owned() }.into())
        }
        NameMatch::Nothing(near) => {
            let near: Vec<String> = near.iter().map(|key| shortened(key, 200)).collect();
            Err(BadUsage(format!("there is no session {name:?}; did you mean {}?", near.join(" or "))).into())
        }
    }
}

/// The key that a name means where a session may also begin with it: that of the one that is meant, or the name itself.
pub(crate) async fn key_or_new(journal: &dyn Journal, name: &str) -> anyhow::Result<String> {
    if journal.session(name).await?.is_some() {
        return Ok(name.to_owned());
    }
    match match_name(&all_sessions(journal).await?, name) {
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
    match find_session(journal, name).await {
        Ok(entry) => {
            let key = shortened(&entry.key, 200);
            Err(BadUsage(format!("this can't be undone, so name the session in full: {key}")).into())
        }
        Err(error) => Err(error),
    }
}

/// The journal with the session that a name means.
pub(crate) async fn open_session(
    globals: &GlobalArgs,
    name: &str,
) -> anyhow::Result<(SqliteJournal, SessionEntry)> {
    let Some(journal) = globals.open_journal().await? else {
        return Err(Error::NoSuchSession { key: name.to_owned() }.into());
    };
    let entry = find_session(&journal, name).await?;
    Ok((journal, entry))
}

pub(crate) async fn refuse_trashed(journal: &dyn Journal, key: &str) -> anyhow::Result<()> {
    match journal.session(key).await? {
        Some(entry) if entry.trashed => {
            let restore = format!("longhaul sessions restore {}", quoted(key));
            Err(BadUsage(format!("the session {key:?} was put into the trash; to bring it back: {restore}"))
                .into())
        }
        _ => Ok(()),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum NameMatch<'a> {
    /// The one at this globals.
    One(usize),
    /// These keys fit.
    Several(Vec<&'a str>),
    /// None does; these keys are the nearest.
    Nothing(Vec<&'a str>),
}

fn match_name<'a>(sessions: &'a [SessionEntry], name: &str) -> NameMatch<'a> {
    let at = |index: &usize| sessions[*index].key.as_str();
    let begin: Vec<usize> =
        (0..sessions.len()).filter(|index| sessions[*index].key.starts_with(name)).collect();
    match &begin[..] {
        [one] => return NameMatch::One(*one),
        [] => {}
        // What was put away is hardly meant where something else fits.
        several => {
            let here: Vec<usize> =
                several.iter().copied().filter(|index| !sessions[*index].trashed).collect();
            return match here[..] {
                [one] => NameMatch::One(one),
                _ => NameMatch::Several(several.iter().map(at).collect()),
            };
        }
    }
    let place = |id: SessionId| sessions.iter().position(|entry| entry.id == id);
    match find(sessions.iter().map(|entry| entry.id), name) {
        IdMatch::One(id) => place(id).map_or(NameMatch::Nothing(vec![]), NameMatch::One),
        IdMatch::Several(ids) => {
            NameMatch::Several(ids.into_iter().filter_map(place).map(|index| at(&index)).collect())
        }
        IdMatch::Nothing => NameMatch::Nothing(nearest(sessions, name)),
    }
}

/// The keys that somebody may have meant, the nearest first; at most three.
fn nearest<'a>(sessions: &'a [SessionEntry], name: &str) -> Vec<&'a str> {
    let mut near: Vec<(f64, &str)> = sessions
        .iter()
        .filter(|entry| !entry.trashed)
        .map(|entry| (strsim::jaro_winkler(&entry.key, name), entry.key.as_str()))
        .filter(|(likeness, _)| *likeness > MIN_SIMILARITY)
        .collect();
    near.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    near.into_iter().take(3).map(|(_, key)| key).collect()
}

#[cfg(test)]
#[path = "session_lookup_tests.rs"]
mod tests;
