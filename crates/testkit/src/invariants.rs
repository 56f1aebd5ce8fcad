//! What must hold for the records of any session, whatever happened to it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use longhaul_agent::session::State;
use longhaul_journal::{Journal, records};
use longhaul_protocol::{CallId, Item, Record, Seq, SessionId, SessionRecord, StreamName};

/// All records of a session.
pub async fn records_of(journal: &dyn Journal, id: SessionId) -> Vec<Record> {
    let stream = StreamName::session(id);
    records(journal, &stream, 1).collect().await.unwrap()
}

/// What is wrong with the records of a session: T1 (an input is taken once), T2 (one turn at a time), T5 (each call has one
/// result), T13 (what finished is not run again), K5 (a task has one end, which is told once and not before), P4 (a question has one
/// answer), C3 (a compaction has one end, and nothing comes between), and the chronicle: each compaction covers what comes after the one
/// before, and nothing after its own beginning. And the newest epoch alone gives the same state as all records.
pub fn broken_rules(records: &[Record]) -> Vec<String> {
    let mut broken = Vec::new();
    let mut state = State::default();
    let mut inputs = HashSet::new();
    let mut finished: HashMap<CallId, u64> = HashMap::new();
    let mut said: HashSet<CallId> = HashSet::new();
    let (mut started, mut ended, mut notified) = (HashSet::new(), HashSet::new(), HashSet::new());
    let (mut asked, mut answered) = (HashSet::new(), HashSet::new());
    let mut chronicle = Chronicle::default();
    for record in records {
        let at = record.seq;
        let fact = SessionRecord::decode(record).unwrap();
        broken.extend(chronicle.breaks(at, &fact).map(|rule| format!("{at}: {rule}")));
        match fact {
            SessionRecord::InputTaken(input) if !inputs.insert(input.id) => {
                broken.push(format!("{at}: an input is taken twice"));
            }
            SessionRecord::TurnStarted(_) if state.turn.is_some() => {
                broken.push(format!("{at}: a turn starts within another"));
            }
            SessionRecord::ToolStarted(started) if finished.contains_key(&started.call) => {
                broken.push(format!("{at}: {} is run again", started.name));
            }
            SessionRecord::ToolFinished(result) if finished.insert(result.call, at).is_some() => {
                broken.push(format!("{at}: {} has a second result", result.name));
            }
            SessionRecord::TaskStarted(task) if !started.insert(task.task_id) => {
                broken.push(format!("{at}: {} is started twice", task.task_id));
            }
            SessionRecord::TaskEnded(end)
                if !started.contains(&end.task_id) || !ended.insert(end.task_id) =>
            {
                broken.push(format!("{at}: {} has a second end, or no start", end.task_id));
            }
            SessionRecord::Notification(told)
                if !ended.contains(&told.task_id) || !notified.insert(told.task_id) =>
            {
                broken.push(format!("{at}: {} is told twice, or before its end", told.task_id));
            }
            SessionRecord::Question(question) if !asked.insert(question.id) => {
                broken.push(format!("{at}: {} is asked twice", question.id));
            }
            SessionRecord::Answered(answer) if !asked.contains(&answer.id) || !answered.insert(answer.id) => {
                broken.push(format!("{at}: {} is answered twice, or was not asked", answer.id));
            }
            SessionRecord::StepStarted(_) | SessionRecord::TurnEnded(_) => {
                let calls = state.turn.iter().flat_map(|turn| &turn.calls);
                let open = calls.filter(|call| !finished.contains_key(&call.id)).count();
                if open > 0 {
                    broken.push(format!("{at}: {open} calls have no result"));
                }
            }
            _ => {}
        }
        state.apply(record).unwrap();
        if record.kind == "compact_done" {
            broken.extend(unpaired(&state.items).into_iter().map(|rule| format!("{at}: {rule}")));
        }
    }
    for item in &state.items {
        match &**item {
            Item::ToolCall { call, .. } if !said.insert(*call) => {
                broken.push(format!("{call} is said twice"));
            }
            Item::ToolResult { call, .. } if !said.contains(call) => {
                broken.push(format!("{call} has a result before it was called"));
            }
            _ => {}
        }
    }
    if state != of_newest_epoch(records) {
        broken.push("the newest epoch alone does not say what all records say".to_owned());
    }
    broken
}

/// The state of a loaded session: its first record, then its newest epoch, or the one whose context that epoch continues.
pub fn of_newest_epoch(records: &[Record]) -> State {
    let newest = records.iter().rev().find_map(|record| match SessionRecord::decode(record) {
        Ok(SessionRecord::EpochStarted(epoch)) => Some(epoch.folds_from.unwrap_or(record.seq)),
        _ => None,
    });
    let from = newest.unwrap_or(1);
    let mut state = State::default();
    let import = records.iter().rfind(|record| record.kind == "imported").map_or(1, |import| import.seq);
    for record in records.iter().filter(|record| [1, import].contains(&record.seq) || record.seq >= from) {
        state.apply(record).unwrap();
    }
    state
}

/// T5: the calls without a result, and the results without a call, of a context between two steps.
fn unpaired(items: &[Arc<Item>]) -> Vec<String> {
    let mut open: HashSet<CallId> = HashSet::new();
    let mut broken = Vec::new();
    for item in items {
        match &**item {
            Item::ToolCall { call, .. } => drop(open.insert(*call)),
            Item::ToolResult { call, .. } if !open.remove(call) => {
                broken.push(format!("{call} has a result and no call in the new context"));
            }
            _ => {}
        }
    }
    broken.extend(open.iter().map(|call| format!("{call} has no result in the new context")));
    broken
}

/// The compactions of a session, as far as its records were read.
#[derive(Default)]
struct Chronicle {
    /// The record with which one began that has no end yet.
    began: Option<Seq>,
    /// The epoch that started since.
    epoch: Option<u64>,
    covered_through: Seq,
}

impl Chronicle {
    /// What is wrong with the next record.
    fn breaks(&mut self, at: Seq, fact: &SessionRecord) -> Option<String> {
        match (fact, self.began) {
            (SessionRecord::CompactStart(_), None) => {
                (self.began, self.epoch) = (Some(at), None);
                None
            }
            (SessionRecord::CompactStart(_), Some(_)) => {
                Some("a compaction begins within another".to_owned())
            }
            (SessionRecord::CompactDone(_) | SessionRecord::CompactFailed(_), None) => {
                Some("a compaction ends that did not begin".to_owned())
            }
            (SessionRecord::CompactFailed(_), Some(_)) => {
                self.began = None;
                self.epoch.map(|epoch| format!("it failed, and epoch {epoch} started"))
            }
            (SessionRecord::CompactDone(done), Some(began)) => {
                let covered = std::mem::replace(&mut self.covered_through, done.through);
                self.began = None;
                let (from, through) = (done.from, done.through);
                if from != covered + 1 || through + 1 < from || through >= began {
                    return Some(format!(
                        "{from} to {through} are covered, after {covered} and before {began}"
                    ));
                }
                (self.epoch != Some(done.epoch)).then(|| format!("it did not start epoch {}", done.epoch))
            }
            (SessionRecord::EpochStarted(epoch), Some(_)) => {
                self.epoch = Some(epoch.epoch);
                None
            }
            _ => None,
        }
    }
}
