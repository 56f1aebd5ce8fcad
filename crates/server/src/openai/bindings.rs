//! Which session a conversation is in: records of the stream `openai`, found by their keys.
//!
//! A binding is on disk before the input that it names. Whoever finds it checks the session's own records, so a binding
//! without its input, or to a session that was deleted, does no harm. A lookup costs a few reads of an index, however many
//! sessions there are, and nothing has to be rebuilt after a restart.
//!
//! | killed | on disk | the client's retry |
//! | --- | --- | --- |
//! | before the binding | perhaps a key of an empty session | makes the same key again, and goes on |
//! | after the binding | it, without the input | finds it, and appends the input under the id that it names |
//! | after the input | both | finds the binding; the input's key makes the append a repetition |

use longhaul_journal::{Append, Error as JournalError, Journal, record_at};
use longhaul_protocol::{ConversationBound, Hash, OpenaiRecord, ResponseDeleted, SessionId, StreamName};

use super::error::OpenaiResult;

/// The most bindings of one conversation that are looked at, the newest first.
const MAX_CANDIDATES: u64 = 32;

/// The conversations of one token.
pub(crate) struct Bindings<'a> {
    pub(crate) journal: &'a dyn Journal,
    pub(crate) token: &'a str,
}

impl Bindings<'_> {
    fn key(&self, conversation: Hash, number: u64) -> String {
        format!("conversation/{}/{conversation}/{number}", self.token)
    }

    fn client_key(&self, key: &str) -> String {
        format!("idempotency/{}/{key}", self.token)
    }

    async fn exists(&self, conversation: Hash, number: u64) -> OpenaiResult<bool> {
        Ok(self.journal.find(&StreamName::openai(), &self.key(conversation, number)).await?.is_some())
    }

    /// How many bindings a conversation has. They are numbered from 1 without a gap.
    pub(crate) async fn count(&self, conversation: Hash) -> OpenaiResult<u64> {
        let mut beyond = 1;
        while self.exists(conversation, beyond).await? {
            beyond *= 2;
        }
        let mut last = beyond / 2;
        while beyond - last > 1 {
            let middle = u64::midpoint(last, beyond);
            match self.exists(conversation, middle).await? {
                true => last = middle,
                false => beyond = middle,
            }
        }
        Ok(last)
    }

    /// The newest bindings of a conversation, the newest first.
    pub(crate) async fn newest(&self, conversation: Hash) -> OpenaiResult<Vec<ConversationBound>> {
        let count = self.count(conversation).await?;
        let mut found = Vec::new();
        for number in (1..=count).rev().take(usize::try_from(MAX_CANDIDATES).unwrap_or(usize::MAX)) {
            found.extend(self.read(&self.key(conversation, number)).await?);
        }
        Ok(found)
    }

    /// The binding of the request that had this `Idempotency-Key`.
    pub(crate) async fn of_client_key(&self, key: &str) -> OpenaiResult<Option<ConversationBound>> {
        self.read(&self.client_key(key)).await
    }

    async fn read(&self, key: &str) -> OpenaiResult<Option<ConversationBound>> {
        let stream = StreamName::openai();
        let Some(seq) = self.journal.find(&stream, key).await? else { return Ok(None) };
        let record = record_at(self.journal, &stream, seq).await?;
        Ok(record.and_then(|record| match OpenaiRecord::decode(&record) {
            Ok(OpenaiRecord::ConversationBound(bound)) => Some(bound),
            _ => None,
        }))
    }

    /// Binds a conversation. It is the newest of its binding from now on.
    pub(crate) async fn bind(
        &self,
        conversation: Hash,
        bound: &ConversationBound,
        client_key: Option<&str>,
    ) -> OpenaiResult<()> {
        let record = OpenaiRecord::ConversationBound(bound.clone()).encode();
        loop {
            let number = self.count(conversation).await? + 1;
            let stream = StreamName::openai();
            let mut append =
                Append::to(&stream).record(record.clone().with_key(&self.key(conversation, number)));
            if let Some(key) = client_key {
                append = append.record(record.clone().with_key(&self.client_key(key)));
            }
            match self.journal.append(append).await {
                Ok(_) => return Ok(()),
                Err(JournalError::Duplicate { .. }) if client_key.is_none() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn deletion_key(session: SessionId, turn: u64) -> String {
    format!("deleted/{session}/{turn}")
}

/// Whether a response was deleted.
pub(crate) async fn is_deleted(journal: &dyn Journal, session: SessionId, turn: u64) -> OpenaiResult<bool> {
    Ok(journal.find(&StreamName::openai(), &deletion_key(session, turn)).await?.is_some())
}

/// Hides a response from retrieval.
pub(crate) async fn delete_response(
    journal: &dyn Journal,
    session: SessionId,
    turn: u64,
) -> OpenaiResult<()> {
    let record = OpenaiRecord::ResponseDeleted(ResponseDeleted { session, turn }).encode();
    let record = record.with_key(&deletion_key(session, turn));
    match journal.append(Append::to(&StreamName::openai()).record(record)).await {
        Ok(_) | Err(JournalError::Duplicate { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
