//! What must hold for the records of any session, whatever happened to it.

use std::collections::{HashMap, HashSet};

use longhaul_agent::State;
use longhaul_journal::{Journal, Page};
use longhaul_protocol::{CallId, Item, Record, SessionId, SessionRecord, StreamName};

/// All records of a session.
pub async fn records_of(journal: &dyn Journal, id: SessionId) -> Vec<Record> {
    let stream = StreamName::session(id);
    let mut records: Vec<Record> = Vec::new();
    loop {
        let from = records.last().map_or(1, |record| record.seq + 1);
        let page = journal.read(&stream, from, Page::default()).await.unwrap();
        if page.is_empty() {
            return records;
        }
        records.extend(page);
    }
}

/// What is wrong with the records of a session: T1 (an input is taken once), T2 (one turn at a time), T5 (each call has one
/// result), T13 (what finished is not run again), K5 (a task has one end, which is told once and not before), P4 (a question has one
/// answer).
pub fn broken_rules(records: &[Record]) -> Vec<String> {
    let mut broken = Vec::new();
    let mut state = State::default();
    let mut inputs = HashSet::new();
    let mut finished: HashMap<CallId, u64> = HashMap::new();
    let mut said: HashSet<CallId> = HashSet::new();
    let (mut started, mut ended, mut notified) = (HashSet::new(), HashSet::new(), HashSet::new());
    let (mut asked, mut answered) = (HashSet::new(), HashSet::new());
    for record in records {
        let at = record.seq;
        match SessionRecord::decode(record).unwrap() {
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
    broken
}
