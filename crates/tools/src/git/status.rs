//! Whether a work tree is clean, asked of git without running anything that the repository names.
//!
//! A repository that came from elsewhere can name programs in its configuration (`core.fsmonitor`, filters, hooks, the
//! programs of remotes), and git runs some of them for a mere `git status`. Switching them off one by one would miss the
//! next one. So git does not see that configuration at all: it gets a git folder of its own, with an empty
//! configuration, and only the index, the objects and the excludes of the repository. Attributes in the work tree name
//! filters, but without configuration none is defined.

use std::fs::{self, DirBuilder};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::checkout::{git_dir, git_root, read_head};
use super::config::GitConfig;
use super::enclosing_repository::common_dir;
use crate::small_file::LastLink;

/// Settings without which git would take unchanged files for changed ones. Only these values are taken over.
const TAKEN_OVER: [(&str, &[&str]); 4] = [
    ("core.filemode", &["true", "false"]),
    ("core.symlinks", &["true", "false"]),
    ("core.ignorecase", &["true", "false"]),
    ("core.autocrlf", &["true", "false", "input"]),
];
/// No process needs its folder for so long.
const LEFTOVER_AGE: Duration = Duration::from_secs(60);
/// Variables that git gets: to be found, and to find the user's own list of ignored files.
const VARIABLES: [&str; 3] = ["PATH", "HOME", "XDG_CONFIG_HOME"];

/// Whether nothing is changed, staged or untracked in the work tree around a folder. `None` if there is no repository
/// of the user's own, or if git doesn't know within this time. `scratch` is a folder for git's own files and nothing else;
/// it is made if it is missing.
pub fn is_work_tree_clean(folder: &Path, scratch: &Path, timeout: Duration) -> Option<bool> {
    let deadline = Instant::now() + timeout;
    let work_tree = git_root(folder)?;
    let git_dir = git_dir(work_tree)?;
    let common_dir = common_dir(&git_dir).unwrap_or_else(|| git_dir.clone());
    let user = rustix::process::geteuid().as_raw();
    let is_own = |path: &Path| path.metadata().is_ok_and(|metadata| metadata.uid() == user);
    if ![work_tree, &git_dir, &common_dir].into_iter().all(is_own) {
        return None;
    }
    let program = find_git(work_tree)?;
    let stand_in = StandIn::new(scratch, &git_dir, &common_dir).ok()?;
    let mut command = Command::new(program);
    command
        .args([
            "--no-optional-locks",
            "--no-pager",
            "-c",
            "core.fsmonitor=false",
            "-c",
            "core.hooksPath=/dev/null",
        ])
        .args(["status", "--porcelain", "-z", "--ignore-submodules=all", "--untracked-files=normal"])
        .env_clear()
        .envs(VARIABLES.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
        .env("GIT_DIR", &stand_in.0)
        .env("GIT_WORK_TREE", work_tree)
        .env("GIT_INDEX_FILE", git_dir.join("index"))
        .env("GIT_OBJECT_DIRECTORY", common_dir.join("objects"))
        .envs([("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_NO_LAZY_FETCH", "1")])
        .envs([("GIT_ALLOW_PROTOCOL", "none"), ("GIT_TERMINAL_PROMPT", "0")])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let is_clean = first_output(&mut child, deadline);
    // It is of no use any more, whatever it is doing.
    let _ = child.kill();
    let status = child.wait().ok()?;
    match is_clean? {
        Output::Some => Some(false),
        Output::None => status.success().then_some(true),
    }
}

enum Output {
    Some,
    /// It ended without any.
    None,
}

/// What a command has printed as soon as that is known. `None` if it isn't before the deadline.
fn first_output(child: &mut Child, deadline: Instant) -> Option<Output> {
    let stdout = child.stdout.as_mut()?;
    let left = Timespec::try_from(deadline.checked_duration_since(Instant::now())?).ok()?;
    let mut polled = [PollFd::new(stdout, PollFlags::IN)];
    if poll(&mut polled, Some(&left)).ok()? == 0 {
        return None;
    }
    if stdout.read(&mut [0]).ok()? > 0 {
        return Some(Output::Some);
    }
    // After the end of its output git only exits.
    while child.try_wait().ok()?.is_none() {
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    Some(Output::None)
}

/// The git that the user's `PATH` leads to, unless it lies in the work tree.
fn find_git(work_tree: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    folders.find_map(|folder| {
        let program = folder.join("git").canonicalize().ok()?;
        (program.is_file() && !program.starts_with(work_tree)).then(|| folder.join("git"))
    })
}

/// A git folder that stands in for the repository's own. It is removed in the end.
struct StandIn(PathBuf);

impl StandIn {
    fn new(scratch: &Path, git_dir: &Path, common_dir: &Path) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let private =
            |recursive: bool, path: &Path| DirBuilder::new().mode(0o700).recursive(recursive).create(path);
        private(true, scratch)?;
        remove_leftovers(scratch)?;
        let folder = Self(scratch.join(format!("{process}-{number}")));
        private(false, &folder.0)?;
        private(false, &folder.0.join("refs"))?;
        let head = read_head(git_dir).ok_or(io::ErrorKind::InvalidData)?;
        let head = match (head.commit, head.branch) {
            (Some(commit), _) => commit,
            (None, Some(_)) if has_no_commit(common_dir) => "ref: refs/heads/main".to_owned(),
            (None, _) => return Err(io::ErrorKind::InvalidData.into()),
        };
        fs::write(folder.0.join("HEAD"), head + "\n")?;
        fs::write(folder.0.join("config"), taken_over(&common_dir.join("config")))?;
        symlink(common_dir.join("info"), folder.0.join("info"))?;
        Ok(folder)
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes what processes left behind that ended before git did.
fn remove_leftovers(scratch: &Path) -> io::Result<()> {
    for entry in fs::read_dir(scratch)? {
        let entry = entry?;
        let age = entry.metadata().and_then(|metadata| metadata.modified()).map(|made| made.elapsed());
        if matches!(age, Ok(Ok(age)) if age > LEFTOVER_AGE) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

/// Whether a branch without a file has no commit either, rather than one in a list that is too long to read.
fn has_no_commit(common_dir: &Path) -> bool {
    common_dir.join("packed-refs").symlink_metadata().is_err()
}

/// The configuration that git gets.
fn taken_over(config: &Path) -> String {
    let config = GitConfig::read(config, LastLink::Refuse).unwrap_or_default();
    let mut text = String::from("[core]\n\trepositoryformatversion = 0\n\tbare = false\n");
    for (name, values) in TAKEN_OVER {
        let value = config.last(name).map(str::to_lowercase);
        if let (Some(value), Some((_, key))) =
            (value.filter(|value| values.contains(&value.as_str())), name.split_once('.'))
        {
            text += &format!("\t{key} = {value}\n");
        }
    }
    text
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
