//! Providers and models.

use axum::Json;
use axum::extract::State;
use hyper::{Method, StatusCode};
use longhaul_agent::model_list::{ModelInUse, ProviderModels, ProviderReport, provider_models};
use schemars::JsonSchema;
use serde::Serialize;

use super::list::{List, ListQuery};
use super::path::PathParameters;
use crate::access::{Access, Scope};
use crate::body::Query;
use crate::problem::{ApiResult, Problem};
use crate::route::Route;
use crate::state::ServerState;

pub(crate) fn routes() -> Vec<Route> {
    let read = Access::Token(Scope::Read);
    vec![
        Route::new(Method::GET, "/api/models", read, "List providers, and the model in use", list_providers)
            .query::<ListQuery>()
            .answers::<ModelList>(StatusCode::OK, "Providers by name."),
        Route::new(
            Method::GET,
            "/api/models/{provider}",
            read,
            "Show the models of a provider",
            show_provider,
        )
        .answers::<ProviderModels>(StatusCode::OK, "What is known about its models."),
    ]
}

#[derive(Debug, Serialize, JsonSchema)]
struct ModelList {
    #[serde(flatten)]
    providers: List<ProviderReport>,
    /// The model that sessions without one of their own use.
    used: ModelInUse,
}

async fn list_providers(
    State(state): State<ServerState>,
    Query(query): Query<ListQuery>,
) -> ApiResult<Json<ModelList>> {
    let config = state.runtime().config();
    let models = state.runtime().models();
    let mut providers: Vec<ProviderReport> = models.providers().iter().map(ProviderReport::from).collect();
    providers.sort_by(|one, other| one.name.cmp(&other.name));
    let Json(providers) = List::page(providers, &query, |provider: &ProviderReport| provider.name.clone())?;
    let (name, _) = state.runtime().model().await;
    let reason = match name == config.settings.model.name {
        true => format!("set by {}", config.set_by("model.name")),
        false => "chosen by this process".to_owned(),
    };
    Ok(Json(ModelList { providers, used: ModelInUse { name, reason } }))
}

async fn show_provider(
    State(state): State<ServerState>,
    PathParameters(name): PathParameters<String>,
) -> ApiResult<Json<ProviderModels>> {
    let models = state.runtime().models();
    let provider = models.providers().get(&name).ok_or_else(|| {
        let detail = format!("there is no provider {name:?}; GET /api/models lists them");
        Problem::not_found("no_such_provider", detail)
    })?;
    Ok(Json(provider_models(models, provider).await))
}
