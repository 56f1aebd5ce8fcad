//! One wish, carried through to its end by a process that ends with it.

use std::sync::Arc;

use longhaul_agent::{Patience, Runtime, load, redactor};
use longhaul_protocol::{Outcome, TurnEnded};

use crate::arguments::{Choice, Place};
use crate::elsewhere::Elsewhere;
use crate::inbox::refuse_trashed;
use crate::output::{in_words, note, shortened};
use crate::signals::{Ends, INTERRUPT};
use crate::teller::{Form, Teller};
use crate::underway::{Became, Underway, Wish};
use crate::{config, exit, words};

/// A session of which one thing is wanted.
pub(crate) struct OneShot<'a> {
    pub(crate) place: &'a Place,
    pub(crate) choice: &'a Choice,
    pub(crate) key: String,
    pub(crate) form: Form,
}

/// How this process comes to leave.
enum Left {
    /// It was seen through.
    Became(Became),
    /// A signal came that suspends.
    Suspended(u8),
}

impl OneShot<'_> {
    /// Sees it through wherever the session is run, and says how it went.
    pub(crate) async fn carry_out(self, wish: Wish) -> anyhow::Result<u8> {
        // From here on a signal is ours: one that comes while the journal is opened must not be lost.
        let mut ends = Ends::new()?;
        let mut teller = Teller::new(self.form);
        let code = self.see_through(wish, &mut teller, &mut ends).await;
        match teller.finish(&mut ends, *code.as_ref().unwrap_or(&exit::FAILED)).await {
            Ok(None) => code,
            Ok(Some(error)) => {
                let key = &self.key;
                note(format!(
                    "the answer could not be written ({error}); longhaul sessions show {key} has it"
                ));
                Ok(code?.max(exit::FAILED))
            }
            Err(number) => Ok(number),
        }
    }

    async fn see_through(&self, mut wish: Wish, teller: &mut Teller, ends: &mut Ends) -> anyhow::Result<u8> {
        let mut interrupts = 0;
        if let Some(elsewhere) = self.elsewhere().await? {
            self.name_session(&wish, teller);
            let underway = Underway::elsewhere(elsewhere, wish.clone());
            match attend(underway, teller, ends, &mut interrupts).await? {
                Left::Suspended(number) => {
                    teller.note("the turn goes on in the process that runs it");
                    return Ok(exit::SIGNAL + number);
                }
                // What was accepted is still there; from here on it is ours to run.
                Left::Became(Became::Abandoned) => wish = Wish::Resume,
                Left::Became(became) => return self.conclude(became, &wish, interrupts, teller).await,
            }
        }
        let config = config::with_model(self.place, self.choice, Patience::OneShot).await?;
        let runtime = tokio::select! {
            opened = Runtime::open(config) => opened?,
            number = ends.next() => return Ok(exit::SIGNAL + number),
        };
        let session = runtime.session(&self.key).await?;
        refuse_trashed(&*runtime.journal(), &self.key).await?;
        self.name_session(&wish, teller);
        let underway = Underway::here(&runtime, &session, wish.clone(), session.watch());
        let left = attend(underway, teller, ends, &mut interrupts).await;
        tokio::select! {
            ended = runtime.shutdown() => ended?,
            // Whoever asks twice means it. What is on disk is on disk.
            number = ends.next() => std::process::exit(i32::from(exit::SIGNAL + number)),
        }
        match left? {
            Left::Became(became) => self.conclude(became, &wish, interrupts, teller).await,
            Left::Suspended(number) => {
                teller.note(format!("suspended; to go on: longhaul resume {}", self.key));
                Ok(exit::SIGNAL + number)
            }
        }
    }

    /// Whoever says something learns where the conversation goes on.
    fn name_session(&self, wish: &Wish, teller: &mut Teller) {
        if matches!(wish, Wish::Say(_)) {
            teller.note(format!("session {}", self.key));
        }
    }

    /// The session, if another process runs it now.
    async fn elsewhere(&self) -> anyhow::Result<Option<Elsewhere>> {
        let Some(journal) = self.place.journal().await? else { return Ok(None) };
        let entry = longhaul_journal::Journal::session(&journal, &self.key).await?;
        let Some(entry) = entry else { return Ok(None) };
        refuse_trashed(&journal, &self.key).await?;
        let redactor = redactor(&config::load(self.place, self.choice)?)?;
        let elsewhere =
            Elsewhere { journal: Arc::new(journal), key: self.key.clone(), id: entry.id, redactor };
        Ok(if elsewhere.holder().await?.is_some() { Some(elsewhere) } else { None })
    }

    async fn conclude(
        &self,
        became: Became,
        wish: &Wish,
        interrupts: u32,
        teller: &mut Teller,
    ) -> anyhow::Result<u8> {
        Ok(match became {
            Became::Ended(ended) => {
                self.say_how_it_ended(&ended, teller).await?;
                match ended.outcome {
                    Outcome::Cancelled if interrupts > 0 => exit::SIGNAL + INTERRUPT,
                    _ => code_of(ended.outcome, ended.code.as_deref()),
                }
            }
            Became::Nothing | Became::Abandoned => {
                let last = self.last_outcome().await?;
                teller.note(nothing_to(wish, last));
                if *wish == Wish::Resume { exit::DONE } else { exit::FAILED }
            }
        })
    }

    /// What went wrong, and how to go on.
    async fn say_how_it_ended(&self, ended: &TurnEnded, teller: &mut Teller) -> anyhow::Result<()> {
        let Some(what) = words::end_of_turn(ended.outcome, ended.error.as_deref()) else { return Ok(()) };
        teller.note(what);
        if ended.outcome != Outcome::Cancelled {
            teller.note(format!("to run it again: longhaul retry -s {}", self.key));
        }
        if self.state().await?.is_some_and(|state| state.interrupted.is_some()) {
            teller.note(format!("to go on from what there was: longhaul continue -s {}", self.key));
        }
        Ok(())
    }

    async fn last_outcome(&self) -> anyhow::Result<Option<Outcome>> {
        Ok(self.state().await?.and_then(|state| state.last_outcome))
    }

    async fn state(&self) -> anyhow::Result<Option<longhaul_agent::State>> {
        let Some(journal) = self.place.journal().await? else { return Ok(None) };
        let Some(entry) = longhaul_journal::Journal::session(&journal, &self.key).await? else {
            return Ok(None);
        };
        Ok(Some(load(&journal, &self.key, entry.id).await?))
    }
}

