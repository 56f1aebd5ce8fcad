//! The whole of a call.

use ratatui::style::Stylize;
use ratatui::text::{Line, Span};
use serde_json::Value;

use super::summary::{edits, is_edit, language, plain, text};
use super::{Concluded, conclusion, parsed};
use crate::tui::diff::{diff, more_lines, shortened};
use crate::tui::highlight::Highlighter;
use crate::tui::wrap::{one_row, wrapped_after};

/// More lines of a text are not shown; the model got no more of them either.
const MOST_LINES: usize = 2_000;

/// The whole call: how it ended, what it was called with, readable, and what came of it.
pub(crate) fn opened(call: &Concluded<'_>, width: u16) -> Vec<Line<'static>> {
    let arguments = parsed(call.arguments);
    let mut page = Page { width, rows: vec![conclusion(call, arguments.as_ref(), width)] };
    match &arguments {
        Some(arguments) => page.arguments(call.name, arguments),
        None => page.text(call.arguments, INDENT, ""),
    }
    if page.rows.len() > 1 {
        page.rows.push(Line::default());
    }
    page.result(call, arguments.as_ref());
    if page.rows.last().is_some_and(|row| row.spans.is_empty()) {
        page.rows.pop();
    }
    page.rows
}

const INDENT: &str = "  ";

struct Page {
    width: u16,
    rows: Vec<Line<'static>>,
}

impl Page {
    fn arguments(&mut self, name: &str, arguments: &Value) {
        match name {
            "exec" => {
                self.command(text(arguments, "command").unwrap_or_default());
                self.fields(arguments, &["command"]);
            }
            "edit_file" | "write_file" => {
                for (index, (old, new)) in edits(name, arguments).into_iter().enumerate() {
                    if index > 0 {
                        self.rows.push(one_row(&Line::from("…".dim()), self.width));
                    }
                    self.rows.extend(diff(old, new, language(arguments), self.width));
                }
            }
            // Its result is the list.
            "todo" => {}
            _ => self.fields(arguments, &[]),
        }
    }

    fn result(&mut self, call: &Concluded<'_>, arguments: Option<&Value>) {
        let report = serde_json::from_str::<Value>(call.content).ok().filter(Value::is_object);
        match report {
            Some(report) if !call.is_error => {
                if let Some(output) = text(&report, "output") {
                    self.text(output, INDENT, "");
                }
                self.fields(&report, &["output", "duration_ms"]);
            }
            _ if is_edit(call.name) && !call.is_error => {}
            _ => {
                let is_code = call.name == "read_file" && !call.is_error;
                let language = arguments.and_then(language).filter(|_| is_code);
                self.text(call.content, INDENT, language.unwrap_or_default());
            }
        }
    }

    /// A command as it was written.
    fn command(&mut self, command: &str) {
        let mut highlighter = Highlighter::new("sh");
        for (index, line) in command.lines().take(MOST_LINES).enumerate() {
            let mark = if index == 0 { "  $ " } else { "    " };
            let spans = highlighter.line(&shortened(line));
            self.rows.extend(wrapped_after(&spans, self.width, &[mark.dim()], &["    ".into()]));
        }
        self.left_out(command);
    }

    /// Each field in a line of its own; a text of several lines as that.
    fn fields(&mut self, object: &Value, but: &[&str]) {
        let fields = object.as_object().into_iter().flatten();
        for (key, value) in fields.filter(|(key, _)| !but.contains(&key.as_str())) {
            let value = plain(value);
            let is_short = value.lines().count() <= 1;
            let mut spans = vec![Span::from(format!("{}:", shortened(key))).dim()];
            if is_short {
                spans.push(Span::from(format!(" {}", shortened(value.trim_end()))));
            }
            self.rows.extend(wrapped_after(&spans, self.width, &[INDENT.into()], &["    ".into()]));
            if !is_short {
                self.text(&value, "    ", "");
            }
        }
    }

    /// The lines of a text.
    fn text(&mut self, text: &str, indent: &str, language: &str) {
        let mut highlighter = Highlighter::new(language);
        for line in text.lines().take(MOST_LINES) {
            let spans = highlighter.line(&shortened(line));
            self.rows.extend(wrapped_after(&spans, self.width, &[indent.into()], &[indent.into()]));
        }
        self.left_out(text);
    }

    fn left_out(&mut self, text: &str) {
        let left_out = text.lines().count().saturating_sub(MOST_LINES);
        self.rows.extend(more_lines(left_out).map(|line| one_row(&line, self.width)));
    }
}
