//! `task_output`.

use std::sync::Arc;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use longhaul_keeper::{Error, Output};
use longhaul_protocol::{Effect, TaskNews};
use schemars::JsonSchema;
use serde::Deserialize;

use super::output_search::{OutputMatches, OutputSearch};
use super::state::{TaskState, load_task_state};
use super::{TaskSettings, find_task};
use crate::blocking::CancelFlag;
use crate::output::OutputReader;
use crate::output::{CommandReport, FullOutput};
use crate::{
    OutputLimit, PreparedCall, SessionTask, Tool, ToolDefinition, ToolInvocation, ToolOutcome, function_tool,
    schema_of,
};

/// A read is not halved below this, however much JSON escapes add.
const MIN_READ_BYTES: usize = 64;

/// Bytes for the other fields of a limited read.
const OTHER_FIELDS_BYTES: usize = 512;

/// What task_output takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The task.
    task_id: String,
    /// The byte to read from.
    offset: Option<u64>,
    /// How many bytes.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// Only lines that match this regular expression.
    #[schemars(length(max = 1000))]
    grep: Option<String>,
}

pub(crate) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: "task_output",
        description: "Reads what a task has printed: head and tail, or from `offset` on; `next_offset` reads on.",
        effect: Effect::Read,
        schema: schema_of::<Arguments>(),
        limits: &[
            "Without `offset`: head and tail. With it: from there on, up to `limit` or what the model may read at once; \
             `next_offset` reads on. Offsets count printed bytes, also where some were not kept.",
            "A read ends at the end of a line, if one is near, and never within a character.",
            "With `grep`, from `offset` on; a line is shown with at most 500 bytes.",
            "Raw output is kept 24 hours after the end; then read_file with `output:` and the call's id has what was kept.",
        ],
        example: r#"{"task_id": "task_01jq4z5v8k2m9x7w3r6t1y0b4n", "offset": 4096}"#,
    }
}

pub(super) fn tool(settings: TaskSettings) -> Arc<dyn Tool> {
    function_tool(definition(), settings, prepare)
}

#[allow(clippy::needless_pass_by_value, reason = "a function tool hands its arguments over")]
fn prepare(
    settings: &TaskSettings,
    arguments: Arguments,
    call: &ToolInvocation,
) -> Result<PreparedCall, ToolOutcome> {
    let read = OutputRead {
        settings: settings.clone(),
        task: find_task(call, &arguments.task_id)?,
        output_limit: call.output_limit,
        offset: arguments.offset,
        limit: arguments.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX),
        matcher: arguments.grep.as_deref().map(matcher).transpose()?,
    };
    Ok(PreparedCall::cancellable(move |cancel| read.run(cancel)))
}

fn matcher(pattern: &str) -> Result<RegexMatcher, ToolOutcome> {
    RegexMatcherBuilder::new().build(pattern).map_err(|error| {
        ToolOutcome::error(format!("the expression `{pattern}` in `grep` can't be understood: {error}"))
    })
}

struct OutputRead {
    settings: TaskSettings,
    task: SessionTask,
    output_limit: OutputLimit,
    offset: Option<u64>,
    limit: usize,
    matcher: Option<RegexMatcher>,
}

impl OutputRead {
    fn run(&self, cancel: &CancelFlag) -> ToolOutcome {
        let state = match load_task_state(&self.settings.tasks, &self.task) {
            Ok(state) => state,
            Err(trouble) => return trouble,
        };
        let id = self.task.started.task_id;
        let read = match self.settings.tasks.output(id) {
            Ok(output) => self.read(&output, &state, cancel),
            Err(Error::NoSuchTask { .. }) => return self.gone(&state),
            Err(error) => Err(error),
        };
        read.unwrap_or_else(|error| {
            ToolOutcome::error(format!("the output of {id} can't be read now: {error}"))
        })
    }

