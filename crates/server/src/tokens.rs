//! The tokens that the server accepts.

use crate::access::{Caller, Scope};

/// The tokens that the server accepts. It keeps hashes only.
#[derive(Debug, Default)]
pub struct TokenStore {
    tokens: Vec<StoredToken>,
}

#[derive(Debug)]
struct StoredToken {
    name: String,
    scope: Scope,
    hash: blake3::Hash,
}

impl TokenStore {
    /// Accepts a token from now on.
    pub fn insert(&mut self, name: &str, scope: Scope, token: &str) {
        let hash = blake3::hash(token.as_bytes());
        self.tokens.push(StoredToken { name: name.to_owned(), scope, hash });
    }

    /// The caller with this token. The comparison takes the same time wherever two tokens differ.
    pub(crate) fn find(&self, token: &str) -> Option<Caller> {
        let hash = blake3::hash(token.as_bytes());
        let stored = self.tokens.iter().find(|stored| stored.hash == hash)?;
        Some(Caller { token: stored.name.clone(), scope: stored.scope })
    }
}
