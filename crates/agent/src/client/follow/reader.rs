//! The task behind a follower.

use std::sync::Arc;
use std::time::Duration;

use longhaul_journal::{Error as JournalError, Holder, Journal, Subscription, records};
use longhaul_protocol::{Seq, SessionId, StreamName};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::client::follow::Followed;
use crate::client::follow::progress::{Course, Heed};
use crate::client::follow::wire::Line;
use crate::session::state::State;
use crate::{Error, Result};

/// How often it is looked who has the session, and whether there are records that nobody told of.
const LOOK: Duration = Duration::from_secs(1);
/// How often the records are looked at while somebody has the session and tells nothing: an older version, or one on another
/// machine.
const LOOK_UNTOLD: Duration = Duration::from_millis(100);

/// A call that stands.
struct Standing {
    call: Subscription,
    holder: Holder,
    /// What was told so far; nothing, before the first word.
    told: Option<Seq>,
    since: Instant,
}

impl Standing {
    /// How long nothing may be said before it is looked. Whoever is slow to say the first word is waited for: the records would
    /// tell of more than the words that come with them.
    fn patience(&self) -> Duration {
        let says_nothing = self.told.is_none() && self.since.elapsed() >= LOOK;
        if says_nothing { LOOK_UNTOLD } else { LOOK }
    }
}

struct Reading {
    journal: Arc<dyn Journal>,
    key: String,
    stream: StreamName,
    course: Course,
    call: Option<Standing>,
    /// The process that was last seen to have the session, or that would.
    holder: Option<Holder>,
    /// The journal was ahead of what had been told at the last look, and this is what had been told then.
    untold_since: Option<Seq>,
    tell: mpsc::Sender<Result<Followed>>,
    show: watch::Sender<Option<Holder>>,
}

/// Why it stops.
enum Stopped {
    /// Nobody follows any more.
    Alone,
    Failed(Error),
}

impl From<JournalError> for Stopped {
    fn from(error: JournalError) -> Self {
        Self::Failed(error.into())
    }
}

type Step<T> = std::result::Result<T, Stopped>;

pub(super) async fn read(
    journal: Arc<dyn Journal>,
    key: String,
    id: SessionId,
    state: State,
    tell: mpsc::Sender<Result<Followed>>,
    show: watch::Sender<Option<Holder>>,
) {
    let (course, stream) = (Course::new(&key, state), StreamName::session(id));
    let mut reading =
        Reading { journal, key, stream, course, call: None, holder: None, untold_since: None, tell, show };
    while let Err(Stopped::Failed(error)) = reading.go_on().await {
        match error {
            // It may work in a moment.
            Error::Journal(error) if error.may_pass() => tokio::time::sleep(LOOK).await,
            Error::Journal(JournalError::Closed) => return,
            error => {
                let _ = reading.tell.send(Err(error)).await;
                return;
            }
        }
    }
}

impl Reading {
    /// Follows until something is in the way.
    async fn go_on(&mut self) -> Step<()> {
        loop {
            self.look().await?;
            let until = Instant::now() + LOOK;
            while Instant::now() < until && self.attend(until).await? {}
        }
    }

    /// Sees who has the session, calls it, and reads what nobody tells of.
    async fn look(&mut self) -> Step<()> {
        let holder = self.who().await?;
        if holder != self.holder {
            self.show.send_replace(holder.clone());
            let is_gone = holder.is_none();
            self.holder = holder;
            if is_gone {
                self.read_all().await?;
                if let Some(abandoned) = self.course.abandoned() {
                    self.pass_on(abandoned).await?;
                }
            }
        }
        let is_called = |standing: &Standing| Some(&standing.holder) == self.holder.as_ref();
        if let Some(holder) = self.holder.clone()
            && !self.call.as_ref().is_some_and(is_called)
        {
            let call = self.journal.subscribe(&holder, &self.stream).await?;
            self.call = call.map(|call| Standing { call, holder, told: None, since: Instant::now() });
        }
        match &self.call {
            Some(Standing { told: Some(told), .. }) => self.read_untold(*told).await,
            Some(standing) if standing.since.elapsed() < LOOK => Ok(()),
            _ => self.read_all().await,
        }
    }

