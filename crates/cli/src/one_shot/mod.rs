//! One wish, carried through to its end by a process that ends with it.

pub(crate) mod event_loop;
mod memory;

use std::sync::Arc;
use std::time::Duration;

use longhaul_agent::{Config, Patience, Runtime, Session, State, Watcher, load, redactor};
use longhaul_journal::Journal;
use longhaul_protocol::{Outcome, TurnEnded};

use crate::args::{Choice, Place};
use crate::commands::compact::{made_smaller, not_smaller, nothing_to_compact};
use crate::commands::tasks::board;
use crate::commands::tasks::board::{Board, Listed};
use crate::event_printer::{Form, Teller};
use crate::one_shot::event_loop::{Attendant, Left};
use crate::output::{in_words, note, shortened};
use crate::questions::{OpenQuestion, somebody_is_there, unanswered};
use crate::remote_session::Elsewhere;
use crate::session_lookup::refuse_trashed;
use crate::short_id::short;
use crate::signals::{Ends, INTERRUPT};
use crate::turn_handle::{Became, Underway, Wish};
use crate::{BadUsage, config, event_text, exit, panics, suggested_command};

/// How long tidying up may keep anybody waiting; what is not done by then is done the next time.
const TIDYING: Duration = Duration::from_millis(300);

/// A session of which one thing is wanted.
pub(crate) struct OneShot<'a> {
    pub(crate) place: &'a Place,
    pub(crate) choice: &'a Choice,
    pub(crate) key: String,
    pub(crate) form: Form,
    pub(crate) stay: Stay,
}

/// What a process stays for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stay {
    /// The turn.
    ForTurn,
    /// The turn, the tasks that it leaves behind, what comes of those, and what is worth remembering of it all.
    ForTasks,
}

/// Where the session is run.
enum Seat {
    Here(Runtime, Session),
    There(Elsewhere),
}

/// What became of a wish where it was worked on.
enum Sat {
    /// It is done, with this exit code.
    Done(u8),
    /// A signal came.
    Suspended(u8),
    /// Questions are open, and nobody is here to answer them.
    Asked(Vec<OpenQuestion>),
    /// Nobody is there any more; this is left of it, and this is the exit code so far.
    Abandoned(Wish, u8),
}

impl Seat {
    fn begin(&self, wish: Wish, watcher: Option<Watcher>) -> Underway {
        match self {
            Self::Here(runtime, session) => {
                let watcher = watcher.unwrap_or_else(|| session.watch());
                Underway::here(runtime, session, wish, watcher, None)
            }
            Self::There(elsewhere) => Underway::elsewhere(elsewhere.clone(), wish),
        }
    }

    fn journal(&self) -> Arc<dyn Journal> {
        match self {
            Self::Here(runtime, _) => runtime.journal(),
            Self::There(elsewhere) => elsewhere.journal.clone(),
        }
    }

    async fn state(&self) -> anyhow::Result<State> {
        Ok(match self {
            Self::Here(_, session) => session.state().await?,
            Self::There(Elsewhere { journal, key, id, .. }) => load(&**journal, key, *id).await?,
        })
    }

    async fn unanswered(&self) -> anyhow::Result<Vec<OpenQuestion>> {
        let id = match self {
            Self::Here(_, session) => session.id(),
            Self::There(elsewhere) => Some(elsewhere.id),
        };
        let Some(id) = id else { return Ok(vec![]) };
        Ok(unanswered(&*self.journal(), id, &self.state().await?).await?)
    }
}

