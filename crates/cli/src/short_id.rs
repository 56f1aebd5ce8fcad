//! How people name tasks and questions: an id is long, and its beginning or its end is enough.

use std::fmt::Display;

use longhaul_protocol::TaskId;

/// So many characters at the end of an id are shown: they are random, while its beginning is the time.
const SHORT_ID_CHARS: usize = 6;

/// A shorter part of an id is none: it fits too much, and may be a word.
const MIN_PART_CHARS: usize = 4;

/// What a name leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IdMatch<Id> {
    One(Id),
    Several(Vec<Id>),
    Nothing,
}

/// The part of an id that is shown.
pub(crate) fn short(id: TaskId) -> String {
    let id = id.to_string();
    id[id.len() - SHORT_ID_CHARS..].to_owned()
}

/// What a name means of this: a whole id, or the beginning or the end of one. Upper and lower case are the same.
pub(crate) fn find<Id: Copy + Ord + Display>(known: impl IntoIterator<Item = Id>, name: &str) -> IdMatch<Id> {
    let bare = |id: &str| {
        let id = id.trim().to_ascii_lowercase();
        id.strip_prefix("task_").map(str::to_owned).unwrap_or(id)
    };
    // Whoever writes how an id begins means its beginning.
    let is_beginning = name.trim().to_ascii_lowercase().starts_with("task_");
    let name = bare(name);
    let fits = |id: &Id| {
        let id = bare(&id.to_string());
        name.len() >= MIN_PART_CHARS && (id.starts_with(&name) || (!is_beginning && id.ends_with(&name)))
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
