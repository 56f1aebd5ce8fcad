//! A session as a program holds it: send, cancel, watch. What it does is done by its worker.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use longhaul_journal::{Page, accept, name_session};
use longhaul_protocol::{
    At, Event, EventKind, InboxRecord, Input, InputId, JoinMode, Order, OrderId, OrderKind, Seq, SessionId,
    StreamName, TurnEnded,
};
use tokio::sync::{Notify, OnceCell, oneshot};

use crate::load::load;
use crate::runtime::Inner;
use crate::state::State;
use crate::watch::{Hub, Watcher};
use crate::{Error, Result, worker};

/// One conversation.
#[derive(Clone)]
pub struct Session {
    pub(crate) runtime: Arc<Inner>,
    pub(crate) shared: Arc<Shared>,
}

/// An input that is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// Its place in the inbox.
    pub seq: Seq,
    /// Its id; that of the first one, if its key was used before.
    pub id: InputId,
}

impl Session {
    /// How people find it.
    pub fn key(&self) -> &str {
        &self.shared.key
    }

    /// Its id, if it was ever used.
    pub fn id(&self) -> Option<SessionId> {
        self.shared.id.get().copied()
    }

    /// Sees what happens from now on.
    pub fn watch(&self) -> Watcher {
        self.shared.hub.watch()
    }

    /// Says something and waits for the end of the turn that has seen it.
    pub async fn send(&self, text: impl Into<String>) -> Result<TurnEnded> {
        // Whoever waits for the outcome must be the one who runs the turn.
        self.shared.awake(&self.runtime).await?;
        let input =
            Input { id: InputId::generate(), text: text.into(), images: vec![], mode: JoinMode::Join };
        let outcome = self.shared.wait_for(Awaited::Input(input.id));
        self.put(input, None).await?;
        let ended = outcome.await.unwrap_or(Err(Error::Suspended))?;
        ended.ok_or(Error::Suspended)
    }

    /// Puts an input into the inbox. When this returns it is on disk; whoever holds the session, in whatever process, runs it.
    /// The same idempotency key twice is one input.
    pub async fn put(&self, input: Input, key: Option<&str>) -> Result<Accepted> {
        let id = self.named().await?;
        let known = input.id;
        let mut record = InboxRecord::Input(input).encode();
        if let Some(key) = key {
            record = record.with_key(key);
        }
        let seq = accept(&*self.runtime.journal, id, record).await?;
        let input = if key.is_some() { self.input_at(id, seq).await?.unwrap_or(known) } else { known };
        // Before anybody is rung: what is taken was accepted first.
        self.shared.show(&self.shared.live(None, EventKind::InputAccepted { input_seq: seq, id: input }));
        self.ring(id).await;
        Ok(Accepted { seq, id: input })
    }

    /// Ends the running turn, and returns when its end is on record. Nothing, if no turn was running.
    pub async fn cancel(&self) -> Result<Option<TurnEnded>> {
        let Some(id) = self.known().await? else { return Ok(None) };
        self.shared.awake(&self.runtime).await?;
        let order = Order { id: OrderId::generate(), kind: OrderKind::Cancel };
        let outcome = self.shared.wait_for(Awaited::Order(order.id));
        accept(&*self.runtime.journal, id, InboxRecord::Order(order).encode()).await?;
        self.ring(id).await;
        outcome.await.unwrap_or(Err(Error::Suspended))
    }

    /// What it is right now, by its records.
    pub async fn state(&self) -> Result<State> {
        match self.known().await? {
            Some(id) => load(&*self.runtime.journal, self.key(), id).await,
            None => Ok(State::default()),
        }
    }

    /// Tells whoever holds the session; if nobody does, it is held here from now on.
    async fn ring(&self, id: SessionId) {
        self.shared.wake(&self.runtime);
        // What is on disk is found without a ring, too.
        let _ = self.runtime.journal.ring(&StreamName::session(id)).await;
    }

    /// The id of what stands in the inbox: with a key that was used before it is not what was just sent.
    async fn input_at(&self, id: SessionId, seq: Seq) -> Result<Option<InputId>> {
        let page = Page { records: 1, bytes: 0 };
        let inbox = StreamName::inbox(id);
        let records = self.runtime.journal.read(&inbox, seq, page).await?;
        Ok(records.first().and_then(|record| match InboxRecord::decode(record) {
            Ok(InboxRecord::Input(input)) => Some(input.id),
            _ => None,
        }))
    }

