//! What the model reads of a command or a task: a head of `name: value` lines, an empty line, and as much of the output
//! as fits ([`CommandReport`]).

use longhaul_protocol::{CallId, CommandReport, TaskStatus};

use crate::output::{OutputText, TruncatedPart, truncate_middle};
use crate::{OutputLimit, ToolOutcome, display};

/// Where the model can read the full output.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FullOutput {
    /// `read_file` reads it as the output of this call.
    OfCall(CallId),
    /// `task_output` reads it from the task.
    OfTask,
}

/// A report with this status and nothing else.
pub(crate) fn report_status(status: TaskStatus) -> CommandReport {
    CommandReport { status: Some(status.word().to_owned()), ..CommandReport::default() }
}

/// Sets the message of a report; none if there is nothing to say.
pub(crate) fn set_message(report: &mut CommandReport, said: impl IntoIterator<Item = String>) {
    let said: Vec<String> = said.into_iter().collect();
    report.message = (!said.is_empty()).then(|| said.join("; "));
}

/// The result with this head and the output as it is.
pub(crate) fn report_outcome(report: CommandReport, output: &str) -> ToolOutcome {
    ToolOutcome { content: report.with_output(output), report, ..ToolOutcome::default() }
}

/// Room for the output beside the head of a report.
pub(crate) fn room_for_output(report: &CommandReport, output_limit: OutputLimit) -> Option<OutputLimit> {
    let head = report.head();
    let bytes = output_limit.bytes.checked_sub(head.len() + 1)?;
    Some(OutputLimit { lines: output_limit.lines.saturating_sub(head.lines().count() + 1), bytes })
}

/// The result within `output_limit`. Where there is no room for everything, the output is truncated first, then the
/// message; last of all, fields are left out.
pub(crate) fn fit_report(
    mut report: CommandReport,
    output_limit: OutputLimit,
    text: &OutputText,
    rest: FullOutput,
) -> ToolOutcome {
    let fits = |room: OutputLimit| text.text.len() <= room.bytes && text.text.lines().count() <= room.lines;
    if room_for_output(&report, output_limit).is_some_and(fits) {
        return report_outcome(report, &text.text);
    }
    let whole = match rest {
        FullOutput::OfCall(_) => Some(text.kept().into_bytes()),
        FullOutput::OfTask => None,
    };
    if let Some(message) = &mut report.message {
        message.truncate(display::truncate_str(message, output_limit.bytes / 2).len());
    }
    for leave_out in [
        (|_| {}) as fn(&mut CommandReport),
        |report| report.message = None,
        |report| report.duration_ms = None,
        |report| report.exit_code = None,
    ] {
        leave_out(&mut report);
        if let Some(room) = room_for_output(&report, output_limit) {
            let marker = |missing: &TruncatedPart| rest.marker(&text.with_dropped_bytes(missing));
            let output = truncate_middle(&text.text, room, marker).unwrap_or_else(|| text.text.clone());
            return ToolOutcome { whole, ..report_outcome(report, &output) };
        }
    }
    ToolOutcome { whole, ..report_outcome(report, "") }
}

impl FullOutput {
    fn marker(self, missing: &TruncatedPart) -> String {
        match self {
            Self::OfCall(call) => missing.marker(call),
            Self::OfTask => {
                format!("[… {missing} missing here; task_output with `offset` or `grep` reads them …]")
            }
        }
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
