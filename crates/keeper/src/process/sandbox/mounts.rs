//! Mounts what a plan says: bind mounts, tmpfs, masks, devpts and `/proc`. Only the command sees these mounts.
//!
//! Every source is opened before a mount covers it. No path is followed through a symbolic link, because commands may
//! have created links in the private folders that point anywhere.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use longhaul_protocol::PrintablePath;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat, openat2, readlinkat,
    symlinkat, unlinkat,
};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree, unmount,
};

use super::mount_plan::{Cover, MountPlan, Rest};
use super::overlay::{Layers, Part};
use super::{SandboxResult, context};

pub(super) const NOSUID_NODEV: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);
const LOCKED_DOWN: MountAttrFlags =
    NOSUID_NODEV.union(MountAttrFlags::MOUNT_ATTR_NOEXEC).union(MountAttrFlags::MOUNT_ATTR_RDONLY);
/// Where the masks are mounted while they are copied, if no folder is hidden. Every system has this folder.
const MASK_MOUNT_POINT: &str = "/proc";
/// Opening it allocates a new terminal.
const PTMX: &str = "/dev/ptmx";
/// The mode of a folder that can be traversed but not listed.
const PASSAGE: Mode = Mode::from_raw_mode(0o111);

/// What a bind mount shows.
enum MountSource {
    Tree {
        mount: OwnedFd,
        is_folder: bool,
    },
    /// A symbolic link can't be mounted; it is created again.
    Link(CString),
}

/// Mounts a `/proc` that shows the processes of this process's PID namespace.
pub(super) fn mount_proc() -> io::Result<()> {
    let system = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&system)?;
    mount_at(&fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, LOCKED_DOWN)?, Path::new("/proc"))
}

/// Makes the mounts of a plan in this process's mount namespace.
pub(super) fn apply_plan(plan: &MountPlan, layers: &[Layers]) -> SandboxResult {
    let mut sources = Vec::new();
    for (path, cover) in &plan.covers {
        sources.push(source(path, cover).map_err(context(format!("taking hold of {}", path.printable())))?);
    }
    for layers in layers {
        let parts = layers.mount(covered_folder(plan)).map_err(context("mounting an overlay"))?;
        show_parts(plan, &mut sources, parts).map_err(context("looking at an overlay"))?;
    }
    if plan.rest == Rest::ReadOnly {
        let system = find(Path::new("/")).and_then(|root| root.ok_or_else(|| Errno::NOENT.into()));
        system
            .and_then(|root| set(&root, MountAttrFlags::MOUNT_ATTR_RDONLY))
            .map_err(context("making the system read-only"))?;
    }
    let mut masks = Masks::of(plan).map_err(context("making the masks"))?;
    let mut passages = Vec::new();
    for ((path, cover), source) in plan.covers.iter().zip(&sources) {
        let said = context(format!("mounting over {}", path.printable()));
        let passage = match source {
            Some(source) => show(plan, path, source).map(|()| None),
            None => conceal(path, cover, &mut masks),
        };
        passages.extend(passage.map_err(said)?);
    }
    // Not earlier: now everything inside them is mounted.
    let mut passages = passages.iter();
    passages
        .try_for_each(|passage| set_alone(passage, LOCKED_DOWN))
        .map_err(context("closing what is hidden"))
}

/// A folder that a later mount will cover. Anything that is mounted there before becomes unreachable.
fn covered_folder(plan: &MountPlan) -> Option<&Path> {
    let is_covered = |(path, cover): &&(PathBuf, Cover)| {
        cover.conceals()
            && plan.around(path).is_none()
            && kind(path).is_ok_and(|kind| kind == Some(FileType::Directory))
    };
    plan.covers.iter().find(is_covered).map(|(path, _)| path.as_path())
}

/// Sets the parts of an overlay as the sources of their covers.
fn show_parts(plan: &MountPlan, sources: &mut [Option<MountSource>], parts: Vec<Part>) -> io::Result<()> {
    for (at, mount) in parts {
        let place = plan.covers.iter().position(|(path, cover)| *path == at && *cover == Cover::Layered);
        let is_folder = FileType::from_raw_mode(fstat(&mount)?.st_mode) == FileType::Directory;
        if let Some(source) = place.and_then(|place| sources.get_mut(place)) {
            *source = Some(MountSource::Tree { mount, is_folder });
        }
    }
    Ok(())
}

