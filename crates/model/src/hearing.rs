//! One request, and everything that comes back: for calls whose answer nobody watches.

use std::sync::Arc;

use longhaul_protocol::{AttemptId, Item, Usage};

use crate::role_check::MAX_REORDERED;
use crate::{Blocks, Class, Facts, Failure, Model, Progress, Request, StopKind};

/// What came back for a request.
#[derive(Debug)]
pub struct Heard {
    /// The whole answer, or why there is none.
    pub answer: Result<Whole, Failure>,
    /// What it cost, as far as the provider said.
    pub usage: Usage,
}

/// A whole answer.
#[derive(Debug)]
pub struct Whole {
    /// Its blocks.
    pub items: Vec<Arc<Item>>,
    /// Why it ended.
    pub stop: StopKind,
}

/// Asks once, and listens until the answer is over. Where the server refuses the order of roles, the request is sent in another.
pub async fn hear(model: &dyn Model, request: Request, facts: &Facts) -> Heard {
    let purpose = request.purpose.name();
    let mut blocks = Blocks::default();
    let mut answer = listen(model, request.clone(), &mut blocks).await;
    for _ in 0..MAX_REORDERED {
        match &answer {
            Err(failure) if failure.class == Class::RoleOrder => {
                // What came before a refusal belongs to no answer.
                blocks = Blocks::default();
                answer = listen(model, request.clone(), &mut blocks).await;
            }
            _ => break,
        }
    }
    let counted = blocks.tokens.unwrap_or_default().usage(AttemptId::generate(), facts);
    let (purpose, limits) = (Some(purpose.to_owned()), blocks.limits.unwrap_or_default());
    let usage = Usage { purpose, limits, ..counted };
    Heard { answer, usage }
}

async fn listen(model: &dyn Model, request: Request, blocks: &mut Blocks) -> Result<Whole, Failure> {
    let mut answer = model.ask(request).await?;
    let mut items = Vec::new();
    loop {
        match blocks.push(answer.next().await?) {
            Progress::Block(item) => items.push(Arc::new(item)),
            Progress::End(stop) if stop.kind == StopKind::Refused => {
                let message = format!("{} did not want to answer", model.name());
                return Err(Failure::new(Class::Refused, message));
            }
            Progress::End(stop) => return Ok(Whole { items, stop: stop.kind }),
            Progress::Odd(reason) => return Err(Failure::new(Class::Broken, reason)),
            Progress::TooLarge(reason) => return Err(Failure::new(Class::TooLarge, reason)),
            Progress::Text(_) | Progress::Reasoning(_) | Progress::Nothing => {}
        }
    }
}

#[cfg(test)]
#[path = "hearing_tests.rs"]
mod tests;
