//! The lifecycle of a session: rename, pin, trash, restore, delete. S3.
//!
//! Each operation is one record in the stream `names`. It is appended with the expected head, and is idempotent.
//! Trashing and deleting need the session's lease, so that no worker runs the session. Renaming and pinning do not.
//!
//! Only a deletion affects more than one stream. It is recorded first, then the streams are removed. So a process
//! that looks in between finds no session, instead of half of one.
//!
//! | a crash | is on disk | the next process |
//! | --- | --- | --- |
//! | before `session_deleted` | the complete session | deletes it from the beginning; the lease is free, because its holder is gone |
//! | after it, before the streams are removed | streams without a key | removes them: [`finish_deletions`] runs before each deletion and with each pruning |
//! | when some streams are removed | the other streams | does the same |
//!
//! A session without its inbox, or an inbox without its session, can never be found by a key.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_protocol::{
    At, NamesRecord, Seq, SessionDeleted, SessionId, SessionPinned, SessionRenamed, SessionRestored,
    SessionTrashed, StreamName,
};

use crate::names::{NameChange, check_key, resolve};
use crate::{Append, Error, Journal, Lease, Result, SessionEntry, records};

/// A deleted session.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct DeletedSession {
    /// Its key, which is free now.
    pub key: String,
    /// Its id.
    pub id: SessionId,
    /// How many records it had.
    pub records: Seq,
}

/// When a session was named and trashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionTimes {
    /// When it first got a key.
    pub named: At,
    /// When it was trashed, if it is in the trash.
    pub trashed: Option<At>,
}

/// Gives a session another key. Fails if another session has that key.
pub async fn rename_session(journal: &dyn Journal, key: &str, to: &str) -> Result<SessionEntry> {
    check_key(to)?;
    loop {
        let head = journal.head(&StreamName::names()).await?.seq;
        let entry = resolve(journal, key).await?;
        match journal.session(to).await? {
            Some(other) if other.id == entry.id => return Ok(entry),
            Some(_) => return Err(Error::SessionExists { key: to.to_owned() }),
            None => {}
        }
        let renamed = SessionRenamed { id: entry.id, from: key.to_owned(), to: to.to_owned() };
        if append_name(journal, head, NamesRecord::Renamed(renamed)).await? {
            return Ok(SessionEntry { key: to.to_owned(), ..entry });
        }
    }
}

/// Keeps retention from removing a session.
pub async fn pin_session(journal: &dyn Journal, key: &str) -> Result<SessionEntry> {
    set_pinned(journal, key, true).await
}

/// Makes a session subject to retention again.
pub async fn unpin_session(journal: &dyn Journal, key: &str) -> Result<SessionEntry> {
    set_pinned(journal, key, false).await
}

async fn set_pinned(journal: &dyn Journal, key: &str, pinned: bool) -> Result<SessionEntry> {
    loop {
        let head = journal.head(&StreamName::names()).await?.seq;
        let entry = resolve(journal, key).await?;
        if entry.pinned == pinned {
            return Ok(entry);
        }
        let record = NamesRecord::Pinned(SessionPinned { id: entry.id, pinned });
        if append_name(journal, head, record).await? {
            return Ok(SessionEntry { pinned, ..entry });
        }
    }
}

/// Moves a session to the trash. It can be restored until it is deleted.
pub async fn trash_session(journal: &dyn Journal, key: &str) -> Result<SessionEntry> {
    let id = resolve(journal, key).await?.id;
    let lease = acquire_lease(journal, key, &StreamName::session(id)).await?;
    let trashed = set_trashed(journal, id, key, true).await;
    journal.release_lease(&lease).await?;
    trashed
}

/// Restores a session from the trash.
pub async fn restore_session(journal: &dyn Journal, key: &str) -> Result<SessionEntry> {
    let id = resolve(journal, key).await?.id;
    set_trashed(journal, id, key, false).await
}

async fn set_trashed(journal: &dyn Journal, id: SessionId, key: &str, trashed: bool) -> Result<SessionEntry> {
    loop {
        let head = journal.head(&StreamName::names()).await?.seq;
        let found = journal.session_with_id(id).await?;
        let entry = found.ok_or_else(|| Error::NoSuchSession { key: key.to_owned() })?;
        if entry.trashed == trashed {
            return Ok(entry);
        }
        let record = if trashed {
            NamesRecord::Trashed(SessionTrashed { id })
        } else {
            NamesRecord::Restored(SessionRestored { id })
        };
        if append_name(journal, head, record).await? {
            return Ok(SessionEntry { trashed, ..entry });
        }
    }
}

