//! What `find` runs.

use super::wrappers::{InnerCommand, unseen_code, with_placeholder};
use crate::shell::{ShellWord, WordKind};

/// The actions that run a command.
const COMMAND_ACTIONS: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];
/// The actions that write a file.
const FILE_ACTIONS: [&str; 4] = ["-fprint", "-fprint0", "-fprintf", "-fls"];

/// The commands of `-exec` and similar actions. Each ends at `;`, or at `+` after `{}`. If there are more ends than commands, an
/// unknown word may be another `-exec`.
pub(super) fn commands_run_by_find(words: &[ShellWord]) -> InnerCommand {
    let arguments = &words[1..];
    let mut commands = Vec::new();
    let mut rest = arguments;
    let mut ends = arguments.iter().filter(|word| matches!(word.text.as_str(), ";" | "+")).count();
    while let Some(start) = rest.iter().position(starts_command) {
        rest = &rest[start + 1..];
        let is_end = |at: usize| match rest[at].text.as_str() {
            ";" => true,
            "+" => at > 0 && rest[at - 1].text == "{}",
            _ => false,
        };
        let end = (0..rest.len()).find(|at| is_end(*at)).unwrap_or(rest.len());
        if may_end_early(&rest[..end]) {
            return unseen_code(words);
        }
        if end > 0 {
            commands.push(rest[..end].iter().map(|word| with_placeholder(word, "{}")).collect());
        }
        ends = ends.saturating_sub(1);
        rest = &rest[end..];
    }
    let may_start = |word: &ShellWord| match word.kind {
        WordKind::Literal => false,
        WordKind::Pattern => may_become_action(word),
        WordKind::Unknown => ends > 0 && word.may_be_option(),
        WordKind::Words => true,
    };
    if arguments.iter().any(may_start) { unseen_code(words) } else { InnerCommand::Own(commands) }
}

fn starts_command(word: &ShellWord) -> bool {
    COMMAND_ACTIONS.contains(&word.text.as_str())
}

/// Whether a command may contain another one, because an unknown word before it may be `;`.
fn may_end_early(command: &[ShellWord]) -> bool {
    let may_be_end = |word: &ShellWord| word.kind != WordKind::Literal && word.certain_beginning().is_empty();
    let behind = match command.iter().position(may_be_end) {
        Some(end) => &command[end + 1..],
        None => &[],
    };
    let unknown = behind.split_last().map_or(&[][..], |(_, before)| before);
    command.iter().any(starts_command) || unknown.iter().any(ShellWord::may_be_option)
}

/// Whether a file name that matches the pattern may be an action.
fn may_become_action(pattern: &ShellWord) -> bool {
    let beginning = pattern.certain_beginning();
    let end = pattern.text.rsplit(['*', '?', ']']).next().unwrap_or_default();
    let mut actions = COMMAND_ACTIONS.iter().chain(&FILE_ACTIONS);
    actions.any(|action| action.starts_with(beginning) && action.ends_with(end))
}
