//! The background tasks of a session: which run, which have ended, and what the model knows about them. Pure.

use longhaul_context::{running_tasks_note, task_notification};
use longhaul_protocol::{
    CallId, CarriedTask, Cause, EndedTask, Note, Notification, SessionRecord, TaskEnded, TaskId, TaskNews,
    TaskStall, TaskStarted, TaskStatus,
};
use longhaul_tools::SessionTask;

use crate::config::Wake;

/// The most ended and announced tasks that stay listed.
const MAX_ENDED_TASKS: usize = 256;

/// The tasks of a session, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionTasks {
    list: Vec<TaskState>,
    /// The running tasks in the last note to the model.
    announced_running: Vec<TaskId>,
}

/// A task of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskState {
    /// The record of its start.
    pub started: TaskStarted,
    /// The record of its end.
    pub ended: Option<TaskEnded>,
    /// Whether the model knows that it has ended.
    pub end_notice: EndNotice,
    /// What the model knows about it: its output so far, and its end.
    pub known_to_model: Option<TaskNews>,
    /// It seems to wait for input.
    pub stall: Option<TaskStall>,
    /// The user or the model has ordered it to end.
    pub kill_requested: bool,
}

/// Whether the model knows that a task has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EndNotice {
    /// The next step announces it.
    #[default]
    Pending,
    /// A notification announced it.
    Sent,
    /// It was killed on purpose, so no notification is needed.
    NotNeeded,
}

impl TaskState {
    fn new(started: TaskStarted) -> Self {
        Self {
            started,
            ended: None,
            end_notice: EndNotice::Pending,
            known_to_model: None,
            stall: None,
            kill_requested: false,
        }
    }

    /// Its id.
    pub fn id(&self) -> TaskId {
        self.started.task_id
    }

    /// Whether it runs, according to the records.
    pub fn is_running(&self) -> bool {
        self.ended.is_none()
    }

    fn unannounced_end(&self) -> Option<&TaskEnded> {
        self.ended.as_ref().filter(|_| self.end_notice == EndNotice::Pending)
    }
}

impl SessionTasks {
    /// All listed tasks, the oldest first.
    pub fn all(&self) -> &[TaskState] {
        &self.list
    }

    /// The running tasks, according to the records.
    pub fn running(&self) -> impl Iterator<Item = &TaskState> {
        self.list.iter().filter(|task| task.is_running())
    }

    /// The ended tasks whose end the model does not know yet.
    pub fn unannounced_ends(&self) -> impl Iterator<Item = (&TaskStarted, &TaskEnded)> {
        self.list.iter().filter_map(|task| Some((&task.started, task.unannounced_end()?)))
    }

    /// Whether the end of a task wakes the session: an unannounced end starts a turn if the policy says so.
    pub fn should_wake(&self, wake: Wake) -> bool {
        self.unannounced_ends().any(|(_, end)| match wake {
            Wake::Always => true,
            Wake::OnFailure => end.status != TaskStatus::Completed,
            Wake::Never => false,
        })
    }

    /// Why a turn without an input begins: the oldest task whose end the model does not know is a command or a subagent.
    pub fn wake_cause(&self) -> Cause {
        let first = self.unannounced_ends().next();
        if first.is_some_and(|(task, _)| task.session.is_some()) { Cause::Child } else { Cause::Task }
    }

    /// Whether no task runs and every end is announced.
    pub fn are_settled(&self) -> bool {
        self.running().next().is_none() && self.unannounced_ends().next().is_none()
    }

    /// What the next step announces to the model: ends, stalled tasks, and the list of running tasks if it has
    /// changed.
    pub fn announcements(&self) -> Vec<SessionRecord> {
        let ends = self.unannounced_ends().map(|(task, end)| {
            let text = task_notification(task, end);
            SessionRecord::Notification(Notification { task_id: task.task_id, text })
        });
        let stalls = self.running().filter_map(|task| {
            let stall = task.stall.as_ref().filter(|stall| !stall.is_announced)?;
            let waiting = TaskNews { task_id: task.id(), printed: stall.printed_bytes, ended: false };
            Some(SessionRecord::Note(Note { waiting: Some(waiting), ..Note::new(&stall.text) }))
        });
        ends.chain(stalls).chain(self.running_note().map(SessionRecord::Note)).collect()
    }

