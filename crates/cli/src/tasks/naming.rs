//! How people name tasks: an id is long, and its beginning or its end is enough.

use longhaul_protocol::TaskId;

/// So many characters at the end of an id are shown: they are random, while its beginning is the time.
const SHOWN: usize = 6;

/// What a name leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Named {
    One(TaskId),
    Several(Vec<TaskId>),
    Nothing,
}

/// The part of an id that is shown.
pub(crate) fn short(id: TaskId) -> String {
    let id = id.to_string();
    id[id.len() - SHOWN..].to_owned()
}

/// The task that a name means: a whole id, or the beginning or the end of one.
pub(crate) fn find(known: impl IntoIterator<Item = TaskId>, name: &str) -> Named {
    let name = name.trim().to_ascii_lowercase();
    let name = name.strip_prefix("task_").unwrap_or(&name);
    let fits = |id: &TaskId| {
        let id = id.to_string();
        let id = id.strip_prefix("task_").unwrap_or(&id);
        !name.is_empty() && (id.starts_with(name) || id.ends_with(name))
    };
    let mut found: Vec<TaskId> = known.into_iter().filter(fits).collect();
    found.sort_unstable();
    found.dedup();
    match found[..] {
        [] => Named::Nothing,
        [one] => Named::One(one),
        _ => Named::Several(found),
    }
}

#[cfg(test)]
#[path = "naming_tests.rs"]
mod tests;
