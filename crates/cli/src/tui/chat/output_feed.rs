//! Feeds the output of commands to the screen: the last lines of running ones, and the whole of one that the user opens.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use longhaul_agent::keeper::{Output, Tasks};
use longhaul_agent::session::State;
use longhaul_agent::tasks::{Audience, OutputChunk, OutputFilter, OutputReader, TaskOutput, TaskRegistry};
use longhaul_agent::tools::plain_text;
use longhaul_agent::{Redactor, Session, Watched, Watcher, call_output, now};
use longhaul_protocol::{CallId, EventKind, TaskId};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::MissedTickBehavior;

use crate::event_text;
use crate::tui::{OutputPages, OutputPagesWriter, OutputUpdate, ScreenHandle, ScreenUpdate};

/// How often the end of a running command's output is looked at. It is read only if there is more.
const LIVE_INTERVAL: Duration = Duration::from_millis(200);
/// The end of the output in which the last lines are looked for.
const TAIL_BYTES: u64 = 4 << 10;
/// Lines that the screen shows at most.
const TAIL_LINES: usize = 5;
/// An unfinished last line is shown after this time without output: half of a secret looks like any other word.
const LINE_SETTLE_MS: i64 = 1_000;

/// A background task that is aborted on drop.
pub(super) struct OutputFeed(JoinHandle<()>);

impl Drop for OutputFeed {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl OutputFeed {
    /// Starts the feed.
    pub(super) fn start(
        screen: ScreenHandle,
        session: &Session,
        state: &State,
        registry: &TaskRegistry,
        redactor: &Redactor,
    ) -> Self {
        let (sender, requests) = unbounded_channel();
        screen.send(ScreenUpdate::Output(OutputUpdate::Requests(sender)));
        let calls = state.turn.iter().flat_map(|turn| &turn.calls);
        let open =
            calls.filter(|call| call.name == "exec" && call.started.is_some() && call.result.is_none());
        let running = open.map(|call| (call.id, LiveTail::default())).collect();
        let reader = OutputSource { registry: registry.clone(), redactor: redactor.clone() };
        let worker = FeedWorker { session: session.clone(), screen, reader, running };
        Self(tokio::spawn(worker.run(session.watch(), requests)))
    }
}

struct FeedWorker {
    session: Session,
    screen: ScreenHandle,
    reader: OutputSource,
    running: BTreeMap<CallId, LiveTail>,
}

/// What was last shown of a running command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct LiveTail {
    /// Bytes that the command had printed, and whether an unfinished line was shown.
    printed: u64,
    is_settled: bool,
    lines: Vec<String>,
}

impl FeedWorker {
    async fn run(mut self, mut watcher: Watcher, mut requests: UnboundedReceiver<CallId>) {
        let mut ticks = tokio::time::interval(LIVE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                watched = watcher.next() => match watched {
                    Some(Watched::Event(event)) => self.apply_event(&event.kind),
                    Some(Watched::Missed { .. }) => {}
                    None => return,
                },
                Some(call) = requests.recv() => self.send_whole_output(call).await,
                _ = ticks.tick(), if !self.running.is_empty() => self.send_tails().await,
            }
        }
    }

    fn apply_event(&mut self, kind: &EventKind) {
        match kind {
            EventKind::ToolStarted { call_id, name, .. } if name == "exec" => {
                self.running.insert(*call_id, LiveTail::default());
            }
            EventKind::ToolFinished { call_id, .. } => drop(self.running.remove(call_id)),
            EventKind::TurnEnded { .. } => self.running.clear(),
            _ => {}
        }
    }

    /// Shows the last lines of each running command that has printed something.
    async fn send_tails(&mut self) {
        let (reader, running) = (self.reader.clone(), self.running.clone());
        let read = spawn_blocking(move || {
            let tail = |(call, shown): (CallId, LiveTail)| Some((call, reader.tail(call, &shown).ok()??));
            running.into_iter().filter_map(tail).collect::<Vec<_>>()
        });
        for (call, tail) in read.await.unwrap_or_default() {
            let lines = tail.lines.clone();
            if let Some(shown) = self.running.get_mut(&call) {
                let is_new = shown.lines != lines;
                *shown = tail;
                if is_new {
                    self.screen.send(ScreenUpdate::Output(OutputUpdate::Tail { call, lines }));
                }
            }
        }
    }

    /// The keeper has more of a command's output than the journal, and for a shorter time.
    async fn send_whole_output(&self, call: CallId) {
        let reader = self.reader.clone();
        let kept = spawn_blocking(move || reader.pages(call)).await;
        let pages = match kept {
            Ok(Ok(pages)) => Some(pages),
            _ => self.pages_from_journal(call).await,
        };
        let update = match pages {
            Some(pages) => OutputUpdate::Whole { call, pages },
            None => OutputUpdate::NoMore { call },
        };
        self.screen.send(ScreenUpdate::Output(update));
    }

    async fn pages_from_journal(&self, call: CallId) -> Option<OutputPages> {
        let bytes = call_output(&**self.session.journal(), self.session.id()?, call).await.ok()??;
        let mut writer = OutputPagesWriter::new(Some(self.reader.registry.folder()));
        spawn_blocking(move || {
            writer.push(&String::from_utf8_lossy(&bytes));
            writer.finish()
        })
        .await
        .ok()
    }
}

