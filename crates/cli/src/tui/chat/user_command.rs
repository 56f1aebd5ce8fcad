//! `!command`: a command of the user's, in the user's own shell and environment, outside of the agent's sandbox and approval.
//!
//! | killed | on disk | next |
//! | --- | --- | --- |
//! | while the command runs | nothing | the model is told nothing |
//! | after its end was recorded | the command and its output | the model sees both with its next request |

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context;
use longhaul_agent::tasks::{Audience, OutputFilter};
use longhaul_agent::{Redactor, user_command_message};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::time::Instant;

use super::escape_filter::EscapeFilter;
use super::line_source::{LineEvent, LineSource};
use super::{Chat, ChatStep};
use crate::event_printer::EventPrinter;
use crate::output::{format_count, sanitize, truncate};
use crate::signals::{ExitSignals, SIGINT};
use crate::tui::{Activity, ScreenUpdate};

/// How long a command may take to end after it was asked to.
const KILL_GRACE: Duration = Duration::from_secs(2);
/// How long output is waited for after the shell has ended: a process that it left behind may hold the pipe.
const DRAIN_TIME: Duration = Duration::from_millis(200);
/// Lines and bytes of the output that stay on the screen. Of a longer output the last lines follow, and Ctrl-O opens it.
const MAX_SHOWN_LINES: u64 = 40;
const MAX_SHOWN_BYTES: usize = 16 << 10;
const MAX_TAIL_LINES: usize = 4;
/// Bytes of the end that the last lines are taken from.
const TAIL_BYTES: usize = 2 << 10;
/// Bytes of the output that Ctrl-O opens.
const MAX_OPENED_BYTES: usize = 1 << 20;
/// Bytes of each end of the output that are kept, and of those that the model gets.
const MAX_KEPT_BYTES: usize = 64 << 10;
const MAX_TOLD_BYTES: usize = 8 << 10;

/// A line that begins with `!`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UserCommand<'a> {
    command: &'a str,
    reader: CommandReader,
}

/// Who sees the command and its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommandReader {
    UserAndModel,
    UserAlone,
}

impl<'a> UserCommand<'a> {
    /// The command of a line from the keyboard. `None` if the line is none.
    pub(crate) fn parse(line: &'a str) -> Option<Self> {
        let rest = line.strip_prefix('!')?;
        Some(match rest.strip_prefix('!') {
            Some(command) => Self { command: command.trim(), reader: CommandReader::UserAlone },
            None => Self { command: rest.trim(), reader: CommandReader::UserAndModel },
        })
    }
}

/// How a command ended.
enum CommandEnd {
    Exited(ExitStatus),
    /// The user ended it.
    Interrupted,
    /// The chat ends.
    Leave(ChatStep),
}

impl CommandEnd {
    fn text(&self) -> String {
        match self {
            Self::Exited(status) => match status.code() {
                Some(code) => format!("exit code {code}"),
                None => status.to_string(),
            },
            Self::Interrupted | Self::Leave(_) => "interrupted by the user".to_owned(),
        }
    }
}

impl Chat<'_> {
    /// Runs a command of the user's to its end, and puts it into the context of the session.
    pub(super) async fn run_user_command(&mut self, command: UserCommand<'_>) -> anyhow::Result<ChatStep> {
        if command.command.is_empty() {
            self.printer
                .note("!COMMAND runs a command in your shell; !!COMMAND does so without telling the model");
            return Ok(ChatStep::Line);
        }
        self.session.touch();
        self.printer.tell(ScreenUpdate::Activity(Activity::Command));
        let ran = self.show_user_command(command.command).await;
        self.printer.close_line();
        self.printer.tell(ScreenUpdate::Activity(Activity::Idle));
        let (end, output) = match ran {
            Ok(ran) => ran,
            Err(error) => {
                self.printer.note(format!("{error:#}"));
                return Ok(ChatStep::Line);
            }
        };
        if let CommandEnd::Leave(next) = end {
            return Ok(next);
        }
        let ended = end.text();
        if ended != "exit code 0" {
            self.printer.note(&ended);
        }
        if command.reader == CommandReader::UserAndModel {
            let output = output.for_model(self.runtime.redactor());
            match self.session.add_context(user_command_message(command.command, &ended, &output)).await {
                Ok(()) => self.printer.note("the model sees this with your next message"),
                Err(error) => self.printer.note(format!("the model is not told: {error}")),
            }
        }
        Ok(ChatStep::Line)
    }

    /// Runs the command and shows its output as it comes.
    async fn show_user_command(&mut self, command: &str) -> anyhow::Result<(CommandEnd, CapturedOutput)> {
        let state = self.session.state().await?;
        let begun_in = state.created.and_then(|created| created.work_dir).map(PathBuf::from);
        let work_dir = begun_in.unwrap_or_else(|| self.config.work_dir.clone());
        self.config.tool_scope(&work_dir).check_work_dir()?;
        let (read, write) = std::io::pipe()?;
        let shell =
            std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into());
        let child = Command::new(shell)
            .arg("-c")
            .arg(command)
            .current_dir(&work_dir)
            .stdin(Stdio::null())
            .stdout(write.try_clone()?)
            .stderr(write)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} can't run in {}", truncate(command, 60), work_dir.display()))?;
        let output = pipe::Receiver::from_owned_fd(OwnedFd::from(read))?;
        let filter = OutputFilter::new(self.runtime.redactor(), Audience::Person(sanitize));
        let Self { lines, signals, printer, deferred, .. } = self;
        let shown = ShownOutput::new(command, printer, filter);
        RunningCommand {
            child,
            output,
            shown,
            lines,
            signals,
            deferred,
            kill_at: None,
            is_interrupted: false,
        }
        .run()
        .await
    }
}

