//! Clients of the keeper's socket.
//!
//! No client can disturb the command. Each has a small buffer in each direction. A client that does not authenticate
//! in time, or sends too much at once, is disconnected. If there are too many clients, the oldest watcher is
//! disconnected, because the newest client may want to kill the command.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use longhaul_protocol::TaskStatus;

use crate::folder::Folder;
use crate::format::{Answer, FORMAT, Greeting, Request, line};

const MAX_CLIENTS: usize = 64;
/// The most clients that have not sent the token yet. Beyond this, the oldest is dropped.
const MAX_UNAUTHENTICATED: usize = 16;
const AUTHENTICATION_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_LINE_BYTES: usize = 4096;
const MAX_UNSENT_BYTES: usize = 4096;
/// Connections to accept before the supervisor checks everything else again.
const MAX_ACCEPTS: usize = 8;
/// The shortest time between two messages to followers about new output.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(50);

/// The listener and all connected clients.
#[derive(Debug)]
pub(crate) struct Clients {
    listener: UnixListener,
    token_file: String,
    clients: Vec<Client>,
    followed: Instant,
    told: u64,
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    since: Instant,
    /// It has sent the token.
    is_authenticated: bool,
    follows: bool,
    wants_kill: bool,
    wants_relay: bool,
    heard: Vec<u8>,
    unsent: Vec<u8>,
    is_gone: bool,
}

/// A client that becomes the owner of a relayed command.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) stream: UnixStream,
    /// Bytes after its request, for the command.
    pub(crate) heard: Vec<u8>,
    /// Answers that it has not got yet.
    pub(crate) unsent: Vec<u8>,
}

/// The state of the command, for clients.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandState {
    pub(crate) printed: u64,
    pub(crate) pid: i32,
    /// Only its orphans still run.
    pub(crate) has_ended: bool,
}

impl Clients {
    pub(crate) fn new(listener: UnixListener, token_file: String) -> Self {
        Self { listener, token_file, clients: Vec::new(), followed: Instant::now(), told: 0 }
    }

    pub(crate) fn handles(&self) -> impl Iterator<Item = (BorrowedFd<'_>, bool)> {
        let clients = self.clients.iter().map(|client| (client.stream.as_fd(), !client.unsent.is_empty()));
        std::iter::once((self.listener.as_fd(), false)).chain(clients)
    }

    /// The next time at which a client must get a message or be dropped.
    pub(crate) fn next_deadline(&self, printed: u64) -> Option<Instant> {
        let strangers = self.clients.iter().filter(|client| !client.is_authenticated);
        let dropping = strangers.map(|client| client.since + AUTHENTICATION_TIMEOUT).min();
        let follows = printed != self.told && self.clients.iter().any(|client| client.follows);
        let telling = follows.then_some(self.followed + FOLLOW_INTERVAL);
        dropping.into_iter().chain(telling).min()
    }

    /// Reads from and writes to all clients. Returns true if one of them asks to kill the command.
    pub(crate) fn serve(&mut self, folder: &Folder, state: CommandState) -> bool {
        self.accept();
        for client in &mut self.clients {
            client.hear();
            // What follows the request of an owner is for the command.
            while !client.wants_relay
                && let Some(text) = client.next_line()
            {
                client.answer(&text, folder, &self.token_file, state);
            }
        }
        self.tell_followers(state.printed);
        for client in &mut self.clients {
            client.is_gone |= !client.is_authenticated && client.since.elapsed() > AUTHENTICATION_TIMEOUT;
            client.send();
        }
        self.clients.retain(|client| !client.is_gone);
        self.clients.iter().any(|client| client.wants_kill)
    }

    /// Takes the client that asks to own the relayed command. If there is or was one already, the client is refused.
    pub(crate) fn take_owner(&mut self, is_free: bool) -> Option<Owner> {
        let index = self.clients.iter().position(|client| client.wants_relay)?;
        let mut client = self.clients.remove(index);
        if !is_free {
            client.say(&Answer::Refused { refused: "owned".to_owned() });
            client.send();
            return None;
        }
        client.say(&Answer::Relayed { relayed: true });
        Some(Owner { stream: client.stream, heard: client.heard, unsent: client.unsent })
    }

