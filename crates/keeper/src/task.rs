//! A task from the runtime's side: its keeper, through its socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use longhaul_protocol::{At, TaskId};
use rustix::process::Signal;

use crate::folder::{Folder, name};
use crate::format::{Answer, Greeting, Request, decode, line};
use crate::liveness::{self, KeeperConnection};
use crate::{Error, Result, Status, orphan_cleanup, process_table};

/// A keeper answers in milliseconds, unless it or the machine is stopped.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Killing takes up to 2 s of grace period and 5 s of SIGKILL.
const KILL_CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(10);
/// A kill does not wait long for a connection, because it can fall back to signals.
const CONNECT_TIMEOUT_BEFORE_KILL: Duration = Duration::from_millis(300);
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// The most that a keeper answers to one request.
const MAX_ANSWER_BYTES: u64 = 64 << 10;
const MAX_LINE_BYTES: usize = 4096;

/// A command that was started and may have ended since.
#[derive(Debug)]
pub struct Task {
    id: TaskId,
    folder: Folder,
    /// `None` if the spec can't be read. Then the keeper only gets signals.
    token_file: Option<String>,
}

impl Task {
    pub(crate) fn new(id: TaskId, folder: Folder, token_file: Option<String>) -> Self {
        Self { id, folder, token_file }
    }

    pub fn id(&self) -> TaskId {
        self.id
    }

    /// A connection that the keeper closes when the command has ended and its status is written. If the command has
    /// already ended, the connection is closed from the start. The caller only waits for the end of the connection.
    ///
    /// A keeper with too many connections closes the oldest. So a caller that finds no status should connect again.
    pub fn connect(&self) -> Result<UnixStream> {
        let request = Request { watch: true, ..Request::default() };
        if let Some((stream, ..)) = self.request(request)? {
            return Ok(stream);
        }
        closed()
    }

    /// Like [`connect`](Self::connect), but with a message whenever there is more output. [`Following`] parses the
    /// messages.
    pub fn follow(&self) -> Result<(UnixStream, Following)> {
        let request = Request { watch: true, follow: true, ..Request::default() };
        match self.request(request)? {
            Some((stream, Answer::State { printed, .. }, heard)) => {
                let mut following = Following { printed, heard: Vec::new() };
                following.hear(&heard);
                Ok((stream, following))
            }
            _ => {
                let printed = self.status()?.map_or(0, |status| status.printed);
                Ok((closed()?, Following { printed, heard: Vec::new() }))
            }
        }
    }

    /// Becomes the owner of a relayed command ([`crate::Spec::relay`]): a connection that carries its standard input and
    /// output, and the bytes that it has already printed. The command ends within 10 s after the connection is closed.
    /// `None` if the command has ended.
    pub fn relay(&self) -> Result<Option<(UnixStream, Vec<u8>)>> {
        let request = Request { relay: true, ..Request::default() };
        Ok(self.request(request)?.map(|(stream, _, heard)| (stream, heard)))
    }

    /// Kills the command and everything that it has started, and returns when they are dead. A command that has
    /// already ended keeps its status, and its orphans are killed.
    ///
    /// A stopped keeper is continued. A keeper that does not answer, or whose token is gone, gets SIGTERM, and then
    /// kills its command. If that does not help, it gets SIGKILL, and the orphans of the command are killed.
    pub fn kill(&self) -> Result<()> {
        liveness::continue_if_stopped(&self.folder);
        let request = Request { kill: true, ..Request::default() };
        match self.request(request) {
            Ok(_) => Ok(()),
            Err(trouble) => self.kill_by_signal(trouble),
        }
    }

    /// The status, if the command has ended. A keeper that was killed leaves none: then ask [`crate::Tasks::find`].
    pub fn status(&self) -> Result<Option<Status>> {
        read_status(&self.folder)
    }

