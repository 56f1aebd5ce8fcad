//! Cancelling a turn of a session that somebody else holds.

use std::time::Duration;

use longhaul_journal::{Journal, Page, put};
use longhaul_protocol::{
    InboxRecord, Order, OrderId, OrderKind, SessionId, SessionRecord, StreamName, TurnEnded,
};
use tokio::time::Instant;

use crate::replay::load;
use crate::session::state::State;
use crate::{Error, Result};

/// How long the end of a turn may take: a command is given two seconds before it is forced.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// How often the records are looked at. Whoever holds no lease is not rung.
const LOOK: Duration = Duration::from_millis(20);

/// What became of the order to cancel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cancelled {
    /// The turn that was open when the order was taken has ended, perhaps by itself just before.
    Ended(TurnEnded),
    /// No turn was open, and none was about to begin.
    NoTurn,
    /// The order is on disk, and nobody has taken it yet or brought the turn to its end.
    NotYet,
}

/// Orders the end of a session's turn, whoever holds it, and waits until that is on record; at most so long.
pub async fn cancel_turn(journal: &dyn Journal, session: SessionId, patience: Duration) -> Result<Cancelled> {
    let mut state = load(journal, "", session).await?;
    let order = OrderId::generate();
    let record = InboxRecord::Order(Order { id: order, kind: OrderKind::Cancel }).encode();
    put(journal, session, record).await?;
    let deadline = Instant::now() + patience;
    let mut target = None;
    loop {
        match look(journal, session, order, &mut state, &mut target).await? {
            Some(cancelled) => return Ok(cancelled),
            None if Instant::now() >= deadline => return Ok(Cancelled::NotYet),
            None => tokio::time::sleep(LOOK).await,
        }
    }
}

/// Reads on; says what came of the order, if that is known by now.
async fn look(
    journal: &dyn Journal,
    session: SessionId,
    order: OrderId,
    state: &mut State,
    target: &mut Option<u64>,
) -> Result<Option<Cancelled>> {
    for record in journal.read(&StreamName::session(session), state.head + 1, Page::default()).await? {
        let unreadable = |reason| Error::Unreadable { key: session.to_string(), reason };
        state.apply(&record).map_err(unreadable)?;
        match SessionRecord::decode(&record) {
            Ok(SessionRecord::OrderTaken(taken)) if taken.order.id == order => match &state.turn {
                Some(turn) => *target = Some(turn.number),
                None if !state.waiting.is_empty() => *target = Some(state.turns.saturating_add(1)),
                None => return Ok(Some(Cancelled::NoTurn)),
            },
            Ok(SessionRecord::TurnEnded(ended)) if *target == Some(ended.turn) => {
                return Ok(Some(Cancelled::Ended(ended)));
            }
            _ => {}
        }
    }
    Ok(None)
}
