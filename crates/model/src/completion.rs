//! Sends one request and collects the whole answer, for callers that show no progress.

use std::sync::Arc;

use longhaul_protocol::{Item, Usage};

use crate::role_order::MAX_ROLE_REORDERS;
use crate::{
    BlockAssembler, BlockProgress, CallPermit, Capabilities, FailureClass, Model, ModelFailure, Request,
    SearchSource, StopKind,
};

/// The result of one request.
#[derive(Debug)]
pub struct Completion {
    pub answer: Result<WholeAnswer, ModelFailure>,
    /// The usage, as far as the provider reported it.
    pub usage: Usage,
}

#[derive(Debug)]
pub struct WholeAnswer {
    pub items: Vec<Arc<Item>>,
    pub stop: StopKind,
    /// Pages that the provider's search found.
    pub sources: Vec<SearchSource>,
}

/// Sends a request and reads the whole answer. If the server refuses the order of roles, sends the request again in
/// another order.
pub async fn complete(
    model: &dyn Model,
    request: Request,
    facts: &Capabilities,
    permit: &CallPermit,
) -> Completion {
    let purpose = request.purpose.name();
    let mut blocks = BlockAssembler::default();
    let mut answer = read_answer(model, request.clone(), permit, &mut blocks).await;
    for _ in 0..MAX_ROLE_REORDERS {
        match &answer {
            Err(failure) if failure.class == FailureClass::RoleOrder => {
                blocks = BlockAssembler::default();
                answer = read_answer(model, request.clone(), permit, &mut blocks).await;
            }
            _ => break,
        }
    }
    let counted = blocks.tokens.unwrap_or_default().usage(permit, facts);
    let (purpose, limits) = (Some(purpose.to_owned()), blocks.limits.unwrap_or_default());
    let usage = Usage { purpose, limits, model: Some(model.name().to_owned()), ..counted };
    Completion { answer, usage }
}

async fn read_answer(
    model: &dyn Model,
    request: Request,
    permit: &CallPermit,
    blocks: &mut BlockAssembler,
) -> Result<WholeAnswer, ModelFailure> {
    let mut answer = permit.send(model, request).await?;
    let mut items = Vec::new();
    loop {
        match blocks.push(answer.next().await?) {
            BlockProgress::Block(item) => items.push(Arc::new(item)),
            BlockProgress::End(stop) if stop.kind == StopKind::Refused => {
                let message = format!("{} declined to answer", model.name());
                return Err(ModelFailure::new(FailureClass::Refused, message));
            }
            BlockProgress::End(stop) => {
                let sources = std::mem::take(&mut blocks.sources);
                return Ok(WholeAnswer { items, stop: stop.kind, sources });
            }
            BlockProgress::Odd(reason) => return Err(ModelFailure::new(FailureClass::Broken, reason)),
            BlockProgress::TooLarge(reason) => return Err(ModelFailure::new(FailureClass::TooLarge, reason)),
            BlockProgress::Text(_) | BlockProgress::Reasoning(_) | BlockProgress::Nothing => {}
        }
    }
}

#[cfg(test)]
#[path = "completion_tests.rs"]
mod tests;
