//! The tasks of a session, by its records: which run, which have ended, and what the model knows of it. Pure.

use longhaul_context::{running_tasks_note, task_notification};
use longhaul_protocol::{
    CarriedStall, CarriedTask, EndedTask, Note, Notification, SessionRecord, TaskEnded, TaskId, TaskNews,
    TaskStarted, TaskStatus,
};
use longhaul_tools::KnownTask;

use crate::Wake;

/// So many tasks that are over stay listed.
const LISTED: usize = 256;

/// The tasks of a session, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionTasks {
    list: Vec<TaskState>,
    /// Those that run, as the model was last told.
    noted: Vec<TaskId>,
}

/// A task of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskState {
    /// What it is.
    pub started: TaskStarted,
    /// How it ended.
    pub ended: Option<TaskEnded>,
    /// Whether the model knows that.
    pub told: Told,
    /// How far the model knows what it did.
    pub news: Option<TaskNews>,
    /// It seems to wait for input.
    pub waiting: Option<Stall>,
    /// Somebody wants it to end.
    pub is_to_end: bool,
}

/// Whether the model knows that a task has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Told {
    /// It has yet to be told.
    #[default]
    NotYet,
    /// A notification says so.
    Notified,
    /// Somebody ended it on purpose: no notification says so.
    Unneeded,
}

/// A task that has been silent for a while after what looks like a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stall {
    /// How much it had printed.
    pub printed: u64,
    /// What is said about that.
    pub text: String,
    /// The model was told.
    pub is_told: bool,
}

impl TaskState {
    fn new(started: TaskStarted) -> Self {
        Self { started, ended: None, told: Told::NotYet, news: None, waiting: None, is_to_end: false }
    }

    /// Its id.
    pub fn id(&self) -> TaskId {
        self.started.task_id
    }

    /// Whether it runs, as far as is on record.
    pub fn is_running(&self) -> bool {
        self.ended.is_none()
    }

    /// Its end, if the model has yet to be told of it.
    fn untold(&self) -> Option<&TaskEnded> {
        self.ended.as_ref().filter(|_| self.told == Told::NotYet)
    }
}

impl SessionTasks {
    /// All of them that are still listed.
    pub fn all(&self) -> &[TaskState] {
        &self.list
    }

    /// Those that run, as far as is on record.
    pub fn running(&self) -> impl Iterator<Item = &TaskState> {
        self.list.iter().filter(|task| task.is_running())
    }

    /// Those whose end the model has yet to be told.
    pub fn untold(&self) -> impl Iterator<Item = (&TaskStarted, &TaskEnded)> {
        self.list.iter().filter_map(|task| Some((&task.started, task.untold()?)))
    }

    /// Whether there is an end that begins a turn by itself.
    pub fn wakes(&self, wake: Wake) -> bool {
        self.untold().any(|(_, end)| match wake {
            Wake::Always => true,
            Wake::OnFailure => end.status != TaskStatus::Completed,
            Wake::Never => false,
        })
    }

    /// Whether nothing of them runs or waits to be told.
    pub fn are_over(&self) -> bool {
        self.running().next().is_none() && self.untold().next().is_none()
    }

    /// What the model is told at the boundary between two steps: ends, tasks that wait, and the set of those that run, if that
    /// has changed.
    pub fn tell(&self) -> Vec<SessionRecord> {
        let ends = self.untold().map(|(task, end)| {
            let text = task_notification(task, end);
            SessionRecord::Notification(Notification { task_id: task.task_id, text })
        });
        let stalls = self.running().filter_map(|task| {
            let stall = task.waiting.as_ref().filter(|stall| !stall.is_told)?;
            let waiting = TaskNews { task_id: task.id(), printed: stall.printed, ended: false };
            Some(SessionRecord::Note(Note { waiting: Some(waiting), ..Note::new(&stall.text) }))
        });
        ends.chain(stalls).chain(self.running_note().map(SessionRecord::Note)).collect()
    }

    fn running_note(&self) -> Option<Note> {
        let running: Vec<TaskId> = self.running().map(TaskState::id).collect();
        if running == self.noted {
            return None;
        }
        // If the last ones went with a notification, that says enough.
        if running.is_empty() && self.noted.iter().all(|id| self.went_with_a_word(*id)) {
            return None;
        }
        let text = running_tasks_note(self.running().map(|task| &task.started));
        Some(Note { running: Some(running), ..Note::new(text) })
    }

    /// Whether the model knows of a task's end by a notification, or will with the next step.
    fn went_with_a_word(&self, id: TaskId) -> bool {
        self.get(id).is_none_or(|task| task.told != Told::Unneeded)
    }

    /// What tools know of them. `printed` says how much one has printed by now, if that is known.
    pub(crate) fn known(&self, printed: impl Fn(TaskId) -> Option<u64>) -> impl Iterator<Item = KnownTask> {
        self.list.iter().map(move |task| KnownTask {
            started: task.started.clone(),
            ended: task.ended.clone(),
            told: task.news,
            is_waiting: task.waiting.as_ref().is_some_and(|stall| {
                task.is_running() && printed(task.id()).is_none_or(|printed| printed == stall.printed)
            }),
        })
    }

