//! Changes of several files that are planned, recorded, performed, and checked after a crash.
//!
//! Everything is checked and computed before the first change. Files are created and replaced first and removed last, so
//! that nothing is gone before what takes its place is there. If a change fails, the ones before it are taken back.
//!
//! After a crash each file is compared with its hashes:
//!
//! | the files are | the call |
//! | --- | --- |
//! | all as before | did not happen: run it again |
//! | all as after | happened: the same result as without a crash |
//! | some as after, the others as before | was interrupted: the others are changed now |
//! | at least one is something else | unknown: tell the model how each file is |
//!
//! What a crash can leave of one file:
//!
//! | crash | on disk | on resume | never |
//! | --- | --- | --- | --- |
//! | while new content is written | the old file, half a temporary file | the half is removed, the file is written | half a file under the name |
//! | just after an exchange | the new file, the old one under the temporary name | the old one is removed | a second write |
//! | while a file is removed | no file, the old one under the temporary name | the old one is removed | another program's file removed |
//! | just after an exchange with, or a removal of, another program's change | theirs under the temporary name | theirs is kept under a name of its own, and told | their change lost |

use std::path::{Path, PathBuf};
use std::sync::Arc;

use longhaul_protocol::{CallId, FileChange, FileWrite, Hash, PrintablePath, ToolStarted};

use super::unified_diff::diff_of_write;
use super::write_plan::{FileBeforeWrite, SizeLimit, finish_interrupted_write, hash_at};
use super::{MAX_REPLACED_BYTES, atomic_replace, file_removal, temporary_file};
use crate::blocking_run::run_to_completion;
use crate::scope::{Permission, ScopedPath};
use crate::{FileError, ResumedCall, RunCall, Scope, ToolOutcome};

/// The diff of a call is stored with its result.
const MAX_DIFF_BYTES: usize = 48 << 10;
const CHECK_LIMIT: SizeLimit = SizeLimit { bytes: MAX_REPLACED_BYTES, doing: "a write replaces" };

/// A change of one file.
pub(super) struct PlannedChange {
    path: PathBuf,
    step: ChangeStep,
    record: FileChange,
    /// The change, for people.
    diff: Option<String>,
}

enum ChangeStep {
    /// Creates a file, or replaces its content.
    Write {
        content: Vec<u8>,
        /// What it held, to take the change back.
        old_content: Option<Vec<u8>>,
        /// A file whose mode and owner a new file gets: the one that it is moved from.
        like: Option<PathBuf>,
    },
    Remove,
    /// Moves the file at this path here.
    MoveFrom(PathBuf),
    /// The file is moved elsewhere by the change before. Where that made a second link, this one is removed.
    MovedAway,
}

impl PlannedChange {
    pub(super) fn write(file: &FileBeforeWrite, old_content: Option<Vec<u8>>, content: Vec<u8>) -> Self {
        let after = Some(Hash::of(&content));
        let before = old_content.as_deref().map(|old| String::from_utf8_lossy(old));
        let diff = diff_of_write(file.path.shown(), before.as_deref(), &content);
        Self { diff, ..Self::new(file, after, ChangeStep::Write { content, old_content, like: None }) }
    }

    /// Creates a file with the mode and owner of the one that it is moved from.
    pub(super) fn write_like(file: &FileBeforeWrite, moved: &FileBeforeWrite, content: Vec<u8>) -> Self {
        let (after, like) = (Some(Hash::of(&content)), Some(moved.path.path().to_owned()));
        let diff = diff_of_write(file.path.shown(), None, &content);
        Self { diff, ..Self::new(file, after, ChangeStep::Write { content, old_content: None, like }) }
    }

    pub(super) fn remove(file: &FileBeforeWrite) -> Self {
        let diff = file.text().and_then(|text| diff_of_write(file.path.shown(), Some(&text), b""));
        Self { diff, ..Self::new(file, None, ChangeStep::Remove) }
    }

    /// Moves a file. These are two changes, in this order.
    pub(super) fn rename(from: &FileBeforeWrite, to: &FileBeforeWrite) -> [Self; 2] {
        let step = ChangeStep::MoveFrom(from.path.path().to_owned());
        [Self::new(to, from.before, step), Self::new(from, None, ChangeStep::MovedAway)]
    }

    fn new(file: &FileBeforeWrite, after: Option<Hash>, step: ChangeStep) -> Self {
        let record = FileChange { path: file.key.clone(), before: file.before, after };
        Self { path: file.path.path().to_owned(), step, record, diff: None }
    }