/// Deletes a session for good, in the trash or not: its records, its inbox, its extracts, the list of its subagents, and the blobs that
/// only these refer to. The subagents themselves stay.
pub async fn delete_session(journal: &dyn Journal, key: &str) -> Result<DeletedSession> {
    finish_deletions(journal).await?;
    let entry = resolve(journal, key).await?;
    let leases = SessionLeases::acquire(journal, key, entry.id).await?;
    let deleted = async {
        loop {
            let head = journal.head(&StreamName::names()).await?.seq;
            // Another process may have deleted it before this one got the lease.
            if journal.session_with_id(entry.id).await?.is_none() {
                return Err(Error::NoSuchSession { key: key.to_owned() });
            }
            let record = NamesRecord::Deleted(SessionDeleted { id: entry.id });
            if append_name(journal, head, record).await? {
                return Ok(());
            }
        }
    };
    if let Err(error) = deleted.await {
        leases.release(journal).await?;
        return Err(error);
    }
    leases.remove_streams(journal, entry.id).await?;
    Ok(DeletedSession { key: entry.key, id: entry.id, records: entry.head.seq })
}

/// Finishes deletions that a crash interrupted: removes the streams of deleted sessions, and returns these sessions.
/// Skips a session whose lease is held, because an import may be bringing it back.
pub async fn finish_deletions(journal: &dyn Journal) -> Result<Vec<SessionId>> {
    let streams = journal.streams().await?;
    let left: BTreeSet<SessionId> = streams.iter().filter_map(StreamName::session_id).collect();
    let mut deleted = BTreeSet::new();
    each_name(journal, |_, change| match change {
        NameChange::Forget { id } => drop(deleted.insert(id)),
        NameChange::Bind { id, .. } => drop(deleted.remove(&id)),
        _ => {}
    })
    .await?;
    let mut finished = Vec::new();
    for id in left.intersection(&deleted) {
        let leases = match SessionLeases::acquire(journal, "", *id).await {
            Ok(leases) => leases,
            Err(Error::InUseBy { .. }) => continue,
            Err(error) => return Err(error),
        };
        // Checked under the lease: an import names its session before it releases the lease.
        if journal.session_with_id(*id).await?.is_some() {
            leases.release(journal).await?;
            continue;
        }
        leases.remove_streams(journal, *id).await?;
        finished.push(*id);
    }
    Ok(finished)
}

/// When each session was named and trashed. This reads the whole stream `names`.
pub async fn session_times(journal: &dyn Journal) -> Result<BTreeMap<SessionId, SessionTimes>> {
    let mut times: BTreeMap<SessionId, SessionTimes> = BTreeMap::new();
    each_name(journal, |at, change| match change {
        NameChange::Bind { id, .. } => {
            times.entry(id).or_insert(SessionTimes { named: at, trashed: None });
        }
        NameChange::Trash { id } => {
            if let Some(times) = times.get_mut(&id) {
                times.trashed.get_or_insert(at);
            }
        }
        NameChange::Restore { id } => {
            if let Some(times) = times.get_mut(&id) {
                times.trashed = None;
            }
        }
        NameChange::Forget { id } => drop(times.remove(&id)),
        NameChange::Rename { .. } | NameChange::Pin { .. } | NameChange::Place { .. } => {}
    })
    .await?;
    Ok(times)
}

async fn each_name(journal: &dyn Journal, mut act: impl FnMut(At, NameChange)) -> Result<()> {
    let mut names = records(journal, &StreamName::names(), 1);
    while let Some(record) = names.next().await? {
        if let Some(change) = NameChange::from_record(&record) {
            act(record.at, change);
        }
    }
    Ok(())
}

/// Appends to `names`; false if another process has moved its head.
async fn append_name(journal: &dyn Journal, head: Seq, record: NamesRecord) -> Result<bool> {
    let append = Append::to(&StreamName::names()).expecting(head).record(record.encode());
    match journal.append(append).await {
        Ok(_) => Ok(true),
        Err(Error::Conflict { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Acquires the lease on a stream of a session; the error names the session and the holder.
async fn acquire_lease(journal: &dyn Journal, key: &str, stream: &StreamName) -> Result<Lease> {
    journal.acquire_lease(stream).await.map_err(|error| match error {
        Error::Held { holder, .. } => Error::InUseBy { key: key.to_owned(), holder },
        other => other,
    })
}

/// The leases on the streams of a session that have one.
struct SessionLeases {
    session: Lease,
    extract: Lease,
}

impl SessionLeases {
    async fn acquire(journal: &dyn Journal, key: &str, id: SessionId) -> Result<Self> {
        let session = acquire_lease(journal, key, &StreamName::session(id)).await?;
        match acquire_lease(journal, key, &StreamName::extract(id)).await {
            Ok(extract) => Ok(Self { session, extract }),
            Err(error) => {
                journal.release_lease(&session).await?;
                Err(error)
            }
        }
    }

    async fn release(self, journal: &dyn Journal) -> Result<()> {
        journal.release_lease(&self.extract).await?;
        journal.release_lease(&self.session).await
    }

    /// Removes the streams. The session's own comes last, because its lease ends with it.
    async fn remove_streams(self, journal: &dyn Journal, id: SessionId) -> Result<()> {
        journal.remove(&StreamName::inbox(id), None).await?;
        journal.remove(&StreamName::tree(id), None).await?;
        journal.remove(&self.extract.stream, Some(&self.extract)).await?;
        journal.remove(&self.session.stream, Some(&self.session)).await
    }
}