/// Opens what a cover shows, if that exists.
fn source(path: &Path, cover: &Cover) -> io::Result<Option<MountSource>> {
    // The sources of overlays come from `Layers::mount`.
    if !cover.shows() || *cover == Cover::Layered {
        return Ok(None);
    }
    let from = match cover {
        // The system has no such folder, so there is nothing to cover.
        Cover::Folder(_) if kind(path)? != Some(FileType::Directory) => return Ok(None),
        Cover::Folder(folder) => folder,
        _ => path,
    };
    let Some(place) = find(from)? else {
        return match cover {
            Cover::Folder(_) => Err(Errno::NOENT.into()),
            _ => Ok(None),
        };
    };
    let kind = FileType::from_raw_mode(fstat(&place)?.st_mode);
    if kind == FileType::Symlink {
        let leads_to = readlinkat(&place, "", Vec::new())?;
        return Ok((*cover == Cover::Kept).then_some(MountSource::Link(leads_to)));
    }
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    let mount = open_tree(&place, "", flags)?;
    match cover {
        Cover::Kept | Cover::ReadOnly => set(&mount, MountAttrFlags::MOUNT_ATTR_RDONLY)?,
        Cover::Folder(_) => set(&mount, NOSUID_NODEV)?,
        _ => {}
    }
    Ok(Some(MountSource::Tree { mount, is_folder: kind == FileType::Directory }))
}

/// Mounts a source at its path, which is created first if a cover conceals it.
fn show(plan: &MountPlan, path: &Path, source: &MountSource) -> io::Result<()> {
    let around = plan.around(path).filter(|(_, cover)| cover.conceals()).map(|(at, _)| at.as_path());
    if let Some(around) = around {
        make_mount_point(around, path, source)?;
    }
    match source {
        MountSource::Tree { mount, .. } => mount_at(mount, path),
        MountSource::Link(_) => Ok(()),
    }
}

/// Mounts an empty file or folder over a path. Returns a folder that must be made read-only later.
fn conceal(path: &Path, cover: &Cover, masks: &mut Masks) -> io::Result<Option<OwnedFd>> {
    let Some(place) = find(path)? else { return Ok(None) };
    let kind = FileType::from_raw_mode(fstat(&place)?.st_mode);
    match (cover, kind) {
        (Cover::Memory, FileType::Directory) => {
            mount_over(&tmpfs("1777")?, &place)?;
            Ok(None)
        }
        (Cover::Terminals, FileType::Directory) => {
            mount_devpts(path)?;
            Ok(None)
        }
        (Cover::HiddenAround, FileType::Directory) => {
            let passage = tmpfs("111")?;
            mount_over(&passage, &place)?;
            Ok(Some(passage))
        }
        _ => match mask(cover, kind) {
            Some(name) => masks.mount_at(name, &place).map(|()| None),
            // The source of a bind mount does not exist, or no mask fits this kind of file.
            None => Ok(None),
        },
    }
}

/// The mask for a file of this kind.
fn mask(cover: &Cover, kind: FileType) -> Option<&'static str> {
    match (cover, kind) {
        (_, FileType::Symlink) => None,
        (Cover::Hidden | Cover::Emptied, FileType::Directory) => Some("folder"),
        (Cover::Emptied, FileType::RegularFile) => Some("empty"),
        (Cover::Hidden | Cover::Emptied, _) => Some("file"),
        _ => None,
    }
}

/// Empty files and folders that cover what is hidden, all in one tmpfs.
struct Masks {
    copies: Vec<(&'static str, OwnedFd)>,
}

impl Masks {
    /// As many copies as the plan needs.
    fn of(plan: &MountPlan) -> io::Result<Self> {
        let (mut wanted, mut folder) = (Vec::new(), None);
        for (path, cover) in plan.covers.iter().filter(|(_, cover)| cover.is_masked()) {
            let name = kind(path)?.and_then(|kind| mask(cover, kind));
            if name == Some("folder") && plan.around(path).is_none() {
                folder = Some(path.clone());
            }
            wanted.extend(name);
        }
        if wanted.is_empty() {
            return Ok(Self { copies: Vec::new() });
        }
        let masks = tmpfs("0")?;
        mkdirat(&masks, "folder", Mode::empty())?;
        let made = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        openat(&masks, "file", made, Mode::empty())?;
        openat(&masks, "empty", made, Mode::from_raw_mode(0o444))?;
        set(&masks, LOCKED_DOWN)?;
        // Only a mounted file system can be cloned. Unmounting is slow, so it stays mounted at a place that a mask
        // covers.
        let covered = folder.as_deref();
        mount_at(&masks, covered.unwrap_or(Path::new(MASK_MOUNT_POINT)))?;
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let copy = |name| open_tree(&masks, name, flags).map(|copy| (name, copy));
        let copies = wanted.into_iter().map(copy).collect::<Result<_, _>>()?;
        if covered.is_none() {
            unmount(MASK_MOUNT_POINT, UnmountFlags::DETACH)?;
        }
        Ok(Self { copies })
    }

