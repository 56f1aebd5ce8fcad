//! W3: are the schedules run on time, and can all of them run?

use std::path::Path;
use std::sync::Arc;

use longhaul_agent::config::Sources;
use longhaul_agent::schedules::{ScheduleReport, ScheduleStatus, Schedules};
use longhaul_agent::{Config, JournalPlace, redactor};
use longhaul_journal::Home;
use longhaul_transcript::{format_count, format_duration, shell_quoted, truncate};

use super::Finding;

/// Characters of a question that a run waits with.
const QUESTION_CHARS: usize = 80;

/// Checks the schedules of a home from outside.
pub(super) async fn check_home(folder: &Path, sources: &Sources, config: &Config) -> Vec<Finding> {
    // What keeps the journal from being opened is reported by its own check.
    let (Ok(home), Ok(place)) = (Home::existing(folder), JournalPlace::of_home(folder, sources)) else {
        return vec![];
    };
    if place.is_file() && !home.has_journal().unwrap_or(false) {
        return vec![];
    }
    let (Ok(journal), Ok(redactor)) = (place.open(&home).await, redactor(config)) else { return vec![] };
    let schedules = Schedules::new(journal.clone(), Arc::new(redactor), &config.settings.schedule);
    let findings = check(&schedules).await;
    journal.close().await;
    findings
}

pub(super) async fn check(schedules: &Schedules) -> Vec<Finding> {
    let reports = match schedules.list().await {
        Ok(reports) => reports,
        Err(error) => return vec![Finding::wrong("schedules", error, "run `longhaul verify`")],
    };
    if reports.is_empty() {
        return vec![];
    }
    let is_hosted = schedules.is_hosted().await.unwrap_or(false);
    let mut findings: Vec<Finding> =
        reports.iter().filter_map(|report| check_one(report, is_hosted)).collect();
    let waiting = reports.iter().any(|report| report.next.is_some());
    if waiting && !is_hosted {
        let found = "no process runs the schedules of this home";
        findings.push(Finding::wrong("schedules", found, "start `longhaul serve`"));
    }
    if findings.is_empty() {
        findings.push(Finding::fine("schedules", format_count(reports.len() as u64, "schedule")));
    }
    findings
}

fn check_one(report: &ScheduleReport, is_hosted: bool) -> Option<Finding> {
    let name = &report.spec.name;
    let reason = report.reason.as_deref().unwrap_or_default();
    match (report.status, report.late_s) {
        (ScheduleStatus::Invalid, _) => {
            Some(Finding::wrong("schedules", format!("{name} can't run: {reason}"), "fix it, or delete it"))
        }
        // A person who paused it knows.
        (ScheduleStatus::Paused, _) if report.reason.is_some() => {
            let to_do = format!("run `longhaul schedules resume {name}` once that is fixed");
            Some(Finding::wrong("schedules", format!("{name} is paused: {reason}"), to_do))
        }
        (ScheduleStatus::Asking, _) => {
            let session = report.running.as_deref().unwrap_or_default();
            let question = truncate(report.question.as_deref().unwrap_or_default(), QUESTION_CHARS);
            let found = format!("a run of {name} waits for an answer, and no other one starts: {question}");
            Some(Finding::wrong(
                "schedules",
                found,
                format!("answer it: `longhaul answer -s {} ANSWER`", shell_quoted(session)),
            ))
        }
        (_, Some(late)) => {
            let found = format!("{name} is late: it was due {} ago", format_duration(late * 1_000));
            let to_do = match is_hosted {
                true => "look at the warnings of the process that hosts this home, and restart it",
                false => "start `longhaul serve`",
            };
            Some(Finding::wrong("schedules", found, to_do))
        }
        _ => None,
    }
}
