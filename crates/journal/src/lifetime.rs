//! What becomes of a session after it was made: another key, a pin, the trash and back, and its end. S3.
//!
//! Each is one record in the stream `names`, appended with the expected head; what is asked for twice is done once. Putting a
//! session away and deleting it need its lease, so nobody is at work in it; a key and a pin are nobody's business but that of
//! people who look for it.
//!
//! Deleting is the only one that touches more than one stream. First it is recorded, then the streams go: whoever comes in between
//! finds no session, rather than one with half of its records.
//!
//! | killed | what is there | what the next does |
//! | --- | --- | --- |
//! | before `session_deleted` | the session, whole | the next deletion begins anew; the lease is free, since its holder is gone |
//! | after it, before the streams went | streams that no key leads to | [`finish_deletions`] removes them, before the next deletion and with every pruning |
//! | when some streams went | the rest of them | the same |
//!
//! It must never happen that a session without its inbox, or an inbox without its session, can be found by a key.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_protocol::{
    At, NamesRecord, Seq, SessionDeleted, SessionId, SessionPinned, SessionRenamed, SessionRestored,
    SessionTrashed, StreamName,
};

use crate::names::{NameChange, check_key, resolve};
use crate::{Append, Error, Journal, Lease, Result, SessionEntry, records};

/// What a deletion took away.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Deleted {
    /// The key, which is free now.
    pub key: String,
    /// The session that was.
    pub id: SessionId,
    /// How many records it had.
    pub records: Seq,
}

/// When things became of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// When a key first led to it.
    pub named: At,
    /// When it was put away, if it is.
    pub trashed: Option<At>,
}

/// Gives a session another key. A key that leads to another session is an error that names it.
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
        if say(journal, head, NamesRecord::Renamed(renamed)).await? {
            return Ok(SessionEntry { key: to.to_owned(), ..entry });
        }
    }
}

/// Has a session stay, whatever retention says.
pub async fn pin_session(journal: &dyn Journal, key: &str) -> Result<SessionEntry> {
    set_pinned(journal, key, true).await
}

/// Has retention decide about a session again.
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
        if say(journal, head, record).await? {
            return Ok(SessionEntry { pinned, ..entry });
        }
    }
}

/// Puts a session away. It can be brought back until it is deleted.
pub async fn trash_session(journal: &dyn Journal, key: &str) -> Result<SessionEntry> {
    let id = resolve(journal, key).await?.id;
    let lease = lease_of(journal, key, &StreamName::session(id)).await?;
    let trashed = set_trashed(journal, id, key, true).await;
    journal.release(&lease).await?;
    trashed
}

/// Brings a session back that was put away.
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
        if say(journal, head, record).await? {
            return Ok(SessionEntry { trashed, ..entry });
        }
    }
}

/// Deletes a session for good, in the trash or not: its records, its inbox, its extracts, and the blobs that only it refers to.
pub async fn delete_session(journal: &dyn Journal, key: &str) -> Result<Deleted> {
    finish_deletions(journal).await?;
    let entry = resolve(journal, key).await?;
    let leases = Leases::of(journal, key, entry.id).await?;
    let deleted = async {
        loop {
            let head = journal.head(&StreamName::names()).await?.seq;
            // Somebody else may have deleted it before the lease was ours.
            if journal.session_with_id(entry.id).await?.is_none() {
                return Err(Error::NoSuchSession { key: key.to_owned() });
            }
            let record = NamesRecord::Deleted(SessionDeleted { id: entry.id });
            if say(journal, head, record).await? {
                return Ok(());
            }
        }
    };
    if let Err(error) = deleted.await {
        leases.release(journal).await?;
        return Err(error);
    }
    leases.remove_all(journal, entry.id).await?;
    Ok(Deleted { key: entry.key, id: entry.id, records: entry.head.seq })
}

/// Removes the streams of sessions that were deleted, where whoever did it was killed before the streams went. Returns whose
/// they were. One that somebody holds is left for the next time: it may be coming back by an import.
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
        let leases = match Leases::of(journal, "", *id).await {
            Ok(leases) => leases,
            Err(Error::InUseBy { .. }) => continue,
            Err(error) => return Err(error),
        };
        // Under the lease: an import names what it brought before it lets go.
        if journal.session_with_id(*id).await?.is_some() {
            leases.release(journal).await?;
            continue;
        }
        leases.remove_all(journal, *id).await?;
        finished.push(*id);
    }
    Ok(finished)
}

/// When the sessions that there are were named, and put away. It costs a look at every record of `names`.
pub async fn session_times(journal: &dyn Journal) -> Result<BTreeMap<SessionId, Times>> {
    let mut times: BTreeMap<SessionId, Times> = BTreeMap::new();
    each_name(journal, |at, change| match change {
        NameChange::Bind { id, .. } => {
            times.entry(id).or_insert(Times { named: at, trashed: None });
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
        NameChange::Rename { .. } | NameChange::Pin { .. } => {}
    })
    .await?;
    Ok(times)
}

async fn each_name(journal: &dyn Journal, mut act: impl FnMut(At, NameChange)) -> Result<()> {
    let mut names = records(journal, &StreamName::names(), 1);
    while let Some(record) = names.next().await? {
        if let Some(change) = NameChange::of(&record) {
            act(record.at, change);
        }
    }
    Ok(())
}

/// Appends to `names`, if its head is still here; whether it was.
async fn say(journal: &dyn Journal, head: Seq, record: NamesRecord) -> Result<bool> {
    let append = Append::to(&StreamName::names()).expecting(head).record(record.encode());
    match journal.append(append).await {
        Ok(_) => Ok(true),
        Err(Error::Conflict { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The lease on a stream of a session, or who has it.
async fn lease_of(journal: &dyn Journal, key: &str, stream: &StreamName) -> Result<Lease> {
    journal.acquire(stream).await.map_err(|error| match error {
        Error::Held { holder, .. } => Error::InUseBy { key: key.to_owned(), holder },
        other => other,
    })
}

/// The leases on what of a session has writers of its own.
struct Leases {
    session: Lease,
    extract: Lease,
}

impl Leases {
    async fn of(journal: &dyn Journal, key: &str, id: SessionId) -> Result<Self> {
        let session = lease_of(journal, key, &StreamName::session(id)).await?;
        match lease_of(journal, key, &StreamName::extract(id)).await {
            Ok(extract) => Ok(Self { session, extract }),
            Err(error) => {
                journal.release(&session).await?;
                Err(error)
            }
        }
    }

    async fn release(self, journal: &dyn Journal) -> Result<()> {
        journal.release(&self.extract).await?;
        journal.release(&self.session).await
    }

    /// Removes the streams. The session's own comes last, and its lease goes with it: until then nobody else is at it.
    async fn remove_all(self, journal: &dyn Journal, id: SessionId) -> Result<()> {
        journal.remove(&StreamName::inbox(id), None).await?;
        journal.remove(&self.extract.stream, Some(&self.extract)).await?;
        journal.remove(&self.session.stream, Some(&self.session)).await
    }
}