    /// Closes all connections, which tells the clients that the command has ended. Clients that asked to kill it stay
    /// connected until the keeper has killed the orphans.
    pub(crate) fn close_watching(&mut self) {
        self.clients.retain(|client| client.wants_kill);
    }

    /// Confirms the kill to the clients that asked for it, and closes all connections.
    pub(crate) fn confirm_kill(&mut self, killed: bool) {
        for client in self.clients.iter_mut().filter(|client| client.wants_kill) {
            client.say(&Answer::Killed { killed });
            client.send();
        }
        self.clients.clear();
    }

    fn accept(&mut self) {
        for _ in 0..MAX_ACCEPTS {
            let Ok((stream, _)) = self.listener.accept() else { return };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            self.clients.push(Client {
                stream,
                since: Instant::now(),
                is_authenticated: false,
                follows: false,
                wants_kill: false,
                wants_relay: false,
                heard: Vec::new(),
                unsent: Vec::new(),
                is_gone: false,
            });
            let strangers = self.clients.iter().filter(|client| !client.is_authenticated).count();
            if strangers > MAX_UNAUTHENTICATED
                && let Some(oldest) = self.clients.iter().position(|client| !client.is_authenticated)
            {
                self.clients.remove(oldest);
            }
            let known = self.clients.iter().filter(|client| client.is_authenticated).count();
            if known > MAX_CLIENTS
                && let Some(oldest) =
                    self.clients.iter().position(|client| client.is_authenticated && !client.wants_kill)
            {
                self.clients.remove(oldest);
            }
        }
    }

    fn tell_followers(&mut self, printed: u64) {
        if printed == self.told || self.followed.elapsed() < FOLLOW_INTERVAL {
            return;
        }
        (self.followed, self.told) = (Instant::now(), printed);
        // A client that has not read the last message yet needs no new one.
        for client in self.clients.iter_mut().filter(|client| client.follows && client.unsent.is_empty()) {
            client.say(&Answer::Printed { printed });
        }
    }
}

impl Client {
    fn hear(&mut self) {
        let mut bytes = [0; MAX_LINE_BYTES];
        match self.stream.read(&mut bytes) {
            Ok(0) => self.is_gone = true,
            Ok(count) => self.heard.extend_from_slice(&bytes[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.is_gone = true,
        }
    }

    fn next_line(&mut self) -> Option<Vec<u8>> {
        if self.is_gone {
            return None;
        }
        let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') else {
            self.is_gone |= self.heard.len() > MAX_LINE_BYTES;
            return None;
        };
        let rest = self.heard.split_off(end + 1);
        Some(std::mem::replace(&mut self.heard, rest))
    }

    fn answer(&mut self, text: &[u8], folder: &Folder, token_file: &str, state: CommandState) {
        if !self.is_authenticated {
            let greeting = serde_json::from_slice::<Greeting>(text);
            // Read each time, because the runtime may have created a new token since the command started.
            self.is_authenticated = match (greeting, folder.token(token_file)) {
                (Ok(greeting), Ok(token)) => greeting.token == token,
                _ => false,
            };
            if !self.is_authenticated {
                self.say(&Answer::Refused { refused: "token".to_owned() });
                self.send();
                self.is_gone = true;
            }
            return;
        }
        // An unknown request comes from a newer runtime, which expects that a keeper may ignore it.
        let request = serde_json::from_slice::<Request>(text).unwrap_or_default();
        let wants_news = request.watch || request.follow;
        if wants_news && state.has_ended {
            // Closing the connection tells the client.
            self.is_gone = true;
        } else if wants_news {
            let CommandState { printed, pid, .. } = state;
            self.say(&Answer::State { format: FORMAT, state: TaskStatus::Running, printed, pid });
        }
        self.follows |= request.follow;
        self.wants_kill |= request.kill;
        self.wants_relay |= request.relay;
    }

    fn say(&mut self, answer: &Answer) {
        self.unsent.extend(line(answer));
        // The client sends requests but does not read the answers.
        self.is_gone |= self.unsent.len() > MAX_UNSENT_BYTES;
    }

    fn send(&mut self) {
        while !self.unsent.is_empty() && !self.is_gone {
            match self.stream.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.is_gone = true,
            }
        }
    }
}
