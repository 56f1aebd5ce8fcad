//! The output pump: moves the command's output from its pipe to its files, with `splice` where the file system allows it.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

use crate::folder::{Folder, name};
use crate::format::Spec;
use crate::tail::Tail;
use crate::{Error, Result};

/// The size of the pipe: the most that an ordinary user may request, so that the command rarely waits.
const PIPE_BYTES: usize = 1 << 20;
/// The buffer for a file system without `splice`.
const BUFFER_BYTES: usize = 64 << 10;
/// Moves before the supervisor checks everything else again.
const MAX_MOVES: usize = 16;

/// The state of the pipe after some moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PumpState {
    More,
    /// Empty for now.
    Empty,
    /// Every writer has closed its end.
    Closed,
}

#[derive(Debug)]
pub(crate) struct OutputPump {
    /// `None` once the keeper has stopped reading.
    pipe: Option<File>,
    mode: CopyMode,
    head: File,
    tail_file: Option<File>,
    tail: Tail,
    /// Bytes written to the head.
    head_written: u64,
    printed: u64,
    ended: bool,
}

/// How bytes get from the pipe to a file.
#[derive(Debug)]
enum CopyMode {
    Splice,
    /// Read and write, for a file system without `splice`.
    ReadWrite(Vec<u8>),
    /// Count and discard, because storing them failed for this reason.
    Discard(Vec<u8>, String),
}

impl OutputPump {
    /// Returns the pump, and the end of the pipe for the command.
    pub(crate) fn start(folder: &Folder, spec: &Spec) -> Result<(Self, OwnedFd)> {
        let said = || Error::io("making a pipe for the command's output");
        let (pipe, output) = pipe_with(PipeFlags::CLOEXEC).map_err(said())?;
        // Only the keeper's end is non-blocking. The command's end is a separate file description.
        fcntl_getfl(&pipe).and_then(|flags| fcntl_setfl(&pipe, flags | OFlags::NONBLOCK)).map_err(said())?;
        // The system refuses this if the user has many large pipes. A small pipe is only slower.
        let _ = fcntl_setpipe_size(&pipe, PIPE_BYTES);
        let head = folder.make(name::HEAD).map_err(Error::io("making the file for the command's output"))?;
        let pump = Self {
            pipe: Some(pipe.into()),
            mode: CopyMode::Splice,
            head,
            tail_file: None,
            tail: Tail::for_cap(spec.output_cap),
            head_written: 0,
            printed: 0,
            ended: false,
        };
        Ok((pump, output))
    }

    /// The handle to poll. `None` if no more output can come.
    pub(crate) fn handle(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().filter(|_| !self.ended).map(AsFd::as_fd)
    }

    pub(crate) fn printed(&self) -> u64 {
        self.printed
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Why not all output was stored.
    pub(crate) fn trouble(&self) -> Option<String> {
        match &self.mode {
            CopyMode::Discard(_, reason) => Some(format!("could not save all of the output: {reason}")),
            CopyMode::Splice | CopyMode::ReadWrite(_) => None,
        }
    }

    /// Moves what is in the pipe, up to a limit.
    pub(crate) fn pump(&mut self, folder: &Folder) -> PumpState {
        for _ in 0..MAX_MOVES {
            match self.move_once(folder) {
                Ok(0) => {
                    self.ended = true;
                    return PumpState::Closed;
                }
                Ok(count) => self.printed += count,
                Err(Errno::AGAIN) => return PumpState::Empty,
                Err(Errno::INTR) => {}
                Err(Errno::INVAL) if matches!(self.mode, CopyMode::Splice) => {
                    self.mode = CopyMode::ReadWrite(vec![0; BUFFER_BYTES]);
                }
                Err(error) => self.discard_output(error),
            }
        }
        PumpState::More
    }

    /// Moves what is left in the pipe, and at most the size of the pipe of what arrives meanwhile.
    pub(crate) fn drain(&mut self, folder: &Folder) {
        let stop = self.printed + PIPE_BYTES as u64;
        while !self.ended && self.printed < stop && self.pump(folder) == PumpState::More {}
    }

    /// Ends the output and releases the tail's reservation. The file keeps the time of the last output.
    pub(crate) fn close(&mut self) {
        // An orphan that prints from now on gets SIGPIPE, instead of blocking forever on a full pipe.
        self.pipe = None;
        if let Some(file) = &self.tail_file {
            let printed_at = file.metadata().and_then(|metadata| metadata.modified());
            self.tail.reserved = self.tail.written;
            let _ = self.tail.store(file);
            if let Ok(printed_at) = printed_at {
                let _ = file.set_modified(printed_at);
            }
        }
    }

    fn discard_output(&mut self, error: Errno) {
        self.mode = CopyMode::Discard(vec![0; BUFFER_BYTES], io::Error::from(error).to_string());
    }

    fn move_once(&mut self, folder: &Folder) -> std::result::Result<u64, Errno> {
        let Some(pipe) = &self.pipe else { return Ok(0) };
        if let CopyMode::Discard(buffer, _) = &mut self.mode {
            return { pipe }.read(buffer).map(|count| count as u64).map_err(errno);
        }
        if self.head_written < self.tail.begins {
            let room = self.tail.begins - self.head_written;
            let count = move_bytes(pipe, &mut self.mode, &self.head, self.head_written, room)?;
            self.head_written += count;
            return Ok(count);
        }
        let tail_file = match &self.tail_file {
            Some(file) => file,
            None => {
                self.tail.reserve();
                let file = folder.make(name::TAIL).map_err(errno)?;
                self.tail.store(&file).map_err(errno)?;
                self.tail_file.insert(file)
            }
        };
        let (place, room) = self.tail.room();
        let count = move_bytes(pipe, &mut self.mode, tail_file, place, room)?;
        if count == 0 {
            // The pipe was closed.
            return Ok(0);
        }
        self.tail.written += count;
        // One write of the header stores what was written and reserves what comes next.
        self.tail.reserve();
        self.tail.store(tail_file).map_err(errno)?;
        Ok(count)
    }
}

/// Moves up to `room` bytes to a place in a file; 0 if the pipe was closed.
fn move_bytes(
    pipe: &File,
    mode: &mut CopyMode,
    file: &File,
    place: u64,
    room: u64,
) -> std::result::Result<u64, Errno> {
    let most = usize::try_from(room).unwrap_or(usize::MAX).min(PIPE_BYTES);
    match mode {
        CopyMode::Splice => {
            let mut place = place;
            let count =
                splice(pipe, None, file, Some(&mut place), most, SpliceFlags::MOVE | SpliceFlags::NONBLOCK)?;
            Ok(count as u64)
        }
        CopyMode::ReadWrite(buffer) | CopyMode::Discard(buffer, _) => {
            let most = most.min(buffer.len());
            let mut pipe = pipe;
            let count = pipe.read(&mut buffer[..most]).map_err(errno)?;
            file.write_all_at(&buffer[..count], place).map_err(errno)?;
            Ok(count as u64)
        }
    }
}

#[allow(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
