//! Short forms of the ids of tasks, questions and sessions: the user may type the beginning or the end of an id.

use std::fmt::Display;

use longhaul_protocol::TaskId;

pub(crate) use longhaul_transcript::short_id as short;

/// The shortest part that can stand for an id. Less would match too much, and might be a word.
const MIN_PART_CHARS: usize = 4;
/// The same where only the id of a task can stand.
const MIN_TASK_CHARS: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IdMatch<Id> {
    One(Id),
    Several(Vec<Id>),
    Nothing,
}

/// Finds the ids that `name` stands for: a whole id, its beginning or end, or the beginning of its short form, in upper or lower case.
pub(crate) fn find<Id: Copy + Ord + Display>(known: impl IntoIterator<Item = Id>, name: &str) -> IdMatch<Id> {
    find_part(known, name, MIN_PART_CHARS)
}

/// Finds tasks as [`find`] does, also by fewer characters.
pub(crate) fn find_task(known: impl IntoIterator<Item = TaskId>, name: &str) -> IdMatch<TaskId> {
    find_part(known, name, MIN_TASK_CHARS)
}

fn find_part<Id: Copy + Ord + Display>(
    known: impl IntoIterator<Item = Id>,
    name: &str,
    min_chars: usize,
) -> IdMatch<Id> {
    let bare = |id: &str| {
        let id = id.trim().to_ascii_lowercase();
        id.strip_prefix("task_").map(str::to_owned).unwrap_or(id)
    };
    // After the prefix `task_` only the beginning of an id makes sense.
    let is_beginning = name.trim().to_ascii_lowercase().starts_with("task_");
    let name = bare(name);
    let fits = |id: &Id| {
        let (id, shown) = (bare(&id.to_string()), short(id).to_ascii_lowercase());
        let is_part = id.ends_with(&name) || shown.starts_with(&name);
        name.len() >= min_chars && (id.starts_with(&name) || (!is_beginning && is_part))
    };
    let mut found: Vec<Id> = known.into_iter().filter(fits).collect();
    found.sort_unstable();
    found.dedup();
    match found[..] {
        [] => IdMatch::Nothing,
        [one] => IdMatch::One(one),
        _ => IdMatch::Several(found),
    }
}

#[cfg(test)]
#[path = "short_id_tests.rs"]
mod tests;
