//! The mounts that only the command sees.
//!
//! Everything that shows through is taken hold of first, before anything covers it. No path is followed through a link: what lies
//! in the private folders was put there by commands, and could lead a mount anywhere.

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

use super::overlay::{Layers, Part};
use super::plan::{Cover, Plan, Rest};
use super::{Done, while_};

pub(super) const HARMLESS: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);
const SHUT: MountAttrFlags =
    HARMLESS.union(MountAttrFlags::MOUNT_ATTR_NOEXEC).union(MountAttrFlags::MOUNT_ATTR_RDONLY);
/// Where the masks are mounted for the moment in which they are copied if no folder is hidden: one that every system has.
const WORKBENCH: &str = "/proc";
/// Whoever opens it gets a new terminal.
const MAKER_OF_TERMINALS: &str = "/dev/ptmx";
/// A folder that leads on and shows nothing.
const PASSAGE: Mode = Mode::from_raw_mode(0o111);

/// What is to show through.
enum Source {
    Tree {
        mount: OwnedFd,
        is_folder: bool,
    },
    /// A link can't be mounted, and is made anew.
    Link(CString),
}

/// Mounts a `/proc` that shows the processes of this process's PID namespace.
pub(super) fn put_processes() -> io::Result<()> {
    let system = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&system)?;
    put(&fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, SHUT)?, Path::new("/proc"))
}

/// Makes this process see what the plan says.
pub(super) fn carry_out(plan: &Plan, layers: &[Layers]) -> Done {
    let mut sources = Vec::new();
    for (path, cover) in &plan.covers {
        sources.push(source(path, cover).map_err(while_(format!("taking hold of {}", path.printable())))?);
    }
    for layers in layers {
        let parts = layers.mount(covered_folder(plan)).map_err(while_("mounting an overlay"))?;
        show_parts(plan, &mut sources, parts).map_err(while_("looking at an overlay"))?;
    }
    if plan.rest == Rest::ReadOnly {
        let system = find(Path::new("/")).and_then(|root| root.ok_or_else(|| Errno::NOENT.into()));
        system
            .and_then(|root| set(&root, MountAttrFlags::MOUNT_ATTR_RDONLY))
            .map_err(while_("making the system read-only"))?;
    }
    let mut masks = Masks::of(plan).map_err(while_("making the masks"))?;
    let mut passages = Vec::new();
    for ((path, cover), source) in plan.covers.iter().zip(&sources) {
        let said = while_(format!("mounting over {}", path.printable()));
        let passage = match source {
            Some(source) => show(plan, path, source).map(|()| None),
            None => conceal(path, cover, &mut masks),
        };
        passages.extend(passage.map_err(said)?);
    }
    // Only now has everything in them its place.
    let mut passages = passages.iter();
    passages.try_for_each(|passage| set_alone(passage, SHUT)).map_err(while_("closing what is hidden"))
}

/// A folder over which something will be mounted, and in which nothing of what is mounted before that can be reached.
fn covered_folder(plan: &Plan) -> Option<&Path> {
    let is_covered = |(path, cover): &&(PathBuf, Cover)| {
        cover.conceals()
            && plan.around(path).is_none()
            && kind(path).is_ok_and(|kind| kind == Some(FileType::Directory))
    };
    plan.covers.iter().find(is_covered).map(|(path, _)| path.as_path())
}

/// Sets the parts of an overlay as what their covers show.
fn show_parts(plan: &Plan, sources: &mut [Option<Source>], parts: Vec<Part>) -> io::Result<()> {
    for (at, mount) in parts {
        let place = plan.covers.iter().position(|(path, cover)| *path == at && *cover == Cover::Layered);
        let is_folder = FileType::from_raw_mode(fstat(&mount)?.st_mode) == FileType::Directory;
        if let Some(source) = place.and_then(|place| sources.get_mut(place)) {
            *source = Some(Source::Tree { mount, is_folder });
        }
    }
    Ok(())
}

/// Takes hold of what a cover shows, if it shows something and that is there.
fn source(path: &Path, cover: &Cover) -> io::Result<Option<Source>> {
    // What is layered comes with its overlay.
    if !cover.shows() || *cover == Cover::Layered {
        return Ok(None);
    }
    let from = match cover {
        // A system without such a folder needs none of its own.
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
        return Ok((*cover == Cover::Kept).then_some(Source::Link(leads_to)));
    }
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    let mount = open_tree(&place, "", flags)?;
    match cover {
        Cover::Kept | Cover::ReadOnly => set(&mount, MountAttrFlags::MOUNT_ATTR_RDONLY)?,
        Cover::Folder(_) => set(&mount, HARMLESS)?,
        _ => {}
    }
    Ok(Some(Source::Tree { mount, is_folder: kind == FileType::Directory }))
}

/// Puts something that is there at its path, which is made where a cover has taken its place.
fn show(plan: &Plan, path: &Path, source: &Source) -> io::Result<()> {
    let around = plan.around(path).filter(|(_, cover)| cover.conceals()).map(|(at, _)| at.as_path());
    if let Some(around) = around {
        make_place(around, path, source)?;
    }
    match source {
        Source::Tree { mount, .. } => put(mount, path),
        Source::Link(_) => Ok(()),
    }
}

