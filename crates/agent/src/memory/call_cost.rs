//! T9: the cost of memory's model calls. Each call needs a budget, and the cost of failed calls is recorded too.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use async_trait::async_trait;
use longhaul_model::{
    AnswerStream, Capabilities, CorrectedLimits, FailureClass, Model, ModelFailure, RefusedSize, Request,
};
use longhaul_protocol::Usage;

use crate::Error;
use crate::runtime::{RuntimeShared, lock};
use crate::session::apply::nano;

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

    /// The total, in billionths of a US dollar.
    pub(crate) fn nano(&self) -> u64 {
        let costs = |usages: &Vec<Usage>| usages.iter().filter_map(|usage| usage.cost).map(nano).sum::<u64>();
        lock(&self.0).values().map(costs).sum()
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

/// A model that checks the day's budget before each call.
pub(super) struct BudgetedModel {
    pub(super) model: Arc<dyn Model>,
    pub(super) runtime: Weak<RuntimeShared>,
}

#[async_trait]
impl Model for BudgetedModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn capabilities(&self) -> Capabilities {
        self.model.capabilities().await
    }

    async fn correct_limits(&self, failure: &ModelFailure, size: RefusedSize) -> Option<CorrectedLimits> {
        self.model.correct_limits(failure, size).await
    }

    async fn ask(&self, request: Request) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        if let Some(runtime) = self.runtime.upgrade() {
            match runtime.ledger.is_budget_spent(&runtime).await {
                Ok(false) => {}
                Ok(true) => {
                    return Err(ModelFailure::new(FailureClass::Quota, Error::OutOfMoney.to_string()));
                }
                Err(error) => return Err(ModelFailure::new(FailureClass::Quota, error.to_string())),
            }
        }
        self.model.ask(request).await
    }
}

#[cfg(test)]
#[path = "call_cost_tests.rs"]
mod tests;
