//! Corrects the context window and the maximum answer length after a server refused a request for its size.

use longhaul_model::{CorrectedLimits, FailureClass, ModelFailure, RefusedSize};
use longhaul_protocol::{SessionRecord, Warning};

use crate::turn::request::{ModelCall, load_capabilities};
use crate::worker::{Worker, WorkerResult};

/// Learns the limits that a refusal states. `prompt` is the estimated size of the refused prompt in tokens.
pub(super) async fn correct_limits(
    worker: &mut Worker,
    call: &ModelCall,
    failure: &ModelFailure,
    prompt: u64,
) -> Option<CorrectedLimits> {
    let states_size = failure.class == FailureClass::TooLong || failure.stated.answer.is_some();
    if !states_size || !worker.models().may_correct_limits() {
        return None;
    }
    let size = RefusedSize { prompt, answer: call.request.max_output.unwrap_or_default() };
    let corrected = call.model.correct_limits(failure, size).await?;
    worker.models_mut().count_limit_correction();
    Some(corrected)
}

/// Whether the corrected limits make the next request smaller than the refused one: it asks for a shorter answer, or
/// the context is compacted first.
pub(super) async fn is_next_request_smaller(
    worker: &mut Worker,
    call: &ModelCall,
    prompt: u64,
) -> WorkerResult<bool> {
    let Some(capabilities) = load_capabilities(worker, &call.model).await? else { return Ok(true) };
    let window = capabilities.window.map(|window| window.tokens);
    worker.models_mut().set_window(window);
    let settings = &worker.runtime().config.settings.model;
    let answer = worker.models().base_answer_tokens(settings, &capabilities);
    let usable = window.map_or(u64::MAX, |window| window.saturating_sub(answer));
    Ok(Some(answer) < call.request.max_output || prompt > usable)
}

pub(super) fn limits_warning(call: &ModelCall, corrected: CorrectedLimits) -> SessionRecord {
    let name = call.model.name();
    let CorrectedLimits { window: (before, now), answer } = corrected;
    let text = match answer {
        Some(most) => {
            format!("{name} limits answers to {most} tokens; using that limit")
        }
        None => format!(
            "{name} accepts a context of {now} tokens, not {before}: the server refused more; using {now}; \
             to silence this, set model.context_window"
        ),
    };
    SessionRecord::Warning(Warning::new("limits_corrected", text))
}
