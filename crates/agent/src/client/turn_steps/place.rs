//! Where a turn is in its session.

use longhaul_journal::{Journal, Page};
use longhaul_protocol::{
    ClientRequest, JoinMode, QuestionId, Record, Seq, SessionId, SessionRecord, StreamName,
};

use super::fold::{TurnLocator, TurnTarget};
use crate::Result;

/// Records to read at a time on the way back.
const BACKWARD_PAGE: Seq = 256;

/// Where a turn is in its session.
#[derive(Debug, Clone)]
pub struct TurnPlace {
    /// The number of the turn.
    pub turn: u64,
    /// The record before its first one.
    pub before: Seq,
    /// The record of its end.
    pub ended: Option<Seq>,
    /// No input came after its end.
    pub is_last: bool,
    /// The last request of a client that it answers.
    pub request: Option<Box<ClientRequest>>,
    /// A client did not want it to be stored.
    pub unstored: bool,
}

impl TurnPlace {
    /// The turn from its first step on.
    pub fn locator(&self) -> TurnLocator {
        let target = TurnTarget::Turn(self.turn);
        TurnLocator { target, after: self.before, request: self.request.clone() }
    }
}

/// Calls `visit` with the records of a session, the newest first, until it returns false.
async fn read_backward(
    journal: &dyn Journal,
    session: SessionId,
    mut visit: impl FnMut(&Record) -> bool,
) -> Result<()> {
    let stream = StreamName::session(session);
    let mut end = journal.head(&stream).await?.seq;
    while end > 0 {
        let from = end.saturating_sub(BACKWARD_PAGE - 1).max(1);
        let page = Page { records: usize::try_from(end - from + 1).unwrap_or(usize::MAX), bytes: usize::MAX };
        for record in journal.read(&stream, from, page).await?.iter().rev() {
            if !visit(record) {
                return Ok(());
            }
        }
        end = from - 1;
    }
    Ok(())
}

/// The record that settled a question; `None` if it is open, or was never asked.
pub async fn find_answered(
    journal: &dyn Journal,
    session: SessionId,
    question: QuestionId,
) -> Result<Option<Seq>> {
    let mut found = None;
    let visit = |record: &Record| {
        if record.kind == "answered"
            && let Ok(SessionRecord::Answered(answered)) = SessionRecord::decode(record)
            && answered.id == question
        {
            found = Some(record.seq);
        }
        found.is_none()
    };
    read_backward(journal, session, visit).await?;
    Ok(found)
}

/// The place of a turn; `None` if the session has no such turn. Reads back from the session's end.
pub async fn find_turn(journal: &dyn Journal, session: SessionId, turn: u64) -> Result<Option<TurnPlace>> {
    let (mut before, mut ended, mut is_last) = (None, None, true);
    let (mut is_before_end, mut request, mut unstored) = (false, None, false);
    let visit = |record: &Record| {
        match record.kind.as_str() {
            "turn_ended" if before.is_some() => is_before_end = true,
            "turn_ended" => {
                if let Ok(SessionRecord::TurnEnded(end)) = SessionRecord::decode(record) {
                    ended = (end.turn == turn).then_some(record.seq).or(ended);
                }
            }
            "turn_started" if before.is_some() => return false,
            "turn_started" => match SessionRecord::decode(record) {
                Ok(SessionRecord::TurnStarted(started)) if started.turn == turn => {
                    before = Some(record.seq - 1);
                }
                Ok(SessionRecord::TurnStarted(started)) if started.turn < turn => return false,
                _ => {}
            },
            "input_taken" => {
                let Ok(SessionRecord::InputTaken(taken)) = SessionRecord::decode(record) else { return true };
                // What comes during a turn belongs to it only if it joins.
                let joins = taken.mode == JoinMode::Join;
                match before {
                    None => is_last &= ended.is_some() && joins,
                    Some(_) if is_before_end && joins => {}
                    Some(_) => {
                        unstored |= taken.client.as_ref().is_some_and(|client| client.unstored);
                        request = request.take().or(taken.client);
                    }
                }
            }
            _ => {}
        }
        true
    };
    read_backward(journal, session, visit).await?;
    let is_last = is_last || ended.is_none();
    Ok(before.map(|before| TurnPlace { turn, before, ended, is_last, request, unstored }))
}
