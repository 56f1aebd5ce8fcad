//! From records, and from what the process says that has the session, to what a follower sees.

use longhaul_protocol::{AttemptId, DecodeError, Event, EventKind, Record, Seq};

use crate::client::follow::Followed;
use crate::client::follow::wire::Line;
use crate::clock::now;
use crate::session::events::event_of;
use crate::session::state::State;

/// How far a follower has come.
pub(super) struct Course {
    key: String,
    state: State,
    /// What was heard of the answer that is on its way.
    heard: Option<Heard>,
    /// Words of it were passed over.
    has_gap: bool,
}

struct Heard {
    attempt: AttemptId,
    text: String,
}

/// What follows from a line.
#[derive(Debug)]
pub(super) enum Heed {
    /// Everything up to this record is there to be read.
    Read(Seq),
    Show(Followed),
    /// Something was missed; whoever calls again is told what there is of it.
    CallAgain,
    Nothing,
}

impl Course {
    pub(super) fn new(key: &str, state: State) -> Self {
        Self { key: key.to_owned(), state, heard: None, has_gap: false }
    }

    /// That the turn which is open is run by nobody, if one is open.
    pub(super) fn abandoned(&self) -> Option<Followed> {
        let turn = self.state.turn.as_ref()?.number;
        let text = format!("turn {turn} is open, and nobody runs it any more");
        let kind = EventKind::Warning { code: "abandoned".to_owned(), text };
        let event = Event { seq: None, at: now(), session: self.key.clone(), turn: Some(turn), kind };
        Some(Followed::Live(Box::new(event)))
    }

    /// The last record that was followed.
    pub(super) fn head(&self) -> Seq {
        self.state.head
    }

    /// A line came from somebody who has told everything up to this record.
    pub(super) fn line(&mut self, line: Line, told: Seq) -> Heed {
        match line {
            Line::Head(head) => Heed::Read(head),
            Line::Odd(seq) => seq.map_or(Heed::Nothing, Heed::Read),
            Line::Missed => Heed::CallAgain,
            Line::Event(event) => match (event.seq, &event.kind) {
                (Some(seq), _) => Heed::Read(seq),
                (None, EventKind::Partial { attempt, text }) => self.so_far(&event, *attempt, text),
                // The records have come further than this: it may be of something that is over.
                (None, kind) if told < self.state.head => {
                    self.has_gap |= matches!(kind, EventKind::TextDelta { .. });
                    Heed::Nothing
                }
                (None, EventKind::TextDelta { .. }) if self.has_gap => Heed::CallAgain,
                (None, EventKind::TextDelta { text }) => {
                    if let Some(heard) = self.heard() {
                        heard.push_str(text);
                    }
                    Heed::Show(Followed::Live(event))
                }
                (None, _) => Heed::Show(Followed::Live(event)),
            },
        }
    }

    /// Whoever calls during an answer is told its text so far. However often that is, no words are shown twice.
    fn so_far(&mut self, event: &Event, attempt: AttemptId, text: &str) -> Heed {
        if self.attempt() != Some(attempt) {
            return Heed::Nothing;
        }
        self.has_gap = false;
        let Some(heard) = self.heard() else { return Heed::Nothing };
        let more = text.strip_prefix(heard.as_str()).unwrap_or_default().to_owned();
        let kind = match heard.is_empty() {
            true => EventKind::Partial { attempt, text: more.clone() },
            false => EventKind::TextDelta { text: more.clone() },
        };
        heard.push_str(&more);
        if more.is_empty() { Heed::Nothing } else { Heed::Show(live(Event { kind, ..event.clone() })) }
    }

    /// The attempt that is open.
    fn attempt(&self) -> Option<AttemptId> {
        Some(self.state.turn.as_ref()?.attempt.as_ref()?.id)
    }

    /// What was heard of it.
    fn heard(&mut self) -> Option<&mut String> {
        let attempt = self.attempt()?;
        if self.heard.as_ref().is_none_or(|heard| heard.attempt != attempt) {
            self.heard = Some(Heard { attempt, text: String::new() });
        }
        self.heard.as_mut().map(|heard| &mut heard.text)
    }

    /// The next record. Words of its answer that were missed come before it.
    pub(super) fn record(&mut self, record: Record) -> Result<Vec<Followed>, DecodeError> {
        let event = event_of(&self.state, &self.key, &record);
        self.state.apply(&record)?;
        let rest = event.as_ref().and_then(|event| self.rest_of(event));
        if self.attempt().is_none() {
            (self.heard, self.has_gap) = (None, false);
        }
        let mut followed: Vec<Followed> = rest.map(live).into_iter().collect();
        followed.push(Followed::Record(Box::new(record), event.map(Box::new)));
        Ok(followed)
    }

    /// What was not heard of an answer of which something was.
    fn rest_of(&mut self, event: &Event) -> Option<Event> {
        let EventKind::Message { content, .. } = &event.kind else { return None };
        let heard = self.heard.take().filter(|heard| !heard.text.is_empty())?;
        let rest = content.strip_prefix(heard.text.as_str()).filter(|rest| !rest.is_empty())?;
        let kind = EventKind::TextDelta { text: rest.to_owned() };
        Some(Event { seq: None, kind, ..event.clone() })
    }
}

fn live(event: Event) -> Followed {
    Followed::Live(Box::new(event))
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
