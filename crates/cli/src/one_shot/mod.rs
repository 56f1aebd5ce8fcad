//! `run`, `resume`, `retry`, `continue` and `compact`: a process that carries out one request and ends.

pub(crate) mod event_loop;
mod memory;

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use longhaul_agent::tasks::{TaskEntry, TaskRegistry};
use longhaul_agent::{
    Client, Config, EventSources, Request, RequestOutcome, RetryMode, Runtime, RuntimeBuilder, Session,
    UserMessage, attach_references, nothing_to_continue, nothing_to_retry, redactor,
};
use longhaul_journal::Journal;
use longhaul_protocol::{Outcome, PrintablePath, TurnEnded};
use longhaul_transcript::Verbosity;

use crate::args::GlobalArgs;
use crate::commands::compact::{made_smaller, not_smaller, nothing_to_compact};
use crate::commands::tasks::lookup::description;
use crate::event_printer::{EventPrinter, Form};
use crate::one_shot::event_loop::{EventLoop, StageEnd};
use crate::output::{note, turn_failure_text};
use crate::permission::set_flagged_mode;
use crate::questions::{OpenQuestion, answer_command, has_terminal};
use crate::session_lookup::refuse_trashed;
use crate::short_id::short;
use crate::signals::{ExitSignals, SIGINT};
use crate::{bad_usage, config, exit, panics, suggested_command};

/// How long cleaning up may delay the end of the process; the next process does the rest.
const CLEANUP_GRACE: Duration = Duration::from_millis(300);

/// One request to one session.
pub(crate) struct OneShot<'a> {
    pub(crate) globals: &'a GlobalArgs,
    pub(crate) key: String,
    /// Whether the key was made for this request, so that no process can have the session.
    pub(crate) is_new: bool,
    /// Whether the user typed the message. Then it may take something from MCP servers: `@server:uri`, `/server:prompt`.
    pub(crate) is_typed: bool,
    pub(crate) form: Form,
    pub(crate) stay: Stay,
}

/// What the process waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stay {
    /// The turn.
    ForTurn,
    /// The turn, its background tasks, the turns that their ends begin, and the extraction of memory.
    ForTasks,
}

/// How far a request came in one process.
enum StageOutcome {
    /// It is done, with this exit code.
    Done(u8),
    /// A signal suspends this process.
    Suspended(u8),
    /// Questions are open, and no user is at the terminal to answer them.
    Asked(Vec<OpenQuestion>),
    /// The process that ran the session is gone. This is left of the request, and this is the exit code so far.
    Abandoned(Request, u8),
}

/// Where a session runs.
enum SessionPlace {
    /// In another process. Then this one needs neither a model nor a runtime.
    Elsewhere(Session),
    /// In this process, with the journal if there is one already.
    Here(Option<Arc<dyn Journal>>),
}

/// Which process goes on with what is left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunBy {
    /// None: this process ran the session, and is about to end.
    ThisProcess,
    AnotherProcess,
}

