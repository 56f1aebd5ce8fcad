//! Whether the client of a TCP connection is a command: a process below a keeper, of any home of this user.
//!
//! `/proc/net/tcp` says which socket the client has, and `/proc/PID/task/TID/fd` which processes hold it. A command can make
//! itself hard to find, but not look like another process. So whatever it can bring about counts as a command:
//!
//! | the client's socket | while commands run | otherwise |
//! | --- | --- | --- |
//! | is held by a command | a command | |
//! | is held by another process | no command | no command |
//! | belongs to another user: a proxy, another person's browser | no command | no command |
//! | is closed already | a command | no command |
//! | is held by no process: it is being passed on, or its process hides its files (not dumpable) | a command | no command |
//! | is on another machine or in another network namespace | no command | no command |
//!
//! Not found: a process that left its keeper's descendants, which none in a PID namespace can; a request that another
//! program passes on for a command (a proxy). Keepers above this process don't count: then all of this runs in a command.

use std::collections::HashMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};

use rustix::process::{geteuid, getpid};

use crate::launcher;
use crate::process_table::{self, Entry};

const SOCKET_TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// The state of a socket that listens, in those tables.
const LISTENING: &str = "0A";

/// Whether the client of this connection to this process is a command. False if `/proc` doesn't tell. Blocks for some
/// milliseconds.
pub fn is_client_a_command(client: SocketAddr, server: SocketAddr) -> bool {
    if !is_of_this_machine(client) {
        return false;
    }
    let all = process_table::all();
    let commands = commands_among(&all);
    if commands.is_empty() {
        return false;
    }
    let socket = match find_socket(client, server) {
        Ok(socket) => socket,
        Err(_) => return false,
    };
    match socket {
        None => true,
        Some(socket) if socket.user != geteuid().as_raw() => false,
        Some(Socket { inode, .. }) => {
            let files = |entry: &Entry| PathBuf::from(format!("/proc/{}/fd", number(entry)));
            // A browser was started later than most.
            let mut others = all.iter().rev();
            commands.iter().any(|command| has_thread_that_holds(command, inode))
                || !others.any(|entry| holds(&files(entry), inode).unwrap_or(false))
        }
    }
}

/// Whether this is an address of this machine. Only such an address can be bound.
fn is_of_this_machine(client: SocketAddr) -> bool {
    let mut address = SocketAddr::new(client.ip().to_canonical(), 0);
    if let (SocketAddr::V6(address), SocketAddr::V6(client)) = (&mut address, client) {
        address.set_scope_id(client.scope_id());
    }
    client.ip().to_canonical().is_loopback() || UdpSocket::bind(address).is_ok()
}

/// All processes below keepers.
fn commands_among(all: &[Entry]) -> Vec<Entry> {
    let parents: HashMap<i32, i32> = all.iter().map(|entry| (number(entry), entry.parent)).collect();
    let mut above = vec![getpid().as_raw_nonzero().get()];
    while let Some(parent) =
        above.last().and_then(|last| parents.get(last)).filter(|parent| !above.contains(parent))
    {
        above.push(*parent);
    }
    // A keeper leads its session.
    let keepers = all.iter().filter(|entry| entry.session == number(entry) && is_keeper(entry)).map(number);
    let keepers: Vec<i32> = keepers.filter(|keeper| !above.contains(keeper)).collect();
    match keepers.is_empty() {
        true => Vec::new(),
        false => process_table::descendants_among(all.to_vec(), keepers),
    }
}

fn is_keeper(entry: &Entry) -> bool {
    let arguments = fs::read(format!("/proc/{}/cmdline", number(entry))).unwrap_or_default();
    arguments.split(|byte| *byte == 0).next() == Some(launcher::NAME.as_bytes())
}

fn number(entry: &Entry) -> i32 {
    entry.pid.as_raw_nonzero().get()
}

/// An open socket.
#[derive(Debug, PartialEq, Eq)]
struct Socket {
    user: u32,
    inode: u64,
}

/// The client's socket. `None` if the client has closed it. A rule of the system may have sent the client here from
/// another address, so the server's only decides between several.
fn find_socket(client: SocketAddr, server: SocketAddr) -> io::Result<Option<Socket>> {
    let mut found = None;
    for name in SOCKET_TABLES {
        let table = match fs::read_to_string(name) {
            Ok(table) => table,
            // A system without IPv6.
            Err(error) if error.kind() == ErrorKind::NotFound && name == SOCKET_TABLES[1] => break,
            Err(error) => return Err(error),
        };
        let lines = table.lines().skip(1).filter_map(parse_line);
        let of_client = lines.filter(|(local, _, _)| is_same(*local, client));
        let best = of_client.max_by_key(|(_, remote, _)| is_same(*remote, server));
        found = found.or(best);
    }
    Ok(found.map(|(_, _, socket)| socket).filter(|socket| socket.inode != 0))
}

/// Whether both are the same, also if one of them is an IPv4 address in IPv6.
fn is_same(one: SocketAddr, other: SocketAddr) -> bool {
    (one.ip().to_canonical(), one.port()) == (other.ip().to_canonical(), other.port())
}

/// Parses a line of `/proc/net/tcp`: the addresses of both ends, and the socket. `None` if it listens.
fn parse_line(line: &str) -> Option<(SocketAddr, SocketAddr, Socket)> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (local, remote) = (parse_address(fields.next()?)?, parse_address(fields.next()?)?);
    if fields.next()? == LISTENING {
        return None;
    }
    let user = fields.nth(3)?.parse().ok()?;
    let inode = fields.nth(1)?.parse().ok()?;
    Some((local, remote, Socket { user, inode }))
}

/// Parses `0100007F:1C03`. Each four bytes of an address are a number in the order of this machine.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(address.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let address = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(words.concat()).ok()?))
        }
        _ => return None,
    };
    Some(SocketAddr::new(address, u16::from_str_radix(port, 16).ok()?))
}

/// Whether a command holds a socket. Each of its threads may have open files of its own.
fn has_thread_that_holds(command: &Entry, inode: u64) -> bool {
    let threads = fs::read_dir(format!("/proc/{}/task", number(command)));
    let mut threads = threads.into_iter().flatten().flatten();
    threads.any(|thread| holds(&thread.path().join("fd"), inode).unwrap_or(false))
}

/// Whether a socket is among the open files in this folder of `/proc`.
fn holds(files: &Path, inode: u64) -> io::Result<bool> {
    let wanted = format!("socket:[{inode}]");
    let mut files = fs::read_dir(files)?.flatten();
    Ok(files.any(|file| fs::read_link(file.path()).is_ok_and(|target| target.as_os_str() == wanted.as_str())))
}

#[cfg(test)]
#[path = "tcp_client_tests.rs"]
mod tests;
