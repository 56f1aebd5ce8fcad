//! What a one-shot process does while its request runs: show events, react to signals, ask the user.

use longhaul_agent::{PendingRequest, Request, RequestOutcome, SessionEvents, Watched};
use longhaul_protocol::{EventKind, Outcome};

use crate::event_printer::EventPrinter;
use crate::questions::{OpenQuestion, has_terminal, is_settled};
use crate::signals::{ExitSignals, SIGINT};
use crate::tui::chat::{LineEvent, TerminalLines};
use crate::{exit, panics};

const ASK: &str = "Answer yes, no, or a reason: ";
const ASK_TEXT: &str = "Your answer: ";

/// Why the loop ended.
pub(crate) enum StageEnd {
    /// The request is over.
    Outcome(RequestOutcome),
    /// A signal suspends this process.
    Suspended(u8),
    /// Questions are open, and no user is at the terminal to answer them.
    Asked(Vec<OpenQuestion>),
}

/// Shows the events of a request, and reacts to signals and to what the user types.
pub(crate) struct EventLoop<'a> {
    pub(crate) printer: &'a mut EventPrinter,
    pub(crate) signals: &'a mut ExitSignals,
    /// How often the user pressed Ctrl-C.
    pub(crate) interrupts: u32,
    /// Outcomes of turns that ended while the process waited for tasks.
    pub(crate) ended: Vec<(Outcome, Option<String>, Option<String>)>,
    /// The plan that the turn ended with.
    pub(crate) plan: Option<OpenQuestion>,
    typed: TerminalLines,
}

/// What the loop knows of the request so far.
struct RequestView {
    /// Questions without an answer.
    asked: Vec<OpenQuestion>,
    /// The question that the prompt is about.
    prompted: Option<OpenQuestion>,
    is_accepted: bool,
    turn_is_open: bool,
    /// Waiting for tasks: questions are asked later, and the ends of turns are noted.
    only_settles: bool,
    /// Compacting: the running turn, if any, is neither asked about nor cancelled.
    leaves_turns_alone: bool,
}

impl<'a> EventLoop<'a> {
    pub(crate) fn new(printer: &'a mut EventPrinter, signals: &'a mut ExitSignals) -> Self {
        let (ended, typed) = (Vec::new(), TerminalLines::default());
        Self { printer, signals, interrupts: 0, ended, plan: None, typed }
    }

    /// Shows what happens until the request is over. The first Ctrl-C cancels the turn, a second one ends this process.
    pub(crate) async fn run(
        &mut self,
        events: &mut SessionEvents,
        request: &Request,
        open: Vec<OpenQuestion>,
    ) -> anyhow::Result<StageEnd> {
        let mut pending = events.begin(request.clone());
        let mut view = RequestView {
            is_accepted: !matches!(request, Request::Send(_)),
            turn_is_open: request.is_about_a_turn(),
            leaves_turns_alone: matches!(request, Request::Compact(_)),
            asked: open,
            prompted: None,
            only_settles: matches!(request, Request::Settle),
        };
        view.asked.iter().for_each(|open| self.printer.aside(&open.shown()));
        loop {
            let can_ask = has_terminal();
            if !view.asked.is_empty() && !can_ask && view.is_accepted {
                return Ok(StageEnd::Asked(view.asked));
            }
            let asks = can_ask && !view.asked.is_empty();
            if asks {
                self.ask(&mut view);
            }
            tokio::select! {
                biased;
                number = self.signals.next() => match number {
                    SIGINT if self.interrupts > 0 => {
                        std::process::exit(i32::from(exit::SIGNAL + SIGINT));
                    }
                    SIGINT if view.turn_is_open => {
                        self.interrupts += 1;
                        pending.cancel();
                        self.printer.note("cancelling the turn; press Ctrl-C again to leave at once");
                    }
                    // SIGTERM and the like, or Ctrl-C without an open turn: what is open stays open.
                    number => return Ok(StageEnd::Suspended(number)),
                },
                watched = pending.next() => match watched {
                    Some(watched) => {
                        panics::panic_for_tests(&watched);
                        self.printer.watched(&watched);
                        self.note_event(&watched, &mut view);
                        // A user who cancelled the turn does not wait for the tasks.
                        if view.only_settles && self.interrupts > 0 && !view.turn_is_open {
                            return Ok(StageEnd::Suspended(SIGINT));
                        }
                    }
                    None => return Ok(StageEnd::Outcome(events.finish(pending).await?)),
                },
                typed = self.typed.next_line(), if asks => match typed {
                    LineEvent::Line(line) => self.answer(&line, &pending, &mut view).await,
                    LineEvent::End
                    | LineEvent::Interrupt
                    | LineEvent::Escape
                    | LineEvent::GoBack
                    | LineEvent::TakeBack => {
                        return Ok(StageEnd::Asked(view.asked));
                    }
                    LineEvent::Lost => return Ok(StageEnd::Suspended(1)),
                },
            }
        }
    }

    /// Asks the first question that is open, once.
    fn ask(&mut self, view: &mut RequestView) {
        let first = view.asked.first();
        if first != view.prompted.as_ref() {
            view.prompted = first.cloned();
            let takes_text = first.is_some_and(|question| question.kind.takes_text());
            self.printer.raw_aside(if takes_text { ASK_TEXT } else { ASK });
        }
    }

    async fn answer(&mut self, line: &str, pending: &PendingRequest, view: &mut RequestView) {
        let words = line.trim();
        view.prompted = None;
        let Some(question) = view.asked.first().filter(|_| !words.is_empty()) else { return };
        if let Some(problem) = question.unknown_choice(words) {
            self.printer.note(problem);
            return;
        }
        let answered = pending.answer(question.id, question.read_answer(words)).await;
        if is_settled(&answered) {
            view.asked.remove(0);
        }
        if let Err(error) = answered {
            // Another client answered first; or the answer was not saved, and the question is asked again.
            self.printer.note(error);
        }
    }

    fn note_event(&mut self, watched: &Watched, view: &mut RequestView) {
        let Watched::Event(event) = watched else { return };
        match &event.kind {
            EventKind::InputAccepted { .. } | EventKind::InputTaken { .. } => view.is_accepted = true,
            _ if view.leaves_turns_alone => {}
            EventKind::TurnStarted { .. } => view.turn_is_open = true,
            EventKind::TurnEnded { outcome, error, code, .. } if view.only_settles => {
                view.turn_is_open = false;
                self.ended.push((*outcome, code.clone(), error.clone()));
            }
            kind @ EventKind::Question { .. } if !view.only_settles => {
                // A plan is the answer of its turn. The user may accept it later.
                match OpenQuestion::of_event(kind) {
                    Some(plan) if !plan.is_awaited() => self.plan = Some(plan),
                    question => view.asked.extend(question),
                }
            }
            EventKind::Answered { id, .. } => view.asked.retain(|open| open.id != *id),
            _ => {}
        }
    }
}
