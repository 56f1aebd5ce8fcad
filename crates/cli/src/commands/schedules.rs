//! `longhaul schedules`: what the agent does by itself, and when.

use std::sync::Arc;

use longhaul_agent::schedules::{ScheduleReport, Schedules};
use longhaul_agent::{Error, redactor};
use longhaul_journal::Journal;
use longhaul_protocol::{At, ScheduleAuthor, ScheduleSpec};

use crate::args::{GlobalArgs, ScheduleAddOptions, SchedulesCommand};
use crate::input_text::read_prompt;
use crate::output::{format_moment, named, note, print, sanitize, truncate};
use crate::{bad_usage, config, exit};

/// Characters of a prompt in the list.
const PROMPT_CHARS: usize = 60;

pub(crate) async fn run(
    globals: &GlobalArgs,
    command: Option<SchedulesCommand>,
    as_json: bool,
) -> anyhow::Result<u8> {
    let is_add = matches!(command, Some(SchedulesCommand::Add(_)));
    if globals.session.is_some() && !is_add {
        return Err(bad_usage("only `longhaul schedules add` takes -s"));
    }
    let journal = globals.open_or_create_journal().await?;
    let done = run_in(globals, journal.clone(), command, as_json).await;
    journal.close().await;
    done
}

async fn run_in(
    globals: &GlobalArgs,
    journal: Arc<dyn Journal>,
    command: Option<SchedulesCommand>,
    as_json: bool,
) -> anyhow::Result<u8> {
    let config = config::load(globals)?;
    let schedules = Schedules::new(journal, Arc::new(redactor(&config)?), &config.settings.schedule);
    match command.unwrap_or(SchedulesCommand::List { json: as_json }) {
        SchedulesCommand::List { json } => list(&schedules, json || as_json).await?,
        SchedulesCommand::Show { name, json } => {
            let report = schedules.show(&name).await.map_err(usage_error)?;
            print(json, || &report, || describe(&report))?;
        }
        SchedulesCommand::Add(options) => add(globals, &schedules, *options).await?,
        SchedulesCommand::Pause { name } => {
            schedules.pause(&name).await.map_err(usage_error)?;
            note(format!("paused {name}; `longhaul schedules resume {name}` starts it again"));
        }
        SchedulesCommand::Resume { name } => {
            let report = schedules.resume(&name).await.map_err(usage_error)?;
            note(format!("resumed {name}; {}", next_run(&report)));
            hint_without_host(&schedules).await?;
        }
        SchedulesCommand::Run { name } => {
            schedules.run(&name).await.map_err(usage_error)?;
            note(format!("{name} runs now, or as soon as its present run has ended"));
            hint_without_host(&schedules).await?;
        }
        SchedulesCommand::Delete { name } => {
            schedules.delete(&name).await.map_err(usage_error)?;
            note(format!("deleted {name}"));
        }
    }
    Ok(exit::DONE)
}

async fn add(globals: &GlobalArgs, schedules: &Schedules, options: ScheduleAddOptions) -> anyhow::Result<()> {
    let folder = globals.work_dir()?;
    let as_text = |folder: std::path::PathBuf| {
        folder
            .into_os_string()
            .into_string()
            .map_err(|_| bad_usage("the name of the folder is not valid UTF-8"))
    };
    let spec = ScheduleSpec {
        cron: options.cron,
        every: options.every,
        at: options.at,
        zone: options.zone,
        session: globals.session.clone(),
        work_dir: folder.map(as_text).transpose()?,
        missed: options.missed.into(),
        overlap: options.overlap.into(),
        grace: options.grace,
        jitter: options.jitter,
        cost_per_run: options.cost_per_run,
        max_failures: options.max_failures,
        heartbeat: options.heartbeat,
        ..ScheduleSpec::new(options.name, read_prompt(options.prompt)?)
    };
    let report = schedules.add(spec, ScheduleAuthor::Person).await.map_err(usage_error)?;
    let summary = || vec![format!("added {}; {}", report.spec.name, next_run(&report))];
    print(options.json, || &report, summary)?;
    hint_without_host(schedules).await
}

async fn list(schedules: &Schedules, as_json: bool) -> anyhow::Result<()> {
    let reports = schedules.list().await?;
    if reports.is_empty() && !as_json {
        note("no schedules; make one with `longhaul schedules add NAME --every 1h PROMPT`");
    }
    print(as_json, || &reports, || reports.iter().map(row).collect())?;
    if reports.iter().any(|report| report.late_s.is_some()) {
        hint_without_host(schedules).await?;
    }
    Ok(())
}

fn row(report: &ScheduleReport) -> String {
    let prompt = truncate(&sanitize(&report.spec.prompt).replace('\n', " "), PROMPT_CHARS);
    let (name, times) = (&report.spec.name, times(&report.spec));
    format!("{name:<16} {:<8} {times:<24} {:<26} {prompt}", report.status.as_str(), next_run(report))
}

/// The schedule's times, as they were written.
fn times(spec: &ScheduleSpec) -> String {
    match (&spec.cron, &spec.every, &spec.at) {
        (Some(cron), ..) => format!("cron {cron}"),
        (_, Some(every), _) => format!("every {every}"),
        (.., at) => format!("at {}", at.as_deref().unwrap_or_default()),
    }
}

fn next_run(report: &ScheduleReport) -> String {
    match &report.next {
        Some(next) => format!("next {}", local_time(next)),
        None => report.status.as_str().to_owned(),
    }
}

/// A time of a report, which is in UTC, in the user's time zone.
fn local_time(time: &str) -> String {
    time.parse::<At>().map_or_else(|_| time.to_owned(), format_moment)
}

fn describe(report: &ScheduleReport) -> Vec<String> {
    let spec = &report.spec;
    let mut lines = vec![
        named("name", &spec.name),
        named("status", report.status.as_str()),
        named("times", times(spec)),
        named("made by", &report.source),
    ];
    let optional = [
        ("reason", report.reason.clone()),
        ("zone", spec.zone.clone()),
        ("next", report.next.as_deref().map(local_time)),
        ("session", spec.session.clone()),
        ("folder", spec.work_dir.clone()),
        ("running", report.running.clone()),
        ("question", report.question.clone()),
        ("heartbeat", spec.heartbeat.then(|| "yes".to_owned())),
    ];
    lines.extend(optional.into_iter().filter_map(|(name, value)| Some(named(name, sanitize(&value?)))));
    if let Some(last) = &report.last {
        let cost = last.cost.map(|cost| format!(", ${cost:.4}")).unwrap_or_default();
        let error = last.error.as_ref().map(|error| format!(": {}", sanitize(error))).unwrap_or_default();
        let outcome = format!("{:?}", last.outcome).to_lowercase();
        lines.push(named(
            "last",
            format!("{} in {}, {outcome}{error}{cost}", local_time(&last.slot), sanitize(&last.session)),
        ));
    }
    lines.push(named("prompt", sanitize(&spec.prompt)));
    lines
}

async fn hint_without_host(schedules: &Schedules) -> anyhow::Result<()> {
    if !schedules.is_hosted().await? {
        note("no process runs schedules in this home; start `longhaul serve`");
    }
    Ok(())
}

/// An error that another command line fixes.
fn usage_error(error: Error) -> anyhow::Error {
    match error {
        Error::Schedule { .. }
        | Error::NoSuchSchedule { .. }
        | Error::ScheduleExists { .. }
        | Error::ScheduleInConfig { .. } => bad_usage(error.to_string()),
        error => error.into(),
    }
}
