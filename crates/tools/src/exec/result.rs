//! The result of a command for the model.

use longhaul_keeper::Status;
use longhaul_protocol::{CommandReport, TaskNews, TaskStatus};

use super::command_run::CommandRun;
use super::sandbox_refusal::{find_refusal, refusal_hint};
use crate::ToolOutcome;
use crate::output::{FullOutput, fit_report, report_outcome, report_status, set_message};
use crate::output::{OutputReader, OutputText, count_lines};

pub(crate) const UNKNOWN: &str = "the command may or may not have started: its keeper died in that moment. Look at what it \
                                  would have changed before you run it again";
pub(crate) const EXPIRED: &str =
    "the command has run and ended; how it ended and its raw output were kept 24 hours, and are gone";
pub(crate) const LOST: &str =
    "the process that kept this command died, and the command with it; how far it came is not known";
const STARTED: &str = "it runs in the background, and you are told when it ends; task_output reads what it prints or, with `wait`, \
                       waits for it; task_kill ends it";

/// How a command ended.
#[derive(Debug)]
pub(super) enum CommandEnd {
    Ended(Status),
    /// Its keeper died while it ran.
    Lost,
    /// Its keeper died while starting it.
    Unknown,
    /// It ended so long ago that its files are gone.
    Expired,
}

/// The result of a command that has ended. Blocks: it reads the output.
pub(super) fn finished(run: &CommandRun, over: &CommandEnd) -> ToolOutcome {
    let status = match over {
        CommandEnd::Ended(status) => status,
        CommandEnd::Lost => return lost(run, LOST),
        CommandEnd::Unknown => return lost(run, UNKNOWN),
        CommandEnd::Expired => return lost(run, EXPIRED),
    };
    match status.never_started() {
        Some(reason) => ToolOutcome::error(format!("could not start the command: {reason}")),
        None => ended(run, status),
    }
}

fn ended(run: &CommandRun, status: &Status) -> ToolOutcome {
    let how = match (status.status, run.max_runtime) {
        (TaskStatus::TimedOut, Some(seconds)) => Some(out_of_time(seconds)),
        (TaskStatus::Killed, _) if status.message.is_none() => Some("it was stopped".to_owned()),
        _ => None,
    };
    let report = CommandReport {
        exit_code: status.exit_code,
        duration_ms: Some(status.duration_ms),
        ..report_status(status.status)
    };
    let said = [how, status.message.clone()].into_iter().flatten().collect();
    with_output(run, report, said, status.status)
}

fn lost(run: &CommandRun, why: &str) -> ToolOutcome {
    with_output(run, report_status(TaskStatus::Lost), vec![why.to_owned()], TaskStatus::Lost)
}

/// The message for a command that exceeded `max_runtime`.
pub(crate) fn out_of_time(seconds: u64) -> String {
    format!("it was ended because it ran longer than `max_runtime` ({seconds} s)")
}

/// K3: the result of a command that runs in the background from the start.
pub(super) fn started(run: &CommandRun) -> ToolOutcome {
    let mut report = task_report(run, "background_started");
    set_message(&mut report, [STARTED.to_owned()].into_iter().chain(run.notes.clone()));
    report_outcome(report, "")
}

/// K2: the result of a command that goes on as a task. Blocks: it reads the output.
pub(super) fn goes_on(run: &CommandRun) -> ToolOutcome {
    let report = task_report(run, "auto_backgrounded");
    let said = format!(
        "it still runs after {} s and goes on in the background as a task; no work was lost. You are told when it ends; \
         task_output reads on or, with `wait`, waits for it; task_kill ends it",
        run.timeout.as_secs_f64()
    );
    with_output(run, report, vec![said], TaskStatus::Running)
}

/// The report of a command that is a task now.
fn task_report(run: &CommandRun, status: &str) -> CommandReport {
    CommandReport { status: Some(status.to_owned()), task_id: Some(run.id()), ..CommandReport::default() }
}

/// Adds the output and the message to a report.
fn with_output(
    run: &CommandRun,
    mut report: CommandReport,
    mut said: Vec<String>,
    status: TaskStatus,
) -> ToolOutcome {
    let read = run.settings.tasks.output(run.id()).and_then(|output| {
        let printed = OutputReader::new(&output, &run.settings.redact);
        let end = printed.readable_end(status)?;
        let text = printed.read_all(end)?;
        let lines = if text.gaps.is_empty() { Some(text.line_count()) } else { count_lines(&output, end)? };
        Ok((text, lines, end))
    });
    let (text, lines, end) = read.unwrap_or_else(|error| {
        said.push(format!("its output can't be read: {error}"));
        (OutputText::default(), None, 0)
    });
    let bounds = match status {
        TaskStatus::Failed => run.settings.tasks.spec(run.id()).ok().flatten().and_then(|spec| spec.bounds),
        _ => None,
    };
    let refusal = bounds.and_then(|bounds| find_refusal(&bounds, &text));
    said.extend(refusal.as_ref().map(|refusal| refusal_hint(refusal).to_owned()));
    set_message(&mut report, said.into_iter().chain(run.notes.clone()));
    let news = TaskNews { task_id: run.id(), printed: end, ended: false };
    let fitting = fit_report(report, run.output_limit, &text, FullOutput::OfCall(run.call));
    ToolOutcome {
        news: (status == TaskStatus::Running).then_some(news),
        lines: lines.filter(|_| fitting.whole.is_some()),
        refusal,
        ..fitting
    }
}
