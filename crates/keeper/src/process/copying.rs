//! From the command's pipe to its files, without passing through this process where the system can do that.

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

/// As much as a user may ask for; the command rarely has to wait for us then.
const PIPE: usize = 1 << 20;
/// Used only where the system can't move bytes by itself.
const BUFFER: usize = 64 << 10;
/// After so many moves the loop looks at everything else again.
const MOVES: usize = 16;

/// How far the pipe has been emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// There is more to be moved at once.
    More,
    /// It is empty for now.
    Nothing,
    /// It is empty for ever: nobody has its other end open any more.
    End,
}

/// The way of the output.
#[derive(Debug)]
pub(crate) struct Copying {
    /// Until nothing more is taken from it.
    pipe: Option<File>,
    way: Way,
    head: File,
    tail_file: Option<File>,
    tail: Tail,
    /// How much of the head is written.
    head_written: u64,
    printed: u64,
    ended: bool,
}

/// How bytes get from the pipe to a file.
#[derive(Debug)]
enum Way {
    /// The system moves them.
    Spliced,
    /// This process does, on a file system that can't.
    Read(Vec<u8>),
    /// They are counted and thrown away, since they can't be stored, for this reason.
    Thrown(Vec<u8>, String),
}

impl Copying {
    /// The end of the pipe to give to the command comes along.
    pub(crate) fn begin(folder: &Folder, spec: &Spec) -> Result<(Self, OwnedFd)> {
        let said = || Error::io("making a pipe for the command's output");
        let (pipe, output) = pipe_with(PipeFlags::CLOEXEC).map_err(said())?;
        // Only our end must not block; the command's is an open file of its own.
        fcntl_getfl(&pipe).and_then(|flags| fcntl_setfl(&pipe, flags | OFlags::NONBLOCK)).map_err(said())?;
        // Refused where the user has many large pipes; a small one is slower, that is all.
        let _ = fcntl_setpipe_size(&pipe, PIPE);
        let head = folder.make(name::HEAD).map_err(Error::io("making the file for the command's output"))?;
        let copying = Self {
            pipe: Some(pipe.into()),
            way: Way::Spliced,
            head,
            tail_file: None,
            tail: Tail::for_cap(spec.output_cap),
            head_written: 0,
            printed: 0,
            ended: false,
        };
        Ok((copying, output))
    }

    /// What to wait for, if there is more to come.
    pub(crate) fn handle(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().filter(|_| !self.ended).map(AsFd::as_fd)
    }

    pub(crate) fn printed(&self) -> u64 {
        self.printed
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Why not everything that was printed is kept, if it isn't.
    pub(crate) fn trouble(&self) -> Option<String> {
        match &self.way {
            Way::Thrown(_, reason) => Some(format!("not all of the output could be stored ({reason})")),
            Way::Spliced | Way::Read(_) => None,
        }
    }

    /// Moves what is there, up to a limit.
    pub(crate) fn copy(&mut self, folder: &Folder) -> Left {
        for _ in 0..MOVES {
            match self.copy_once(folder) {
                Ok(0) => {
                    self.ended = true;
                    return Left::End;
                }
                Ok(count) => self.printed += count,
                Err(Errno::AGAIN) => return Left::Nothing,
                Err(Errno::INTR) => {}
                Err(Errno::INVAL) if matches!(self.way, Way::Spliced) => {
                    self.way = Way::Read(vec![0; BUFFER]);
                }
                Err(error) => self.throw_away(error),
            }
        }
        Left::More
    }

    /// Moves what is in the pipe now, and what comes meanwhile only up to the size of the pipe.
    pub(crate) fn copy_rest(&mut self, folder: &Folder) {
        let stop = self.printed + PIPE as u64;
        while !self.ended && self.printed < stop && self.copy(folder) == Left::More {}
    }

    /// Nothing more will come: what was set apart for it is given back to what was printed. The file's time is that of the last
    /// output, and stays so.
    pub(crate) fn close(&mut self) {
        // Whoever prints now learns that nobody hears it, and does not wait for room for ever.
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

    fn throw_away(&mut self, error: Errno) {
        self.way = Way::Thrown(vec![0; BUFFER], io::Error::from(error).to_string());
    }

    fn copy_once(&mut self, folder: &Folder) -> std::result::Result<u64, Errno> {
        let Some(pipe) = &self.pipe else { return Ok(0) };
        if let Way::Thrown(buffer, _) = &mut self.way {
            return { pipe }.read(buffer).map(|count| count as u64).map_err(errno);
        }
        if self.head_written < self.tail.begins {
            let room = self.tail.begins - self.head_written;
            let count = move_bytes(pipe, &mut self.way, &self.head, self.head_written, room)?;
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
        let count = move_bytes(pipe, &mut self.way, tail_file, place, room)?;
        if count == 0 {
            // That the pipe has ended is no output.
            return Ok(0);
        }
        self.tail.written += count;
        // What comes next is reserved in the same stroke that says what was written.
        self.tail.reserve();
        self.tail.store(tail_file).map_err(errno)?;
        Ok(count)
    }
}

/// Moves up to `room` bytes to a place in a file; 0 says that the pipe has ended.
fn move_bytes(
    pipe: &File,
    way: &mut Way,
    file: &File,
    place: u64,
    room: u64,
) -> std::result::Result<u64, Errno> {
    let most = usize::try_from(room).unwrap_or(usize::MAX).min(PIPE);
    match way {
        Way::Spliced => {
            let mut place = place;
            let count =
                splice(pipe, None, file, Some(&mut place), most, SpliceFlags::MOVE | SpliceFlags::NONBLOCK)?;
            Ok(count as u64)
        }
        Way::Read(buffer) | Way::Thrown(buffer, _) => {
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
