//! What is denied, by path and by identity.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, Stat};

use super::{Permission, resolve};

/// What a file is whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl From<&Stat> for Identity {
    #[allow(clippy::unnecessary_cast, reason = "these have other types on other systems")]
    fn from(status: &Stat) -> Self {
        Self { device: status.st_dev as u64, inode: status.st_ino as u64 }
    }
}

/// A denied target.
#[derive(Debug)]
pub(super) struct Denial {
    target: PathBuf,
    path_at_first: PathBuf,
    /// What was there at first. The handle keeps its inode from being given to something else, so that it can be denied
    /// wherever it is moved.
    at_first: Option<(OwnedFd, Identity)>,
    pub(super) permission: Permission,
}

impl Denial {
    pub(super) fn new(target: PathBuf, permission: Permission) -> Self {
        let handle = rustix::fs::openat(CWD, &target, LOOK | OFlags::CLOEXEC, Mode::empty()).ok();
        let at_first = handle.and_then(|handle| {
            let identity = Identity::from(&rustix::fs::fstat(&handle).ok()?);
            Some((handle, identity))
        });
        let path_at_first = resolve::canonical(&target).unwrap_or_else(|| target.clone());
        Self { target, path_at_first, at_first, permission }
    }

    pub(super) fn path_now(&self) -> PathBuf {
        resolve::canonical(&self.target).unwrap_or_else(|| self.target.clone())
    }

    /// Every path under which it is known: as it was written, as it was at first, and wherever that was moved since.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let mut paths = vec![self.path_now(), self.path_at_first.clone()];
        paths.extend(self.moved_to());
        paths.sort();
        paths.dedup();
        paths
    }

    /// Where the system says that what was there at first is now.
    #[cfg(target_os = "linux")]
    fn moved_to(&self) -> Option<PathBuf> {
        use std::os::fd::AsRawFd;

        let (handle, identity) = self.at_first.as_ref()?;
        let path = std::fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd())).ok()?;
        // What was removed is named too, in a way that no path is meant.
        let is_there = rustix::fs::lstat(&path).is_ok_and(|status| Identity::from(&status) == *identity);
        is_there.then_some(path)
    }

    #[cfg(not(target_os = "linux"))]
    fn moved_to(&self) -> Option<PathBuf> {
        None
    }

    fn identity_now(&self) -> Option<Identity> {
        rustix::fs::stat(&self.target).ok().map(|status| Identity::from(&status))
    }
}

/// Opening a thing only to know it, without any right to it.
#[cfg(target_os = "linux")]
pub(super) const LOOK: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
pub(super) const LOOK: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);

/// What is denied at one moment, for one permission.
#[derive(Debug)]
pub(crate) struct Borders {
    paths: Vec<PathBuf>,
    identities: Vec<Identity>,
}

impl Borders {
    pub(super) fn now(deny: &[Denial], wanted: Permission) -> Self {
        let mut borders = Self { paths: Vec::new(), identities: Vec::new() };
        for denial in deny.iter().filter(|denial| denial.permission.forbids(wanted)) {
            let paths = [&denial.target, &denial.path_at_first, &denial.path_now()].map(|path| folded(path));
            borders.paths.extend(paths);
            let at_first = denial.at_first.as_ref().map(|(_, identity)| *identity);
            borders.identities.extend(at_first.into_iter().chain(denial.identity_now()));
        }
        borders.paths.sort();
        borders.paths.dedup();
        borders
    }

    /// Whether a canonical path lies under a denied one.
    pub(crate) fn deny_path(&self, path: &Path) -> bool {
        let path = folded(path);
        self.paths.iter().any(|denied| path.starts_with(denied))
    }

    /// Whether this very thing is denied.
    pub(crate) fn deny_identity(&self, status: &Stat) -> bool {
        self.identities.contains(&Identity::from(status))
    }
}

/// A path without case: a denied name that does not exist yet has no identity to compare, and on some file systems
/// another case is the same name.
fn folded(path: &Path) -> PathBuf {
    PathBuf::from(path.to_string_lossy().to_lowercase())
}