/// Puts something empty over a path. What must be closed later comes back.
fn conceal(path: &Path, cover: &Cover, masks: &mut Masks) -> io::Result<Option<OwnedFd>> {
    let Some(place) = find(path)? else { return Ok(None) };
    let kind = FileType::from_raw_mode(fstat(&place)?.st_mode);
    match (cover, kind) {
        (Cover::Memory, FileType::Directory) => {
            put_over(&memory("1777")?, &place)?;
            Ok(None)
        }
        (Cover::Terminals, FileType::Directory) => {
            put_terminals(path)?;
            Ok(None)
        }
        (Cover::HiddenAround, FileType::Directory) => {
            let passage = memory("111")?;
            put_over(&passage, &place)?;
            Ok(Some(passage))
        }
        _ => match mask(cover, kind) {
            Some(name) => masks.put(name, &place).map(|()| None),
            // What shows something has nothing to show, or there is nothing that could be covered so.
            None => Ok(None),
        },
    }
}

/// Which of the masks covers a thing of this kind.
fn mask(cover: &Cover, kind: FileType) -> Option<&'static str> {
    match (cover, kind) {
        (_, FileType::Symlink) => None,
        (Cover::Hidden | Cover::Emptied, FileType::Directory) => Some("folder"),
        (Cover::Emptied, FileType::RegularFile) => Some("empty"),
        (Cover::Hidden | Cover::Emptied, _) => Some("file"),
        _ => None,
    }
}

/// The empty things that are put over what is hidden: all of them are in one file system.
struct Masks {
    copies: Vec<(&'static str, OwnedFd)>,
}

impl Masks {
    /// As many copies as the plan needs.
    fn of(plan: &Plan) -> io::Result<Self> {
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
        let masks = memory("0")?;
        mkdirat(&masks, "folder", Mode::empty())?;
        let made = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        openat(&masks, "file", made, Mode::empty())?;
        openat(&masks, "empty", made, Mode::from_raw_mode(0o444))?;
        set(&masks, SHUT)?;
        // Only what is mounted somewhere can be copied. Unmounting waits for the whole system, so it is best left where a mask
        // covers it.
        let covered = folder.as_deref();
        put(&masks, covered.unwrap_or(Path::new(WORKBENCH)))?;
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let copy = |name| open_tree(&masks, name, flags).map(|copy| (name, copy));
        let copies = wanted.into_iter().map(copy).collect::<Result<_, _>>()?;
        if covered.is_none() {
            unmount(WORKBENCH, UnmountFlags::DETACH)?;
        }
        Ok(Self { copies })
    }

    fn put(&mut self, name: &str, place: &OwnedFd) -> io::Result<()> {
        let index = self.copies.iter().position(|(of, _)| *of == name);
        let index = index.ok_or_else(|| io::Error::other("it has just become something else"))?;
        let (_, copy) = self.copies.swap_remove(index);
        put_over(&copy, place)
    }
}

/// What is at a path, if anything is.
fn kind(path: &Path) -> io::Result<Option<FileType>> {
    let Some(place) = find(path)? else { return Ok(None) };
    Ok(Some(FileType::from_raw_mode(fstat(&place)?.st_mode)))
}

/// Opens what is at a path, only to know it; a link at its end too. None if it is not there, or can't be reached by anybody here.
pub(super) fn find(path: &Path) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(place) => Ok(Some(place)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Mounts something at a path.
pub(super) fn put(mount: &OwnedFd, path: &Path) -> io::Result<()> {
    put_over(mount, &find(path)?.ok_or(Errno::NOENT)?)
}

/// Mounts something over what was found.
fn put_over(mount: &OwnedFd, place: &OwnedFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(mount, "", place, "", flags)?)
}

/// An empty file system in memory, which is nowhere yet.
fn memory(mode: &str) -> io::Result<OwnedFd> {
    let system = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&system, "mode", mode)?;
    fsconfig_create(&system)?;
    Ok(fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, HARMLESS)?)
}

/// Mounts terminals of the command's own, and makes new ones come from there whatever asks for them.
fn put_terminals(path: &Path) -> io::Result<()> {
    let system = fsopen("devpts", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_flag(&system, "newinstance")?;
    fsconfig_set_string(&system, "ptmxmode", "0666")?;
    fsconfig_create(&system)?;
    let harmless = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    put(&fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, harmless)?, path)?;
    // Elsewhere it is a link to the one in the folder.
    if kind(Path::new(MAKER_OF_TERMINALS))? != Some(FileType::CharacterDevice) {
        return Ok(());
    }
    let maker = find(&path.join("ptmx"))?.ok_or(Errno::NOENT)?;
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    put(&open_tree(&maker, "", flags)?, Path::new(MAKER_OF_TERMINALS))
}

/// Makes the way from a cover to a path in it, and something at its end that can be mounted over. What a command has left in the
/// way is removed.
fn make_place(cover: &Path, path: &Path, source: &Source) -> io::Result<()> {
    let mut folder = find(cover)?.ok_or(Errno::NOENT)?;
    let inside = path.strip_prefix(cover).map_err(io::Error::other)?;
    let mut names = inside.iter().peekable();
    while let Some(name) = names.next() {
        match source {
            Source::Link(leads_to) if names.peek().is_none() => return make_link(&folder, name, leads_to),
            Source::Tree { is_folder: false, .. } if names.peek().is_none() => {
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
        // Another command of the session was quicker.
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

/// Narrows what can be done through a mount and through those in it.
pub(super) fn set(mount: &impl AsFd, flags: MountAttrFlags) -> io::Result<()> {
    set_attributes(mount, flags, libc::AT_RECURSIVE)
}

/// Narrows what can be done through a mount, and not through those in it.
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
