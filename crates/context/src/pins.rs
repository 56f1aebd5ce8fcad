//! Pins: the texts that follow the summary in a compacted context. The first request, the files changed, the todo
//! list and the running tasks are never summarised.

use std::collections::HashSet;

use longhaul_protocol::{FIRST_REQUEST_PIN, Pin, TODO_MARK, TaskStarted, Todo, TodoStatus};

use crate::task_notes::running_tasks_note;
use crate::truncate::{
    count_fitting_lines, max_bytes_for, neutralise_marks, one_line, truncate_end, truncate_middle,
    with_commas,
};

const FILES_CHANGED: &str = "files_changed";

const FIRST_REQUEST_HEADING: &str = "[First request of this session, word for word]";
/// When a todo list is too long, each line is truncated to this part of the room, but not below `MIN_LINE_BYTES`.
const MAX_LINE_DIVISOR: usize = 4;
const MIN_LINE_BYTES: usize = 60;

/// The pin with the first request. A request of more than `most` tokens is truncated in its middle, with a line that
/// says how to read the rest.
pub fn first_request_pin(text: &str, seq: u64, most: u64) -> Pin {
    Pin { name: FIRST_REQUEST_PIN.to_owned(), text: truncate_request(text, seq, most) }
}

/// Restores the pin from the text that the model read.
pub fn parse_first_request_pin(rendered: &str) -> Option<Pin> {
    let text = rendered.strip_prefix(FIRST_REQUEST_HEADING)?.strip_prefix('\n')?;
    Some(Pin { name: FIRST_REQUEST_PIN.to_owned(), text: text.to_owned() })
}

/// The pin with the changed files in at most `most` tokens. If not all fit, the newest stay.
pub fn changed_files_pin(paths: &[String], most: u64) -> Option<Pin> {
    let mut listed = HashSet::new();
    let mut newest_first: Vec<String> =
        paths.iter().rev().filter(|path| listed.insert(path.as_str())).map(|path| one_line(path)).collect();
    newest_first.retain(|path| !path.is_empty());
    let room = max_bytes_for(most);
    let all = newest_first.len();
    let left_out = |number: usize| format!("[{} older ones are left out here]", with_commas(number));
    if joined_len(&newest_first) > room {
        let room = room.saturating_sub(left_out(all).len() + 1);
        newest_first.truncate(count_fitting_lines(&newest_first, room + 1));
        newest_first.push(left_out(all - newest_first.len()));
    }
    newest_first.reverse();
    let text = newest_first.join("\n");
    (!text.is_empty() && text.len() <= room).then(|| Pin { name: FILES_CHANGED.to_owned(), text })
}

/// Bytes of these lines, joined.
fn joined_len(lines: &[String]) -> usize {
    lines.iter().map(|line| line.len() + 1).sum::<usize>().saturating_sub(1)
}

/// The text of a pin. Nothing in it can look like a message of the runtime.
pub fn render_pin(pin: &Pin) -> String {
    let heading = match pin.name.as_str() {
        FIRST_REQUEST_PIN => FIRST_REQUEST_HEADING.to_owned(),
        FILES_CHANGED => "[Files changed in this session]".to_owned(),
        name => format!("[Pinned: {}]", one_line(name)),
    };
    neutralise_marks(&format!("{heading}\n{}", pin.text)).into_owned()
}

/// The todo list in at most `most` tokens. An empty list has a text too. If it is too long, done items are dropped
/// first, then the last ones.
pub fn render_todo(todo: &[Todo], most: u64) -> String {
    if todo.is_empty() {
        return format!("{TODO_MARK}\n(empty)");
    }
    let room = max_bytes_for(most).saturating_sub(TODO_MARK.len());
    let mut lines: Vec<Option<String>> = todo.iter().map(|todo| Some(todo_line(todo))).collect();
    let joined_len: usize = lines.iter().flatten().map(|line| line.len() + 1).sum();
    let left_out = if joined_len > room { drop_lines(todo, &mut lines, room) } else { 0 };
    let mut text = TODO_MARK.to_owned();
    for line in lines.iter().flatten() {
        text.push('\n');
        text.push_str(line);
    }
    let more = format!("\n[{} more are left out here]", with_commas(left_out));
    if left_out > 0 && text.len() + more.len() <= max_bytes_for(most) { text + &more } else { text }
}

fn todo_line(todo: &Todo) -> String {
    let sign = match todo.status {
        TodoStatus::Pending => ' ',
        TodoStatus::InProgress => '~',
        TodoStatus::Done => 'x',
    };
    format!("- [{sign}] {}", neutralise_marks(&one_line(&todo.text)))
}

/// Removes the least important lines until the others fit, and returns how many were removed.
fn drop_lines(todo: &[Todo], lines: &mut [Option<String>], room: usize) -> usize {
    let longest = (room / MAX_LINE_DIVISOR).max(MIN_LINE_BYTES);
    let mut room = room.saturating_sub("\n[ more are left out here]".len() + with_commas(lines.len()).len());
    let of = |status: TodoStatus| (0..todo.len()).filter(move |index| todo[*index].status == status);
    let by_importance = of(TodoStatus::InProgress).chain(of(TodoStatus::Pending));
    let mut left_out = 0;
    for index in by_importance.chain(of(TodoStatus::Done).rev()) {
        let line = lines[index].take().unwrap_or_default();
        let line = truncate_middle(&line, longest, |_| " … ".to_owned());
        if let Some(rest) = room.checked_sub(line.len() + 1) {
            room = rest;
            lines[index] = Some(line.into_owned());
        } else {
            left_out += 1;
        }
    }
    left_out
}

fn truncate_request(text: &str, seq: u64, most: u64) -> String {
    let room = max_bytes_for(most);
    let marker = |missing: usize| {
        format!(
            "\n[… {} bytes are left out here; recall_read with ref \"#{seq}\" shows them …]\n",
            with_commas(missing)
        )
    };
    // With little room, the first words are more useful than a marker.
    if room < 2 * marker(text.len()).len() {
        return if text.len() <= room { text } else { truncate_end(text, room) }.to_owned();
    }
    truncate_middle(text, room, marker).into_owned()
}

/// The note on the running tasks, if there are any.
pub fn render_tasks<'a>(running: impl IntoIterator<Item = &'a TaskStarted>) -> Option<String> {
    let mut running = running.into_iter().peekable();
    running.peek()?;
    Some(running_tasks_note(running))
}

#[cfg(test)]
#[path = "pins_tests.rs"]
mod tests;
