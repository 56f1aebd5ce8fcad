//! A turn of the chat, and the lines and keys that the user may enter while it runs.

use std::io::IsTerminal;
use std::time::Duration;

use longhaul_agent::{PendingRequest, Request, RequestOutcome, Watched};
use longhaul_protocol::{EventKind, JoinMode, OrderKind, Outcome, TurnEnded};
use tokio::time::Instant;

use super::line_source::{LineEvent, LineSource};
use super::user_command::UserCommand;
use super::{Chat, ChatStep, slash};
use crate::commands::compact::nothing_to_compact;
use crate::event_printer::EventPrinter;
use crate::one_shot::{code_of, limit_to_raise, nothing_to};
use crate::output::{format_duration, truncate, turn_failure_text};
use crate::session_lookup::refuse_trashed;
use crate::signals::SIGINT;
use crate::tui::chat::slash::{Availability, SlashAction, SlashCommand, SlashInput, TurnPhase};
use crate::tui::terminal::Terminal;
use crate::tui::{Activity, ScreenUpdate};
use crate::{exit, panics};

/// From here on a wait is counted down, and the ways out of it are shown.
const LONG_WAIT_MS: u64 = 60_000;

/// What the user has entered while a turn runs.
#[derive(Default)]
struct TurnInput {
    /// The user sent an input, which joins the turn or begins the next one.
    has_more_input: bool,
    /// The user wants to leave when the turn has ended.
    leaves: bool,
    /// The user has cancelled the turn.
    is_cancelled: bool,
    interrupt_count: u32,
    countdown: Option<Countdown>,
    /// The input that begins the turn is in the inbox. Before that, no line is read: a later input must come after it.
    is_accepted: bool,
}

/// Why the first of several requests is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstRequest {
    /// The user asked for it, and is told if there was nothing to do.
    Asked,
    /// The user's message is in the inbox of a running turn, which may have ended by now.
    Joined,
}

/// The reply to a line that is typed after the user asked to leave.
const LEAVING: &str = "not sent: longhaul exits when the turn ends; Esc cancels it now";

/// How long an input takes to reach the inbox at most. Another process that runs the turn does not announce it.
const ACCEPTED_WITHIN: Duration = Duration::from_millis(500);

/// A long wait before a retry, counted down on a plain terminal.
struct Countdown {
    class: String,
    until: Instant,
    next_tick: Instant,
}

impl Countdown {
    /// The countdown that an event begins, if the wait is long.
    fn of_event(kind: &EventKind) -> Option<Self> {
        match kind {
            EventKind::RetryWait { class, delay_ms, .. } if *delay_ms > LONG_WAIT_MS => {
                let now = Instant::now();
                let until = now + Duration::from_millis(*delay_ms);
                Some(Self { class: class.replace('_', " "), until, next_tick: now })
            }
            _ => None,
        }
    }

    /// M5: shows how long the wait still takes, and the ways out of it.
    fn show(&mut self, printer: &mut EventPrinter) {
        let now = Instant::now();
        let left = self.until.saturating_duration_since(now);
        let left = format_duration(u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
        let text = format!(
            "{}: retrying in {left} (/retry now, /model NAME to switch, Ctrl-C to cancel)",
            self.class
        );
        // One that is longer than the terminal is wide could not be written over.
        let line = format!("\r{}\x1b[K", truncate(&text, Terminal::width().saturating_sub(2)));
        self.next_tick = now + Duration::from_secs(1);
        printer.raw_aside(&line);
    }

    /// Removes a countdown from the terminal.
    fn end(countdown: &mut Option<Self>, printer: &mut EventPrinter) {
        if countdown.take().is_some() {
            printer.raw_aside("\r\x1b[K");
        }
    }
}

impl Chat<'_> {
    /// Runs a request to its end, and then the turns for what the user sent meanwhile.
    pub(super) async fn run_turn(&mut self, request: Request) -> anyhow::Result<ChatStep> {
        let may_run = match request {
            Request::Send(_) => self.may_send().await?,
            _ => !self.is_in_trash().await,
        };
        if !may_run {
            return Ok(ChatStep::Line);
        }
        self.run_turns(request, FirstRequest::Asked).await
    }

