//! Search: the side index of this machine, in the home's `cache/search.db`, fed from the database by its cursors.
//!
//! What another machine erases or removes has to leave this machine's index, too. The database numbers erasures, and the home
//! notes the last one that its index knows of. A stream of a later one leaves the index before it is used again.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use longhaul_journal::engine::{ErasedPlace, IndexSource, ScannedRow, SearchIndex, StreamNumber};
use longhaul_journal::{
    Error, FoundStreams, Head, Home, Page, RecordVector, Result, SearchAnswer, SearchHit, SearchQuery,
    UnembeddedRecord,
};
use longhaul_protocol::{Hash, Seq, SessionId, StreamName};
use tokio::runtime::Handle;
use tokio_postgres::types::Type;

use crate::connection::Parameter;
use crate::database::Database;
use crate::rows::{self, PageBounds, column, hash_column, page_sql, scanned_row, sql_seq};

/// The index, and the database that it is made from.
#[derive(Clone)]
pub(crate) struct Search {
    db: Arc<Database>,
    index: Arc<SearchIndex>,
    /// The number of the last erasure that the index knows of.
    known_erasure: PathBuf,
}

impl Search {
    pub(crate) fn new(db: &Arc<Database>, home: &Home) -> Self {
        let known_erasure = home.folder().join("cache").join("search.erasure");
        Self { db: Arc::clone(db), index: Arc::new(SearchIndex::new(home)), known_erasure }
    }

    /// Runs a job of the index on a thread that may wait.
    async fn run<T: Send + 'static>(
        &self,
        act: impl FnOnce(&SearchIndex, &DatabaseSource) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (search, runtime) = (self.clone(), Handle::current());
        let job = move || act(&search.index, &DatabaseSource { db: &search.db, runtime: &runtime });
        tokio::task::spawn_blocking(job).await.map_err(|_| Error::Closed)?
    }

    pub(crate) async fn search(&self, query: &SearchQuery) -> Result<SearchAnswer> {
        self.apply_erasures().await?;
        let query = query.clone();
        self.run(move |index, source| index.search(source, &query)).await
    }

    pub(crate) async fn streams_with_words(&self, words: &str) -> Result<FoundStreams> {
        self.apply_erasures().await?;
        let words = words.to_owned();
        self.run(move |index, source| index.streams_with_words(source, &words)).await
    }

    pub(crate) async fn unembedded(
        &self,
        stream: &StreamName,
        model: &str,
        limit: usize,
    ) -> Result<Vec<UnembeddedRecord>> {
        self.apply_erasures().await?;
        let (stream, model) = (stream.clone(), model.to_owned());
        self.run(move |index, source| index.unembedded(source, &stream, &model, limit)).await
    }

    pub(crate) async fn put_vectors(&self, model: &str, vectors: Vec<RecordVector>) -> Result<()> {
        self.apply_erasures().await?;
        let model = model.to_owned();
        self.run(move |index, _| index.put_vectors(&model, &vectors)).await
    }

    pub(crate) async fn search_vectors(
        &self,
        query: &SearchQuery,
        model: &str,
        vector: Vec<f32>,
    ) -> Result<Vec<SearchHit>> {
        self.apply_erasures().await?;
        let (query, model) = (query.clone(), model.to_owned());
        self.run(move |index, source| index.search_vectors(source, &query, &model, &vector)).await
    }

    /// Marks records that are going to be erased.
    pub(crate) async fn prepare_erasure(&self, places: &[ErasedPlace]) -> Result<()> {
        self.apply_erasures().await?;
        let places = places.to_vec();
        self.run(move |index, _| index.prepare_erasure(&places)).await
    }

    /// Takes erased records out of this machine's index.
    pub(crate) async fn erase(&self, places: &[ErasedPlace]) -> Result<()> {
        let erased = places.to_vec();
        self.run(move |index, _| index.erase(&erased)).await?;
        let streams: Vec<StreamName> = places.iter().map(|(stream, _)| stream.clone()).collect();
        self.note_own_erasure(&streams).await
    }

    /// Marks a stream that is going to be removed.
    pub(crate) async fn prepare_removal(&self, stream: &StreamName) -> Result<()> {
        self.apply_erasures().await?;
        let stream = stream.clone();
        self.run(move |index, _| index.prepare_removal(&stream)).await
    }

    /// Takes a removed stream out of this machine's index.
    pub(crate) async fn forget(&self, stream: &StreamName) -> Result<()> {
        let name = stream.clone();
        self.run(move |index, _| index.erase_stream(&name)).await?;
        self.note_own_erasure(std::slice::from_ref(stream)).await
    }

    /// Takes out of the index every stream of which another machine erased something. The next search indexes what is left of it.
    async fn apply_erasures(&self) -> Result<()> {
        let Some(known) = self.known_erasure() else {
            // Without a note, an existing index may have words of any erased record.
            return self.note_erasure(self.newest_erasure().await?, true).await;
        };
        let sql = "SELECT id, stream FROM longhaul.erasure WHERE id > $1 ORDER BY id";
        let rows = self.db.read(sql, &[(&known, Type::INT8)]).await?;
        let Some(newest) = rows.last().and_then(|row| column::<i64>(row, 0)) else { return Ok(()) };
        let streams: Vec<StreamName> =
            rows.iter().filter_map(|row| column::<&str>(row, 1)?.parse().ok()).collect();
        self.run(move |index, _| streams.iter().try_for_each(|stream| index.erase_stream(stream))).await?;
        self.note_erasure(newest, false).await
    }

    /// After an erasure by this process: its index knows of it, unless other machines erased something in between.
    async fn note_own_erasure(&self, streams: &[StreamName]) -> Result<()> {
        let Some(known) = self.known_erasure() else { return Ok(()) };
        let sql = "SELECT id, stream FROM longhaul.erasure WHERE id > $1 ORDER BY id";
        let rows = self.db.read(sql, &[(&known, Type::INT8)]).await?;
        let is_own =
            |name: Option<&str>| name.is_some_and(|name| streams.iter().any(|own| own.as_str() == name));
        let Some(newest) = rows.last().and_then(|row| column::<i64>(row, 0)) else { return Ok(()) };
        if rows.iter().all(|row| is_own(column(row, 1))) {
            return self.note_erasure(newest, false).await;
        }
        Ok(())
    }

    fn known_erasure(&self) -> Option<i64> {
        fs::read_to_string(&self.known_erasure).ok()?.trim().parse().ok()
    }

    async fn newest_erasure(&self) -> Result<i64> {
        let row = self.db.read_row("SELECT coalesce(max(id), 0) FROM longhaul.erasure", &[]).await?;
        Ok(row.and_then(|row| column(&row, 0)).unwrap_or(0))
    }

    async fn note_erasure(&self, number: i64, do_clear: bool) -> Result<()> {
        let file = self.known_erasure.clone();
        self.run(move |index, _| {
            if do_clear {
                index.clear_existing()?;
            }
            let written = file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
                let next = file.with_extension("erasure.next");
                fs::write(&next, number.to_string())?;
                fs::rename(&next, &file)
            });
            written.map_err(|error| Error::Io { path: file, reason: error.to_string() })
        })
        .await
    }
}