/// A command of the user's that runs.
struct RunningCommand<'a> {
    child: Child,
    output: pipe::Receiver,
    shown: ShownOutput<'a>,
    lines: &'a mut LineSource,
    signals: &'a mut ExitSignals,
    /// Lines that the user enters meanwhile.
    deferred: &'a mut VecDeque<String>,
    kill_at: Option<Instant>,
    is_interrupted: bool,
}

impl RunningCommand<'_> {
    async fn run(mut self) -> anyhow::Result<(CommandEnd, CapturedOutput)> {
        let mut captured = CapturedOutput::default();
        let mut buffer = vec![0; 16 << 10];
        let (mut ended, mut drained_at, mut is_open) = (None, None, true);
        let never = Instant::now() + Duration::from_secs(86_400 * 365);
        while is_open || ended.is_none() {
            tokio::select! {
                biased;
                number = self.signals.next() => match number {
                    SIGINT => self.interrupt(),
                    number => return Ok((self.leave(ChatStep::Suspend(number)), captured)),
                },
                event = self.lines.next() => match event {
                    LineEvent::Interrupt | LineEvent::Escape => self.interrupt(),
                    LineEvent::Line(line) => self.deferred.push_back(line),
                    LineEvent::Lost => return Ok((self.leave(ChatStep::Suspend(1)), captured)),
                    LineEvent::End | LineEvent::GoBack | LineEvent::TakeBack => {}
                },
                () = tokio::time::sleep_until(self.kill_at.unwrap_or(never)), if self.kill_at.is_some() => {
                    self.kill(Signal::KILL);
                    self.kill_at = None;
                }
                read = self.output.read(&mut buffer), if is_open => match read {
                    Ok(count @ 1..) => {
                        captured.push(&buffer[..count]);
                        self.shown.push(&buffer[..count]);
                    }
                    Ok(0) | Err(_) => is_open = false,
                },
                status = self.child.wait(), if ended.is_none() => {
                    ended = Some(status?);
                    drained_at = Some(Instant::now() + DRAIN_TIME);
                }
                () = tokio::time::sleep_until(drained_at.unwrap_or(never)), if drained_at.is_some() => break,
            }
        }
        self.shown.finish();
        let end = match ended {
            Some(status) if !self.is_interrupted => CommandEnd::Exited(status),
            _ => CommandEnd::Interrupted,
        };
        Ok((end, captured))
    }

    /// Asks the command to end; the second time, ends it.
    fn interrupt(&mut self) {
        self.kill(if self.is_interrupted { Signal::KILL } else { Signal::TERM });
        self.is_interrupted = true;
        self.kill_at = Some(Instant::now() + KILL_GRACE);
    }

    fn leave(&mut self, next: ChatStep) -> CommandEnd {
        self.kill(Signal::KILL);
        CommandEnd::Leave(next)
    }

    /// Sends a signal to the command and everything that it has started, unless it has ended.
    fn kill(&self, signal: Signal) {
        let pid = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(pid) = pid {
            let _ = kill_process_group(pid, signal);
        }
    }
}

