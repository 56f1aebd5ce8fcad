//! Errors of the database, as errors that a caller can act on.

use std::error::Error as _;
use std::path::PathBuf;

use longhaul_journal::Error;
use tokio_postgres::error::SqlState;

use crate::address::DatabaseAddress;

/// An error that a person has to resolve. Nothing was changed.
pub(crate) fn unusable(
    address: &DatabaseAddress,
    reason: impl Into<String>,
    next_step: impl Into<String>,
) -> Error {
    Error::Database { database: address.to_string(), reason: reason.into(), next_step: next_step.into() }
}

/// The database can't be reached at the moment.
pub(crate) fn unreachable(address: &DatabaseAddress, reason: impl Into<String>) -> Error {
    Error::Unreachable { database: address.to_string(), reason: reason.into() }
}

/// The error of a statement, by the code that the server sent. Without a code, the connection broke.
pub(crate) fn failure(address: &DatabaseAddress, error: &tokio_postgres::Error) -> Error {
    let path = || PathBuf::from(address.to_string());
    let Some(answer) = error.as_db_error() else { return connection_failure(address, error) };
    let reason = answer.message().to_owned();
    let user = address.config.get_user().unwrap_or("this user");
    let database = address.config.get_dbname().unwrap_or_default();
    let code = answer.code();
    match code {
        &SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION => unusable(
            address,
            format!("the server refuses {user}: {reason}"),
            "check the user in the URL and the password in PGPASSFILE or the variable of journal.url_env",
        ),
        &SqlState::INVALID_CATALOG_NAME => unusable(
            address,
            format!("there is no database {database:?}"),
            format!("create it: `createdb {database}`"),
        ),
        &SqlState::INSUFFICIENT_PRIVILEGE => unusable(
            address,
            format!("{user} may not do this: {reason}"),
            format!("make {user} the owner of the database"),
        ),
        &SqlState::DISK_FULL => Error::DiskFull { path: path() },
        &SqlState::READ_ONLY_SQL_TRANSACTION => Error::ReadOnly { path: path(), reason },
        &SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED => Error::Corrupt { path: path(), reason },
        &SqlState::INVALID_SQL_STATEMENT_NAME | &SqlState::DUPLICATE_PSTATEMENT => statement_pooler(address),
        _ if reason.contains("statement pooling mode") => statement_pooler(address),
        // What PgBouncer says about a database or a user that it doesn't know, or a password that it can't check.
        &SqlState::PROTOCOL_VIOLATION => unusable(
            address,
            format!("the server or a pooler in front of it refuses: {reason}"),
            "check the user, the database and the pooler's settings",
        ),
        _ if is_passing(code) => unreachable(address, reason),
        _ => Error::Io { path: path(), reason },
    }
}

fn statement_pooler(address: &DatabaseAddress) -> Error {
    unusable(
        address,
        "a pooler in front of the server does not keep a transaction together",
        "set its pool_mode to transaction or session",
    )
}

/// Whether the server may answer later: it starts, stops, is out of connections or memory, or has cancelled the statement.
fn is_passing(code: &SqlState) -> bool {
    let class = &code.code()[..2];
    matches!(class, "08" | "53" | "57" | "58") || is_retryable(code)
}

/// Whether the transaction was rolled back only because of another one, so that it can run again.
pub(crate) fn is_retryable(code: &SqlState) -> bool {
    matches!(*code, SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED)
}

fn connection_failure(address: &DatabaseAddress, error: &tokio_postgres::Error) -> Error {
    let mut reason = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        reason = inner.to_string();
        cause = inner.source();
    }
    if reason.contains("server does not support TLS") {
        return unusable(
            address,
            "the server does not encrypt connections",
            "turn on ssl in its settings, or add ?sslmode=disable to the URL on a network that you trust",
        );
    }
    if reason.contains("certificate") {
        return unusable(
            address,
            format!("the server's certificate is not trusted: {reason}"),
            "name its authority with ?sslrootcert=FILE",
        );
    }
    if reason.contains("password missing") {
        return unusable(
            address,
            "the server asks for a password",
            "put it into the file of PGPASSFILE, or the whole URL into a variable named by journal.url_env",
        );
    }
    unreachable(address, reason)
}
