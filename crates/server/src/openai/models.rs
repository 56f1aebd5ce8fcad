//! `GET /v1/models`: the configured model, and those that the servers of this home offer.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::{Path, State};
use longhaul_agent::model::{Models, Provider};
use longhaul_protocol::ClientRequest;
use serde_json::{Value, json};

use super::error::{OpenaiError, OpenaiResult};
use crate::state::ServerState;

/// How long the list of a model server counts as current.
const LIST_LIFETIME: Duration = Duration::from_secs(60);

/// What model servers offered when they were last asked, by provider.
#[derive(Default)]
pub(crate) struct ServedModels(Mutex<HashMap<String, (Instant, Vec<String>)>>);

impl ServedModels {
    async fn of_provider(&self, models: &Models, provider: &Provider) -> Vec<String> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(&provider.name).filter(|(at, _)| at.elapsed() < LIST_LIFETIME).cloned();
        if let Some((_, known)) = known {
            return known;
        }
        let served = models.served_models(provider).await.unwrap_or_default();
        lock().insert(provider.name.clone(), (Instant::now(), served.clone()));
        served
    }
}

/// Whether the server of a provider can be asked: it runs on this machine, or its key is set.
fn is_usable(provider: &Provider) -> bool {
    let is_set = |variable: &String| std::env::var(variable).is_ok_and(|value| !value.trim().is_empty());
    provider.local || provider.key_env.iter().any(is_set)
}

/// The ids of all models that a request may name.
async fn model_ids(state: &ServerState) -> OpenaiResult<Vec<String>> {
    let (configured, _) = state.runtime().model().await;
    let models = state.runtime().models();
    let mut ids = vec![ClientRequest::CONFIGURED_MODEL.to_owned(), configured];
    for provider in models.providers().iter().filter(|provider| is_usable(provider)) {
        let served = state.served_models().of_provider(models, provider).await;
        ids.extend(served.iter().map(|model| format!("{}/{model}", provider.name)));
    }
    ids.dedup();
    Ok(ids)
}

/// Checks that there is the model that a request names, if it names one.
pub(crate) async fn check_model(state: &ServerState, model: Option<&str>) -> OpenaiResult<()> {
    let Some(model) = model.filter(|model| *model != ClientRequest::CONFIGURED_MODEL) else { return Ok(()) };
    let (configured, _) = state.runtime().model().await;
    if model == configured {
        return Ok(());
    }
    let provider = model.split_once('/').and_then(|(name, rest)| {
        Some((state.runtime().models().providers().get(name).filter(|provider| is_usable(provider))?, rest))
    });
    if let Some((provider, name)) = provider {
        let served = state.served_models().of_provider(state.runtime().models(), provider).await;
        if served.iter().any(|served| served == name) {
            return Ok(());
        }
    }
    Err(no_such_model(model))
}

fn no_such_model(model: &str) -> OpenaiError {
    let message = format!("the model {model:?} does not exist; GET /v1/models lists those that do");
    OpenaiError::not_found("model_not_found", message).about("model")
}

fn model_json(id: &str) -> Value {
    json!({"id": id, "object": "model", "created": 0, "owned_by": "longhaul"})
}

pub(crate) async fn list_models(State(state): State<ServerState>) -> OpenaiResult<Json<Value>> {
    let ids = model_ids(&state).await?;
    let data: Vec<Value> = ids.iter().map(|id| model_json(id)).collect();
    Ok(Json(json!({"object": "list", "data": data})))
}

pub(crate) async fn show_model(
    State(state): State<ServerState>,
    Path(id): Path<String>,
) -> OpenaiResult<Json<Value>> {
    check_model(&state, Some(&id)).await?;
    Ok(Json(model_json(&id)))
}
