use longhaul_protocol::{
    AttemptId, BlobRef, Block, CallId, Input, InputId, InputTaken, Item, JoinMode, Note, Role, Sender,
    SessionId, SessionRecord, ToolFinished,
};

use super::*;
use crate::sqlite::readers::connect_to_read;
use crate::{Append, Blob, Journal, SqliteJournal};

async fn said(journal: &SqliteJournal, stream: &StreamName, texts: &[String]) {
    let note = |text: &String| SessionRecord::Note(Note::new(text.clone())).encode();
    journal.append(texts.iter().map(note).fold(Append::to(stream), Append::record)).await.unwrap();
}

/// The raw files of the index.
fn holds(home: &Home, word: &str) -> bool {
    let folder = home.folder().join("cache");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let holds = |path: &PathBuf| {
        let bytes = std::fs::read(path).unwrap();
        bytes.windows(word.len()).any(|window| window == word.as_bytes())
    };
    files.collect::<Vec<_>>().iter().any(holds)
}

/// A home with words in the index that are going to be erased, and a stream beside.
struct Place {
    _folder: tempfile::TempDir,
    home: Home,
    journal: SqliteJournal,
    stream: StreamName,
}

impl Place {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(folder.path()).unwrap();
        let journal = SqliteJournal::open(&home).await.unwrap();
        let (stream, other) =
            (StreamName::session(SessionId::generate()), StreamName::session(SessionId::generate()));
        let text = |number: usize| match number {
            150 => "the password is zzyzxq, she said".to_owned(),
            _ => format!("filler {number} for the quinces"),
        };
        said(&journal, &stream, &(0..300).map(text).collect::<Vec<_>>()).await;
        said(&journal, &other, &(0..300).map(|number| format!("marmalade {number}")).collect::<Vec<_>>())
            .await;
        let place = Self { _folder: folder, home, journal, stream };
        assert_eq!(place.find("zzyzxq").await, 1);
        place
    }

    async fn find(&self, words: &str) -> usize {
        self.journal.search(&SearchQuery::new(words, 1_000)).await.unwrap().hits.len()
    }

    /// The stub alone, as an erasure leaves it that is killed before the index was changed.
    async fn erase_and_die(&self, index: &SearchIndex) {
        index.prepare_erasure(&[(self.stream.clone(), 151)]).unwrap();
        self.without_index(self.journal.erase(&[(self.stream.clone(), 151)], "leaked")).await.unwrap();
    }

    /// What a change of the journal does, but for its part in the index.
    async fn without_index<T>(&self, change: impl Future<Output = T>) -> T {
        let hidden = self.home.folder().join("cache");
        let away = self.home.folder().join("away");
        std::fs::rename(&hidden, &away).unwrap();
        let done = change.await;
        let _ = std::fs::remove_dir_all(&hidden);
        std::fs::rename(&away, &hidden).unwrap();
        done
    }
}

/// J10: a word that only the erased record had is in no posting and in no byte of the files; the others are still found.
#[tokio::test(flavor = "multi_thread")]
async fn an_erased_word_leaves_no_trace_in_the_index() {
    let place = Place::new().await;
    assert!(holds(&place.home, "zzyzxq"), "it was there");

    place.journal.erase(&[(place.stream.clone(), 151)], "leaked").await.unwrap();

    assert!(!holds(&place.home, "zzyzxq"));
    assert_eq!((place.find("zzyzxq").await, place.find("quinces").await), (0, 299));
    assert_eq!(place.find("marmalade").await, 300);
    assert!(!holds(&place.home, "zzyzxq"), "a search does not bring it back");
}

/// J10: an erasure that is killed between the stub and the index is finished by the next search, which knows the mark.
#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_that_was_killed_is_finished_by_the_next_search() {
    let place = Place::new().await;
    place.journal.close().await;
    let journal = SqliteJournal::open(&place.home).await.unwrap();
    let place = Place { journal, ..place };
    let index = SearchIndex::new(&place.home);
    place.erase_and_die(&index).await;
    assert!(holds(&place.home, "zzyzxq"), "the words are still there");
    let reader = connect_to_read(&place.home.journal_file(), None).unwrap();

    let found = index.search(&reader, &SearchQuery::new("quinces", 1_000)).unwrap();

    assert_eq!((found.hits.len(), found.unindexed), (299, 0));
    assert!(!holds(&place.home, "zzyzxq"));
}

