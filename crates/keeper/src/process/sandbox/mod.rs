//! The sandbox: enforces the bounds of a command, between fork and exec.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `namespaces` | user, mount, IPC, network and PID namespaces; capabilities |
//! | `pid_namespace` | the init process of a PID namespace |
//! | `mount_plan`, `mounts` | which mounts the bounds need (pure); making them: bind mounts, tmpfs, masks, devpts, `/proc` |
//! | `overlay`, `placeholders` | overlayfs layers; files that keep a name from being taken |
//! | `landlock`, `seccomp` | rules for files, signals and abstract sockets; the filter of system calls |
//! | `probe` | what this system can enforce |
//!
//! Each step narrows what the next one can do, so seccomp comes last. If a step fails, the command is not started,
//! and the status names the step. A keeper has one thread, so its child may allocate between fork and exec.

mod landlock;
mod mount_plan;
mod mounts;
mod namespaces;
mod overlay;
mod pid_namespace;
mod placeholders;
mod probe;
mod seccomp;

use std::fs::{DirBuilder, Permissions};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use longhaul_protocol::PrintablePath;
use rustix::io::Errno;
use rustix::process::Pid;

use super::command::open_work_dir;
use crate::Bounds;
use crate::bounds::{Private, ProcessNamespace};
use mount_plan::MountPlan;
use overlay::Layers;

pub(super) use overlay::clean_up as clean_up_overlays;
pub(super) use pid_namespace::{CHILD_REAPED, SiblingsPipe};
pub(super) use placeholders::Placeholders;
pub(super) use probe::answer as answer_probe;

/// The mode of `/tmp`. The folder around it is private to the user.
const TEMPORARY: u32 = 0o1777;
const PRIVATE: u32 = 0o700;
const MAX_REASON_BYTES: u64 = 4 << 10;

/// What failed, as a message for people.
type SandboxError = String;
type SandboxResult<T = ()> = Result<T, SandboxError>;

/// For `map_err`: adds the operation that failed.
fn context<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> SandboxError {
    let doing = doing.into();
    move |error| format!("{doing}: {}", error.into())
}

/// A sandbox, with all the work done that is possible before the fork.
#[derive(Debug)]
pub(super) struct PreparedSandbox {
    bounds: Bounds,
    plan: MountPlan,
    layers: Vec<Layers>,
    work_dir: PathBuf,
}

/// The pipe on which a child reports why it could not become the command. The standard library passes on only an
/// error number.
#[derive(Debug)]
pub(super) struct FailurePipe {
    theirs: Option<PipeWriter>,
    ours: PipeReader,
}

impl PreparedSandbox {
    pub(super) fn new(bounds: &Bounds, work_dir: &Path) -> SandboxResult<Self> {
        for private in &bounds.private {
            make_private(private)?;
        }
        let layers = bounds.overlays.iter().map(Layers::prepare).collect::<SandboxResult<_>>()?;
        Ok(Self {
            bounds: bounds.clone(),
            plan: MountPlan::new(bounds),
            layers,
            work_dir: work_dir.to_owned(),
        })
    }

    pub(super) fn has_pid_namespace(&self) -> bool {
        self.bounds.processes == ProcessNamespace::Own
    }

    /// Puts this process into the sandbox for good. With a PID namespace, another process returns from this call: see
    /// `pid_namespace`.
    fn enter(&self, keeper: Pid, siblings: &PipeWriter) -> SandboxResult {
        namespaces::unshare_namespaces(self.bounds.network, self.bounds.processes)?;
        if self.has_pid_namespace() {
            pid_namespace::start_in_namespace(keeper, siblings)?;
            mounts::mount_proc().map_err(context("mounting /proc"))?;
        }
        mounts::apply_plan(&self.plan, &self.layers)?;
        // Only now, because the new mounts may cover the folder.
        open_work_dir(&self.work_dir)
            .and_then(|folder| rustix::process::fchdir(folder).map_err(|error| error.to_string()))
            .map_err(|trouble| format!("going to the work folder: {trouble}"))?;
        namespaces::drop_privileges()?;
        landlock::restrict(&self.bounds)?;
        seccomp::install_filter(&self.bounds)
    }

    /// [`enter`](Self::enter) for `pre_exec`: a failure is written to the pipe.
    pub(super) fn enter_or_report(
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

impl FailurePipe {
    pub(super) fn new() -> io::Result<Self> {
        let (ours, theirs) = io::pipe()?;
        Ok(Self { theirs: Some(theirs), ours })
    }

    /// The end of the pipe for the child.
    pub(super) fn theirs(&self) -> io::Result<PipeWriter> {
        let gone = || io::Error::other("unknown reason");
        self.theirs.as_ref().ok_or_else(gone)?.try_clone()
    }

    /// The child's message, once all copies of its end are closed. `None` if nothing failed.
    pub(super) fn heard(mut self) -> Option<String> {
        self.theirs = None;
        let mut reason = String::new();
        self.ours.take(MAX_REASON_BYTES).read_to_string(&mut reason).ok()?;
        (!reason.is_empty()).then_some(reason)
    }
}

/// Creates the folder that is mounted over a private one.
fn make_private(private: &Private) -> SandboxResult {
    let Some(folder) = &private.kept_in else { return Ok(()) };
    if folder.is_dir() {
        return Ok(());
    }
    let said = |error: io::Error| context(format!("making {}", folder.printable()))(error);
    if let Some(parent) = folder.parent() {
        DirBuilder::new().recursive(true).mode(PRIVATE).create(parent).map_err(said)?;
    }
    match DirBuilder::new().mode(PRIVATE).create(folder) {
        Ok(()) => std::fs::set_permissions(folder, Permissions::from_mode(TEMPORARY)).map_err(said),
        // Another command of the session was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(said(error)),
    }
}
