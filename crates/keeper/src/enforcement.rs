//! What the system lets a keeper enforce, for whoever decides whether commands run.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bounds::{Network, ProcessNamespace, UnixSockets};
use crate::{Error, Launcher, Result};

/// It takes milliseconds; a machine that is very busy can make that seconds.
const PROBE_TIMEOUT: Duration = Duration::from_secs(20);
const LONGEST_ANSWER: u64 = 64 << 10;
/// Since these versions Landlock also keeps a command from what is said beside them.
const GAPS: [(u32, &str); 2] = [
    (5, "a command can set devices outside of the scope that the user may open"),
    (6, "a command can send signals to the user's other processes, and reach their abstract sockets"),
];
/// What a filter of system calls keeps a command from.
const WITHOUT_FILTER: &str = "a command can set limits and priorities of the user's other processes, and so end them, and make user namespaces \
     (seccomp is missing)";

/// What a PID namespace keeps a command from.
const WITHOUT_PROCESS_NAMESPACE: &str = "a command sees the user's other processes and their command lines (no PID namespace, or no /proc in one)";

/// What the system lets a keeper enforce.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Enforcement {
    /// The version of Landlock that the system has.
    pub landlock: Option<u32>,
    /// Why there is no Landlock.
    pub no_landlock: Option<String>,
    /// Why there are no namespaces with mounts of their own.
    pub no_namespaces: Option<String>,
    /// Why there is no network namespace.
    pub no_network_namespace: Option<String>,
    /// Why there is no PID namespace, with a `/proc` of its own.
    pub no_process_namespace: Option<String>,
    /// Why system calls can't be filtered.
    pub no_filter: Option<String>,
}

impl Enforcement {
    /// Why bounds with such a network and such sockets can't be enforced, in words for people and with what to do about it. None if they
    /// can.
    pub fn missing(&self, network: Network, unix_sockets: UnixSockets) -> Option<String> {
        let mut missing = String::new();
        if self.landlock.is_none() {
            let why = self.no_landlock.as_deref().unwrap_or("nobody knows why");
            let _ = write!(
                missing,
                "Landlock is not available ({why}): it needs Linux 5.13 or later with `landlock` in the kernel's list of \
                 security modules (the boot parameter `lsm=`). "
            );
        }
        let namespaces = match network {
            Network::Open => self.no_namespaces.as_ref(),
            Network::Closed => self.no_namespaces.as_ref().or(self.no_network_namespace.as_ref()),
        };
        if let Some(why) = namespaces {
            let _ = write!(
                missing,
                "User and mount namespaces are not available ({why}): allow them to ordinary users \
                 (`sysctl kernel.unprivileged_userns_clone=1`, `sysctl user.max_user_namespaces=10000`, or \
                 `sysctl kernel.apparmor_restrict_unprivileged_userns=0`, whichever this system has; in a container, \
                 let it use them). "
            );
        }
        if let (UnixSockets::Refused, Some(why)) = (unix_sockets, &self.no_filter) {
            let _ = write!(
                missing,
                "Unix sockets can't be refused ({why}): that needs a kernel with seccomp filters, on x86_64 or aarch64; \
                 `sandbox.mode = \"on\"` does without. "
            );
        }
        (!missing.is_empty()).then(|| missing.trim_end().to_owned())
    }

    /// What a command can do all the same, because the system is too old to keep it from that.
    pub fn gaps(&self) -> Vec<&'static str> {
        let version = self.landlock.unwrap_or(0);
        let of_landlock = GAPS.iter().filter(|(since, _)| version < *since).map(|(_, gap)| *gap);
        let of_processes = self.no_process_namespace.as_ref().map(|_| WITHOUT_PROCESS_NAMESPACE);
        of_landlock.chain(self.no_filter.as_ref().map(|_| WITHOUT_FILTER)).chain(of_processes).collect()
    }

    /// The processes that commands can be made to see.
    pub fn processes(&self) -> ProcessNamespace {
        if self.no_process_namespace.is_none() { ProcessNamespace::Own } else { ProcessNamespace::Shared }
    }
}

/// Finds out what can be enforced, by really trying in a process that is thrown away. Blocks for a few milliseconds.
pub fn what_can_be_enforced(launcher: &Launcher) -> Result<Enforcement> {
    let trying = || Error::io::<std::io::Error>("trying out what can be enforced");
    let (ours, theirs) = UnixStream::pair().map_err(trying())?;
    ours.set_read_timeout(Some(PROBE_TIMEOUT)).map_err(trying())?;
    let mut prober = launcher.probe(theirs.into()).map_err(trying())?;
    let mut line = String::new();
    let heard = BufReader::new((&ours).take(LONGEST_ANSWER)).read_line(&mut line);
    let _ = prober.kill();
    let _ = prober.wait();
    heard.map_err(trying())?;
    let damaged = |error: serde_json::Error| Error::Damaged {
        file: "what the prober said".to_owned(),
        reason: error.to_string(),
    };
    serde_json::from_str(&line).map_err(damaged)
}

#[cfg(test)]
#[path = "enforcement_tests.rs"]
mod tests;
