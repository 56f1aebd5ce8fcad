//! Reading what a task has printed, and what it prints from now on.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use longhaul_agent::keeper::{Found, Output, Task, Tasks};
use longhaul_protocol::TaskId;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::task::spawn_blocking;

use super::output_filter::OutputFilter;

/// How much is read at once.
const READ_BYTES: usize = 64 << 10;
/// So far before the place where reading begins, and behind the one where it ends, a secret may begin or end.
pub(super) const REDACTION_MARGIN: u64 = 64 << 10;
/// A keeper that can't be talked to is asked again after this.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// The same for one that has closed the connection and still runs, as it does where too many listen.
const CLOSED_CONNECTION_DELAY: Duration = Duration::from_millis(200);

/// A piece of what a task has printed.
pub(crate) enum OutputChunk {
    Bytes(Vec<u8>),
    /// So much was printed here and not kept.
    Dropped(Range<u64>),
}

/// A place in the output of a task, from which on it is read.
pub(crate) struct OutputReader<'a> {
    output: Output,
    offset: u64,
    shown: OutputFilter,
    write: &'a mut (dyn FnMut(OutputChunk) -> anyhow::Result<()> + Send),
}

impl<'a> OutputReader<'a> {
    /// From this offset on.
    pub(crate) fn new(
        output: Output,
        offset: u64,
        mut shown: OutputFilter,
        write: &'a mut (dyn FnMut(OutputChunk) -> anyhow::Result<()> + Send),
    ) -> anyhow::Result<Self> {
        let mut from = offset.saturating_sub(REDACTION_MARGIN);
        while from < offset {
            let most = usize::try_from(offset - from).unwrap_or(READ_BYTES).min(READ_BYTES);
            let chunk = output.read(from, most)?;
            if chunk.next <= from || chunk.dropped.is_some() {
                break;
            }
            shown.lead_in(&chunk.bytes);
            from = chunk.next;
        }
        Ok(Self { output, offset, shown, write })
    }

    /// Shows what is there, up to this offset.
    pub(crate) fn read_until(&mut self, end: u64) -> anyhow::Result<()> {
        while self.offset < end {
            let most = usize::try_from(end - self.offset).unwrap_or(READ_BYTES).min(READ_BYTES);
            let chunk = self.output.read(self.offset, most)?;
            if let Some(dropped) = chunk.dropped {
                let cut = self.shown.cut();
                self.bytes(cut)?;
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
            let shown = self.shown.push(&chunk.bytes);
            self.bytes(shown)?;
        }
        Ok(())
    }

    /// Shows everything that is there.
    pub(crate) fn read_on(&mut self) -> anyhow::Result<()> {
        self.read_until(u64::MAX)
    }

    /// Shows what was held back, because a secret might have begun with it.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        let following =
            self.output.read(self.offset, usize::try_from(REDACTION_MARGIN).unwrap_or(READ_BYTES))?;
        let held = match following.bytes.is_empty() || following.dropped.is_some() {
            true => self.shown.finish(),
            false => self.shown.finish_before(&following.bytes),
        };
        self.bytes(held)
    }

    fn bytes(&mut self, bytes: Vec<u8>) -> anyhow::Result<()> {
        if bytes.is_empty() { Ok(()) } else { (self.write)(OutputChunk::Bytes(bytes)) }
    }
}

/// Shows what a task prints until it is over. Its keeper says when there is more.
pub(crate) async fn follow(
    tasks: &Arc<Tasks>,
    id: TaskId,
    reading: &mut OutputReader<'_>,
) -> anyhow::Result<()> {
    let mut was_closed = false;
    loop {
        let asked = Arc::clone(tasks);
        let found = spawn_blocking(move || match asked.find(id) {
            Ok(Found::Running(task)) => KeeperConnection::of(&task),
            // Nobody can tell now, which may pass as long as somebody keeps it.
            Err(_) if asked.is_kept(id).unwrap_or(true) => KeeperConnection::NotNow,
            Ok(_) | Err(_) => KeeperConnection::Over,
        });
        match found.await? {
            KeeperConnection::Over => return reading.read_on(),
            KeeperConnection::NotNow => {
                reading.read_on()?;
                tokio::time::sleep(RECONNECT_DELAY).await;
            }
            KeeperConnection::Here(stream) => {
                let mut stream = UnixStream::from_std(stream)?;
                let mut said = [0; 4096];
                if was_closed {
                    tokio::time::sleep(CLOSED_CONNECTION_DELAY).await;
                }
                was_closed = true;
                reading.read_on()?;
                // Whatever it says, it says because there is more.
                while let Ok(1..) = stream.read(&mut said).await {
                    reading.read_on()?;
                }
            }
        }
    }
}

/// Whether a task's keeper can be heard.
enum KeeperConnection {
    Here(std::os::unix::net::UnixStream),
    NotNow,
    Over,
}

impl KeeperConnection {
    /// A connection on which the keeper says when there is more, and which it closes at the end.
    fn of(task: &Task) -> Self {
        let stream = task.follow().map(|(stream, _)| stream.set_nonblocking(true).map(|()| stream));
        match stream {
            Ok(Ok(stream)) => Self::Here(stream),
            _ => Self::NotNow,
        }
    }
}
