//! What this system can enforce: Landlock, namespaces, seccomp. The runtime uses this to decide whether commands may
//! run.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bounds::{Network, ProcessNamespace, UnixSockets};
use crate::{Error, Launcher, Result};

/// A probe takes milliseconds; on a very busy machine, seconds.
const PROBE_TIMEOUT: Duration = Duration::from_secs(20);
const MAX_ANSWER_BYTES: u64 = 64 << 10;
/// What Landlock can prevent only since these versions.
const GAPS: [(u32, &str); 2] = [
    (5, "a command can control devices that you may open"),
    (6, "a command can signal your other processes and reach their abstract sockets"),
];
/// What a command can do if there is no seccomp filter.
const WITHOUT_FILTER: &str = "a command can change limits and priorities of your other processes, and create user namespaces \
     (no seccomp)";

/// What a command can do if there is no PID namespace.
const WITHOUT_PROCESS_NAMESPACE: &str =
    "a command sees your other processes and their command lines (no PID namespace, or no /proc in one)";

/// What this system can enforce.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Enforcement {
    /// The kernel's version of Landlock.
    pub landlock: Option<u32>,
    /// Why Landlock is not available.
    pub no_landlock: Option<String>,
    /// Why mount namespaces are not available.
    pub no_namespaces: Option<String>,
    /// Why network namespaces are not available.
    pub no_network_namespace: Option<String>,
    /// Why PID namespaces with a `/proc` of their own are not available.
    pub no_process_namespace: Option<String>,
    /// Why seccomp is not available.
    pub no_filter: Option<String>,
}

impl Enforcement {
    /// Why bounds with this network and these sockets can't be enforced, and what to do about it. `None` if they can.
    pub fn missing(&self, network: Network, unix_sockets: UnixSockets) -> Option<String> {
        let mut missing = String::new();
        if self.landlock.is_none() {
            let why = self.no_landlock.as_deref().unwrap_or("unknown reason");
            let _ = write!(
                missing,
                "Landlock is not available ({why}): use Linux 5.13 or later, with `landlock` among its security \
                 modules (boot parameter `lsm=`). "
            );
        }
        let namespaces = match network {
            Network::Open => self.no_namespaces.as_ref(),
            Network::Closed => self.no_namespaces.as_ref().or(self.no_network_namespace.as_ref()),
        };
        if let Some(why) = namespaces {
            let _ = write!(
                missing,
                "User and mount namespaces are not available ({why}): allow them for ordinary users \
                 (`sysctl kernel.unprivileged_userns_clone=1`, `sysctl user.max_user_namespaces=10000`, or \
                 `sysctl kernel.apparmor_restrict_unprivileged_userns=0`, whichever this system has; in a container, \
                 allow it to use them). "
            );
        }
        if let (UnixSockets::Refused, Some(why)) = (unix_sockets, &self.no_filter) {
            let _ = write!(
                missing,
                "Unix sockets can't be blocked ({why}): use a kernel with seccomp filters, on x86_64 or aarch64, or set \
                 `sandbox.mode = \"on\"`. "
            );
        }
        (!missing.is_empty()).then(|| missing.trim_end().to_owned())
    }

    /// What a command can still do because the system is too old to prevent it.
    pub fn gaps(&self) -> Vec<&'static str> {
        let version = self.landlock.unwrap_or(0);
        let of_landlock = GAPS.iter().filter(|(since, _)| version < *since).map(|(_, gap)| *gap);
        let of_processes = self.no_process_namespace.as_ref().map(|_| WITHOUT_PROCESS_NAMESPACE);
        of_landlock.chain(self.no_filter.as_ref().map(|_| WITHOUT_FILTER)).chain(of_processes).collect()
    }

    /// The PID namespace that commands can have here.
    pub fn processes(&self) -> ProcessNamespace {
        if self.no_process_namespace.is_none() { ProcessNamespace::Own } else { ProcessNamespace::Shared }
    }
}

/// Probes what can be enforced, by trying it in a throw-away process. Blocks for a few milliseconds.
pub fn what_can_be_enforced(launcher: &Launcher) -> Result<Enforcement> {
    let trying = || Error::io::<std::io::Error>("trying out what can be enforced");
    let (ours, theirs) = UnixStream::pair().map_err(trying())?;
    ours.set_read_timeout(Some(PROBE_TIMEOUT)).map_err(trying())?;
    let mut prober = launcher.probe(theirs.into()).map_err(trying())?;
    let mut line = String::new();
    let heard = BufReader::new((&ours).take(MAX_ANSWER_BYTES)).read_line(&mut line);
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
