//! What is denied or protected, by path and by identity.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::fs::{CWD, Mode, OFlags, Stat};

use super::{Permission, canonical_path};

/// What a file is whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl From<&Stat> for FileIdentity {
    #[allow(clippy::unnecessary_cast, reason = "these have other types on other systems")]
    fn from(status: &Stat) -> Self {
        Self { device: status.st_dev as u64, inode: status.st_ino as u64 }
    }
}

/// A denied target.
#[derive(Debug)]
pub(super) struct DeniedPath {
    target: PathBuf,
    initial_path: PathBuf,
    /// Both of them without case, each once.
    folded: Vec<PathBuf>,
    /// What was there at first. The handle keeps its inode from being given to something else, so that it can be denied
    /// wherever it is moved.
    initial: Option<(OwnedFd, FileIdentity)>,
    pub(super) permission: Permission,
}

impl DeniedPath {
    pub(super) fn new(target: PathBuf, permission: Permission) -> Self {
        let handle = rustix::fs::openat(CWD, &target, PATH_ONLY | OFlags::CLOEXEC, Mode::empty()).ok();
        let initial = handle.and_then(|handle| {
            let identity = FileIdentity::from(&rustix::fs::fstat(&handle).ok()?);
            Some((handle, identity))
        });
        let initial_path = locate(&target).0;
        let mut folded = vec![fold_case(&target), fold_case(&initial_path)];
        folded.dedup();
        Self { target, initial_path, folded, initial, permission }
    }

    pub(super) fn current_path(&self) -> PathBuf {
        locate(&self.target).0
    }

    /// Every path under which it is known: as it was written, as it was at first, and wherever that was moved since.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let mut paths = vec![self.current_path(), self.initial_path.clone()];
        paths.extend(self.moved_to());
        paths.sort();
        paths.dedup();
        paths
    }

    /// Where the system says that what was there at first is now.
    #[cfg(target_os = "linux")]
    fn moved_to(&self) -> Option<PathBuf> {
        use std::os::fd::AsRawFd;

        let (handle, identity) = self.initial.as_ref()?;
        let path = std::fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd())).ok()?;
        // What was removed is named too, in a way that no path is meant.
        let is_there = rustix::fs::lstat(&path).is_ok_and(|status| FileIdentity::from(&status) == *identity);
        is_there.then_some(path)
    }

    #[cfg(not(target_os = "linux"))]
    fn moved_to(&self) -> Option<PathBuf> {
        None
    }

    /// Everything that it is known by at this moment: paths without case, and identities.
    fn current_keys(&self) -> (Vec<PathBuf>, Vec<FileIdentity>) {
        let (path, identity) = locate(&self.target);
        let mut paths = self.folded.clone();
        if path != self.target && path != self.initial_path {
            paths.push(fold_case(&path));
        }
        let initial = self.initial.as_ref().map(|(_, identity)| *identity);
        (paths, initial.into_iter().chain(identity).collect())
    }
}

/// The denials of these places, one list for all scopes of the process: each place that exists takes an open file, and a runtime has a scope
/// for each work folder.
pub(super) fn shared_denied_paths(places: Vec<PathBuf>) -> Arc<[DeniedPath]> {
    type SharedDenials = Vec<(Vec<PathBuf>, Weak<[DeniedPath]>)>;
    static SHARED: Mutex<SharedDenials> = Mutex::new(Vec::new());

    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    shared.retain(|(_, denials)| denials.strong_count() > 0);
    let known = shared.iter().find(|(of, _)| *of == places).and_then(|(_, denials)| denials.upgrade());
    known.unwrap_or_else(|| {
        let denials: Arc<[DeniedPath]> =
            places.iter().map(|place| DeniedPath::new(place.clone(), Permission::Read)).collect();
        shared.push((places, Arc::downgrade(&denials)));
        denials
    })
}