/// Reads what keepers have of commands, without secrets and as plain text.
#[derive(Clone)]
struct OutputSource {
    registry: TaskRegistry,
    redactor: Redactor,
}

impl OutputSource {
    fn output(&self, call: CallId) -> anyhow::Result<Output> {
        let tasks: &Arc<Tasks> = self.registry.tasks()?;
        // A second run, outside of the sandbox, is the one to look at.
        Ok(tasks.output(TaskId::outside_sandbox(call)).or_else(|_| tasks.output(TaskId::from(call)))?)
    }

    /// The last lines of an output. None if nothing has changed since `shown`.
    fn tail(&self, call: CallId, shown: &LiveTail) -> anyhow::Result<Option<LiveTail>> {
        let output = self.output(call)?;
        let printed = output.printed()?;
        if printed == shown.printed && shown.is_settled {
            return Ok(None);
        }
        let last_at = output.printed_at()?.map_or(0, |at| at.0);
        let is_settled = now().0.saturating_sub(last_at) >= LINE_SETTLE_MS;
        if printed == shown.printed && !is_settled {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        self.read(output, printed.saturating_sub(TAIL_BYTES), printed, &mut |part| {
            bytes.extend_from_slice(part);
        })?;
        if !is_settled {
            let whole = bytes.iter().rposition(|byte| matches!(byte, b'\n' | b'\r'));
            bytes.truncate(whole.map_or(0, |end| end + 1));
        }
        let text = plain_text(&bytes);
        let mut lines: Vec<String> =
            text.trim_end().lines().rev().take(TAIL_LINES).map(str::to_owned).collect();
        lines.reverse();
        Ok(Some(LiveTail { printed, is_settled, lines }))
    }

    /// The whole output, as lines that are read in pages.
    fn pages(&self, call: CallId) -> anyhow::Result<OutputPages> {
        let output = self.output(call)?;
        let end = output.printed()?;
        let mut writer = OutputPagesWriter::new(Some(self.registry.folder()));
        // A line is made plain as a whole, since it may be written over from its beginning.
        let mut open_line: Vec<u8> = Vec::new();
        self.read(output, 0, end, &mut |part| {
            open_line.extend_from_slice(part);
            if let Some(line_end) = open_line.iter().rposition(|byte| *byte == b'\n') {
                writer.push(&plain_text(&open_line[..=line_end]));
                open_line.drain(..=line_end);
            }
        })?;
        writer.push(&plain_text(&open_line));
        Ok(writer.finish())
    }

    /// Reads a part of an output, without secrets.
    fn read(
        &self,
        output: Output,
        from: u64,
        end: u64,
        take: &mut (dyn FnMut(&[u8]) + Send),
    ) -> anyhow::Result<()> {
        let filter = OutputFilter::new(&self.redactor, Audience::Program);
        OutputReader::new(TaskOutput::Kept(output), from, filter)?.read_through(end, |chunk| {
            match chunk {
                OutputChunk::Bytes(bytes) => take(&bytes),
                OutputChunk::Dropped(range) => {
                    take(format!("\n{}\n", event_text::dropped(&range)).as_bytes());
                }
            }
            Ok(())
        })
    }
}
