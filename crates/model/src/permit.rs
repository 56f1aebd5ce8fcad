//! The right to make a model call. Every call needs one, and says why it is made.
//!
//! The ledger of the crate `agent` makes a permit for each call that it has reserved, and settles the call by what the
//! permit saw of it.

use std::sync::{Mutex, PoisonError};

use longhaul_protocol::{AttemptId, Cause, SpendReserved};

use crate::{AnswerPart, AnswerStream, Model, ModelFailure, Request, TokenCounts};

/// The right to make one model call.
#[derive(Debug)]
pub struct CallPermit {
    attempt: AttemptId,
    cause: Cause,
    progress: Mutex<CallProgress>,
}

/// How far a call has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallProgress {
    /// The request was sent, or is about to be.
    pub is_sent: bool,
    /// The server began to answer.
    pub has_begun: bool,
    /// The call failed.
    pub has_failed: bool,
    /// The answer came to its end.
    pub is_complete: bool,
    /// Bytes of text, reasoning and arguments that were received.
    pub received_bytes: u64,
    /// The tokens that the provider counted so far.
    pub tokens: Option<TokenCounts>,
}

impl CallPermit {
    /// The permit for a call that the ledger has reserved.
    pub fn for_reservation(reserved: &SpendReserved) -> Self {
        Self { attempt: reserved.attempt, cause: reserved.cause, progress: Mutex::default() }
    }

    /// A permit for a call that no ledger knows. For tests, and for programs that keep account themselves.
    pub fn unreserved(cause: Cause) -> Self {
        Self { attempt: AttemptId::generate(), cause, progress: Mutex::default() }
    }

    pub fn attempt(&self) -> AttemptId {
        self.attempt
    }

    pub fn cause(&self) -> Cause {
        self.cause
    }

    /// How far the call has come.
    pub fn progress(&self) -> CallProgress {
        *self.lock()
    }

    /// Sends a request, and observes the answer. A request that the server refused may be sent again with the same
    /// permit.
    pub async fn send<'a>(
        &'a self,
        model: &dyn Model,
        request: Request,
    ) -> Result<ObservedAnswer<'a>, ModelFailure> {
        self.begin_call();
        match model.ask(request, self).await {
            Ok(answer) => Ok(ObservedAnswer { permit: self, answer }),
            Err(failure) => {
                self.lock().has_failed = true;
                Err(failure)
            }
        }
    }

    /// The request of a call without a stream of parts is about to be sent.
    pub(crate) fn begin_call(&self) {
        *self.lock() = CallProgress { is_sent: true, ..CallProgress::default() };
    }

    /// Such a call ended: with the tokens that the provider counted, or failed.
    pub(crate) fn end_call(&self, counted: Option<TokenCounts>) {
        let mut progress = self.lock();
        progress.has_failed = counted.is_none();
        progress.has_begun = counted.is_some();
        progress.is_complete = counted.is_some();
        progress.tokens = counted;
    }

    fn observe(&self, received: &Result<AnswerPart, ModelFailure>) {
        let mut progress = self.lock();
        match received {
            Err(_) => progress.has_failed = true,
            // Headers only.
            Ok(AnswerPart::Limits(_)) => {}
            Ok(part) => {
                progress.has_begun = true;
                progress.received_bytes += received_bytes(part);
                match part {
                    AnswerPart::Usage(tokens) => progress.tokens = Some(*tokens),
                    AnswerPart::End(_) => progress.is_complete = true,
                    _ => {}
                }
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, CallProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The size of the text in a part.
fn received_bytes(part: &AnswerPart) -> u64 {
    match part {
        AnswerPart::TextDelta(text)
        | AnswerPart::ReasoningDelta(text)
        | AnswerPart::ArgumentsDelta(text)
        | AnswerPart::CallStart { name: text, .. } => text.len() as u64,
        _ => 0,
    }
}

/// An answer whose parts its permit sees.
pub struct ObservedAnswer<'a> {
    permit: &'a CallPermit,
    answer: Box<dyn AnswerStream>,
}

impl ObservedAnswer<'_> {
    /// The next part, as [`AnswerStream::next`] returns it. A token count that can't be true is unknown.
    pub async fn next(&mut self) -> Result<AnswerPart, ModelFailure> {
        let received = self.answer.next().await.map(|part| match part {
            AnswerPart::Usage(tokens) => AnswerPart::Usage(tokens.plausible()),
            part => part,
        });
        self.permit.observe(&received);
        received
    }
}

#[cfg(test)]
#[path = "permit_tests.rs"]
mod tests;
