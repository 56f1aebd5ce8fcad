//! The database as the other modules use it: statements over shared connections, with errors that name the database.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use longhaul_journal::{Error, Result};
use longhaul_protocol::At;
use tokio::sync::Mutex;
use tokio_postgres::Row;

use crate::address::DatabaseAddress;
use crate::connection::{ANSWER_TIMEOUT, Connection, Connections, Parameter, StatementError};
use crate::failure::is_retryable;

/// Connections for appends and leases. Each commits one statement after the other; the server groups the commits of several.
const WRITE_CONNECTIONS: usize = 4;
/// Connections for reads, so that they don't wait for a commit.
const READ_CONNECTIONS: usize = 2;
/// How long a statement may take that touches a whole stream or all blobs.
pub(crate) const LONG_STATEMENT: Duration = Duration::from_secs(600);
/// How long a statement that can be repeated is repeated while the database can't be reached. A restart takes about a second.
pub(crate) const RETRY_WINDOW: Duration = Duration::from_secs(5);
/// The back-off between its repetitions: the first and the longest wait.
const REPEAT_DELAYS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// Repeats a statement with back-off while the database can't be reached.
pub(crate) struct Repetition {
    until: Instant,
    delay: Duration,
}

impl Repetition {
    pub(crate) fn within(window: Duration) -> Self {
        Self { until: Instant::now() + window, delay: REPEAT_DELAYS.0 }
    }

    /// Waits, and returns whether the statement should be sent again.
    pub(crate) async fn is_due_after(&mut self, was_unanswered: bool) -> bool {
        if !was_unanswered || Instant::now() >= self.until {
            return false;
        }
        tokio::time::sleep(self.delay).await;
        self.delay = (self.delay * 2).min(REPEAT_DELAYS.1);
        true
    }
}

/// Whether a statement got no answer because the database can't be reached.
pub(crate) fn is_unanswered<T>(answer: &std::result::Result<T, StatementError>) -> bool {
    matches!(answer, Err(StatementError::Unanswered(Error::Unreachable { .. })))
}

pub(crate) struct Database {
    pub(crate) address: DatabaseAddress,
    writers: Connections,
    readers: Connections,
    /// The connection of the last transaction, for the next one.
    transactions: Mutex<Option<Connection>>,
    /// How far the clock of the database is ahead of this machine's, in milliseconds.
    clock_offset: AtomicI64,
}

impl Database {
    pub(crate) fn new(address: DatabaseAddress, clock: i64) -> Self {
        Self {
            address,
            writers: Connections::new(WRITE_CONNECTIONS),
            readers: Connections::new(READ_CONNECTIONS),
            transactions: Mutex::default(),
            clock_offset: AtomicI64::new(clock - local_clock()),
        }
    }

    /// The time on the clock of the database, as far as this process knows it.
    pub(crate) fn now(&self) -> At {
        At(local_clock() + self.clock_offset.load(Ordering::Relaxed))
    }

    /// How far the clock of this machine is ahead.
    pub(crate) fn clock_ahead_ms(&self) -> i64 {
        -self.clock_offset.load(Ordering::Relaxed)
    }

    /// Notes the time that the database has just reported.
    pub(crate) fn set_clock(&self, clock: i64) {
        self.clock_offset.store(clock - local_clock(), Ordering::Relaxed);
    }

    /// Reads. A read whose connection broke is repeated, because it changes nothing.
    pub(crate) async fn read(&self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>> {
        let mut repetition = Repetition::within(RETRY_WINDOW);
        loop {
            let answer = self.readers.query(&self.address, sql, parameters, LONG_STATEMENT).await;
            if !repetition.is_due_after(is_unanswered(&answer)).await {
                return answer.map_err(|error| error.into_error(&self.address));
            }
        }
    }

    /// Reads at most one row.
    pub(crate) async fn read_row(&self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Option<Row>> {
        Ok(self.read(sql, parameters).await?.into_iter().next())
    }

    /// Runs one statement that changes something and is one transaction. If it was rolled back only because of another
    /// transaction, it runs again.
    pub(crate) async fn write(
        &self,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> std::result::Result<Vec<Row>, StatementError> {
        self.write_within(sql, parameters, ANSWER_TIMEOUT).await
    }

    pub(crate) async fn write_within(
        &self,
        sql: &str,
        parameters: &[Parameter<'_>],
        limit: Duration,
    ) -> std::result::Result<Vec<Row>, StatementError> {
        loop {
            match self.writers.query(&self.address, sql, parameters, limit).await {
                Err(StatementError::Refused(error)) if error.code().is_some_and(is_retryable) => {}
                answer => return answer,
            }
        }
    }

    /// Runs a statement that may safely run twice. Repeats it if its connection broke.
    pub(crate) async fn write_repeatably(&self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>> {
        let mut repetition = Repetition::within(RETRY_WINDOW);
        loop {
            let answer = self.write_within(sql, parameters, LONG_STATEMENT).await;
            if !repetition.is_due_after(is_unanswered(&answer)).await {
                return answer.map_err(|error| error.into_error(&self.address));
            }
        }
    }

    /// Runs several statements as one transaction, on a connection that no other task uses meanwhile.
    pub(crate) async fn transact<T>(
        &self,
        act: impl AsyncFnOnce(&Connection) -> Result<(Verdict, T)>,
    ) -> Result<T> {
        let mut idle = self.transactions.lock().await;
        let connection = match idle.take().filter(Connection::is_usable) {
            Some(connection) => connection,
            None => Connection::open(&self.address).await?,
        };
        connection.run_script(&self.address, "BEGIN ISOLATION LEVEL READ COMMITTED").await?;
        // After an error the connection is dropped, and the server rolls back.
        let (verdict, value) = act(&connection).await?;
        let end = match verdict {
            Verdict::Commit => "COMMIT",
            Verdict::RollBack => "ROLLBACK",
        };
        connection.run_script(&self.address, end).await?;
        *idle = Some(connection);
        Ok(value)
    }

    pub(crate) async fn close(&self) {
        drop(self.transactions.lock().await.take());
        self.readers.close().await;
        self.writers.close().await;
    }
}

/// How to end a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Commit,
    RollBack,
}

/// The clock of this machine, in milliseconds since 1970.
pub(crate) fn local_clock() -> i64 {
    At::from(SystemTime::now()).0
}

/// The only row of an answer that always has one.
pub(crate) fn only_row(rows: Vec<Row>, address: &DatabaseAddress) -> Result<Row> {
    rows.into_iter().next().ok_or_else(|| Error::Io {
        path: address.to_string().into(),
        reason: "the database answered without a row".to_owned(),
    })
}
