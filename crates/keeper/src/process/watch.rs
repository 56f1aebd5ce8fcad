//! The keeper's loop: copying output, hearing clients, and seeing the command to its end.

use std::time::{Duration, Instant};

use longhaul_protocol::{At, TaskStatus};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group, wait};

use super::bounds::CHILD_REAPED;
use super::clients::{Clients, State};
use super::command::Started;
use super::copying::Copying;
use super::signals::Signals;
use crate::folder::{Folder, name};
use crate::format::{FORMAT, Spec, Status, now};
use crate::process_table;

/// How long output is still taken after the command's end, if something that it left behind holds the pipe open.
const DRAINING: Duration = Duration::from_millis(200);
/// How long a command may take to end by itself when it is asked to.
const ASKING: Duration = Duration::from_secs(2);
/// How long processes that can't be asked are forced. Only those that we may not end are left then.
const FORCING: Duration = Duration::from_secs(5);
/// How often that is tried again.
const PAUSE: Duration = Duration::from_millis(5);

/// A running command, and everything that has to do with it.
#[derive(Debug)]
pub(crate) struct Watch {
    started: Started,
    max_runtime: Option<Duration>,
    signals: Signals,
    copying: Copying,
    pub(crate) clients: Clients,
    phase: Phase,
    exit: Option<Exit>,
    /// Why it is being ended, if it didn't end by itself.
    ended_as: Option<TaskStatus>,
    message: Option<String>,
    /// It is being ended because of a signal.
    is_unasked: bool,
    /// How it ended is on disk.
    is_recorded: bool,
}

/// The end of the command's own process.
#[derive(Debug, Clone, Copy)]
struct Exit {
    /// Absent if it could not be ended.
    status: Option<WaitStatus>,
    at: At,
    after: Duration,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Running,
    /// It ended, and something may still print.
    Draining {
        until: Instant,
    },
    /// Everything was asked to end.
    Asking {
        until: Instant,
    },
    /// Everything is being forced to.
    Forcing {
        until: Instant,
    },
    Over,
    /// It is over, and something that it left behind goes on.
    Left,
}

impl Watch {
    pub(crate) fn new(
        started: Started,
        spec: &Spec,
        signals: Signals,
        copying: Copying,
        clients: Clients,
    ) -> Self {
        let max_runtime = spec.max_runtime_s.map(Duration::from_secs);
        let (phase, exit, ended_as, message) = (Phase::Running, None, None, None);
        let (is_unasked, is_recorded) = (false, false);
        Self {
            started,
            max_runtime,
            signals,
            copying,
            clients,
            phase,
            exit,
            ended_as,
            message,
            is_unasked,
            is_recorded,
        }
    }

    /// Returns when the command has ended and all that is to be kept of its output is in its files.
    pub(crate) fn until_the_end(&mut self, folder: &Folder) -> Status {
        while !matches!(self.phase, Phase::Over) {
            self.wait(self.next_deadline());
            if self.signals.asked_to_end() {
                let runs = matches!(self.phase, Phase::Running | Phase::Draining { .. });
                self.end_as(TaskStatus::Killed, Some("its keeper was told to end (SIGTERM)"));
                // Whoever could not talk to the keeper has left a word that they asked.
                let is_asked = folder.has(name::ASKED).unwrap_or(false);
                self.is_unasked |= runs && self.ended_as.is_some() && !is_asked;
            }
            let none_left = self.reap();
            if !self.copying.has_ended() {
                self.copying.copy(folder);
            }
            if self.clients.serve(folder, self.state()) {
                self.end_as(TaskStatus::Killed, None);
            }
            self.phase = self.next_phase(none_left);
        }
        self.copying.copy_rest(folder);
        self.copying.close();
        self.status()
    }

    /// Whether no process of the command is left, or is within this time.
    pub(crate) fn has_nothing_left_within(&mut self, folder: &Folder, time: Duration) -> bool {
        let until = Instant::now() + time;
        while !self.reap() {
            if Instant::now() >= until {
                return false;
            }
            self.wait(Some(until));
            self.clients.serve(folder, self.state());
        }
        true
    }

    /// Stays as long as something runs in the PID namespace that the command left behind, and ends that if a client asks for it. Without a
    /// namespace what is left behind is on its own.
    pub(crate) fn keep_what_is_left(&mut self, folder: &Folder) {
        if self.started.processes.init.is_none() {
            return;
        }
        (self.phase, self.is_recorded) = (Phase::Left, true);
        while !matches!(self.phase, Phase::Over) {
            // A client may have asked before the command's end was recorded.
            if self.signals.asked_to_end() || self.clients.serve(folder, self.state()) {
                self.end_as(TaskStatus::Killed, None);
            }
            // After the signals, not before: asking for them also takes the news of a child that ended.
            if self.reap() {
                return;
            }
            self.phase = self.next_phase(false);
            self.wait(self.next_deadline());
        }
    }

    /// Hears clients until then, when all else is over. Says whether somebody told the keeper meanwhile to end.
    pub(crate) fn serve_until(&mut self, folder: &Folder, until: Instant) -> bool {
        while Instant::now() < until {
            self.wait(Some(until));
            if self.signals.asked_to_end() {
                return true;
            }
            self.reap();
            self.clients.serve(folder, self.state());
        }
        false
    }

    fn state(&self) -> State {
        State {
            printed: self.copying.printed(),
            pid: self.started.processes.command.as_raw_nonzero().get(),
            has_ended: self.is_recorded,
        }
    }

