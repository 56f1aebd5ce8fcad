//! The supervisor: the keeper's loop. It pumps output, serves clients, enforces the timeout, terminates and kills the
//! command, and reaps it.

use std::time::{Duration, Instant};

use longhaul_protocol::{At, TaskStatus};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group, wait};

use super::clients::{Clients, CommandState};
use super::command::Started;
use super::output_pump::OutputPump;
use super::relay::Relay;
use super::sandbox::CHILD_REAPED;
use super::signals::Signals;
use crate::folder::{Folder, name};
use crate::format::{FORMAT, Spec, Status, now};
use crate::process_table;

/// How long to read output after the command's end, if an orphan keeps the pipe open.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);
/// The grace period between SIGTERM and SIGKILL.
const TERM_GRACE: Duration = Duration::from_secs(2);
/// How long SIGKILL is repeated. Processes that survive this are those that this user may not kill.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// The time between two rounds of SIGKILL.
const KILL_INTERVAL: Duration = Duration::from_millis(5);

/// What the command prints and reads.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) pump: OutputPump,
    /// For a command whose owner gets its output.
    pub(crate) relay: Option<Relay>,
}

/// The supervisor of a running command.
#[derive(Debug)]
pub(crate) struct Supervisor {
    started: Started,
    max_runtime: Option<Duration>,
    signals: Signals,
    pump: OutputPump,
    relay: Option<Relay>,
    /// It lives for its owner, and so does everything that it has started.
    is_relayed: bool,
    pub(crate) clients: Clients,
    phase: Phase,
    exit: Option<Exit>,
    /// Set if it was killed or timed out.
    ended_as: Option<TaskStatus>,
    message: Option<String>,
    /// The keeper got a signal to end the command, and no client had asked for that.
    is_unasked: bool,
    /// Its status is on disk.
    is_recorded: bool,
}

/// The end of the command's own process.
#[derive(Debug, Clone, Copy)]
struct Exit {
    /// `None` if it could not be killed.
    status: Option<WaitStatus>,
    at: At,
    after: Duration,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Running,
    /// The command ended; orphans may still print.
    Draining {
        until: Instant,
    },
    /// SIGTERM was sent; the grace period runs.
    Terminating {
        until: Instant,
    },
    /// SIGKILL is sent repeatedly.
    Killing {
        until: Instant,
    },
    Ended,
    /// The command ended. Orphans in its PID namespace still run.
    Orphans,
}

impl Supervisor {
    pub(crate) fn new(
        started: Started,
        spec: &Spec,
        signals: Signals,
        Streams { pump, relay }: Streams,
        clients: Clients,
    ) -> Self {
        let max_runtime = spec.max_runtime_s.map(Duration::from_secs);
        let (phase, exit, ended_as, message) = (Phase::Running, None, None, None);
        let (is_unasked, is_recorded, is_relayed) = (false, false, relay.is_some());
        Self {
            started,
            max_runtime,
            signals,
            pump,
            relay,
            is_relayed,
            clients,
            phase,
            exit,
            ended_as,
            message,
            is_unasked,
            is_recorded,
        }
    }

    /// Runs until the command has ended and its output is in its files.
    pub(crate) fn run_to_end(&mut self, folder: &Folder) -> Status {
        while !matches!(self.phase, Phase::Ended) {
            self.wait(self.next_deadline());
            if self.signals.asked_to_end() {
                let runs = matches!(self.phase, Phase::Running | Phase::Draining { .. });
                self.terminate(TaskStatus::Killed, Some("its supervisor was stopped (SIGTERM)"));
                // A client that can't reach the socket leaves this file before it sends the signal.
                let is_asked = folder.has(name::ASKED).unwrap_or(false);
                self.is_unasked |= runs && self.ended_as.is_some() && !is_asked;
            }
            let none_left = self.reap();
            if !self.pump.has_ended() {
                self.pump.pump(folder);
            }
            if self.clients.serve(folder, self.state()) {
                self.terminate(TaskStatus::Killed, None);
            }
            self.serve_owner();
            self.phase = self.next_phase(none_left);
        }
        // Closes the owner's connection.
        self.relay = None;
        self.pump.drain(folder);
        self.pump.close();
        self.status()
    }

    /// Carries input and output of a relayed command, and terminates it if its owner is gone.
    fn serve_owner(&mut self) {
        let Some(relay) = &mut self.relay else { return };
        if let Some(owner) = self.clients.take_owner(relay.is_free()) {
            relay.connect(owner.stream, &owner.heard, &owner.unsent);
        }
        relay.pump();
        if relay.is_abandoned() {
            self.terminate(TaskStatus::Killed, Some("the program that used it has ended"));
        }
    }

