//! How a worker records what happened. Everything that it does passes through [`Worker::commit`], so what watchers see, what
//! the state says and what is on disk are always the same.

use std::sync::Arc;

use longhaul_journal::{Append, Blob, Error as JournalError, Page};
use longhaul_protocol::{
    Answered, EventKind, Record, SessionRecord, StreamName, ToolFinished, TurnEnded, Warning,
};
use longhaul_tools::RepositoryNews;

use crate::Error;
use crate::runtime::slot::Awaited;
use crate::session::decide::TurnEnding;
use crate::session::events::event_of;
use crate::session::work::Work;
use crate::worker::task_monitor;
use crate::worker::{FIRST_RETRY, LONGEST_RETRY, Step, Stopped, Worker};

/// What settles a question that the end of its turn has left open.
const WITHDRAWN: &str = "withdrawn: the turn ended";

impl Worker {
    /// Appends what happened. When this returns it is on disk, in the state, and shown to every watcher. Where that took
    /// more than one try, the turn must end (`policy.must_end`): nothing new may be done before it has.
    pub(crate) async fn commit(&mut self, facts: Vec<SessionRecord>, blobs: Vec<Blob>) -> Step<()> {
        if facts.is_empty() {
            return Ok(());
        }
        let mut append = Append::under(&self.lease).expecting(self.state.head);
        let redactor = &self.runtime.redactor;
        append =
            facts.iter().fold(append, |append, fact| append.record(redactor.redact_record(fact.encode())));
        append = blobs.into_iter().fold(append, Append::blob);
        let records = match self.runtime.journal.append(append.clone()).await {
            Ok(records) => records,
            Err(error) if error.may_pass() => self.save_later(append, facts.len(), &error).await?,
            Err(error) => return Err(error.into()),
        };
        for record in &records {
            self.fold(record)?;
        }
        Ok(())
    }