    /// Whoever has the session; if nobody has, whoever would.
    async fn who(&self) -> longhaul_journal::Result<Option<Holder>> {
        for stream in [&self.stream, &StreamName::host()] {
            let holder = self.journal.holder(stream).await?;
            if let Some(holder) = holder.filter(|holder| !holder.is_gone()) {
                return Ok(Some(holder));
            }
        }
        Ok(None)
    }

    /// Waits for the next thing, at most until then. Whether it goes on like this: not, when it must be looked at once.
    async fn attend(&mut self, until: Instant) -> Step<bool> {
        let Some(standing) = &mut self.call else {
            self.wait(if self.holder.is_some() { LOOK_UNTOLD } else { LOOK }, until).await?;
            self.read_all().await?;
            return Ok(true);
        };
        let wait = standing.patience();
        let line = tokio::select! {
            biased;
            () = self.tell.closed() => return Err(Stopped::Alone),
            line = standing.call.next() => line,
            () = tokio::time::sleep_until(until.min(Instant::now() + wait)) => {
                if wait == LOOK_UNTOLD {
                    self.read_all().await?;
                }
                return Ok(true);
            }
        };
        let Some(line) = line else { return self.hung_up(until).await };
        match self.course.line(Line::read(&line), standing.told.unwrap_or_default()) {
            Heed::Nothing => {}
            Heed::Show(followed) => self.pass_on(followed).await?,
            Heed::Read(seq) => {
                let told = standing.told.unwrap_or_default().max(seq);
                standing.told = Some(told);
                self.read_through(told).await?;
            }
            Heed::CallAgain => {
                self.call = None;
                self.wait(LOOK_UNTOLD, until).await?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Nobody tells any more: the records say what else there is. Whoever said something has ended, and who goes on is looked
    /// for soon; one that had nothing to say is not called again in the same second.
    async fn hung_up(&mut self, until: Instant) -> Step<bool> {
        let said_something = self.call.take().is_some_and(|standing| standing.told.is_some());
        self.read_all().await?;
        self.wait(LOOK_UNTOLD, until).await?;
        Ok(!said_something)
    }

    async fn wait(&self, wait: Duration, until: Instant) -> Step<()> {
        tokio::select! {
            () = self.tell.closed() => Err(Stopped::Alone),
            () = tokio::time::sleep_until(until.min(Instant::now() + wait)) => Ok(()),
        }
    }

    /// Reads on where there were records at two looks that nobody told of. At one they may just be on their way, and the words
    /// before them, too.
    async fn read_untold(&mut self, told: Seq) -> Step<()> {
        let head = self.journal.head(&self.stream).await?;
        if head.seq <= self.course.head() {
            self.untold_since = None;
        } else if self.untold_since.replace(told) == Some(told) {
            self.untold_since = None;
            self.read_all().await?;
        }
        Ok(())
    }

    async fn read_all(&mut self) -> Step<()> {
        self.read_through(Seq::MAX).await
    }

    /// Reads up to a record, or to the end.
    async fn read_through(&mut self, last: Seq) -> Step<()> {
        let mut cursor = records(&*self.journal, &self.stream, self.course.head() + 1).through(last);
        while let Some(record) = cursor.next().await? {
            let unreadable = |reason| Error::Unreadable { key: self.key.clone(), reason };
            let followed =
                self.course.record(record).map_err(|reason| Stopped::Failed(unreadable(reason)))?;
            for followed in followed {
                self.pass_on(followed).await?;
            }
        }
        Ok(())
    }

    async fn pass_on(&self, followed: Followed) -> Step<()> {
        self.tell.send(Ok(followed)).await.map_err(|_| Stopped::Alone)
    }
}