    /// Sleeps until something happens or is due.
    fn wait(&self, deadline: Option<Instant>) {
        let mut polled = vec![PollFd::from_borrowed_fd(self.signals.handle(), PollFlags::IN)];
        if let Some(pipe) = self.copying.handle().filter(|_| !matches!(self.phase, Phase::Over)) {
            polled.push(PollFd::from_borrowed_fd(pipe, PollFlags::IN));
        }
        polled.extend(self.clients.handles().map(|(handle, has_unsent)| {
            let flags = if has_unsent { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            PollFd::from_borrowed_fd(handle, flags)
        }));
        let timeout = deadline.map(|at| {
            let left = at.saturating_duration_since(Instant::now());
            // A deadline that no clock reaches is none.
            Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::from(i32::MAX), tv_nsec: 0 })
        });
        // Interrupted by a signal: its byte is in the pipe.
        let _ = poll(&mut polled, timeout.as_ref());
    }

    fn next_deadline(&self) -> Option<Instant> {
        let phase = match self.phase {
            Phase::Running => self.max_runtime.and_then(|limit| self.started.began.checked_add(limit)),
            Phase::Draining { until } | Phase::Asking { until } => Some(until),
            Phase::Forcing { .. } => Some(Instant::now() + PAUSE),
            Phase::Over => Some(Instant::now()),
            Phase::Left => None,
        };
        phase.into_iter().chain(self.clients.next_deadline(self.copying.printed())).min()
    }

    /// Takes note of every child that has ended, and says whether none is left. As the keeper takes in the orphans of its
    /// descendants, no child means no descendant.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, _))) if Some(pid) == self.started.processes.init => {
                    self.started.processes.init = None;
                }
                Ok(Some((pid, status))) => {
                    if pid == self.started.processes.command {
                        self.exit = Some(Exit::now(Some(status), &self.started));
                    }
                    // The first process of the namespace ends if this was the last of the others, and only here can it learn that.
                    let _ = self.started.processes.init.map(|init| kill_process(init, CHILD_REAPED));
                }
                Err(Errno::INTR) => {}
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    }

    fn next_phase(&mut self, none_left: bool) -> Phase {
        let now = Instant::now();
        match self.phase {
            Phase::Running if self.exit.is_some() => {
                if self.copying.has_ended() {
                    Phase::Over
                } else {
                    Phase::Draining { until: now + DRAINING }
                }
            }
            Phase::Running if self.max_runtime.is_some_and(|limit| self.started.began.elapsed() >= limit) => {
                self.end_as(TaskStatus::TimedOut, None);
                self.phase
            }
            Phase::Draining { until } if self.copying.has_ended() || now >= until => Phase::Over,
            Phase::Asking { .. } | Phase::Forcing { .. } if none_left => Phase::Over,
            Phase::Asking { until } if now >= until => {
                self.force();
                Phase::Forcing { until: now + FORCING }
            }
            Phase::Forcing { until } if now >= until => {
                self.message = Some("some of its processes could not be ended".to_owned());
                Phase::Over
            }
            Phase::Forcing { .. } => {
                self.force();
                self.phase
            }
            Phase::Running | Phase::Draining { .. } | Phase::Asking { .. } | Phase::Over | Phase::Left => {
                self.phase
            }
        }
    }

    /// Begins to end the command, unless that has begun. One that has ended by itself keeps its own status, and what it
    /// left behind is ended.
    fn end_as(&mut self, status: TaskStatus, message: Option<&str>) {
        if !matches!(self.phase, Phase::Running | Phase::Draining { .. } | Phase::Left) {
            return;
        }
        if self.exit.is_none() {
            self.ended_as = Some(status);
            self.message = message.map(str::to_owned);
        }
        // The group's number is the command's, and nobody else gets that before the command is reaped. Afterwards a stranger may have it.
        let group = self.exit.is_none().then_some(self.started.processes.command);
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::TERM);
        }
        // What the group was told is not told again.
        for entry in process_table::descendants(getpid()) {
            if group.is_none_or(|group| entry.group != group.as_raw_nonzero().get()) {
                process_table::send(&entry, Signal::TERM);
            }
        }
        self.phase = Phase::Asking { until: Instant::now() + ASKING };
    }

    fn force(&self) {
        for entry in process_table::descendants(getpid()) {
            process_table::send(&entry, Signal::KILL);
        }
    }

    fn status(&mut self) -> Status {
        let exit = self.exit.unwrap_or_else(|| Exit::now(None, &self.started));
        let exit_code = exit.status.and_then(exit_code);
        let by_itself = if exit_code == Some(0) { TaskStatus::Completed } else { TaskStatus::Failed };
        let said: Vec<String> = self.message.take().into_iter().chain(self.copying.trouble()).collect();
        Status {
            format: FORMAT,
            status: self.ended_as.unwrap_or(by_itself),
            exit_code,
            signal: exit.status.and_then(WaitStatus::terminating_signal),
            started_at: self.started.started_at,
            ended_at: exit.at,
            duration_ms: u64::try_from(exit.after.as_millis()).unwrap_or(u64::MAX),
            printed: self.copying.printed(),
            message: (!said.is_empty()).then(|| said.join("; ")),
            unasked: self.is_unasked,
        }
    }
}

impl Exit {
    fn now(status: Option<WaitStatus>, started: &Started) -> Self {
        Self { status, at: now(), after: started.began.elapsed() }
    }
}

/// As shells count: a signal is 128 and its number.
fn exit_code(status: WaitStatus) -> Option<i32> {
    status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal))
}