    /// The session's id, if it has one.
    async fn known(&self) -> Result<Option<SessionId>> {
        if let Some(id) = self.shared.id.get() {
            return Ok(Some(*id));
        }
        match self.runtime.journal.session(self.key()).await? {
            Some(_) => Ok(Some(self.named().await?)),
            None => Ok(None),
        }
    }

    /// The session's id; from here on the key leads to it.
    async fn named(&self) -> Result<SessionId> {
        self.shared.named(&self.runtime).await
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.runtime.forget(&self.shared);
    }
}

/// What the handles of a session, its worker and the runtime share.
pub(crate) struct Shared {
    pub(crate) key: String,
    /// Known once the session was first used: looking at a key stores nothing.
    pub(crate) id: OnceCell<SessionId>,
    pub(crate) hub: Hub,
    /// Those who watch all sessions.
    everybody: Arc<Hub>,
    /// Something may be in the inbox.
    pub(crate) came: Notify,
    slot: Mutex<Slot>,
}

#[derive(Default)]
struct Slot {
    worker: Presence,
    /// Something came that the worker has not looked for yet.
    news: bool,
    awaiting_worker: Vec<oneshot::Sender<Result<()>>>,
    waiters: Vec<Waiter>,
}

#[derive(Default, PartialEq, Eq)]
enum Presence {
    #[default]
    Absent,
    Coming,
    Here,
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
}

impl Shared {
    pub(crate) fn new(key: &str, id: Option<SessionId>, everybody: Arc<Hub>) -> Self {
        let (hub, came, slot) = (Hub::default(), Notify::new(), Mutex::default());
        Self { key: key.to_owned(), id: OnceCell::new_with(id), hub, everybody, came, slot }
    }

    /// Shows an event to all who watch this session, and to those who watch all of them.
    pub(crate) fn show(&self, event: &Event) {
        self.hub.show(event);
        self.everybody.show(event);
    }

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
            Presence::Coming | Presence::Here => self.came.notify_one(),
        }
    }

    /// Wakes the worker and waits until it holds the session.
    async fn awake(self: &Arc<Self>, runtime: &Arc<Inner>) -> Result<()> {
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

    /// The worker would leave; it must not, if something came after it last looked.
    pub(crate) fn may_leave(&self) -> bool {
        let mut slot = self.slot();
        if !slot.news {
            slot.worker = Presence::Absent;
        }
        !slot.news
    }

    /// The worker has left; whoever waits is told why.
    pub(crate) fn left(&self, why: &Error) {
        let (sleepers, waiters) = {
            let mut slot = self.slot();
            slot.worker = Presence::Absent;
            (std::mem::take(&mut slot.awaiting_worker), std::mem::take(&mut slot.waiters))
        };
        for tell in sleepers {
            let _ = tell.send(Err(why.clone()));
        }
        for waiter in waiters {
            let _ = waiter.tell.send(Err(why.clone()));
        }
    }

    fn wait_for(&self, what: Awaited) -> oneshot::Receiver<Result<Option<TurnEnded>>> {
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
        let later = |what: Awaited| state.waiting.iter().any(|input| what == Awaited::Input(input.id));
        self.tell(|waiter| waiter.taken && !later(waiter.what), || Ok(ended.cloned()));
    }

    /// Tells everybody who waits that something is wrong.
    pub(crate) fn trouble(&self, error: &Error) {
        self.tell(|_| true, || Err(error.clone()));
    }

    fn tell(&self, whom: impl Fn(&Waiter) -> bool, what: impl Fn() -> Result<Option<TurnEnded>>) {
        let told: Vec<Waiter> = self.slot().waiters.extract_if(.., |waiter| whom(waiter)).collect();
        for waiter in told {
            let _ = waiter.tell.send(what());
        }
    }

    /// An event that is only shown.
    pub(crate) fn live(&self, turn: Option<u64>, kind: EventKind) -> Event {
        Event { seq: None, at: now(), session: self.key.clone(), turn, kind }
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        // What is behind the lock is whole at every moment, also after a panic elsewhere.
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn now() -> At {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    At(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
