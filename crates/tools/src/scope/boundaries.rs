//! Denied and protected paths, by name and by identity.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::fs::{CWD, Mode, OFlags, Stat};

use super::{Permission, canonical_path};

/// Device and inode: the same for every name of a file.
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
    /// Both paths, case-folded.
    folded: Vec<PathBuf>,
    /// The file that was there at first. The open handle keeps its inode from being reused, so that it stays denied
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

    /// Its path as written, its first path, and the path that it was moved to since.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let mut paths = vec![self.current_path(), self.initial_path.clone()];
        paths.extend(self.moved_to());
        paths.sort();
        paths.dedup();
        paths
    }

    /// Where the file that was there at first is now.
    #[cfg(target_os = "linux")]
    fn moved_to(&self) -> Option<PathBuf> {
        use std::os::fd::AsRawFd;

        let (handle, identity) = self.initial.as_ref()?;
        let path = std::fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd())).ok()?;
        // The link of a removed file names a path that does not exist.
        let is_there = rustix::fs::lstat(&path).is_ok_and(|status| FileIdentity::from(&status) == *identity);
        is_there.then_some(path)
    }

    #[cfg(not(target_os = "linux"))]
    fn moved_to(&self) -> Option<PathBuf> {
        None
    }

    /// Case-folded paths and identities that stand for it now.
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

/// The denied paths for a list of protected paths, shared by all scopes of the process: each existing path takes an
/// open file, and a runtime has a scope for each work folder.
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

/// The path that a target leads to now, and the identity of the file there. Most targets are missing or have no link
/// above them, which one system call shows.
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

/// Whether a canonical path still goes through no link. A path where nothing is has none.
pub(crate) fn is_without_links(path: &Path) -> bool {
    locate(path).0 == path
}

fn located_through_links(target: &Path) -> (PathBuf, Option<FileIdentity>) {
    let path = canonical_path::canonicalize_existing(target).unwrap_or_else(|| target.to_owned());
    let identity = rustix::fs::stat(target).ok().map(|status| FileIdentity::from(&status));
    (path, identity)
}

/// Flags to open a file only for its identity, without any right to it.
#[cfg(target_os = "linux")]
pub(crate) const PATH_ONLY: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
pub(crate) const PATH_ONLY: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);

/// The denied and protected paths at one moment, for one permission.
#[derive(Debug)]
pub(crate) struct Boundaries {
    denied: PathSet,
    protected: PathSet,
    /// Allowed targets within protected paths.
    excepted: Vec<PathBuf>,
}

/// Case-folded paths and identities.
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

    /// The members that contain a case-folded path, or are it.
    fn containing<'a>(&'a self, folded: &'a Path) -> impl Iterator<Item = &'a Path> {
        folded.ancestors().filter(|path| self.paths.contains(*path))
    }
}

/// Why a path may not be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DenialReason {
    /// A `[[scope.deny]]` covers it.
    Denied,
    /// It is a protected path, and no `[[scope.allow]]` names it.
    Protected,
}

impl Boundaries {
    /// An allowed target that is a protected path, or lies in one, is an exception.
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

    /// Whether the file with this status is denied, whatever its name is.
    pub(crate) fn denial_of_identity(&self, status: &Stat) -> Option<DenialReason> {
        let identity = FileIdentity::from(status);
        if self.denied.identities.contains(&identity) {
            return Some(DenialReason::Denied);
        }
        self.protected.identities.contains(&identity).then_some(DenialReason::Protected)
    }

    /// Whether an exception lies below a folder, so that the folder may be passed.
    pub(super) fn leads_to_exception(&self, path: &Path) -> bool {
        self.excepted.iter().any(|target| target.starts_with(path))
    }
}

/// Whether a path lies in `/proc/<pid>`, where the environment and the memory of a process can be read.
fn is_process_file(path: &Path) -> bool {
    let Ok(inside) = path.strip_prefix("/proc") else { return false };
    let first = inside.components().next();
    first.is_some_and(|name| name.as_os_str().as_encoded_bytes().iter().all(u8::is_ascii_digit))
}

/// A path in lower case. A denied path that does not exist yet has no identity to compare, and on some file systems
/// another case is the same name.
pub(super) fn fold_case(path: &Path) -> PathBuf {
    PathBuf::from(path.to_string_lossy().to_lowercase())
}
