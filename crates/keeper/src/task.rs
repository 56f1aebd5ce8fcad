//! A task as the runtime sees it: its keeper, reached through its socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use longhaul_protocol::{At, TaskId};
use rustix::process::Signal;

use crate::folder::{Folder, name};
use crate::format::{Answer, Greeting, Request, decode, line};
use crate::holder::{self, Reached};
use crate::{Error, Result, Status, process_table, strays};

/// A keeper answers in milliseconds; one that doesn't within this is stopped, or its machine is.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Ending a command takes up to 2 s of asking and 5 s of insisting.
const KILL_CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(10);
/// Whoever wants a command to end does not wait for a keeper to be reached: there are other ways.
const CONNECT_TIMEOUT_BEFORE_KILL: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_millis(2);
/// No keeper says more than this to one question.
const LONGEST_ANSWER: u64 = 64 << 10;
const LONGEST_LINE: usize = 4096;

/// A command that was started, and perhaps has ended since.
#[derive(Debug)]
pub struct Task {
    id: TaskId,
    folder: Folder,
    /// Absent where the spec can't be read: then the keeper can't be talked to, and only told to end.
    token_file: Option<String>,
}

impl Task {
    pub(crate) fn new(id: TaskId, folder: Folder, token_file: Option<String>) -> Self {
        Self { id, folder, token_file }
    }

    /// Its id.
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// A connection to the keeper whose closing is the news that the command has ended: its status is readable from then
    /// on. If it has ended already, the connection is closed from the start. Nothing need be read from it but its end.
    ///
    /// A keeper with too many connections closes the oldest, so whoever finds no status then connects again.
    pub fn connect(&self) -> Result<UnixStream> {
        let request = Request { watch: true, ..Request::default() };
        if let Some((stream, ..)) = self.talk(request)? {
            return Ok(stream);
        }
        closed()
    }

