//! A turn of a conversation, and what may be typed while it runs.

use std::io::IsTerminal;
use std::time::Duration;

use longhaul_agent::{PendingRequest, Request, RequestOutcome, Watched};
use longhaul_protocol::{EventKind, Input, InputId, JoinMode, OrderKind, Outcome, TurnEnded};
use tokio::time::Instant;

use super::line_source::{LineEvent, LineSource};
use super::slash::memory::finish_extraction;
use super::slash::tasks::TurnPhase;
use super::{Chat, ChatStep};
use crate::commands::compact::nothing_to_compact;
use crate::one_shot::{code_of, nothing_to};
use crate::output::{format_duration, truncate, turn_failure_text};
use crate::session_lookup::refuse_trashed;
use crate::signals::SIGINT;
use crate::tui::chat::slash::{Availability, SlashAction, SlashCommand, SlashInput, parse_line};
use crate::tui::terminal::Terminal;
use crate::tui::{Activity, ScreenUpdate};
use crate::{exit, panics};

/// From here on a wait is counted down, and the ways out of it are shown.
const LONG_WAIT_MS: u64 = 60_000;

/// What was asked for while a turn ran.
#[derive(Default)]
struct Meanwhile {
    /// Something was said that joins it, or comes after it.
    said_more: bool,
    /// The user wants to leave when the turn has ended.
    leaves: bool,
    /// The user has cancelled the turn.
    is_cancelled: bool,
    interrupts: u32,
    countdown: Option<Countdown>,
    /// What began the turn is on its way into the inbox; what is typed now must come after it.
    is_accepted: bool,
}

/// The reply to a line that is typed after the user asked to leave.
const LEAVING: &str = "this was not taken: the conversation ends when the turn has ended; Esc ends it now";

/// An input that another process runs is accepted without a word; after this it surely is.
const ACCEPTED_WITHIN: Duration = Duration::from_millis(500);

/// A long wait before a retry.
struct Countdown {
    class: String,
    until: Instant,
    next: Instant,
}

