//! Holding a command to its bounds, between fork and exec.
//!
//! Each step narrows what the next one could do: namespaces, mounts in them, capabilities, Landlock, and a filter of system calls
//! last. If any of them fails, the command is not started, and the step that failed is the reason. A keeper has one thread, so a child of it may allocate.

mod filter;
mod init;
mod landlock;
mod mounts;
mod namespaces;
mod overlay;
mod placeholders;
mod plan;
mod probe;

use std::fs::{DirBuilder, Permissions};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use longhaul_protocol::PrintablePath;
use rustix::io::Errno;
use rustix::process::Pid;

use crate::Bounds;
use crate::bounds::{Private, ProcessNamespace};
use overlay::Layers;
use plan::Plan;

pub(super) use init::{CHILD_REAPED, SiblingsPipe};
pub(super) use overlay::clean_up as clean_up_overlays;
pub(super) use placeholders::Placeholders;
pub(super) use probe::answer as answer_probe;

/// In which everybody may make files, as in every folder for temporary things. The folder that holds it is the user's alone.
const TEMPORARY: u32 = 0o1777;
const PRIVATE: u32 = 0o700;
/// A reason is a line.
const LONGEST_REASON: u64 = 4 << 10;

/// What went wrong, in words for people.
type Trouble = String;
type Done<T = ()> = Result<T, Trouble>;

/// For `map_err`: what was tried when the system said no.
fn while_<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> Trouble {
    let doing = doing.into();
    move |error| format!("{doing}: {}", error.into())
}

/// Bounds, with everything done that can be done before the fork.
#[derive(Debug)]
pub(super) struct Ready {
    bounds: Bounds,
    plan: Plan,
    layers: Vec<Layers>,
    work_dir: PathBuf,
}

/// Where a child says why it did not become the command: the library passes on a number only.
#[derive(Debug)]
pub(super) struct Reason {
    theirs: Option<PipeWriter>,
    ours: PipeReader,
}

impl Ready {
    pub(super) fn new(bounds: &Bounds, work_dir: &Path) -> Done<Self> {
        for private in &bounds.private {
            make_private(private)?;
        }
        let layers = bounds.overlays.iter().map(Layers::prepare).collect::<Done<_>>()?;
        Ok(Self { bounds: bounds.clone(), plan: Plan::new(bounds), layers, work_dir: work_dir.to_owned() })
    }

    /// Whether the command has a PID namespace of its own.
    pub(super) fn has_own_processes(&self) -> bool {
        self.bounds.processes == ProcessNamespace::Own
    }

    /// Puts this process into the bounds, for good. With processes of its own it is another one that returns: see `init`.
    fn enter(&self, keeper: Pid, siblings: &PipeWriter) -> Done {
        namespaces::leave(self.bounds.network, self.bounds.processes)?;
        if self.has_own_processes() {
            init::start_in_namespace(keeper, siblings)?;
            mounts::put_processes().map_err(while_("mounting /proc"))?;
        }
        mounts::carry_out(&self.plan, &self.layers)?;
        // The current folder is still the one that lies under whatever was mounted.
        rustix::process::chdir(&self.work_dir)
            .map_err(while_(format!("going to the work folder {}", self.work_dir.printable())))?;
        namespaces::drop_privileges()?;
        landlock::restrict(&self.bounds)?;
        filter::set(&self.bounds)
    }

    /// The same, for between fork and exec. The reason for a failure goes to whoever listens.
    pub(super) fn enter_or_say(
        &self,
        keeper: Pid,
        siblings: &PipeWriter,
        mut reason: &PipeWriter,
    ) -> io::Result<()> {
        self.enter(keeper, siblings).map_err(|trouble| {
            let _ = reason.write_all(trouble.as_bytes());
            Errno::PERM.into()
        })
    }
}

impl Reason {
    pub(super) fn new() -> io::Result<Self> {
        let (ours, theirs) = io::pipe()?;
        Ok(Self { theirs: Some(theirs), ours })
    }

    /// The child's end.
    pub(super) fn theirs(&self) -> io::Result<PipeWriter> {
        let gone = || io::Error::other("nobody says reasons any more");
        self.theirs.as_ref().ok_or_else(gone)?.try_clone()
    }

    /// What the child said, once it is over and nobody else has its end; nothing if it had no trouble.
    pub(super) fn heard(mut self) -> Option<String> {
        self.theirs = None;
        let mut reason = String::new();
        self.ours.take(LONGEST_REASON).read_to_string(&mut reason).ok()?;
        (!reason.is_empty()).then_some(reason)
    }
}

/// Makes the folder that a private one is kept in.
fn make_private(private: &Private) -> Done {
    let Some(folder) = &private.kept_in else { return Ok(()) };
    if folder.is_dir() {
        return Ok(());
    }
    let said = |error: io::Error| while_(format!("making {}", folder.printable()))(error);
    if let Some(parent) = folder.parent() {
        DirBuilder::new().recursive(true).mode(PRIVATE).create(parent).map_err(said)?;
    }
    match DirBuilder::new().mode(PRIVATE).create(folder) {
        Ok(()) => std::fs::set_permissions(folder, Permissions::from_mode(TEMPORARY)).map_err(said),
        // Another command of the session was quicker.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(said(error)),
    }
}