impl OneShot<'_> {
    /// Sees it through wherever the session is run, and says how it went.
    pub(crate) async fn carry_out(self, wish: Wish) -> anyhow::Result<u8> {
        // Asked before signals are ours, so that Ctrl-C leaves.
        if wish.is_about_a_turn() && self.form != Form::Json && !self.agree_to_exposed_home().await? {
            return Err(BadUsage("nothing was run".to_owned()).into());
        }
        // From here on a signal is ours: one that comes while the journal is opened must not be lost.
        let mut ends = Ends::new()?;
        let mut teller = Teller::new(self.form).in_detail(self.choice.verbose);
        let code = self.see_through(wish, &mut Attendant::new(&mut teller, &mut ends)).await;
        match teller.finish(&mut ends, *code.as_ref().unwrap_or(&exit::FAILED)).await {
            Ok(None) => code,
            Ok(Some(error)) => {
                let show =
                    suggested_command::command(self.place, self.choice, &["sessions", "show", &self.key]);
                note(format!("the answer could not be written ({error}); {show} has it"));
                Ok(code?.max(exit::FAILED))
            }
            Err(number) => Ok(number),
        }
    }

    async fn agree_to_exposed_home(&self) -> anyhow::Result<bool> {
        if !somebody_is_there() {
            return Ok(true);
        }
        let config = Config::load(self.place.folder()?, &self.choice.sources()?)?;
        config::agree_to_exposed_home(self.place, Some(&self.key), config).await
    }

    async fn see_through(&self, mut wish: Wish, attendant: &mut Attendant<'_>) -> anyhow::Result<u8> {
        let mut code = exit::DONE;
        let compacts = matches!(wish, Wish::Compact(_));
        if let Some(elsewhere) = self.elsewhere().await? {
            self.name_session(&wish, attendant.teller);
            match self.sit(&Seat::There(elsewhere), wish.clone(), attendant).await? {
                Sat::Done(code) if self.stay == Stay::ForTasks && code < exit::SIGNAL => {
                    let by_signal = memory::in_a_runtime_of_its_own(self, attendant).await;
                    return Ok(by_signal.unwrap_or(code));
                }
                Sat::Done(code) => return Ok(code),
                Sat::Suspended(number) => {
                    attendant.teller.note(match compacts {
                        true => "the process that runs the session makes it smaller without anybody waiting",
                        false => "the turn goes on in the process that runs it",
                    });
                    return Ok(exit::SIGNAL + number);
                }
                Sat::Asked(open) => {
                    self.say_how_to_answer(&open, attendant.teller);
                    return Ok(exit::ASKED);
                }
                // From here on it is ours to run.
                Sat::Abandoned(left, so_far) => (wish, code) = (left, so_far),
            }
        }
        let config = config::with_model(self.place, self.choice, Patience::OneShot).await?;
        let runtime = tokio::select! {
            opened = Runtime::open(config) => opened?,
            number = attendant.ends.next() => return Ok(exit::SIGNAL + number),
        };
        panics::suspend(&runtime, suggested_command::resume(self.place, self.choice, &self.key));
        let session = runtime.session(&self.key).await?;
        refuse_trashed(&*runtime.journal(), &self.key).await?;
        self.name_session(&wish, attendant.teller);
        let mut sat = self.sit(&Seat::Here(runtime.clone(), session.clone()), wish, attendant).await;
        if let (Stay::ForTasks, Ok(Sat::Done(..exit::SIGNAL))) = (self.stay, &sat)
            && let Some(by_signal) = memory::go_through(&session, attendant).await
        {
            sat = Ok(Sat::Done(by_signal));
        }
        // Whoever only ever runs single turns has old files, too.
        let _ = tokio::time::timeout(TIDYING, runtime.tidy()).await;
        tokio::select! {
            ended = runtime.shutdown() => ended?,
            // Whoever asks twice means it. What is on disk is on disk.
            number = attendant.ends.again() => std::process::exit(i32::from(exit::SIGNAL + number)),
        }
        let resume = suggested_command::resume(self.place, self.choice, &self.key);
        match sat? {
            Sat::Suspended(number) if compacts => {
                attendant.teller.note("stopped; the session is as it was");
                Ok(exit::SIGNAL + number)
            }
            Sat::Done(by_signal) if by_signal > exit::SIGNAL => Ok(by_signal),
            Sat::Done(then) => Ok(first_failure(code, then)),
            Sat::Suspended(number) => {
                attendant.teller.note(format!("suspended; to go on: {resume}"));
                Ok(exit::SIGNAL + number)
            }
            Sat::Asked(open) => {
                self.say_how_to_answer(&open, attendant.teller);
                attendant.teller.note(format!("suspended; then, to go on: {resume}"));
                Ok(exit::ASKED)
            }
            Sat::Abandoned(..) => Ok(exit::FAILED),
        }
    }

    /// Works on a wish where the session is run, and stays for as long as is wanted.
    async fn sit(&self, seat: &Seat, wish: Wish, attendant: &mut Attendant<'_>) -> anyhow::Result<Sat> {
        let (mut stage, mut watcher, mut code) = (wish, None, exit::DONE);
        loop {
            let settles = matches!(stage, Wish::Settle);
            let open = if stage.is_about_a_turn() { seat.unanswered().await? } else { vec![] };
            let underway = seat.begin(stage.clone(), watcher.take());
            let (left, seen_by) = attendant.attend(underway, &stage, open).await?;
            watcher = seen_by;
            let became = match left {
                Left::Suspended(number) if settles => {
                    say_what_ended(attendant);
                    self.say_what_goes_on(seat, attendant.teller).await?;
                    return Ok(Sat::Done(exit::SIGNAL + number));
                }
                Left::Suspended(number) => return Ok(Sat::Suspended(number)),
                Left::Asked(open) => return Ok(Sat::Asked(open)),
                Left::Became(Became::Abandoned) => {
                    return Ok(Sat::Abandoned(stage.abandoned(), code));
                }
                Left::Became(became) => became,
            };
            let outcome = match settles {
                true => say_what_ended(attendant),
                false => self.conclude(&became, &stage, seat, attendant).await?,
            };
            code = first_failure(code, outcome);
            // Whoever ended the turn does not wait for what it left behind.
            let is_given_up = self.stay == Stay::ForTasks && attendant.interrupts > 0;
            stage = match self.stay {
                _ if is_given_up => {
                    self.say_what_goes_on(seat, attendant.teller).await?;
                    return Ok(Sat::Done(exit::SIGNAL + INTERRUPT));
                }
                Stay::ForTasks if !settles => Wish::Settle,
                // It came to rest only because somebody was asked.
                Stay::ForTasks if seat.state().await?.turn.is_some() => Wish::Resume,
                _ => {
                    if !matches!(stage, Wish::Compact(_)) {
                        self.say_what_goes_on(seat, attendant.teller).await?;
                    }
                    return Ok(Sat::Done(code));
                }
            };
        }
    }

    /// Whoever says something learns where the conversation goes on.
    fn name_session(&self, wish: &Wish, teller: &mut Teller) {
        if matches!(wish, Wish::Say(_)) {
            teller.note(format!("session {}", self.key));
        }
    }

    /// The session, if another process runs it now.
    async fn elsewhere(&self) -> anyhow::Result<Option<Elsewhere>> {
        let Some(journal) = self.place.journal().await? else { return Ok(None) };
        let Some(entry) = journal.session(&self.key).await? else { return Ok(None) };
        refuse_trashed(&journal, &self.key).await?;
        let redactor = redactor(&config::load(self.place, self.choice)?)?;
        let elsewhere = Elsewhere {
            journal: Arc::new(journal),
            key: self.key.clone(),
            id: entry.id,
            seen: None,
            redactor,
        };
        let is_held = elsewhere.holder().await?.is_some();
        Ok(is_held.then_some(elsewhere))
    }

    async fn conclude(
        &self,
        became: &Became,
        wish: &Wish,
        seat: &Seat,
        attendant: &mut Attendant<'_>,
    ) -> anyhow::Result<u8> {
        Ok(match became {
            Became::Ended(ended) => {
                self.say_how_it_ended(ended, seat, attendant.teller).await?;
                match ended.outcome {
                    Outcome::Cancelled if attendant.interrupts > 0 => exit::SIGNAL + INTERRUPT,
                    _ => code_of(ended.outcome, ended.code.as_deref()),
                }
            }
            // Whoever reads events has seen it among them.
            Became::Compacted(_) if self.form == Form::Json => exit::DONE,
            Became::Compacted(done) => {
                attendant.teller.outcome(&made_smaller(done));
                exit::DONE
            }
            Became::NotCompacted(reason) => {
                attendant.teller.note(not_smaller(reason));
                exit::FAILED
            }
            Became::Nothing | Became::Abandoned if matches!(wish, Wish::Compact(_)) => {
                attendant.teller.outcome(&nothing_to_compact(&seat.state().await?));
                exit::DONE
            }
            Became::Nothing | Became::Abandoned => {
                let last = seat.state().await?.last_outcome;
                attendant.teller.note(nothing_to(wish, last));
                if *wish == Wish::Resume { exit::DONE } else { exit::FAILED }
            }
        })
    }

    /// What went wrong, and how to go on.
    async fn say_how_it_ended(
        &self,
        ended: &TurnEnded,
        seat: &Seat,
        teller: &mut Teller,
    ) -> anyhow::Result<()> {
        let Some(what) = event_text::end_of_turn(ended.outcome, ended.error.as_deref()) else {
            return Ok(());
        };
        teller.note(what);
        if ended.outcome != Outcome::Cancelled {
            teller.note(format!("to run it again: {}", self.command("retry")));
        }
        if seat.state().await?.interrupted.is_some() {
            teller.note(format!("to go on from what there was: {}", self.command("continue")));
        }
        Ok(())
    }

    /// A command for this session.
    fn command(&self, name: &str) -> String {
        suggested_command::command(self.place, self.choice, &[name, "-s", &self.key])
    }

    /// How whoever reads this can answer what was asked.
    fn say_how_to_answer(&self, open: &[OpenQuestion], teller: &mut Teller) {
        for open in open {
            teller.note(format!("to answer: {}  (or no, or why not)", open.command(&self.key)));
        }
    }

    /// K6: which tasks go on without this process.
    async fn say_what_goes_on(&self, seat: &Seat, teller: &mut Teller) -> anyhow::Result<()> {
        let state = seat.state().await?;
        if state.tasks.running().next().is_none() {
            return Ok(());
        }
        let Some(entry) = seat.journal().session(&self.key).await? else { return Ok(()) };
        let board = Board::new(seat.journal(), &self.place.folder()?)?;
        for task in board.of(&self.key, entry.id).await?.iter().filter(|task| task.is_running()) {
            teller.note(goes_on(task));
        }
        Ok(())
    }
}