    fn mount_at(&mut self, name: &str, place: &OwnedFd) -> io::Result<()> {
        let index = self.copies.iter().position(|(of, _)| *of == name);
        let index = index.ok_or_else(|| io::Error::other("it has just become something else"))?;
        let (_, copy) = self.copies.swap_remove(index);
        mount_over(&copy, place)
    }
}

fn kind(path: &Path) -> io::Result<Option<FileType>> {
    let Some(place) = find(path)? else { return Ok(None) };
    Ok(Some(FileType::from_raw_mode(fstat(&place)?.st_mode)))
}

/// Opens a path with `O_PATH`, also a symbolic link at its end. `None` if it doesn't exist or can't be reached.
pub(super) fn find(path: &Path) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(place) => Ok(Some(place)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn mount_at(mount: &OwnedFd, path: &Path) -> io::Result<()> {
    mount_over(mount, &find(path)?.ok_or(Errno::NOENT)?)
}

/// Mounts a file system over an open file or folder.
fn mount_over(mount: &OwnedFd, place: &OwnedFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(mount, "", place, "", flags)?)
}

/// An empty tmpfs that is not mounted yet.
fn tmpfs(mode: &str) -> io::Result<OwnedFd> {
    let system = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&system, "mode", mode)?;
    fsconfig_create(&system)?;
    Ok(fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, NOSUID_NODEV)?)
}

/// Mounts a private devpts, and makes `/dev/ptmx` allocate terminals from it.
fn mount_devpts(path: &Path) -> io::Result<()> {
    let system = fsopen("devpts", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_flag(&system, "newinstance")?;
    fsconfig_set_string(&system, "ptmxmode", "0666")?;
    fsconfig_create(&system)?;
    let harmless = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    mount_at(&fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, harmless)?, path)?;
    // Otherwise it is a link to `pts/ptmx`.
    if kind(Path::new(PTMX))? != Some(FileType::CharacterDevice) {
        return Ok(());
    }
    let maker = find(&path.join("ptmx"))?.ok_or(Errno::NOENT)?;
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    mount_at(&open_tree(&maker, "", flags)?, Path::new(PTMX))
}

/// Creates the folders from a cover down to a path in it, and a mount point at its end. Removes anything that a
/// command has put in the way.
fn make_mount_point(cover: &Path, path: &Path, source: &MountSource) -> io::Result<()> {
    let mut folder = find(cover)?.ok_or(Errno::NOENT)?;
    let inside = path.strip_prefix(cover).map_err(io::Error::other)?;
    let mut names = inside.iter().peekable();
    while let Some(name) = names.next() {
        match source {
            MountSource::Link(leads_to) if names.peek().is_none() => {
                return make_link(&folder, name, leads_to);
            }
            MountSource::Tree { is_folder: false, .. } if names.peek().is_none() => {
                return make_file(&folder, name);
            }
            _ => folder = enter(&folder, name)?,
        }
    }
    Ok(())
}

fn enter(folder: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let open = || {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(folder, name, flags, Mode::empty())
    };
    match open() {
        Err(Errno::NOTDIR | Errno::LOOP) => unlinkat(folder, name, AtFlags::empty())?,
        Err(Errno::NOENT) => {}
        opened => return Ok(opened?),
    }
    match mkdirat(folder, name, PASSAGE | Mode::RWXU) {
        // Another command of the session was faster.
        Ok(()) | Err(Errno::EXIST) => Ok(open()?),
        Err(error) => Err(error.into()),
    }
}

fn make_file(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let make = || openat(folder, name, flags, Mode::empty());
    match make() {
        Err(Errno::LOOP | Errno::NXIO) => {
            unlinkat(folder, name, AtFlags::empty())?;
            make()?;
        }
        made => drop(made?),
    }
    Ok(())
}

fn make_link(folder: &OwnedFd, name: &OsStr, leads_to: &CString) -> io::Result<()> {
    match symlinkat(leads_to.as_c_str(), folder, name) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) if readlinkat(folder, name, Vec::new()).is_ok_and(|known| known == *leads_to) => {
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// `struct mount_attr`.
#[repr(C)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Adds attributes to a mount and to those below it.
pub(super) fn set(mount: &impl AsFd, flags: MountAttrFlags) -> io::Result<()> {
    set_attributes(mount, flags, libc::AT_RECURSIVE)
}

/// Adds attributes to a mount, but not to those below it.
fn set_alone(mount: &impl AsFd, flags: MountAttrFlags) -> io::Result<()> {
    set_attributes(mount, flags, 0)
}

#[allow(unsafe_code, reason = "the library has no such call")]
fn set_attributes(mount: &impl AsFd, flags: MountAttrFlags, depth: libc::c_int) -> io::Result<()> {
    let mount: BorrowedFd<'_> = mount.as_fd();
    let attributes = Attributes { set: flags.bits().into(), clear: 0, propagation: 0, user_namespace: 0 };
    // SAFETY: the system reads this struct, of this size, and a path that is empty.
    let failed = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | depth,
            &raw const attributes,
            size_of::<Attributes>(),
        ) != 0
    };
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}
