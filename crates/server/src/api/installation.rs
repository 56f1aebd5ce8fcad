//! Status, config, skills and checks of this installation.

use axum::Json;
use axum::extract::State;
use hyper::{Method, StatusCode};
use longhaul_agent::LimitStatus;
use longhaul_agent::config::LimitSettings;
use longhaul_agent::skills::{SkillReport, find_skills};
use longhaul_doctor::{Finding, check_runtime};
use longhaul_protocol::PrintablePath;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::list::{List, ListQuery};
use crate::access::{Access, Scope};
use crate::body::Query;
use crate::problem::ApiResult;
use crate::route::Route;
use crate::state::ServerState;

pub(crate) fn routes() -> Vec<Route> {
    let (read, admin) = (Access::Token(Scope::Read), Access::Token(Scope::Admin));
    vec![
        Route::new(Method::GET, "/api/status", read, "The status of this process", show_status)
            .answers::<ProcessStatus>(StatusCode::OK, "The status."),
        Route::new(Method::GET, "/api/config", admin, "List the config with its sources", show_config)
            .query::<ListQuery>()
            .answers::<List<ConfigSetting>>(StatusCode::OK, "Keys by name."),
        Route::new(Method::GET, "/api/doctor", read, "Check this installation", run_checks)
            .answers::<CheckReport>(StatusCode::OK, "What was found, and what to do about it."),
        Route::new(Method::GET, "/api/skills", read, "List the skills", list_skills)
            .query::<ListQuery>()
            .answers::<List<SkillReport>>(
                StatusCode::OK,
                "Skills of sessions that name no folder, by name; also those that are not used, with the reason.",
            ),
    ]
}

#[derive(Debug, Serialize, JsonSchema)]
struct ProcessStatus {
    version: &'static str,
    pid: u32,
    /// The folder with all data.
    home: String,
    /// The folder of sessions that name none.
    work_dir: String,
    model: ModelStatus,
    host: HostStatus,
    idle_jobs: IdleJobs,
    /// Why commands can't be confined to the scope on this system; null if they can.
    sandbox_missing: Option<String>,
    /// The configured limits on turns and spending; 0 is no limit.
    limits: LimitSettings,
    /// What is left of the limits on spending for a day, a month and in all. Those that are not set are left out.
    limits_left: Vec<LimitStatus>,
}

/// The model of sessions without one of their own.
#[derive(Debug, Serialize, JsonSchema)]
struct ModelStatus {
    name: String,
    /// In tokens.
    context_window: Option<u64>,
    /// Where that figure comes from.
    context_window_source: Option<String>,
}

/// Which process runs the sessions that no other process holds.
#[derive(Debug, Serialize, JsonSchema)]
struct HostStatus {
    /// Whether this process does, or will when the other one has ended.
    hosting: bool,
    /// The other process that does.
    other: Option<String>,
}

/// Compaction, memory, retention and cleanup while no turn runs.
#[derive(Debug, Serialize, JsonSchema)]
struct IdleJobs {
    running: bool,
    last_check: Option<String>,
    /// Why the last check failed.
    trouble: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ConfigSetting {
    /// As `section.key`.
    key: String,
    /// Any JSON value; null if the key is not set and has no default.
    value: Value,
    /// `default`, `FILE:LINE`, `environment NAME` or the flag.
    source: String,
    /// Whether this version uses it.
    used: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CheckReport {
    /// Whether all is well.
    ok: bool,
    #[serde(flatten)]
    findings: List<Finding>,
}

async fn show_status(State(state): State<ServerState>) -> ApiResult<Json<ProcessStatus>> {
    let runtime = state.runtime();
    let config = runtime.config();
    let (name, capabilities) = runtime.model().await;
    let idle = runtime.idle_status();
    Ok(Json(ProcessStatus {
        version: env!("CARGO_PKG_VERSION"),
        pid: std::process::id(),
        home: config.home.printable().to_string(),
        work_dir: config.work_dir.printable().to_string(),
        model: ModelStatus {
            name,
            context_window: capabilities.window.map(|window| window.tokens),
            context_window_source: capabilities.window.map(|window| window.source.to_string()),
        },
        host: HostStatus {
            hosting: runtime.is_hosting(),
            other: runtime.other_host().await?.map(|holder| holder.to_string()),
        },
        idle_jobs: IdleJobs {
            running: idle.running,
            last_check: idle.last_check.map(|at| at.to_string()),
            trouble: idle.trouble,
        },
        sandbox_missing: runtime.not_enforced().await,
        limits: config.settings.limits.clone(),
        limits_left: runtime.limit_status(None, None).await?,
    }))
}

async fn show_config(
    State(state): State<ServerState>,
    Query(query): Query<ListQuery>,
) -> ApiResult<Json<List<ConfigSetting>>> {
    let runtime = state.runtime();
    let setting = |shown: longhaul_agent::config::ResolvedSetting| ConfigSetting {
        key: shown.key,
        value: redacted(shown.value, &|text| runtime.redactor().redact(text).into_owned()),
        source: shown.source,
        used: shown.used,
    };
    let mut settings: Vec<ConfigSetting> = runtime.config().keys().into_iter().map(setting).collect();
    settings.sort_by(|one, other| one.key.cmp(&other.key));
    List::page(settings, &query, |setting: &ConfigSetting| setting.key.clone())
}

async fn list_skills(
    State(state): State<ServerState>,
    Query(query): Query<ListQuery>,
) -> ApiResult<Json<List<SkillReport>>> {
    let config = state.runtime().config().clone();
    let search = move || find_skills(&config, &config.work_dir);
    let library = tokio::task::spawn_blocking(search).await.unwrap_or_default();
    let redact = |text: &str| state.runtime().redactor().redact(text).into_owned();
    let reports = library.skills.iter().map(|skill| SkillReport::from(skill).redacted(redact));
    let mut reports: Vec<SkillReport> = reports.collect();
    reports.sort_by_key(SkillReport::cursor);
    List::page(reports, &query, SkillReport::cursor)
}

/// A value without secrets in any of its texts.
fn redacted(value: Value, redact: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(redact(&text)),
        Value::Array(values) => values.into_iter().map(|value| redacted(value, redact)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, redacted(value, redact))).collect()
        }
        value => value,
    }
}

async fn run_checks(State(state): State<ServerState>) -> ApiResult<Json<CheckReport>> {
    let redact = |text: String| state.runtime().redactor().redact(&text).into_owned();
    let findings: Vec<Finding> = check_runtime(state.runtime())
        .await
        .into_iter()
        .map(|finding| Finding { found: redact(finding.found), ..finding })
        .collect();
    let ok = findings.iter().all(|finding| finding.ok);
    Ok(Json(CheckReport { ok, findings: List { items: findings, next: None } }))
}
