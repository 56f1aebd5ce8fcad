//! What a client gets for an input or an order that is on disk, and the check of a key that was used before.
//!
//! | a crash | is on disk | the client's retry with the same key |
//! | --- | --- | --- |
//! | before the append | nothing | appends |
//! | after it, before the client got the answer | the record with its key | finds the record, and answers with its ids |

use longhaul_journal::{Append, Blob, Journal, check_size, record_at};
use longhaul_protocol::{
    At, InboxRecord, InputId, NewRecord, Order, OrderId, Record, Seq, SessionId, StreamName,
};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::{Error, Redactor, Result};

/// An input that is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// Its position in the inbox.
    pub seq: Seq,
    /// Its id. If the idempotency key was used before, the id of the first input.
    pub id: InputId,
    /// A record of the session before the one that takes the input. Following the session after it shows everything
    /// that comes of the input.
    pub after: Seq,
}

/// An order that is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptedOrder {
    /// Its position in the inbox.
    pub seq: Seq,
    /// Its id. If the idempotency key was used before, the id of the first order.
    pub id: OrderId,
    /// A record of the session before the one that takes the order.
    pub after: Seq,
}

/// What a repeated idempotency key must have in common with the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RepeatCheck {
    /// Nothing else: the first record counts.
    Key,
    /// The content, too.
    KeyAndContent,
}

/// Appends an input to an inbox without waking its session. `after` is the last record of the session. If the key was used
/// before, returns the first input.
pub(crate) async fn accept_input(
    journal: &dyn Journal,
    session: SessionId,
    after: Seq,
    record: NewRecord,
    blobs: Vec<Blob>,
    key: Option<(&str, RepeatCheck)>,
) -> Result<Accepted> {
    let AppendedRecord { seq, after, record } = append(journal, session, after, record, blobs, key).await?;
    match record {
        InboxRecord::Input(input) => Ok(Accepted { seq, id: input.id, after }),
        _ => Err(Error::KeyReused { seq }),
    }
}

/// Appends an order to an inbox without waking its session. If the key was used before, returns the first order; an error if that
/// says something else. This is the one way for an order, but for an answer (`accept_answer`),
/// which the second of two clients must not give.
pub(crate) async fn accept_order(
    journal: &dyn Journal,
    redactor: &Redactor,
    session: SessionId,
    order: Order,
    key: Option<&str>,
) -> Result<AcceptedOrder> {
    let record = redactor.redact_record(InboxRecord::Order(order).encode());
    let key = key.map(|key| (key, RepeatCheck::KeyAndContent));
    let after = journal.head(&StreamName::session(session)).await?.seq;
    let AppendedRecord { seq, after, record } = append(journal, session, after, record, vec![], key).await?;
    match record {
        InboxRecord::Order(order) => Ok(AcceptedOrder { seq, id: order.id, after }),
        _ => Err(Error::KeyReused { seq }),
    }
}

/// A record of the session before the one that takes the input with this key; `None` if the inbox has none. It costs the same
/// however long the session is, and however long the input has waited.
pub async fn accepted_after(journal: &dyn Journal, session: SessionId, key: &str) -> Result<Option<Seq>> {
    let inbox = StreamName::inbox(session);
    let Some(seq) = journal.find(&inbox, key).await? else { return Ok(None) };
    Ok(record_at(journal, &inbox, seq).await?.as_ref().map(after_of))
}

/// An input of an inbox, found again by its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InboxInput {
    /// Its id.
    pub id: InputId,
    /// When it was accepted.
    pub at: At,
    /// A record of the session before the one that takes the input; 0 if the input was put without an idempotency key.
    pub after: Seq,
}

/// The input at this position of a session's inbox; `None` if there is none.
pub async fn inbox_input(journal: &dyn Journal, session: SessionId, seq: Seq) -> Result<Option<InboxInput>> {
    let Some(record) = record_at(journal, &StreamName::inbox(session), seq).await? else { return Ok(None) };
    Ok(match InboxRecord::decode(&record) {
        Ok(InboxRecord::Input(input)) => {
            Some(InboxInput { id: input.id, at: record.at, after: after_of(&record) })
        }
        _ => None,
    })
}

/// A record of an inbox, and the head of the session before it.
struct AppendedRecord {
    seq: Seq,
    after: Seq,
    record: InboxRecord,
}

async fn append(
    journal: &dyn Journal,
    session: SessionId,
    after: Seq,
    record: NewRecord,
    blobs: Vec<Blob>,
    key: Option<(&str, RepeatCheck)>,
) -> Result<AppendedRecord> {
    check_size(&record)?;
    let inbox = StreamName::inbox(session);
    let keyed = match key {
        Some((key, _)) => with_after(record.clone(), after).with_key(key),
        None => record.clone(),
    };
    let append = blobs.into_iter().fold(Append::to(&inbox).record(keyed), Append::blob);
    match journal.append(append).await {
        Ok(appended) => {
            let unreadable = |reason| Error::Unreadable { key: session.to_string(), reason };
            let first = appended.first().ok_or(longhaul_journal::Error::Closed)?;
            let record = InboxRecord::decode(first).map_err(unreadable)?;
            Ok(AppendedRecord { seq: first.seq, after, record })
        }
        Err(longhaul_journal::Error::Duplicate { seq, .. }) => {
            let is_same = |first: &Record| match key {
                Some((_, RepeatCheck::KeyAndContent)) => is_repeated(first, &record),
                _ => true,
            };
            let first = record_at(journal, &inbox, seq).await?.filter(is_same);
            let decoded =
                first.as_ref().and_then(|first| Some((after_of(first), InboxRecord::decode(first).ok()?)));
            let (after, record) = decoded.ok_or(Error::KeyReused { seq })?;
            Ok(AppendedRecord { seq, after, record })
        }
        Err(error) => Err(error.into()),
    }
}

/// Notes the head of the session in a record with a key, so that a repeated request gets the same answer. Readers of the
/// inbox ignore the field.
pub(super) fn with_after(record: NewRecord, after: Seq) -> NewRecord {
    let text = record.body.get().strip_suffix('}').map(|text| format!("{text},\"after\":{after}}}"));
    match text.and_then(|text| RawValue::from_string(text).ok()) {
        Some(body) => NewRecord { body, ..record },
        None => record,
    }
}

/// The head of the session when a record with a key was appended. 0 shows everything, if the record does not tell.
pub(super) fn after_of(record: &Record) -> Seq {
    #[derive(serde::Deserialize)]
    struct Noted {
        after: Seq,
    }
    record.decode::<Noted>().map_or(0, |noted| noted.after)
}

/// Whether two records say the same. Each has an id of its own.
fn is_repeated(first: &Record, again: &NewRecord) -> bool {
    let content = |text: &str| {
        let mut body: Value = serde_json::from_str(text).ok()?;
        let fields = body.as_object_mut()?;
        fields.remove("id");
        fields.remove("after");
        Some(body)
    };
    let (one, other) = (first.text().and_then(content), content(again.body.get()));
    first.kind == again.kind && one.is_some() && one == other
}
