//! A real journal with a fault in front of it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use longhaul_journal::{
    Append, Blob, Error, FoundStreams, Head, Holder, Journal, Lease, Page, Result, SearchAnswer, SearchQuery,
    SessionEntry, StreamSize, Subscribers, Subscription, VerifyReport, WakeSignals,
};
use longhaul_protocol::{At, Hash, NewRecord, Record, Seq, SessionId, StreamName};
use tokio::sync::watch;

/// A moment at which the runtime ends as if by `kill -9`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crash {
    /// At which append to the stream of a session, of its extracts or of a memory, from 1.
    pub append: usize,
    /// Before or after it is on disk.
    pub when: CrashMoment,
}

/// Before or after an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashMoment {
    /// What was appended is lost.
    Before,
    /// The append is on disk, but the caller got no answer.
    After,
}

/// A journal that stops answering at a given append, as if the process had died, or that refuses appends for a while.
pub struct FaultyJournal {
    journal: Arc<dyn Journal>,
    crash: Option<Crash>,
    /// The families of streams whose appends count.
    families: &'static [&'static str],
    crashed: watch::Sender<bool>,
    inner: Arc<Mutex<Inner>>,
    /// Requests to the journal that go on, also if the process dies meanwhile. Counted only for schedules, whose process ends in the middle
    /// of several actions.
    under_way: Option<Arc<watch::Sender<usize>>>,
}

#[derive(Default)]
struct Inner {
    appends: Vec<Vec<String>>,
    leases: Vec<Lease>,
    refusal: Option<Error>,
    refusal_once: Option<Error>,
    refusal_from: Option<(String, Error)>,
    failure_after_commit: Option<(String, Error)>,
    hung_family: Option<&'static str>,
    renewal_refusal: Option<Error>,
    releases: usize,
    release_takes: Duration,
    release_refusal: Option<Error>,
    read_takes: Duration,
    record_times: RecordTimes,
    append_time: Option<At>,
    records_read: usize,
    read_refusal: Option<Error>,
    listing_refusal: Option<Error>,
    adoption_crash: Option<CrashMoment>,
}

/// When records were appended in simulated time.
pub type RecordTimes = Arc<Mutex<HashMap<(StreamName, Seq), At>>>;

impl FaultyJournal {
    /// A journal with this fault.
    pub fn new(journal: Arc<dyn Journal>, crash: Option<Crash>) -> Arc<Self> {
        Self::counting(journal, crash, &["session", "extract", "memory"])
    }

    /// A journal with this fault, which counts the appends to the ledger instead.
    pub fn of_ledger(journal: Arc<dyn Journal>, crash: Option<Crash>) -> Arc<Self> {
        Self::counting(journal, crash, &["spend"])
    }

    /// A journal with this fault, which counts the appends of schedules instead: to their streams, to the keys of sessions, and to inboxes.
    pub fn of_schedules(journal: Arc<dyn Journal>, crash: Option<Crash>) -> Arc<Self> {
        let families = &["schedule", "schedules", "names", "inbox"];
        let faulty = Self { under_way: Some(Arc::default()), ..Self::new_counting(journal, crash, families) };
        Arc::new(faulty)
    }

    /// A journal with this fault, which counts the appends of trees of subagents instead: also to inboxes, to the keys of sessions and to the
    /// trees.
    pub fn of_trees(journal: Arc<dyn Journal>, crash: Option<Crash>) -> Arc<Self> {
        Self::counting(journal, crash, &["session", "inbox", "names", "tree"])
    }

