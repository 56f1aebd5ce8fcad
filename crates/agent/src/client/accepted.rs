//! What a client gets for an input or an order that is on disk, and the check of a key that was used before.
//!
//! | a crash | is on disk | the client's retry with the same key |
//! | --- | --- | --- |
//! | before the append | nothing | appends |
//! | after it, before the client got the answer | the record with its key | finds the record, and answers with its ids |

use longhaul_journal::{Append, Blob, Journal, Page, check_size, record_at};
use longhaul_protocol::{InboxRecord, InputId, NewRecord, OrderId, Record, Seq, SessionId, StreamName};
use serde_json::Value;

use crate::{Error, Result};

/// Records to read at a time on the way back to the record that took an input.
const BACKWARD_PAGE: u64 = 256;

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

/// Appends an input to an inbox without waking its session. If the key was used before, returns the first input.
pub(super) async fn accept_input(
    journal: &dyn Journal,
    session: SessionId,
    record: NewRecord,
    blobs: Vec<Blob>,
    idempotency_key: Option<&str>,
) -> Result<Accepted> {
    let InboxPlace { seq, after, record } = append(journal, session, record, blobs, idempotency_key).await?;
    match record {
        InboxRecord::Input(input) => Ok(Accepted { seq, id: input.id, after }),
        _ => Err(Error::KeyReused { seq }),
    }
}

/// Appends an order to an inbox without waking its session. If the key was used before, returns the first order.
pub(super) async fn accept_order(
    journal: &dyn Journal,
    session: SessionId,
    record: NewRecord,
    idempotency_key: Option<&str>,
) -> Result<AcceptedOrder> {
    let InboxPlace { seq, after, record } = append(journal, session, record, vec![], idempotency_key).await?;
    match record {
        InboxRecord::Order(order) => Ok(AcceptedOrder { seq, id: order.id, after }),
        _ => Err(Error::KeyReused { seq }),
    }
}

/// A record of an inbox, and the head of the session before it is taken.
struct InboxPlace {
    seq: Seq,
    after: Seq,
    record: InboxRecord,
}

async fn append(
    journal: &dyn Journal,
    session: SessionId,
    record: NewRecord,
    blobs: Vec<Blob>,
    idempotency_key: Option<&str>,
) -> Result<InboxPlace> {
    check_size(&record)?;
    let after = journal.head(&StreamName::session(session)).await?.seq;
    let inbox = StreamName::inbox(session);
    let keyed = match idempotency_key {
        Some(key) => record.clone().with_key(key),
        None => record.clone(),
    };
    let append = blobs.into_iter().fold(Append::to(&inbox).record(keyed), Append::blob);
    match journal.append(append).await {
        Ok(appended) => match appended.first().map(|first| (first.seq, InboxRecord::decode(first))) {
            Some((seq, Ok(record))) => Ok(InboxPlace { seq, after, record }),
            // The journal returns what it has appended, which this function has encoded.
            _ => Err(longhaul_journal::Error::Closed.into()),
        },
        Err(longhaul_journal::Error::Duplicate { seq, .. }) => {
            let first = record_at(journal, &inbox, seq).await?.filter(|first| is_repeated(first, &record));
            let first = first.and_then(|first| InboxRecord::decode(&first).ok());
            let record = first.ok_or(Error::KeyReused { seq })?;
            Ok(InboxPlace { seq, after: head_before_taking(journal, session, seq).await?, record })
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether two records say the same. Each has an id of its own.
fn is_repeated(first: &Record, again: &NewRecord) -> bool {
    let without_id = |text: &str| {
        let mut body: Value = serde_json::from_str(text).ok()?;
        body.as_object_mut()?.remove("id");
        Some(body)
    };
    let (one, other) = (first.text().and_then(without_id), without_id(again.body.get()));
    first.kind == again.kind && one.is_some() && one == other
}

/// The last record of a session before the one that took this record of its inbox; its head if none has yet.
pub(super) async fn head_before_taking(
    journal: &dyn Journal,
    session: SessionId,
    inbox_seq: Seq,
) -> Result<Seq> {
    let stream = StreamName::session(session);
    let head = journal.head(&stream).await?.seq;
    // Records that take later parts of the inbox come after it. An answer may make two records.
    let (mut end, mut before) = (head, head);
    while end > 0 {
        let from = end.saturating_sub(BACKWARD_PAGE - 1).max(1);
        let page = Page { records: usize::try_from(end - from + 1).unwrap_or(usize::MAX), bytes: usize::MAX };
        for record in journal.read(&stream, from, page).await?.iter().rev() {
            match inbox_through(record) {
                Some(through) if through >= inbox_seq => before = record.seq - 1,
                Some(_) => return Ok(before),
                None => {}
            }
        }
        end = from - 1;
    }
    Ok(before)
}

/// How far the inbox was taken, according to a record that takes something from it.
fn inbox_through(record: &Record) -> Option<Seq> {
    #[derive(serde::Deserialize)]
    struct Taking {
        inbox_through: Seq,
    }
    let takes = matches!(record.kind.as_str(), "input_taken" | "order_taken");
    record.decode::<Taking>().ok().filter(|_| takes).map(|taking| taking.inbox_through)
}