    /// Waits for the end of a turn that the user's message joins, and then runs the turns for what was sent meanwhile.
    pub(super) async fn follow_turn(&mut self) -> anyhow::Result<ChatStep> {
        self.run_turns(Request::Resume, FirstRequest::Joined).await
    }

    /// Whether the session takes messages. It says why not, and sets the mode that the first message needs.
    pub(super) async fn may_send(&mut self) -> anyhow::Result<bool> {
        if self.is_in_trash().await {
            return Ok(false);
        }
        self.set_wanted_mode().await?;
        Ok(true)
    }

    async fn is_in_trash(&mut self) -> bool {
        let Err(error) = refuse_trashed(&*self.runtime.journal(), self.session.key()).await else {
            return false;
        };
        self.printer.note(format!("{error:#}"));
        self.exit_code = exit::BAD_USAGE;
        true
    }

    async fn run_turns(&mut self, request: Request, first: FirstRequest) -> anyhow::Result<ChatStep> {
        let (mut request, mut first) = (request, Some(first));
        loop {
            let has_more_input = first == Some(FirstRequest::Joined);
            let mut turn_input = TurnInput { has_more_input, ..TurnInput::default() };
            let outcome = match self.run_request(&request, &mut turn_input).await? {
                Ok(outcome) => outcome,
                Err(next) => return Ok(next),
            };
            match outcome {
                RequestOutcome::Ended(ended) => self.note_outcome(&ended).await?,
                // Its events have shown it.
                RequestOutcome::Compacted(_) => {}
                RequestOutcome::NotCompacted(_) => self.exit_code = exit::FAILED,
                RequestOutcome::Nothing | RequestOutcome::Abandoned
                    if matches!(request, Request::Compact(_)) =>
                {
                    let state = self.session.state().await?;
                    self.printer.note(nothing_to_compact(&state));
                }
                RequestOutcome::Nothing | RequestOutcome::Abandoned if first == Some(FirstRequest::Asked) => {
                    let last = self.session.state().await?.last_outcome;
                    self.printer.note(nothing_to(&request, last));
                }
                RequestOutcome::Nothing | RequestOutcome::Abandoned | RequestOutcome::Settled(_) => {}
            }
            match turn_input {
                TurnInput { leaves: true, .. } => return Ok(ChatStep::Leave),
                // All of it was taken back.
                TurnInput { is_cancelled: true, .. } if !self.session.is_unfinished().await? => {
                    return Ok(ChatStep::Line);
                }
                TurnInput { has_more_input: true, is_cancelled, .. } => {
                    // T3: it was accepted, so it is not dropped with the turn.
                    if is_cancelled {
                        self.printer.note("what you sent meanwhile begins the next turn; Esc ends that, too");
                    }
                    (request, first) = (Request::Resume, None);
                }
                _ => return Ok(ChatStep::Line),
            }
        }
    }

    /// Sets the mode that the chat was opened with, unless the user has chosen another one since.
    async fn set_wanted_mode(&mut self) -> anyhow::Result<()> {
        let Some(mode) = self.wanted_mode.take().filter(|wanted| self.mode == Some(*wanted)) else {
            return Ok(());
        };
        if self.session.state().await?.permission.mode != Some(mode) {
            self.session.set_permission_mode(mode).await?;
        }
        Ok(())
    }

