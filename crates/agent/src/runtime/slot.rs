//! What the handles of a session, its worker and the runtime share: who waits for what, and whether a worker is there.

use std::sync::{Arc, Mutex, MutexGuard};

use longhaul_journal::{Lease, name_session};
use longhaul_protocol::{Event, EventKind, InputId, OrderId, SessionId, TaskId, TaskNews, TurnEnded};
use tokio::sync::{Notify, OnceCell, oneshot};

use crate::client::watch::Hub;
use crate::clock::now;
use crate::runtime::{Inner, lock};
use crate::session::state::State;
use crate::{Error, Result, worker};

pub(crate) struct Shared {
    pub(crate) key: String,
    /// Known once the session was first used: looking at a key stores nothing.
    pub(crate) id: OnceCell<SessionId>,
    pub(crate) hub: Hub,
    /// Those who watch all sessions.
    all_watchers: Arc<Hub>,
    /// Something may be in the inbox.
    pub(crate) came: Notify,
    /// Held while something is put into the inbox, and while it is looked at.
    pub(crate) accepting: tokio::sync::Mutex<()>,
    slot: Mutex<Slot>,
}

#[derive(Default)]
struct Slot {
    worker: Presence,
    /// Something came that the worker has not looked for yet.
    news: bool,
    /// A lease that could not be given back.
    lease: Option<Lease>,
    awaiting_worker: Vec<oneshot::Sender<Result<()>>>,
    waiters: Vec<Waiter>,
    /// Tasks that are said to be over, and that seem to wait for input, with their last line.
    over: Vec<TaskId>,
    waiting: Vec<(TaskNews, String)>,
    /// Those who want the session to be nobody's as soon as it rests.
    parting: Vec<oneshot::Sender<()>>,
    /// Those who have found that the session is idle, and wait for what is done then.
    idle: Vec<oneshot::Sender<Result<bool>>>,
}

#[derive(Default, PartialEq, Eq)]
enum Presence {
    #[default]
    Absent,
    Coming,
    Here,
    /// It gives its lease back; if something came meanwhile, it comes again.
    Leaving,
}

struct Waiter {
    what: Awaited,
    taken: bool,
    tell: oneshot::Sender<Result<Option<TurnEnded>>>,
}

/// What somebody waits for the outcome of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaited {
    Input(InputId),
    Order(OrderId),
    /// A compaction that an order asked for.
    Compaction(OrderId),
}

impl Shared {
    pub(crate) fn new(key: &str, id: Option<SessionId>, all_watchers: Arc<Hub>) -> Self {
        Self {
            key: key.to_owned(),
            id: OnceCell::new_with(id),
            hub: Hub::default(),
            all_watchers,
            came: Notify::new(),
            accepting: tokio::sync::Mutex::default(),
            slot: Mutex::default(),
        }
    }

    /// Shows an event to all who watch this session, and to those who watch all of them.
    pub(crate) fn show(&self, event: &Event) {
        let id = self.id.get().copied();
        self.hub.show(event, id);
        self.all_watchers.show(event, id);
    }

    /// An event that is only shown.
    pub(crate) fn live(&self, turn: Option<u64>, kind: EventKind) -> Event {
        Event { seq: None, at: now(), session: self.key.clone(), turn, kind }
    }

    /// The session's id; from here on the key leads to it.
    pub(crate) async fn named(self: &Arc<Self>, runtime: &Arc<Inner>) -> Result<SessionId> {
        let id = self.id.get_or_try_init(|| name_session(&*runtime.journal, &self.key)).await?;
        runtime.remember(*id, self);
        Ok(*id)
    }

    /// Sees to it that a worker looks at the inbox.
    pub(crate) fn wake(self: &Arc<Self>, runtime: &Arc<Inner>) {
        let mut slot = self.slot();
        slot.news = true;
        match slot.worker {
            Presence::Absent => {
                slot.worker = Presence::Coming;
                drop(slot);
                if !runtime.spawn(worker::run(runtime.clone(), self.clone())) {
                    self.left(&Error::Suspended);
                }
            }
            Presence::Coming | Presence::Here | Presence::Leaving => self.came.notify_one(),
        }
    }

    /// Wakes the worker and waits until it holds the session.
    pub(crate) async fn awake(self: &Arc<Self>, runtime: &Arc<Inner>) -> Result<()> {
        self.named(runtime).await?;
        let (tell, told) = oneshot::channel();
        {
            let mut slot = self.slot();
            if slot.worker == Presence::Here {
                return Ok(());
            }
            slot.awaiting_worker.push(tell);
        }
        self.wake(runtime);
        told.await.unwrap_or(Err(Error::Suspended))
    }

    pub(crate) fn has_worker(&self) -> bool {
        self.slot().worker != Presence::Absent
    }

    /// The worker is here.
    pub(crate) fn arrived(&self) {
        let mut slot = self.slot();
        slot.worker = Presence::Here;
        for tell in slot.awaiting_worker.drain(..) {
            let _ = tell.send(Ok(()));
        }
    }

    /// The worker is about to look at the inbox.
    pub(crate) fn looking(&self) {
        self.slot().news = false;
    }

    /// The worker is done, and about to give its lease back.
    pub(crate) fn leaving(&self) {
        self.slot().worker = Presence::Leaving;
    }

    /// A lease that could not be given back, for the next time.
    pub(crate) fn keep(&self, lease: Lease) {
        self.slot().lease = Some(lease);
    }

