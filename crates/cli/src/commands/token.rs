//! `longhaul token`: who may use the HTTP API.

use longhaul_journal::Journal as _;
use longhaul_protocol::PrintablePath;
use longhaul_server::{
    FIRST_START_NAME, HttpTokenFile, Scope, TokenError, create_token, list_tokens, revoke_token,
};
use serde::Serialize;

use crate::args::{GlobalArgs, TokenCommand};
use crate::output::{format_moment, line, note, print};
use crate::{bad_usage, exit};

/// What is said if a record of the tokens can't be read.
pub(crate) const LOST_TOKENS: &str = "warning: part of the list of tokens is damaged, so tokens that were made before it no longer count; \
     make new ones with `longhaul token new`";

pub(crate) async fn run(
    globals: &GlobalArgs,
    command: Option<TokenCommand>,
    as_json: bool,
) -> anyhow::Result<u8> {
    match command {
        None => list(globals, as_json).await,
        Some(TokenCommand::List { json }) => list(globals, as_json || json).await,
        Some(TokenCommand::New { scope, name }) => create(globals, scope, &name).await,
        Some(TokenCommand::Revoke { name }) => revoke(globals, &name).await,
    }
}

async fn create(globals: &GlobalArgs, scope: Scope, name: &str) -> anyhow::Result<u8> {
    let journal = globals.open_or_create_journal().await?;
    let token = create_token(&journal, name, scope).await;
    journal.close().await;
    line(token.map_err(usage_error)?)?;
    Ok(exit::DONE)
}

async fn revoke(globals: &GlobalArgs, name: &str) -> anyhow::Result<u8> {
    if name == FIRST_START_NAME {
        let file = HttpTokenFile::in_home(&globals.home_dir()?);
        if !file.revoke()? {
            return Err(bad_usage(format!("there is no {}", file.path().printable())));
        }
    } else {
        let Some(journal) = globals.open_journal().await? else {
            return Err(usage_error(TokenError::Unknown { name: name.to_owned() }));
        };
        let revoked = revoke_token(&journal, name).await;
        journal.close().await;
        revoked.map_err(usage_error)?;
    }
    note(format!("revoked the token {name:?}"));
    Ok(exit::DONE)
}

/// A token in the listing.
#[derive(Serialize)]
struct TokenRow {
    name: String,
    scope: Scope,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    /// The file of the token of the first start.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

async fn list(globals: &GlobalArgs, as_json: bool) -> anyhow::Result<u8> {
    let mut rows = Vec::new();
    let mut lines = Vec::new();
    if let Some(journal) = globals.open_journal().await? {
        let listing = list_tokens(&journal).await;
        journal.close().await;
        let listing = listing?;
        if listing.has_lost_record {
            note(LOST_TOKENS);
        }
        for token in listing.tokens {
            let created = format_moment(token.created);
            lines.push(format!("{:<24} {:<6} {created}", token.name, token.scope.as_str()));
            let created = Some(token.created.to_string());
            rows.push(TokenRow { name: token.name, scope: token.scope, created, file: None });
        }
    }
    let file = HttpTokenFile::in_home(&globals.home_dir()?);
    if file.has_text() {
        let path = file.path().printable().to_string();
        lines.push(format!("{FIRST_START_NAME:<24} {:<6} {path}", Scope::Admin.as_str()));
        let name = FIRST_START_NAME.to_owned();
        rows.push(TokenRow { name, scope: Scope::Admin, created: None, file: Some(path) });
    }
    if rows.is_empty() && !as_json {
        note("no tokens; make one with `longhaul token new --scope read|act|admin --name NAME`");
    }
    print(as_json, || rows, || lines)?;
    Ok(exit::DONE)
}

/// An error that another command line fixes.
fn usage_error(error: TokenError) -> anyhow::Error {
    match error {
        TokenError::BadName { .. }
        | TokenError::Reserved { .. }
        | TokenError::Exists { .. }
        | TokenError::Unknown { .. } => bad_usage(error.to_string()),
        TokenError::Journal(error) => error.into(),
        error => error.into(),
    }
}
