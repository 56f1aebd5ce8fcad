//! The open questions of all sessions, without loading them all.

use std::collections::{HashMap, HashSet};

use longhaul_journal::{Journal, SessionEntry, all_sessions, record_at};
use longhaul_protocol::{Question, QuestionId, Seq, SessionId, SessionRecord, StreamName};
use tokio::sync::Mutex;

use super::overview::ends_with_plan;
use super::questions::open_questions;
use crate::replay::load;
use crate::{Error, Result};

/// A question that waits for a person, and its session.
#[derive(Debug, Clone)]
pub struct SessionQuestion {
    /// The session's key.
    pub session: String,
    /// The session's id.
    pub id: SessionId,
    /// The question.
    pub question: Question,
}

/// The open questions of each session, as of its last record and the last input in its inbox. Only sessions in which
/// something happened since are looked at again, and of these only those whose last record is not the end of a turn are
/// loaded.
#[derive(Default)]
pub(crate) struct QuestionIndex(Mutex<HashMap<SessionId, KnownQuestions>>);

#[derive(Clone)]
struct KnownQuestions {
    head: Seq,
    inbox_head: Seq,
    questions: Vec<Question>,
}

impl QuestionIndex {
    /// The open questions, in the order of the sessions' keys.
    pub(crate) async fn list(&self, journal: &dyn Journal) -> Result<Vec<SessionQuestion>> {
        // A second caller waits for the first one, and then finds everything known.
        let mut known = self.0.lock().await;
        let mut current = HashMap::with_capacity(known.len());
        let mut listed = Vec::new();
        let mut entries = all_sessions(journal);
        while let Some(entry) = entries.next().await? {
            if entry.trashed {
                continue;
            }
            let as_before = known
                .get(&entry.id)
                .filter(|known| (known.head, known.inbox_head) == (entry.head.seq, entry.inbox_head));
            let questions = match as_before {
                Some(known) => known.questions.clone(),
                None => match questions_of(journal, &entry).await {
                    Ok(questions) => questions,
                    // One session that can't be read must not hide the questions of the others.
                    Err(
                        Error::Unreadable { .. } | Error::Journal(longhaul_journal::Error::Damaged { .. }),
                    ) => vec![],
                    Err(error) => return Err(error),
                },
            };
            let of_session = |question: &Question| SessionQuestion {
                session: entry.key.clone(),
                id: entry.id,
                question: question.clone(),
            };
            listed.extend(questions.iter().map(of_session));
            let (head, inbox_head) = (entry.head.seq, entry.inbox_head);
            current.insert(entry.id, KnownQuestions { head, inbox_head, questions });
        }
        *known = current;
        // A subagent's question is listed once, with its parent.
        let at_parent: HashSet<QuestionId> = listed
            .iter()
            .filter(|asked| asked.question.child.is_some())
            .map(|asked| asked.question.id)
            .collect();
        listed.retain(|asked| asked.question.child.is_some() || !at_parent.contains(&asked.question.id));
        Ok(listed)
    }
}

async fn questions_of(journal: &dyn Journal, entry: &SessionEntry) -> Result<Vec<Question>> {
    let last = record_at(journal, &StreamName::session(entry.id), entry.head.seq).await?;
    let Some(last) = last else { return Ok(vec![]) };
    let is_at_rest = matches!(
        SessionRecord::decode(&last),
        Ok(SessionRecord::TurnEnded(ended)) if ended.inbox_through.is_some()
    );
    if is_at_rest && !ends_with_plan(journal, entry).await {
        return Ok(vec![]);
    }
    let state = load(journal, &entry.key, entry.id).await?;
    open_questions(journal, entry.id, &state).await
}
