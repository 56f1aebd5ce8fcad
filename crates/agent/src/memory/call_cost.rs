//! The cost of memory's model calls. Each call is reserved, and the usage of failed calls is recorded too.

use std::collections::HashMap;
use std::sync::{Mutex, Weak};

use async_trait::async_trait;
use longhaul_memory::{CallBudget, ReservedCall};
use longhaul_model::{FailureClass, ModelFailure, Prices};
use longhaul_protocol::{AttemptId, Cause, SessionId, Usage};

use crate::Error;
use crate::runtime::{RuntimeShared, lock};
use crate::spend::{CallBound, LimitReached, NewCall, ReserveOutcome, SoftLimits, WantedCall};

/// The usage of failed calls, by the stream whose next record will contain it.
#[derive(Default)]
pub(crate) struct UnrecordedCosts(Mutex<HashMap<String, Vec<Usage>>>);

impl UnrecordedCosts {
    /// Takes the unrecorded usage of a stream. When the guard is dropped, it returns the part that the job did not
    /// record.
    pub(super) fn take_pending(&self, stream: String) -> PendingUsage<'_> {
        let usages = lock(&self.0).remove(&stream).unwrap_or_default();
        PendingUsage { unrecorded_costs: self, stream, usages }
    }

    /// The unrecorded usage of a stream.
    pub(crate) fn of_stream(&self, stream: &str) -> Vec<Usage> {
        lock(&self.0).get(stream).cloned().unwrap_or_default()
    }
}

/// The usage that a job still has to record.
pub(super) struct PendingUsage<'a> {
    unrecorded_costs: &'a UnrecordedCosts,
    stream: String,
    pub(super) usages: Vec<Usage>,
}

impl Drop for PendingUsage<'_> {
    fn drop(&mut self) {
        if !self.usages.is_empty() {
            let stream = std::mem::take(&mut self.stream);
            lock(&self.unrecorded_costs.0).entry(stream).or_default().append(&mut self.usages);
        }
    }
}

/// The budget of memory's calls for a session. No one waits for them, so they stop before the calls of turns do.
pub(super) struct MemoryBudget {
    pub(super) runtime: Weak<RuntimeShared>,
    pub(super) session: SessionId,
    /// As `provider/model`.
    pub(super) model: String,
    pub(super) prices: Option<Prices>,
}

#[async_trait]
impl CallBudget for MemoryBudget {
    async fn reserve(&self, prompt: u64, answer: u64) -> Result<Box<dyn ReservedCall>, ModelFailure> {
        let refused = |reason: String| ModelFailure::new(FailureClass::Quota, reason);
        let Some(runtime) = self.runtime.upgrade() else {
            return Err(refused(Error::Suspended.to_string()));
        };
        let bound = CallBound::new(prompt, answer, self.prices.as_ref());
        let wanted = WantedCall {
            scope: runtime.spend.scope(self.session, None, None),
            bound,
            urgency: runtime.spend.background(self.session, bound),
            consents: vec![],
        };
        let (attempt, cause) = (AttemptId::generate(), Cause::Memory);
        let (model, prices) = (self.model.clone(), self.prices);
        let call = NewCall { attempt, cause, model, prices, wanted };
        match runtime.spend.reserve(call).await {
            Ok(ReserveOutcome::Granted(reservation)) => Ok(Box::new(reservation)),
            Ok(ReserveOutcome::Reached(LimitReached { text, .. })) => Err(refused(text)),
            Ok(ReserveOutcome::Ask(SoftLimits { text, .. })) => Err(refused(text)),
            Err(error) => Err(refused(error.to_string())),
        }
    }
}

#[cfg(test)]
#[path = "call_cost_tests.rs"]
mod tests;
