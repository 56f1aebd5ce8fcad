//! The open turn of a session, shown to a user who comes in its middle, and what other clients send meanwhile.

use longhaul_agent::Watched;
use longhaul_agent::session::State;
use longhaul_protocol::{AttemptId, Event, EventKind};

use super::Chat;
use super::line_source::LineSource;
use crate::commands::sessions::list::now;
use crate::output::truncate;
use crate::tui::ScreenUpdate;

/// How many records of a long turn are shown again at most.
const MAX_REPLAYED_RECORDS: u64 = 1_000;

impl Chat<'_> {
    /// Shows the turn that another process runs from its beginning, and follows it.
    pub(super) async fn follow_open_turn(&mut self) {
        if self.lines.is_interactive() {
            // The next request reports what can't be read.
            let _ = self.events.rewind_to_turn(MAX_REPLAYED_RECORDS).await;
        }
    }

    /// Shows the open turn up to now, as if the terminal had been there.
    pub(super) async fn show_open_turn(&mut self) -> anyhow::Result<()> {
        let LineSource::Screen(_) = &self.lines else { return Ok(()) };
        for event in self.events.of_open_turn(MAX_REPLAYED_RECORDS).await.unwrap_or_default() {
            self.show_other_clients_event(&Watched::Event(event)).await?;
        }
        Ok(())
    }

    /// T12: shows what was on its way in the turn that is open: the text of its answer that was kept, and the calls that had started.
    /// True if there was such a text.
    pub(super) fn show_interrupted_output(&mut self, state: &State) -> bool {
        let Some(turn) = &state.turn else { return false };
        let unfinished = turn.attempt.as_ref().map(|attempt| (attempt.id, attempt.text()));
        let failed = turn.interrupted_answer.clone().map(|text| (AttemptId::generate(), text));
        let kept = unfinished.or(failed).filter(|(_, text)| !text.trim().is_empty());
        let has_text = kept.is_some();
        if let Some((attempt, text)) = kept {
            let kind = EventKind::Partial { attempt, text };
            self.show_event(&Watched::Event(self.live_event(turn.number, kind)));
            // The text is whole now, and what is said next stands below it.
            self.printer.tell(ScreenUpdate::Interrupted);
            self.printer.aside("[interrupted here]");
        }
        for call in turn.calls.iter().filter(|call| call.is_open()) {
            let (name, arguments) = (truncate(&call.name, 60), truncate(&call.arguments, 200));
            self.printer.aside(&format!("· {name} {arguments} [had started]"));
        }
        has_text
    }

    fn live_event(&self, turn: u64, kind: EventKind) -> Event {
        let (at, session) = (now(), self.session.key().to_owned());
        Event { seq: None, at, session, turn: Some(turn), kind }
    }

    /// Shows what happens while the user has sent nothing, and what other clients have sent.
    pub(super) async fn show_other_clients_event(&mut self, watched: &Watched) -> anyhow::Result<()> {
        if let (LineSource::Screen(_), Watched::Event(event)) = (&self.lines, watched)
            && let EventKind::InputTaken { .. } = event.kind
            && let Some(text) = self.events.new_input(event.seq).await?
        {
            self.printer.tell(ScreenUpdate::Entered(text));
        }
        self.show_event(watched);
        // A request that waits for the turn resumes it by itself.
        if let Watched::Event(event) = watched
            && let EventKind::Warning { code, .. } = &event.kind
            && code == "abandoned"
        {
            self.printer.note("/continue goes on with it, and so does what you say");
        }
        Ok(())
    }
}
