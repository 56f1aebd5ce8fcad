//! Which key leads to which session: a fold of the stream `names`.

use std::collections::{BTreeMap, HashSet};

use longhaul_protocol::{
    NamesRecord, Record, SessionDeleted, SessionId, SessionNamed, SessionPinned, SessionRenamed,
    SessionRestored, SessionTrashed, StreamName,
};

use crate::{Append, Error, Journal, Result, SessionEntry};

/// What a record of the stream `names` changes in an index of keys. An engine keeps such an index, so that
/// finding one session does not cost a look at all of them; it can be made again from the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NameChange {
    /// The key leads to the session, if it leads nowhere yet.
    Bind { key: String, id: SessionId },
    /// The session has this key now.
    Rename { id: SessionId, key: String },
    /// The session was put away.
    Trash { id: SessionId },
    /// The session was brought back.
    Restore { id: SessionId },
    /// The session stays whatever retention says, or not any more.
    Pin { id: SessionId, pinned: bool },
    /// The session is gone.
    Forget { id: SessionId },
}

impl NameChange {
    /// What the record changes; nothing, if it is of a kind that this version doesn't know or its body is gone.
    pub(crate) fn of(record: &Record) -> Option<Self> {
        match NamesRecord::decode(record).ok()? {
            NamesRecord::Named(SessionNamed { key, id }) => Some(Self::Bind { key, id }),
            NamesRecord::Renamed(SessionRenamed { id, to, .. }) => Some(Self::Rename { id, key: to }),
            NamesRecord::Trashed(SessionTrashed { id }) => Some(Self::Trash { id }),
            NamesRecord::Restored(SessionRestored { id }) => Some(Self::Restore { id }),
            NamesRecord::Pinned(SessionPinned { id, pinned }) => Some(Self::Pin { id, pinned }),
            NamesRecord::Deleted(SessionDeleted { id }) => Some(Self::Forget { id }),
            NamesRecord::Unknown { .. } => None,
        }
    }
}

/// What the stream `names` says of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) key: String,
    /// Whether it was put away.
    pub(crate) trashed: bool,
    /// Whether it stays whatever retention says.
    pub(crate) pinned: bool,
}

/// What the stream `names` says, folded: an engine's index of keys must be the same.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Sessions by id.
    pub(crate) sessions: BTreeMap<String, Named>,
    taken: HashSet<String>,
}

impl Names {
    /// A key that leads somewhere keeps leading there.
    pub(crate) fn apply(&mut self, change: NameChange) {
        match change {
            NameChange::Bind { key, id } => {
                let id = id.to_string();
                if !self.sessions.contains_key(&id) && self.taken.insert(key.clone()) {
                    self.sessions.insert(id, Named { key, trashed: false, pinned: false });
                }
            }
            NameChange::Rename { id, key } => {
                if let Some(session) = self.sessions.get_mut(&id.to_string())
                    && self.taken.insert(key.clone())
                {
                    self.taken.remove(&session.key);
                    session.key = key;
                }
            }
            NameChange::Trash { id } => self.change(id, |session| session.trashed = true),
            NameChange::Restore { id } => self.change(id, |session| session.trashed = false),
            NameChange::Pin { id, pinned } => self.change(id, |session| session.pinned = pinned),
            NameChange::Forget { id } => {
                if let Some(session) = self.sessions.remove(&id.to_string()) {
                    self.taken.remove(&session.key);
                }
            }
        }
    }

    fn change(&mut self, id: SessionId, act: impl FnOnce(&mut Named)) {
        if let Some(session) = self.sessions.get_mut(&id.to_string()) {
            act(session);
        }
    }
}

/// The session that a key leads to.
pub async fn resolve(journal: &dyn Journal, key: &str) -> Result<SessionEntry> {
    journal.session(key).await?.ok_or_else(|| Error::NoSuchSession { key: key.to_owned() })
}

/// The longest key.
const LONGEST_KEY: usize = 512;

/// The session that a key leads to; a new one if it leads nowhere.
pub async fn name_session(journal: &dyn Journal, key: &str) -> Result<SessionId> {
    check_key(key)?;
    bind(journal, key, SessionId::generate()).await
}

/// Whether a text can be the key of a session.
pub(crate) fn check_key(key: &str) -> Result<()> {
    let bad = |reason| Err(Error::BadKey { key: key.to_owned(), reason });
    if key.trim().is_empty() {
        return bad("it is empty");
    }
    if key.chars().any(char::is_control) {
        return bad("it has control characters, which nobody can type");
    }
    if key.len() > LONGEST_KEY {
        return bad("it is longer than 512 bytes");
    }
    Ok(())
}

/// Makes a key lead to a session, unless it leads somewhere already; returns where it leads. Two processes that first
/// use a key at the same time agree on one session, because the name is appended with the expected head.
pub(crate) async fn bind(journal: &dyn Journal, key: &str, id: SessionId) -> Result<SessionId> {
    let names = StreamName::names();
    loop {
        let head = journal.head(&names).await?;
        if let Some(entry) = journal.session(key).await? {
            return Ok(entry.id);
        }
        let record = NamesRecord::Named(SessionNamed { key: key.to_owned(), id }).encode();
        match journal.append(Append::to(&names).expecting(head.seq).record(record)).await {
            Ok(_) => return Ok(id),
            Err(Error::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
    }
}
