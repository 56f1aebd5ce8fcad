//! Forks that a client may request twice: H1.
//!
//! The name of the fork and the record `fork_requested`, with the client's idempotency key, come in one append to the stream
//! `names`. So a repeated request finds the fork that the first one made, or finishes it.
//!
//! | killed | on disk | the client's retry |
//! | --- | --- | --- |
//! | before the name | nothing | makes the fork |
//! | after the name and the request, before the records | a session without records | copies the records up to the same point |
//! | after the records | the fork | gets its key and id |

use std::time::Duration;

use longhaul_journal::{Error as JournalError, Journal, SessionEntry, name_session_with, record_at, resolve};
use longhaul_protocol::{ForkRequested, Hash, NamesRecord, Seq, SessionId, StreamName};
use tokio::time::Instant;

use super::{ForkPlan, check_key_is_free, creation};
use crate::{Error, Result};

/// How long a repeated request waits for the first one, which is still copying records.
const COPY_GRACE: Duration = Duration::from_secs(5);
const COPY_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// What a client says about a fork that it may request twice.
#[derive(Debug, Clone, Copy)]
pub struct ForkRequestKey<'a> {
    /// The client's idempotency key.
    pub key: &'a str,
    /// A hash of everything else that the client asked for.
    pub content: Hash,
}

/// Forks a session like [`fork_session`](super::fork_session), unless the client did so before with the same idempotency key: then
/// returns the key and the id of the first fork. Fails with [`Error::KeyReused`] if the client asked for something else then.
pub async fn fork_session_once(
    journal: &dyn Journal,
    key: &str,
    at: Option<Seq>,
    new_key: &str,
    request: ForkRequestKey<'_>,
) -> Result<(String, SessionId)> {
    let parent = resolve(journal, key).await?;
    let record_key = format!("fork/{}/{}", parent.id, request.key);
    if let Some(seq) = journal.find(&StreamName::names(), &record_key).await? {
        return finish_fork(journal, parent, seq, request.content).await;
    }
    let plan = ForkPlan::read(journal, parent, at).await?;
    check_key_is_free(journal, new_key).await?;
    let requested = |id| {
        let (parent, seq, content) = (plan.parent.id, plan.point, request.content);
        NamesRecord::ForkRequested(ForkRequested { id, parent, seq, content }).encode().with_key(&record_key)
    };
    match name_session_with(journal, new_key, requested).await {
        Ok(id) => {
            let forked = plan.write(journal, id, new_key).await?;
            Ok((forked.key, forked.id))
        }
        // The same request came twice at the same time.
        Err(JournalError::Duplicate { seq, .. }) => {
            finish_fork(journal, plan.parent, seq, request.content).await
        }
        Err(error) => Err(error.into()),
    }
}

/// The fork that was requested before. Copies its records if that was interrupted.
async fn finish_fork(
    journal: &dyn Journal,
    parent: SessionEntry,
    seq: Seq,
    content: Hash,
) -> Result<(String, SessionId)> {
    let first = record_at(journal, &StreamName::names(), seq).await?;
    let first = match first.as_ref().map(NamesRecord::decode) {
        Some(Ok(NamesRecord::ForkRequested(first))) if first.content == content => first,
        _ => return Err(Error::KeyReused { seq }),
    };
    let deadline = Instant::now() + COPY_GRACE;
    loop {
        let missing = || JournalError::NoSuchSession { key: first.id.to_string() };
        let entry = journal.session_with_id(first.id).await?.ok_or_else(missing)?;
        if entry.head.seq > 0 {
            let created = record_at(journal, &StreamName::session(first.id), 1).await?;
            let origin = creation(created.as_ref()).and_then(|created| created.origin);
            // Another request may have begun the empty session that the fork was to have.
            return match origin.is_some_and(|origin| origin.session == first.parent) {
                true => Ok((entry.key, first.id)),
                false => Err(JournalError::SessionExists { key: entry.key }.into()),
            };
        }
        let plan = ForkPlan::read(journal, parent.clone(), Some(first.seq)).await?;
        match plan.write(journal, first.id, &entry.key).await {
            // The first request holds the lease, or has just written the records.
            Err(Error::Journal(JournalError::SessionExists { .. })) if Instant::now() < deadline => {
                tokio::time::sleep(COPY_CHECK_INTERVAL).await;
            }
            forked => return forked.map(|forked| (forked.key, forked.id)),
        }
    }
}
