//! Leases: the right to append to a stream.
//!
//! Every append carries the token of its lease (a fencing token). Expiry only *permits* a takeover. A takeover raises
//! the token, and an append with an old token gets `Fenced`, however late it comes. A lease names the process that
//! holds it. If that process died on the same boot, another can take over the lease at once, without waiting for
//! expiry.

use std::fmt;
use std::sync::LazyLock;

use longhaul_protocol::StreamName;
use serde::{Deserialize, Serialize};

/// The right to append to a stream, until another process takes it over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The stream.
    pub stream: StreamName,
    /// The fencing token. Each takeover raises it.
    pub token: u64,
}

/// The process that holds a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The machine.
    pub host: String,
    /// The boot id of that machine. After another boot, the process is gone.
    pub boot: String,
    /// The namespace of `pid`: containers share a boot but not their pids.
    pub pid_namespace: String,
    /// The process.
    pub pid: u32,
    /// When it started, in ticks since boot, because the system reuses pids.
    pub started: u64,
    /// The name of its wake socket in the home's folder `run`.
    pub socket: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {}", self.pid, self.host)
    }
}

impl Holder {
    /// This process.
    pub fn this_process() -> Self {
        // It never changes during the life of the process, and every wake needs it.
        static THIS: LazyLock<Holder> = LazyLock::new(Holder::look_up);
        THIS.clone()
    }

    fn look_up() -> Self {
        let pid = std::process::id();
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        Self {
            host: read("/proc/sys/kernel/hostname"),
            boot: read("/proc/sys/kernel/random/boot_id"),
            pid_namespace: namespace.to_string_lossy().into_owned(),
            pid,
            started: process_start(pid).unwrap_or_default(),
            socket: format!("{pid}.sock"),
        }
    }

    /// Whether this is another process that is not certainly gone.
    pub fn is_another(&self) -> bool {
        *self != Self::this_process() && !self.is_gone()
    }

    /// Whether the process is certainly gone.
    pub fn is_gone(&self) -> bool {
        self.is_gone_for(&Self::this_process())
    }

    /// Whether the process is certainly gone, as seen by `observer`. If that can't be determined, only expiry permits
    /// a takeover.
    pub fn is_gone_for(&self, observer: &Self) -> bool {
        if self.boot.is_empty() || self.host != observer.host {
            return false;
        }
        if self.boot != observer.boot {
            return true;
        }
        self.pid_namespace == observer.pid_namespace && process_start(self.pid) != Some(self.started)
    }
}

/// When a process started; `None` if it is gone or a zombie.
fn process_start(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in brackets, which may itself contain brackets and spaces.
    let mut fields = stat.get(stat.rfind(')')? + 2..)?.split(' ');
    let state = fields.next()?;
    let start = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(start)
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