/// J10: an erasure that is killed after its words are out of the tables, and before the file is rewritten, is finished by the next search.
#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_that_was_killed_before_the_file_was_rewritten_is_finished_by_the_next_search() {
    let place = Place::new().await;
    place.journal.close().await;
    let journal = SqliteJournal::open(&place.home).await.unwrap();
    let place = Place { journal, ..place };
    let index = SearchIndex::new(&place.home);
    place.erase_and_die(&index).await;
    let erased = [(place.stream.clone(), 151)];
    index.with_rebuild(|db| erasure::erase_records(db, &erased)).unwrap();
    assert!(holds(&place.home, "zzyzxq"), "a copy is still there");
    let index = SearchIndex::new(&place.home);
    let reader = connect_to_read(&place.home.journal_file(), None).unwrap();

    let found = index.search(&reader, &SearchQuery::new("quinces", 1_000)).unwrap();

    assert_eq!(found.hits.len(), 299);
    assert!(!holds(&place.home, "zzyzxq"));
    assert_eq!(marks(&index), 0);
}

/// J10: while another process reads, the file can't be cleaned. A search answers all the same, and a later one finishes the erasure.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_does_not_fail_because_an_erasure_can_not_be_finished_yet() {
    let place = Place::new().await;
    place.journal.close().await;
    let journal = SqliteJournal::open(&place.home).await.unwrap();
    let place = Place { journal, ..place };
    let index = SearchIndex::new(&place.home);
    place.erase_and_die(&index).await;
    let reader = connect_to_read(&place.home.journal_file(), None).unwrap();
    let mut other = Connection::open(place.home.folder().join("cache/search.db")).unwrap();
    let reading = other.transaction().unwrap();
    reading.query_row("SELECT count(*) FROM cursors", [], |row| row.get::<_, i64>(0)).unwrap();

    let meanwhile = index.search(&reader, &SearchQuery::new("quinces", 1_000)).unwrap();
    let marks_meanwhile = marks(&index);
    drop(reading);
    let afterwards = index.search(&reader, &SearchQuery::new("zzyzxq", 1_000)).unwrap();

    assert_eq!((meanwhile.hits.len(), marks_meanwhile), (299, 1));
    assert_eq!((afterwards.hits.len(), marks(&index)), (0, 0));
    drop(other);
    assert!(!holds(&place.home, "zzyzxq"));
}

/// J10: the same for a stream that is removed, whatever another process searched after the mark.
#[tokio::test(flavor = "multi_thread")]
async fn the_removal_of_a_stream_that_was_killed_is_finished_by_the_next_search() {
    let place = Place::new().await;
    let index = SearchIndex::new(&place.home);
    index.prepare_removal(&place.stream).unwrap();
    let found_meanwhile = place.find("zzyzxq").await;
    let marks_meanwhile = marks(&index);
    place.without_index(place.journal.remove(&place.stream, None)).await.unwrap();
    assert!(holds(&place.home, "zzyzxq"), "the words are still there");

    let index = SearchIndex::new(&place.home);
    let reader = connect_to_read(&place.home.journal_file(), None).unwrap();
    let found = index.search(&reader, &SearchQuery::new("marmalade", 1_000)).unwrap();

    assert_eq!((found_meanwhile, marks_meanwhile), (1, 1));
    assert_eq!((found.hits.len(), marks(&index)), (300, 0));
    assert!(!holds(&place.home, "zzyzxq"));
}