    /// When it was started, according to its folder.
    pub fn started_at(&self) -> Result<Option<At>> {
        self.folder.changed_at(name::SPAWNING)
    }

    /// Bytes printed so far.
    pub fn printed(&self) -> Result<u64> {
        if self.status()?.is_none() {
            let request = Request { watch: true, ..Request::default() };
            if let Some((_, Answer::State { printed, .. }, _)) = self.request(request)? {
                return Ok(printed);
            }
        }
        Ok(self.status()?.map_or(0, |status| status.printed))
    }

    /// Ends a keeper that does not answer and its command, with signals.
    fn kill_by_signal(&self, trouble: Error) -> Result<()> {
        // Without this file, the keeper records that no client asked for the kill.
        let _ = self.folder.write(name::ASKED, b"");
        for (signal, timeout) in [(Signal::TERM, KILL_CONFIRMATION_TIMEOUT), (Signal::KILL, ANSWER_TIMEOUT)] {
            let Some(keeper) = liveness::find_keeper(&self.folder) else { break };
            process_table::send(&keeper, signal);
            process_table::send(&keeper, Signal::CONT);
            let since = Instant::now();
            while liveness::is_alive(&self.folder)? && since.elapsed() < timeout {
                std::thread::sleep(POLL_INTERVAL);
            }
            if !liveness::is_alive(&self.folder)? {
                break;
            }
        }
        if liveness::is_alive(&self.folder)? {
            return Err(trouble);
        }
        if known_status(&self.folder)?.is_none() {
            orphan_cleanup::kill_orphans(self.id, liveness::recorded_processes(&self.folder));
        }
        Ok(())
    }

    /// Whether the command has ended, or its keeper.
    fn is_over(&self) -> Result<bool> {
        Ok(known_status(&self.folder)?.is_some() || !liveness::is_alive(&self.folder)?)
    }