    fn counting(
        journal: Arc<dyn Journal>,
        crash: Option<Crash>,
        families: &'static [&'static str],
    ) -> Arc<Self> {
        Arc::new(Self::new_counting(journal, crash, families))
    }

    fn new_counting(
        journal: Arc<dyn Journal>,
        crash: Option<Crash>,
        families: &'static [&'static str],
    ) -> Self {
        let crashed = watch::Sender::new(false);
        Self { journal, crash, families, crashed, inner: Arc::default(), under_way: None }
    }

    /// Does a request to the journal, to its end even if the process that made it is gone by then.
    async fn request<T: Send + 'static>(&self, request: impl Future<Output = T> + Send + 'static) -> T {
        let Some(under_way) = self.under_way.clone() else { return request.await };
        under_way.send_modify(|count| *count += 1);
        let done = tokio::spawn(async move {
            let done = request.await;
            under_way.send_modify(|count| *count -= 1);
            done
        });
        done.await.unwrap()
    }

    /// Waits for the crash.
    pub async fn crashed(&self) {
        self.crashed.subscribe().wait_for(|crashed| *crashed).await.unwrap();
    }

    /// Whether it has crashed.
    pub fn has_crashed(&self) -> bool {
        *self.crashed.borrow()
    }

    /// Every append to the stream of a session, of its extracts or of a memory so far: the kinds of its records, with the tool's name where there is one. The last
    /// may be the one that crashed.
    pub fn appends(&self) -> Vec<Vec<String>> {
        self.inner.lock().unwrap().appends.clone()
    }

    /// Refuses every append with this from now on, or takes them again.
    pub fn refuse(&self, error: Option<Error>) {
        self.inner.lock().unwrap().refusal = error;
    }

    /// Refuses every append with this, from the first on that has a record of this description (see [`Self::appends`]).
    pub fn refuse_from(&self, described: &str, error: Error) {
        self.inner.lock().unwrap().refusal_from = Some((described.to_owned(), error));
    }

    /// Commits the next append that has a record of this description, and reports this error, as if the connection to the
    /// journal had broken before the answer came.
    pub fn fail_after_commit(&self, described: &str, error: Error) {
        self.inner.lock().unwrap().failure_after_commit = Some((described.to_owned(), error));
    }

    /// Whether an append is still to fail after its commit.
    pub fn fails_after_commit(&self) -> bool {
        self.inner.lock().unwrap().failure_after_commit.is_some()
    }

    /// Refuses the next append with this.
    pub fn refuse_once(&self, error: Error) {
        self.inner.lock().unwrap().refusal_once = Some(error);
    }

    /// Refuses every renewal of a lease with this from now on, or renews again.
    pub fn refuse_renewals(&self, error: Option<Error>) {
        self.inner.lock().unwrap().renewal_refusal = error;
    }

    /// Giving back a lease takes so long from now on.
    pub fn release_slowly(&self, time: Duration) {
        self.inner.lock().unwrap().release_takes = time;
    }

    /// Releases of a lease that were begun.
    pub fn releases(&self) -> usize {
        self.inner.lock().unwrap().releases
    }

    /// Refuses to take back a lease with this from now on, or takes them again.
    pub fn refuse_releases(&self, error: Option<Error>) {
        self.inner.lock().unwrap().release_refusal = error;
    }

    /// Reading records takes so long from now on.
    pub fn read_slowly(&self, time: Duration) {
        self.inner.lock().unwrap().read_takes = time;
    }

    /// Readers see these times in place of those at which the records were appended.
    pub fn set_record_times(&self, times: RecordTimes) {
        self.inner.lock().unwrap().record_times = times;
    }

    /// What is appended from now on was appended at this time, to its appender and to readers.
    pub fn set_append_time(&self, at: At) {
        self.inner.lock().unwrap().append_time = Some(at);
    }

    /// The records that were read so far, in all streams.
    pub fn records_read(&self) -> usize {
        self.inner.lock().unwrap().records_read
    }

    /// Refuses every read of records with this from now on, or reads again.
    pub fn refuse_reads(&self, error: Option<Error>) {
        self.inner.lock().unwrap().read_refusal = error;
    }

    /// Refuses to list the sessions with this from now on, or lists them again.
    pub fn refuse_listings(&self, error: Option<Error>) {
        self.inner.lock().unwrap().listing_refusal = error;
    }

    /// Crashes when a stream is begun with copies of records, as a fork or an import does.
    pub fn crash_at_adoption(&self, when: CrashMoment) {
        self.inner.lock().unwrap().adoption_crash = Some(when);
    }

    /// Never answers an append to the streams of this family, such as `spend`. What is appended to them is lost.
    pub fn hang_family(&self, family: &'static str) {
        self.inner.lock().unwrap().hung_family = Some(family);
    }

    /// Never answers again, as a disk that hangs.
    pub fn hang(&self) {
        self.crashed.send_replace(true);
    }

    /// Takes over, as another process would, what is held here. Returns the leases that it has now.
    pub async fn take_over(&self) -> Vec<Lease> {
        let leases = self.inner.lock().unwrap().leases.clone();
        let mut taken = Vec::new();
        for lease in leases {
            self.journal.release_lease(&lease).await.unwrap();
            taken.push(self.journal.acquire_lease(&lease.stream).await.unwrap());
        }
        taken
    }

    /// Gives back what was taken over.
    pub async fn end_takeover(&self, taken: Vec<Lease>) {
        for lease in taken {
            self.journal.release_lease(&lease).await.unwrap();
        }
    }

    /// Gives back what a process that died would have lost.
    pub async fn release_leases(&self) {
        if let Some(under_way) = &self.under_way {
            under_way.subscribe().wait_for(|count| *count == 0).await.unwrap();
        }
        let leases = std::mem::take(&mut self.inner.lock().unwrap().leases);
        for lease in leases {
            self.journal.release_lease(&lease).await.unwrap();
        }
    }

    /// A dead process does nothing any more.
    async fn lives(&self) {
        if self.has_crashed() {
            std::future::pending::<()>().await;
        }
    }

    async fn die(&self) -> ! {
        self.crashed.send_replace(true);
        std::future::pending().await
    }

    /// Notes an append; says whether this is the one to crash at.
    fn note(&self, append: &Append) -> Option<CrashMoment> {
        let family = append.stream().as_str().split('/').next();
        if !family.is_some_and(|family| self.families.contains(&family)) {
            return None;
        }
        let mut inner = self.inner.lock().unwrap();
        inner.appends.push(append.records().iter().map(described).collect());
        let number = inner.appends.len();
        self.crash.filter(|crash| crash.append == number).map(|crash| crash.when)
    }
}

