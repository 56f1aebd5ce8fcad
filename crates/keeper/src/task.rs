//! A task as the runtime sees it: its keeper, reached through its socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use longhaul_protocol::TaskId;

use crate::folder::{Folder, name};
use crate::format::{Answer, Greeting, Request, decode, line};
use crate::{Error, Result, Status};

/// A keeper answers in milliseconds; one that doesn't within this is stopped, or its machine is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// Ending a command takes up to 2 s of asking and 5 s of insisting.
const PATIENCE_WITH_ENDING: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(2);
/// No keeper says more than this to one question.
const LONGEST_ANSWER: u64 = 64 << 10;

/// A command that was started, and perhaps has ended since.
#[derive(Debug)]
pub struct Task {
    id: TaskId,
    folder: Folder,
    token_file: String,
}

impl Task {
    pub(crate) fn new(id: TaskId, folder: Folder, token_file: String) -> Self {
        Self { id, folder, token_file }
    }

    /// Its id.
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// A connection to the keeper whose closing is the news that the command has ended: its status is readable from then
    /// on. If it has ended already, the connection is closed from the start. Nothing need be read from it but its end.
    pub fn connect(&self) -> Result<UnixStream> {
        let ended = || {
            let (ours, _closed) = UnixStream::pair().map_err(Error::io("making a connection"))?;
            Ok(ours)
        };
        let Some(stream) = self.greet()? else { return ended() };
        let request = Request { watch: true, ..Request::default() };
        match self.ask(&stream, request, PATIENCE)? {
            Some(_) => Ok(stream),
            None => ended(),
        }
    }

    /// Ends the command and everything that it has started, and returns when that is done. A command that has ended
    /// already is left as it is; [`Task::status`] tells which.
    pub fn kill(&self) -> Result<()> {
        let Some(stream) = self.greet()? else { return Ok(()) };
        let request = Request { kill: true, ..Request::default() };
        self.ask(&stream, request, PATIENCE_WITH_ENDING)?;
        Ok(())
    }

    /// How it ended, if it has. A keeper that was killed leaves no status: ask [`crate::Tasks::find`] what became of it.
    pub fn status(&self) -> Result<Option<Status>> {
        read_status(&self.folder)
    }

    /// How many bytes it has printed so far.
    pub fn printed(&self) -> Result<u64> {
        if self.status()?.is_none()
            && let Some(stream) = self.greet()?
        {
            let request = Request { watch: true, ..Request::default() };
            if let Some(Answer::State { printed, .. }) = self.ask(&stream, request, PATIENCE)? {
                return Ok(printed);
            }
        }
        Ok(self.status()?.map_or(0, |status| status.printed))
    }

    /// A connection on which the token was said. `None` if no keeper lives any more.
    fn greet(&self) -> Result<Option<UnixStream>> {
        let Some(stream) = reach(self.id, &self.folder)? else { return Ok(None) };
        let token = self.folder.token(&self.token_file)?;
        match (&stream).write_all(&line(&Greeting { token })) {
            Ok(()) => Ok(Some(stream)),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(Error::io(format!("talking to the keeper of {}", self.id))(error)),
        }
    }

    /// The answer to a request; `None` if the keeper ended instead.
    fn ask(&self, stream: &UnixStream, request: Request, patience: Duration) -> Result<Option<Answer>> {
        let said = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Error::NotAnswering { id: self.id },
            _ => Error::io(format!("talking to the keeper of {}", self.id))(error),
        };
        stream.set_read_timeout(Some(patience)).map_err(said)?;
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
                        return Err(Error::Refused { id: self.id, token_file: self.token_file.clone() });
                    }
                    Ok(answer @ Answer::Killed { .. }) if request.kill => break Some(answer),
                    Ok(answer @ Answer::State { .. }) if request.watch => break Some(answer),
                    _ => {}
                },
            }
        };
        stream.set_read_timeout(None).map_err(said)?;
        Ok(answer)
    }
}

/// A connection to the keeper that has this folder; `None` if none lives.
pub(crate) fn reach(id: TaskId, folder: &Folder) -> Result<Option<UnixStream>> {
    let socket = folder.short_path().join(name::SOCKET);
    let since = Instant::now();
    loop {
        match UnixStream::connect(&socket) {
            Ok(stream) => return Ok(Some(stream)),
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {}
            Err(error) => return Err(Error::io(format!("reaching the keeper of {id}"))(error)),
        }
        // Not bound yet, or closed already. The lock says which.
        if folder.try_lock()?.is_some() {
            return Ok(None);
        }
        if since.elapsed() > PATIENCE {
            return Err(Error::NotAnswering { id });
        }
        std::thread::sleep(PAUSE);
    }
}

pub(crate) fn read_status(folder: &Folder) -> Result<Option<Status>> {
    let bytes = folder.read(name::STATUS)?;
    bytes.map(|bytes| decode(&folder.title(name::STATUS), &bytes)).transpose()
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}