    /// Sends a request until there is an answer, because a keeper with too many connections may drop one unread.
    /// Returns the answer and the bytes after it. `None` if the command or its keeper has ended.
    fn request(&self, request: Request) -> Result<Option<(UnixStream, Answer, Vec<u8>)>> {
        let (reaching, timeout) = if request.kill {
            (CONNECT_TIMEOUT_BEFORE_KILL, KILL_CONFIRMATION_TIMEOUT)
        } else {
            (ANSWER_TIMEOUT, ANSWER_TIMEOUT)
        };
        let since = Instant::now();
        loop {
            let Some(stream) = self.connect_and_greet(reaching)? else { return Ok(None) };
            if let Some((answer, heard)) = self.ask(&stream, request, timeout)? {
                return Ok(Some((stream, answer, heard)));
            }
            // A kill also concerns the orphans, and the keeper stays for them.
            let is_over = if request.kill { !liveness::is_alive(&self.folder)? } else { self.is_over()? };
            if is_over {
                return Ok(None);
            }
            if since.elapsed() > timeout {
                return Err(Error::NotAnswering { id: self.id });
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// An authenticated connection. `None` if no keeper is alive.
    fn connect_and_greet(&self, timeout: Duration) -> Result<Option<UnixStream>> {
        let Some(stream) = self.open_connection(timeout)? else { return Ok(None) };
        let token = self.folder.token(self.token_file()?)?;
        match (&stream).write_all(&line(&Greeting { token })) {
            Err(error) if !is_gone(&error) => {
                Err(Error::io(format!("talking to the supervisor of task {}", self.id))(error))
            }
            // A lost connection is noticed with the request.
            _ => Ok(Some(stream)),
        }
    }

    /// A connection to the keeper. `None` if none is alive.
    fn open_connection(&self, timeout: Duration) -> Result<Option<UnixStream>> {
        let since = Instant::now();
        loop {
            match liveness::connect_keeper(&self.folder)? {
                KeeperConnection::Open(stream) => return Ok(Some(stream)),
                KeeperConnection::Busy => {}
                // The socket is not bound yet, or already closed. The lock tells which.
                KeeperConnection::Absent if !liveness::is_alive(&self.folder)? => return Ok(None),
                KeeperConnection::Absent => {}
            }
            if since.elapsed() > timeout {
                return Err(Error::NotAnswering { id: self.id });
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn token_file(&self) -> Result<&str> {
        self.token_file.as_deref().ok_or_else(|| Error::Damaged {
            file: self.folder.title(name::SPEC),
            reason: "the token file is not named".to_owned(),
        })
    }

    /// The answer to a request, and the bytes after it. `None` if the keeper ended instead.
    fn ask(
        &self,
        stream: &UnixStream,
        request: Request,
        timeout: Duration,
    ) -> Result<Option<(Answer, Vec<u8>)>> {
        let said = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Error::NotAnswering { id: self.id },
            _ => Error::io(format!("talking to the supervisor of task {}", self.id))(error),
        };
        stream.set_read_timeout(Some(timeout)).map_err(said)?;
        match (&*stream).write_all(&line(&request)) {
            // A keeper that closed the connection may have sent the reason first.
            Err(error) if !is_gone(&error) => return Err(said(error)),
            _ => {}
        }
        let mut lines = BufReader::new(stream.take(MAX_ANSWER_BYTES));
        let answer = loop {
            let mut answer = Vec::new();
            match lines.read_until(b'\n', &mut answer) {
                Ok(0) => break None,
                Err(error) if is_gone(&error) => break None,
                Err(error) => return Err(said(error)),
                // An unknown line comes from a newer keeper, and is ignored.
                Ok(_) => match serde_json::from_slice(&answer) {
                    Ok(Answer::Refused { .. }) => {
                        let token_file = self.token_file()?.to_owned();
                        return Err(Error::Refused { id: self.id, token_file });
                    }
                    Ok(answer @ Answer::Killed { .. }) if request.kill => break Some(answer),
                    Ok(answer @ Answer::State { .. }) if request.watch => break Some(answer),
                    Ok(answer @ Answer::Relayed { .. }) if request.relay => break Some(answer),
                    _ => {}
                },
            }
        };
        stream.set_read_timeout(None).map_err(said)?;
        Ok(answer.map(|answer| (answer, lines.buffer().to_vec())))
    }
}

/// Parses a keeper's messages about new output.
#[derive(Debug)]
pub struct Following {
    printed: u64,
    /// An incomplete line.
    heard: Vec<u8>,
}

impl Following {
    /// Bytes printed, according to the last message.
    pub fn printed(&self) -> u64 {
        self.printed
    }

    /// Takes bytes from the connection, in chunks of any length. Unknown lines are ignored.
    pub fn hear(&mut self, bytes: &[u8]) {
        self.heard.extend_from_slice(bytes);
        while let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
            let rest = self.heard.split_off(end + 1);
            let line = std::mem::replace(&mut self.heard, rest);
            if let Ok(Answer::Printed { printed } | Answer::State { printed, .. }) =
                serde_json::from_slice(&line)
            {
                self.printed = printed;
            }
        }
        // No keeper sends such a long line.
        if self.heard.len() > MAX_LINE_BYTES {
            self.heard.clear();
        }
    }
}

/// A connection that is closed from the start.
fn closed() -> Result<UnixStream> {
    let (ours, _closed) = UnixStream::pair().map_err(Error::io("making a connection"))?;
    Ok(ours)
}

pub(crate) fn read_status(folder: &Folder) -> Result<Option<Status>> {
    let bytes = folder.read(name::STATUS)?;
    bytes.map(|bytes| decode(&folder.title(name::STATUS), &bytes)).transpose()
}

/// The status; `None` if there is none or it is damaged.
pub(crate) fn known_status(folder: &Folder) -> Result<Option<Status>> {
    match read_status(folder) {
        Err(Error::Damaged { .. }) => Ok(None),
        other => other,
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}