/// The output on its way to the terminal.
struct ShownOutput<'a> {
    command: &'a str,
    printer: &'a mut EventPrinter,
    escapes: EscapeFilter,
    filter: OutputFilter,
    /// What Ctrl-O opens.
    text: String,
    /// The last part of the output.
    tail: String,
    /// Lines so far, without the one that is not complete yet.
    lines: u64,
    bytes: usize,
    /// The line up to which the output is on the screen, if that is not all of it.
    cut_at: Option<u64>,
}

impl<'a> ShownOutput<'a> {
    fn new(command: &'a str, printer: &'a mut EventPrinter, filter: OutputFilter) -> Self {
        let (text, tail) = (String::new(), String::new());
        let escapes = EscapeFilter::default();
        Self { command, printer, escapes, filter, text, tail, lines: 0, bytes: 0, cut_at: None }
    }

    fn push(&mut self, bytes: &[u8]) {
        let shown = self.filter.push(&self.escapes.push(bytes));
        self.show(&String::from_utf8_lossy(&shown));
    }

    fn show(&mut self, text: &str) {
        for part in text.split_inclusive('\n') {
            if self.lines >= MAX_SHOWN_LINES || self.bytes >= MAX_SHOWN_BYTES {
                self.cut_at.get_or_insert(self.lines);
            }
            if self.cut_at.is_none() {
                self.printer.printed(part);
            }
            self.bytes += part.len();
            self.lines += u64::from(part.ends_with('\n'));
        }
        let room = MAX_OPENED_BYTES.saturating_sub(self.text.len());
        self.text.push_str(&text[..text.floor_char_boundary(room)]);
        self.tail.push_str(&text[text.ceil_char_boundary(text.len().saturating_sub(TAIL_BYTES))..]);
        self.tail.drain(..self.tail.ceil_char_boundary(self.tail.len().saturating_sub(TAIL_BYTES)));
    }

    fn finish(&mut self) {
        let rest = self.filter.finish();
        self.show(&String::from_utf8_lossy(&rest));
        let Some(cut_at) = self.cut_at else { return };
        self.printer.close_line();
        let lines = self.lines + u64::from(!self.tail.ends_with('\n'));
        let hidden = lines.saturating_sub(cut_at);
        let last: Vec<&str> = self.tail.lines().rev().take(MAX_TAIL_LINES).collect();
        if let Some(more @ 1..) = hidden.checked_sub(last.len() as u64) {
            self.printer.aside(&format!("… {}, Ctrl-O", format_count(more, "more line")));
        }
        for line in last.iter().rev() {
            self.printer.printed(&format!("{line}\n"));
        }
        if self.bytes > self.text.len() {
            self.text.push_str("\n[… the rest was not kept …]");
        }
        let (command, output) = (self.command.to_owned(), std::mem::take(&mut self.text));
        self.printer.tell(ScreenUpdate::UserCommand { command, output, lines });
    }
}

/// The beginning and the end of the output.
#[derive(Default)]
struct CapturedOutput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    bytes: usize,
}

impl CapturedOutput {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        let to_head = bytes.len().min(MAX_KEPT_BYTES - self.head.len());
        self.head.extend_from_slice(&bytes[..to_head]);
        self.tail.extend(&bytes[to_head..]);
        self.tail.drain(..self.tail.len().saturating_sub(MAX_KEPT_BYTES));
    }

    /// The output without secrets, cut in its middle. Secrets are removed before it is cut, so that none is cut in two.
    fn for_model(mut self, redactor: &Redactor) -> String {
        let tail = self.tail.make_contiguous();
        let clean = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n");
            redactor.redact(&text).into_owned()
        };
        let (head, tail) = match self.head.len() + tail.len() == self.bytes {
            true => {
                self.head.extend_from_slice(tail);
                let text = clean(&self.head);
                if text.len() <= 2 * MAX_TOLD_BYTES {
                    return text;
                }
                (text.clone(), text)
            }
            false => (clean(&self.head), clean(tail)),
        };
        let head = &head[..head.floor_char_boundary(MAX_TOLD_BYTES)];
        let tail = &tail[tail.ceil_char_boundary(tail.len().saturating_sub(MAX_TOLD_BYTES))..];
        format!("{head}\n[… of {} bytes the middle is left out …]\n{tail}", self.bytes)
    }
}

#[cfg(test)]
#[path = "user_command_tests.rs"]
mod tests;
