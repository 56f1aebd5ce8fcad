//! What a compacted context begins with, after its summary: what is pinned, the todo list, the tasks that run.

use std::collections::HashSet;

use longhaul_protocol::{Pin, TaskStarted, Todo, TodoStatus};

use crate::running_tasks;
use crate::text::{bytes_of, grouped, head, one_line, without_marks, without_middle};

/// The name of the pin that holds the first request.
pub const FIRST_REQUEST: &str = longhaul_protocol::FIRST_REQUEST_PIN;
/// The name of the pin that holds the files that were changed.
const FILES_CHANGED: &str = "files_changed";

/// What the pin of the first request begins with.
const FIRST_REQUEST_HEADING: &str = "[First request of this session, word for word]";
/// What the todo list begins with.
const TODO_MARK: &str = "[Session todo snapshot]";
/// Of a todo list that has too little room, a line has at most such a part of it, but is not made shorter than this.
const LINE_SHARE: usize = 4;
const SHORTEST_LINE: usize = 60;

/// What the text of what is remembered across sessions begins with.
pub const MEMORY_MARK: &str = "[Memory]";

/// The first request, word for word; shortened in its middle if it takes more than so many tokens, with a line that says how to read it.
pub fn first_request(text: &str, seq: u64, most: u64) -> Pin {
    Pin { name: FIRST_REQUEST.to_owned(), text: shorten_request(text, seq, most) }
}

/// The first request, as far as what the model read of it tells.
pub fn first_request_of(rendered: &str) -> Option<Pin> {
    let text = rendered.strip_prefix(FIRST_REQUEST_HEADING)?.strip_prefix('\n')?;
    Some(Pin { name: FIRST_REQUEST.to_owned(), text: text.to_owned() })
}

/// The files that were changed, in at most so many tokens: the newest, if not all.
pub fn files_changed(paths: &[String], most: u64) -> Option<Pin> {
    let mut listed = HashSet::new();
    let mut newest_first: Vec<String> =
        paths.iter().rev().filter(|path| listed.insert(path.as_str())).map(|path| one_line(path)).collect();
    newest_first.retain(|path| !path.is_empty());
    let room = bytes_of(most);
    let all = newest_first.len();
    let left_out = |number: usize| format!("[{} older ones are left out here]", grouped(number));
    if size(&newest_first) > room {
        let room = room.saturating_sub(left_out(all).len() + 1);
        newest_first.truncate(how_many_fit(&newest_first, room));
        newest_first.push(left_out(all - newest_first.len()));
    }
    newest_first.reverse();
    let text = newest_first.join("\n");
    (!text.is_empty() && text.len() <= room).then(|| Pin { name: FILES_CHANGED.to_owned(), text })
}

/// How long these lines are together.
fn size(lines: &[String]) -> usize {
    lines.iter().map(|line| line.len() + 1).sum::<usize>().saturating_sub(1)
}

/// So many of these lines, from the first, have room in so many bytes.
fn how_many_fit(lines: &[String], room: usize) -> usize {
    let ends = lines.iter().scan(0, |end, line| {
        *end += line.len() + 1;
        Some(*end)
    });
    ends.take_while(|end| *end <= room + 1).count()
}

/// A pin, as the model reads it. The runtime says it, so what could be mistaken for the runtime's own words gets a question mark in it.
pub fn render_pin(pin: &Pin) -> String {
    let heading = match pin.name.as_str() {
        FIRST_REQUEST => FIRST_REQUEST_HEADING.to_owned(),
        FILES_CHANGED => "[Files changed in this session]".to_owned(),
        name => format!("[Pinned: {}]", one_line(name)),
    };
    without_marks(&format!("{heading}\n{}", pin.text)).into_owned()
}

/// The todo list, which begins with `[Session todo snapshot]`, also when it is empty; in at most so many tokens. If it has more, what
/// is done goes first, then what comes last.
pub fn render_todo(todo: &[Todo], most: u64) -> String {
    if todo.is_empty() {
        return format!("{TODO_MARK}\n(empty)");
    }
    let room = bytes_of(most).saturating_sub(TODO_MARK.len());
    let mut lines: Vec<Option<String>> = todo.iter().map(|todo| Some(todo_line(todo))).collect();
    let size: usize = lines.iter().flatten().map(|line| line.len() + 1).sum();
    let left_out = if size > room { leave_out(todo, &mut lines, room) } else { 0 };
    let mut text = TODO_MARK.to_owned();
    for line in lines.iter().flatten() {
        text.push('\n');
        text.push_str(line);
    }
    let more = format!("\n[{} more are left out here]", grouped(left_out));
    if left_out > 0 && text.len() + more.len() <= bytes_of(most) { text + &more } else { text }
}

fn todo_line(todo: &Todo) -> String {
    let sign = match todo.status {
        TodoStatus::Pending => ' ',
        TodoStatus::InProgress => '~',
        TodoStatus::Done => 'x',
    };
    format!("- [{sign}] {}", without_marks(&one_line(&todo.text)))
}

/// Takes lines out until the others have room: how many.
fn leave_out(todo: &[Todo], lines: &mut [Option<String>], room: usize) -> usize {
    let longest = (room / LINE_SHARE).max(SHORTEST_LINE);
    let mut room = room.saturating_sub("\n[ more are left out here]".len() + grouped(lines.len()).len());
    let of = |status: TodoStatus| (0..todo.len()).filter(move |index| todo[*index].status == status);
    let by_importance = of(TodoStatus::InProgress).chain(of(TodoStatus::Pending));
    let mut left_out = 0;
    for index in by_importance.chain(of(TodoStatus::Done).rev()) {
        let line = lines[index].take().unwrap_or_default();
        let line = without_middle(&line, longest, |_| " … ".to_owned());
        if let Some(rest) = room.checked_sub(line.len() + 1) {
            room = rest;
            lines[index] = Some(line.into_owned());
        } else {
            left_out += 1;
        }
    }
    left_out
}

/// A request that is too long to be pinned as it is: head and tail, with a line between them that says how to read it.
fn shorten_request(text: &str, seq: u64, most: u64) -> String {
    let room = bytes_of(most);
    let marker = |missing: usize| {
        format!(
            "\n[… {} bytes are left out here; history_read with from {seq} and to {seq} shows them …]\n",
            grouped(missing)
        )
    };
    // A marker with hardly a word around it says less than the first words do.
    if room < 2 * marker(text.len()).len() {
        return if text.len() <= room { text } else { head(text, room) }.to_owned();
    }
    without_middle(text, room, marker).into_owned()
}

/// The tasks that run, if any do.
pub fn render_tasks<'a>(running: impl IntoIterator<Item = &'a TaskStarted>) -> Option<String> {
    let mut running = running.into_iter().peekable();
    running.peek()?;
    Some(running_tasks(running))
}

#[cfg(test)]
#[path = "preface_tests.rs"]
mod tests;
