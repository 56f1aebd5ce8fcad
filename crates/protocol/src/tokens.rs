use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::record::record_kinds;
use crate::{Hash, ParseError};

record_kinds! {
    /// The records of the stream `tokens`: who may use the HTTP API.
    TokenRecord {
        "token_created" => Created(TokenCreated),
        "token_revoked" => Revoked(TokenRevoked),
    }
}

/// A token was made. Its text is shown once and stored nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCreated {
    /// Unique among the tokens that are not revoked.
    pub name: String,
    pub scope: TokenScope,
    /// The hash of the token's text.
    pub hash: Hash,
}

/// A token was revoked. Its name is free again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRevoked {
    pub name: String,
}

/// What a token allows. Each scope includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenScope {
    /// Every GET.
    Read,
    /// Inputs, orders, answers, forks, ending tasks, `/v1`, `/mcp`.
    Act,
    /// Everything else: folders, modes, models, deleting, importing, exporting, tokens, schedules, writing memory.
    Admin,
}

impl TokenScope {
    /// The scope as people write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Act => "act",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for TokenScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for TokenScope {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let found = [Self::Read, Self::Act, Self::Admin].into_iter().find(|scope| scope.as_str() == text);
        found.ok_or_else(|| ParseError::new("scope", text, "read, act or admin"))
    }
}