    fn perform(&self, scope: &Scope, id: CallId) -> Result<(), FileError> {
        let place = scope.at(&self.path, Permission::Write)?;
        let FileChange { before, after, .. } = self.record;
        match (&self.step, before, after) {
            (ChangeStep::Write { content, like, .. }, before, _) => {
                let like = like.as_ref().map(|like| scope.at(like, Permission::Write)).transpose()?;
                let like = like.map(|like| like.open()).transpose()?;
                atomic_replace::replace_like(&place, before, content, like.as_ref(), id)
            }
            (ChangeStep::MoveFrom(from), _, Some(after)) => {
                file_removal::rename(&scope.at(from, Permission::Write)?, &place, after)
            }
            (ChangeStep::MovedAway, ..) if hash_at(&place, CHECK_LIMIT)?.is_none() => Ok(()),
            (ChangeStep::Remove | ChangeStep::MovedAway, Some(before), _) => {
                file_removal::remove(&place, before, id)
            }
            (ChangeStep::MoveFrom(_) | ChangeStep::Remove | ChangeStep::MovedAway, ..) => Ok(()),
        }
    }

    /// Takes the change back, if the file is still as the change left it.
    fn take_back(&self, scope: &Scope, id: CallId) -> Result<(), FileError> {
        let place = scope.at(&self.path, Permission::Write)?;
        let FileChange { before, after, .. } = self.record;
        match (&self.step, before, after) {
            (ChangeStep::Write { old_content: Some(old), .. }, _, after) => {
                atomic_replace::replace(&place, after, old, id)
            }
            (ChangeStep::Write { .. }, None, Some(after)) => file_removal::remove(&place, after, id),
            (ChangeStep::MoveFrom(from), _, Some(after)) => {
                file_removal::rename(&place, &scope.at(from, Permission::Write)?, after)
            }
            _ => {
                let what = "was removed, which is not taken back".to_owned();
                Err(FileError::Changed { path: place.shown().to_owned(), what })
            }
        }
    }

    fn is_removal(&self) -> bool {
        self.record.after.is_none()
    }
}

/// Changes of several files, with the result if all of them work.
pub(super) struct ChangePlan {
    pub(super) call: CallId,
    pub(super) changes: Vec<PlannedChange>,
    pub(super) success: String,
    /// Why the user has to agree first.
    pub(super) caution: Option<String>,
}

impl ChangePlan {
    /// Puts removals last.
    pub(super) fn new(
        call: CallId,
        mut changes: Vec<PlannedChange>,
        success: String,
        cautions: impl IntoIterator<Item = String>,
    ) -> Self {
        changes.sort_by_key(PlannedChange::is_removal);
        let cautions: Vec<String> = cautions.into_iter().collect();
        let caution = (!cautions.is_empty()).then(|| cautions.join("; "));
        Self { call, changes, success, caution }
    }

    /// The changes of all files as one diff, for people. A file without a diff, or past [`MAX_DIFF_BYTES`], is named.
    pub(super) fn diff(&self) -> Option<String> {
        let mut diff = String::new();
        let mut hidden = Vec::new();
        for change in &self.changes {
            match change.diff.as_deref() {
                Some(shown) if diff.len() + shown.len() <= MAX_DIFF_BYTES => diff += shown,
                _ => hidden.push(change),
            }
        }
        for change in hidden {
            let what = if change.is_removal() { "deletes or moves" } else { "writes" };
            diff += &format!("… also {what} {} (not shown)\n", change.path.printable());
        }
        (!diff.is_empty()).then_some(diff)
    }

    /// For the rest of a call: a diff of some of its files would look like all of it.
    fn without_diff(mut self) -> Self {
        self.changes.iter_mut().for_each(|change| change.diff = None);
        self
    }

    /// The hashes of all files, for the record.
    pub(super) fn records(&self) -> Vec<FileChange> {
        self.changes.iter().map(|change| change.record.clone()).collect()
    }

    /// The second half of the call.
    pub(super) fn into_run(self, scope: &Arc<Scope>) -> RunCall {
        let scope = Arc::clone(scope);
        Box::new(move |_| {
            Box::pin(async move {
                run_to_completion(move || Ok(self.perform(&scope))).await.unwrap_or_else(|problem| problem)
            })
        })
    }

    /// Makes all changes. If one fails, those before it are taken back.
    fn perform(self, scope: &Scope) -> ToolOutcome {
        if let Err(error) = self.check_unchanged(scope) {
            return error.into();
        }
        for (index, change) in self.changes.iter().enumerate() {
            if let Err(error) = change.perform(scope, temporary_id(self.call, &change.record.path)) {
                return self.take_back(scope, index, &error);
            }
        }
        ToolOutcome { diff: self.diff(), ..ToolOutcome::ok(self.success) }
    }

    /// Another program's change before the first write is no reason to take anything back.
    fn check_unchanged(&self, scope: &Scope) -> Result<(), FileError> {
        for change in &self.changes {
            let place = scope.at(&change.path, Permission::Write)?;
            if hash_at(&place, CHECK_LIMIT)? != change.record.before {
                let what = "changed since it was read; nothing was changed, read it again".to_owned();
                return Err(FileError::Changed { path: place.shown().to_owned(), what });
            }
        }
        Ok(())
    }

