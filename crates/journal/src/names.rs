//! Keys of sessions: the stream `names`, folded.

use std::collections::{BTreeMap, HashSet};

use longhaul_protocol::{
    NamesRecord, NewRecord, Record, SessionDeleted, SessionId, SessionNamed, SessionPinned, SessionPlaced,
    SessionRenamed, SessionRestored, SessionTrashed, StreamName, is_invisible, is_misleading,
};

use crate::{Append, Error, Journal, Result, SessionEntry};

/// What a record of the stream `names` changes in an index of keys. An engine keeps such an index, so that it can
/// find a session without reading all names. The index can be rebuilt from the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameChange {
    /// Gives the key to the session, unless it is taken.
    Bind {
        key: String,
        id: SessionId,
    },
    Rename {
        id: SessionId,
        key: String,
    },
    Trash {
        id: SessionId,
    },
    Restore {
        id: SessionId,
    },
    Pin {
        id: SessionId,
        pinned: bool,
    },
    Forget {
        id: SessionId,
    },
    /// Binds the session to a node, or to none.
    Place {
        id: SessionId,
        node: Option<String>,
    },
}

impl NameChange {
    /// What the record changes; `None` if this version doesn't know its kind, or its body is gone.
    pub fn from_record(record: &Record) -> Option<Self> {
        match NamesRecord::decode(record).ok()? {
            NamesRecord::Named(SessionNamed { key, id }) => Some(Self::Bind { key, id }),
            NamesRecord::Renamed(SessionRenamed { id, to, .. }) => Some(Self::Rename { id, key: to }),
            NamesRecord::Trashed(SessionTrashed { id }) => Some(Self::Trash { id }),
            NamesRecord::Restored(SessionRestored { id }) => Some(Self::Restore { id }),
            NamesRecord::Pinned(SessionPinned { id, pinned }) => Some(Self::Pin { id, pinned }),
            NamesRecord::Deleted(SessionDeleted { id }) => Some(Self::Forget { id }),
            NamesRecord::Placed(SessionPlaced { id, node }) => Some(Self::Place { id, node }),
            NamesRecord::ForkRequested(_) | NamesRecord::Unknown { .. } => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSession {
    pub key: String,
    pub trashed: bool,
    pub pinned: bool,
}

/// The stream `names`, folded. An engine's index of keys must be the same.
#[derive(Debug, Default)]
pub struct Names {
    /// Sessions by id.
    pub sessions: BTreeMap<String, NamedSession>,
    taken: HashSet<String>,
}

impl Names {
    /// Applies one change. If the key is taken, its session keeps it.
    pub fn apply(&mut self, change: NameChange) {
        match change {
            NameChange::Bind { key, id } => {
                let id = id.to_string();
                if !self.sessions.contains_key(&id) && self.taken.insert(key.clone()) {
                    self.sessions.insert(id, NamedSession { key, trashed: false, pinned: false });
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
            // Where a session may run is no part of the index: only an engine with several nodes asks.
            NameChange::Place { .. } => {}
        }
    }

    fn change(&mut self, id: SessionId, act: impl FnOnce(&mut NamedSession)) {
        if let Some(session) = self.sessions.get_mut(&id.to_string()) {
            act(session);
        }
    }
}

/// The session with this key. Fails if there is none.
pub async fn resolve(journal: &dyn Journal, key: &str) -> Result<SessionEntry> {
    journal.session(key).await?.ok_or_else(|| Error::NoSuchSession { key: key.to_owned() })
}

const MAX_KEY_BYTES: usize = 512;

/// The session with this key. Creates one if there is none.
pub async fn name_session(journal: &dyn Journal, key: &str) -> Result<SessionId> {
    check_unless_known(journal, key).await?;
    bind_key(journal, key, SessionId::generate()).await
}

/// Like [`name_session`], and appends a record with the name, or alone if there is such a session. Fails with
/// [`Error::Duplicate`] if the record has a key that was used before; then nothing is appended.
pub async fn name_session_with(
    journal: &dyn Journal,
    key: &str,
    record: impl Fn(SessionId) -> NewRecord,
) -> Result<SessionId> {
    check_unless_known(journal, key).await?;
    let names = StreamName::names();
    loop {
        let head = journal.head(&names).await?;
        let append = Append::to(&names).expecting(head.seq);
        let (id, append) = match journal.session(key).await? {
            Some(entry) => (entry.id, append),
            None => {
                let id = SessionId::generate();
                let named = NamesRecord::Named(SessionNamed { key: key.to_owned(), id });
                (id, append.record(named.encode()))
            }
        };
        match journal.append(append.record(record(id))).await {
            Ok(_) => return Ok(id),
            Err(Error::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Checks the key of a session, unless there is a session with it: older versions made keys that this one refuses.
async fn check_unless_known(journal: &dyn Journal, key: &str) -> Result<()> {
    match check_key(key) {
        Err(_) if journal.session(key).await?.is_some() => Ok(()),
        checked => checked,
    }
}

/// Checks that a text can be the key of a new session. It is shown in lists and questions and is a part of addresses, so it must be what it
/// looks like.
pub(crate) fn check_key(key: &str) -> Result<()> {
    let bad = |reason| Err(Error::BadKey { key: key.to_owned(), reason });
    if key.trim().is_empty() {
        return bad("it is empty");
    }
    if key.chars().any(char::is_control) {
        return bad("it contains control characters");
    }
    if key.chars().any(|letter| is_misleading(letter) || is_invisible(letter)) {
        return bad("it contains characters that are invisible or change the direction of writing");
    }
    if matches!(key, "." | "..") {
        return bad("browsers take it for a folder in an address");
    }
    if key.len() > MAX_KEY_BYTES {
        return bad("it is longer than 512 bytes");
    }
    Ok(())
}

/// Binds a key to the session with this id, unless it is. Fails if another session has the key.
pub async fn bind_session_key(journal: &dyn Journal, key: &str, id: SessionId) -> Result<()> {
    check_key(key)?;
    match bind_key(journal, key, id).await? {
        bound if bound == id => Ok(()),
        _ => Err(Error::SessionExists { key: key.to_owned() }),
    }
}

/// Gives a key to a session unless it is taken, and returns the session that has it. If two processes use a new key
/// at the same time, they agree on one session, because the name is appended with the expected head.
pub(crate) async fn bind_key(journal: &dyn Journal, key: &str, id: SessionId) -> Result<SessionId> {
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