/// That a task goes on, and how to see what it does.
pub(crate) fn goes_on(task: &Listed) -> String {
    let id = short(task.id());
    format!("task {id} goes on: {}; longhaul tasks follow {id}", board::what(&task.started))
}

/// Says what became of the turns that the ends of tasks began, where they did not complete.
fn say_what_ended(attendant: &mut Attendant<'_>) -> u8 {
    let mut code = exit::DONE;
    for (outcome, reason, error) in std::mem::take(&mut attendant.ended) {
        if let Some(what) = event_text::end_of_turn(outcome, error.as_deref()) {
            attendant.teller.note(what);
        }
        let by_signal = outcome == Outcome::Cancelled && attendant.interrupts > 0;
        let next = match by_signal {
            true => exit::SIGNAL + INTERRUPT,
            false => code_of(outcome, reason.as_deref()),
        };
        code = first_failure(code, next);
    }
    code
}

/// What went wrong first counts, whatever went well afterwards.
fn first_failure(so_far: u8, next: u8) -> u8 {
    if so_far == exit::DONE { next } else { so_far }
}

/// What scripts learn from how a turn ended.
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
pub(crate) fn nothing_to(wish: &Wish, last: Option<Outcome>) -> String {
    let last = match last {
        None => "there was no turn yet".to_owned(),
        Some(Outcome::Limit) => "the last turn reached a limit".to_owned(),
        Some(outcome) => shortened(&format!("the last turn {}", in_words(outcome)), 80),
    };
    match wish {
        Wish::Retry => format!("nothing to retry: {}", last.replace("turn cancelled", "turn was cancelled")),
        Wish::Continue => "nothing to continue: no answer was interrupted".to_owned(),
        Wish::Say(_) | Wish::Resume | Wish::Settle | Wish::Compact(_) => "nothing is unfinished".to_owned(),
    }
}

#[cfg(test)]
#[path = "one_shot_tests.rs"]
mod tests;