    /// The journal refuses: everybody is told, what happened is kept here and tried again, and the turn will end.
    async fn save_later(&mut self, append: Append, count: usize, error: &JournalError) -> Step<Vec<Record>> {
        let said = error.to_string();
        let reason = said.strip_prefix("not saved: ").unwrap_or(&said).to_owned();
        self.policy.forced_end = Some(format!("what happened could not be saved for a while: {reason}"));
        let warning =
            EventKind::Warning { code: "not_saved".to_owned(), text: format!("not saved: {reason}") };
        self.show(warning);
        self.shared.trouble(&Error::NotSaved { reason });
        let mut wait = FIRST_RETRY;
        loop {
            tokio::select! {
                _ = self.suspend.wait_for(|suspended| *suspended) => return Err(Stopped::Suspended),
                () = tokio::time::sleep(wait) => wait = (wait * 2).min(LONGEST_RETRY),
            }
            match self.runtime.journal.append(append.clone()).await {
                Ok(records) => return Ok(records),
                Err(error) if error.may_pass() => {}
                // It was there after all: the refusal came after the commit.
                Err(JournalError::Conflict { .. }) => {
                    let page = Page { records: count, bytes: usize::MAX };
                    let stream = StreamName::session(self.id);
                    return Ok(self.runtime.journal.read(&stream, self.state.head + 1, page).await?);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn fold(&mut self, record: &Record) -> Step<()> {
        let event = event_of(&self.state, &self.shared.key, record);
        let unreadable = |reason| Stopped::Failed(Error::Unreadable { key: self.shared.key.clone(), reason });
        let fact = SessionRecord::decode(record).map_err(unreadable)?;
        // Whoever joins from here on gets the message and not the text so far.
        if matches!(fact, SessionRecord::AttemptEnded(_)) {
            self.shared.hub.end();
        }
        self.state.apply(record).map_err(unreadable)?;
        self.runtime.activity.record_append(self.id, record.at, &fact, &self.state);
        match &event {
            Some(event) => self.shared.show(event),
            None => self.shared.hub.recorded(record.seq),
        }
        match &fact {
            SessionRecord::AttemptStarted(started) => {
                let turn = self.state.turn.as_ref().map(|turn| turn.number);
                self.shared.hub.begin(started.attempt, &self.shared.live(turn, EventKind::StepStarted));
            }
            SessionRecord::Usage(usage) => self.runtime.ledger.spent(usage),
            SessionRecord::TaskStarted(task) => {
                task_monitor::watch(&self.runtime, &self.shared, task.task_id);
            }
            SessionRecord::TaskEnded(_) => self.let_go_of_tasks(),
            SessionRecord::InputTaken(input) => self.shared.taken(Awaited::Input(input.id)),
            SessionRecord::OrderTaken(order) => {
                self.shared.taken(Awaited::Order(order.order.id));
                self.shared.taken(Awaited::Compaction(order.order.id));
                if self.state.compaction.requested.is_none() {
                    self.shared.compacted();
                }
                if !Work::of_taken(&self.state, self.policy.wake).is_unfinished() {
                    self.shared.settled(None, &self.state);
                }
            }
            SessionRecord::CompactDone(_) | SessionRecord::CompactFailed(_) => self.shared.compacted(),
            SessionRecord::TurnEnded(ended) => {
                self.runtime.idle.turn_ended(self.id, &self.shared.key);
                self.shared.settled(Some(ended), &self.state);
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends the turn, after what else has to be recorded. Calls that have no result get one that says so.
    pub(crate) async fn end_turn(&mut self, mut facts: Vec<SessionRecord>, ending: TurnEnding) -> Step<()> {
        let Some(turn) = &self.state.turn else { return Ok(()) };
        let waiting = turn.calls.iter().filter(|call| call.result.is_none());
        facts.extend(waiting.map(|call| {
            let content = match call.started {
                None if turn.cancelled => "not run: the user interrupted before it began",
                None if turn.lost_record.is_none() => "not run: the turn had ended before",
                _ => "unknown: the turn ended before its result could be recorded",
            };
            let result = ToolFinished::new(call.id, &call.name, content);
            SessionRecord::ToolFinished(ToolFinished { is_error: true, ..result })
        }));
        // Nobody needs to know any more.
        facts.extend(self.state.questions.iter().map(|question| {
            SessionRecord::Answered(Answered { id: question.id, answer: WITHDRAWN.to_owned() })
        }));
        let TurnEnding { outcome, limit, error, code, text } = ending;
        // Of an answer that was to go on there is at least what came before.
        let said = if turn.text.is_empty() { &turn.text_before_cut } else { &turn.text };
        let (turn, text) = (turn.number, text.unwrap_or_else(|| said.clone()));
        // With this a later look at the session's last record shows that there is nothing to do.
        let work = Work::of_taken(&self.state, self.policy.wake);
        // The questions of the turn end with it.
        let is_idle = !Work { turn: false, question: false, ..work }.is_in_use();
        let inbox_through = is_idle.then_some(self.state.inbox_through);
        let ended = TurnEnded { turn, outcome, limit, text, error, code, inbox_through };
        let tools = Arc::clone(&self.equipment.tools);
        let news = tools.repository_news(self.id, self.runtime.tasks.clone()).await;
        let warning =
            |news: &RepositoryNews| SessionRecord::Warning(Warning::new("new_repository", news.text.clone()));
        facts.extend(news.as_ref().map(warning));
        facts.push(SessionRecord::TurnEnded(ended));
        self.commit(facts, vec![]).await?;
        if let Some(news) = news {
            tools.acknowledge(self.id, news).await;
        }
        self.policy.forced_end = None;
        // Whatever went wrong went with its turn.
        self.runtime.worker_backoff.clear(&self.shared);
        Ok(())
    }

    /// Shows something that is not recorded.
    pub(crate) fn show(&self, kind: EventKind) {
        let turn = self.state.turn.as_ref().map(|turn| turn.number);
        self.shared.show(&self.shared.live(turn, kind));
    }
}
