//! The steps of a turn, until the server stops.

use longhaul_agent::{Session, TurnFollower, TurnLocator, TurnStep};
use longhaul_protocol::QuestionId;
use tokio::sync::watch;

use super::error::{OpenaiError, OpenaiResult};

/// Sees the steps of one turn. Dropping it ends nothing but the following.
pub(crate) struct TurnSteps {
    follower: TurnFollower,
    shutdown: watch::Receiver<bool>,
}

impl TurnSteps {
    pub(crate) async fn follow(
        session: &Session,
        turn: TurnLocator,
        shutdown: watch::Receiver<bool>,
    ) -> OpenaiResult<Self> {
        Ok(Self { follower: session.follow_turn(turn).await?, shutdown })
    }

    /// The next step. An error if the server stops, or if the plan that the turn was to carry out is settled otherwise. Cancel-safe.
    pub(crate) async fn next(&mut self) -> OpenaiResult<TurnStep> {
        let step = tokio::select! {
            biased;
            step = self.follower.next() => step?,
            _ = self.shutdown.wait_for(|stopped| *stopped) => None,
        };
        match step.ok_or_else(OpenaiError::stopping)? {
            TurnStep::PlanSettled => Err(OpenaiError::plan_settled()),
            step => Ok(step),
        }
    }

    /// Whether a question still waits for its answer.
    pub(crate) async fn is_open(&self, question: QuestionId) -> OpenaiResult<bool> {
        Ok(self.follower.is_open(question).await?)
    }
}
