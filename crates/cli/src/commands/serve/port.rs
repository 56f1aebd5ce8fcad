//! Why a port can't be had, and which process has it.

use std::fs;
use std::io::{Error, ErrorKind};
use std::net::SocketAddr;

use crate::bad_usage;

/// The error for an address that can't be bound.
pub(super) fn bind_error(address: SocketAddr, error: &Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::AddrInUse => {
            let holder = port_holder(address.port()).unwrap_or_else(|| "another process".to_owned());
            anyhow::anyhow!(
                "{address} is in use by {holder}; stop it, or choose another port with --listen or server.listen"
            )
        }
        ErrorKind::PermissionDenied => bad_usage(format!(
            "can't listen on {address}: {error}; ports below 1024 are the system's, choose a higher one"
        )),
        _ => bad_usage(format!("can't listen on {address}: {error}; choose an address of this machine")),
    }
}

/// The process that listens on a TCP port, if the system lets this user see it.
fn port_holder(port: u16) -> Option<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    let sockets: Vec<String> = tables
        .iter()
        .flat_map(|table| table.lines())
        .filter_map(|line| listening_inode(line, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let holds = |pid: &u32| {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut links = files.filter_map(|entry| fs::read_link(entry.path()).ok());
        links.any(|link| sockets.iter().any(|socket| link.as_os_str() == socket.as_str()))
    };
    let pid = pids.into_iter().find(holds)?;
    let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<&str> = command.split('\0').filter(|word| !word.is_empty()).take(4).collect();
    Some(format!("process {pid} ({})", words.join(" ")))
}

/// The inode in a line of `/proc/net/tcp`, if it is about a socket that listens on this port.
fn listening_inode(line: &str, port: u16) -> Option<&str> {
    const LISTEN: &str = "0A";
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (_, found) = fields.get(1)?.rsplit_once(':')?;
    let is_it = u16::from_str_radix(found, 16).ok()? == port && *fields.get(3)? == LISTEN;
    is_it.then(|| fields.get(9).copied())?
}

#[cfg(test)]
#[path = "port_tests.rs"]
mod tests;
