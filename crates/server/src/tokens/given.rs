//! What the journal knows of a token that was given from outside it.

use longhaul_journal::{Journal, records};
use longhaul_protocol::{Hash, StreamName, TokenRecord, TokenScope};

use super::registry::TokenError;

/// A token that `longhaul token new` made, whether or not it still counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedToken {
    /// How people refer to it.
    pub name: String,
    pub scope: TokenScope,
    /// `longhaul token revoke` ended it.
    pub is_revoked: bool,
}

/// What the journal knows of the token with this text; `None` if it was not made here.
pub async fn find_recorded_token(
    journal: &dyn Journal,
    token: &str,
) -> Result<Option<RecordedToken>, TokenError> {
    let hash = Hash::of(token);
    let mut found: Option<RecordedToken> = None;
    let mut records = records(journal, &StreamName::tokens(), 1);
    while let Some(record) = records.next_undamaged().await? {
        match TokenRecord::decode(&record) {
            Ok(TokenRecord::Created(created)) if created.hash == hash => {
                let (name, scope) = (created.name, created.scope);
                found = Some(RecordedToken { name, scope, is_revoked: false });
            }
            Ok(TokenRecord::Revoked(revoked)) => {
                if let Some(token) = found.as_mut().filter(|token| token.name == revoked.name) {
                    token.is_revoked = true;
                }
            }
            _ => {}
        }
    }
    Ok(found)
}