/// J10: an index that another process makes between the mark and the stub knows of the erasure, too.
#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_made_during_an_erasure_is_cleaned_as_well() {
    let place = Place::new().await;
    place.journal.close().await;
    std::fs::remove_dir_all(place.home.folder().join("cache")).unwrap();
    let journal = SqliteJournal::open(&place.home).await.unwrap();
    let place = Place { journal, ..place };
    SearchIndex::new(&place.home).prepare_erasure(&[(place.stream.clone(), 151)]).unwrap();
    let index = SearchIndex::new(&place.home);
    let reader = connect_to_read(&place.home.journal_file(), None).unwrap();
    let search = |words: &str| index.search(&reader, &SearchQuery::new(words, 1_000)).unwrap().hits.len();
    assert_eq!(search("zzyzxq"), 1);
    place.without_index(place.journal.erase(&[(place.stream.clone(), 151)], "leaked")).await.unwrap();

    let index = SearchIndex::new(&place.home);
    let found = index.search(&reader, &SearchQuery::new("quinces", 1_000)).unwrap();

    assert_eq!((found.hits.len(), marks(&index)), (299, 0));
    assert!(!holds(&place.home, "zzyzxq"));
}

/// Erasures that are not finished.
fn marks(index: &SearchIndex) -> i64 {
    let count = "SELECT count(*) FROM erasing";
    index.with_rebuild(|db| Ok(db.query_row(count, [], |row| row.get(0))?)).unwrap()
}

/// J10: killed after the marks and before the stub, nothing was erased, and everything is found.
#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_that_was_killed_before_its_stub_changes_nothing() {
    let place = Place::new().await;
    let index = SearchIndex::new(&place.home);

    index.prepare_erasure(&[(place.stream.clone(), 151)]).unwrap();

    assert_eq!(place.find("zzyzxq").await, 1);
    place.journal.erase(&[(place.stream.clone(), 151)], "leaked").await.unwrap();
    assert!(!holds(&place.home, "zzyzxq"));
}

/// J10: words that can no longer be read when they are erased go all the same.
#[tokio::test(flavor = "multi_thread")]
async fn the_words_of_a_damaged_blob_are_erased() {
    let place = Place::new().await;
    let whole = b"the whole output has wyvernq in it";
    let finished = ToolFinished {
        whole: Some(BlobRef::to(whole, "text/plain")),
        ..ToolFinished::new(CallId::generate(), "exec", "cut")
    };
    let append = Append::to(&place.stream).record(SessionRecord::ToolFinished(finished).encode());
    let seq = place.journal.append(append.blob(Blob::new(whole))).await.unwrap()[0].seq;
    assert_eq!(place.find("wyvernq").await, 1);
    let damage = Connection::open(place.home.journal_file()).unwrap();
    damage.execute("UPDATE blobs SET bytes = x'00'", []).unwrap();

    place.journal.erase(&[(place.stream.clone(), seq)], "leaked").await.unwrap();

    assert!(!holds(&place.home, "wyvernq"));
    assert_eq!((place.find("wyvernq").await, place.find("quinces").await), (0, 299));
}

/// A chunk that contradicts its cursor is damage: the index is rebuilt.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_chunk_rebuilds_the_index() {
    let place = Place::new().await;
    place.journal.close().await;
    let damage = Connection::open(place.home.folder().join("cache/search.db")).unwrap();
    damage.execute("UPDATE chunks SET weights = x'', places = x''", []).unwrap();
    drop(damage);
    let journal = SqliteJournal::open(&place.home).await.unwrap();

    said(&journal, &place.stream, &["one more quince".to_owned()]).await;

    let place = Place { journal, ..place };
    assert_eq!((place.find("zzyzxq").await, place.find("quinces").await), (1, 300));
}

/// Y11: what a subagent answers is found by the prompt that its parent wrote, as an answer is by a person's question.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_found_by_what_another_agent_asked() {
    let place = Place::new().await;
    let child = StreamName::session(SessionId::generate());
    let sender = Sender::Parent { session: SessionId::generate(), call: CallId::generate() };
    let prompt = Input::new(InputId::generate(), "Which port has the osprey database?", JoinMode::Join);
    let prompt = InputTaken::of(Input { sender, ..prompt }, 1);
    let item = Item::Text { role: Role::Assistant, text: "It listens on 5433.".to_owned() };
    let answer = Block { attempt: AttemptId::generate(), index: 0, item };
    let records = [SessionRecord::InputTaken(prompt), SessionRecord::Block(answer)];
    let append = records.iter().fold(Append::to(&child), |append, record| append.record(record.encode()));
    place.journal.append(append).await.unwrap();

    assert_eq!(place.find("osprey").await, 2);
}

