//! A call with everything: its outcome, its arguments and its result.

use std::time::Duration;

use serde_json::Value;

use super::outcome::read_report;
use super::summary::{file_language, is_edit, list_edits, plain_value, text_field};
use super::{outcome_line, parse_arguments};
use crate::block::Call;
use crate::diff::{diff, more_lines_notice, truncate_bytes};
use crate::highlight::Highlighter;
use crate::style::{Span, StyledLine};
use crate::wrap::{truncate_line, wrap_spans};

/// Lines of one text that are shown. The model gets no more of them either.
const MAX_TEXT_LINES: usize = 2_000;

const INDENT: &str = "  ";

/// The whole call: how it ended, its arguments as text, and its result. A call without a result is still running.
pub fn call_detail_lines(call: &Call, took: Duration, width: u16) -> Vec<StyledLine> {
    let arguments = parse_arguments(&call.arguments);
    let outcome = outcome_line(call, took, arguments.as_ref(), width);
    let mut detail = CallDetail { width, rows: vec![outcome] };
    match &arguments {
        Some(arguments) => detail.push_arguments(&call.name, arguments),
        None => detail.push_text(&call.arguments, INDENT, ""),
    }
    if detail.rows.len() > 1 {
        detail.rows.push(StyledLine::default());
    }
    detail.push_result(call, arguments.as_ref());
    if detail.rows.last().is_some_and(|row| row.spans.is_empty()) {
        detail.rows.pop();
    }
    detail.rows
}

struct CallDetail {
    width: u16,
    rows: Vec<StyledLine>,
}

impl CallDetail {
    fn push_arguments(&mut self, name: &str, arguments: &Value) {
        match name {
            "exec" => {
                self.push_command(text_field(arguments, "command").unwrap_or_default());
                self.push_fields(arguments, &["command"]);
            }
            "edit_file" | "write_file" => {
                for (index, (old, new)) in list_edits(name, arguments).into_iter().enumerate() {
                    if index > 0 {
                        self.rows.push(truncate_line(&StyledLine::dim("…"), self.width));
                    }
                    self.rows.extend(diff(old, new, file_language(arguments), self.width));
                }
            }
            // Its result is the list.
            "todo" => {}
            _ => self.push_fields(arguments, &[]),
        }
    }

    fn push_result(&mut self, call: &Call, arguments: Option<&Value>) {
        let (content, is_error) = match &call.result {
            Some(result) => (result.content.as_str(), result.is_error),
            None => (super::outcome::RUNNING, false),
        };
        let report = read_report(&call.name, content);
        match report {
            Some(report) if !is_error => {
                if let Some(output) = text_field(&report, "output") {
                    self.push_text(output, INDENT, "");
                }
                self.push_fields(&report, &["output", "duration_ms"]);
            }
            _ if is_edit(&call.name) && !is_error => {}
            _ => {
                let is_code = call.name == "read_file" && !is_error;
                let language = arguments.and_then(file_language).filter(|_| is_code);
                self.push_text(content, INDENT, language.unwrap_or_default());
            }
        }
    }

    fn push_command(&mut self, command: &str) {
        let mut highlighter = Highlighter::new("sh");
        for (index, line) in command.lines().take(MAX_TEXT_LINES).enumerate() {
            let mark = if index == 0 { "  $ " } else { "    " };
            let spans = highlighter.highlight_line(&truncate_bytes(line));
            self.rows.extend(wrap_spans(&spans, self.width, &[Span::dim(mark)], &["    ".into()]));
        }
        self.push_left_out(command);
    }

    /// One line per field; a text of several lines below its name.
    fn push_fields(&mut self, object: &Value, except: &[&str]) {
        let fields = object.as_object().into_iter().flatten();
        for (key, value) in fields.filter(|(key, _)| !except.contains(&key.as_str())) {
            let value = plain_value(value);
            let is_short = value.lines().count() <= 1;
            let mut spans = vec![Span::dim(format!("{}:", truncate_bytes(key)))];
            if is_short {
                spans.push(Span::raw(format!(" {}", truncate_bytes(value.trim_end()))));
            }
            self.rows.extend(wrap_spans(&spans, self.width, &[INDENT.into()], &["    ".into()]));
            if !is_short {
                self.push_text(&value, "    ", "");
            }
        }
    }

    fn push_text(&mut self, text: &str, indent: &str, language: &str) {
        let mut highlighter = Highlighter::new(language);
        for line in text.lines().take(MAX_TEXT_LINES) {
            let spans = highlighter.highlight_line(&truncate_bytes(line));
            self.rows.extend(wrap_spans(&spans, self.width, &[indent.into()], &[indent.into()]));
        }
        self.push_left_out(text);
    }

    fn push_left_out(&mut self, text: &str) {
        let left_out = text.lines().count().saturating_sub(MAX_TEXT_LINES);
        self.rows.extend(more_lines_notice(left_out).map(|line| truncate_line(&line, self.width)));
    }
}
