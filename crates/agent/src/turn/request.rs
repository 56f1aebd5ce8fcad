//! The request of a model call: the model, the context, and the maximum length of the answer.

use std::collections::HashMap;
use std::sync::Arc;

use longhaul_context::{estimate, estimate_bytes, normalise};
use longhaul_journal::Error as JournalError;
use longhaul_memory::ReservedCall as _;
use longhaul_model::{Capabilities, Model, Purpose, Request};
use longhaul_protocol::{AttemptId, Hash, Item, ModelChanged, SessionRecord, ToolSchema};

use crate::Error;
use crate::compaction::plan::ContextLimits;
use crate::config::ModelSettings;
use crate::spend::Reservation;
use crate::turn::epoch::is_current_epoch;
use crate::worker::wait::WakeOn;
use crate::worker::{Worker, WorkerResult, WorkerStop};

/// A model call before it is made.
pub(crate) struct ModelCall {
    pub(crate) attempt: AttemptId,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) capabilities: Capabilities,
    pub(crate) request: Request,
    /// The estimated size of the prompt in tokens, not corrected by the provider's counts.
    pub(crate) estimated: u64,
}

/// Selects the model to call: the first of the chain at the beginning of a turn, or a newly chosen one at once.
/// Returns the record of the change, if the model changed.
pub(super) fn select_model(
    worker: &mut Worker,
    turn: Option<u64>,
    step: Option<u64>,
) -> Option<SessionRecord> {
    if turn.is_some() {
        worker.use_requested_model();
    }
    let is_new_choice = worker.has_new_model_choice();
    if turn.is_some() || is_new_choice {
        let chain = worker.model_chain();
        worker.models_mut().start_turn(chain);
    }
    if step.is_some() {
        worker.models_mut().start_step();
    }
    let to = worker.models().model().name().to_owned();
    let state = worker.state();
    let chosen = worker.models().is_chosen();
    // The first request has no model before it, but a choice has to be recorded.
    let from = state.model.clone().or_else(|| {
        let is_recorded = !chosen || state.chosen_model.as_ref() == Some(&to);
        (!is_recorded).then(|| worker.runtime().model_chain().primary().name().to_owned())
    });
    let from = from.filter(|from| *from != to)?;
    let reason = match chosen {
        true => "chosen for this session",
        false => "it is the configured model",
    };
    Some(SessionRecord::ModelChanged(ModelChanged { from, to, reason: reason.to_owned(), chosen }))
}

/// Builds the request for the next call of the selected model.
pub(super) async fn prepare_model_call(
    worker: &mut Worker,
    reservation: &Reservation,
) -> WorkerResult<ModelCall> {
    let model = worker.models().model();
    let capabilities = load_capabilities(worker, &model).await?.unwrap_or_default();
    let settings = &worker.runtime().config.settings.model;
    let window = known_window(&capabilities, settings);
    worker.models_mut().set_window(window);
    let mut request = build_request(worker).await?;
    if !capabilities.tools {
        request.tools = Arc::default();
    }
    let settings = &worker.runtime().config.settings.model;
    let client_limit = worker.state().turn.as_ref().and_then(|turn| turn.max_output).unwrap_or(u64::MAX);
    // The reservation may leave less room for the answer.
    let answer = worker.models().answer_tokens(settings, &capabilities).min(reservation.max_answer());
    request.max_output = Some(answer.min(client_limit));
    let answers_before = worker.state().answer_count.saturating_sub(request.finished_steps() as u64);
    request.purpose = Purpose::Step { answers_before: usize::try_from(answers_before).unwrap_or(usize::MAX) };
    let estimated = estimate(&request.system, &request.tools, &request.items);
    let attempt = reservation.permit().attempt();
    Ok(ModelCall { attempt, model, capabilities, request, estimated })
}

/// A model's context window in tokens, from its capabilities or from the config.
pub(crate) fn known_window(capabilities: &Capabilities, settings: &ModelSettings) -> Option<u64> {
    capabilities.window.map(|window| window.tokens).or(settings.context_window)
}

/// The context window of the current model. It is smaller than stated if its server has accepted only less.
pub(super) fn effective_window(worker: &Worker) -> Option<u64> {
    worker.policy().context.room.map(|room| room.window).or(worker.models().window())
}