    /// Runs one request: shows its events and handles lines and keys until it is over. The inner error says why the chat goes on before that.
    async fn run_request(
        &mut self,
        request: &Request,
        turn_input: &mut TurnInput,
    ) -> anyhow::Result<Result<RequestOutcome, ChatStep>> {
        let mut pending = self.events.begin(request.clone());
        turn_input.is_accepted = !matches!(request, Request::Send(_));
        self.printer.tell(ScreenUpdate::Activity(Activity::Turn));
        let accepted_by = Instant::now() + ACCEPTED_WITHIN;
        if let Request::Send(_) = request {
            self.questions.show(&mut self.printer, &self.lines);
        }
        loop {
            let is_asked = !self.questions.is_empty();
            if is_asked && turn_input.is_accepted && turn_input.leaves && !turn_input.is_cancelled {
                return Ok(Err(self.leave_with_open_questions()));
            }
            // A user who waits to leave may still cancel the turn. On a screen Ctrl-C is a key, so keys must be read.
            let accepts_keys = !turn_input.leaves || matches!(self.lines, LineSource::Screen(_));
            let Self { lines, signals, background, .. } = self;
            let line_event =
                async { if is_asked { lines.next().await } else { lines.next_during_turn().await } };
            let tick = turn_input.countdown.as_ref().map(|countdown| countdown.next_tick);
            tokio::select! {
                biased;
                number = signals.next() => match number {
                    SIGINT => self.handle_interrupt(&mut pending, turn_input).await,
                    // SIGTERM and the like: the turn stays open.
                    number => return Ok(Err(ChatStep::Suspend(number))),
                },
                watched = pending.next() => match watched {
                    Some(watched) => {
                        panics::panic_for_tests(&watched);
                        self.show_turn_event(&watched, turn_input);
                    }
                    None => break,
                },
                done = background.next() => done.note(&mut self.printer),
                () = tokio::time::sleep_until(accepted_by), if !turn_input.is_accepted => {
                    turn_input.is_accepted = true;
                }
                event = line_event, if turn_input.is_accepted && accepts_keys => match event {
                    LineEvent::Line(_) if turn_input.leaves => self.printer.note(LEAVING),
                    LineEvent::Line(line) => self.handle_line_in_turn(&line, &mut pending, turn_input).await?,
                    // It leaves when the turn has ended by itself.
                    LineEvent::End => {
                        turn_input.leaves = true;
                        if let LineSource::Screen(_) = self.lines {
                            self.printer.note("longhaul exits when the turn ends; Ctrl-C cancels it now");
                        }
                    }
                    LineEvent::Interrupt => self.handle_interrupt(&mut pending, turn_input).await,
                    LineEvent::Escape => self.cancel_turn(&mut pending, turn_input).await,
                    LineEvent::TakeBack => self.take_back_messages().await,
                    // It came before the turn began.
                    LineEvent::GoBack => {}
                    LineEvent::Lost => return Ok(Err(ChatStep::Suspend(1))),
                },
                () = sleep_until(tick), if tick.is_some() => {
                    if let Some(countdown) = &mut turn_input.countdown {
                        countdown.show(&mut self.printer);
                    }
                }
            }
        }
        Countdown::end(&mut turn_input.countdown, &mut self.printer);
        self.printer.tell(ScreenUpdate::Activity(Activity::Idle));
        Ok(Ok(match self.events.finish(pending).await {
            Ok(outcome) => outcome,
            Err(error) => {
                self.printer.note(error);
                self.exit_code = exit::FAILED;
                return Ok(Err(if turn_input.leaves { ChatStep::Leave } else { ChatStep::Line }));
            }
        }))
    }

    /// Ctrl-C ends the turn; once more, the process.
    async fn handle_interrupt(&mut self, pending: &mut PendingRequest, turn_input: &mut TurnInput) {
        if turn_input.interrupt_count > 0 {
            self.leave_at_once(SIGINT).await;
        }
        turn_input.interrupt_count += 1;
        // Ctrl-C during a script ends the script, not only this turn.
        if !self.lines.is_interactive() {
            turn_input.leaves = true;
            self.exit_code = exit::SIGNAL + SIGINT;
        }
        self.cancel_turn(pending, turn_input).await;
    }

    /// Ends the turn. What was sent meanwhile is taken back first, or it would begin the next turn.
    async fn cancel_turn(&mut self, pending: &mut PendingRequest, turn_input: &mut TurnInput) {
        turn_input.is_cancelled = true;
        self.take_back_messages().await;
        pending.cancel();
    }

    /// Shows an event of the request, which ends a countdown and may begin one.
    fn show_turn_event(&mut self, watched: &Watched, turn_input: &mut TurnInput) {
        Countdown::end(&mut turn_input.countdown, &mut self.printer);
        self.show_event(watched);
        let Watched::Event(event) = watched else { return };
        turn_input.is_accepted |=
            matches!(event.kind, EventKind::InputAccepted { .. } | EventKind::InputTaken { .. });
        if matches!(self.lines, LineSource::Plain(_)) && std::io::stderr().is_terminal() {
            turn_input.countdown = Countdown::of_event(&event.kind);
        }
    }

