//! T9: what memory's calls cost. There is money for each of them or it is not made, and what one cost that came to nothing is not lost.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use async_trait::async_trait;
use longhaul_model::{
    AnswerStream, Capabilities, CorrectedLimits, FailureClass, Model, ModelFailure, RefusedSize, Request,
};
use longhaul_protocol::Usage;

use crate::Error;
use crate::runtime::{Inner, lock};
use crate::session::apply::nano;

/// What calls cost that came to nothing, by the stream whose next record says it.
#[derive(Default)]
pub(crate) struct Unpaid(Mutex<HashMap<String, Vec<Usage>>>);

impl Unpaid {
    /// What was not said yet of a stream. Whatever is left of it comes back here, also where the job is cut.
    pub(super) fn bill(&self, stream: String) -> Bill<'_> {
        let usages = lock(&self.0).remove(&stream).unwrap_or_default();
        Bill { unpaid: self, stream, usages }
    }

    /// All of it.
    pub(crate) fn nano(&self) -> u64 {
        let costs = |usages: &Vec<Usage>| usages.iter().filter_map(|usage| usage.cost).map(nano).sum::<u64>();
        lock(&self.0).values().map(costs).sum()
    }
}

/// What a job has yet to say of its costs.
pub(super) struct Bill<'a> {
    unpaid: &'a Unpaid,
    stream: String,
    pub(super) usages: Vec<Usage>,
}

impl Drop for Bill<'_> {
    fn drop(&mut self) {
        if !self.usages.is_empty() {
            let stream = std::mem::take(&mut self.stream);
            lock(&self.unpaid.0).entry(stream).or_default().append(&mut self.usages);
        }
    }
}

/// A model that is asked only while there is money. A long session takes many calls, and each is a reason to look.
pub(super) struct Thrifty {
    pub(super) model: Arc<dyn Model>,
    pub(super) runtime: Weak<Inner>,
}

#[async_trait]
impl Model for Thrifty {
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
#[path = "cost_tests.rs"]
mod tests;