#[async_trait]
impl Journal for FaultyJournal {
    async fn append(&self, append: Append) -> Result<Vec<Record>> {
        self.lives().await;
        let hung = self.inner.lock().unwrap().hung_family;
        if hung.is_some() && append.stream().as_str().split('/').next() == hung {
            std::future::pending::<()>().await;
        }
        let refusal = {
            let mut inner = self.inner.lock().unwrap();
            let awaited = |record: &NewRecord| {
                inner.refusal_from.as_ref().is_some_and(|(description, _)| *description == described(record))
            };
            if append.records().iter().any(awaited) {
                inner.refusal = inner.refusal_from.take().map(|(_, error)| error);
            }
            inner.refusal_once.take().or_else(|| inner.refusal.clone())
        };
        if let Some(error) = refusal {
            return Err(error);
        }
        let crash = self.note(&append);
        if crash == Some(CrashMoment::Before) {
            self.die().await;
        }
        let is_described = |(description, _): &mut (String, Error)| {
            append.records().iter().any(|record| *description == described(record))
        };
        let failure = self.inner.lock().unwrap().failure_after_commit.take_if(is_described);
        let journal = self.journal.clone();
        let mut records = self.request(async move { journal.append(append).await }).await;
        let (append_time, times) = {
            let inner = self.inner.lock().unwrap();
            (inner.append_time, inner.record_times.clone())
        };
        if let (Some(at), Ok(records)) = (append_time, &mut records) {
            for record in records {
                record.at = at;
                times.lock().unwrap().insert((record.stream.clone(), record.seq), at);
            }
        }
        if let (Some((_, error)), Ok(_)) = (failure, &records) {
            return Err(error);
        }
        // A process whose append came second tries again, and does not die of that.
        let is_second = matches!(records, Err(Error::Conflict { .. }));
        if crash == Some(CrashMoment::After) && !is_second {
            records.expect("the append that is the last one of a process that dies must work");
            self.die().await;
        }
        records
    }

    async fn acquire_lease(&self, stream: &StreamName) -> Result<Lease> {
        self.lives().await;
        let (journal, stream) = (self.journal.clone(), stream.clone());
        let (inner, crashed) = (self.inner.clone(), self.crashed.subscribe());
        let acquire = async move {
            let lease = journal.acquire_lease(&stream).await?;
            let has_crashed = {
                // Under the lock, so that `release_leases` finds every lease that was acquired before the crash.
                let mut inner = inner.lock().unwrap();
                let has_crashed = *crashed.borrow();
                if !has_crashed {
                    inner.leases.push(lease.clone());
                }
                has_crashed
            };
            if has_crashed {
                // The request was under way when the process died: a dead process keeps no lease.
                journal.release_lease(&lease).await?;
            }
            Ok(lease)
        };
        let acquired = self.request(acquire).await;
        self.lives().await;
        acquired
    }

    async fn read(&self, stream: &StreamName, from: Seq, page: Page) -> Result<Vec<Record>> {
        self.lives().await;
        let time = self.inner.lock().unwrap().read_takes;
        tokio::time::sleep(time).await;
        let refusal = self.inner.lock().unwrap().read_refusal.clone();
        if let Some(error) = refusal {
            return Err(error);
        }
        let mut records = self.journal.read(stream, from, page).await?;
        let times = self.inner.lock().unwrap().record_times.clone();
        for record in &mut records {
            let time = times.lock().unwrap().get(&(stream.clone(), record.seq)).copied();
            record.at = time.unwrap_or(record.at);
        }
        self.inner.lock().unwrap().records_read += records.len();
        Ok(records)
    }

    async fn records_of_kind(&self, stream: &StreamName, kind: &str) -> Result<Vec<Record>> {
        self.journal.records_of_kind(stream, kind).await
    }

    async fn head(&self, stream: &StreamName) -> Result<Head> {
        self.journal.head(stream).await
    }

    async fn newest_epoch(&self, stream: &StreamName, through: Seq) -> Result<Option<Seq>> {
        self.journal.newest_epoch(stream, through).await
    }

    async fn size(&self, stream: &StreamName) -> Result<StreamSize> {
        self.journal.size(stream).await
    }