impl OneShot<'_> {
    /// Carries the request out wherever the session runs, and returns the exit code.
    pub(crate) async fn carry_out(self, request: Request) -> anyhow::Result<u8> {
        // Asked before signals are ours, so that Ctrl-C leaves.
        if request.is_about_a_turn() && self.form != Form::Json && !self.agree_to_exposed_home().await? {
            return Err(bad_usage("stopped; nothing was run"));
        }
        // From here on a signal is ours: one that comes while the journal is opened must not be lost.
        let mut signals = ExitSignals::new()?;
        let mut printer = EventPrinter::new(self.form, Verbosity::from_count(self.globals.verbose));
        let code = self.see_through(request, &mut EventLoop::new(&mut printer, &mut signals)).await;
        match printer.finish(&mut signals, *code.as_ref().unwrap_or(&exit::FAILED)).await {
            Ok(None) => code,
            Ok(Some(error)) => {
                let show = suggested_command::command(self.globals, &["sessions", "show", &self.key]);
                note(format!("could not write the answer: {error}; to see it: {show}"));
                Ok(code?.max(exit::FAILED))
            }
            Err(number) => Ok(number),
        }
    }

    async fn agree_to_exposed_home(&self) -> anyhow::Result<bool> {
        if !has_terminal() {
            return Ok(true);
        }
        let config = Config::load(self.globals.home_dir()?, &self.globals.sources()?)?;
        config::agree_to_exposed_home(self.globals, Some(&self.key), config).await
    }

    async fn see_through(&self, mut request: Request, watch: &mut EventLoop<'_>) -> anyhow::Result<u8> {
        let (mut code, mut runtime) = (exit::DONE, None);
        let mut place = self.find_session().await?;
        let (session, mut outcome) = loop {
            let session = match std::mem::replace(&mut place, SessionPlace::Here(None)) {
                SessionPlace::Elsewhere(session) => session,
                SessionPlace::Here(journal) => {
                    let config = config::with_model(self.globals, RetryMode::OneShot).await?;
                    self.name_instructions(&request, &config, watch.printer);
                    let builder = RuntimeBuilder::new(config).for_one_turn();
                    let builder = match journal {
                        Some(journal) => builder.journal(journal),
                        None => builder,
                    };
                    let opened = tokio::select! {
                        opened = builder.open() => opened?,
                        number = watch.signals.next() => return Ok(exit::SIGNAL + number),
                    };
                    self.session_here(runtime.insert(opened)).await?
                }
            };
            if let Request::Send(message) = &mut request
                && self.is_typed
            {
                let attached = tokio::select! {
                    attached = self.attach_references(runtime.as_ref(), &session, message.clone()) => attached,
                    number = watch.signals.next() => {
                        break (session, Ok(StageOutcome::Done(exit::SIGNAL + number)));
                    }
                };
                match attached {
                    Ok(attached) => *message = attached,
                    Err(error) => break (session, Err(error)),
                }
            }
            self.name_session(&request, watch.printer);
            set_flagged_mode(self.globals, &session).await?;
            match self.run_stages(&session, request.clone(), watch).await {
                // The process that ran the session is gone. From here on this one runs it.
                Ok(StageOutcome::Abandoned(left, so_far)) if runtime.is_none() => {
                    (request, code) = (left, so_far);
                }
                outcome => break (session, outcome),
            }
        };
        if let (Stay::ForTasks, Ok(StageOutcome::Done(..exit::SIGNAL))) = (self.stay, &outcome) {
            let by_signal = match &runtime {
                Some(_) => memory::extract(&session, watch).await,
                None => memory::extract_in_own_runtime(self, watch).await,
            };
            outcome = by_signal.map_or(outcome, |code| Ok(StageOutcome::Done(code)));
        }
        let run_by = match &runtime {
            Some(runtime) => {
                self.shut_down(runtime, watch).await?;
                RunBy::ThisProcess
            }
            None => RunBy::AnotherProcess,
        };
        Ok(match outcome? {
            StageOutcome::Done(by_signal) if by_signal > exit::SIGNAL => by_signal,
            StageOutcome::Done(then) => first_failure(code, then),
            outcome => self.report_open_work(outcome, &request, run_by, watch.printer),
        })
    }

    /// The message with what it takes from MCP servers.
    async fn attach_references(
        &self,
        runtime: Option<&Runtime>,
        session: &Session,
        message: UserMessage,
    ) -> anyhow::Result<UserMessage> {
        let attached = match runtime {
            Some(runtime) => runtime.session_servers(session).await?.attach(message).await,
            None => attach_references(&config::load(self.globals)?, message).await?,
        };
        attached.map_err(|why| bad_usage(format!("{why}; nothing was sent")))
    }

    /// The session in the runtime of this process.
    async fn session_here(&self, runtime: &Runtime) -> anyhow::Result<Session> {
        panics::register_runtime(runtime, suggested_command::resume(self.globals, &self.key));
        let session = runtime.session(&self.key).await?;
        refuse_trashed(&*runtime.journal(), &self.key).await?;
        Ok(session)
    }

    async fn shut_down(&self, runtime: &Runtime, watch: &mut EventLoop<'_>) -> anyhow::Result<()> {
        // A home in which only single turns run needs cleaning up, too.
        let _ = tokio::time::timeout(CLEANUP_GRACE, runtime.tidy()).await;
        tokio::select! {
            ended = runtime.shutdown() => Ok(ended?),
            // A second signal ends the process at once; the journal has everything.
            number = watch.signals.next_deliberate() => std::process::exit(i32::from(exit::SIGNAL + number)),
        }
    }

    /// Tells the user how what this process leaves open goes on, and returns the exit code.
    fn report_open_work(
        &self,
        outcome: StageOutcome,
        request: &Request,
        run_by: RunBy,
        printer: &mut EventPrinter,
    ) -> u8 {
        let resume = suggested_command::resume(self.globals, &self.key);
        match outcome {
            StageOutcome::Done(code) => code,
            StageOutcome::Suspended(number) => {
                printer.note(match (run_by, request) {
                    (RunBy::ThisProcess, Request::Compact(_)) => {
                        "stopped; the session is unchanged".to_owned()
                    }
                    (RunBy::ThisProcess, _) => format!("suspended; to resume: {resume}"),
                    (RunBy::AnotherProcess, Request::Compact(_)) => {
                        "stopped waiting; the process that runs the session will compact it".to_owned()
                    }
                    (RunBy::AnotherProcess, _) => {
                        "stopped waiting; the turn goes on in another process".to_owned()
                    }
                });
                exit::SIGNAL + number
            }
            StageOutcome::Asked(open) => {
                self.say_how_to_answer(&open, printer);
                if run_by == RunBy::ThisProcess {
                    printer.note(format!("suspended; after answering, to resume: {resume}"));
                }
                exit::ASKED
            }
            StageOutcome::Abandoned(..) => exit::FAILED,
        }
    }

    /// Carries a request out, then waits for tasks if wanted: each stage is a request of its own.
    async fn run_stages(
        &self,
        session: &Session,
        request: Request,
        watch: &mut EventLoop<'_>,
    ) -> anyhow::Result<StageOutcome> {
        let (mut stage, mut code) = (request, exit::DONE);
        let mut events = session.events(EventSources::ThisProcess);
        loop {
            let settles = matches!(stage, Request::Settle);
            let open = if stage.is_about_a_turn() { session.open_questions().await? } else { vec![] };
            let open = open.iter().map(OpenQuestion::from).filter(OpenQuestion::is_awaited).collect();
            let outcome = match watch.run(&mut events, &stage, open).await? {
                StageEnd::Suspended(number) if settles => {
                    say_what_ended(watch);
                    self.say_what_goes_on(session, watch.printer).await?;
                    return Ok(StageOutcome::Done(exit::SIGNAL + number));
                }
                StageEnd::Suspended(number) => return Ok(StageOutcome::Suspended(number)),
                StageEnd::Asked(open) => return Ok(StageOutcome::Asked(open)),
                StageEnd::Outcome(RequestOutcome::Abandoned) => {
                    return Ok(StageOutcome::Abandoned(stage.after_handover(), code));
                }
                StageEnd::Outcome(outcome) => outcome,
            };
            let stage_code = match settles {
                true => say_what_ended(watch),
                false => self.report(&outcome, &stage, session, watch).await?,
            };
            code = first_failure(code, stage_code);
            // A user who cancelled the turn does not wait for its tasks.
            let is_given_up = self.stay == Stay::ForTasks && watch.interrupts > 0;
            stage = match self.stay {
                _ if is_given_up => {
                    self.say_what_goes_on(session, watch.printer).await?;
                    return Ok(StageOutcome::Done(exit::SIGNAL + SIGINT));
                }
                Stay::ForTasks if !settles => Request::Settle,
                // The session settled only because it asked a question.
                Stay::ForTasks if session.state().await?.turn.is_some() => Request::Resume,
                _ => {
                    if !matches!(stage, Request::Compact(_)) && !leaves_nothing(&outcome) {
                        self.say_what_goes_on(session, watch.printer).await?;
                    }
                    if let Some(plan) = watch.plan.take() {
                        let accept = answer_command(&self.key, plan.id, plan.kind);
                        let resume = self.command("resume");
                        watch.printer.note(format!("to accept the plan: {accept}; then {resume}"));
                    }
                    return Ok(StageOutcome::Done(code));
                }
            };
        }
    }

    /// Names the session, so that the user can go on with it.
    fn name_session(&self, request: &Request, printer: &mut EventPrinter) {
        if matches!(request, Request::Send(_)) {
            printer.note(format!("session {}", self.key));
        }
    }

    /// Says at a terminal which files with instructions are read for a new session.
    fn name_instructions(&self, request: &Request, config: &Config, printer: &mut EventPrinter) {
        if matches!(request, Request::Send(_))
            && std::io::stderr().is_terminal()
            && let Some(line) = config::instructions_line(config, &config.work_dir)
        {
            printer.note(line);
        }
    }

    /// Looks whether another process holds the session now.
    async fn find_session(&self) -> anyhow::Result<SessionPlace> {
        if self.is_new {
            return Ok(SessionPlace::Here(None));
        }
        let Some(journal) = self.globals.open_journal().await? else { return Ok(SessionPlace::Here(None)) };
        let journal: Arc<dyn Journal> = Arc::new(journal);
        if journal.session(&self.key).await?.is_none() {
            return Ok(SessionPlace::Here(Some(journal)));
        }
        refuse_trashed(&*journal, &self.key).await?;
        let redactor = redactor(&config::load(self.globals)?)?;
        let session = Client::new(journal.clone(), redactor).session(&self.key).await?;
        Ok(match session.other_holder().await? {
            Some(_) => SessionPlace::Elsewhere(session),
            None => SessionPlace::Here(Some(journal)),
        })
    }

    /// Says what came of a request, and returns the exit code.
    async fn report(
        &self,
        outcome: &RequestOutcome,
        request: &Request,
        session: &Session,
        watch: &mut EventLoop<'_>,
    ) -> anyhow::Result<u8> {
        Ok(match outcome {
            RequestOutcome::Ended(ended) => {
                self.say_how_it_ended(ended, session, watch.printer).await?;
                match ended.outcome {
                    Outcome::Cancelled if watch.interrupts > 0 => exit::SIGNAL + SIGINT,
                    _ => code_of(ended.outcome, ended.code.as_deref()),
                }
            }
            // The JSON events have it.
            RequestOutcome::Compacted(_) if self.form == Form::Json => exit::DONE,
            RequestOutcome::Compacted(done) => {
                watch.printer.outcome(&made_smaller(done));
                exit::DONE
            }
            RequestOutcome::NotCompacted(reason) => {
                watch.printer.note(not_smaller(reason));
                exit::FAILED
            }
            RequestOutcome::Nothing | RequestOutcome::Abandoned if matches!(request, Request::Compact(_)) => {
                watch.printer.outcome(&nothing_to_compact(&session.state().await?));
                exit::DONE
            }
            _ => {
                let last = session.state().await?.last_outcome;
                watch.printer.note(nothing_to(request, last));
                if *request == Request::Resume { exit::DONE } else { exit::FAILED }
            }
        })
    }

    /// What went wrong, and how to go on.
    async fn say_how_it_ended(
        &self,
        ended: &TurnEnded,
        session: &Session,
        printer: &mut EventPrinter,
    ) -> anyhow::Result<()> {
        let Some(what) = turn_failure_text(ended.outcome, ended.error.as_deref()) else {
            return Ok(());
        };
        printer.note(what);
        match limit_to_raise(ended) {
            Some(limit) => {
                let file = config::user_file(self.globals)?;
                let (file, retry) = (file.printable(), self.command("retry"));
                printer.note(format!("to go on: raise {limit} in {file}, then {retry}"));
            }
            None if ended.outcome != Outcome::Cancelled => {
                printer.note(format!("to retry: {}", self.command("retry")));
            }
            None => {}
        }
        if session.state().await?.interrupted_answer.is_some() {
            printer.note(format!("to continue the answer: {}", self.command("continue")));
        }
        Ok(())
    }

    /// A command for this session.
    fn command(&self, name: &str) -> String {
        suggested_command::command(self.globals, &[name, "-s", &self.key])
    }

    /// Says how the user can answer the open questions.
    fn say_how_to_answer(&self, open: &[OpenQuestion], printer: &mut EventPrinter) {
        for open in open {
            printer.note(open.how_to_answer(&self.key));
        }
    }

    /// K6: says which tasks go on without this process.
    async fn say_what_goes_on(&self, session: &Session, printer: &mut EventPrinter) -> anyhow::Result<()> {
        let state = session.state().await?;
        if state.tasks.running().next().is_none() {
            return Ok(());
        }
        let Some(id) = session.id() else { return Ok(()) };
        let board = TaskRegistry::new(session.journal().clone(), &self.globals.home_dir()?)?;
        for task in board.of_session(&self.key, id).await?.iter().filter(|task| task.is_running()) {
            printer.note(goes_on(task));
        }
        Ok(())
    }
}

