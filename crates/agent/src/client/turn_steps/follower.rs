//! The steps of a turn, as they happen.

use std::collections::VecDeque;

use longhaul_protocol::QuestionId;

use super::fold::{TurnFold, TurnLocator, TurnStep};
use crate::Result;
use crate::client::follow::Follower;
use crate::client::session::Session;

/// Sees the steps of one turn, wherever its session runs. Dropping it ends nothing but the following.
pub struct TurnFollower {
    session: Session,
    follower: Follower,
    fold: TurnFold,
    steps: VecDeque<TurnStep>,
}

impl TurnFollower {
    pub(in crate::client) async fn start(session: Session, turn: TurnLocator) -> Result<Self> {
        let follower = session.follow(turn.after).await?;
        Ok(Self { session, follower, fold: TurnFold::new(turn), steps: VecDeque::new() })
    }

    /// The next step; `None` when the turn is over, or when the journal is closed. [`TurnStep::Ended`],
    /// [`TurnStep::PlanSettled`] and [`TurnStep::Withdrawn`] are the last ones. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<TurnStep>> {
        loop {
            if let Some(step) = self.steps.pop_front() {
                return Ok(Some(step));
            }
            if self.fold.is_over() {
                return Ok(None);
            }
            let Some(followed) = self.follower.step().await? else { return Ok(None) };
            self.steps.extend(self.fold.apply(&followed));
        }
    }

    /// Whether a question still waits for its answer. One that was answered before the follower started comes as a step, too.
    pub async fn is_open(&self, question: QuestionId) -> Result<bool> {
        Ok(self.session.open_questions().await?.iter().any(|open| open.id == question))
    }
}
