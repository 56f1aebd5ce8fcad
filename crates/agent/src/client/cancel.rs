//! Cancelling the turn of a session that another process runs.

use std::time::Duration;

use longhaul_journal::Error as JournalError;
use longhaul_protocol::{OrderId, OrderKind, Record, SessionRecord, TurnEnded};

use super::follow::{Followed, Follower};
use super::remote::RemoteSession;
use crate::replay::load;
use crate::session::state::State;
use crate::{Error, Result};

/// How long a turn may take to end. A command gets two seconds before it is killed.
pub(crate) const CANCEL_GRACE: Duration = Duration::from_secs(10);

/// The outcome of an order to cancel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The turn that was open when the worker took the order has ended. It may have ended by itself just before.
    Ended(TurnEnded),
    /// No turn was open, and none was about to begin.
    NoTurn,
    /// The order is in the inbox, and the turn has not ended within the grace period.
    Pending,
}

/// Orders the end of a session's turn and waits until the records say that it has ended, at most for `grace`.
pub(super) async fn cancel_turn(session: &RemoteSession, grace: Duration) -> Result<CancelOutcome> {
    let RemoteSession { journal, key, id, .. } = session;
    let state = load(&**journal, key, *id).await?;
    let mut follower = Follower::from_state(journal.clone(), key, *id, state.clone());
    let order = OrderId::generate();
    session.order(OrderKind::Cancel, order).await?;
    let mut progress = CancelProgress { state, order, turn: None };
    let ended = async {
        loop {
            let step = follower.step().await?.ok_or(JournalError::Closed)?;
            if let Followed::Record(record, _) = step
                && let Some(outcome) = progress.apply(key, &record)?
            {
                return Ok(outcome);
            }
        }
    };
    tokio::time::timeout(grace, ended).await.unwrap_or(Ok(CancelOutcome::Pending))
}

/// The progress of an order to cancel, according to the records so far.
struct CancelProgress {
    state: State,
    order: OrderId,
    /// The turn that the order ends.
    turn: Option<u64>,
}

impl CancelProgress {
    /// The outcome, if this record decides it.
    fn apply(&mut self, key: &str, record: &Record) -> Result<Option<CancelOutcome>> {
        let unreadable = |reason| Error::Unreadable { key: key.to_owned(), reason };
        self.state.apply(record).map_err(unreadable)?;
        match SessionRecord::decode(record) {
            Ok(SessionRecord::OrderTaken(taken)) if taken.order.id == self.order => match &self.state.turn {
                Some(turn) => self.turn = Some(turn.number),
                None if !self.state.pending_inputs.is_empty() => {
                    self.turn = Some(self.state.turn_count.saturating_add(1));
                }
                None => return Ok(Some(CancelOutcome::NoTurn)),
            },
            Ok(SessionRecord::TurnEnded(ended)) if self.turn == Some(ended.turn) => {
                return Ok(Some(CancelOutcome::Ended(ended)));
            }
            _ => {}
        }
        Ok(None)
    }
}
