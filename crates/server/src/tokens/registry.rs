//! The tokens in the journal: making, listing and revoking them.

use std::fs::File;
use std::io::{self, Read};

use longhaul_journal::{Append, Error, Journal, RecordCursor, records};
use longhaul_protocol::{At, Hash, Seq, StreamName, TokenCreated, TokenRecord, TokenRevoked, TokenScope};

use super::{FIRST_START_NAME, VARIABLE_NAME};

const MAX_NAME_BYTES: usize = 64;
/// How often an append is tried that lost the race to another one.
const MAX_APPEND_TRIES: usize = 10;

/// A token in a listing. Neither its text nor its hash is in it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TokenEntry {
    /// How people refer to it.
    pub name: String,
    pub scope: TokenScope,
    pub created: At,
}

/// The tokens that count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenListing {
    /// In the order in which they were made.
    pub tokens: Vec<TokenEntry>,
    /// A record can't be read. It may have revoked any token, so those that were made before it do not count.
    pub has_lost_record: bool,
}

/// What a record of the stream `tokens` says.
pub(super) enum TokenChange {
    Created(At, TokenCreated),
    Revoked(TokenRevoked),
    /// The record can't be read. It may have revoked any token before it.
    Lost,
    /// Nothing that this version knows.
    Other,
}

/// Reads the stream `tokens` from a position on.
pub(super) struct TokenChanges<'a>(RecordCursor<'a>);

impl<'a> TokenChanges<'a> {
    pub(super) fn after(journal: &'a dyn Journal, seq: Seq) -> Self {
        Self(records(journal, &StreamName::tokens(), seq + 1))
    }

    pub(super) async fn next(&mut self) -> Result<Option<TokenChange>, Error> {
        let record = match self.0.next().await {
            Err(Error::Damaged { .. }) => return Ok(Some(TokenChange::Lost)),
            record => record?,
        };
        let Some(record) = record else { return Ok(None) };
        Ok(Some(match TokenRecord::decode(&record) {
            Ok(TokenRecord::Created(created)) => TokenChange::Created(record.at, created),
            Ok(TokenRecord::Revoked(revoked)) => TokenChange::Revoked(revoked),
            // An erased token does not count. A record of a newer version says nothing to this one.
            Ok(TokenRecord::Unknown { .. }) => TokenChange::Other,
            Err(_) if record.kind == "token_created" => TokenChange::Other,
            Err(_) => TokenChange::Lost,
        }))
    }

    /// The last position that was read.
    pub(super) fn seq(&self) -> Seq {
        self.0.next_seq() - 1
    }
}

/// Why a token can't be made or revoked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The name can't be used.
    #[error("a token's name has 1 to 64 letters, digits, dots, dashes or underscores; {name:?} is not one")]
    BadName { name: String },
    /// The name belongs to a token that does not come from the journal.
    #[error("{name:?} is the name of a built-in token; choose another")]
    Reserved { name: String },
    #[error(
        "there is already a token named {name:?}; choose another name, or run `longhaul token revoke {name}` first"
    )]
    Exists { name: String },
    /// No token has this name.
    #[error("no token is named {name:?}; `longhaul token list` lists them")]
    Unknown { name: String },
    /// The system has no random bytes.
    #[error("can't get random bytes from the system: {0}")]
    Random(io::Error),
    #[error(transparent)]
    Journal(#[from] Error),
}

/// A new token: 256 random bits, in a form that the redactor recognises.
pub(super) fn new_token() -> io::Result<String> {
    let mut random = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    Ok(format!("lh_{}", Hash::from_bytes(random)))
}

/// Makes a token and returns its text, which is stored nowhere.
pub async fn create_token(
    journal: &dyn Journal,
    name: &str,
    scope: TokenScope,
) -> Result<String, TokenError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.bytes().all(allowed) {
        return Err(TokenError::BadName { name: name.to_owned() });
    }
    if name == FIRST_START_NAME || name == VARIABLE_NAME {
        return Err(TokenError::Reserved { name: name.to_owned() });
    }
    let token = new_token().map_err(TokenError::Random)?;
    let created = TokenCreated { name: name.to_owned(), scope, hash: Hash::of(&token) };
    append(journal, &TokenRecord::Created(created), |tokens| {
        let is_taken = tokens.iter().any(|token| token.name == name);
        if is_taken { Err(TokenError::Exists { name: name.to_owned() }) } else { Ok(()) }
    })
    .await?;
    Ok(token)
}

/// Revokes a token. Servers notice within a second.
pub async fn revoke_token(journal: &dyn Journal, name: &str) -> Result<(), TokenError> {
    let revoked = TokenRevoked { name: name.to_owned() };
    append(journal, &TokenRecord::Revoked(revoked), |tokens| {
        let is_known = tokens.iter().any(|token| token.name == name);
        if is_known { Ok(()) } else { Err(TokenError::Unknown { name: name.to_owned() }) }
    })
    .await
}

/// The tokens that count.
pub async fn list_tokens(journal: &dyn Journal) -> Result<TokenListing, TokenError> {
    Ok(fold(journal).await?.0)
}

/// Appends a record if the tokens allow it, whatever other processes append meanwhile.
async fn append(
    journal: &dyn Journal,
    record: &TokenRecord,
    check: impl Fn(&[TokenEntry]) -> Result<(), TokenError>,
) -> Result<(), TokenError> {
    let stream = StreamName::tokens();
    let mut tries = 0;
    loop {
        let (listing, head) = fold(journal).await?;
        check(&listing.tokens)?;
        tries += 1;
        match journal.append(Append::to(&stream).expecting(head).record(record.encode())).await {
            Err(Error::Conflict { .. }) if tries < MAX_APPEND_TRIES => {}
            appended => return Ok(appended.map(drop)?),
        }
    }
}

/// The tokens that count, and the head of their stream.
async fn fold(journal: &dyn Journal) -> Result<(TokenListing, Seq), TokenError> {
    let mut listing = TokenListing::default();
    let mut changes = TokenChanges::after(journal, 0);
    while let Some(change) = changes.next().await? {
        let tokens = &mut listing.tokens;
        match change {
            TokenChange::Created(created, TokenCreated { name, scope, .. }) => {
                tokens.push(TokenEntry { name, scope, created });
            }
            TokenChange::Revoked(revoked) => tokens.retain(|token| token.name != revoked.name),
            TokenChange::Lost => {
                tokens.clear();
                listing.has_lost_record = true;
            }
            TokenChange::Other => {}
        }
    }
    Ok((listing, changes.seq()))
}
