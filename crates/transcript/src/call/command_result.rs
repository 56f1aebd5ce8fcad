//! The result of a command: a head of fields, and what the command printed.

use longhaul_protocol::CommandReport;

/// A result of `exec` or of a task tool.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CommandResult {
    /// Names and values, in the order of the result.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) output: String,
}

impl CommandResult {
    /// None if the text is not the result of a command.
    pub(crate) fn parse(content: &str) -> Option<Self> {
        let (report, output) = CommandReport::parse(content)?;
        report.status.as_ref()?;
        let head = report.head();
        let fields = head.lines().filter_map(|line| line.split_once(": "));
        Some(Self {
            fields: fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            output,
        })
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
pub(super) fn missing_lines(line: &str) -> Option<Option<u64>> {
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
