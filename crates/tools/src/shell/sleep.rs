//! K4: sleeps that are too long to wait for.

use std::fmt;

use super::{Script, Unseen, Word, shown};

/// From here on, in seconds, a sleep is refused.
const LONG: f64 = 2.0;

/// A sleep in the foreground that is too long.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LongSleep {
    /// As it stands in the line.
    command: String,
}

impl fmt::Display for LongSleep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "`{}` would wait for {LONG} seconds or more, during which nothing else can be done. To let something take its time, \
             start it with `run_in_background` and wait for it with `task_wait`, which returns as soon as it ends. To wait until \
             something is so, check for it in a loop with short sleeps: `until test -e ready; do sleep 0.5; done`",
            self.command
        )
    }
}

/// The first long sleep that a line would wait for. A line that can't be understood has none: bash will say what is wrong with it.
pub(crate) fn long_sleep(line: &str) -> Option<LongSleep> {
    let script = Script::parse(line);
    if script.unseen.contains(&Unseen::Syntax) {
        return None;
    }
    let mut waited_for = script.commands.iter().filter(|command| !command.background);
    let long = waited_for.find(|command| seconds(command.words()).is_some_and(|seconds| seconds >= LONG))?;
    let words: Vec<&str> = long.words().iter().map(|word| word.text.as_str()).collect();
    Some(LongSleep { command: shown(&words.join(" ")) })
}

/// How long a command sleeps, if it does and says so: the sum of what it is given.
fn seconds(words: &[Word]) -> Option<f64> {
    let (name, arguments) = words.split_first()?;
    if name.program() != Some("sleep") {
        return None;
    }
    let arguments = arguments.iter().filter(|word| word.text != "--");
    arguments.map(|word| word.literal().and_then(length)).sum()
}

/// `1.5`, `2m`, `inf`. What `sleep` would not take is no length.
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
