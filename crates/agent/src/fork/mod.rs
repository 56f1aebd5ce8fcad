//! S4: forks. A fork is a new session that begins with the past of another, up to one of its records.
//!
//! The new session gets the records of the epoch that contains the fork point, with a new hash chain. So it does not
//! depend on its parent: blobs are shared by reference, and are removed with the last session that refers to them.
//! The fork is at rest and has an empty inbox. Everything that was open at the fork point is closed in the copy, and
//! only there. Inputs that the model had not seen and running commands stay with the parent. So does its cost: the
//! fork does not count it again.
//!
//! | killed | on disk | next |
//! | --- | --- | --- |
//! | before the name | nothing new | the fork starts over |
//! | after the name, before the records | a key of a session without records, as for any new session | a fork to the same key uses it; retention removes it after a day |
//! | after the records, which come in one append | the complete fork | memory extracts the copied past again |
//! | after the note for memory | everything | nothing |
//!
//! Never: only a part of the records, or any change of the parent.

mod copy;
mod request;

use longhaul_journal::{
    Append, Error as JournalError, Journal, Page, SessionEntry, begin_with_copies, name_session,
    newest_import, place_session, resolve,
};
use longhaul_memory::extracted_through;
use longhaul_protocol::{
    Body, EpochReason, EpochStarted, ExtractRecord, Extracted, Origin, Record, Seq, SessionCreated,
    SessionId, SessionRecord, StreamName,
};

use crate::replay::{load, replay_start};
use crate::{Error, Result};

use copy::{Parent, copies};
pub use request::{ForkRequestKey, fork_session_once};

const ONE: Page = Page { records: 1, bytes: 0 };

/// A session that was forked.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Forked {
    /// Its key.
    pub key: String,
    /// Its id.
    pub id: SessionId,
    /// Where it was forked from.
    pub origin: Origin,
    /// How many records it begins with.
    pub records: Seq,
    /// Inputs that the model had not seen at the fork point. They are not in the fork, but the user may send them
    /// again.
    pub unsent: Vec<String>,
}

/// Forks a session at a record. Without one, at its end, or at the end of the previous turn if a turn is open.
pub async fn fork_session(
    journal: &dyn Journal,
    key: &str,
    at: Option<Seq>,
    new_key: &str,
) -> Result<Forked> {
    let plan = ForkPlan::read(journal, resolve(journal, key).await?, at).await?;
    check_key_is_free(journal, new_key).await?;
    let id = name_session(journal, new_key).await?;
    plan.write(journal, id, new_key).await
}

/// What a fork copies from its parent.
struct ForkPlan {
    parent: SessionEntry,
    point: Seq,
    /// The parent's first record.
    first: Option<Record>,
    records: Vec<Record>,
    import: Option<Record>,
}

impl ForkPlan {
    async fn read(journal: &dyn Journal, parent: SessionEntry, at: Option<Seq>) -> Result<Self> {
        let stream = StreamName::session(parent.id);
        let point = match at {
            Some(at) => at,
            None => end_of_last_turn(journal, &parent.key, parent.id, parent.head.seq).await?,
        };
        check_fork_point(journal, &parent.key, &stream, point, parent.head.seq).await?;
        let records = epoch_up_to(journal, &stream, point).await?;
        // A compaction is one append of several records, so the point moves to the last of them.
        let point = records.last().map_or(point, |last| last.seq);
        let first = journal.read(&stream, 1, ONE).await?.pop();
        let import = newest_import(journal, parent.id, Seq::MAX).await?;
        Ok(Self { parent, point, first, records, import })
    }