/// Where a target leads now, and what is there. Most targets are missing or have no link above them, which one system call tells.
#[cfg(target_os = "linux")]
pub(super) fn locate(target: &Path) -> (PathBuf, Option<FileIdentity>) {
    use rustix::fs::{ResolveFlags, openat2};
    use rustix::io::Errno;

    let flags = PATH_ONLY | OFlags::CLOEXEC;
    let is_plain = !target.components().any(|part| part == Component::ParentDir);
    match openat2(CWD, target, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(handle) if is_plain => {
            let identity = rustix::fs::fstat(&handle).ok().map(|status| FileIdentity::from(&status));
            (target.components().collect(), identity)
        }
        Err(Errno::NOENT | Errno::NOTDIR) if is_plain => (target.components().collect(), None),
        _ => located_through_links(target),
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn locate(target: &Path) -> (PathBuf, Option<FileIdentity>) {
    located_through_links(target)
}

fn located_through_links(target: &Path) -> (PathBuf, Option<FileIdentity>) {
    let path = canonical_path::canonicalize_existing(target).unwrap_or_else(|| target.to_owned());
    let identity = rustix::fs::stat(target).ok().map(|status| FileIdentity::from(&status));
    (path, identity)
}

/// Opening a thing only to know it, without any right to it.
#[cfg(target_os = "linux")]
pub(crate) const PATH_ONLY: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
pub(crate) const PATH_ONLY: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);

/// What is denied and what is protected at one moment, for one permission.
#[derive(Debug)]
pub(crate) struct Boundaries {
    denied: PathSet,
    protected: PathSet,
    /// Allowed targets that lie in a protected place, and are not protected.
    excepted: Vec<PathBuf>,
}

/// Some places, by paths without case and by identity.
#[derive(Debug, Default)]
struct PathSet {
    paths: HashSet<PathBuf>,
    identities: HashSet<FileIdentity>,
}

impl PathSet {
    fn add(&mut self, (paths, identities): (Vec<PathBuf>, Vec<FileIdentity>)) {
        self.paths.extend(paths);
        self.identities.extend(identities);
    }

    /// The places around a path without case, or at it.
    fn containing<'a>(&'a self, folded: &'a Path) -> impl Iterator<Item = &'a Path> {
        folded.ancestors().filter(|path| self.paths.contains(*path))
    }
}

/// Why a place can't be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DenialReason {
    /// The scope denies it.
    Denied,
    /// It holds keys or credentials, and the scope does not name it.
    Protected,
}

impl Boundaries {
    /// `allowed` are the allowed targets: one that is a protected place, or lies in one, is an exception.
    pub(super) fn current<'a>(
        deny: &[DeniedPath],
        protected: &[DeniedPath],
        allowed: impl Iterator<Item = &'a Path>,
        wanted: Permission,
    ) -> Self {
        let allowed: Vec<(&Path, PathBuf)> = allowed.map(|target| (target, fold_case(target))).collect();
        let mut boundaries =
            Self { denied: PathSet::default(), protected: PathSet::default(), excepted: Vec::new() };
        for denial in deny.iter().filter(|denial| denial.permission.forbids(wanted)) {
            boundaries.denied.add(denial.current_keys());
        }
        for place in protected {
            let known = place.current_keys();
            if !allowed.iter().any(|(_, target)| known.0.contains(target)) {
                boundaries.protected.add(known);
            }
        }
        for (target, folded) in &allowed {
            if boundaries.protected.containing(folded).next().is_some() {
                boundaries.excepted.push(target.to_path_buf());
            }
        }
        boundaries
    }

    /// Why a canonical path can't be used, if it can't.
    pub(crate) fn denial_of_path(&self, path: &Path) -> Option<DenialReason> {
        let folded = fold_case(path);
        if self.denied.containing(&folded).next().is_some() {
            return Some(DenialReason::Denied);
        }
        let is_excepted_from = |place: &Path| {
            let mut around = self.excepted.iter().filter(|target| path.starts_with(target));
            around.any(|target| fold_case(target).starts_with(place))
        };
        let is_protected = self.protected.containing(&folded).any(|place| !is_excepted_from(place));
        (is_protected || is_process_file(path)).then_some(DenialReason::Protected)
    }

    /// Why this very thing can't be used, whatever it is called.
    pub(crate) fn denial_of_identity(&self, status: &Stat) -> Option<DenialReason> {
        let identity = FileIdentity::from(status);
        if self.denied.identities.contains(&identity) {
            return Some(DenialReason::Denied);
        }
        self.protected.identities.contains(&identity).then_some(DenialReason::Protected)
    }

    /// Whether a folder leads to an exception, so that it may be passed on the way there.
    pub(super) fn leads_to_exception(&self, path: &Path) -> bool {
        self.excepted.iter().any(|target| target.starts_with(path))
    }
}

/// Whether a canonical path is about a process: its environment holds keys, its memory and its files everything else.
fn is_process_file(path: &Path) -> bool {
    let Ok(inside) = path.strip_prefix("/proc") else { return false };
    let first = inside.components().next();
    first.is_some_and(|name| name.as_os_str().as_encoded_bytes().iter().all(u8::is_ascii_digit))
}

/// A path without case: a denied name that does not exist yet has no identity to compare, and on some file systems
/// another case is the same name.
pub(super) fn fold_case(path: &Path) -> PathBuf {
    PathBuf::from(path.to_string_lossy().to_lowercase())
}
