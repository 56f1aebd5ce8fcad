//! Probes what this system can enforce, by trying it in a throw-away process.

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::getpid;

use super::pid_namespace::SiblingsPipe;
use super::{
    FailurePipe, PreparedSandbox, SandboxResult, context, landlock, mount_plan, mounts, namespaces,
    pid_namespace, seccomp,
};
use crate::Bounds;
use crate::bounds::{Network, Private, ProcessNamespace};
use crate::enforcement::Enforcement;
use crate::format::line;

/// The error with which a child reports success. It executes nothing, so it has to end with an error.
const SUCCESS: Errno = Errno::CANCELED;

/// Writes the result to the standard input, whose other end the runtime holds.
pub(in crate::process) fn answer() {
    let bytes = line(&probe());
    let Ok(standard_input) = std::io::stdin().as_fd().try_clone_to_owned() else { return };
    let _ = std::fs::File::from(standard_input).write_all(&bytes);
}

fn probe() -> Enforcement {
    let landlock = landlock::version().map_err(|error| error.to_string());
    // Every kind of mount that bounds can need, on paths that every system has.
    let bounds = Bounds {
        private: vec![Private { at: PathBuf::from("/tmp"), kept_in: None }],
        hidden: vec![PathBuf::from("/run"), PathBuf::from("/sys")],
        read_only: vec![PathBuf::from("/usr")],
        devices: vec![PathBuf::from(mount_plan::TERMINALS)],
        ..Bounds::default()
    };
    let namespaces = PreparedSandbox::new(&bounds, "/".as_ref()).and_then(|ready| {
        try_out(move || {
            namespaces::unshare_namespaces(Network::Open, ProcessNamespace::Shared)?;
            mounts::apply_plan(&ready.plan, &ready.layers)?;
            namespaces::drop_privileges()
        })
    });
    let network = try_out(|| namespaces::unshare_namespaces(Network::Closed, ProcessNamespace::Shared));
    let processes = try_out_processes();
    Enforcement {
        landlock: landlock.as_ref().ok().copied(),
        no_landlock: landlock.err(),
        no_namespaces: namespaces.err(),
        no_network_namespace: network.err(),
        no_process_namespace: processes.err(),
        no_filter: seccomp::missing(),
    }
}

fn try_out_processes() -> SandboxResult {
    let pipe = SiblingsPipe::new().map_err(context("making a pipe"))?;
    let theirs = pipe.theirs().map_err(context("making a pipe"))?;
    let prober = getpid();
    let tried = try_out(move || {
        namespaces::unshare_namespaces(Network::Open, ProcessNamespace::Own)?;
        pid_namespace::start_in_namespace(prober, &theirs)?;
        mounts::mount_proc().map_err(context("mounting /proc"))
    });
    // Reaped here, because many containers have no init that would do it.
    pipe.end_namespace();
    tried
}

/// Runs a step in a child that executes nothing.
#[allow(unsafe_code, reason = "between fork and exec nothing checks what is done")]
fn try_out(step: impl Fn() -> SandboxResult + Send + Sync + 'static) -> SandboxResult {
    let reason = FailurePipe::new().map_err(context("making a pipe"))?;
    let mut said = reason.theirs().map_err(context("making a pipe"))?;
    let mut command = Command::new("/");
    // SAFETY: a keeper has one thread, so no other thread holds a lock that the child could wait for.
    unsafe {
        command.pre_exec(move || {
            let done = step();
            if let Err(trouble) = &done {
                let _ = said.write_all(trouble.as_bytes());
            }
            Err(if done.is_ok() { SUCCESS } else { Errno::PERM }.into())
        });
    }
    let ended = command.spawn();
    drop(command);
    match ended {
        Err(error) if error.raw_os_error() == Some(SUCCESS.raw_os_error()) => Ok(()),
        Err(error) => Err(reason.heard().unwrap_or_else(|| error.to_string())),
        Ok(_) => Err("a folder was executed".to_owned()),
    }
}
