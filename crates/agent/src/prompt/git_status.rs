//! Whether the work tree is clean when a session begins. Git needs some milliseconds for that, and more in a large
//! repository, so it is asked in a thread of its own as soon as a new session is opened. The first request does not wait
//! for it: what is not known by then is left out.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use longhaul_tools::{git_root, is_work_tree_clean};

use crate::runtime::lock;

/// How long git may take.
const GIT_TIMEOUT: Duration = Duration::from_millis(300);
/// An answer this old is no longer that of the session's beginning: the user may have thought about the first input for
/// an hour.
const MAX_AGE: Duration = Duration::from_secs(300);

/// The last question to git, and its answer.
#[derive(Default)]
pub(crate) struct GitStatusProbe(Mutex<Option<Probe>>);

struct Probe {
    folder: PathBuf,
    asked_at: Instant,
    /// Set once git has answered, or was too slow.
    answer: Arc<OnceLock<Option<bool>>>,
}

impl GitStatusProbe {
    /// Asks git about a folder, if that lies in a repository. Returns at once. `scratch` is a folder for git's own files.
    pub(crate) fn start(&self, folder: &Path, scratch: PathBuf) {
        let Ok(folder) = folder.canonicalize() else { return };
        if git_root(&folder).is_none() {
            return;
        }
        let answer = Arc::new(OnceLock::new());
        let probe = Probe { folder: folder.clone(), asked_at: Instant::now(), answer: answer.clone() };
        *lock(&self.0) = Some(probe);
        let ask = move || {
            let _ = answer.set(is_work_tree_clean(&folder, &scratch, GIT_TIMEOUT));
        };
        // Without a thread, cleanliness is unknown.
        drop(std::thread::Builder::new().name("git-status".to_owned()).spawn(ask));
    }

    /// Whether the work tree of a folder is clean. `None` if that isn't known yet.
    pub(crate) fn answer(&self, folder: &Path) -> Option<bool> {
        let probe = lock(&self.0);
        let probe = probe.as_ref()?;
        let is_current = probe.folder == folder && probe.asked_at.elapsed() < MAX_AGE;
        if is_current { probe.answer.get().copied().flatten() } else { None }
    }
}

#[cfg(test)]
#[path = "git_status_tests.rs"]
mod tests;