    fn running_note(&self) -> Option<Note> {
        let running: Vec<TaskId> = self.running().map(TaskState::id).collect();
        if running == self.announced_running {
            return None;
        }
        // The notifications of the last ends already say it.
        if running.is_empty() && self.announced_running.iter().all(|id| self.has_end_notification(*id)) {
            return None;
        }
        let text = running_tasks_note(self.running().map(|task| &task.started));
        Some(Note { running: Some(running), ..Note::new(text) })
    }

    /// Whether a notification announces the end of the task, now or with the next step.
    fn has_end_notification(&self, id: TaskId) -> bool {
        self.get(id).is_none_or(|task| task.end_notice != EndNotice::NotNeeded)
    }

    /// The tasks in the form that tools see. `printed` returns the bytes that a task has printed so far, if known.
    pub(crate) fn known_tasks(
        &self,
        printed: impl Fn(TaskId) -> Option<u64>,
    ) -> impl Iterator<Item = SessionTask> {
        self.list.iter().map(move |task| SessionTask {
            started: task.started.clone(),
            ended: task.ended.clone(),
            subagent: None,
            other_node: None,
            told: task.known_to_model,
            is_waiting: task.stall.as_ref().is_some_and(|stall| {
                task.is_running() && printed(task.id()).is_none_or(|printed| printed == stall.printed_bytes)
            }),
        })
    }

    /// The running tasks, for a new epoch.
    pub(crate) fn carry_running(&self) -> Vec<TaskStarted> {
        self.running().map(|task| task.started.clone()).collect()
    }

    /// The ended tasks, for a new epoch.
    pub(crate) fn carry_ended(&self) -> Vec<EndedTask> {
        let ended = |task: &TaskState| {
            let end = task.ended.clone()?;
            Some(EndedTask { task: task.started.clone(), end, told: task.end_notice != EndNotice::Pending })
        };
        self.list.iter().filter_map(ended).collect()
    }

    /// The other facts about the tasks, for a new epoch.
    pub(crate) fn carry_knowledge(&self) -> Vec<CarriedTask> {
        let known = self.list.iter().map(|task| CarriedTask {
            task_id: task.id(),
            unneeded: task.end_notice == EndNotice::NotNeeded,
            news: task.known_to_model,
            waiting: task.stall.clone(),
            is_to_end: task.kill_requested,
        });
        known
            .filter(|task| task.unneeded || task.news.is_some() || task.waiting.is_some() || task.is_to_end)
            .collect()
    }

    /// Restores the tasks from the record of an epoch.
    pub(crate) fn restore(running: Vec<TaskStarted>, ended: Vec<EndedTask>, known: Vec<CarriedTask>) -> Self {
        // The preface of the epoch lists the running ones.
        let announced_running = running.iter().map(|task| task.task_id).collect();
        let over = ended.into_iter().map(|EndedTask { task, end, told }| TaskState {
            ended: Some(end),
            end_notice: if told { EndNotice::Sent } else { EndNotice::Pending },
            ..TaskState::new(task)
        });
        let mut tasks =
            Self { list: over.chain(running.into_iter().map(TaskState::new)).collect(), announced_running };
        // Ids sort in the order of their calls.
        tasks.list.sort_by_key(TaskState::id);
        for carried in known {
            let Some(task) = tasks.get_mut(carried.task_id) else { continue };
            task.known_to_model = carried.news;
            task.kill_requested = carried.is_to_end;
            task.stall = carried.waiting;
            if carried.unneeded {
                task.end_notice = EndNotice::NotNeeded;
            }
        }
        tasks
    }

    pub(crate) fn record_start(&mut self, task: TaskStarted) {
        if self.get(task.task_id).is_none() {
            self.list.push(TaskState::new(task));
        }
    }

