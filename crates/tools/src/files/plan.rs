//! A write that is decided, then recorded, then made; and found again after a crash.
//!
//! | the file is | the call |
//! | --- | --- |
//! | as it should be after | happened: the same result as if nothing had come between |
//! | as it was before | did not happen: run it again |
//! | something else | can't be told: say so |

use std::path::{Path, PathBuf};

use longhaul_protocol::{CallId, FileSeen, FileWrite, Hash, ToolStarted};

use super::{hash_of, replace, temporary};
use crate::scope::{Folder, Missing, Permission, Place};
use crate::{Call, FileError, Finished, Resumed, Scope};

/// A file as it is now, of which a write may start.
pub(super) struct Found {
    pub(super) place: Place,
    key: String,
    pub(super) before: Option<Hash>,
}

impl Found {
    /// Looks at the file that a call wants to write, and refuses if it is not as the model saw it. A file that the model
    /// has seen and that is gone may be written: nothing is lost by it.
    pub(super) fn look(scope: &Scope, call: &Call, path: &str) -> Result<Self, FileError> {
        let place = scope.resolve(path, Permission::Write)?;
        let shown = place.shown().to_owned();
        let Some(key) = place.key().map(str::to_owned) else {
            let what = "can't be written: its path is not Unicode, so it can't be recorded".to_owned();
            return Err(FileError::Changed { path: shown, what });
        };
        let before = hash_at(&place)?;
        match (call.seen.get(&key), before) {
            (Some(seen), Some(before)) if *seen != before => {
                let what = "changed since it was read; read it again".to_owned();
                Err(FileError::Changed { path: shown, what })
            }
            _ => Ok(Self { place, key, before }),
        }
    }

    /// Decides what it should hold.
    pub(super) fn plan(self, call: CallId, content: Vec<u8>) -> Plan {
        let write = FileWrite { path: self.key, before: self.before, after: Hash::of(&content) };
        Plan { path: self.place.path().to_owned(), call, content, write }
    }
}

/// What a file will hold.
pub(super) struct Plan {
    path: PathBuf,
    call: CallId,
    content: Vec<u8>,
    pub(super) write: FileWrite,
}

impl Plan {
    /// Makes the write. `words` is what to say when it worked.
    pub(super) fn carry_out(self, scope: &Scope, words: impl FnOnce(&str, &FileWrite) -> String) -> Finished {
        let written = scope.at(&self.path, Permission::Write).and_then(|place| {
            replace::replace(&place, self.write.before, &self.content, self.call)?;
            Ok(place)
        });
        match written {
            Ok(place) => success(place.shown(), &self.write, words),
            Err(error) => error.into(),
        }
    }
}

fn success(shown: &str, write: &FileWrite, words: impl FnOnce(&str, &FileWrite) -> String) -> Finished {
    let seen = FileSeen { path: write.path.clone(), hash: write.after };
    Finished { seen: Some(seen), ..Finished::ok(words(shown, write)) }
}

/// Finds out what became of a write that a crash left open.
pub(super) fn resume(
    scope: &Scope,
    started: &ToolStarted,
    words: impl FnOnce(&str, &FileWrite) -> String,
) -> Resumed {
    let Some(write) = &started.write else {
        return Resumed::Unknown("nothing was recorded of the file that it should write".to_owned());
    };
    let looked = scope.at(Path::new(&write.path), Permission::Write).and_then(|place| {
        let now = hash_at(&place)?;
        Ok((place, now))
    });
    let (place, now) = match looked {
        Ok(looked) => looked,
        Err(error) => {
            return Resumed::Unknown(format!(
                "the write may or may not have happened, and can't be checked: {error}"
            ));
        }
    };
    if now == Some(write.after) {
        match settle(&place, write, started.call) {
            Ok(None) => Resumed::Finished(success(place.shown(), write, words)),
            Ok(Some(kept)) => Resumed::Unknown(format!(
                "{} is as it should be after, but someone else changed it at the same time; what they wrote is in {kept}",
                place.shown()
            )),
            Err(error) => Resumed::Unknown(format!("it happened, but may not be durable: {error}")),
        }
    } else if now == write.before {
        // A leftover that can't be removed now is removed by a later write.
        let _ = place.parent(Missing::Refuse).map(|(folder, _)| temporary::discard(&folder, started.call));
        Resumed::RunAgain
    } else {
        Resumed::Unknown(format!(
            "{} is neither as it was before nor as it should be after; read it to see how it is now",
            place.shown()
        ))
    }
}

/// Finishes what the crash may have cut off: the file that came out is removed if it is the one from before, and kept
/// under a name of its own otherwise; then all of it is made durable.
fn settle(place: &Place, write: &FileWrite, call: CallId) -> Result<Option<String>, FileError> {
    let (folder, name) = place.parent(Missing::Refuse)?;
    let failed = |error| FileError::system("make durable", place.shown(), error);
    let is_foreign = |hash: Hash| Some(hash) != write.before && hash != write.after;
    let kept = match left_by(&folder, call) {
        Some(hash) if is_foreign(hash) => Some(temporary::keep(&folder, call, &name).map_err(failed)?),
        Some(_) => {
            temporary::discard(&folder, call);
            None
        }
        None => None,
    };
    place.open_in(&folder, &name)?.file.sync_all().map_err(failed)?;
    folder.sync().map_err(|error| failed(error.into()))?;
    Ok(kept)
}

fn left_by(folder: &Folder, call: CallId) -> Option<Hash> {
    let (mut file, _) = folder.open(&temporary::name(call)).ok()?;
    hash_of(&mut file).ok()
}

/// The hash of the file here; none if there is no file.
fn hash_at(place: &Place) -> Result<Option<Hash>, FileError> {
    match place.open() {
        Ok(mut open) => {
            let hash =
                hash_of(&mut open.file).map_err(|error| FileError::system("read", place.shown(), error))?;
            Ok(Some(hash))
        }
        Err(FileError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
