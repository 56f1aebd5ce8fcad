//! Following a path link by link, from `/` to its target.
//!
//! A command can replace anything that it may write by a link to anywhere. Code that allows a path has to know in
//! which folders the links lie that the path goes through.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// The limit of Linux.
const MAX_LINKS: usize = 40;

/// Where a path leads, and through which links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathTrace {
    /// The path without links, as far as it exists. A link that was not followed counts as missing: the rest stays as
    /// written.
    pub(crate) target: PathBuf,
    pub(crate) exists: bool,
    /// The paths of the links that were followed.
    pub(crate) links: Vec<PathBuf>,
    /// Whether a link was not followed because it lies in a writable path.
    pub(crate) is_link_refused: bool,
}

impl PathTrace {
    /// The trace of an existing path that goes through no link.
    pub(crate) fn without_links(path: &Path) -> Self {
        let target = path.components().collect();
        Self { target, exists: true, links: Vec::new(), is_link_refused: false }
    }

    /// Follows an absolute path, but no link that lies in one of the writable paths. `None` if it leads nowhere: in a
    /// circle, or up from a missing folder.
    pub(crate) fn follow(path: &Path, writable: &[PathBuf]) -> Option<Self> {
        let mut trace =
            Self { target: PathBuf::from("/"), exists: true, links: Vec::new(), is_link_refused: false };
        let mut names = names(path);
        while let Some(name) = names.pop_front() {
            if name == ".." {
                if !trace.exists {
                    return None;
                }
                trace.target.pop();
                continue;
            }
            let next = trace.target.join(&name);
            let link = if trace.exists { std::fs::read_link(&next) } else { Err(ErrorKind::NotFound.into()) };
            match link {
                Ok(_) if is_within_any(&trace.target, writable) => {
                    trace.is_link_refused = true;
                    trace.exists = false;
                    trace.target = next;
                }
                Ok(_) if trace.links.len() == MAX_LINKS => return None,
                Ok(leads_to) => {
                    trace.links.push(next);
                    if leads_to.is_absolute() {
                        trace.target = PathBuf::from("/");
                    }
                    let mut rest = self::names(&leads_to);
                    rest.append(&mut names);
                    names = rest;
                }
                // It is no link.
                Err(error) if error.kind() == ErrorKind::InvalidInput => trace.target = next,
                Err(_) => {
                    trace.exists = false;
                    trace.target = next;
                }
            }
        }
        Some(trace)
    }

    /// Like [`PathTrace::follow`], if the target exists. Most paths are missing or go through no link, which one
    /// system call shows.
    pub(crate) fn follow_existing(path: &Path, writable: &[PathBuf]) -> Option<Self> {
        match is_straight(path) {
            Ok(true) => Some(Self::without_links(path)),
            Ok(false) => Self::follow(path, writable).filter(|trace| trace.exists),
            Err(_) => None,
        }
    }

    /// Whether one of its links lies in one of these paths.
    pub(crate) fn has_link_in(&self, places: &[PathBuf]) -> bool {
        self.links.iter().filter_map(|link| link.parent()).any(|folder| is_within_any(folder, places))
    }
}

/// The traces to writable paths that no command can have redirected: none of their links lies in any of those paths,
/// or in one that commands may already write.
///
/// A trace without links is always among them. What a command could write before, it can write now, because that trace
/// was among them then.
pub(crate) fn untampered(traces: Vec<PathTrace>, writable: &[PathBuf]) -> Vec<PathTrace> {
    let straight = traces.iter().filter(|trace| trace.links.is_empty()).map(|trace| trace.target.clone());
    let sure: Vec<PathBuf> = writable.iter().cloned().chain(straight).collect();
    let traces: Vec<PathTrace> = traces.into_iter().filter(|trace| !trace.has_link_in(&sure)).collect();
    // If two lead through each other, either may have been redirected.
    let all: Vec<PathBuf> = traces.iter().map(|trace| trace.target.clone()).collect();
    traces.into_iter().filter(|trace| !trace.has_link_in(&all)).collect()
}

/// Whether a canonical path is one of these paths or lies in one.
///
/// It compares bytes: each command asks this some thousand times, and `Path::starts_with` parses both paths. Canonical
/// paths have no `.`, `..` or `//`, so the result is the same.
pub(crate) fn is_within_any(path: &Path, places: &[PathBuf]) -> bool {
    let path = path.as_os_str().as_encoded_bytes();
    places.iter().any(|place| {
        let place = place.as_os_str().as_encoded_bytes();
        let rest = path.strip_prefix(place);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/") || place.ends_with(b"/"))
    })
}

/// Whether a path goes through no link and no `..`; an error if nothing is there.
#[cfg(target_os = "linux")]
fn is_straight(path: &Path) -> rustix::io::Result<bool> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    use rustix::io::Errno;

    if path.components().any(|part| part == Component::ParentDir) {
        return Ok(false);
    }
    match openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(_) => Ok(true),
        Err(error @ (Errno::NOENT | Errno::NOTDIR)) => Err(error),
        Err(_) => Ok(false),
    }
}

#[cfg(not(target_os = "linux"))]
fn is_straight(path: &Path) -> std::io::Result<bool> {
    path.symlink_metadata().map(|_| false)
}

fn names(path: &Path) -> VecDeque<OsString> {
    let is_name = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
    path.components().filter(is_name).map(|part| part.as_os_str().to_owned()).collect()
}

#[cfg(test)]
#[path = "path_trace_tests.rs"]
mod tests;