    /// Records an end. If it was announced before its record was lost, it is not announced again.
    pub(crate) fn record_end(&mut self, end: TaskEnded) {
        let Some(task) = self.get_mut(end.task_id) else { return };
        let on_purpose = end.status == TaskStatus::Killed && (!end.unasked || task.kill_requested);
        if on_purpose && task.end_notice == EndNotice::Pending {
            task.end_notice = EndNotice::NotNeeded;
        }
        task.ended.get_or_insert(end);
        self.drop_oldest();
    }

    /// Records an end whose record is erased. If only one task runs, it is that task.
    pub(crate) fn record_erased_end(&mut self, message: &str) {
        let mut running = self.list.iter_mut().filter(|task| task.ended.is_none());
        if let (Some(task), None) = (running.next(), running.next()) {
            task.ended = Some(TaskEnded {
                task_id: task.id(),
                status: TaskStatus::Lost,
                exit_code: None,
                duration_ms: 0,
                output: None,
                tail: String::new(),
                message: Some(message.to_owned()),
                unasked: false,
                session: None,
            });
            task.end_notice = EndNotice::NotNeeded;
        }
    }

    pub(crate) fn record_notification(&mut self, id: TaskId) {
        if let Some(task) = self.get_mut(id) {
            task.end_notice = EndNotice::Sent;
            // Waiting for this task would find nothing new.
            let printed = task.known_to_model.map_or(0, |news| news.printed);
            task.known_to_model = Some(TaskNews { task_id: id, printed, ended: true });
        }
    }

    /// Records a notification whose record is erased. It announced the first unannounced end.
    pub(crate) fn record_erased_notification(&mut self) {
        let first = self.unannounced_ends().next().map(|(task, _)| task.task_id);
        first.into_iter().for_each(|id| self.record_notification(id));
    }

    pub(crate) fn record_note(&mut self, note: &Note) {
        if let Some(running) = &note.running {
            self.announced_running.clone_from(running);
        }
        let waiting = note.waiting.and_then(|news| self.get_mut(news.task_id)?.stall.as_mut());
        waiting.into_iter().for_each(|stall| stall.is_announced = true);
    }

    /// Records what the model knows of a task through the result of a call. The call that started a subagent tells its end.
    pub(crate) fn record_news(&mut self, call: CallId, news: TaskNews) {
        if let Some(task) = self.get_mut(news.task_id) {
            task.known_to_model = Some(news);
            if news.ended && news.task_id == TaskId::from(call) {
                task.end_notice = EndNotice::NotNeeded;
            }
        }
    }

    pub(crate) fn record_stall(&mut self, news: TaskNews, text: String) {
        if let Some(task) = self.get_mut(news.task_id) {
            task.stall = Some(TaskStall { printed_bytes: news.printed, text, is_announced: false });
        }
    }

    pub(crate) fn request_kill(&mut self, id: TaskId) {
        if let Some(task) = self.get_mut(id).filter(|task| task.is_running()) {
            task.kill_requested = true;
        }
    }

    /// The task with this id, or the one that this call started.
    pub fn get(&self, id: impl Into<TaskId>) -> Option<&TaskState> {
        let id = id.into();
        self.list.iter().find(|task| task.id() == id)
    }

    fn get_mut(&mut self, id: TaskId) -> Option<&mut TaskState> {
        self.list.iter_mut().find(|task| task.id() == id)
    }

    /// Drops the oldest ended and announced tasks beyond the maximum.
    fn drop_oldest(&mut self) {
        let is_done = |task: &TaskState| task.ended.is_some() && task.end_notice != EndNotice::Pending;
        let mut surplus =
            self.list.iter().filter(|task| is_done(task)).count().saturating_sub(MAX_ENDED_TASKS);
        self.list.retain(|task| {
            let goes = surplus > 0 && is_done(task);
            surplus -= usize::from(goes);
            !goes
        });
    }
}

#[cfg(test)]
#[path = "tasks_tests.rs"]
mod tests;
