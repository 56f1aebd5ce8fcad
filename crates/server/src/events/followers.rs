//! How many event streams are open: in all, and by token.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::access::Caller;
use crate::problem::{ApiResult, Problem};

/// Counts open streams.
pub(crate) struct Followers {
    room: Arc<Semaphore>,
    /// The most that one token may have open, so that no token takes all the room.
    max_of_token: usize,
    of_tokens: Arc<Mutex<HashMap<String, usize>>>,
}

/// A stream that is counted until this is dropped.
pub(crate) struct CountedFollower {
    token: String,
    of_tokens: Arc<Mutex<HashMap<String, usize>>>,
    _permit: OwnedSemaphorePermit,
}

impl Followers {
    pub(crate) fn new(max: usize) -> Self {
        let max_of_token = max.div_ceil(2);
        Self { room: Arc::new(Semaphore::new(max)), max_of_token, of_tokens: Arc::default() }
    }

    /// Counts a stream of a token.
    pub(crate) fn count(&self, caller: &Caller) -> ApiResult<CountedFollower> {
        let permit = self.count_any()?;
        let mut of_tokens = self.of_tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let open = of_tokens.entry(caller.token_id.clone()).or_default();
        if *open >= self.max_of_token {
            return Err(too_many("this token has too many event streams open; close some"));
        }
        *open += 1;
        drop(of_tokens);
        let (token, of_tokens) = (caller.token_id.clone(), self.of_tokens.clone());
        Ok(CountedFollower { token, of_tokens, _permit: permit })
    }

    /// Counts a stream in all only.
    pub(crate) fn count_any(&self) -> ApiResult<OwnedSemaphorePermit> {
        Arc::clone(&self.room)
            .try_acquire_owned()
            .map_err(|_| too_many("too many event streams are open; close some, or try again later"))
    }
}

impl Drop for CountedFollower {
    fn drop(&mut self) {
        let mut of_tokens = self.of_tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = of_tokens.get_mut(&self.token) {
            *open -= 1;
            if *open == 0 {
                of_tokens.remove(&self.token);
            }
        }
    }
}

fn too_many(detail: &str) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_followers", detail)
}
