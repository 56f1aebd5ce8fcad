//! A turn that is under way, in this process or in another one: the same events, the same outcome, the same ways to end it.

use std::time::Duration;

use longhaul_agent::{Cancelled, Error, Runtime, Session, Watched, Watcher, answer_question, cancel_turn};
use longhaul_protocol::{CompactDone, QuestionId, Seq, TurnEnded};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use crate::panics;
use crate::remote_session::Elsewhere;

/// How soon a cancellation is tried again that came before what it should cancel.
const AGAIN: Duration = Duration::from_millis(50);
/// How long another process may take to end a turn: a command is given two seconds before it is forced.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is wanted of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    /// That these words are answered.
    Say(String),
    /// That what is open comes to its end.
    Resume,
    /// That the turn that failed is run again, or that a wait ends.
    Retry,
    /// That the answer goes on where it was interrupted.
    Continue,
    /// That no task runs any more, and that what their ends begin comes to its end.
    Settle,
    /// That the context is made smaller; the summary dwells on this.
    Compact(Option<String>),
}

impl Wish {
    /// What is left of it when whoever had taken it on is gone: what was accepted is still there.
    pub(crate) fn abandoned(self) -> Self {
        match self {
            Self::Settle | Self::Compact(_) => self,
            Self::Say(_) | Self::Resume | Self::Retry | Self::Continue => Self::Resume,
        }
    }

    /// Whether the outcome of a turn is waited for, so that it is shown, asked about and ended from here.
    pub(crate) fn is_about_a_turn(&self) -> bool {
        !matches!(self, Self::Settle | Self::Compact(_))
    }
}

/// What became of a wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Became {
    /// The turn ended.
    Ended(TurnEnded),
    /// The context was made smaller.
    Compacted(CompactDone),
    /// It could not be, for this reason.
    NotCompacted(String),
    /// There was nothing to do.
    Nothing,
    /// Nobody runs the session any more; what was accepted stays accepted.
    Abandoned,
}

impl Became {
    /// What became of a turn, if there was one.
    pub(crate) fn of_turn(ended: Option<TurnEnded>) -> Self {
        ended.map_or(Self::Nothing, Self::Ended)
    }
}

/// A turn under way.
pub(crate) struct Underway {
    watched: UnboundedReceiver<Watched>,
    work: JoinHandle<(Option<Watcher>, Result<Became, Error>)>,
    cancelling: Option<JoinHandle<()>>,
    orders: Orders,
    place: Where,
}

/// How often it may take to end a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Orders {
    /// The one that began may have ended by itself, and the next one is not meant.
    Once,
    /// One that comes before the input that it is about ends nothing, so it is given again until it did.
    UntilItEnds,
}

impl Orders {
    fn about(wish: &Wish) -> Self {
        match wish {
            // It is over with the first: what comes after it is nobody's business here.
            Wish::Settle | Wish::Compact(_) => Self::Once,
            Wish::Say(_) | Wish::Resume | Wish::Retry | Wish::Continue => Self::UntilItEnds,
        }
    }
}

/// Where it can be ended.
#[derive(Clone)]
enum Where {
    Here(Session),
    Elsewhere(Elsewhere),
}

impl Underway {
    /// In this process; if another one has the session, there. The watcher is of the session, and is given back: what it sees
    /// between two turns is shown with the next.
    pub(crate) fn here(
        runtime: &Runtime,
        session: &Session,
        wish: Wish,
        mut watcher: Watcher,
        seen: Option<Seq>,
    ) -> Self {
        let (tell, watched) = unbounded_channel();
        let (at, runtime) = (session.clone(), runtime.clone());
        let orders = Orders::about(&wish);
        let work = tokio::spawn(async move {
            let became = see_through(&at, &runtime, wish, &tell, &mut watcher, seen).await;
            (Some(watcher), became)
        });
        Self { watched, work, cancelling: None, orders, place: Where::Here(session.clone()) }
    }

    /// In the process that has the session.
    pub(crate) fn elsewhere(elsewhere: Elsewhere, wish: Wish) -> Self {
        let (tell, watched) = unbounded_channel();
        let (place, orders) = (Where::Elsewhere(elsewhere.clone()), Orders::about(&wish));
        let work = tokio::spawn(async move { (None, elsewhere.see_through(&wish, &tell).await) });
        Self { watched, work, cancelling: None, orders, place }
    }

