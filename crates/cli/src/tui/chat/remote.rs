//! A session that another process runs, seen from here: what happens there is shown as if it happened here.

use std::time::Duration;

use longhaul_agent::{Followed, Follower, State, Watched, follow};
use longhaul_journal::{Holder, record_at, records};
use longhaul_protocol::{AttemptId, Event, EventKind, SessionRecord, StreamName};

use super::Talk;
use super::line_source::Lines;
use crate::commands::sessions::list::now;
use crate::output::shortened;
use crate::tui::Tell;

/// So many records of a turn that others run are shown to whoever comes in its middle.
const SHOWN_AGAIN: u64 = 1_000;

/// How long a record may take to come. Nothing of what is only shown again is worth waiting for.
const READ_WITHIN: Duration = Duration::from_secs(2);

/// What another process does in the session; where nobody follows it, never anything.
pub(super) async fn elsewhere(follower: &mut Option<Follower>) -> Option<Watched> {
    let Some(following) = follower else { return std::future::pending().await };
    loop {
        let Some(watched) = following.next().await else {
            // What can't be followed any more is still there when something is said.
            *follower = None;
            return std::future::pending().await;
        };
        // What happens here is seen here, and what is of record is never shown twice.
        let is_of_record = matches!(&watched, Watched::Event(Event { seq: Some(_), .. }));
        if is_of_record || following.holder().as_ref().is_none_or(Holder::is_another) {
            return Some(watched);
        }
    }
}

impl Talk<'_> {
    /// Follows the session, where somebody is there to see it.
    pub(super) async fn follow(&mut self) -> anyhow::Result<()> {
        let Some(id) = self.session.id() else { return Ok(()) };
        if self.follower.is_none() && self.lines.are_typed() {
            let state = self.session.state().await?;
            let journal = self.runtime.journal();
            self.follower = Some(Follower::of(journal, self.session.key(), id, state));
        }
        Ok(())
    }

    /// Sees what another process runs from the beginning of the turn on, unless that is long ago.
    pub(super) async fn attach(&mut self) -> anyhow::Result<()> {
        let Some(id) = self.session.id().filter(|_| self.lines.are_typed()) else { return Ok(()) };
        let (journal, stream) = (self.runtime.journal(), StreamName::session(id));
        let head = journal.head(&stream).await?.seq;
        let from = head.saturating_sub(SHOWN_AGAIN);
        let mut after = head;
        let mut cursor = records(&*journal, &stream, from + 1).through(head);
        // What can't be read is said when it is needed.
        while let Some(record) = match cursor.next().await {
            Ok(record) => record,
            Err(_) => return Ok(()),
        } {
            if record.kind == "turn_ended" {
                after = record.seq;
            }
        }
        if after == head && from == 0 {
            after = 0;
        }
        if let Ok(follower) = follow(journal, self.session.key(), id, after).await {
            (self.seen, self.follower) = (after, Some(follower));
        }
        Ok(())
    }

    /// Shows what there is of the turn that is open, as it would stand here if nothing had come between.
    pub(super) async fn show_open_turn(&mut self) -> anyhow::Result<()> {
        let (Lines::Shown(_), Some(id)) = (&self.lines, self.session.id()) else { return Ok(()) };
        self.attach().await?;
        let head = self.runtime.journal().head(&StreamName::session(id)).await?.seq;
        let mut shown = self.seen;
        while shown < head
            && let Some(follower) = &mut self.follower
            && let Ok(Ok(Some(followed))) = tokio::time::timeout(READ_WITHIN, follower.step()).await
        {
            if let Followed::Record(record, event) = followed {
                shown = record.seq;
                if let Some(event) = event {
                    self.see_others(&Watched::Event(*event)).await?;
                }
            }
        }
        self.follower = None;
        Ok(())
    }

    /// T12: shows what was on its way in the turn that is open: the text of its answer that was kept, and the calls that had started.
    /// True if there was such a text.
    pub(super) fn show_kept(&mut self, state: &State) -> bool {
        let Some(turn) = &state.turn else { return false };
        let unfinished = turn.attempt.as_ref().map(|attempt| (attempt.id, attempt.text()));
        let failed = turn.interrupted.clone().map(|text| (AttemptId::generate(), text));
        let kept = unfinished.or(failed).filter(|(_, text)| !text.trim().is_empty());
        let has_text = kept.is_some();
        if let Some((attempt, text)) = kept {
            let kind = EventKind::Partial { attempt, text };
            self.see(&Watched::Event(self.live(turn.number, kind)));
            // The text is whole now, and what is said next stands below it.
            self.teller.tell(Tell::Interrupted);
            self.teller.aside("[interrupted here]");
        }
        for call in turn.calls.iter().filter(|call| call.is_open()) {
            let (name, arguments) = (shortened(&call.name, 60), shortened(&call.arguments, 200));
            self.teller.aside(&format!("· {name} {arguments} [had started]"));
        }
        has_text
    }

    fn live(&self, turn: u64, kind: EventKind) -> Event {
        let (at, session) = (now(), self.session.key().to_owned());
        Event { seq: None, at, session, turn: Some(turn), kind }
    }

    /// Shows what happens while nobody here has said anything; what somebody said elsewhere, too.
    pub(super) async fn see_others(&mut self, watched: &Watched) -> anyhow::Result<()> {
        if let (Lines::Shown(_), Watched::Event(event)) = (&self.lines, watched)
            && let EventKind::InputTaken { .. } = event.kind
            && let Some(seq) = event.seq.filter(|seq| *seq > self.seen)
            && let Some(id) = self.session.id()
        {
            let stream = StreamName::session(id);
            let record = record_at(&*self.runtime.journal(), &stream, seq).await?;
            if let Some(Ok(SessionRecord::InputTaken(input))) = record.as_ref().map(SessionRecord::decode) {
                self.teller.tell(Tell::Entered(input.text));
            }
        }
        self.see(watched);
        Ok(())
    }
}