/// Whether the last record of a turn says that the session has no tasks and no questions.
fn leaves_nothing(outcome: &RequestOutcome) -> bool {
    matches!(outcome, RequestOutcome::Ended(ended) if ended.inbox_through.is_some())
}

/// The limit that ended a turn, if another turn would reach it as well: all but those of one turn.
pub(crate) fn limit_to_raise(ended: &TurnEnded) -> Option<&str> {
    let error = ended.error.as_deref().filter(|_| ended.outcome == Outcome::Limit)?;
    let name = &error[error.find("limits.")?..];
    let end = name.find(|letter: char| letter != '.' && letter != '_' && !letter.is_ascii_alphanumeric());
    let name = &name[..end.unwrap_or(name.len())];
    let lasts = ["_per_session", "_per_day", "_per_month", "cost_total"];
    lasts.iter().any(|period| name.ends_with(period)).then_some(name)
}

/// Says that a task goes on, and how to follow it.
pub(crate) fn goes_on(task: &TaskEntry) -> String {
    let id = short(task.id());
    if task.started.session.is_some() {
        let what = description(&task.started);
        return format!(
            "subagent {id} is not done: {what}; it goes on when longhaul runs again, or with `longhaul serve`"
        );
    }
    format!(
        "task {id} keeps running: {}; to follow it: longhaul tasks follow {id}",
        description(&task.started)
    )
}