/// Determines how much room the next model has, so that `decide` can compact the context before it is too large.
pub(crate) async fn check_context_room(worker: &mut Worker) -> WorkerResult<()> {
    // An open attempt or call is finished first.
    let is_between_steps = worker
        .state()
        .turn
        .as_ref()
        .is_none_or(|turn| turn.attempt.is_none() && turn.calls.iter().all(|call| call.result.is_some()));
    if !is_between_steps {
        return Ok(());
    }
    let starts_chain = worker.state().turn.is_none() || worker.has_new_model_choice();
    let model = if starts_chain { worker.model_chain().primary() } else { worker.models().model() };
    let Some(capabilities) = load_capabilities(worker, &model).await? else { return Ok(()) };
    let window = known_window(&capabilities, &worker.runtime().config.settings.model);
    worker.models_mut().set_window(window);
    let (state, settings) = (worker.state(), &worker.runtime().config.settings);
    let (is_idle, fixed) = (worker.policy().context.is_idle, fixed_tokens(worker, &capabilities));
    let space_with = |answer: u64| {
        let space = ContextLimits::new(state, model.name(), window, answer, fixed, &settings.context);
        ContextLimits { is_idle, ..space }
    };
    let base = worker.models().base_answer_tokens(&settings.model, &capabilities);
    // An answer that continues a truncated one may be longer, if the prompt still fits.
    let longer =
        if starts_chain { base } else { worker.models().answer_tokens(&settings.model, &capabilities) };
    let space = space_with(longer);
    let fits = space
        .room
        .is_none_or(|room| crate::compaction::plan::next_prompt_tokens(state, &space) <= room.usable());
    if longer <= base || fits {
        worker.set_context_room(space);
    } else {
        let space = space_with(base);
        worker.set_context_room(space);
        worker.models_mut().disable_longer_answers();
    }
    Ok(())
}

/// The capabilities of a model. `None` if the turn should end before its server has answered.
pub(super) async fn load_capabilities(
    worker: &mut Worker,
    model: &Arc<dyn Model>,
) -> WorkerResult<Option<Capabilities>> {
    let mut capabilities = model.capabilities();
    let capabilities = worker.wait_for(&mut capabilities, WakeOn::Cancel, None).await?.into_done()?;
    let refuses_tools = worker.models().refuses_tools();
    Ok(capabilities
        .map(|capabilities| Capabilities { tools: capabilities.tools && !refuses_tools, ..capabilities }))
}

/// The estimated tokens of the system prompt and the tools. If the open epoch began with others, those of the epoch.
pub(super) fn fixed_tokens(worker: &Worker, capabilities: &Capabilities) -> u64 {
    match &worker.state().epoch {
        Some(epoch) if !is_current_epoch(worker, epoch) => {
            let tools = if capabilities.tools { epoch.tools.bytes } else { 0 };
            estimate_bytes(epoch.system.bytes.saturating_add(tools))
        }
        _ => worker.toolset().fixed_tokens(capabilities),
    }
}

/// The epoch's system prompt and tools, then the whole context.
async fn build_request(worker: &Worker) -> WorkerResult<Request> {
    let failed = |reason| WorkerStop::Failed(Error::Worker { key: worker.key().to_owned(), reason });
    let Some(epoch) = &worker.state().epoch else {
        return Err(failed("the session has no context".to_owned()));
    };
    let items = normalise(&worker.state().items);
    let pictures = load_pictures(worker, &items).await?;
    if is_current_epoch(worker, epoch) {
        let (system, tools) = (worker.toolset().system_prompt(), worker.toolset().schemas());
        return Ok(Request { system, tools, items, pictures, ..Request::default() });
    }
    // A turn continues with the system prompt and tools that it began with, even if another version began it.
    let journal = &worker.runtime().journal;
    let system = journal.blob(epoch.system.hash).await?;
    let tools = journal.blob(epoch.tools.hash).await?;
    let tools: Vec<ToolSchema> = serde_json::from_slice(&tools)
        .map_err(|error| failed(format!("can't read the session's tools: {error}")))?;
    let system = Arc::from(String::from_utf8_lossy(&system));
    Ok(Request { system, tools: tools.into(), items, pictures, ..Request::default() })
}

/// The bytes of the pictures in these items. If one is missing, the codec tells the model.
async fn load_pictures(worker: &Worker, items: &[Arc<Item>]) -> WorkerResult<Arc<HashMap<Hash, Vec<u8>>>> {
    let mut pictures = HashMap::new();
    for item in items {
        let images = match &**item {
            Item::Image(image) => std::slice::from_ref(image),
            Item::ToolResult { images, .. } => images,
            _ => &[],
        };
        for image in images {
            match worker.runtime().journal.blob(image.data.hash).await {
                Ok(bytes) => drop(pictures.insert(image.data.hash, bytes.to_vec())),
                Err(JournalError::MissingBlob { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(Arc::new(pictures))
}