    /// The task folder is gone.
    fn gone(&self, state: &TaskState) -> ToolOutcome {
        let id = self.task.started.task_id;
        let mut report = state.report(id);
        report.set_message(state.message.clone().into_iter().chain([format!(
            "raw output is kept for 24 hours after the end; read_file with the path \"output:{}\" has what was kept",
            id.call()
        )]));
        ToolOutcome { news: Some(self.news(state, 0)), ..ToolOutcome::ok(report.to_json()) }
    }

    fn read(
        &self,
        output: &Output,
        state: &TaskState,
        cancel: &CancelFlag,
    ) -> longhaul_keeper::Result<ToolOutcome> {
        let printed = OutputReader::new(output, &self.settings.redact);
        let end = printed.readable_end(state.status)?;
        let report =
            CommandReport { printed: Some(output.printed()?), ..state.report(self.task.started.task_id) };
        if let Some(matcher) = &self.matcher {
            let search =
                OutputSearch { printed: &printed, output, matcher, output_limit: self.output_limit, cancel };
            let found = search.run(self.offset.unwrap_or(0), end)?;
            return Ok(ToolOutcome { news: Some(self.news(state, 0)), ..self.told(found, report, state) });
        }
        let Some(offset) = self.offset else {
            let mut report = CommandReport { next_offset: Some(end), ..report };
            report.set_message(state.message.clone());
            let text = printed.read_all(end)?;
            let bytes = self.limit.saturating_add(OTHER_FIELDS_BYTES).min(self.output_limit.bytes);
            let finished =
                report.fit_within(OutputLimit { bytes, ..self.output_limit }, &text, FullOutput::OfTask);
            return Ok(ToolOutcome { news: Some(self.news(state, end)), ..finished });
        };
        self.from(offset, end, &printed, report, state)
    }

    /// The matching lines as a report.
    fn told(&self, found: OutputMatches, mut report: CommandReport, state: &TaskState) -> ToolOutcome {
        report.matches = Some(found.lines);
        report.next_offset = Some(found.next);
        let said = found.said.into_iter().chain(state.message.clone());
        report.set_message(said);
        report.fit_within(self.output_limit, &found.text, FullOutput::OfTask)
    }

    /// Reads from an offset on, as much as fits.
    fn from(
        &self,
        offset: u64,
        end: u64,
        printed: &OutputReader<'_>,
        report: CommandReport,
        state: &TaskState,
    ) -> longhaul_keeper::Result<ToolOutcome> {
        let mut report = report;
        let total = report.printed.unwrap_or(end);
        if offset > total {
            report.set_message([format!("only {total} bytes were printed so far")]);
            (report.output, report.next_offset) = (Some(String::new()), Some(total));
            return Ok(ToolOutcome { news: Some(self.news(state, 0)), ..ToolOutcome::ok(report.to_json()) });
        }
        let mut most = self.limit.min(self.output_limit.bytes);
        loop {
            let (text, next) = printed.read_from(offset, most, end)?;
            report.next_offset = Some(next);
            report.set_message(state.message.clone().filter(|_| next >= end));
            report.output = Some(text.text.clone());
            let content = report.to_json();
            let fits = content.len() <= self.output_limit.bytes
                && text.text.lines().count() <= self.output_limit.lines;
            if fits || most <= MIN_READ_BYTES {
                let finished = if fits {
                    ToolOutcome::ok(content)
                } else {
                    report.fit_within(self.output_limit, &text, FullOutput::OfTask)
                };
                return Ok(ToolOutcome { news: Some(self.news(state, next)), ..finished });
            }
            most /= 2;
        }
    }

    /// What the model knows of the task after this read. It never decreases.
    fn news(&self, state: &TaskState, printed: u64) -> TaskNews {
        let told = self.task.told.map_or(0, |told| told.printed);
        TaskNews { task_id: self.task.started.task_id, printed: told.max(printed), ended: state.has_ended() }
    }
}