/// J10: a removed stream takes its words along.
#[tokio::test(flavor = "multi_thread")]
async fn a_removed_stream_leaves_no_trace_in_the_index() {
    let place = Place::new().await;

    place.journal.remove(&place.stream, None).await.unwrap();

    assert!(!holds(&place.home, "zzyzxq"));
    assert_eq!((place.find("quinces").await, place.find("marmalade").await), (0, 300));
}

/// A search that would index for too long answers from what it has, and says how much is missing.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_says_what_it_has_not_indexed_yet() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(folder.path()).unwrap();
    let journal = SqliteJournal::open(&home).await.unwrap();
    let stream = StreamName::session(SessionId::generate());
    said(&journal, &stream, &(0..5_000).map(|number| format!("pebble {number}")).collect::<Vec<_>>()).await;
    let index = SearchIndex { max_indexing: Duration::ZERO, ..SearchIndex::new(&home) };
    let reader = connect_to_read(&home.journal_file(), None).unwrap();
    let search = || index.search(&reader, &SearchQuery::new("pebbles", 10_000)).unwrap();

    let parts: Vec<(usize, u64)> =
        (0..4).map(|_| search()).map(|found| (found.hits.len(), found.unindexed)).collect();

    assert_eq!(parts, [(2_000, 3_000), (4_000, 1_000), (5_000, 0), (5_000, 0)]);
}

/// A search does not fail because another process writes the index: it answers from what is there, and says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_answers_while_another_process_writes_the_index() {
    let place = Place::new().await;
    said(&place.journal, &place.stream, &["one more quince".to_owned()]).await;
    let other = Connection::open(place.home.folder().join("cache/search.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let reader = connect_to_read(&place.home.journal_file(), None).unwrap();
    let index = SearchIndex::new(&place.home);
    let search = || index.search(&reader, &SearchQuery::new("quinces", 1_000)).unwrap();

    let meanwhile = search();
    other.execute_batch("ROLLBACK").unwrap();
    let afterwards = search();

    assert_eq!((meanwhile.hits.len(), meanwhile.unindexed), (299, 1));
    assert_eq!((afterwards.hits.len(), afterwards.unindexed), (300, 0));
}

/// Two processes that find the same damage make one new index, not one each in turn.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_index_that_another_process_has_replaced_is_not_deleted_again() {
    let place = Place::new().await;
    let (one, other) = (SearchIndex::new(&place.home), SearchIndex::new(&place.home));
    let reader = connect_to_read(&place.home.journal_file(), None).unwrap();
    let find =
        |index: &SearchIndex| index.search(&reader, &SearchQuery::new("quinces", 1_000)).unwrap().hits.len();
    assert_eq!((find(&one), find(&other)), (299, 299));
    let damage = Connection::open(place.home.folder().join("cache/search.db")).unwrap();
    damage.execute("UPDATE chunks SET weights = x'', places = x''", []).unwrap();
    drop(damage);
    said(&place.journal, &place.stream, &["one more quince".to_owned()]).await;

    let first = (find(&one), one.inode());
    let second = (find(&other), other.inode());

    assert_eq!(first.0, 300);
    assert_eq!(first, second);
}

/// While both run, a process of another version may replace the tables at any time.
#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_another_version_has_replaced_is_made_again() {
    let place = Place::new().await;
    let other = Connection::open(place.home.folder().join("cache/search.db")).unwrap();
    other.execute_batch("DELETE FROM postings; PRAGMA user_version = 99;").unwrap();
    drop(other);

    let found = place.find("zzyzxq").await;

    assert_eq!(found, 1);
}

/// A journal that loses a stream while a search indexes it, page by page, and gets it back with the next page.
struct LosingSource<'a> {
    journal: &'a Connection,
    pages: std::cell::Cell<usize>,
}

