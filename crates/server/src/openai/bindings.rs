//! Which session a conversation is in: records of the stream `openai`, found by their keys.
//!
//! A binding is on disk before the input that it names. A request that finds it checks the session's own records, so a binding
//! without its input, or to a session that was deleted, does no harm. A lookup costs a few reads of an index, however many
//! sessions there are, and nothing has to be rebuilt after a restart.
//!
//! | killed | on disk | the client's retry |
//! | --- | --- | --- |
//! | before the binding | perhaps a key of an empty session | makes the same key again, and goes on |
//! | after the binding | it, without the input | finds it, and appends the input under the id that it names |
//! | after the input | both | finds the binding; the input's key makes the append a repetition |
//!
//! A new session is begun, with or without a folder, between the binding and the input. A retry that finds the binding without
//! the input begins it, if that is still to be done.

use longhaul_journal::{Append, Error as JournalError, Journal, record_at};
use longhaul_protocol::{ConversationBound, Hash, OpenaiRecord, ResponseDeleted, SessionId, StreamName};

use super::error::OpenaiResult;

/// The most bindings of one conversation that are looked at, the newest first.
const MAX_CANDIDATES: u64 = 32;

/// The conversations of one token.
pub(crate) struct Bindings<'a> {
    pub(crate) journal: &'a dyn Journal,
    /// Not the token's name: the next token with that name may belong to another user.
    pub(crate) token_id: &'a str,
}

/// The uses of one `Idempotency-Key`. A second one follows only if the session of the first was deleted.
pub(crate) struct KeyUses {
    name: String,
    count: u64,
    pub(crate) last: Option<ConversationBound>,
}

impl Bindings<'_> {
    /// The name of a conversation. The keys of its bindings are this and a number, from 1 without a gap.
    pub(crate) fn name_of(&self, conversation: Hash) -> String {
        format!("conversation/{}/{conversation}", self.token_id)
    }

    async fn exists(&self, name: &str, number: u64) -> OpenaiResult<bool> {
        Ok(self.journal.find(&StreamName::openai(), &numbered(name, number)).await?.is_some())
    }

    /// How many bindings have this name.
    async fn count_named(&self, name: &str) -> OpenaiResult<u64> {
        let mut beyond = 1;
        while self.exists(name, beyond).await? {
            beyond *= 2;
        }
        let mut last = beyond / 2;
        while beyond - last > 1 {
            let middle = u64::midpoint(last, beyond);
            match self.exists(name, middle).await? {
                true => last = middle,
                false => beyond = middle,
            }
        }
        Ok(last)
    }

    /// How many bindings a conversation has.
    pub(crate) async fn count(&self, conversation: Hash) -> OpenaiResult<u64> {
        self.count_named(&self.name_of(conversation)).await
    }

    /// The newest bindings of a conversation, the newest first.
    pub(crate) async fn newest(&self, conversation: Hash) -> OpenaiResult<Vec<ConversationBound>> {
        let name = self.name_of(conversation);
        let count = self.count_named(&name).await?;
        let mut found = Vec::new();
        for number in (1..=count).rev().take(usize::try_from(MAX_CANDIDATES).unwrap_or(usize::MAX)) {
            found.extend(self.read(&numbered(&name, number)).await?);
        }
        Ok(found)
    }

    /// The requests that had this `Idempotency-Key`.
    pub(crate) async fn uses_of(&self, client_key: &str) -> OpenaiResult<KeyUses> {
        let name = format!("idempotency/{}/{client_key}", self.token_id);
        let count = self.count_named(&name).await?;
        let last = self.read(&numbered(&name, count)).await?;
        Ok(KeyUses { name, count, last })
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

    /// Binds a conversation. The binding is the newest of its conversation from now on, and of its `Idempotency-Key`.
    pub(crate) async fn bind(
        &self,
        conversation: Hash,
        bound: &ConversationBound,
        client_key: Option<&KeyUses>,
    ) -> OpenaiResult<()> {
        let record = OpenaiRecord::ConversationBound(bound.clone()).encode();
        let (stream, name) = (StreamName::openai(), self.name_of(conversation));
        loop {
            let number = self.count_named(&name).await? + 1;
            let mut append = Append::to(&stream).record(record.clone().with_key(&numbered(&name, number)));
            if let Some(uses) = client_key {
                append = append.record(record.clone().with_key(&numbered(&uses.name, uses.count + 1)));
            }
            match self.journal.append(append).await {
                Ok(_) => return Ok(()),
                // Another process was faster with this conversation. If it was with this key, the client's retry finds it.
                Err(error @ JournalError::Duplicate { .. }) => match client_key {
                    Some(uses) if self.exists(&uses.name, uses.count + 1).await? => return Err(error.into()),
                    _ => {}
                },
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn numbered(name: &str, number: u64) -> String {
    format!("{name}/{number}")
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
