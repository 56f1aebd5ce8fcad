//! `GET /v1/models`: the configured model, and those that the servers of this home and of its config offer.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::{Path, State};
use longhaul_agent::model::{Models, Provider};
use longhaul_agent::model_list::reachable_providers;
use longhaul_journal::SessionEntry;
use longhaul_protocol::ClientRequest;
use serde_json::{Value, json};

use super::error::{OpenaiError, OpenaiResult};
use crate::access::{Caller, Scope};
use crate::state::ServerState;

/// How long the list of a model server counts as current.
const LIST_LIFETIME: Duration = Duration::from_secs(60);

/// What model servers offered when they last answered, by provider.
#[derive(Default)]
pub(crate) struct ServedModels(Mutex<HashMap<String, Arc<ServedList>>>);

/// The list of one server, and when it came. Locked while the server is asked, so that requests that come at once ask once.
type ServedList = tokio::sync::Mutex<Option<(Instant, Vec<String>)>>;

impl ServedModels {
    /// `None` if the server does not answer. The next request asks again.
    async fn of_provider(&self, models: &Models, provider: &Provider) -> Option<Vec<String>> {
        let list = {
            let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(lists.entry(provider.name.clone()).or_default())
        };
        let mut list = list.lock().await;
        if let Some((_, known)) = list.as_ref().filter(|(at, _)| at.elapsed() < LIST_LIFETIME) {
            return Some(known.clone());
        }
        let served = models.served_models(provider).await?;
        *list = Some((Instant::now(), served.clone()));
        Some(served)
    }
}

/// The ids of all models that a request may name.
async fn model_ids(state: &ServerState) -> OpenaiResult<Vec<String>> {
    let (configured, _) = state.runtime().model().await;
    let models = state.runtime().models();
    let mut ids = vec![ClientRequest::CONFIGURED_MODEL.to_owned(), configured];
    for provider in reachable_providers(models, state.runtime().config()) {
        let served = state.served_models().of_provider(models, &provider).await.unwrap_or_default();
        ids.extend(served.iter().map(|model| format!("{}/{model}", provider.name)));
    }
    let mut listed = HashSet::new();
    ids.retain(|id| listed.insert(id.clone()));
    Ok(ids)
}

/// Checks that there is the model that a request names, if it names one.
pub(crate) async fn check_model(state: &ServerState, model: Option<&str>) -> OpenaiResult<()> {
    let Some(model) = model.filter(|model| *model != ClientRequest::CONFIGURED_MODEL) else { return Ok(()) };
    let (configured, _) = state.runtime().model().await;
    if model == configured {
        return Ok(());
    }
    let models = state.runtime().models();
    let Some((provider, name)) = model.split_once('/') else { return Err(no_such_model(model)) };
    let mut reachable = reachable_providers(models, state.runtime().config()).into_iter();
    let Some(provider) = reachable.find(|reachable| reachable.name == provider) else {
        return Err(no_such_model(model));
    };
    match state.served_models().of_provider(models, &provider).await {
        Some(served) if served.iter().any(|served| served == name) => Ok(()),
        Some(_) => Err(no_such_model(model)),
        None => Err(OpenaiError::model_server_unreachable(&provider.name)),
    }
}

/// Checks that a caller may use this model: the configured one, or the one that the session has. Any other is a choice that
/// holds for everybody, and may have no price for a limit to count.
pub(crate) async fn check_model_choice(
    state: &ServerState,
    caller: &Caller,
    model: Option<&str>,
    session: Option<&SessionEntry>,
) -> OpenaiResult<()> {
    let Some(model) = model.filter(|model| *model != ClientRequest::CONFIGURED_MODEL) else { return Ok(()) };
    let runtime = state.runtime();
    if caller.scope >= Scope::Admin || model == runtime.model().await.0 {
        return Ok(());
    }
    if let Some(SessionEntry { key, .. }) = session {
        runtime.restore_model(key, &runtime.session(key).await?.state().await?);
        if model == runtime.model_of(key).await.0 {
            return Ok(());
        }
    }
    Ok(caller.require(Scope::Admin, "choose a model")?)
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
