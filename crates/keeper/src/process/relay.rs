//! The relay: carries the standard input and output of a command over the keeper's socket to one client, its owner.
//!
//! The command lives for its owner. If none has connected some time after the start, or the owner's connection closes
//! (because the owner ended, or died), the command's input is closed, which asks most programs to end, and a moment
//! later the supervisor terminates it.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::{Error, Result};

/// How long after its start a command waits for its owner.
const OWNER_TIMEOUT: Duration = Duration::from_secs(8);
/// How long a command may go on after its input was closed. With the time that terminating takes, it stays below 10 s.
const END_GRACE: Duration = Duration::from_secs(2);
/// The most bytes that wait in one direction. Beyond this, the sender waits.
const MAX_WAITING_BYTES: usize = 256 << 10;
const CHUNK_BYTES: usize = 64 << 10;
/// Rounds before the supervisor checks everything else again.
const MAX_ROUNDS: usize = 16;

/// The command's ends of the relayed pipes.
#[derive(Debug)]
pub(crate) struct CommandPipes {
    pub(crate) input: OwnedFd,
    pub(crate) output: OwnedFd,
}

#[derive(Debug)]
pub(crate) struct Relay {
    /// The command's standard input; `None` once it is closed.
    input: Option<File>,
    /// The command's standard output; `None` once the command has closed it.
    output: Option<File>,
    owner: Option<UnixStream>,
    /// Bytes for the command.
    to_command: Vec<u8>,
    /// Bytes for the owner.
    to_owner: Vec<u8>,
    /// The owner was there, and is gone.
    is_orphaned: bool,
    /// When the command is terminated for lack of an owner.
    deadline: Option<Instant>,
}

impl Relay {
    pub(crate) fn new() -> Result<(Self, CommandPipes)> {
        let said = || Error::io("making pipes for the command's input and output");
        let (input_read, input) = pipe_with(PipeFlags::CLOEXEC).map_err(said())?;
        let (output, output_write) = pipe_with(PipeFlags::CLOEXEC).map_err(said())?;
        for ours in [&input, &output] {
            fcntl_getfl(ours).and_then(|flags| fcntl_setfl(ours, flags | OFlags::NONBLOCK)).map_err(said())?;
        }
        let relay = Self {
            input: Some(input.into()),
            output: Some(output.into()),
            owner: None,
            to_command: Vec::new(),
            to_owner: Vec::new(),
            is_orphaned: false,
            deadline: Some(Instant::now() + OWNER_TIMEOUT),
        };
        Ok((relay, CommandPipes { input: input_read, output: output_write }))
    }

    /// Whether an owner can connect. A command has one owner in its life.
    pub(crate) fn is_free(&self) -> bool {
        self.owner.is_none() && !self.is_orphaned
    }

    /// Connects the owner. `heard` are bytes that it has already sent for the command, `unsent` answers that go first.
    pub(crate) fn connect(&mut self, owner: UnixStream, heard: &[u8], unsent: &[u8]) {
        self.owner = Some(owner);
        self.deadline = None;
        self.to_command.extend_from_slice(heard);
        self.to_owner.splice(..0, unsent.iter().copied());
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Whether the command has been without an owner for too long.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= Instant::now())
    }

    /// What to poll for.
    pub(crate) fn handles(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let flag = |wanted: bool, flag: PollFlags| if wanted { flag } else { PollFlags::empty() };
        let owner = self.owner.as_ref().map(|owner| {
            let read = flag(self.to_command.len() < MAX_WAITING_BYTES, PollFlags::IN);
            (owner.as_fd(), read | flag(!self.to_owner.is_empty(), PollFlags::OUT))
        });
        let input = self.input.as_ref().filter(|_| !self.to_command.is_empty());
        let output = self.output.as_ref().filter(|_| self.to_owner.len() < MAX_WAITING_BYTES);
        owner
            .into_iter()
            .chain(input.map(|input| (input.as_fd(), PollFlags::OUT)))
            .chain(output.map(|output| (output.as_fd(), PollFlags::IN)))
    }

    /// Moves bytes in both directions, as far as that is possible without waiting.
    pub(crate) fn pump(&mut self) {
        for _ in 0..MAX_ROUNDS {
            let moved = self.move_to_command() + self.move_to_owner();
            if moved == 0 {
                return;
            }
        }
    }

    fn move_to_command(&mut self) -> usize {
        let mut moved = 0;
        if let Some(owner) = &mut self.owner {
            let read = match self.to_command.len() < MAX_WAITING_BYTES {
                true => read_some(owner, &mut self.to_command),
                // Only its end matters while the command does not read.
                false if is_hung_up(owner) => Ok(0),
                false => Err(ErrorKind::WouldBlock.into()),
            };
            match read {
                Ok(0) => self.lose_owner(),
                Ok(count) => moved += count,
                Err(error) if is_temporary(&error) => {}
                Err(_) => self.lose_owner(),
            }
        }
        if let Some(input) = &mut self.input {
            match write_some(input, &mut self.to_command) {
                Ok(count) => moved += count,
                // The command has closed its input.
                Err(_) => (self.input, self.to_command) = (None, Vec::new()),
            }
            if self.is_orphaned && self.to_command.is_empty() {
                self.input = None;
            }
        } else {
            self.to_command.clear();
        }
        moved
    }

    fn move_to_owner(&mut self) -> usize {
        let mut moved = 0;
        if let Some(output) = self.output.as_mut().filter(|_| self.to_owner.len() < MAX_WAITING_BYTES) {
            match read_some(output, &mut self.to_owner) {
                Ok(0) => self.output = None,
                Ok(count) => moved += count,
                Err(error) if is_temporary(&error) => {}
                Err(_) => self.output = None,
            }
        }
        match &mut self.owner {
            Some(owner) => match write_some(owner, &mut self.to_owner) {
                Ok(count) => moved += count,
                Err(_) => self.lose_owner(),
            },
            None if self.is_orphaned => self.to_owner.clear(),
            None => {}
        }
        moved
    }

    fn lose_owner(&mut self) {
        (self.owner, self.is_orphaned) = (None, true);
        self.deadline = Some(Instant::now() + END_GRACE);
    }
}

fn read_some(from: &mut impl Read, into: &mut Vec<u8>) -> io::Result<usize> {
    let mut chunk = [0; CHUNK_BYTES];
    let count = from.read(&mut chunk)?;
    into.extend_from_slice(&chunk[..count]);
    Ok(count)
}

/// Writes what can be written now, and removes it.
fn write_some(to: &mut impl Write, from: &mut Vec<u8>) -> io::Result<usize> {
    let mut written = 0;
    while written < from.len() {
        match to.write(&from[written..]) {
            Ok(count) => written += count,
            Err(error) if is_temporary(&error) => break,
            Err(error) => return Err(error),
        }
    }
    from.drain(..written);
    Ok(written)
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn is_hung_up(stream: &UnixStream) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&at_once)).is_ok() && polled[0].revents().contains(PollFlags::HUP)
}
