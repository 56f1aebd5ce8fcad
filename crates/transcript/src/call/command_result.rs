//! The result of a command: a head of fields, and what the command printed.

use std::borrow::Cow;

use serde_json::Value;

/// A result of `exec` or of a task tool. Earlier versions wrote it as a JSON object, whose field `output` has the output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CommandResult<'a> {
    /// Names and values, in the order of the result.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) output: Cow<'a, str>,
}

impl<'a> CommandResult<'a> {
    /// None if the text is not the result of a command.
    pub(crate) fn parse(content: &'a str) -> Option<Self> {
        match content.starts_with('{') {
            true => Self::from_json(content),
            false => Self::from_text(content),
        }
    }

    fn from_json(content: &str) -> Option<Self> {
        let Value::Object(object) = serde_json::from_str(content).ok()? else { return None };
        let output = object.get("output").and_then(Value::as_str).unwrap_or_default().to_owned();
        let fields = object.into_iter().filter(|(name, _)| name != "output");
        let fields = fields.map(|(name, value)| match value {
            Value::String(text) => (name, text),
            value => (name, value.to_string()),
        });
        Some(Self { fields: fields.collect(), output: Cow::Owned(output) })
    }

    /// Lines of `name: value`, an empty line, and the output as it was printed.
    fn from_text(content: &'a str) -> Option<Self> {
        let (head, output) = match content.split_once("\n\n") {
            Some((head, output)) => (head, output),
            None => (content.trim_end(), ""),
        };
        let mut fields = Vec::new();
        for line in head.lines() {
            let (name, value) = line.split_once(": ")?;
            let is_name =
                !name.is_empty() && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase());
            if !is_name {
                return None;
            }
            fields.push((name.to_owned(), value.to_owned()));
        }
        let is_result = fields.first().is_some_and(|(name, _)| name == "status");
        is_result.then_some(Self { fields, output: Cow::Borrowed(output) })
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn status(&self) -> &str {
        self.field("status").unwrap_or_default()
    }

    pub(crate) fn exit_code(&self) -> Option<i64> {
        self.field("exit_code")?.parse().ok()
    }
}

/// How many lines a text has, if some of them may be missing from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineCount {
    Exact(u64),
    /// More than this; how many is not known.
    MoreThan(u64),
}

impl LineCount {
    /// The lines of an output. Where its middle was cut out, the line in its place says how much that was.
    pub(crate) fn of(output: &str) -> Self {
        let (mut lines, mut missing, mut is_exact) = (0, 0, true);
        for line in output.lines() {
            match missing_lines(line) {
                None => lines += 1,
                Some(Some(count)) => missing += count,
                Some(None) => is_exact = false,
            }
        }
        match is_exact {
            true => Self::Exact(lines + missing),
            false => Self::MoreThan(lines + missing),
        }
    }
}

/// Of a line that stands for a part that was cut out: the lines of that part, if they were counted.
fn missing_lines(line: &str) -> Option<Option<u64>> {
    let inside = line.strip_prefix("[… ")?.strip_suffix(" …]")?;
    let mut words = inside.split(' ');
    let number = words.next()?.replace(',', "").parse().ok()?;
    match words.next()? {
        "line" | "lines" => Some(Some(number)),
        "byte" | "bytes" => Some(None),
        _ => None,
    }
}

#[cfg(test)]
#[path = "command_result_tests.rs"]
mod tests;
