//! Background tasks from the view of their session: commands that continue after their call has returned.
//!
//! A keeper process runs the command. How the end of a task wakes its session:
//!
//! 1. The [task monitor](crate::worker::task_monitor) notices that the keeper is gone, puts the task into the session's slot
//!    (`queue_task_check`) and wakes the worker, or starts one (`SessionSlot::wake`).
//! 2. The worker takes the report out of the slot and appends `task_ended`, here: [`record_task_news`].
//! 3. [`SessionTasks::should_wake`](crate::session::tasks::SessionTasks::should_wake) says whether that end starts a turn. If
//!    so, the worker waits a moment for further ends (`update_gather_timer`) and `decide` begins the turn.
//!
//! | a crash after | is on disk | on resume |
//! | --- | --- | --- |
//! | the keeper has started the command | `tool_started` | the call is found running: `task_started` and its result are recorded |
//! | `task_started`, with the result of its call | the task | it is monitored again |
//! | the task's end | the keeper's status, or that the keeper is gone | `task_ended` is recorded, once: a task that has one is not checked again |
//! | `task_ended` | the end, with the available output | the model is notified before its next step; an idle session wakes for it, by policy |
//! | `notification`, with `step_started` | that the model was notified | nothing: it is part of the context |
//! | the order to kill it | `order_taken` | it is killed again, which changes nothing if it has ended |
//!
//! Never: an end of which the model is notified twice or not at all; a task that the user killed and that is
//! announced as if it had ended by itself; a second start.

use std::sync::Arc;

use longhaul_journal::Blob;
use longhaul_protocol::{
    BlobRef, Record, SessionId, SessionRecord, StreamName, TaskEnded, TaskId, TaskNews, TaskStarted,
    TaskStatus, Warning,
};
use longhaul_tools::{FinishedTask, SessionTask, task_end};
use tokio::task::spawn_blocking;

use crate::subagents::child::{
    ChildEnd, ChildState, GONE, count_running_tasks, has_ended, read_child, task_ended_without_turn,
};
use crate::subagents::questions::{question_records, shown_name};
use crate::worker::task_monitor::{TaskRef, kill_task};
use crate::worker::{Worker, WorkerResult};

/// How much of the last recorded output the end of a lost task has.
const MAX_LOST_OUTPUT_CHARS: usize = 2_000;

/// Records the reports of the task monitor: tasks that ended, tasks that wait for input. Kills the tasks that the
/// user wants to end.
pub(super) async fn record_task_news(worker: &mut Worker) -> WorkerResult<()> {
    let (ended, stalled) = worker.slot().take_task_reports();
    record_task_ends(worker, ended).await?;
    record_stalled_tasks(worker, stalled).await?;
    for task in worker.state().tasks.running().filter(|task| task.kill_requested) {
        kill_task(worker.runtime(), (&task.started).into());
    }
    worker.update_gather_timer();
    Ok(())
}

/// Records the tasks that have ended according to the keepers' status files. So the next step announces them even if
/// the monitor has not reported them yet.
pub(crate) async fn record_finished_tasks(worker: &mut Worker) -> WorkerResult<()> {
    let running: Vec<TaskRef> = worker.state().tasks.running().map(|task| (&task.started).into()).collect();
    if running.is_empty() {
        return Ok(());
    }
    let mut ended = Vec::new();
    for (id, child) in running.iter().filter_map(|task| Some((task.id, task.child?))) {
        if has_ended(&*worker.runtime().journal, child).await.unwrap_or(false) {
            ended.push(id);
        }
    }
    let tasks = Arc::clone(&worker.runtime().tasks);
    let is_here = |task: &TaskRef| {
        let node = task.node.as_ref();
        task.child.is_none() && !node.is_some_and(|node| worker.runtime().is_other_node(node))
    };
    let here: Vec<TaskRef> = running.into_iter().filter(is_here).collect();
    let check = spawn_blocking(move || {
        let commands = here.into_iter().map(|task| task.id);
        commands.filter(|id| matches!(tasks.status(*id), Ok(Some(_)))).collect::<Vec<_>>()
    });
    ended.extend(check.await.unwrap_or_default());
    record_task_ends(worker, ended).await
}

