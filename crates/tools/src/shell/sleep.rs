//! K4: sleeps that are too long to wait for.

use std::fmt;

use super::{ShellScript, ShellWord, UnseenReason, shown};

/// A sleep of this many seconds or more is refused.
const LONG_SLEEP_SECONDS: f64 = 2.0;

/// A foreground sleep that is too long.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LongSleep {
    /// The command in the form that the model sees.
    command: String,
}

impl fmt::Display for LongSleep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "`{}` would wait for {LONG_SLEEP_SECONDS} seconds or more, during which nothing else can be done. To let something take its time, \
             start it with `run_in_background` and wait for it with `task_output` and `wait`, which returns as soon as it ends. To wait until \
             something is so, check for it in a loop with short sleeps: `until test -e ready; do sleep 0.5; done`",
            self.command
        )
    }
}

/// The first long sleep that a line would wait for. `None` for a line with a syntax error, which bash reports.
pub(crate) fn long_sleep(line: &str) -> Option<LongSleep> {
    let script = ShellScript::parse(line);
    if script.unseen.contains(&UnseenReason::Syntax) {
        return None;
    }
    let mut waited_for = script.commands.iter().filter(|command| !command.background);
    let long = waited_for
        .find(|command| seconds(command.words()).is_some_and(|seconds| seconds >= LONG_SLEEP_SECONDS))?;
    let words: Vec<&str> = long.words().iter().map(|word| word.text.as_str()).collect();
    Some(LongSleep { command: shown(&words.join(" ")) })
}

/// Seconds that a `sleep` sleeps: the sum of its arguments. `None` for other commands and unknown arguments.
fn seconds(words: &[ShellWord]) -> Option<f64> {
    let (name, arguments) = words.split_first()?;
    if name.program() != Some("sleep") {
        return None;
    }
    let arguments = arguments.iter().filter(|word| word.text != "--");
    arguments.map(|word| word.literal().and_then(length)).sum()
}

/// Parses `1.5`, `2m` or `inf`. `None` for text that `sleep` would refuse.
fn length(text: &str) -> Option<f64> {
    let (number, unit) = match text.as_bytes().last()? {
        b's' => (&text[..text.len() - 1], 1.0),
        b'm' => (&text[..text.len() - 1], 60.0),
        b'h' => (&text[..text.len() - 1], 3600.0),
        b'd' if !is_hexadecimal(text) => (&text[..text.len() - 1], 86400.0),
        _ => (text, 1.0),
    };
    let number = match number.strip_prefix("0x").or(number.strip_prefix("0X")) {
        Some(digits) => u32::from_str_radix(digits, 16).ok().map(f64::from),
        None => number.parse().ok(),
    };
    number.filter(|number| *number >= 0.0).map(|number| number * unit)
}

fn is_hexadecimal(text: &str) -> bool {
    text.starts_with("0x") || text.starts_with("0X")
}

#[cfg(test)]
#[path = "sleep_tests.rs"]
mod tests;
