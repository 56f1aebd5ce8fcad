//! Reads the output of a task from an offset on, and follows it while the task runs.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use longhaul_keeper::{Chunk, Found, Output, Task, Tasks};
use longhaul_protocol::TaskId;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;

use super::output_filter::OutputFilter;
use super::run_blocking;
use crate::{Error, Result};

const READ_BYTES: usize = 64 << 10;
/// Bytes that are also read before the first and after the last offset, because a secret may reach across it.
const REDACTION_MARGIN: u64 = 64 << 10;
/// The pause before a keeper that does not answer is asked again.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// The same for a keeper that closed the connection while its task runs, as it does with too many followers.
const CLOSED_CONNECTION_DELAY: Duration = Duration::from_millis(200);

/// Where the output of a task is.
#[derive(Debug)]
pub enum TaskOutput {
    /// In the keeper's files: all of it, but for a dropped middle.
    Kept(Output),
    /// The files are gone, and the record of the task's end has this.
    Recorded(Vec<u8>),
    /// The same, but only the end of the output.
    RecordedEnd(Vec<u8>),
    /// The files are gone, and nothing was recorded.
    Gone,
}

impl TaskOutput {
    /// The offset after its last byte.
    pub fn printed(&self) -> Result<u64> {
        Ok(match self {
            Self::Kept(output) => output.printed()?,
            Self::Recorded(bytes) | Self::RecordedEnd(bytes) => bytes.len() as u64,
            Self::Gone => 0,
        })
    }

    fn read(&self, offset: u64, limit: usize) -> Result<Chunk> {
        let recorded: &[u8] = match self {
            Self::Kept(output) => return Ok(output.read(offset, limit)?),
            Self::Recorded(bytes) | Self::RecordedEnd(bytes) => bytes,
            Self::Gone => &[],
        };
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(recorded.len());
        let bytes = recorded[from..recorded.len().min(from.saturating_add(limit))].to_vec();
        Ok(Chunk { dropped: None, next: offset + bytes.len() as u64, bytes })
    }
}

/// A part of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputChunk {
    /// What was printed, without secrets.
    Bytes(Vec<u8>),
    /// Bytes that were printed here and not kept.
    Dropped(Range<u64>),
}

/// Reads the output of a task through a filter. It holds no more of it than one chunk.
pub struct OutputReader {
    output: TaskOutput,
    offset: u64,
    filter: OutputFilter,
}

impl OutputReader {
    /// Reads from this offset on.
    pub fn new(output: TaskOutput, offset: u64, mut filter: OutputFilter) -> Result<Self> {
        let mut from = offset.saturating_sub(REDACTION_MARGIN);
        while from < offset {
            let most = usize::try_from(offset - from).unwrap_or(READ_BYTES).min(READ_BYTES);
            let chunk = output.read(from, most)?;
            if chunk.next <= from || chunk.dropped.is_some() {
                break;
            }
            filter.lead_in(&chunk.bytes);
            from = chunk.next;
        }
        Ok(Self { output, offset, filter })
    }

    /// The next chunks before this offset, at most 64 KiB. `None` if nothing more has been printed. An empty list means that
    /// the filter holds the output back, because a secret may begin there.
    pub fn read(&mut self, end: u64) -> Result<Option<Vec<OutputChunk>>> {
        if self.offset >= end {
            return Ok(None);
        }
        let mut chunks = Vec::new();
        let most = usize::try_from(end - self.offset).unwrap_or(READ_BYTES).min(READ_BYTES);
        let chunk = self.output.read(self.offset, most)?;
        if let Some(dropped) = chunk.dropped {
            push_bytes(&mut chunks, self.filter.finish_before_gap());
            chunks.push(OutputChunk::Dropped(dropped.start..dropped.end.min(end)));
            if dropped.end >= end {
                self.offset = end;
                return Ok(Some(chunks));
            }
        }
        if chunk.next == self.offset {
            return Ok(Some(chunks).filter(|chunks| !chunks.is_empty()));
        }
        self.offset = chunk.next;
        push_bytes(&mut chunks, self.filter.push(&chunk.bytes));
        Ok(Some(chunks))
    }

    /// What the filter has held back because a secret might have begun there.
    pub fn finish(mut self) -> Result<Vec<u8>> {
        let margin = usize::try_from(REDACTION_MARGIN).unwrap_or(READ_BYTES);
        let following = self.output.read(self.offset, margin)?;
        Ok(match following.bytes.is_empty() || following.dropped.is_some() {
            true => self.filter.finish(),
            false => self.filter.finish_before(&following.bytes),
        })
    }