    /// What a new epoch carries of those that run.
    pub(crate) fn to_carry(&self) -> Vec<TaskStarted> {
        self.running().map(|task| task.started.clone()).collect()
    }

    /// What a new epoch carries of those that are over.
    pub(crate) fn ended_to_carry(&self) -> Vec<EndedTask> {
        let ended = |task: &TaskState| {
            let end = task.ended.clone()?;
            Some(EndedTask { task: task.started.clone(), end, told: task.told != Told::NotYet })
        };
        self.list.iter().filter_map(ended).collect()
    }

    /// What a new epoch carries of what is known besides.
    pub(crate) fn knowledge_to_carry(&self) -> Vec<CarriedTask> {
        let known = self.list.iter().map(|task| CarriedTask {
            task_id: task.id(),
            unneeded: task.told == Told::Unneeded,
            news: task.news,
            waiting: task.waiting.clone().map(|stall| CarriedStall {
                printed: stall.printed,
                text: stall.text,
                is_told: stall.is_told,
            }),
            is_to_end: task.is_to_end,
        });
        known
            .filter(|task| task.unneeded || task.news.is_some() || task.waiting.is_some() || task.is_to_end)
            .collect()
    }

    /// What an epoch that begins anew has carried over.
    pub(crate) fn carried(running: Vec<TaskStarted>, ended: Vec<EndedTask>, known: Vec<CarriedTask>) -> Self {
        // What the epoch begins with says which run.
        let noted = running.iter().map(|task| task.task_id).collect();
        let over = ended.into_iter().map(|EndedTask { task, end, told }| TaskState {
            ended: Some(end),
            told: if told { Told::Notified } else { Told::NotYet },
            ..TaskState::new(task)
        });
        let mut tasks = Self { list: over.chain(running.into_iter().map(TaskState::new)).collect(), noted };
        // Ids are in the order in which their calls were made.
        tasks.list.sort_by_key(TaskState::id);
        for carried in known {
            let Some(task) = tasks.get_mut(carried.task_id) else { continue };
            task.news = carried.news;
            task.is_to_end = carried.is_to_end;
            task.waiting = carried.waiting.map(|stall| Stall {
                printed: stall.printed,
                text: stall.text,
                is_told: stall.is_told,
            });
            if carried.unneeded {
                task.told = Told::Unneeded;
            }
        }
        tasks
    }

    /// A command goes on as a task.
    pub(crate) fn start(&mut self, task: TaskStarted) {
        if self.get(task.task_id).is_none() {
            self.list.push(TaskState::new(task));
        }
    }

    /// A task is over. One that was told before its record was lost is not told again.
    pub(crate) fn end(&mut self, end: TaskEnded) {
        let Some(task) = self.get_mut(end.task_id) else { return };
        let on_purpose = end.status == TaskStatus::Killed && (!end.unasked || task.is_to_end);
        if on_purpose && task.told == Told::NotYet {
            task.told = Told::Unneeded;
        }
        task.ended.get_or_insert(end);
        self.clear_out();
    }

    /// A record that one has ended is gone, and how with it. Where it can only be one, it is not looked for any more.
    pub(crate) fn one_has_ended(&mut self, message: &str) {
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
            });
            task.told = Told::Unneeded;
        }
    }

    /// The model was told of an end.
    pub(crate) fn notified(&mut self, id: TaskId) {
        if let Some(task) = self.get_mut(id) {
            task.told = Told::Notified;
            // Whoever waits for it has heard the news.
            let printed = task.news.map_or(0, |news| news.printed);
            task.news = Some(TaskNews { task_id: id, printed, ended: true });
        }
    }

    /// It was told of the first that it had yet to be told of, and nobody knows any more which that was.
    pub(crate) fn notified_of_one(&mut self) {
        let first = self.untold().next().map(|(task, _)| task.task_id);
        first.into_iter().for_each(|id| self.notified(id));
    }

    /// The model was told what a note says.
    pub(crate) fn noted(&mut self, note: &Note) {
        if let Some(running) = &note.running {
            self.noted.clone_from(running);
        }
        let waiting = note.waiting.and_then(|news| self.get_mut(news.task_id)?.waiting.as_mut());
        waiting.into_iter().for_each(|stall| stall.is_told = true);
    }

    /// The model knows so much of a task.
    pub(crate) fn know(&mut self, news: TaskNews) {
        if let Some(task) = self.get_mut(news.task_id) {
            task.news = Some(news);
        }
    }

    /// A task seems to wait for input.
    pub(crate) fn waits(&mut self, news: TaskNews, text: String) {
        if let Some(task) = self.get_mut(news.task_id) {
            task.waiting = Some(Stall { printed: news.printed, text, is_told: false });
        }
    }

    /// Somebody wants a task to end.
    pub(crate) fn is_to_end(&mut self, id: TaskId) {
        if let Some(task) = self.get_mut(id).filter(|task| task.is_running()) {
            task.is_to_end = true;
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

    /// Drops the oldest of those that are over and told.
    fn clear_out(&mut self) {
        let is_done = |task: &TaskState| task.ended.is_some() && task.told != Told::NotYet;
        let mut surplus = self.list.iter().filter(|task| is_done(task)).count().saturating_sub(LISTED);
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
