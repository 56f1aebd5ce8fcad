//! Opens a database: checks that it can be used, and makes or migrates its tables.
//!
//! Everything is checked before anything is changed. Tables are made in one transaction under an advisory lock, so that of several
//! nodes that start together one makes them and the others wait.

use longhaul_journal::Result;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::address::DatabaseAddress;
use crate::connection::{ANSWER_TIMEOUT, Connection};
use crate::database::only_row;
use crate::failure::unusable;
use crate::rows::column;

/// The SQL that makes each format from the one before it.
const MIGRATIONS: &[&str] = &[
    include_str!("schema/format_1.sql"),
    include_str!("schema/format_2.sql"),
    include_str!("schema/format_3.sql"),
    include_str!("schema/format_4.sql"),
];

/// The format that this version writes.
const FORMAT: i32 = MIGRATIONS.len() as i32;

/// The oldest server that is tested, as `server_version_num` counts.
pub(crate) const OLDEST_SERVER: i32 = 150_000;

/// The key of the advisory lock: `LHJL`.
const MIGRATION_LOCK: i64 = 0x4c48_4a4c;

/// What the server says about itself and the database.
const PROBE: &str = "
    SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),
        pg_is_in_recovery(), current_setting('transaction_read_only') = 'on',
        EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = 'longhaul'),
        to_regclass('longhaul.format') IS NOT NULL,
        (SELECT min(format('%I.%I', nspname, relname)) FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
            WHERE relkind IN ('r', 'p') AND nspname NOT IN ('pg_catalog', 'information_schema', 'longhaul')
                AND nspname !~ '^pg_'),
        current_setting('server_version'), (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// Checks the database, makes or migrates its tables, and returns the time on its clock.
pub(crate) async fn prepare(address: &DatabaseAddress, oldest_server: i32) -> Result<i64> {
    let connection = Connection::open(address).await?;
    // A pooler that can't keep these statements together can't keep any transaction together.
    connection.run_script(address, "BEGIN").await?;
    let row = query_row(&connection, address, PROBE).await?;
    check_server(address, &row, oldest_server)?;
    let clock = column(&row, 8).unwrap_or(0);
    let format = match (column(&row, 4), column(&row, 5)) {
        (Some(true), Some(true)) => read_format(&connection, address).await?,
        (Some(true), _) => {
            return Err(unusable(
                address,
                "its schema longhaul is not a journal",
                "use another database, or rename that schema",
            ));
        }
        _ => match column::<&str>(&row, 6) {
            Some(table) => return Err(foreign(address, table)),
            None => 0,
        },
    };
    connection.run_script(address, "COMMIT").await?;
    if format > FORMAT {
        return Err(newer(address, format));
    }
    if format < FORMAT {
        migrate(&connection, address).await?;
    }
    Ok(clock)
}

async fn query_row(connection: &Connection, address: &DatabaseAddress, sql: &str) -> Result<Row> {
    let rows = connection.query(address, sql, &[], ANSWER_TIMEOUT).await;
    only_row(rows.map_err(|error| error.into_error(address))?, address)
}

fn check_server(address: &DatabaseAddress, row: &Row, oldest_server: i32) -> Result<()> {
    let version = column::<&str>(row, 7).unwrap_or("of an unknown version");
    if column::<i32>(row, 0).unwrap_or(0) < oldest_server {
        let oldest = oldest_server / 10_000;
        return Err(unusable(
            address,
            format!("the server is PostgreSQL {version}, and longhaul needs {oldest} or later"),
            "upgrade the server",
        ));
    }
    let encoding = column::<&str>(row, 1).unwrap_or_default();
    if encoding != "UTF8" {
        return Err(unusable(
            address,
            format!("its encoding is {encoding}, not UTF8"),
            "create the database with ENCODING 'UTF8' TEMPLATE template0",
        ));
    }
    if column(row, 2) == Some(true) || column(row, 3) == Some(true) {
        return Err(unusable(
            address,
            "the server is a read-only replica, or writing is turned off for this user",
            "use the address of the primary (several hosts with ?target_session_attrs=read-write follow it)",
        ));
    }
    Ok(())
}

fn foreign(address: &DatabaseAddress, table: &str) -> longhaul_journal::Error {
    unusable(
        address,
        format!("the database belongs to another program (it has a table {table})"),
        "create one for longhaul alone: `createdb longhaul`",
    )
}

fn newer(address: &DatabaseAddress, format: i32) -> longhaul_journal::Error {
    unusable(
        address,
        format!("a newer longhaul made this journal (format {format}, this version knows {FORMAT})"),
        "update longhaul",
    )
}

async fn read_format(connection: &Connection, address: &DatabaseAddress) -> Result<i32> {
    let row = query_row(
        connection,
        address,
        "SELECT format FROM longhaul.format WHERE application = 'longhaul journal'",
    )
    .await?;
    Ok(column(&row, 0).unwrap_or(0))
}

/// Makes the tables, or brings them to the newest format.
async fn migrate(connection: &Connection, address: &DatabaseAddress) -> Result<()> {
    let run = async |sql: &str| connection.run_script(address, sql).await;
    run("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
    let lock = connection.query(
        address,
        "SELECT pg_advisory_xact_lock($1)",
        &[(&MIGRATION_LOCK, Type::INT8)],
        crate::database::LONG_STATEMENT,
    );
    lock.await.map_err(|error| error.into_error(address))?;
    // Another node may have been first. `to_regclass` would not see its tables yet: a statement that reads no table uses what this
    // connection has cached, from before it waited for the lock.
    let exists = query_row(
        connection,
        address,
        "SELECT EXISTS (SELECT 1 FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
            WHERE nspname = 'longhaul' AND relname = 'format')",
    )
    .await?;
    let format = match column(&exists, 0) {
        Some(true) => read_format(connection, address).await?,
        _ => 0,
    };
    if format > FORMAT {
        return Err(newer(address, format));
    }
    for step in &MIGRATIONS[usize::try_from(format).unwrap_or(0)..] {
        run(step).await?;
    }
    run("COMMIT").await
}
