//! Those who are connected to the keeper's socket.
//!
//! None of them can disturb the command: each has a small buffer in each direction, a silent one is dropped after a while,
//! one that talks too much at once, and of too many the one that has watched longest: the newest may want to end the command.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use longhaul_protocol::TaskStatus;

use crate::folder::Folder;
use crate::format::{Answer, FORMAT, Greeting, Request, line};

/// More than any runtime, terminal and listing together have open.
const MOST_KNOWN: usize = 64;
/// Of those that have not said the token, the newest.
const MOST_STRANGERS: usize = 16;
const PATIENCE_WITH_STRANGERS: Duration = Duration::from_secs(5);
const LONGEST_LINE: usize = 4096;
const MOST_UNREAD: usize = 4096;
/// Connections that are accepted before everything else is looked at again.
const ACCEPTED_AT_ONCE: usize = 8;
/// Followers hear of new output at most this often.
const FOLLOWING: Duration = Duration::from_millis(50);

/// Everybody who is connected.
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
    /// It has said the token.
    is_known: bool,
    follows: bool,
    wants_kill: bool,
    heard: Vec<u8>,
    unsent: Vec<u8>,
    is_gone: bool,
}

/// How the command is, for those who ask.
#[derive(Debug, Clone, Copy)]
pub(crate) struct State {
    pub(crate) printed: u64,
    pub(crate) pid: i32,
    /// Only what it left behind still runs.
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

    /// When somebody must be told or dropped, if nothing happens before.
    pub(crate) fn next_deadline(&self, printed: u64) -> Option<Instant> {
        let strangers = self.clients.iter().filter(|client| !client.is_known);
        let dropping = strangers.map(|client| client.since + PATIENCE_WITH_STRANGERS).min();
        let follows = printed != self.told && self.clients.iter().any(|client| client.follows);
        let telling = follows.then_some(self.followed + FOLLOWING);
        dropping.into_iter().chain(telling).min()
    }

    /// Hears and answers everybody, and says whether somebody wants the command to be ended.
    pub(crate) fn serve(&mut self, folder: &Folder, state: State) -> bool {
        self.accept();
        for client in &mut self.clients {
            client.hear();
            while let Some(text) = client.next_line() {
                client.answer(&text, folder, &self.token_file, state);
            }
        }
        self.tell_followers(state.printed);
        for client in &mut self.clients {
            client.is_gone |= !client.is_known && client.since.elapsed() > PATIENCE_WITH_STRANGERS;
            client.send();
        }
        self.clients.retain(|client| !client.is_gone);
        self.clients.iter().any(|client| client.wants_kill)
    }

    /// Closes every connection, which is the news that the command has ended, but those that asked for its end when it had come by itself: what
    /// it left behind is ended for them first.
    pub(crate) fn close_watching(&mut self) {
        self.clients.retain(|client| client.wants_kill);
    }

    /// Tells those who asked for the end that it has come. All connections close with this, which tells the others.
    pub(crate) fn say_ended(&mut self, killed: bool) {
        for client in self.clients.iter_mut().filter(|client| client.wants_kill) {
            client.say(&Answer::Killed { killed });
            client.send();
        }
        self.clients.clear();
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTED_AT_ONCE {
            let Ok((stream, _)) = self.listener.accept() else { return };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            self.clients.push(Client {
                stream,
                since: Instant::now(),
                is_known: false,
                follows: false,
                wants_kill: false,
                heard: Vec::new(),
                unsent: Vec::new(),
                is_gone: false,
            });
            let strangers = self.clients.iter().filter(|client| !client.is_known).count();
            if strangers > MOST_STRANGERS
                && let Some(oldest) = self.clients.iter().position(|client| !client.is_known)
            {
                self.clients.remove(oldest);
            }
            let known = self.clients.iter().filter(|client| client.is_known).count();
            if known > MOST_KNOWN
                && let Some(oldest) =
                    self.clients.iter().position(|client| client.is_known && !client.wants_kill)
            {
                self.clients.remove(oldest);
            }
        }
    }

    fn tell_followers(&mut self, printed: u64) {
        if printed == self.told || self.followed.elapsed() < FOLLOWING {
            return;
        }
        (self.followed, self.told) = (Instant::now(), printed);
        // One that has not read the last number yet needs no second one.
        for client in self.clients.iter_mut().filter(|client| client.follows && client.unsent.is_empty()) {
            client.say(&Answer::Printed { printed });
        }
    }
}

impl Client {
    fn hear(&mut self) {
        let mut bytes = [0; LONGEST_LINE];
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
            self.is_gone |= self.heard.len() > LONGEST_LINE;
            return None;
        };
        let rest = self.heard.split_off(end + 1);
        Some(std::mem::replace(&mut self.heard, rest))
    }

    fn answer(&mut self, text: &[u8], folder: &Folder, token_file: &str, state: State) {
        if !self.is_known {
            let greeting = serde_json::from_slice::<Greeting>(text);
            // Read anew each time: the runtime may have made a new one since the command started.
            self.is_known = match (greeting, folder.token(token_file)) {
                (Ok(greeting), Ok(token)) => greeting.token == token,
                _ => false,
            };
            if !self.is_known {
                self.say(&Answer::Refused { refused: "token".to_owned() });
                self.send();
                self.is_gone = true;
            }
            return;
        }
        // What isn't understood is from a newer runtime, which knows that it may be passed over.
        let request = serde_json::from_slice::<Request>(text).unwrap_or_default();
        let wants_news = request.watch || request.follow;
        if wants_news && state.has_ended {
            // That the connection closes is the news.
            self.is_gone = true;
        } else if wants_news {
            let State { printed, pid, .. } = state;
            self.say(&Answer::State { format: FORMAT, state: TaskStatus::Running, printed, pid });
        }
        self.follows |= request.follow;
        self.wants_kill |= request.kill;
    }

    fn say(&mut self, answer: &Answer) {
        self.unsent.extend(line(answer));
        // It asks and does not read.
        self.is_gone |= self.unsent.len() > MOST_UNREAD;
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
