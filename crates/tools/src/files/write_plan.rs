//! A write that is planned, recorded, performed, and checked after a crash.
//!
//! | the file is | the call |
//! | --- | --- |
//! | as it should be after | happened: the same result as without a crash |
//! | as it was before | did not happen: run it again |
//! | something else | unknown: tell the model |

use std::io::Read;
use std::path::{Path, PathBuf};

use longhaul_protocol::{CallId, FileSeen, FileWrite, Hash, ToolStarted};

use super::{MAX_REPLACED_BYTES, atomic_replace, hash_of, temporary_file, unified_diff};
use crate::scope::{Permission, ScopedFolder, ScopedPath};
use crate::{FileError, ResumedCall, Scope, ToolInvocation, ToolOutcome};

/// Larger files are not compared for a question.
const MAX_DIFFED_BYTES: u64 = 1 << 20;
/// Unchanged lines around each change.
const DIFF_CONTEXT: usize = 3;
const MAX_DIFF_LINES: usize = 400;

/// The largest file that a tool changes.
#[derive(Debug, Clone, Copy)]
pub(super) struct SizeLimit {
    pub(super) bytes: u64,
    /// The tool and what it does, for the error.
    pub(super) doing: &'static str,
}

/// A file before a write.
pub(super) struct FileBeforeWrite {
    pub(super) path: ScopedPath,
    key: String,
    pub(super) before: Option<Hash>,
    caution: Option<String>,
}

impl FileBeforeWrite {
    /// Hashes the file that a call wants to write, and refuses if it is not as the model saw it. A file that the model
    /// saw and that is gone may be written: nothing is lost.
    pub(super) fn load(
        scope: &Scope,
        call: &ToolInvocation,
        path: &str,
        largest: SizeLimit,
    ) -> Result<Self, FileError> {
        let place = scope.resolve(path, Permission::Write)?;
        let shown = place.shown().to_owned();
        let Some(key) = place.key().map(str::to_owned) else {
            let what = "can't be written: its path is not Unicode, so it can't be recorded".to_owned();
            return Err(FileError::Changed { path: shown, what });
        };
        let before = hash_at(&place, largest)?;
        match (call.seen.get(&key), before) {
            (Some(seen), Some(before)) if *seen != before => {
                let what = "changed since it was read; read it again".to_owned();
                Err(FileError::Changed { path: shown, what })
            }
            _ => {
                let caution = scope.is_startup_file(place.path()).then(|| {
                    format!("{shown} is a startup file: the user's shell, login or tools run it later, outside of the sandbox")
                });
                Ok(Self { path: place, key, before, caution })
            }
        }
    }

    pub(super) fn plan(self, call: CallId, content: Vec<u8>) -> WritePlan {
        let write = FileWrite { path: self.key, before: self.before, after: Hash::of(&content) };
        WritePlan { path: self.path.path().to_owned(), call, content, write, caution: self.caution }
    }
}

/// The content that a file will have.
pub(super) struct WritePlan {
    path: PathBuf,
    call: CallId,
    content: Vec<u8>,
    pub(super) write: FileWrite,
    /// Why the user has to agree first.
    pub(super) caution: Option<String>,
}

impl WritePlan {
    /// What the write would change, for the person who is asked about it. `None` if the file is no text, or too large.
    pub(super) fn diff(&self, scope: &Scope) -> Option<String> {
        let place = scope.at(&self.path, Permission::Write).ok()?;
        let before = match self.write.before {
            Some(_) => {
                let mut text = String::new();
                let open = place.open().ok().filter(|open| open.bytes() <= MAX_DIFFED_BYTES)?;
                open.file.take(MAX_DIFFED_BYTES + 1).read_to_string(&mut text).ok()?;
                Some(text)
            }
            None => None,
        };
        let after =
            std::str::from_utf8(&self.content).ok().filter(|text| text.len() as u64 <= MAX_DIFFED_BYTES)?;
        Some(unified_diff(place.shown(), before.as_deref(), after, DIFF_CONTEXT, MAX_DIFF_LINES))
    }

    /// Performs the write. `success_text` is the result if it worked.
    pub(super) fn perform(
        self,
        scope: &Scope,
        success_text: impl FnOnce(&str, &FileWrite) -> String,
    ) -> ToolOutcome {
        let written = scope.at(&self.path, Permission::Write).and_then(|place| {
            atomic_replace::replace(&place, self.write.before, &self.content, self.call)?;
            Ok(place)
        });
        match written {
            Ok(place) => success(place.shown(), &self.write, success_text),
            Err(error) => error.into(),
        }
    }
}

