//! Following one turn of a session, and looking a turn up in the records.

use std::collections::VecDeque;

use longhaul_agent::{Followed, Follower, Session};
use longhaul_journal::{Journal, Page, records};
use longhaul_protocol::{
    At, ClientRequest, JoinMode, Outcome, QuestionId, QuestionKind, Record, Seq, SessionId, SessionRecord,
    StreamName,
};
use tokio::sync::watch;

use super::error::{OpenaiError, OpenaiResult};
use super::turn::{AnswerText, TurnFold, TurnStep, limit_message};

/// Records to read at a time on the way back.
const BACKWARD_PAGE: Seq = 256;

/// Sees the steps of one turn. Dropping it ends nothing but the following.
pub(crate) struct TurnFollower {
    session: Session,
    follower: Follower,
    fold: TurnFold,
    steps: VecDeque<TurnStep>,
    shutdown: watch::Receiver<bool>,
}

impl TurnFollower {
    pub(crate) async fn start(
        session: Session,
        after: Seq,
        fold: TurnFold,
        shutdown: watch::Receiver<bool>,
    ) -> OpenaiResult<Self> {
        let follower = session.follow(after).await?;
        Ok(Self { session, follower, fold, steps: VecDeque::new(), shutdown })
    }

    /// The next step. An error if the server stops. Cancel-safe.
    pub(crate) async fn next(&mut self) -> OpenaiResult<TurnStep> {
        loop {
            match self.steps.pop_front() {
                Some(TurnStep::PlanSettled) => return Err(OpenaiError::plan_settled()),
                Some(step) => return Ok(step),
                None => {}
            }
            let followed = tokio::select! {
                biased;
                followed = self.follower.step() => followed?,
                _ = self.shutdown.wait_for(|stopped| *stopped) => return Err(OpenaiError::stopping()),
            };
            let followed = followed.ok_or_else(OpenaiError::stopping)?;
            self.steps.extend(self.fold.apply(&followed));
        }
    }

    /// Whether a question still waits for its answer.
    pub(crate) async fn is_open(&self, question: QuestionId) -> OpenaiResult<bool> {
        Ok(self.session.open_questions().await?.iter().any(|open| open.id == question))
    }
}

/// Where a turn is in its session.
#[derive(Debug, Clone)]
pub(crate) struct TurnPlace {
    /// The record before its first one.
    pub(crate) before: Seq,
    pub(crate) ended: Option<Seq>,
    /// No input came after its end.
    pub(crate) is_last: bool,
    /// The last request of a client that it answers.
    pub(crate) request: Option<Box<ClientRequest>>,
    /// A client did not want it to be stored.
    pub(crate) unstored: bool,
}

/// Calls `visit` with the records of a session, the newest first, until it returns false.
async fn read_backward(
    journal: &dyn Journal,
    session: SessionId,
    mut visit: impl FnMut(&Record) -> bool,
) -> OpenaiResult<()> {
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

/// The record that settled a question; `None` if it is open.
pub(crate) async fn find_answered(
    journal: &dyn Journal,
    session: SessionId,
    question: QuestionId,
) -> OpenaiResult<Option<Seq>> {
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

/// The place of a turn; `None` if the session has no such turn.
pub(crate) async fn find_turn(
    journal: &dyn Journal,
    session: SessionId,
    turn: u64,
) -> OpenaiResult<Option<TurnPlace>> {
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
    Ok(before.map(|before| TurnPlace { before, ended, is_last, request, unstored }))
}

/// What a client was told in answer to one request: up to the end of the turn or to the question that was asked.
pub(crate) struct ToldAnswer {
    pub(crate) text: String,
    pub(crate) turn: u64,
    /// How the turn ended, and the record of it; `None` if a question ended the answer.
    pub(crate) ended: Option<AnswerEnd>,
}

/// The end of a turn that a client was told of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerEnd {
    pub(crate) seq: Seq,
    pub(crate) at: At,
    pub(crate) outcome: Outcome,
}

/// Reads what a client was told about a turn after this record; `None` if the answer is not complete.
pub(crate) async fn read_answer(
    journal: &dyn Journal,
    session: SessionId,
    after: Seq,
    mut fold: TurnFold,
) -> OpenaiResult<Option<ToldAnswer>> {
    let mut answer = AnswerText::default();
    let stream = StreamName::session(session);
    let mut cursor = records(journal, &stream, after + 1);
    while let Some(record) = cursor.next().await? {
        let (seq, at) = (record.seq, record.at);
        for step in fold.apply(&Followed::Record(Box::new(record), None)) {
            let turn = fold.turn().unwrap_or_default();
            match step {
                TurnStep::MessageEnded { text, goes_on } => answer.add(&text, goes_on),
                TurnStep::Question(question) => {
                    answer.add(&question.text, false);
                    if question.kind != QuestionKind::Plan {
                        return Ok(Some(ToldAnswer { text: answer.into_text(), turn, ended: None }));
                    }
                }
                TurnStep::Ended(ended) => {
                    if let Some(message) = limit_message(&ended) {
                        answer.add(message, false);
                    }
                    let end = AnswerEnd { seq, at, outcome: ended.outcome };
                    return Ok(Some(ToldAnswer { text: answer.into_text(), turn, ended: Some(end) }));
                }
                _ => {}
            }
        }
    }
    Ok(None)
}
