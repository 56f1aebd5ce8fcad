//! A one-shot process while something is under way: it shows what happens, heeds signals, and asks whoever is there.

use longhaul_agent::{Watched, Watcher};
use longhaul_protocol::{EventKind, Outcome};

use crate::event_printer::Teller;
use crate::exit;
use crate::questions::{OpenQuestion, is_settled, somebody_is_there, yes_or_no};
use crate::signals::{Ends, INTERRUPT};
use crate::tui::chat::{Cooked, Typed};
use crate::turn_handle::{Became, Underway, Wish};

const ASK: &str = "Answer yes, no, or why not: ";

/// How this process comes to leave what is under way.
pub(crate) enum Left {
    /// It was seen through.
    Became(Became),
    /// A signal came that suspends, or that leaves what needs nobody.
    Suspended(u8),
    /// Questions are open, and nobody is here to answer them.
    Asked(Vec<OpenQuestion>),
}

/// Whoever attends to what is under way.
pub(crate) struct Attendant<'a> {
    pub(crate) teller: &'a mut Teller,
    pub(crate) ends: &'a mut Ends,
    /// How often somebody pressed Ctrl-C.
    pub(crate) interrupts: u32,
    /// Turns that ended, of which nobody waited for the outcome.
    pub(crate) ended: Vec<(Outcome, Option<String>, Option<String>)>,
    typed: Cooked,
}

/// What is known of what is under way.
struct Course {
    /// Questions that nobody has answered.
    asked: Vec<OpenQuestion>,
    /// The one that was last asked here.
    prompted: Option<OpenQuestion>,
    /// What was said is on disk.
    is_accepted: bool,
    turn_is_open: bool,
    /// Questions are asked later, and ends of turns are nobody's outcome.
    only_settles: bool,
    /// A turn that runs meanwhile is nobody's business here: it is not asked about, and not ended.
    leaves_turns_alone: bool,
}

impl<'a> Attendant<'a> {
    pub(crate) fn new(teller: &'a mut Teller, ends: &'a mut Ends) -> Self {
        Self { teller, ends, interrupts: 0, ended: Vec::new(), typed: Cooked::default() }
    }

    /// Shows what happens until it is over. The first Ctrl-C ends the turn, a second one this process.
    pub(crate) async fn attend(
        &mut self,
        mut underway: Underway,
        wish: &Wish,
        open: Vec<OpenQuestion>,
    ) -> anyhow::Result<(Left, Option<Watcher>)> {
        let only_settles = matches!(wish, Wish::Settle);
        let leaves_turns_alone = matches!(wish, Wish::Compact(_));
        let mut course = Course {
            is_accepted: !matches!(wish, Wish::Say(_)),
            turn_is_open: wish.is_about_a_turn(),
            leaves_turns_alone,
            asked: open,
            prompted: None,
            only_settles,
        };
        course.asked.iter().for_each(|open| self.teller.aside(&open.shown()));
        loop {
            let can_ask = somebody_is_there();
            if !course.asked.is_empty() && !can_ask && course.is_accepted {
                return Ok((Left::Asked(course.asked), None));
            }
            let asks = can_ask && !course.asked.is_empty();
            if asks {
                self.ask(&mut course);
            }
            tokio::select! {
                biased;
                number = self.ends.next() => match number {
                    INTERRUPT if self.interrupts > 0 => {
                        std::process::exit(i32::from(exit::SIGNAL + INTERRUPT));
                    }
                    INTERRUPT if course.turn_is_open => {
                        self.interrupts += 1;
                        underway.cancel();
                        self.teller.note("ending the turn; Ctrl-C once more leaves at once");
                    }
                    number => return Ok((Left::Suspended(number), None)),
                },
                watched = underway.next() => match watched {
                    Some(watched) => {
                        self.teller.watched(&watched);
                        self.heed(&watched, &mut course);
                        // Whoever ended the turn does not wait for what else there is.
                        if course.only_settles && self.interrupts > 0 && !course.turn_is_open {
                            return Ok((Left::Suspended(INTERRUPT), None));
                        }
                    }
                    None => {
                        let (watcher, became) = underway.over().await?;
                        return Ok((Left::Became(became?), watcher));
                    }
                },
                typed = self.typed.line(), if asks => match typed {
                    Typed::Line(line) => self.answer(&line, &underway, &mut course).await,
                    Typed::End | Typed::Interrupt | Typed::Escape => return Ok((Left::Asked(course.asked), None)),
                    Typed::Lost => return Ok((Left::Suspended(1), None)),
                },
            }
        }
    }

    /// Asks the first question that is open, once.
    fn ask(&mut self, course: &mut Course) {
        let first = course.asked.first();
        if first != course.prompted.as_ref() {
            course.prompted = first.cloned();
            self.teller.raw_aside(ASK);
        }
    }

    async fn answer(&mut self, line: &str, underway: &Underway, course: &mut Course) {
        let words = line.trim();
        course.prompted = None;
        let Some(question) = course.asked.first().filter(|_| !words.is_empty()) else { return };
        let answered = underway.answer(question.id, yes_or_no(words).unwrap_or(words)).await;
        if is_settled(&answered) {
            course.asked.remove(0);
        }
        if let Err(error) = answered {
            // Somebody else was faster; or it could not be saved, and is asked again.
            self.teller.note(error);
        }
    }

    fn heed(&mut self, watched: &Watched, course: &mut Course) {
        let Watched::Event(event) = watched else { return };
        match &event.kind {
            EventKind::InputAccepted { .. } | EventKind::InputTaken { .. } => course.is_accepted = true,
            _ if course.leaves_turns_alone => {}
            EventKind::TurnStarted => course.turn_is_open = true,
            EventKind::TurnEnded { outcome, error, code, .. } if course.only_settles => {
                course.turn_is_open = false;
                self.ended.push((*outcome, code.clone(), error.clone()));
            }
            EventKind::Question { id, text } if !course.only_settles => {
                course.asked.push(OpenQuestion { id: *id, text: text.clone() });
            }
            EventKind::Answered { id } => course.asked.retain(|open| open.id != *id),
            _ => {}
        }
    }
}