    /// The same, and the keeper also says when there is more output: [`Following`] understands it.
    pub fn follow(&self) -> Result<(UnixStream, Following)> {
        let request = Request { watch: true, follow: true, ..Request::default() };
        match self.talk(request)? {
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

    /// Ends the command and everything that it has started, and returns when that is done. A command that has ended already
    /// keeps its status ([`Task::status`] tells which), and what it has left behind is ended.
    ///
    /// A keeper that was stopped is let go on. One that can't be talked to (its token is gone, it does not answer) is sent
    /// SIGTERM, on which it ends its command, too; if that doesn't help, it is killed, and what is left of the command then.
    pub fn kill(&self) -> Result<()> {
        holder::wake(&self.folder);
        let request = Request { kill: true, ..Request::default() };
        match self.talk(request) {
            Ok(_) => Ok(()),
            Err(trouble) => self.force(trouble),
        }
    }

    /// How it ended, if it has. A keeper that was killed leaves no status: ask [`crate::Tasks::find`] what became of it.
    pub fn status(&self) -> Result<Option<Status>> {
        read_status(&self.folder)
    }

    /// When its start began, as the folder has it: a runtime that finds it later counts from there.
    pub fn started_at(&self) -> Result<Option<At>> {
        self.folder.changed_at(name::SPAWNING)
    }

    /// How many bytes it has printed so far.
    pub fn printed(&self) -> Result<u64> {
        if self.status()?.is_none() {
            let request = Request { watch: true, ..Request::default() };
            if let Some((_, Answer::State { printed, .. }, _)) = self.talk(request)? {
                return Ok(printed);
            }
        }
        Ok(self.status()?.map_or(0, |status| status.printed))
    }

    /// Ends the keeper that can't be talked to, and with it the command.
    fn force(&self, trouble: Error) -> Result<()> {
        // If it can't be written, the end looks like one that nobody asked for.
        let _ = self.folder.write(name::ASKED, b"");
        for (signal, timeout) in [(Signal::TERM, KILL_CONFIRMATION_TIMEOUT), (Signal::KILL, ANSWER_TIMEOUT)] {
            let Some(keeper) = holder::living(&self.folder) else { break };
            process_table::send(&keeper, signal);
            process_table::send(&keeper, Signal::CONT);
            let since = Instant::now();
            while holder::lives(&self.folder)? && since.elapsed() < timeout {
                std::thread::sleep(PAUSE);
            }
            if !holder::lives(&self.folder)? {
                break;
            }
        }
        if holder::lives(&self.folder)? {
            return Err(trouble);
        }
        if known_status(&self.folder)?.is_none() {
            strays::end(self.id, holder::recorded(&self.folder));
        }
        Ok(())
    }

    /// Whether the command has ended, or its keeper.
    fn is_over(&self) -> Result<bool> {
        Ok(known_status(&self.folder)?.is_some() || !holder::lives(&self.folder)?)
    }

    /// Asks until there is an answer; `None` if the command has ended, or its keeper. A keeper with too many connections may
    /// drop one that it has not heard yet. What it said besides comes along.
    fn talk(&self, request: Request) -> Result<Option<(UnixStream, Answer, Vec<u8>)>> {
        let (reaching, timeout) = if request.kill {
            (CONNECT_TIMEOUT_BEFORE_KILL, KILL_CONFIRMATION_TIMEOUT)
        } else {
            (ANSWER_TIMEOUT, ANSWER_TIMEOUT)
        };
        let since = Instant::now();
        loop {
            let Some(stream) = self.greet(reaching)? else { return Ok(None) };
            if let Some((answer, heard)) = self.ask(&stream, request, timeout)? {
                return Ok(Some((stream, answer, heard)));
            }
            // To end a command is to end what it has left behind as well, for which its keeper stays.
            let is_over = if request.kill { !holder::lives(&self.folder)? } else { self.is_over()? };
            if is_over {
                return Ok(None);
            }
            if since.elapsed() > timeout {
                return Err(Error::NotAnswering { id: self.id });
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// A connection on which the token was said. `None` if no keeper lives any more.
    fn greet(&self, timeout: Duration) -> Result<Option<UnixStream>> {
        let Some(stream) = self.reach(timeout)? else { return Ok(None) };
        let token = self.folder.token(self.token_file()?)?;
        match (&stream).write_all(&line(&Greeting { token })) {
            Err(error) if !is_gone(&error) => {
                Err(Error::io(format!("talking to the keeper of {}", self.id))(error))
            }
            // One that is gone is noticed when it is asked.
            _ => Ok(Some(stream)),
        }
    }

    /// A connection to the keeper that has this folder; `None` if none lives.
    fn reach(&self, timeout: Duration) -> Result<Option<UnixStream>> {
        let since = Instant::now();
        loop {
            match holder::reach(&self.folder)? {
                Reached::Open(stream) => return Ok(Some(stream)),
                Reached::Busy => {}
                // Not bound yet, or closed already. The lock says which.
                Reached::Nobody if !holder::lives(&self.folder)? => return Ok(None),
                Reached::Nobody => {}
            }
            if since.elapsed() > timeout {
                return Err(Error::NotAnswering { id: self.id });
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn token_file(&self) -> Result<&str> {
        self.token_file.as_deref().ok_or_else(|| Error::Damaged {
            file: self.folder.title(name::SPEC),
            reason: "it does not say where the token is".to_owned(),
        })
    }

    /// The answer to a request, and what was heard beyond it; `None` if the keeper ended instead.
    fn ask(
        &self,
        stream: &UnixStream,
        request: Request,
        timeout: Duration,
    ) -> Result<Option<(Answer, Vec<u8>)>> {
        let said = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Error::NotAnswering { id: self.id },
            _ => Error::io(format!("talking to the keeper of {}", self.id))(error),
        };
        stream.set_read_timeout(Some(timeout)).map_err(said)?;
        match (&*stream).write_all(&line(&request)) {
            // A keeper that closes the connection may have said why before.
            Err(error) if !is_gone(&error) => return Err(said(error)),
            _ => {}
        }
        let mut lines = BufReader::new(stream.take(LONGEST_ANSWER));
        let answer = loop {
            let mut answer = Vec::new();
            match lines.read_until(b'\n', &mut answer) {
                Ok(0) => break None,
                Err(error) if is_gone(&error) => break None,
                Err(error) => return Err(said(error)),
                // What isn't understood is from a newer keeper, and may be passed over.
                Ok(_) => match serde_json::from_slice(&answer) {
                    Ok(Answer::Refused { .. }) => {
                        let token_file = self.token_file()?.to_owned();
                        return Err(Error::Refused { id: self.id, token_file });
                    }
                    Ok(answer @ Answer::Killed { .. }) if request.kill => break Some(answer),
                    Ok(answer @ Answer::State { .. }) if request.watch => break Some(answer),
                    _ => {}
                },
            }
        };
        stream.set_read_timeout(None).map_err(said)?;
        Ok(answer.map(|answer| (answer, lines.buffer().to_vec())))
    }
}

/// What a keeper says of the output, on a connection that follows it.
#[derive(Debug)]
pub struct Following {
    printed: u64,
    /// The beginning of a line.
    heard: Vec<u8>,
}

impl Following {
    /// How many bytes were printed, as far as was heard.
    pub fn printed(&self) -> u64 {
        self.printed
    }

    /// Takes in what was read from the connection, in pieces of any length. What isn't understood is passed over.
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
        // No keeper says anything that long.
        if self.heard.len() > LONGEST_LINE {
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

/// The status, if there is one that can be read. One that is damaged says nothing.
pub(crate) fn known_status(folder: &Folder) -> Result<Option<Status>> {
    match read_status(folder) {
        Err(Error::Damaged { .. }) => Ok(None),
        other => other,
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}
