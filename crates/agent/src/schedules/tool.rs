//! `schedule`: the agent makes, lists and removes schedules whose runs go to its own session. So a run has the permission mode, the
//! scope and the limits of the session that made it, and never more. What it wrote is not a person's word (P8).

use async_trait::async_trait;
use longhaul_protocol::{CallId, Effect, SCHEDULE, ScheduleAuthor, ScheduleSpec, SessionId};
use longhaul_tools::{
    PreparedCall, Tool, ToolDefinition, ToolInvocation, ToolOutcome, parse_arguments, schema_of,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::registry::Schedules;
use super::report::ScheduleReport;
use crate::{Error, Result};

/// What schedule takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    action: ScheduleAction,
    name: Option<String>,
    /// What to do then.
    prompt: Option<String>,
    /// Five fields.
    cron: Option<String>,
    /// `30m`
    every: Option<String>,
    /// `2026-12-24T18:00`
    at: Option<String>,
    /// `Europe/Berlin`
    zone: Option<String>,
    /// A run may find nothing to do. Such runs are dropped from your context.
    heartbeat: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ScheduleAction {
    Add,
    List,
    Remove,
}

pub(crate) struct ScheduleTool {
    definition: ToolDefinition,
    schedules: Schedules,
}

impl ScheduleTool {
    pub(crate) fn new(schedules: Schedules) -> Self {
        Self { definition: definition(), schedules }
    }
}

pub(crate) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: SCHEDULE.into(),
        description: "Make, list or remove schedules: when you are asked to do something in this session."
            .into(),
        effect: Effect::Idempotent,
        schema: schema_of::<Arguments>(),
        limits: &[
            "The user is asked before a schedule is added.",
            "`add` needs `name`, `prompt` and one of `cron`, `every` and `at`. `every` is at least `60s`. Without `zone`, times are those of the system's zone.",
            "At most 10 schedules for each session. You can remove only those that you made here.",
        ],
        example: r#"{"action": "add", "name": "build", "cron": "0 7 * * 1-5", "prompt": "Look at the failing builds and say what broke."}"#,
    }
}

#[async_trait]
impl Tool for ScheduleTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn prepare(&self, call: &ToolInvocation) -> std::result::Result<PreparedCall, ToolOutcome> {
        let arguments: Arguments = parse_arguments(&self.definition, &call.arguments)?;
        let caution = match arguments.action {
            ScheduleAction::Add => {
                Some("the agent would start by itself at the times of the schedule".to_owned())
            }
            ScheduleAction::List | ScheduleAction::Remove => None,
        };
        let (schedules, session, id) = (self.schedules.clone(), call.session, call.id);
        let prepared = PreparedCall::new(move |_stop| async move {
            match carry_out(&schedules, session, id, arguments).await {
                Ok(outcome) => outcome,
                Err(error) => ToolOutcome::error(error.to_string()),
            }
        });
        Ok(prepared.with_caution(caution))
    }
}

async fn carry_out(
    schedules: &Schedules,
    session: SessionId,
    call: CallId,
    arguments: Arguments,
) -> Result<ToolOutcome> {
    let Arguments { action, name, prompt, cron, every, at, zone, heartbeat } = arguments;
    Ok(match (action, name, prompt) {
        (ScheduleAction::List, ..) => {
            let own = schedules.list_of_agent(session).await?;
            let lines: Vec<String> = own.iter().map(describe).collect();
            ToolOutcome::ok(if lines.is_empty() { "no schedules".to_owned() } else { lines.join("\n") })
        }
        (ScheduleAction::Add, Some(name), Some(prompt)) => {
            let (target, heartbeat) = (schedules.session_key(session).await?, heartbeat.unwrap_or(false));
            let spec = ScheduleSpec {
                cron,
                every,
                at,
                zone,
                session: Some(target),
                heartbeat,
                ..ScheduleSpec::new(name, prompt)
            };
            let report = schedules.add(spec, ScheduleAuthor::Agent { session, call }).await?;
            ToolOutcome::ok(format!("added: {}", describe(&report)))
        }
        (ScheduleAction::Add, ..) => ToolOutcome::error("`add` needs `name` and `prompt`"),
        (ScheduleAction::Remove, Some(name), _) => {
            let own = schedules.list_of_agent(session).await?;
            if !own.iter().any(|report| report.spec.name == name) {
                let known = own.iter().map(|report| report.spec.name.as_str()).collect::<Vec<_>>().join(", ");
                let known = if known.is_empty() {
                    "you made none here".to_owned()
                } else {
                    format!("you made {known}")
                };
                return Err(Error::NoSuchSchedule { name, known });
            }
            schedules.delete(&name).await?;
            ToolOutcome::ok(format!("removed {name}"))
        }
        (ScheduleAction::Remove, None, _) => ToolOutcome::error("`remove` needs `name`"),
    })
}

fn describe(report: &ScheduleReport) -> String {
    let spec = &report.spec;
    let times = [("cron", &spec.cron), ("every", &spec.every), ("at", &spec.at)];
    let times =
        times.iter().find_map(|(key, value)| Some(format!("{key} {}", value.as_ref()?))).unwrap_or_default();
    let zone = spec.zone.as_ref().map(|zone| format!(" ({zone})")).unwrap_or_default();
    let next = report.next.as_ref().map(|next| format!(", next {next}")).unwrap_or_default();
    format!("{}: {times}{zone}, {}{next}", spec.name, report.status.as_str())
}
