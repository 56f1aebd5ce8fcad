//! Schedules: list, make, change, pause, resume, run, delete.

use axum::Json;
use axum::extract::State;
use hyper::{Method, StatusCode};
use longhaul_agent::schedules::ScheduleReport;
use longhaul_protocol::{MissedPolicy, OverlapPolicy, ScheduleAuthor, ScheduleSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use super::list::{List, ListQuery};
use super::path::PathParameters;
use crate::access::{Access, Scope};
use crate::body::{JsonBody, NoFields, OptionalJsonBody, Query};
use crate::problem::{ApiResult, Problem};
use crate::route::Route;
use crate::state::ServerState;

const ONE: &str = "/api/schedules/{name}";
const IN_CONFIG: &str = "The schedule is in the config, and is changed there.";

pub(crate) fn routes() -> Vec<Route> {
    let (read, admin) = (Access::Token(Scope::Read), Access::Token(Scope::Admin));
    vec![
        Route::new(Method::GET, "/api/schedules", read, "List schedules", list)
            .query::<ListQuery>()
            .answers::<List<ScheduleReport>>(StatusCode::OK, "Schedules by name."),
        Route::new(Method::POST, "/api/schedules", admin, "Make a schedule", add)
            .body::<NewSchedule>()
            .answers::<ScheduleReport>(StatusCode::CREATED, "The schedule is made.")
            .fails(StatusCode::CONFLICT, "There is a schedule with this name."),
        Route::new(Method::GET, ONE, read, "Show a schedule", show)
            .answers::<ScheduleReport>(StatusCode::OK, "The schedule."),
        Route::new(Method::PUT, ONE, admin, "Change a schedule", change)
            .body::<ChangedSchedule>()
            .answers::<ScheduleReport>(StatusCode::OK, "The schedule is changed.")
            .fails(StatusCode::CONFLICT, IN_CONFIG),
        Route::new(Method::DELETE, ONE, admin, "Delete a schedule", delete)
            .answers_empty(StatusCode::NO_CONTENT, "The schedule is deleted. A run that has begun goes on.")
            .fails(StatusCode::CONFLICT, IN_CONFIG),
        Route::new(Method::POST, "/api/schedules/{name}/pause", admin, "Pause a schedule", pause)
            .optional_body::<NoFields>()
            .answers::<ScheduleReport>(StatusCode::OK, "The schedule is paused."),
        Route::new(Method::POST, "/api/schedules/{name}/resume", admin, "Resume a schedule", resume)
            .optional_body::<NoFields>()
            .answers::<ScheduleReport>(StatusCode::OK, "The schedule goes on with its next time."),
        Route::new(Method::POST, "/api/schedules/{name}/run", admin, "Run a schedule now", run)
            .optional_body::<NoFields>()
            .answers::<ScheduleReport>(
                StatusCode::ACCEPTED,
                "It runs now, or as soon as its present run has ended.",
            ),
    ]
}

/// A new schedule.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewSchedule {
    /// Name, unique in the home: letters, digits, `-`, `_` and `.`.
    name: String,
    #[serde(flatten)]
    fields: ScheduleFields,
}

/// A schedule as it should be. Its name stays.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ChangedSchedule {
    /// The name in the path, or absent.
    name: Option<String>,
    #[serde(flatten)]
    fields: ScheduleFields,
}

/// What a schedule has beside its name.
#[derive(Debug, Deserialize, JsonSchema)]
struct ScheduleFields {
    /// When it runs: five fields (minute, hour, day, month, weekday). Or `every`, or `at`.
    cron: Option<String>,
    /// Time between two runs, such as `30m`.
    every: Option<String>,
    /// The time of the only run, such as `2026-12-24T18:00`.
    at: Option<String>,
    /// Time zone, such as `Europe/Berlin`; that of the server if absent.
    zone: Option<String>,
    /// Key of the session that the runs go to. If absent, each run has a session of its own.
    session: Option<String>,
    /// Folder that a new session works in; the server's if absent.
    work_dir: Option<String>,
    /// What the agent is asked to do.
    prompt: String,
    /// Which runs are made up for after an outage; `latest` if absent.
    missed: Option<MissedPolicy>,
    /// What a run does while the one before it goes on; `queue` if absent.
    overlap: Option<OverlapPolicy>,
    /// How late a run may still start; `1h` if absent.
    grace: Option<String>,
    /// Longest delay of the runs; `0s` if absent.
    jitter: Option<String>,
    /// US dollars per run; 0 for no limit.
    #[schemars(range(min = 0.0))]
    cost_per_run: Option<f64>,
    /// Failures in a row after which it pauses, 0 for never; 5 if absent.
    max_failures: Option<u32>,
    /// Whether a run may end with "nothing to do" and then doesn't stay in the context; false if absent.
    heartbeat: Option<bool>,
    /// Whether it runs; true if absent.
    enabled: Option<bool>,
}

