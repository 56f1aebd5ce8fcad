//! The tokens that the server accepts.
//!
//! Tokens that people make are records of the stream `tokens`; only their hashes are stored. The server folds that stream
//! and looks at its head twice a second, so a new or revoked token counts within a second. Two more come from outside the
//! journal: the one of the first start, a private file, and the one in an environment variable.
//!
//! | killed | what is there | what happens next |
//! | --- | --- | --- |
//! | before the append of `token_created` | nothing | `token new` printed nothing; it is run again |
//! | after it, before the token is printed | a token that no person knows | `token revoke NAME` frees the name |
//! | before the append of `token_revoked` | the token counts | `token revoke` said nothing; it is run again |
//! | a record can't be read any more | it may have revoked any token | the tokens before it do not count; new ones can be made |
//! | while `run/http-token` is written | a partial file, or the whole one | a partial file is never read; the next start makes the file |

mod cookie;
mod file;
mod given;
mod rate;
mod registry;
mod restored;
mod signed_out;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use longhaul_journal::Journal;
use longhaul_protocol::{At, Seq, StreamName};
use tokio::sync::watch;

pub(crate) use cookie::{CookieKey, clearing_cookies, cookie_values, seconds, setting_cookies};
pub use file::{HttpTokenFile, HttpTokenFileError};
pub use given::{RecordedToken, find_recorded_token};
pub use rate::RateLimit;
pub(crate) use rate::{FailureLimiter, RateBucket};
use registry::{TokenChange, TokenChanges};
pub use registry::{TokenEntry, TokenError, TokenListing, create_token, list_tokens, revoke_token};
pub use restored::RestoredTokens;
pub(crate) use signed_out::SignedOutCookies;

use crate::access::{Caller, Scope};

/// How often the server looks for new and revoked tokens.
pub(crate) const REFRESH_INTERVAL: Duration = Duration::from_millis(500);

/// A given token of this length can't be guessed, even if a person chose it, so its owner is never locked out.
const MIN_UNGUESSABLE_BYTES: usize = 32;

/// The name of the token in `run/http-token`.
pub const FIRST_START_NAME: &str = "http-token";
/// The name of the token in the environment variable that `server.token_env` names.
pub const VARIABLE_NAME: &str = "env";

/// The tokens that the server accepts. It keeps hashes only.
#[derive(Default)]
pub struct TokenStore {
    tokens: RwLock<Vec<Arc<StoredToken>>>,
    file: Option<PathBuf>,
}

/// An accepted token.
pub(crate) struct StoredToken {
    pub(crate) name: String,
    pub(crate) scope: Scope,
    pub(crate) origin: TokenOrigin,
    pub(crate) created: Option<At>,
    hash: blake3::Hash,
    /// A person may have chosen the text, and it is short.
    is_guessable: bool,
    rate: Mutex<RateBucket>,
    /// A stream that the token opened ends when this is true.
    revoked: watch::Sender<bool>,
}

/// Where a token comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenOrigin {
    /// The embedding program or the environment. A person may have chosen a text that can be guessed.
    Given,
    /// The stream `tokens`.
    Journal,
    /// The file of the first start.
    File,
}

impl StoredToken {
    fn new(name: &str, scope: Scope, hash: blake3::Hash, origin: TokenOrigin, created: Option<At>) -> Self {
        let rate = Mutex::new(RateBucket::new(Instant::now()));
        let (name, revoked) = (name.to_owned(), watch::Sender::new(false));
        Self { name, scope, origin, created, hash, is_guessable: false, rate, revoked }
    }

    pub(crate) fn caller(&self) -> Caller {
        Caller { token: self.name.clone(), token_id: self.id(), scope: self.scope, is_local: false }
    }

    /// The name of a token of the journal may be given again after it was revoked, so its hash identifies it. Other names
    /// are reserved; and a text that a person chose could be guessed from its hash.
    fn id(&self) -> String {
        match self.origin {
            TokenOrigin::Journal => self.hash.to_hex().to_string(),
            TokenOrigin::Given | TokenOrigin::File => self.name.clone(),
        }
    }

    pub(crate) fn hash(&self) -> &blake3::Hash {
        &self.hash
    }

    /// Ends the streams that the token opened.
    pub(crate) fn revoke(&self) {
        self.revoked.send_replace(true);
    }

    pub(crate) fn is_revoked(&self) -> bool {
        *self.revoked.borrow()
    }

    /// Becomes true when the token is revoked. It is never false again.
    pub(crate) fn revocation(&self) -> watch::Receiver<bool> {
        self.revoked.subscribe()
    }