/// The database, as the index reads it: each call waits for the answer.
struct DatabaseSource<'a> {
    db: &'a Database,
    runtime: &'a Handle,
}

impl DatabaseSource<'_> {
    fn wait<T>(&self, answer: impl Future<Output = Result<T>>) -> Result<T> {
        self.runtime.block_on(answer)
    }

    fn read_row(&self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Option<tokio_postgres::Row>> {
        self.wait(self.db.read_row(sql, parameters))
    }
}

impl IndexSource for DatabaseSource<'_> {
    fn heads(&self, prefix: &str) -> Result<Vec<(StreamNumber, StreamName, Head)>> {
        self.wait(rows::heads(self.db, prefix))
    }

    fn head(&self, stream: &StreamName) -> Result<Option<(StreamNumber, Head)>> {
        self.wait(rows::stream(self.db, stream))
    }

    fn has_record(&self, stream: StreamNumber, head: Head) -> Result<bool> {
        let sql = "SELECT hash FROM longhaul.record WHERE stream = $1 AND seq = $2";
        let row = self.read_row(sql, &[(&stream.0, Type::INT8), (&sql_seq(head.seq), Type::INT8)])?;
        Ok(row.and_then(|row| hash_column(&row, 0)) == Some(head.hash))
    }

    fn page(&self, stream: (StreamNumber, &StreamName), from: Seq, page: Page) -> Result<Vec<ScannedRow>> {
        let bounds = PageBounds::new(from, page);
        let [first, records, bytes] = bounds.parameters();
        let number = (stream.0).0;
        let sql = page_sql("$1");
        let rows = self.wait(self.db.read(&sql, &[(&number, Type::INT8), first, records, bytes]))?;
        Ok(rows.iter().map(|row| scanned_row(row, stream.1)).collect())
    }

    fn next_readable(&self, _: StreamNumber, _: Seq) -> Option<Seq> {
        // A page of the database can be read as a whole or not at all.
        None
    }

    fn blob(&self, hash: Hash) -> Result<Option<Vec<u8>>> {
        self.wait(rows::blob(self.db, hash))
    }

    fn session_key(&self, id: SessionId) -> Result<Option<String>> {
        let sql = "SELECT key FROM longhaul.session WHERE id = $1";
        let row = self.read_row(sql, &[(&id.to_string(), Type::TEXT)])?;
        Ok(row.and_then(|row| column(&row, 0)))
    }
}
