//! A snapshot of the whole journal, read stream by stream, for verification and backups.

use longhaul_journal::Result;
use longhaul_journal::engine::{ScannedRow, StreamNumber};
use longhaul_journal::{Head, Page};
use longhaul_protocol::{Hash, Seq, StreamName};
use tokio::runtime::Handle;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::address::DatabaseAddress;
use crate::connection::{Connection, Parameter};
use crate::database::LONG_STATEMENT;
use crate::rows::{PageBounds, column, hash_column, head_columns, page_sql, scanned_row};

/// Records in memory at once.
const PAGE: Page = Page { records: 2_000, bytes: 4 << 20 };
/// Hashes of blobs in memory at once.
const BLOB_PAGE: i64 = 1_000;

/// A transaction that sees the journal as it was when it began. Each call waits for the answer, on a thread that may wait.
pub(crate) struct Snapshot {
    connection: Connection,
    address: DatabaseAddress,
    runtime: Handle,
}

/// A stream of a snapshot.
pub(crate) struct StreamRow {
    pub(crate) number: StreamNumber,
    /// `None` if this version can't read it.
    pub(crate) name: Option<StreamName>,
    pub(crate) head: Head,
    pub(crate) last_at: Option<i64>,
    pub(crate) epoch: Option<Seq>,
}

impl Snapshot {
    pub(crate) fn begin(address: &DatabaseAddress, runtime: Handle) -> Result<Self> {
        let begun = runtime.block_on(async {
            let connection = Connection::open(address).await?;
            connection.run_script(address, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
            Ok(connection)
        });
        Ok(Self { connection: begun?, address: address.clone(), runtime })
    }

    pub(crate) fn read(&self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>> {
        let answer = self.connection.query(&self.address, sql, parameters, LONG_STATEMENT);
        self.runtime.block_on(answer).map_err(|error| error.into_error(&self.address))
    }

    pub(crate) fn count(&self, sql: &str) -> Result<u64> {
        let rows = self.read(sql, &[])?;
        Ok(rows.first().and_then(|row| column::<i64>(row, 0)).map_or(0, i64::unsigned_abs))
    }

    pub(crate) fn streams(&self) -> Result<Vec<StreamRow>> {
        let rows =
            self.read("SELECT id, name, head, hash, last_at, epoch FROM longhaul.stream ORDER BY name", &[])?;
        let stream = |row: &Row| StreamRow {
            number: StreamNumber(column(row, 0).unwrap_or(0)),
            name: column::<&str>(row, 1).and_then(|name| name.parse().ok()),
            head: head_columns(row, 2, 3),
            last_at: column(row, 4),
            epoch: column::<i64>(row, 5).map(i64::unsigned_abs),
        };
        Ok(rows.iter().map(stream).collect())
    }

    /// Passes every row of a stream to `each`, in their order.
    pub(crate) fn scan(
        &self,
        number: StreamNumber,
        name: &StreamName,
        mut each: impl FnMut(ScannedRow) -> Result<()>,
    ) -> Result<()> {
        let sql = page_sql("$1");
        let mut from = 1;
        loop {
            let bounds = PageBounds::new(from, PAGE);
            let [first, records, bytes] = bounds.parameters();
            let rows = self.read(&sql, &[(&number.0, Type::INT8), first, records, bytes])?;
            let Some(last) = rows.last() else { return Ok(()) };
            from = crate::rows::seq_column(last, 0) + 1;
            for row in &rows {
                each(scanned_row(row, name))?;
            }
        }
    }

    /// Passes every blob to `each`, with its bytes, or without if they were lost.
    pub(crate) fn scan_blobs(
        &self,
        mut each: impl FnMut(Option<Hash>, Option<&[u8]>) -> Result<()>,
    ) -> Result<()> {
        let sql = "SELECT hash FROM longhaul.blob WHERE hash > $1 ORDER BY hash LIMIT $2";
        let mut after: Vec<u8> = Vec::new();
        loop {
            let page = self.read(sql, &[(&after, Type::BYTEA), (&BLOB_PAGE, Type::INT8)])?;
            let Some(last) = page.last().and_then(|row| column::<Vec<u8>>(row, 0)) else { return Ok(()) };
            for row in &page {
                let address: Vec<u8> = column(row, 0).unwrap_or_default();
                let bytes =
                    self.read("SELECT bytes FROM longhaul.blob WHERE hash = $1", &[(&address, Type::BYTEA)])?;
                let bytes = bytes.first().and_then(|row| column::<&[u8]>(row, 0));
                each(hash_column(row, 0), bytes)?;
            }
            after = last;
        }
    }
}