impl ScheduleFields {
    fn into_spec(self, name: String) -> ScheduleSpec {
        let spec = ScheduleSpec::new(name, self.prompt);
        ScheduleSpec {
            cron: self.cron,
            every: self.every,
            at: self.at,
            zone: self.zone,
            session: self.session,
            work_dir: self.work_dir,
            missed: self.missed.unwrap_or(spec.missed),
            overlap: self.overlap.unwrap_or(spec.overlap),
            grace: self.grace.unwrap_or(spec.grace),
            jitter: self.jitter.unwrap_or(spec.jitter),
            cost_per_run: self.cost_per_run.unwrap_or(spec.cost_per_run),
            max_failures: self.max_failures.unwrap_or(spec.max_failures),
            heartbeat: self.heartbeat.unwrap_or(spec.heartbeat),
            enabled: self.enabled.unwrap_or(spec.enabled),
            name: spec.name,
            prompt: spec.prompt,
        }
    }
}

async fn list(
    State(state): State<ServerState>,
    Query(query): Query<ListQuery>,
) -> ApiResult<Json<List<ScheduleReport>>> {
    let reports = state.runtime().schedules().list().await?;
    List::page(reports, &query, |report: &ScheduleReport| report.spec.name.clone())
}

async fn add(
    State(state): State<ServerState>,
    JsonBody(new): JsonBody<NewSchedule>,
) -> ApiResult<(StatusCode, Json<ScheduleReport>)> {
    let spec = new.fields.into_spec(new.name);
    let report = state.runtime().schedules().add(spec, ScheduleAuthor::Person).await?;
    Ok((StatusCode::CREATED, Json(report)))
}

async fn show(
    State(state): State<ServerState>,
    PathParameters(name): PathParameters<String>,
) -> ApiResult<Json<ScheduleReport>> {
    Ok(Json(state.runtime().schedules().show(&name).await?))
}

async fn change(
    State(state): State<ServerState>,
    PathParameters(name): PathParameters<String>,
    JsonBody(changed): JsonBody<ChangedSchedule>,
) -> ApiResult<Json<ScheduleReport>> {
    if changed.name.is_some_and(|other| other != name) {
        let detail =
            format!("the name of {name:?} can't be changed; make another schedule and delete this one");
        return Err(Problem::bad_request("invalid_body", detail));
    }
    let spec = changed.fields.into_spec(name.clone());
    Ok(Json(state.runtime().schedules().change(&name, spec).await?))
}

async fn delete(
    State(state): State<ServerState>,
    PathParameters(name): PathParameters<String>,
) -> ApiResult<StatusCode> {
    state.runtime().schedules().delete(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn pause(
    State(state): State<ServerState>,
    PathParameters(name): PathParameters<String>,
    _: OptionalJsonBody<NoFields>,
) -> ApiResult<Json<ScheduleReport>> {
    Ok(Json(state.runtime().schedules().pause(&name).await?))
}

async fn resume(
    State(state): State<ServerState>,
    PathParameters(name): PathParameters<String>,
    _: OptionalJsonBody<NoFields>,
) -> ApiResult<Json<ScheduleReport>> {
    Ok(Json(state.runtime().schedules().resume(&name).await?))
}

async fn run(
    State(state): State<ServerState>,
    PathParameters(name): PathParameters<String>,
    _: OptionalJsonBody<NoFields>,
) -> ApiResult<(StatusCode, Json<ScheduleReport>)> {
    Ok((StatusCode::ACCEPTED, Json(state.runtime().schedules().run(&name).await?)))
}