    /// Handles a line that the user enters while the turn runs.
    async fn handle_line_in_turn(
        &mut self,
        line: &str,
        pending: &mut PendingRequest,
        turn_input: &mut TurnInput,
    ) -> anyhow::Result<()> {
        if matches!(self.lines, LineSource::Screen(_)) && UserCommand::parse(line).is_some() {
            self.printer.note("the command runs when the turn has ended");
            self.deferred.push_back(line.to_owned());
            return Ok(());
        }
        let entry = self.skills.parse_line(line, &self.config).await;
        if let SlashInput::Command(..) = entry {
            self.session.touch();
        }
        match entry {
            SlashInput::Nothing => {}
            SlashInput::Mistake(words) | SlashInput::Unknown { mistake: words, .. } => {
                self.printer.note(words);
            }
            SlashInput::Say(text) if self.try_answer(&text).await => {}
            SlashInput::Say(text) | SlashInput::Start(text) => {
                let Some(message) = self.message_of(text).await? else { return Ok(()) };
                match self.session.put_message(&message, JoinMode::Join, None).await {
                    Ok(accepted) => {
                        turn_input.has_more_input = true;
                        self.sent.add(accepted.id, line.trim_end());
                    }
                    Err(error) => self.printer.note(error),
                }
                self.questions.show(&mut self.printer, &self.lines);
            }
            SlashInput::Command(SlashCommand { name, when: Availability::BetweenTurns, .. }, _) => {
                self.printer.note(format!("{name} works between turns; Ctrl-C cancels this one"));
            }
            SlashInput::Command(row, arguments) => match row.action {
                SlashAction::Cancel => self.cancel_turn(pending, turn_input).await,
                SlashAction::Exit => {
                    (turn_input.leaves, turn_input.is_cancelled) = (true, true);
                    pending.cancel();
                }
                SlashAction::Answer => {
                    let Self { questions, session, printer, .. } = self;
                    questions.run_answer_command(&arguments, session, printer).await;
                }
                // Ends a wait before a retry, in whichever process the turn runs.
                SlashAction::Retry => self.session.order(OrderKind::Retry).await?,
                SlashAction::Session => {
                    self.run_session_command(&arguments, TurnPhase::DuringTurn).await?;
                }
                action => {
                    let phase = TurnPhase::DuringTurn;
                    slash::info::run(&mut self.command_context(), action, &arguments, phase).await;
                }
            },
        }
        Ok(())
    }

    /// Whether a line was the answer to an open question.
    async fn try_answer(&mut self, text: &str) -> bool {
        let Self { questions, session, printer, lines, .. } = self;
        questions.try_answer(text, session, printer, lines).await.is_some()
    }

    /// Notes a failed or cancelled turn with the ways to go on, and sets the exit code.
    async fn note_outcome(&mut self, ended: &TurnEnded) -> anyhow::Result<()> {
        let Some(what) = turn_failure_text(ended.outcome, ended.error.as_deref()) else {
            // At a terminal an earlier failure was shown and is over. A script still exits with its code.
            if self.lines.is_interactive() {
                self.exit_code = exit::DONE;
            }
            return Ok(());
        };
        let mut ways: Vec<String> = Vec::new();
        if ended.outcome != Outcome::Cancelled {
            self.exit_code = code_of(ended.outcome, ended.code.as_deref());
            ways.push(match limit_to_raise(ended) {
                Some(limit) => {
                    format!("to go on: raise {limit} in the config, open the session again, and /retry")
                }
                None => "to retry: /retry".to_owned(),
            });
        }
        if self.session.state().await?.interrupted_answer.is_some() {
            ways.push("to continue the answer: /continue".to_owned());
        }
        self.printer.note(what);
        if !ways.is_empty() {
            self.printer.note(ways.join(", "));
        }
        Ok(())
    }
}

async fn sleep_until(time: Option<Instant>) {
    if let Some(time) = time {
        tokio::time::sleep_until(time).await;
    }
}