/// Shows what happens until it is over. The first Ctrl-C ends the turn, a second one this process.
async fn attend(
    mut underway: Underway,
    teller: &mut Teller,
    ends: &mut Ends,
    interrupts: &mut u32,
) -> anyhow::Result<Left> {
    loop {
        tokio::select! {
            biased;
            number = ends.next() => match number {
                INTERRUPT if *interrupts > 0 => std::process::exit(i32::from(exit::SIGNAL + INTERRUPT)),
                INTERRUPT => {
                    *interrupts += 1;
                    underway.cancel();
                    teller.note("ending the turn; Ctrl-C once more leaves at once");
                }
                number => return Ok(Left::Suspended(number)),
            },
            watched = underway.next() => match watched {
                Some(watched) => teller.watched(&watched),
                None => return Ok(Left::Became(underway.over().await?.1?)),
            },
        }
    }
}

/// What scripts learn from how a turn ended.
pub(crate) fn code_of(outcome: Outcome, code: Option<&str>) -> u8 {
    match (outcome, code) {
        (Outcome::Completed, _) => exit::DONE,
        (Outcome::Limit, _) => exit::LIMIT,
        (Outcome::Failed, Some("throttled" | "quota")) => exit::THROTTLED,
        (Outcome::Failed, Some("offline" | "unreachable")) => exit::OFFLINE,
        (Outcome::Failed, Some("context_too_long")) => exit::TOO_LONG,
        (Outcome::Failed | Outcome::Cancelled, _) => exit::FAILED,
    }
}

/// Why there was nothing to do.
pub(crate) fn nothing_to(wish: &Wish, last: Option<Outcome>) -> String {
    let last = match last {
        None => "there was no turn yet".to_owned(),
        Some(Outcome::Limit) => "the last turn reached a limit".to_owned(),
        Some(outcome) => shortened(&format!("the last turn {}", in_words(outcome)), 80),
    };
    match wish {
        Wish::Retry => format!("nothing to retry: {}", last.replace("turn cancelled", "turn was cancelled")),
        Wish::Continue => "nothing to continue: no answer was interrupted".to_owned(),
        Wish::Say(_) | Wish::Resume => "nothing is unfinished".to_owned(),
    }
}

#[cfg(test)]
#[path = "one_shot_tests.rs"]
mod tests;