    /// What happens next in it; nothing, when it is over. Giving up on this loses nothing.
    pub(crate) async fn next(&mut self) -> Option<Watched> {
        let watched = self.watched.recv().await?;
        panics::rehearse(&watched);
        Some(watched)
    }

    /// What became of it, once nothing more happens; and the watcher, if it had one.
    pub(crate) async fn over(mut self) -> anyhow::Result<(Option<Watcher>, Result<Became, Error>)> {
        Ok((&mut self.work).await?)
    }

    /// Settles a question, wherever the session is run.
    pub(crate) async fn answer(&self, question: QuestionId, words: &str) -> Result<(), Error> {
        match &self.place {
            Where::Here(session) => session.answer(question, words).await,
            Where::Elsewhere(Elsewhere { journal, key, id, redactor, .. }) => {
                answer_question(&**journal, key, *id, question, &redactor.redact(words)).await
            }
        }
    }

    /// Ends the turn. It is over when nothing more happens.
    pub(crate) fn cancel(&mut self) {
        if self.cancelling.is_none() {
            self.cancelling = Some(tokio::spawn(cancel(self.place.clone(), self.orders)));
        }
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        self.work.abort();
        if let Some(cancelling) = &self.cancelling {
            cancelling.abort();
        }
    }
}

async fn cancel(place: Where, orders: Orders) {
    loop {
        let is_done = match &place {
            Where::Here(session) => !matches!(session.cancel().await, Ok(None)),
            Where::Elsewhere(Elsewhere { journal, id, .. }) => {
                !matches!(cancel_turn(&**journal, *id, PATIENCE).await, Ok(Cancelled::NoTurn))
            }
        };
        if is_done || orders == Orders::Once {
            return;
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Sees a wish through wherever it is worked on, and takes it over when nobody else does.
async fn see_through(
    session: &Session,
    runtime: &Runtime,
    mut wish: Wish,
    tell: &UnboundedSender<Watched>,
    watcher: &mut Watcher,
    seen: Option<Seq>,
) -> Result<Became, Error> {
    loop {
        match try_here(session, &wish, tell, watcher).await {
            Err(Error::RunsElsewhere { .. }) => {}
            // It is accepted, and goes on where the session is by now.
            Err(Error::AcceptedElsewhere { .. } | Error::TakenOver { .. }) => wish = wish.abandoned(),
            done => return done,
        }
        // Whoever has it has named it.
        let Some(id) = session.id() else { return Ok(Became::Nothing) };
        let (journal, redactor) = (runtime.journal(), runtime.redactor().clone());
        let elsewhere = Elsewhere { journal, key: session.key().to_owned(), id, seen, redactor };
        match elsewhere.see_through(&wish, tell).await? {
            Became::Abandoned => wish = wish.abandoned(),
            became => return Ok(became),
        }
    }
}

/// Works on a wish here, and tells what happens meanwhile.
async fn try_here(
    session: &Session,
    wish: &Wish,
    tell: &UnboundedSender<Watched>,
    watcher: &mut Watcher,
) -> Result<Became, Error> {
    let work = async {
        let ended = match wish {
            Wish::Say(text) => session.send(text.clone()).await.map(Some),
            Wish::Resume => session.resume().await,
            Wish::Retry => session.retry().await,
            Wish::Continue => session.go_on().await,
            Wish::Settle => session.settle().await.map(|_| None),
            Wish::Compact(focus) => {
                return match session.compact_with(focus.clone()).await {
                    Ok(done) => Ok(done.map_or(Became::Nothing, Became::Compacted)),
                    Err(Error::NotCompacted { reason }) => Ok(Became::NotCompacted(reason)),
                    Err(error) => Err(error),
                };
            }
        };
        ended.map(Became::of_turn)
    };
    let mut work = std::pin::pin!(work);
    let outcome = loop {
        tokio::select! {
            biased;
            Some(watched) = watcher.next() => drop(tell.send(watched)),
            outcome = &mut work => break outcome,
        }
    };
    while let Some(watched) = watcher.next_waiting().await {
        let _ = tell.send(watched);
    }
    outcome
}
