//! What a session is doing and how its last turn ended. Lists of sessions, the overview and the list of questions ask this
//! for many sessions, so most of them must cost a look at their last records, not a replay.

use longhaul_journal::{Journal, SessionEntry, record_at, records};
use longhaul_protocol::{Cause, Outcome, Question, Seq, SessionRecord, StreamName, TurnEnded};

use super::questions::open_questions;
use super::remote::is_running;
use crate::Result;
use crate::replay::load;

/// Records that are read at a time to find the end of the last turn.
const BACKWARD_STEP: Seq = 64;

/// What a session is doing, in short.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SessionActivity {
    /// No turn is open, and no input waits.
    #[default]
    Idle,
    /// A process works on a turn, or is about to. The text says what it is doing.
    Working(String),
    /// A question waits for an answer.
    Asking(Box<Question>),
    /// A turn is open or an input waits, and no process runs the session. The text says what was going on.
    Interrupted(String),
}

/// What a session is doing, and how its last turn ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionOverview {
    /// What it is doing.
    pub activity: SessionActivity,
    /// What began the turn that is open.
    pub cause: Option<Cause>,
    /// How the last turn ended.
    pub last_outcome: Option<Outcome>,
    /// Why the last turn failed, or which limit ended it.
    pub failure: Option<String>,
}

/// A session whose last record says that nothing is going on and nothing waits, apart from what came into its inbox since.
pub(crate) struct RestingSession {
    /// The last inbox record that it has handled.
    pub(crate) inbox_through: Seq,
    /// The turn whose end is the last record. `None` after an import.
    ended: Option<TurnEnded>,
}

/// The session at rest. Most sessions are, and then their last record is the only one to read. `None` if the session has to
/// be loaded to know.
pub(crate) async fn read_at_rest(
    journal: &dyn Journal,
    entry: &SessionEntry,
) -> Result<Option<RestingSession>> {
    let last = record_at(journal, &StreamName::session(entry.id), entry.head.seq).await?;
    Ok(match last.map(|last| SessionRecord::decode(&last)) {
        Some(Ok(SessionRecord::TurnEnded(ended))) => {
            ended.inbox_through.map(|inbox_through| RestingSession { inbox_through, ended: Some(ended) })
        }
        Some(Ok(SessionRecord::Imported(imported))) => {
            Some(RestingSession { inbox_through: imported.inbox_through, ended: None })
        }
        _ => None,
    })
}

/// What a session is doing, and how its last turn ended.
pub async fn session_overview(journal: &dyn Journal, entry: &SessionEntry) -> Result<SessionOverview> {
    if entry.head.seq == 0 && entry.inbox_head == 0 {
        return Ok(SessionOverview::default());
    }
    let resting = read_at_rest(journal, entry).await?;
    let resting = resting.filter(|resting| resting.inbox_through == entry.inbox_head);
    if let Some(RestingSession { ended: Some(ended), .. }) = resting
        && !ends_with_plan(journal, entry).await
    {
        let failure = failure_of(&ended);
        let last_outcome = Some(ended.outcome);
        return Ok(SessionOverview { last_outcome, failure, ..SessionOverview::default() });
    }
    let state = load(journal, &entry.key, entry.id).await?;
    let failure = match state.last_outcome {
        Some(outcome @ (Outcome::Failed | Outcome::Limit)) => {
            let ended = last_turn_end(journal, entry).await?.filter(|ended| ended.outcome == outcome);
            ended.as_ref().and_then(failure_of)
        }
        _ => None,
    };
    let (cause, last_outcome) = (state.turn.as_ref().map(|turn| turn.cause), state.last_outcome);
    let question = open_questions(journal, entry.id, &state).await?.into_iter().next();
    let has_input = entry.inbox_head > state.inbox_through || !state.pending_inputs.is_empty();
    let doing = match (&state.turn, has_input) {
        (Some(_), _) => Some(state.describe_open_work()),
        (None, true) => Some("about to begin a turn".to_owned()),
        (None, false) => None,
    };
    let activity = match (question, doing) {
        (Some(question), _) => SessionActivity::Asking(Box::new(question)),
        (None, None) => SessionActivity::Idle,
        (None, Some(doing)) if is_running(journal, entry.id).await? => SessionActivity::Working(doing),
        (None, Some(doing)) => SessionActivity::Interrupted(doing),
    };
    Ok(SessionOverview { activity, cause, last_outcome, failure })
}

/// Whether a session whose last record is the end of a turn may have an open question. A turn that ends withdraws its
/// questions. Only the question about its plan stays, and stands right before the end.
pub(super) async fn ends_with_plan(journal: &dyn Journal, entry: &SessionEntry) -> bool {
    let before = record_at(journal, &StreamName::session(entry.id), entry.head.seq.saturating_sub(1)).await;
    !before.is_ok_and(|before| before.is_none_or(|before| before.kind != "question"))
}

fn failure_of(ended: &TurnEnded) -> Option<String> {
    let is_failure = matches!(ended.outcome, Outcome::Failed | Outcome::Limit);
    ended.error.clone().filter(|_| is_failure)
}

/// The end of the session's last turn. What comes after it is little: a change of mode, a compaction.
async fn last_turn_end(journal: &dyn Journal, entry: &SessionEntry) -> Result<Option<TurnEnded>> {
    let stream = StreamName::session(entry.id);
    let mut through = entry.head.seq;
    while through > 0 {
        let from = through.saturating_sub(BACKWARD_STEP - 1).max(1);
        let mut cursor = records(journal, &stream, from).through(through);
        let mut found = None;
        while let Some(record) = cursor.next_undamaged().await? {
            if record.kind == "turn_ended" {
                found = record.decode().ok();
            }
        }
        if found.is_some() {
            return Ok(found);
        }
        through = from - 1;
    }
    Ok(None)
}