/// Appends `task_ended`, with the output, for each of these tasks without a recorded end.
async fn record_task_ends(worker: &mut Worker, ended: Vec<TaskId>) -> WorkerResult<()> {
    let (mut facts, mut blobs) = (Vec::new(), Vec::new());
    for id in ended {
        let Some(task) = worker.state().tasks.get(id).filter(|task| task.is_running()) else { continue };
        if let Some(child) = task.started.session {
            let (records, output) = child_news(worker, &task.started, child).await;
            facts.extend(records);
            blobs.extend(output.map(Blob::new));
            continue;
        }
        let node = TaskRef::from(&task.started).node.filter(|node| worker.runtime().is_other_node(node));
        if let Some(node) = node {
            if worker.runtime().is_node_gone(&node).await {
                facts.push(SessionRecord::TaskEnded(lost_with_node(worker, id, &node).await));
            }
            continue;
        }
        let (tasks, redact) = (Arc::clone(&worker.runtime().tasks), worker.runtime().redact());
        let Ok(Ok(Some(end))) = spawn_blocking(move || task_end(&tasks, id, &redact)).await else {
            // It still runs, or its keeper can't be asked now. The monitor will report it again.
            continue;
        };
        let FinishedTask { status, exit_code, duration_ms, message, output, tail, unasked, .. } = end;
        let reference = output.as_deref().map(|output| BlobRef::to(output, "text/plain"));
        blobs.extend(output.map(Blob::new));
        facts.push(SessionRecord::TaskEnded(TaskEnded {
            task_id: id,
            status,
            exit_code,
            duration_ms,
            output: reference,
            tail,
            message,
            unasked,
            session: None,
        }));
    }
    if !facts.is_empty() {
        worker.mark_active();
    }
    worker.commit(facts, blobs).await
}

/// The end of a task whose node was given up. Its output is on that node; what the model was told of it is on record.
async fn lost_with_node(worker: &Worker, id: TaskId, node: &str) -> TaskEnded {
    let stream = StreamName::session(worker.id());
    let results = worker.runtime().journal.records_of_kind(&stream, "tool_finished").await;
    let output = |record: &Record| match SessionRecord::decode(record) {
        Ok(SessionRecord::ToolFinished(finished)) if finished.call == id.call() => Some(finished.content),
        _ => None,
    };
    let told = results.unwrap_or_default().iter().rev().find_map(output).unwrap_or_default();
    let skipped = told.chars().count().saturating_sub(MAX_LOST_OUTPUT_CHARS);
    TaskEnded {
        task_id: id,
        status: TaskStatus::Lost,
        exit_code: None,
        duration_ms: 0,
        output: None,
        tail: told.chars().skip(skipped).collect(),
        message: Some(format!(
            "node {node} was given up; what the command did after its last recorded output is not known"
        )),
        unasked: true,
        session: None,
    }
}

/// What a subagent's parent records of it: its end, with the output that the record refers to, or its questions.
async fn child_news(
    worker: &Worker,
    started: &TaskStarted,
    child: SessionId,
) -> (Vec<SessionRecord>, Option<Vec<u8>>) {
    let (state, runtime, id) = (worker.state(), worker.runtime(), started.task_id);
    let name = shown_name(started);
    let settled = || question_records(state, child, &name, None);
    match read_child(&*runtime.journal, child).await {
        Ok(ChildState::Running(running)) => (question_records(state, child, &name, Some(&running)), None),
        Ok(ChildState::Ended(end)) => {
            // What it left running ends with it. The monitor sees to that, and reports the subagent again.
            let has_leftovers = runtime.task_monitor.has_leftovers(id);
            let leftovers = match count_running_tasks(&*runtime.journal, child).await {
                Ok(leftovers) if leftovers == 0 || has_leftovers => leftovers,
                Ok(_) | Err(_) => return (settled(), None),
            };
            let (ended, output) = ChildEnd { leftovers, ..end }.task_ended(id, child);
            (settled().into_iter().chain([SessionRecord::TaskEnded(ended)]).collect(), output)
        }
        Ok(ChildState::Gone) => {
            let ended = task_ended_without_turn(id, child, TaskStatus::Lost, GONE);
            (settled().into_iter().chain([SessionRecord::TaskEnded(ended)]).collect(), None)
        }
        // It is about to start, or can't be read now.
        Ok(ChildState::NotStarted) | Err(_) => (vec![], None),
    }
}

/// Warns about tasks that seem to wait for input, once for each prompt that they print.
async fn record_stalled_tasks(worker: &mut Worker, stalled: Vec<(TaskNews, String)>) -> WorkerResult<()> {
    let is_new = |(news, _): &(TaskNews, String)| {
        let task = worker.state().tasks.get(news.task_id).filter(|task| task.is_running());
        task.is_some_and(|task| task.stall.as_ref().is_none_or(|stall| stall.printed_bytes != news.printed))
    };
    let facts = stalled.into_iter().filter(is_new).map(|(news, line)| {
        let text = longhaul_context::waiting_for_input_note(news.task_id, &line);
        SessionRecord::Warning(Warning { task: Some(news), ..Warning::new("task_waiting", text) })
    });
    let facts = facts.collect();
    worker.commit(facts, vec![]).await
}

/// The session's tasks, for the tools that list and read them.
pub(crate) fn known_tasks(worker: &Worker) -> Arc<[SessionTask]> {
    let runtime = worker.runtime();
    let known = worker.state().tasks.known_tasks(|id| runtime.task_monitor.printed_bytes(id));
    let placed = known.map(|task| {
        let node = TaskRef::from(&task.started).node.filter(|node| runtime.is_other_node(node));
        SessionTask { other_node: node.map(|node| node.to_string()), ..task }
    });
    placed.collect()
}