impl Chat<'_> {
    /// Sees a turn through, and what was said while it ran.
    pub(super) async fn turn(&mut self, request: Request) -> anyhow::Result<ChatStep> {
        if let Err(error) = refuse_trashed(&*self.runtime.journal(), self.session.key()).await {
            self.printer.note(format!("{error:#}"));
            self.code = exit::BAD_USAGE;
            return Ok(ChatStep::Line);
        }
        let mut request = request;
        let mut is_first = true;
        loop {
            let mut meanwhile = Meanwhile::default();
            let outcome = match self.attend(&request, &mut meanwhile).await? {
                Ok(outcome) => outcome,
                Err(next) => return Ok(next),
            };
            match outcome {
                RequestOutcome::Ended(ended) => self.say_how_it_ended(&ended).await?,
                // What is shown of it as it happens says it.
                RequestOutcome::Compacted(_) => {}
                RequestOutcome::NotCompacted(_) => self.code = exit::FAILED,
                RequestOutcome::Nothing | RequestOutcome::Abandoned
                    if matches!(request, Request::Compact(_)) =>
                {
                    let state = self.session.state().await?;
                    self.printer.note(nothing_to_compact(&state));
                }
                RequestOutcome::Nothing | RequestOutcome::Abandoned if is_first => {
                    let last = self.session.state().await?.last_outcome;
                    self.printer.note(nothing_to(&request, last));
                }
                RequestOutcome::Nothing | RequestOutcome::Abandoned | RequestOutcome::Settled(_) => {}
            }
            match meanwhile {
                Meanwhile { leaves: true, .. } => return Ok(ChatStep::Leave),
                Meanwhile { said_more: true, .. } => (request, is_first) = (Request::Resume, false),
                _ => return Ok(ChatStep::Line),
            }
        }
    }

    /// Shows what happens until the turn is over, and heeds what is typed; or says why this is left before.
    async fn attend(
        &mut self,
        request: &Request,
        meanwhile: &mut Meanwhile,
    ) -> anyhow::Result<Result<RequestOutcome, ChatStep>> {
        let mut pending = self.events.begin(request.clone());
        meanwhile.is_accepted = !matches!(request, Request::Send(_));
        self.printer.tell(ScreenUpdate::Activity(Activity::Turn));
        let accepted_by = Instant::now() + ACCEPTED_WITHIN;
        if let Request::Send(_) = request {
            self.show_questions();
        }
        loop {
            let is_asked = !self.questions.is_empty();
            if is_asked && meanwhile.is_accepted && meanwhile.leaves && !meanwhile.is_cancelled {
                return Ok(Err(self.leave_asked()));
            }
            // A user who waits to leave may still cancel the turn. On a screen Ctrl-C is a key, so keys must be read.
            let heeds_keys = !meanwhile.leaves || matches!(self.lines, LineSource::Screen(_));
            let Self { lines, signals, remembering, .. } = self;
            let typing = async { if is_asked { lines.next().await } else { lines.next_during_turn().await } };
            let tick = meanwhile.countdown.as_ref().map(|countdown| countdown.next);
            tokio::select! {
                biased;
                number = signals.next() => match number {
                    SIGINT => self.interrupted(&mut pending, meanwhile).await,
                    // SIGTERM and the like: the turn stays open.
                    number => return Ok(Err(ChatStep::Suspend(number))),
                },
                watched = pending.next() => match watched {
                    Some(watched) => {
                        panics::panic_for_tests(&watched);
                        self.show(&watched, meanwhile);
                    }
                    None => break,
                },
                done = finish_extraction(remembering) => self.note_extraction(done),
                () = tokio::time::sleep_until(accepted_by), if !meanwhile.is_accepted => {
                    meanwhile.is_accepted = true;
                }
                typed = typing, if meanwhile.is_accepted && heeds_keys => match typed {
                    LineEvent::Line(_) if meanwhile.leaves => self.printer.note(LEAVING),
                    LineEvent::Line(line) => self.heed(&line, &mut pending, meanwhile).await?,
                    // It leaves when the turn has ended by itself.
                    LineEvent::End => {
                        meanwhile.leaves = true;
                        if let LineSource::Screen(_) = self.lines {
                            self.printer.note("this leaves when the turn has ended; Ctrl-C ends it now");
                        }
                    }
                    LineEvent::Interrupt => self.interrupted(&mut pending, meanwhile).await,
                    LineEvent::Escape => {
                        meanwhile.is_cancelled = true;
                        pending.cancel();
                    }
                    LineEvent::Lost => return Ok(Err(ChatStep::Suspend(1))),
                },
                () = at(tick), if tick.is_some() => self.count_down(meanwhile),
            }
        }
        self.end_countdown(meanwhile);
        self.printer.tell(ScreenUpdate::Activity(Activity::Idle));
        Ok(Ok(match self.events.finish(pending).await {
            Ok(outcome) => outcome,
            Err(error) => {
                self.printer.note(error);
                self.code = exit::FAILED;
                return Ok(Err(if meanwhile.leaves { ChatStep::Leave } else { ChatStep::Line }));
            }
        }))
    }

    /// Ctrl-C ends the turn; once more, the process.
    async fn interrupted(&mut self, pending: &mut PendingRequest, meanwhile: &mut Meanwhile) {
        if meanwhile.interrupts > 0 {
            self.leave_at_once(SIGINT).await;
        }
        meanwhile.interrupts += 1;
        meanwhile.is_cancelled = true;
        // Ctrl-C during a script ends the script, not only this turn.
        if !self.lines.is_interactive() {
            meanwhile.leaves = true;
            self.code = exit::SIGNAL + SIGINT;
        }
        pending.cancel();
    }

    fn show(&mut self, watched: &Watched, meanwhile: &mut Meanwhile) {
        self.end_countdown(meanwhile);
        self.see(watched);
        let Watched::Event(event) = watched else { return };
        meanwhile.is_accepted |=
            matches!(event.kind, EventKind::InputAccepted { .. } | EventKind::InputTaken { .. });
        if let EventKind::RetryWait { class, delay_ms, .. } = &event.kind
            && *delay_ms > LONG_WAIT_MS
            && matches!(self.lines, LineSource::Plain(_))
            && std::io::stderr().is_terminal()
        {
            let now = Instant::now();
            let until = now + Duration::from_millis(*delay_ms);
            meanwhile.countdown = Some(Countdown { class: class.replace('_', " "), until, next: now });
        }
    }

    /// M5: nothing waits for long without a word, and there are ways out.
    fn count_down(&mut self, meanwhile: &mut Meanwhile) {
        let Some(countdown) = &mut meanwhile.countdown else { return };
        let now = Instant::now();
        let left = countdown.until.saturating_duration_since(now);
        let left = format_duration(u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
        let text =
            format!("{}: next try in {left}; /retry, /model NAME or Ctrl-C end the wait", countdown.class);
        // One that is longer than the terminal is wide could not be written over.
        let line = format!("\r{}\x1b[K", truncate(&text, Terminal::width().saturating_sub(2)));
        countdown.next = now + Duration::from_secs(1);
        self.printer.raw_aside(&line);
    }

    fn end_countdown(&mut self, meanwhile: &mut Meanwhile) {
        if meanwhile.countdown.take().is_some() {
            self.printer.raw_aside("\r\x1b[K");
        }
    }

    /// Something was typed while the turn runs.
    async fn heed(
        &mut self,
        line: &str,
        pending: &mut PendingRequest,
        meanwhile: &mut Meanwhile,
    ) -> anyhow::Result<()> {
        let entry = parse_line(line);
        if let SlashInput::Command(..) = entry {
            self.session.touch();
        }
        match entry {
            SlashInput::Nothing => {}
            SlashInput::Mistake(words) => self.printer.note(words),
            SlashInput::Say(text) if self.takes_for_answer(&text).await => {}
            SlashInput::Say(text) => {
                let input = Input { id: InputId::generate(), text, images: vec![], mode: JoinMode::Join };
                match self.session.put(input, None).await {
                    Ok(_) => meanwhile.said_more = true,
                    Err(error) => self.printer.note(error),
                }
                self.show_questions();
            }
            SlashInput::Command(SlashCommand { name, when: Availability::BetweenTurns, .. }, _) => {
                self.printer.note(format!("{name} is for between turns; Ctrl-C ends this one"));
            }
            SlashInput::Command(row, arguments) => match row.action {
                SlashAction::Cancel => {
                    meanwhile.is_cancelled = true;
                    pending.cancel();
                }
                SlashAction::Exit => {
                    (meanwhile.leaves, meanwhile.is_cancelled) = (true, true);
                    pending.cancel();
                }
                SlashAction::Answer => self.answer_command(&arguments).await,
                // Ends a wait before a retry, in whichever process the turn runs.
                SlashAction::Retry => self.session.order(OrderKind::Retry).await?,
                SlashAction::Session => drop(self.session_command(&arguments, TurnPhase::DuringTurn).await?),
                action => self.run_command(action, &arguments, TurnPhase::DuringTurn).await,
            },
        }
        Ok(())
    }

    async fn say_how_it_ended(&mut self, ended: &TurnEnded) -> anyhow::Result<()> {
        let Some(what) = turn_failure_text(ended.outcome, ended.error.as_deref()) else {
            // At a terminal an earlier failure was shown and is over. A script still exits with its code.
            if self.lines.is_interactive() {
                self.code = exit::DONE;
            }
            return Ok(());
        };
        let mut ways = Vec::new();
        if ended.outcome != Outcome::Cancelled {
            self.code = code_of(ended.outcome, ended.code.as_deref());
            ways.push("/retry runs it again");
        }
        if self.session.state().await?.interrupted_answer.is_some() {
            ways.push("/continue goes on from what there was");
        }
        self.printer.note(what);
        if !ways.is_empty() {
            self.printer.note(ways.join(", "));
        }
        Ok(())
    }
}

async fn at(time: Option<Instant>) {
    if let Some(time) = time {
        tokio::time::sleep_until(time).await;
    }
}