    pub(crate) fn kept(&self) -> Option<Lease> {
        self.slot().lease.take()
    }

    /// The worker would leave; it must not, if something came after it last looked.
    pub(crate) fn may_leave(&self) -> bool {
        let mut slot = self.slot();
        slot.worker = if slot.news { Presence::Coming } else { Presence::Absent };
        if !slot.news {
            slot.parting.clear();
        }
        !slot.news
    }

    /// Has the worker leave as soon as it rests, and waits until it has: then the session is nobody's.
    pub(crate) async fn part(&self) {
        let (tell, told) = oneshot::channel();
        {
            let mut slot = self.slot();
            if slot.worker == Presence::Absent {
                return;
            }
            slot.parting.push(tell);
        }
        self.came.notify_one();
        // It is dropped, not told.
        let _ = told.await;
    }

    /// Whether somebody waits for the worker to leave.
    pub(crate) fn is_to_part(&self) -> bool {
        let mut slot = self.slot();
        slot.parting.retain(|tell| !tell.is_closed());
        !slot.parting.is_empty()
    }

    /// The worker has left; whoever waits is told why.
    pub(crate) fn left(&self, why: &Error) {
        let (sleepers, waiters, idle) = {
            let mut slot = self.slot();
            slot.worker = Presence::Absent;
            slot.parting.clear();
            let (sleepers, waiters) =
                (std::mem::take(&mut slot.awaiting_worker), std::mem::take(&mut slot.waiters));
            (sleepers, waiters, std::mem::take(&mut slot.idle))
        };
        for tell in idle {
            let _ = tell.send(Err(why.clone()));
        }
        for tell in sleepers {
            let _ = tell.send(Err(why.clone()));
        }
        for waiter in waiters {
            let _ = waiter.tell.send(Err(why.clone()));
        }
    }

    /// The outcome of what will be put into the inbox.
    pub(crate) fn wait_for(&self, what: Awaited) -> oneshot::Receiver<Result<Option<TurnEnded>>> {
        let (tell, told) = oneshot::channel();
        let mut slot = self.slot();
        slot.waiters.retain(|waiter| !waiter.tell.is_closed());
        slot.waiters.push(Waiter { what, taken: false, tell });
        told
    }

    /// What somebody waits for was taken from the inbox.
    pub(crate) fn taken(&self, what: Awaited) {
        for waiter in self.slot().waiters.iter_mut().filter(|waiter| waiter.what == what) {
            waiter.taken = true;
        }
    }

    /// Tells the outcome to those whose input or order was taken and does not wait for a later turn.
    pub(crate) fn settled(&self, ended: Option<&TurnEnded>, state: &State) {
        let later = |what: Awaited| state.pending_inputs.iter().any(|input| what == Awaited::Input(input.id));
        let concerns = |what: Awaited| !matches!(what, Awaited::Compaction(_)) && !later(what);
        self.tell(|waiter| waiter.taken && concerns(waiter.what), || Ok(ended.cloned()));
    }

    /// A task is over, or should be looked at.
    pub(crate) fn task_is_over(&self, id: TaskId) {
        let mut slot = self.slot();
        if !slot.over.contains(&id) {
            slot.over.push(id);
        }
    }

    /// A task seems to wait for input.
    pub(crate) fn task_waits(&self, news: TaskNews, line: String) {
        self.slot().waiting.push((news, line));
    }

    /// What was said of tasks since the last time.
    pub(crate) fn news_of_tasks(&self) -> (Vec<TaskId>, Vec<(TaskNews, String)>) {
        let mut slot = self.slot();
        (std::mem::take(&mut slot.over), std::mem::take(&mut slot.waiting))
    }

    /// Has the worker do what is done while a session is idle: whether something was.
    pub(crate) async fn ask_as_idle(self: &Arc<Self>, runtime: &Arc<Inner>) -> Result<bool> {
        self.awake(runtime).await?;
        let (tell, told) = oneshot::channel();
        self.slot().idle.push(tell);
        self.wake(runtime);
        told.await.unwrap_or(Err(Error::Suspended))
    }

    /// Whether somebody waits for what is done while the session is idle.
    pub(crate) fn is_asked_as_idle(&self) -> bool {
        let mut slot = self.slot();
        slot.idle.retain(|tell| !tell.is_closed());
        !slot.idle.is_empty()
    }

    /// What is done while the session is idle was done, or there was nothing to do.
    pub(crate) fn was_idle(&self, what: &Result<bool>) {
        let idle = std::mem::take(&mut self.slot().idle);
        for tell in idle {
            let _ = tell.send(what.clone());
        }
    }

    /// A compaction has ended: tells those who asked for one.
    pub(crate) fn compacted(&self) {
        self.tell(|waiter| waiter.taken && matches!(waiter.what, Awaited::Compaction(_)), || Ok(None));
    }

    /// Tells all_watchers who waits that something is wrong.
    pub(crate) fn trouble(&self, error: &Error) {
        self.tell(|_| true, || Err(error.clone()));
    }

    fn tell(&self, whom: impl Fn(&Waiter) -> bool, what: impl Fn() -> Result<Option<TurnEnded>>) {
        let told: Vec<Waiter> = self.slot().waiters.extract_if(.., |waiter| whom(waiter)).collect();
        for waiter in told {
            let _ = waiter.tell.send(what());
        }
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        lock(&self.slot)
    }
}
