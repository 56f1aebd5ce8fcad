//! One request, and everything that comes back: for calls whose answer nobody watches.

use std::sync::Arc;

use longhaul_protocol::{AttemptId, Item, Usage};

use crate::role_check::MAX_ROLE_REORDERS;
use crate::{
    BlockAssembler, BlockProgress, Capabilities, FailureClass, Model, ModelFailure, Request, StopKind,
};

/// What came back for a request.
#[derive(Debug)]
pub struct Completion {
    /// The whole answer, or why there is none.
    pub answer: Result<WholeAnswer, ModelFailure>,
    /// What it cost, as far as the provider said.
    pub usage: Usage,
}

/// A whole answer.
#[derive(Debug)]
pub struct WholeAnswer {
    /// Its blocks.
    pub items: Vec<Arc<Item>>,
    /// Why it ended.
    pub stop: StopKind,
}

/// Asks once, and listens until the answer is over. Where the server refuses the order of roles, the request is sent in another.
pub async fn complete(model: &dyn Model, request: Request, facts: &Capabilities) -> Completion {
    let purpose = request.purpose.name();
    let mut blocks = BlockAssembler::default();
    let mut answer = listen(model, request.clone(), &mut blocks).await;
    for _ in 0..MAX_ROLE_REORDERS {
        match &answer {
            Err(failure) if failure.class == FailureClass::RoleOrder => {
                // What came before a refusal belongs to no answer.
                blocks = BlockAssembler::default();
                answer = listen(model, request.clone(), &mut blocks).await;
            }
            _ => break,
        }
    }
    let counted = blocks.tokens.unwrap_or_default().usage(AttemptId::generate(), facts);
    let (purpose, limits) = (Some(purpose.to_owned()), blocks.limits.unwrap_or_default());
    let usage = Usage { purpose, limits, ..counted };
    Completion { answer, usage }
}

async fn listen(
    model: &dyn Model,
    request: Request,
    blocks: &mut BlockAssembler,
) -> Result<WholeAnswer, ModelFailure> {
    let mut answer = model.ask(request).await?;
    let mut items = Vec::new();
    loop {
        match blocks.push(answer.next().await?) {
            BlockProgress::Block(item) => items.push(Arc::new(item)),
            BlockProgress::End(stop) if stop.kind == StopKind::Refused => {
                let message = format!("{} did not want to answer", model.name());
                return Err(ModelFailure::new(FailureClass::Refused, message));
            }
            BlockProgress::End(stop) => return Ok(WholeAnswer { items, stop: stop.kind }),
            BlockProgress::Odd(reason) => return Err(ModelFailure::new(FailureClass::Broken, reason)),
            BlockProgress::TooLarge(reason) => return Err(ModelFailure::new(FailureClass::TooLarge, reason)),
            BlockProgress::Text(_) | BlockProgress::Reasoning(_) | BlockProgress::Nothing => {}
        }
    }
}

#[cfg(test)]
#[path = "hearing_tests.rs"]
mod tests;
