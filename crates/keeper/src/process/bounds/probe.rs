//! Trying out, in a process that is thrown away, what the system lets a keeper enforce.

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::getpid;

use super::init::SiblingsPipe;
use super::{Done, Ready, Reason, filter, init, landlock, mounts, namespaces, plan, while_};
use crate::Bounds;
use crate::bounds::{Network, Private, ProcessNamespace};
use crate::enforcement::Enforcement;
use crate::format::line;

/// With this a child says that it got through: it has nothing to execute.
const THROUGH: Errno = Errno::CANCELED;

/// Tells whoever holds the other end of the standard input what can be enforced here.
pub(in crate::process) fn answer() {
    let bytes = line(&look());
    let Ok(standard_input) = std::io::stdin().as_fd().try_clone_to_owned() else { return };
    let _ = std::fs::File::from(standard_input).write_all(&bytes);
}

fn look() -> Enforcement {
    let landlock = landlock::version().map_err(|error| error.to_string());
    // Every kind of mount that bounds can ask for, on what every system has.
    let bounds = Bounds {
        private: vec![Private { at: PathBuf::from("/tmp"), kept_in: None }],
        hidden: vec![PathBuf::from("/run"), PathBuf::from("/sys")],
        read_only: vec![PathBuf::from("/usr")],
        devices: vec![PathBuf::from(plan::TERMINALS)],
        ..Bounds::default()
    };
    let namespaces = Ready::new(&bounds, "/".as_ref()).and_then(|ready| {
        try_out(move || {
            namespaces::leave(Network::Open, ProcessNamespace::Shared)?;
            mounts::carry_out(&ready.plan, &ready.layers)?;
            namespaces::drop_privileges()
        })
    });
    let network = try_out(|| namespaces::leave(Network::Closed, ProcessNamespace::Shared));
    let processes = try_out_processes();
    Enforcement {
        landlock: landlock.as_ref().ok().copied(),
        no_landlock: landlock.err(),
        no_namespaces: namespaces.err(),
        no_network_namespace: network.err(),
        no_process_namespace: processes.err(),
        no_filter: filter::missing(),
    }
}

fn try_out_processes() -> Done {
    let pipe = SiblingsPipe::new().map_err(while_("making a pipe"))?;
    let theirs = pipe.theirs().map_err(while_("making a pipe"))?;
    let prober = getpid();
    let tried = try_out(move || {
        namespaces::leave(Network::Open, ProcessNamespace::Own)?;
        init::start_in_namespace(prober, &theirs)?;
        mounts::put_processes().map_err(while_("mounting /proc"))
    });
    // Reaped here, because in many containers no other process would.
    pipe.end_namespace();
    tried
}

/// Does something in a child that executes nothing.
#[allow(unsafe_code, reason = "between fork and exec nothing checks what is done")]
fn try_out(step: impl Fn() -> Done + Send + Sync + 'static) -> Done {
    let reason = Reason::new().map_err(while_("making a pipe"))?;
    let mut said = reason.theirs().map_err(while_("making a pipe"))?;
    let mut command = Command::new("/");
    // SAFETY: a keeper has one thread, so nobody else holds a lock that the child could wait for.
    unsafe {
        command.pre_exec(move || {
            let done = step();
            if let Err(trouble) = &done {
                let _ = said.write_all(trouble.as_bytes());
            }
            Err(if done.is_ok() { THROUGH } else { Errno::PERM }.into())
        });
    }
    let ended = command.spawn();
    drop(command);
    match ended {
        Err(error) if error.raw_os_error() == Some(THROUGH.raw_os_error()) => Ok(()),
        Err(error) => Err(reason.heard().unwrap_or_else(|| error.to_string())),
        Ok(_) => Err("a folder was executed".to_owned()),
    }
}