fn success(
    shown: &str,
    write: &FileWrite,
    success_text: impl FnOnce(&str, &FileWrite) -> String,
) -> ToolOutcome {
    let seen = FileSeen { path: write.path.clone(), hash: write.after };
    ToolOutcome { seen: Some(seen), ..ToolOutcome::ok(success_text(shown, write)) }
}

/// Finds out whether a write happened that a crash interrupted.
pub(super) fn resume(
    scope: &Scope,
    started: &ToolStarted,
    success_text: impl FnOnce(&str, &FileWrite) -> String,
) -> ResumedCall {
    let Some(write) = &started.write else {
        return ResumedCall::Unknown("nothing was recorded of the file that it should write".to_owned());
    };
    let looked = scope.at(Path::new(&write.path), Permission::Write).and_then(|place| {
        let now = hash_at(&place, SizeLimit { bytes: MAX_REPLACED_BYTES, doing: "a write replaces" })?;
        Ok((place, now))
    });
    let (place, now) = match looked {
        Ok(looked) => looked,
        Err(error) => {
            return ResumedCall::Unknown(format!(
                "the write may or may not have happened, and can't be checked: {error}"
            ));
        }
    };
    if now == Some(write.after) {
        match finish_interrupted_write(&place, write, started.call) {
            Ok(None) => ResumedCall::Finished(success(place.shown(), write, success_text)),
            Ok(Some(kept)) => ResumedCall::Unknown(format!(
                "{} is as it should be after, but someone else changed it at the same time; what they wrote is in {kept}",
                place.shown()
            )),
            Err(error) => ResumedCall::Unknown(format!("it happened, but may not be durable: {error}")),
        }
    } else if now == write.before {
        // A leftover that can't be removed now is removed by a later write.
        let _ = place.parent().map(|(folder, _)| temporary_file::discard(&folder, started.call));
        ResumedCall::RunAgain
    } else {
        ResumedCall::Unknown(format!(
            "{} is neither as it was before nor as it should be after; read it to see how it is now",
            place.shown()
        ))
    }
}

/// Finishes an interrupted exchange: the file that came out is removed if it is the old one, and kept under its own
/// name otherwise. Then all of it is made durable.
fn finish_interrupted_write(
    place: &ScopedPath,
    write: &FileWrite,
    call: CallId,
) -> Result<Option<String>, FileError> {
    let (folder, name) = place.parent()?;
    let failed = |error| FileError::system("make durable", place.shown(), error);
    let kept = match left_by(&folder, call) {
        Leftover::Nothing => None,
        Leftover::File(Some(hash)) if Some(hash) == write.before || hash == write.after => {
            temporary_file::discard(&folder, call);
            None
        }
        Leftover::File(_) => Some(temporary_file::keep(&folder, call, &name).map_err(failed)?),
    };
    place.open_in(&folder, &name)?.file.sync_all().map_err(failed)?;
    folder.sync().map_err(|error| failed(error.into()))?;
    Ok(kept)
}

/// What has the name of a call's temporary file.
enum Leftover {
    Nothing,
    /// A file, with its hash if it can be read.
    File(Option<Hash>),
}

fn left_by(folder: &ScopedFolder, call: CallId) -> Leftover {
    let name = temporary_file::name(call);
    match (folder.open(&name), folder.status(&name)) {
        (Ok((mut file, _)), _) => Leftover::File(hash_of(&mut file).ok()),
        (Err(_), Ok(_)) => Leftover::File(None),
        (Err(_), Err(_)) => Leftover::Nothing,
    }
}

/// The hash of the file; `None` if there is no file. A file that is too large is not read.
fn hash_at(place: &ScopedPath, largest: SizeLimit) -> Result<Option<Hash>, FileError> {
    match place.open() {
        Ok(open) if open.bytes() > largest.bytes => Err(FileError::TooLarge {
            path: place.shown().to_owned(),
            bytes: open.bytes(),
            doing: largest.doing,
            most: largest.bytes,
        }),
        Ok(mut open) => {
            let hash =
                hash_of(&mut open.file).map_err(|error| FileError::system("read", place.shown(), error))?;
            Ok(Some(hash))
        }
        Err(FileError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