    /// Waits until no process of the command is left. Returns false if some are left after this time.
    pub(crate) fn wait_for_processes(&mut self, folder: &Folder, time: Duration) -> bool {
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

    /// Stays while orphans run in the command's PID namespace, and kills them if a client asks for it. Without a PID
    /// namespace, the keeper does not follow orphans. Those of a relayed command are always ended: their owner can't use
    /// them any more.
    pub(crate) fn supervise_orphans(&mut self, folder: &Folder) {
        if self.started.processes.init.is_none() && !self.is_relayed {
            return;
        }
        (self.phase, self.is_recorded) = (Phase::Orphans, true);
        if self.is_relayed {
            self.terminate(TaskStatus::Killed, None);
        }
        while !matches!(self.phase, Phase::Ended) {
            // A client may have asked before the command's status was written.
            if self.signals.asked_to_end() || self.clients.serve(folder, self.state()) {
                self.terminate(TaskStatus::Killed, None);
            }
            // After the signals, because reading these also consumes SIGCHLD.
            if self.reap() {
                return;
            }
            self.phase = self.next_phase(false);
            self.wait(self.next_deadline());
        }
    }

    /// Serves clients until a deadline, when all other work is done. Returns true if the keeper gets SIGTERM
    /// meanwhile.
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

    fn state(&self) -> CommandState {
        CommandState {
            printed: self.pump.printed(),
            pid: self.started.processes.command.as_raw_nonzero().get(),
            has_ended: self.is_recorded,
        }
    }

    /// Polls until something happens or the deadline passes.
    fn wait(&self, deadline: Option<Instant>) {
        let mut polled = vec![PollFd::from_borrowed_fd(self.signals.handle(), PollFlags::IN)];
        if let Some(pipe) = self.pump.handle().filter(|_| !matches!(self.phase, Phase::Ended)) {
            polled.push(PollFd::from_borrowed_fd(pipe, PollFlags::IN));
        }
        polled.extend(self.clients.handles().map(|(handle, has_unsent)| {
            let flags = if has_unsent { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            PollFd::from_borrowed_fd(handle, flags)
        }));
        let relayed =
            self.relay.iter().filter(|_| !matches!(self.phase, Phase::Ended)).flat_map(Relay::handles);
        polled.extend(relayed.map(|(handle, flags)| PollFd::from_borrowed_fd(handle, flags)));
        let timeout = deadline.map(|at| {
            let left = at.saturating_duration_since(Instant::now());
            // A deadline that is too far away for the system's type counts as none.
            Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::from(i32::MAX), tv_nsec: 0 })
        });
        // After an interruption, the signal's byte is in the pipe.
        let _ = poll(&mut polled, timeout.as_ref());
    }

    fn next_deadline(&self) -> Option<Instant> {
        let phase = match self.phase {
            Phase::Running => self.max_runtime.and_then(|limit| self.started.began.checked_add(limit)),
            Phase::Draining { until } | Phase::Terminating { until } => Some(until),
            Phase::Killing { .. } => Some(Instant::now() + KILL_INTERVAL),
            Phase::Ended => Some(Instant::now()),
            Phase::Orphans => None,
        };
        // While it is being terminated, its owner no longer matters.
        let runs = matches!(self.phase, Phase::Running);
        let owner = self.relay.as_ref().filter(|_| runs).and_then(Relay::deadline);
        phase.into_iter().chain(owner).chain(self.clients.next_deadline(self.pump.printed())).min()
    }

    /// Reaps every child that has ended. Returns true if none is left. The keeper is a subreaper, so no child means
    /// no descendant.
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
                    // The init of the namespace ends if this was the last other process. Only the keeper can tell it.
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
                if self.pump.has_ended() {
                    Phase::Ended
                } else {
                    Phase::Draining { until: now + DRAIN_TIMEOUT }
                }
            }
            Phase::Running if self.max_runtime.is_some_and(|limit| self.started.began.elapsed() >= limit) => {
                self.terminate(TaskStatus::TimedOut, None);
                self.phase
            }
            Phase::Draining { until } if self.pump.has_ended() || now >= until => Phase::Ended,
            Phase::Terminating { .. } | Phase::Killing { .. } if none_left => Phase::Ended,
            Phase::Terminating { until } if now >= until => {
                self.kill_descendants();
                Phase::Killing { until: now + KILL_TIMEOUT }
            }
            Phase::Killing { until } if now >= until => {
                self.message = Some("could not kill some of its processes".to_owned());
                Phase::Ended
            }
            Phase::Killing { .. } => {
                self.kill_descendants();
                self.phase
            }
            Phase::Running
            | Phase::Draining { .. }
            | Phase::Terminating { .. }
            | Phase::Ended
            | Phase::Orphans => self.phase,
        }
    }

    /// Starts to terminate the command, unless that has already started. A command that has ended by itself keeps its
    /// own status, and its orphans are terminated.
    fn terminate(&mut self, status: TaskStatus, message: Option<&str>) {
        if !matches!(self.phase, Phase::Running | Phase::Draining { .. } | Phase::Orphans) {
            return;
        }
        if self.exit.is_none() {
            self.ended_as = Some(status);
            self.message = message.map(str::to_owned);
        }
        // The group's number is the command's pid, which the system may reuse once the command is reaped.
        let group = self.exit.is_none().then_some(self.started.processes.command);
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::TERM);
        }
        // Processes of the group already have the signal.
        for entry in process_table::descendants(getpid()) {
            if group.is_none_or(|group| entry.group != group.as_raw_nonzero().get()) {
                process_table::send(&entry, Signal::TERM);
            }
        }
        self.phase = Phase::Terminating { until: Instant::now() + TERM_GRACE };
    }

    fn kill_descendants(&self) {
        for entry in process_table::descendants(getpid()) {
            process_table::send(&entry, Signal::KILL);
        }
    }

    fn status(&mut self) -> Status {
        let exit = self.exit.unwrap_or_else(|| Exit::now(None, &self.started));
        let exit_code = exit.status.and_then(exit_code);
        let by_itself = if exit_code == Some(0) { TaskStatus::Completed } else { TaskStatus::Failed };
        let said: Vec<String> = self.message.take().into_iter().chain(self.pump.trouble()).collect();
        Status {
            format: FORMAT,
            status: self.ended_as.unwrap_or(by_itself),
            exit_code,
            signal: exit.status.and_then(WaitStatus::terminating_signal),
            started_at: self.started.started_at,
            ended_at: exit.at,
            duration_ms: u64::try_from(exit.after.as_millis()).unwrap_or(u64::MAX),
            printed: self.pump.printed(),
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

/// The exit code as shells report it: 128 plus the signal's number for a signal.
fn exit_code(status: WaitStatus) -> Option<i32> {
    status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal))
}