    /// Whether the token could be guessed: a person may have chosen its text, and it is short.
    pub(crate) fn is_guessable(&self) -> bool {
        self.is_guessable
    }

    /// Takes one request from the token's rate, or says how long to wait.
    pub(crate) fn take_request(&self, limit: RateLimit) -> Result<(), Duration> {
        self.rate.lock().unwrap_or_else(PoisonError::into_inner).take(limit, Instant::now())
    }
}

impl TokenStore {
    /// A store that also accepts the token in this file, which may come and go.
    pub fn with_file(file: Option<PathBuf>) -> Self {
        Self { file, ..Self::default() }
    }

    /// Accepts a token from now on.
    pub fn insert(&mut self, name: &str, scope: Scope, token: &str) {
        let hash = blake3::hash(token.as_bytes());
        let is_guessable = token.len() < MIN_UNGUESSABLE_BYTES;
        let given = StoredToken::new(name, scope, hash, TokenOrigin::Given, None);
        self.add(StoredToken { is_guessable, ..given });
    }

    /// The accepted token with this text. blake3 compares hashes in constant time, and the hash of a guess says nothing
    /// about how close it is.
    pub(crate) fn find(&self, token: &str) -> Option<Arc<StoredToken>> {
        let hash = blake3::hash(token.as_bytes());
        self.list().into_iter().find(|stored| stored.hash == hash)
    }

    /// The accepted tokens with this name. A name of the journal may be that of a given token, too.
    pub(crate) fn named(&self, name: &str) -> Vec<Arc<StoredToken>> {
        self.list().into_iter().filter(|stored| stored.name == name).collect()
    }

    pub(crate) fn list(&self) -> Vec<Arc<StoredToken>> {
        self.tokens.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, token: StoredToken) {
        self.tokens.write().unwrap_or_else(PoisonError::into_inner).push(Arc::new(token));
    }

    /// Stops accepting some tokens, and ends the streams that they opened.
    fn revoke(&self, is_revoked: impl Fn(&StoredToken) -> bool) {
        self.tokens.write().unwrap_or_else(PoisonError::into_inner).retain(|token| {
            let revoked = is_revoked(token);
            if revoked {
                token.revoke();
            }
            !revoked
        });
    }

    /// Reads what is new in the journal and in the file since `cursor`.
    pub(crate) async fn refresh(&self, journal: &dyn Journal, cursor: &mut TokenCursor) {
        self.refresh_file(cursor);
        let stream = StreamName::tokens();
        // A journal that can't be read now is asked again at the next look. Known tokens stay.
        let Ok(head) = journal.head(&stream).await else { return };
        if head.seq < cursor.seq {
            // Another journal was restored.
            self.revoke(|token| token.origin == TokenOrigin::Journal);
            cursor.seq = 0;
        }
        if head.seq == cursor.seq {
            return;
        }
        let mut changes = TokenChanges::after(journal, cursor.seq);
        while let Ok(Some(change)) = changes.next().await {
            cursor.seq = changes.seq();
            match change {
                TokenChange::Created(at, created) => {
                    let hash = blake3::Hash::from_bytes(*created.hash.as_bytes());
                    let origin = TokenOrigin::Journal;
                    // A token of the journal that was also given, for example by the environment, keeps the scope that it
                    // was made with, and can be revoked.
                    self.revoke(|token| token.origin == TokenOrigin::Given && token.hash == hash);
                    self.add(StoredToken::new(&created.name, created.scope, hash, origin, Some(at)));
                }
                TokenChange::Revoked(revoked) => {
                    self.revoke(|token| token.origin == TokenOrigin::Journal && token.name == revoked.name);
                }
                TokenChange::Lost => self.revoke(|token| token.origin == TokenOrigin::Journal),
                TokenChange::Other => {}
            }
        }
    }

    fn refresh_file(&self, cursor: &mut TokenCursor) {
        let Some(path) = &self.file else { return };
        let token = HttpTokenFile::at(path.clone()).read().ok().flatten();
        let hash = token.map(|token| blake3::hash(token.as_bytes()));
        if hash == cursor.file {
            return;
        }
        cursor.file = hash;
        self.revoke(|token| token.origin == TokenOrigin::File);
        if let Some(hash) = hash {
            self.add(StoredToken::new(FIRST_START_NAME, Scope::Admin, hash, TokenOrigin::File, None));
        }
    }
}

/// How far the store has read.
#[derive(Default)]
pub(crate) struct TokenCursor {
    seq: Seq,
    file: Option<blake3::Hash>,
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