impl IndexSource for LosingSource<'_> {
    fn heads(&self, prefix: &str) -> Result<Vec<(StreamNumber, StreamName, Head)>> {
        self.journal.heads(prefix)
    }

    fn head(&self, stream: &StreamName) -> Result<Option<(StreamNumber, Head)>> {
        IndexSource::head(self.journal, stream)
    }

    fn has_record(&self, stream: StreamNumber, head: Head) -> Result<bool> {
        if self.pages.get() == 1 { Ok(false) } else { self.journal.has_record(stream, head) }
    }

    fn page(
        &self,
        stream: (StreamNumber, &StreamName),
        from: longhaul_protocol::Seq,
        page: crate::Page,
    ) -> Result<Vec<crate::sqlite::rows::ScannedRow>> {
        self.pages.set(self.pages.get() + 1);
        self.journal.page(stream, from, crate::Page { records: 200, ..page })
    }

    fn next_readable(&self, _: StreamNumber, _: longhaul_protocol::Seq) -> Option<longhaul_protocol::Seq> {
        None
    }

    fn blob(&self, hash: longhaul_protocol::Hash) -> Result<Option<Vec<u8>>> {
        IndexSource::blob(self.journal, hash)
    }

    fn session_key(&self, id: SessionId) -> Result<Option<String>> {
        self.journal.session_key(id)
    }
}

/// J10: a stream that is removed while it is indexed leaves no posting without a record.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_removed_between_two_pages_leaves_no_trace() {
    let place = Place::new().await;
    place.journal.close().await;
    std::fs::remove_dir_all(place.home.folder().join("cache")).unwrap();
    let reader = connect_to_read(&place.home.journal_file(), None).unwrap();
    let losing = LosingSource { journal: &reader, pages: std::cell::Cell::default() };
    let index = SearchIndex::new(&place.home);
    let search = SearchQuery::new("zzyzxq", 10).within(vec![place.stream.clone()]);
    let found = index.search(&losing, &search).unwrap().hits.len();
    // Twice from the beginning, and once for the excerpt.
    assert_eq!((found, losing.pages.get()), (1, 4));

    index.erase_stream(&place.stream).unwrap();

    assert!(!holds(&place.home, "zzyzxq"));
}

/// S2: a list of sessions says as well what it has not seen.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_for_streams_says_what_it_has_not_indexed_yet() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(folder.path()).unwrap();
    let journal = SqliteJournal::open(&home).await.unwrap();
    let stream = StreamName::session(SessionId::generate());
    said(&journal, &stream, &(0..3_000).map(|number| format!("pebble {number}")).collect::<Vec<_>>()).await;
    let index = SearchIndex { max_indexing: Duration::ZERO, ..SearchIndex::new(&home) };
    let reader = connect_to_read(&home.journal_file(), None).unwrap();

    let found = [(); 2].map(|()| index.streams_with_words(&reader, "pebble 2500").unwrap());

    assert_eq!(found.each_ref().map(|found| found.unindexed), [1_000, 0]);
    assert_eq!(found.map(|found| found.streams), [vec![], vec![stream]]);
}

/// Rule 1: an index of an earlier version is replaced by itself.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_index_is_replaced() {
    let place = Place::new().await;
    place.journal.close().await;
    let path = place.home.folder().join("cache/search.db");
    std::fs::remove_file(&path).unwrap();
    let old = Connection::open(&path).unwrap();
    old.execute_batch(
        "PRAGMA user_version = 4;
         CREATE TABLE cursors (id INTEGER PRIMARY KEY, stream TEXT, seq INTEGER, hash BLOB, speech TEXT);
         CREATE VIRTUAL TABLE entries USING fts5 (text, content = '');
         CREATE VIRTUAL TABLE postings USING fts5 (stems, content = '', detail = none, columnsize = 0);
         INSERT INTO postings (rowid, stems) VALUES (1, 'zzyzxq');",
    )
    .unwrap();
    drop(old);

    let journal = SqliteJournal::open(&place.home).await.unwrap();
    let found = journal.search(&SearchQuery::new("zzyzxq", 10)).await.unwrap();

    assert_eq!(found.hits.len(), 1);
    let db = Connection::open(&path).unwrap();
    let tables: Vec<String> = db
        .prepare("SELECT name FROM sqlite_schema WHERE name LIKE 'entries%' OR name LIKE 'postings%'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<rusqlite::Result<_>>()
        .unwrap();
    assert_eq!(tables, ["postings"]);
}
