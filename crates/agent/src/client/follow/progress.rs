//! What records and the lines of the process that holds the session mean for a follower.

use longhaul_protocol::{AttemptId, DecodeError, Event, EventKind, Record, Seq};

use crate::client::follow::Followed;
use crate::client::follow::wire::Line;
use crate::clock::now;
use crate::session::events::event_of;
use crate::session::state::State;

/// What a follower has seen so far.
pub(super) struct FollowProgress {
    key: String,
    state: State,
    /// The text of the open attempt that the follower has seen.
    partial: Option<PartialAnswer>,
    /// Some deltas of that text were skipped.
    has_gap: bool,
}

struct PartialAnswer {
    attempt: AttemptId,
    text: String,
}

/// What the reader does about a line.
#[derive(Debug)]
pub(super) enum LineAction {
    /// Read the journal up to this record.
    Read(Seq),
    Show(Followed),
    /// Deltas were missed. A new subscription begins with the text so far.
    Resubscribe,
    Nothing,
}

impl FollowProgress {
    pub(super) fn new(key: &str, state: State) -> Self {
        Self { key: key.to_owned(), state, partial: None, has_gap: false }
    }

    /// The warning that no process runs the open turn. `None` if no turn is open.
    pub(super) fn abandoned_turn(&self) -> Option<Followed> {
        let turn = self.state.turn.as_ref()?.number;
        let text = format!("turn {turn} was interrupted: the process that ran it is gone");
        let kind = EventKind::Warning { code: "abandoned".to_owned(), text };
        let event = Event { seq: None, at: now(), session: self.key.clone(), turn: Some(turn), kind };
        Some(live(event))
    }

    /// The last record that the follower has seen.
    pub(super) fn head(&self) -> Seq {
        self.state.head
    }

    /// Handles a line from a process that has announced every record up to `announced`.
    pub(super) fn apply_line(&mut self, line: Line, announced: Seq) -> LineAction {
        match line {
            Line::Head(head) => LineAction::Read(head),
            Line::Unknown(seq) => seq.map_or(LineAction::Nothing, LineAction::Read),
            Line::Missed => LineAction::Resubscribe,
            Line::Event(event) => match (event.seq, &event.kind) {
                (Some(seq), _) => LineAction::Read(seq),
                (None, EventKind::Partial { attempt, text }) => self.apply_partial(&event, *attempt, text),
                // The follower has read newer records than the sender had announced. So the event may concern an
                // attempt that has ended.
                (None, kind) if announced < self.state.head && concerns_attempt(kind) => {
                    self.has_gap |= matches!(kind, EventKind::TextDelta { .. });
                    LineAction::Nothing
                }
                (None, EventKind::TextDelta { .. }) if self.has_gap => LineAction::Resubscribe,
                (None, EventKind::TextDelta { text }) => {
                    if let Some(seen) = self.partial_text() {
                        seen.push_str(text);
                    }
                    LineAction::Show(Followed::Live(event))
                }
                (None, _) => LineAction::Show(Followed::Live(event)),
            },
        }
    }

    /// Handles the text so far, with which a subscription during an answer begins. Shows only the part that the
    /// follower has not seen.
    fn apply_partial(&mut self, event: &Event, attempt: AttemptId, text: &str) -> LineAction {
        if self.open_attempt() != Some(attempt) {
            return LineAction::Nothing;
        }
        self.has_gap = false;
        let Some(seen) = self.partial_text() else { return LineAction::Nothing };
        let more = text.strip_prefix(seen.as_str()).unwrap_or_default().to_owned();
        let kind = match seen.is_empty() {
            true => EventKind::Partial { attempt, text: more.clone() },
            false => EventKind::TextDelta { text: more.clone() },
        };
        seen.push_str(&more);
        if more.is_empty() {
            LineAction::Nothing
        } else {
            LineAction::Show(live(Event { kind, ..event.clone() }))
        }
    }

    fn open_attempt(&self) -> Option<AttemptId> {
        Some(self.state.turn.as_ref()?.attempt.as_ref()?.id)
    }

    /// The text of the open attempt that the follower has seen; `None` if no attempt is open.
    fn partial_text(&mut self) -> Option<&mut String> {
        let attempt = self.open_attempt()?;
        if self.partial.as_ref().is_none_or(|partial| partial.attempt != attempt) {
            self.partial = Some(PartialAnswer { attempt, text: String::new() });
        }
        self.partial.as_mut().map(|partial| &mut partial.text)
    }

    /// Applies the next record. If the follower has seen only the beginning of an answer, the rest comes before the
    /// record of the answer.
    pub(super) fn apply_record(&mut self, record: Record) -> Result<Vec<Followed>, DecodeError> {
        let event = event_of(&self.state, &self.key, &record);
        self.state.apply(&record)?;
        let rest = event.as_ref().and_then(|event| self.unseen_text(event));
        if self.open_attempt().is_none() {
            (self.partial, self.has_gap) = (None, false);
        }
        let mut followed: Vec<Followed> = rest.map(live).into_iter().collect();
        followed.push(Followed::Record(Box::new(record), event.map(Box::new)));
        Ok(followed)
    }

    /// The rest of an answer whose beginning the follower has seen, as a delta.
    fn unseen_text(&mut self, event: &Event) -> Option<Event> {
        let EventKind::Message { content, .. } = &event.kind else { return None };
        let seen = self.partial.take().filter(|partial| !partial.text.is_empty())?;
        let rest = content.strip_prefix(seen.text.as_str()).filter(|rest| !rest.is_empty())?;
        let kind = EventKind::TextDelta { text: rest.to_owned() };
        Some(Event { seq: None, kind, ..event.clone() })
    }
}

/// Whether a live event means nothing once its attempt has ended.
fn concerns_attempt(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::TextDelta { .. } | EventKind::ReasoningDelta { .. } | EventKind::RetryWait { .. }
    )
}

fn live(event: Event) -> Followed {
    Followed::Live(Box::new(event))
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