    /// Gives every chunk before this offset to `take`, then what the filter has held back.
    pub fn read_through<E: From<Error>>(
        mut self,
        end: u64,
        mut take: impl FnMut(OutputChunk) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        while let Some(chunks) = self.read(end)? {
            chunks.into_iter().try_for_each(&mut take)?;
        }
        match self.finish()? {
            held if held.is_empty() => Ok(()),
            held => take(OutputChunk::Bytes(held)),
        }
    }
}

fn push_bytes(chunks: &mut Vec<OutputChunk>, bytes: Vec<u8>) {
    if !bytes.is_empty() {
        chunks.push(OutputChunk::Bytes(bytes));
    }
}

/// The output of a task, chunk by chunk, as fast as the caller takes it.
pub struct OutputStream {
    /// `None` once all was read.
    reader: Option<OutputReader>,
    end: u64,
    /// The task to wait for; `None` if what there is now is enough, or the task has ended.
    followed: Option<(Arc<Tasks>, TaskId)>,
    connection: Option<UnixStream>,
    was_connected: bool,
}

impl OutputStream {
    /// What has been printed so far, before this offset.
    pub fn new(reader: OutputReader, end: u64) -> Self {
        Self { reader: Some(reader), end, followed: None, connection: None, was_connected: false }
    }

    /// What has been printed and what will be, before this offset, until the task ends. Its keeper says when there is more.
    pub fn following(tasks: &Arc<Tasks>, id: TaskId, reader: OutputReader, end: u64) -> Self {
        Self { followed: Some((Arc::clone(tasks), id)), ..Self::new(reader, end) }
    }

    /// The next chunks, once there are some. `None` at the end. A call that is dropped before it returns ends the stream.
    pub async fn next(&mut self) -> Result<Option<Vec<OutputChunk>>> {
        loop {
            let Some(mut reader) = self.reader.take() else { return Ok(None) };
            let end = self.end;
            let (reader, read) = run_blocking(move || {
                let read = reader.read(end);
                (reader, read)
            })
            .await?;
            match read? {
                Some(chunks) => {
                    self.reader = Some(reader);
                    if !chunks.is_empty() {
                        return Ok(Some(chunks));
                    }
                }
                None if self.followed.is_some() && reader.offset < end => {
                    self.reader = Some(reader);
                    self.wait_for_more().await?;
                }
                None => {
                    let held = run_blocking(move || reader.finish()).await??;
                    return Ok((!held.is_empty()).then(|| vec![OutputChunk::Bytes(held)]));
                }
            }
        }
    }

    /// Waits until there may be more output, or the task has ended.
    async fn wait_for_more(&mut self) -> Result<()> {
        if let Some(stream) = &mut self.connection {
            let mut said = [0; 4096];
            // The keeper writes only when there is more output.
            if !matches!(stream.read(&mut said).await, Ok(1..)) {
                self.connection = None;
            }
            return Ok(());
        }
        let Some((tasks, id)) = self.followed.clone() else { return Ok(()) };
        let found = run_blocking(move || match tasks.find(id) {
            Ok(Found::Running(task)) => KeeperConnection::open(&task),
            // A keeper that is alive but does not answer may do so later.
            Err(_) if tasks.is_kept(id).unwrap_or(true) => KeeperConnection::Unavailable,
            Ok(_) | Err(_) => KeeperConnection::TaskEnded,
        });
        match found.await? {
            KeeperConnection::TaskEnded => self.followed = None,
            KeeperConnection::Unavailable => tokio::time::sleep(RECONNECT_DELAY).await,
            KeeperConnection::Open(stream) => {
                if self.was_connected {
                    tokio::time::sleep(CLOSED_CONNECTION_DELAY).await;
                }
                self.was_connected = true;
                self.connection = UnixStream::from_std(stream).ok();
            }
        }
        Ok(())
    }
}

/// The connection to a task's keeper.
enum KeeperConnection {
    Open(std::os::unix::net::UnixStream),
    Unavailable,
    TaskEnded,
}

impl KeeperConnection {
    fn open(task: &Task) -> Self {
        let stream = task.follow().map(|(stream, _)| stream.set_nonblocking(true).map(|()| stream));
        match stream {
            Ok(Ok(stream)) => Self::Open(stream),
            _ => Self::Unavailable,
        }
    }
}