/// Reports the turns that task ends began and that did not complete; returns the exit code.
fn say_what_ended(watch: &mut EventLoop<'_>) -> u8 {
    let mut code = exit::DONE;
    for (outcome, reason, error) in std::mem::take(&mut watch.ended) {
        if let Some(what) = turn_failure_text(outcome, error.as_deref()) {
            watch.printer.note(what);
        }
        let by_signal = outcome == Outcome::Cancelled && watch.interrupts > 0;
        let next = match by_signal {
            true => exit::SIGNAL + SIGINT,
            false => code_of(outcome, reason.as_deref()),
        };
        code = first_failure(code, next);
    }
    code
}

/// The first failure decides the exit code.
fn first_failure(so_far: u8, next: u8) -> u8 {
    if so_far == exit::DONE { next } else { so_far }
}

/// The exit code for the outcome of a turn.
pub(crate) fn code_of(outcome: Outcome, code: Option<&str>) -> u8 {
    match (outcome, code) {
        (Outcome::Completed, _) => exit::DONE,
        (Outcome::Limit, _) => exit::LIMIT,
        (Outcome::Failed, Some("throttled" | "quota")) => exit::THROTTLED,
        (Outcome::Failed, Some("offline" | "unreachable")) => exit::OFFLINE,
        (Outcome::Failed, Some("context_too_long")) => exit::TOO_LONG,
        (Outcome::Failed | Outcome::Cancelled, _) => exit::FAILED,
    }
}

/// Why there was nothing to do.
pub(crate) fn nothing_to(request: &Request, last: Option<Outcome>) -> String {
    match request {
        Request::Retry => nothing_to_retry(last),
        Request::Continue => nothing_to_continue(),
        _ => "nothing to resume".to_owned(),
    }
}

#[cfg(test)]
#[path = "one_shot_tests.rs"]
mod tests;
