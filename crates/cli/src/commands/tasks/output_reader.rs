//! Reads the output of a task from an offset on, and follows it while the task runs.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use longhaul_agent::keeper::{Found, Output, Task, Tasks};
use longhaul_protocol::TaskId;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::task::spawn_blocking;

use super::output_filter::OutputFilter;

const READ_BYTES: usize = 64 << 10;
/// Bytes that are also read before the first and after the last offset, because a secret may reach across it.
pub(super) const REDACTION_MARGIN: u64 = 64 << 10;
/// The pause before a keeper that does not answer is asked again.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// The same for a keeper that closed the connection while its task runs, as it does with too many followers.
const CLOSED_CONNECTION_DELAY: Duration = Duration::from_millis(200);

pub(crate) enum OutputChunk {
    Bytes(Vec<u8>),
    /// Bytes that were printed here and not kept.
    Dropped(Range<u64>),
}

/// Passes the output of a task through a filter to a writer.
pub(crate) struct OutputReader<'a> {
    output: Output,
    offset: u64,
    filter: OutputFilter,
    write: &'a mut (dyn FnMut(OutputChunk) -> anyhow::Result<()> + Send),
}

impl<'a> OutputReader<'a> {
    pub(crate) fn new(
        output: Output,
        offset: u64,
        mut filter: OutputFilter,
        write: &'a mut (dyn FnMut(OutputChunk) -> anyhow::Result<()> + Send),
    ) -> anyhow::Result<Self> {
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
        Ok(Self { output, offset, filter, write })
    }

    /// Writes the output that there is, up to this offset.
    pub(crate) fn read_until(&mut self, end: u64) -> anyhow::Result<()> {
        while self.offset < end {
            let most = usize::try_from(end - self.offset).unwrap_or(READ_BYTES).min(READ_BYTES);
            let chunk = self.output.read(self.offset, most)?;
            if let Some(dropped) = chunk.dropped {
                let cut = self.filter.finish_before_gap();
                self.write_bytes(cut)?;
                let missing = dropped.start..dropped.end.min(end);
                (self.write)(OutputChunk::Dropped(missing))?;
                if dropped.end >= end {
                    self.offset = end;
                    return Ok(());
                }
            }
            if chunk.next == self.offset {
                return Ok(());
            }
            self.offset = chunk.next;
            let shown = self.filter.push(&chunk.bytes);
            self.write_bytes(shown)?;
        }
        Ok(())
    }

    /// Writes all output that there is.
    pub(crate) fn read_to_end(&mut self) -> anyhow::Result<()> {
        self.read_until(u64::MAX)
    }

    /// Writes what the filter held back because a secret might start there.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        let following =
            self.output.read(self.offset, usize::try_from(REDACTION_MARGIN).unwrap_or(READ_BYTES))?;
        let held = match following.bytes.is_empty() || following.dropped.is_some() {
            true => self.filter.finish(),
            false => self.filter.finish_before(&following.bytes),
        };
        self.write_bytes(held)
    }

    fn write_bytes(&mut self, bytes: Vec<u8>) -> anyhow::Result<()> {
        if bytes.is_empty() { Ok(()) } else { (self.write)(OutputChunk::Bytes(bytes)) }
    }
}

/// Writes the output of a task until it ends. Its keeper says when there is more.
pub(crate) async fn follow(
    tasks: &Arc<Tasks>,
    id: TaskId,
    reader: &mut OutputReader<'_>,
) -> anyhow::Result<()> {
    let mut was_closed = false;
    loop {
        let asked = Arc::clone(tasks);
        let found = spawn_blocking(move || match asked.find(id) {
            Ok(Found::Running(task)) => KeeperConnection::open(&task),
            // A keeper that is alive but does not answer may do so later.
            Err(_) if asked.is_kept(id).unwrap_or(true) => KeeperConnection::Unavailable,
            Ok(_) | Err(_) => KeeperConnection::TaskEnded,
        });
        match found.await? {
            KeeperConnection::TaskEnded => return reader.read_to_end(),
            KeeperConnection::Unavailable => {
                reader.read_to_end()?;
                tokio::time::sleep(RECONNECT_DELAY).await;
            }
            KeeperConnection::Open(stream) => {
                let mut stream = UnixStream::from_std(stream)?;
                let mut said = [0; 4096];
                if was_closed {
                    tokio::time::sleep(CLOSED_CONNECTION_DELAY).await;
                }
                was_closed = true;
                reader.read_to_end()?;
                // The keeper writes only when there is more output.
                while let Ok(1..) = stream.read(&mut said).await {
                    reader.read_to_end()?;
                }
            }
        }
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
