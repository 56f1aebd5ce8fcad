//! Tasks of all sessions: list, show, kill.

use axum::Json;
use axum::extract::State;
use hyper::{Method, StatusCode};
use longhaul_agent::tasks::{TaskEntry, TaskRegistry, TaskReport};
use longhaul_protocol::TaskId;
use schemars::JsonSchema;
use serde::Deserialize;

use super::list::{List, ListOrder, ListQuery};
use super::path::PathParameters;
use crate::access::{Access, Scope};
use crate::body::{NoFields, OptionalJsonBody, Query};
use crate::problem::{ApiResult, Problem};
use crate::route::Route;
use crate::state::ServerState;

pub(crate) fn routes() -> Vec<Route> {
    let (read, act) = (Access::Token(Scope::Read), Access::Token(Scope::Act));
    vec![
        Route::new(Method::GET, "/api/tasks", read, "List tasks", list_tasks)
            .query::<TaskListQuery>()
            .answers::<List<TaskReport>>(
                StatusCode::OK,
                "Tasks, the oldest first unless the query says otherwise.",
            )
            .fails(StatusCode::NOT_FOUND, "There is no such session."),
        Route::new(Method::GET, "/api/tasks/{id}", read, "Show a task", show_task)
            .query::<TaskQuery>()
            .answers::<TaskReport>(StatusCode::OK, "The task as it is now."),
        Route::new(
            Method::POST,
            "/api/tasks/{id}/kill",
            act,
            "Kill a task with all its processes",
            kill_task,
        )
        .query::<TaskQuery>()
        .optional_body::<NoFields>()
        .fails(StatusCode::CONFLICT, "Another node has the task.")
        .answers::<TaskReport>(StatusCode::OK, "The task afterwards. One that had ended stays as it was."),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TaskListQuery {
    /// The key or id of a session. Then its old tasks are listed, too; else only those that have not expired.
    session: Option<String>,
    #[schemars(range(min = 1, max = 1000))]
    /// The most tasks to return, up to 1,000; 100 if absent.
    limit: Option<usize>,
    /// The task after which the list goes on: `next` of the page before.
    after: Option<String>,
    /// `newest`: the newest task first.
    order: Option<ListOrder>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskQuery {
    /// The key or id of the task's session. Needed only for a task that has expired.
    pub(super) session: Option<String>,
}

async fn list_tasks(
    State(state): State<ServerState>,
    Query(query): Query<TaskListQuery>,
) -> ApiResult<Json<List<TaskReport>>> {
    let registry = state.runtime().task_registry();
    let tasks = match &query.session {
        Some(key) => tasks_of(&state, &registry, key).await?,
        // The tasks of a session that can't be read are left out. `verify` tells about it.
        None => registry.all().await?.0,
    };
    let reports = tasks.iter().map(|task| report(&state, task)).collect();
    let page = ListQuery { limit: query.limit, after: query.after };
    List::page_in_order(reports, &page, query.order, |task: &TaskReport| task.task_id.to_string())
}

async fn show_task(
    State(state): State<ServerState>,
    PathParameters(id): PathParameters<String>,
    Query(query): Query<TaskQuery>,
) -> ApiResult<Json<TaskReport>> {
    let (_, task) = find_task(&state, &id, query.session.as_deref()).await?;
    Ok(Json(report(&state, &task)))
}

async fn kill_task(
    State(state): State<ServerState>,
    PathParameters(id): PathParameters<String>,
    Query(query): Query<TaskQuery>,
    _: OptionalJsonBody<NoFields>,
) -> ApiResult<Json<TaskReport>> {
    let (registry, mut task) = find_task(&state, &id, query.session.as_deref()).await?;
    task.now = registry.kill(&task).await?;
    Ok(Json(report(&state, &task)))
}

async fn tasks_of(state: &ServerState, registry: &TaskRegistry, key: &str) -> ApiResult<Vec<TaskEntry>> {
    let entry = state.session_entry(key).await?;
    let mut tasks = registry.of_session(&entry.key, entry.id).await?;
    tasks.sort_by_key(TaskEntry::id);
    Ok(tasks)
}

/// The task with this id.
pub(super) async fn find_task(
    state: &ServerState,
    id: &str,
    session: Option<&str>,
) -> ApiResult<(TaskRegistry, TaskEntry)> {
    let registry = state.runtime().task_registry();
    let found = match (id.parse::<TaskId>(), session) {
        (Err(_), _) => None,
        (Ok(id), None) => registry.with_id(id).await?,
        (Ok(id), Some(key)) => {
            tasks_of(state, &registry, key).await?.into_iter().find(|task| task.id() == id)
        }
    };
    match found {
        Some(task) => Ok((registry, task)),
        None => {
            let detail =
                "there is no such task, or it has expired; GET /api/tasks?session=KEY lists old ones";
            Err(Problem::not_found("no_such_task", detail))
        }
    }
}

/// A task for the client. A keeper's own files have the command as it was started.
fn report(state: &ServerState, task: &TaskEntry) -> TaskReport {
    let redact = |text: String| state.runtime().redactor().redact(&text).into_owned();
    let report = TaskReport::from(task);
    TaskReport { command: redact(report.command), description: redact(report.description), ..report }
}