    /// Takes the changes that were made back, and reports the error. A removal can't be taken back; then all changes stay, because what
    /// was removed may only exist where an earlier change has written it.
    fn take_back(&self, scope: &Scope, made: usize, error: &FileError) -> ToolOutcome {
        let made = &self.changes[..made];
        let has_removal = made.iter().any(PlannedChange::is_removal);
        let mut stand = Vec::new();
        for change in made.iter().rev() {
            if has_removal || change.take_back(scope, temporary_id(self.call, &change.record.path)).is_err() {
                stand.push(scope.show(&change.path));
            }
        }
        stand.reverse();
        ToolOutcome::error(match stand.as_slice() {
            [] => format!("nothing was changed: {error}"),
            stand => format!("{error}. These were changed before that, and stay so: {}", stand.join(", ")),
        })
    }
}

/// The name of a file's temporary file is made from this: each file of a call has its own, so that a leftover belongs to
/// one file even if several are in one folder.
fn temporary_id(call: CallId, path: &str) -> CallId {
    let hash = Hash::of(format!("{call} {path}"));
    let bytes = hash.as_bytes().iter().take(16);
    CallId::from_bits(bytes.fold(0, |bits, byte| bits << 8 | u128::from(*byte)))
}

/// How a file is after a crash.
enum FileState {
    Before,
    After,
    Other,
}

/// Finds out what became of changes that a crash interrupted. `plan_rest` plans the changes of these files again, from
/// how they are now.
pub(super) fn resume(
    scope: &Arc<Scope>,
    started: &ToolStarted,
    success: String,
    plan_rest: impl FnOnce(&[FileChange]) -> Result<ChangePlan, ToolOutcome>,
) -> ResumedCall {
    if started.writes.is_empty() {
        return ResumedCall::Unknown("nothing was recorded of the files that it should change".to_owned());
    }
    let (mut rest, mut lines, mut has_other) = (Vec::new(), Vec::new(), false);
    for change in &started.writes {
        let (state, shown) = match file_state(scope, change) {
            Ok(found) => found,
            Err(error) => return unknown(&format!("it can't be checked: {error}")),
        };
        lines.push(match state {
            FileState::After => format!("{shown} is as it should be after"),
            FileState::Before => format!("{shown} is as it was before"),
            FileState::Other => format!("{shown} is neither as before nor as after"),
        });
        has_other |= matches!(state, FileState::Other);
        if matches!(state, FileState::Before) {
            rest.push(change.clone());
        }
    }
    let lines = lines.join("; ");
    if has_other {
        return unknown(&lines);
    }
    match finish_files(scope, started, &rest) {
        Ok(kept) if kept.is_empty() => {}
        Ok(kept) => {
            let kept = kept.join(", ");
            return unknown(&format!(
                "{lines}; someone else changed a file at the same time, and what they wrote is in {kept}"
            ));
        }
        Err(error) => return unknown(&format!("{lines}; it may not be durable: {error}")),
    }
    if rest.is_empty() {
        return ResumedCall::Finished(ToolOutcome::ok(success));
    }
    if rest.len() == started.writes.len() {
        return ResumedCall::RunAgain;
    }
    match plan_rest(&rest) {
        Ok(plan) if plan.records() == rest => {
            ResumedCall::Running { run: plan.without_diff().into_run(scope), takes_up_to: None }
        }
        Ok(_) => unknown(&lines),
        Err(problem) => unknown(&format!("{lines}; {}", problem.content)),
    }
}

fn unknown(what: &str) -> ResumedCall {
    ResumedCall::Unknown(format!("it was interrupted: {what}"))
}

fn file_state(scope: &Scope, change: &FileChange) -> Result<(FileState, String), FileError> {
    let place = scope.at(Path::new(&change.path), Permission::Write)?;
    let now = hash_at(&place, CHECK_LIMIT)?;
    let state = if now == change.after {
        FileState::After
    } else if now == change.before {
        FileState::Before
    } else {
        FileState::Other
    };
    Ok((state, place.shown().to_owned()))
}

/// Removes what the crash left beside the files, and makes those durable that were changed. Returns the names of other
/// programs' files that came out and were kept.
fn finish_files(scope: &Scope, started: &ToolStarted, rest: &[FileChange]) -> Result<Vec<String>, FileError> {
    let mut kept = Vec::new();
    for change in &started.writes {
        let place = scope.at(Path::new(&change.path), Permission::Write)?;
        let id = temporary_id(started.call, &change.path);
        if rest.contains(change) {
            // A leftover that can't be removed now is removed by a later write.
            let _ = place.parent().map(|(folder, _)| temporary_file::discard(&folder, id));
            continue;
        }
        kept.extend(finish_file(&place, change, id)?);
    }
    Ok(kept)
}

fn finish_file(place: &ScopedPath, change: &FileChange, id: CallId) -> Result<Option<String>, FileError> {
    match (change.before, change.after) {
        (before, Some(after)) => {
            let write = FileWrite { path: change.path.clone(), before, after };
            finish_interrupted_write(place, &write, id)
        }
        (Some(before), None) => file_removal::finish_interrupted_removal(place, before, id),
        (None, None) => Ok(None),
    }
}