    /// Writes the records of the fork in one append. Fails if the session has records or is held.
    async fn write(&self, journal: &dyn Journal, id: SessionId, key: &str) -> Result<Forked> {
        let origin = Origin { session: self.parent.id, seq: self.point };
        let created = SessionCreated {
            id,
            key: key.to_owned(),
            work_dir: None,
            origin: Some(origin.clone()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            parent: None,
        };
        let unreadable = |reason| Error::Unreadable { key: self.parent.key.clone(), reason };
        let parts =
            Parent { first: self.first.as_ref(), records: &self.records, import: self.import.as_ref() };
        let copied = copies(&parts, created).map_err(unreadable)?;

        let exists = || JournalError::SessionExists { key: key.to_owned() };
        let lease = match journal.acquire_lease(&StreamName::session(id)).await {
            Err(JournalError::Held { .. }) => return Err(exists().into()),
            lease => lease?,
        };
        // A fork works in the same folder, so it is bound to the same node.
        if let Some(cluster) = journal.cluster()
            && let Some(Some(node)) = cluster.placement(self.parent.id).await?
        {
            place_session(journal, cluster, id, &node).await?;
        }
        let begun = begin_with_copies(journal, &lease, copied.records).await;
        journal.release_lease(&lease).await?;
        let head = begun.map_err(|error| match error {
            JournalError::Conflict { .. } => exists(),
            other => other,
        })?;
        let extracted = extracted_through(journal, self.parent.id).await?.min(self.point);
        skip_extracted(journal, self.parent.id, id, copied.places.new_seq(extracted)).await?;
        Ok(Forked { key: key.to_owned(), id, origin, records: head.seq, unsent: copied.unsent })
    }
}

/// The default fork point.
async fn end_of_last_turn(journal: &dyn Journal, key: &str, id: SessionId, head: Seq) -> Result<Seq> {
    if load(journal, key, id).await?.turn.is_none() {
        return Ok(head);
    }
    let stream = StreamName::session(id);
    let mut first_turn = head;
    let mut before = head + 1;
    while before > 1 {
        let from = before.saturating_sub(256).max(1);
        let page = journal.read(&stream, from, Page { records: 256, bytes: usize::MAX }).await?;
        for record in page.iter().rev().filter(|record| record.seq < before) {
            match record.kind.as_str() {
                "turn_ended" => return Ok(record.seq),
                "turn_started" => first_turn = record.seq,
                _ => {}
            }
        }
        before = from;
    }
    // The first turn is open.
    Ok(first_turn.saturating_sub(1).max(1))
}

async fn check_fork_point(
    journal: &dyn Journal,
    key: &str,
    stream: &StreamName,
    seq: Seq,
    head: Seq,
) -> Result<()> {
    let no = |reason: String| Err(Error::NoSuchPoint { key: key.to_owned(), seq, reason, head });
    if seq == 0 || seq > head {
        return no("no such entry".to_owned());
    }
    match journal.read(stream, seq, ONE).await {
        Err(JournalError::Damaged { reason, .. }) => no(format!("it is damaged ({reason})")),
        Err(error) => Err(error.into()),
        Ok(page) => match page.first().map(|record| &record.body) {
            Some(Body::Here(_)) => Ok(()),
            Some(Body::Gone(gone)) => no(format!("it was erased ({})", gone.reason)),
            None => no("it is missing".to_owned()),
        },
    }
}

/// The records of the epoch that contains a record, from its beginning up to that record, without the session's first
/// record.
async fn epoch_up_to(journal: &dyn Journal, stream: &StreamName, point: Seq) -> Result<Vec<Record>> {
    let from = replay_start(journal, stream, point).await?;
    let mut records = Vec::new();
    let mut next = from.max(2);
    while next <= point {
        let page = journal.read(stream, next, Page::default()).await?;
        let Some(last) = page.last() else { break };
        next = last.seq + 1;
        records.extend(page.into_iter().filter(|record| record.seq <= point));
    }
    if is_within_compaction(&records) {
        let page = journal.read(stream, point + 1, Page::default()).await?;
        let rest = page.iter().position(|record| record.kind == "compact_done").map_or(0, |done| done + 1);
        records.extend(page.into_iter().take(rest));
    }
    Ok(records)
}

/// Whether the last of these records belongs to the append of a compaction, but does not end it.
fn is_within_compaction(records: &[Record]) -> bool {
    let of_it = |record: &&Record| matches!(record.kind.as_str(), "system_message" | "epoch_started");
    let begins = records.iter().rev().take_while(of_it).find(|record| record.kind == "epoch_started");
    let epoch = begins.and_then(|record| record.decode::<EpochStarted>().ok());
    epoch.is_some_and(|epoch| epoch.reason == EpochReason::Compacted)
}

/// Checks that a key leads to no session, or to an empty one.
async fn check_key_is_free(journal: &dyn Journal, key: &str) -> Result<()> {
    let known = journal.session(key).await?;
    let is_used = |known: SessionEntry| known.head.seq > 0 || known.inbox_head > 0 || known.trashed;
    match known.is_some_and(is_used) {
        true => Err(JournalError::SessionExists { key: key.to_owned() }.into()),
        false => Ok(()),
    }
}

/// Marks the records that memory has extracted in the parent, so that they are not extracted again in the fork.
async fn skip_extracted(
    journal: &dyn Journal,
    parent: SessionId,
    fork: SessionId,
    through: Seq,
) -> Result<()> {
    let stream = StreamName::extract(parent);
    let mut newest_seq = journal.head(&stream).await?.seq;
    let newest = loop {
        if newest_seq == 0 || through <= 1 {
            return Ok(());
        }
        let newest = journal.read(&stream, newest_seq, ONE).await?.pop();
        match newest.as_ref().map(ExtractRecord::decode) {
            Some(Ok(ExtractRecord::Extracted(newest))) => break newest,
            Some(Ok(ExtractRecord::ExtractionFailed(_))) => newest_seq -= 1,
            _ => return Ok(()),
        }
    };
    let (scope, from) = (newest.scope, 1);
    let extracted = Extracted { scope, from, through, items: vec![], refused: vec![], usage: vec![] };
    let record = ExtractRecord::Extracted(extracted).encode().with_key(&format!("through {through}"));
    journal.append(Append::to(&StreamName::extract(fork)).expecting(0).record(record)).await?;
    Ok(())
}

/// The creation in the first record of a session, if it can be read.
fn creation(first: Option<&Record>) -> Option<SessionCreated> {
    match first.map(SessionRecord::decode) {
        Some(Ok(SessionRecord::SessionCreated(created))) => Some(created),
        _ => None,
    }
}
