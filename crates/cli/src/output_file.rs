//! Files that the program writes whole because the user named them: exports, reports.
//!
//! The agent can write in the work folder, so it can put a link where the user is about to write. A link is replaced and never followed. Devices
//! and pipes that the user names are written to.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use longhaul_journal::{Error, ReplacingFile};
use longhaul_protocol::PrintablePath;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use crate::bad_usage;

/// How long to wait for the reader of a pipe, and how often to check: the system does not announce one.
const PIPE_READER_TIMEOUT: Duration = Duration::from_secs(5);
const PIPE_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A file that replaces the old one when it is finished, or a device or pipe that is written directly.
pub(crate) enum OutputFile {
    Whole(BufWriter<ReplacingFile>),
    Stream(BufWriter<File>),
}

impl OutputFile {
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        let in_words = || path.printable().to_string();
        // `/dev/stdout` and the like are links that only the caller controls.
        if is_own_output(path) {
            let stream = OpenOptions::new().append(true).open(path).with_context(in_words)?;
            return Ok(Self::Stream(BufWriter::new(stream)));
        }
        if path.is_dir() {
            return Err(bad_usage(format!("{} is a folder, not a file", path.printable())));
        }
        match path.symlink_metadata() {
            Ok(there) if !there.is_file() && !there.is_symlink() => {
                Ok(Self::Stream(BufWriter::new(open_stream(path).with_context(in_words)?)))
            }
            _ => Ok(Self::Whole(BufWriter::new(ReplacingFile::create(path)?))),
        }
    }

    /// Makes the file durable and moves it to its path.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Whole(file) => Ok(file.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?),
            Self::Stream(mut stream) => Ok(stream.flush()?),
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Whole(file) => file.write(bytes),
            Self::Stream(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Whole(file) => file.flush(),
            Self::Stream(stream) => stream.flush(),
        }
    }
}

/// Opens a device, or a pipe with a reader. The wait is bounded: the agent could have put a pipe there that never gets one.
fn open_stream(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let since = Instant::now();
    let stream = loop {
        match OpenOptions::new().write(true).custom_flags(flags).open(path) {
            Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
                if since.elapsed() > PIPE_READER_TIMEOUT {
                    return Err(io::Error::other("it is a pipe without a reader"));
                }
                thread::sleep(PIPE_POLL_INTERVAL);
            }
            opened => break opened?,
        }
    };
    fcntl_setfl(&stream, fcntl_getfl(&stream)? - OFlags::NONBLOCK)?;
    Ok(stream)
}

/// The path of a file that the user named, with the links of its folder resolved. Refuses the home, and a folder behind a link that the agent
/// could have made: one in the current folder or in the session's work folder. A link at the path itself is not resolved: it is replaced.
pub(crate) fn destination(home: &Path, work_dir: Option<&str>, file: &Path) -> anyhow::Result<PathBuf> {
    if is_own_output(file) {
        return Ok(file.to_owned());
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let missing = || Error::NoFolder { path: folder.to_owned() };
    let real_folder = folder.canonicalize().map_err(|_| missing())?;
    let agent_folders: Vec<PathBuf> =
        std::env::current_dir().into_iter().chain(work_dir.map(PathBuf::from)).collect();
    if let Some(link) = linked_folder(folder, &agent_folders) {
        let (link, leads_to) = (link.printable(), real_folder.printable());
        return Err(bad_usage(format!(
            "{link} is a symbolic link in a folder that the agent can write; use {leads_to} instead"
        )));
    }
    let path = match file.file_name() {
        Some(name) => real_folder.join(name),
        None => file.canonicalize().map_err(|_| missing())?,
    };
    let is_in_home = |path: &Path| home.canonicalize().is_ok_and(|home| path.starts_with(home));
    if is_in_home(&path) || file.canonicalize().is_ok_and(|real| is_in_home(&real)) {
        let refused = format!("{} is in the longhaul home; choose another place", file.printable());
        return Err(bad_usage(refused));
    }
    Ok(path)
}

/// The first link on the way to `folder` that lies in one of `folders`.
fn linked_folder<'a>(folder: &'a Path, folders: &[PathBuf]) -> Option<&'a Path> {
    let folders: Vec<PathBuf> = folders.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
    let is_within = |link: &Path| {
        let parent = link.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        parent.canonicalize().is_ok_and(|parent| folders.iter().any(|folder| parent.starts_with(folder)))
    };
    let links: Vec<&Path> = folder.ancestors().filter(|above| above.is_symlink()).collect();
    links.into_iter().rev().find(|link| is_within(link))
}

/// Whether a path names an open file of this process, such as `/dev/stdout`.
fn is_own_output(path: &Path) -> bool {
    let number =
        ["/dev/fd", "/proc/self/fd"].iter().find_map(|folder| path.strip_prefix(folder).ok()?.to_str());
    let is_number = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    path == Path::new("/dev/stdout") || path == Path::new("/dev/stderr") || number.is_some_and(is_number)
}

#[cfg(test)]
#[path = "output_file_tests.rs"]
mod tests;