    async fn find(&self, stream: &StreamName, key: &str) -> Result<Option<Seq>> {
        self.journal.find(stream, key).await
    }

    async fn streams(&self) -> Result<Vec<StreamName>> {
        self.journal.streams().await
    }

    async fn session(&self, key: &str) -> Result<Option<SessionEntry>> {
        self.journal.session(key).await
    }

    async fn session_with_id(&self, id: SessionId) -> Result<Option<SessionEntry>> {
        self.journal.session_with_id(id).await
    }

    async fn sessions(&self, after: Option<&str>, limit: usize) -> Result<Vec<SessionEntry>> {
        self.lives().await;
        let refusal = self.inner.lock().unwrap().listing_refusal.clone();
        match refusal {
            Some(error) => Err(error),
            None => self.journal.sessions(after, limit).await,
        }
    }

    async fn renew_lease(&self, lease: &Lease) -> Result<()> {
        self.lives().await;
        let refusal = self.inner.lock().unwrap().renewal_refusal.clone();
        if let Some(error) = refusal {
            return Err(error);
        }
        self.journal.renew_lease(lease).await
    }

    async fn release_lease(&self, lease: &Lease) -> Result<()> {
        self.lives().await;
        let time = {
            let mut inner = self.inner.lock().unwrap();
            inner.releases += 1;
            inner.release_takes
        };
        tokio::time::sleep(time).await;
        let refusal = self.inner.lock().unwrap().release_refusal.clone();
        match refusal {
            Some(error) => Err(error),
            None => self.journal.release_lease(lease).await,
        }
    }

    async fn holder(&self, stream: &StreamName) -> Result<Option<Holder>> {
        self.journal.holder(stream).await
    }

    async fn live_holder(&self, stream: &StreamName) -> Result<Option<Holder>> {
        self.journal.live_holder(stream).await
    }

    async fn wake_holder(&self, stream: &StreamName) -> Result<()> {
        self.journal.wake_holder(stream).await
    }

    async fn wake_signals(&self) -> Result<WakeSignals> {
        self.journal.wake_signals().await
    }

    async fn subscribe(&self, holder: &Holder, stream: &StreamName) -> Result<Option<Subscription>> {
        self.journal.subscribe(holder, stream).await
    }

    async fn subscribers(&self) -> Result<Subscribers> {
        self.journal.subscribers().await
    }

    async fn wake_here(&self, holder: &Holder, streams: &[StreamName]) -> Result<bool> {
        self.journal.wake_here(holder, streams).await
    }

    async fn subscribe_here(&self, holder: &Holder, stream: &StreamName) -> Result<Option<Subscription>> {
        self.journal.subscribe_here(holder, stream).await
    }

    async fn blob(&self, hash: Hash) -> Result<Vec<u8>> {
        self.journal.blob(hash).await
    }

    async fn erase(&self, places: &[(StreamName, Seq)], reason: &str) -> Result<()> {
        self.journal.erase(places, reason).await
    }

    async fn remove(&self, stream: &StreamName, lease: Option<&Lease>) -> Result<()> {
        self.journal.remove(stream, lease).await
    }

    async fn drop_unused_blobs(&self) -> Result<u64> {
        self.journal.drop_unused_blobs().await
    }

    async fn sync(&self) -> Result<()> {
        self.journal.sync().await
    }

    async fn adopt(&self, lease: &Lease, records: Vec<Record>, blobs: Vec<Blob>) -> Result<()> {
        self.lives().await;
        let crash = self.inner.lock().unwrap().adoption_crash;
        if crash == Some(CrashMoment::Before) {
            self.die().await;
        }
        self.journal.adopt(lease, records, blobs).await?;
        if crash == Some(CrashMoment::After) {
            self.die().await;
        }
        Ok(())
    }

    async fn search(&self, search: &SearchQuery) -> Result<SearchAnswer> {
        self.journal.search(search).await
    }

    async fn streams_with_words(&self, words: &str) -> Result<FoundStreams> {
        self.journal.streams_with_words(words).await
    }

    async fn verify(&self) -> Result<VerifyReport> {
        self.journal.verify().await
    }

    async fn backup(&self, file: &Path) -> Result<VerifyReport> {
        self.journal.backup(file).await
    }

    async fn close(&self) {
        self.lives().await;
        self.journal.close().await;
    }
}

/// The kind of a record, with the tool's name where there is one.
fn described(record: &NewRecord) -> String {
    let body: serde_json::Value = serde_json::from_str(record.body.get()).unwrap();
    let name = match record.kind.as_str() {
        "tool_started" | "tool_finished" => body["name"].as_str(),
        "block" => body["item"]["name"].as_str(),
        _ => None,
    };
    name.map_or_else(|| record.kind.clone(), |name| format!("{} {name}", record.kind))
}
