//! The keys of the terminal in one table, from which `/help` is made. `docs/terminal.md` has the same rows.

use std::fmt::Write;

/// Columns of the keys in `/help`.
const KEY_COLUMNS: usize = 26;

struct KeyRow {
    keys: &'static str,
    help: &'static str,
}

const fn row(keys: &'static str, help: &'static str) -> KeyRow {
    KeyRow { keys, help }
}

/// All keys, in the order of `/help`.
const KEYS: [KeyRow; 23] = [
    row(
        "Enter",
        "send; while a turn runs, the message joins it at its next step; in a list, take the highlighted entry",
    ),
    row("Alt-Enter, Ctrl-J, \\ Enter", "start a new line"),
    row("Tab, Right", "take the highlighted entry of a list"),
    row("/", "begin a command; // sends a line that begins with a slash"),
    row("@", "name a file of the work folder: any part of its path finds it; folder/ lists a folder"),
    row("!", "run a command in your own shell; the model sees it and its output with your next message"),
    row("!!", "run a command in your own shell; the model does not see it"),
    row("Up, Down", "move through the typed text and, at its ends, through earlier inputs"),
    row("Up", "with nothing typed, while a turn runs: take back what you sent during the turn"),
    row("Ctrl-R", "search earlier inputs; again, go on to older ones; Enter takes one, Esc leaves"),
    row("Ctrl-G", "edit the typed text in $VISUAL or $EDITOR"),
    row("Esc", "close a list, or end the running turn or command"),
    row("Esc Esc", "at the empty prompt: go back to an earlier message, in a copy of the session"),
    row(
        "Ctrl-C",
        "clear the typed text, or end the running turn or command; a second one ends the program at once",
    ),
    row("Ctrl-C Ctrl-C", "at the empty prompt: leave"),
    row("Ctrl-D", "at the empty prompt: leave at once"),
    row("Shift-Tab", "change the permission mode; in a list, go up"),
    row(
        "y, a, p, n",
        "answer a question, if nothing else is typed for a moment; Enter or the letter again answers at once",
    ),
    row("Ctrl-O", "open calls and thoughts in full"),
    row("Ctrl-T", "show or fold thoughts"),
    row("Ctrl-L", "redraw everything"),
    row("Ctrl-Z", "suspend the program until fg"),
    row("Ctrl-A, E, B, F, N, P, K, U, W, Y, H; Alt-B, F, D", "move, delete and paste as in a shell"),
];

/// The keys as `/help` shows them.
pub(crate) fn key_help() -> String {
    let mut help = String::new();
    for KeyRow { keys, help: what } in &KEYS {
        let gap = if keys.len() > KEY_COLUMNS { format!("\n  {:<KEY_COLUMNS$}", "") } else { String::new() };
        let _ = writeln!(help, "  {keys:<KEY_COLUMNS$}{gap}  {what}");
    }
    help
}

#[cfg(test)]
#[path = "key_table_tests.rs"]
mod tests;
