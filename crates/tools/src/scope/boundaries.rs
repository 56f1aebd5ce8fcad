//! What is denied or protected, by path and by identity.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::fs::{CWD, Mode, OFlags, Stat};

use super::{Permission, canonical_path};

/// What a file is whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    /// Both of them without case, each once.
    folded: Vec<PathBuf>,
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
        let path_at_first = located(&target).0;
        let mut folded = vec![folded(&target), folded(&path_at_first)];
        folded.dedup();
        Self { target, path_at_first, folded, at_first, permission }
    }

    pub(super) fn path_now(&self) -> PathBuf {
        located(&self.target).0
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

    /// Everything that it is known by at this moment: paths without case, and identities.
    fn known_by(&self) -> (Vec<PathBuf>, Vec<Identity>) {
        let (path, identity) = located(&self.target);
        let mut paths = self.folded.clone();
        if path != self.target && path != self.path_at_first {
            paths.push(folded(&path));
        }
        let at_first = self.at_first.as_ref().map(|(_, identity)| *identity);
        (paths, at_first.into_iter().chain(identity).collect())
    }
}

/// The denials of these places, one list for all scopes of the process: each place that exists takes an open file, and a runtime has a scope
/// for each work folder.
pub(super) fn shared(places: Vec<PathBuf>) -> Arc<[Denial]> {
    type Shared = Vec<(Vec<PathBuf>, Weak<[Denial]>)>;
    static SHARED: Mutex<Shared> = Mutex::new(Vec::new());

    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    shared.retain(|(_, denials)| denials.strong_count() > 0);
    let known = shared.iter().find(|(of, _)| *of == places).and_then(|(_, denials)| denials.upgrade());
    known.unwrap_or_else(|| {
        let denials: Arc<[Denial]> =
            places.iter().map(|place| Denial::new(place.clone(), Permission::Read)).collect();
        shared.push((places, Arc::downgrade(&denials)));
        denials
    })
}

/// Where a target leads now, and what is there. Most targets are missing or have no link above them, which one system call tells.
#[cfg(target_os = "linux")]
pub(super) fn located(target: &Path) -> (PathBuf, Option<Identity>) {
    use rustix::fs::{ResolveFlags, openat2};
    use rustix::io::Errno;

    let flags = LOOK | OFlags::CLOEXEC;
    let is_plain = !target.components().any(|part| part == Component::ParentDir);
    match openat2(CWD, target, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(handle) if is_plain => {
            let identity = rustix::fs::fstat(&handle).ok().map(|status| Identity::from(&status));
            (target.components().collect(), identity)
        }
        Err(Errno::NOENT | Errno::NOTDIR) if is_plain => (target.components().collect(), None),
        _ => located_through_links(target),
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn located(target: &Path) -> (PathBuf, Option<Identity>) {
    located_through_links(target)
}

fn located_through_links(target: &Path) -> (PathBuf, Option<Identity>) {
    let path = canonical_path::canonical(target).unwrap_or_else(|| target.to_owned());
    let identity = rustix::fs::stat(target).ok().map(|status| Identity::from(&status));
    (path, identity)
}

/// Opening a thing only to know it, without any right to it.
#[cfg(target_os = "linux")]
pub(crate) const LOOK: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
pub(crate) const LOOK: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);

/// What is denied and what is protected at one moment, for one permission.
#[derive(Debug)]
pub(crate) struct Borders {
    denied: Known,
    protected: Known,
    /// Allowed targets that lie in a protected place, and are not protected.
    excepted: Vec<PathBuf>,
}

/// Some places, by paths without case and by identity.
#[derive(Debug, Default)]
struct Known {
    paths: HashSet<PathBuf>,
    identities: HashSet<Identity>,
}

impl Known {
    fn add(&mut self, (paths, identities): (Vec<PathBuf>, Vec<Identity>)) {
        self.paths.extend(paths);
        self.identities.extend(identities);
    }

    /// The places around a path without case, or at it.
    fn around<'a>(&'a self, folded: &'a Path) -> impl Iterator<Item = &'a Path> {
        folded.ancestors().filter(|path| self.paths.contains(*path))
    }
}

/// Why a place can't be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Barred {
    /// The scope denies it.
    Denied,
    /// It holds keys or credentials, and the scope does not name it.
    Protected,
}

impl Borders {
    /// `allowed` are the allowed targets: one that is a protected place, or lies in one, is an exception.
    pub(super) fn now<'a>(
        deny: &[Denial],
        protected: &[Denial],
        allowed: impl Iterator<Item = &'a Path>,
        wanted: Permission,
    ) -> Self {
        let allowed: Vec<(&Path, PathBuf)> = allowed.map(|target| (target, folded(target))).collect();
        let mut borders =
            Self { denied: Known::default(), protected: Known::default(), excepted: Vec::new() };
        for denial in deny.iter().filter(|denial| denial.permission.forbids(wanted)) {
            borders.denied.add(denial.known_by());
        }
        for place in protected {
            let known = place.known_by();
            if !allowed.iter().any(|(_, target)| known.0.contains(target)) {
                borders.protected.add(known);
            }
        }
        for (target, folded) in &allowed {
            if borders.protected.around(folded).next().is_some() {
                borders.excepted.push(target.to_path_buf());
            }
        }
        borders
    }

    /// Why a canonical path can't be used, if it can't.
    pub(crate) fn bar_path(&self, path: &Path) -> Option<Barred> {
        let folded = folded(path);
        if self.denied.around(&folded).next().is_some() {
            return Some(Barred::Denied);
        }
        let is_excepted_from = |place: &Path| {
            let mut around = self.excepted.iter().filter(|target| path.starts_with(target));
            around.any(|target| self::folded(target).starts_with(place))
        };
        let is_protected = self.protected.around(&folded).any(|place| !is_excepted_from(place));
        (is_protected || is_of_process(path)).then_some(Barred::Protected)
    }

    /// Why this very thing can't be used, whatever it is called.
    pub(crate) fn bar_identity(&self, status: &Stat) -> Option<Barred> {
        let identity = Identity::from(status);
        if self.denied.identities.contains(&identity) {
            return Some(Barred::Denied);
        }
        self.protected.identities.contains(&identity).then_some(Barred::Protected)
    }

    /// Whether a folder leads to an exception, so that it may be passed on the way there.
    pub(super) fn leads_to_exception(&self, path: &Path) -> bool {
        self.excepted.iter().any(|target| target.starts_with(path))
    }
}

/// Whether a canonical path is about a process: its environment holds keys, its memory and its files everything else.
fn is_of_process(path: &Path) -> bool {
    let Ok(inside) = path.strip_prefix("/proc") else { return false };
    let first = inside.components().next();
    first.is_some_and(|name| name.as_os_str().as_encoded_bytes().iter().all(u8::is_ascii_digit))
}

/// A path without case: a denied name that does not exist yet has no identity to compare, and on some file systems
/// another case is the same name.
pub(super) fn folded(path: &Path) -> PathBuf {
    PathBuf::from(path.to_string_lossy().to_lowercase())
}
