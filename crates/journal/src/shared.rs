//! A shared journal is a journal. So a caller that doesn't know the engine passes it on like one that does.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use longhaul_protocol::{Hash, Record, Seq, SessionId, StreamName};

use crate::{
    Append, Blob, Cluster, FoundStreams, Head, Holder, Journal, Lease, Page, RecordVector, Result,
    SearchAnswer, SearchHit, SearchQuery, SessionEntry, StreamSize, Subscribers, Subscription,
    UnembeddedRecord, VerifyReport, WakeSignals,
};

#[async_trait]
impl<J: Journal + ?Sized> Journal for Arc<J> {
    async fn append(&self, append: Append) -> Result<Vec<Record>> {
        (**self).append(append).await
    }

    async fn read(&self, stream: &StreamName, from: Seq, page: Page) -> Result<Vec<Record>> {
        (**self).read(stream, from, page).await
    }

    async fn records_of_kind(&self, stream: &StreamName, kind: &str) -> Result<Vec<Record>> {
        (**self).records_of_kind(stream, kind).await
    }

    async fn head(&self, stream: &StreamName) -> Result<Head> {
        (**self).head(stream).await
    }

    async fn newest_epoch(&self, stream: &StreamName, through: Seq) -> Result<Option<Seq>> {
        (**self).newest_epoch(stream, through).await
    }

    async fn size(&self, stream: &StreamName) -> Result<StreamSize> {
        (**self).size(stream).await
    }

    async fn find(&self, stream: &StreamName, key: &str) -> Result<Option<Seq>> {
        (**self).find(stream, key).await
    }

    async fn streams(&self) -> Result<Vec<StreamName>> {
        (**self).streams().await
    }

    async fn session(&self, key: &str) -> Result<Option<SessionEntry>> {
        (**self).session(key).await
    }

    async fn session_with_id(&self, id: SessionId) -> Result<Option<SessionEntry>> {
        (**self).session_with_id(id).await
    }

    async fn sessions(&self, after: Option<&str>, limit: usize) -> Result<Vec<SessionEntry>> {
        (**self).sessions(after, limit).await
    }

    async fn acquire_lease(&self, stream: &StreamName) -> Result<Lease> {
        (**self).acquire_lease(stream).await
    }

    async fn renew_lease(&self, lease: &Lease) -> Result<()> {
        (**self).renew_lease(lease).await
    }

    async fn release_lease(&self, lease: &Lease) -> Result<()> {
        (**self).release_lease(lease).await
    }

    async fn holder(&self, stream: &StreamName) -> Result<Option<Holder>> {
        (**self).holder(stream).await
    }

    async fn live_holder(&self, stream: &StreamName) -> Result<Option<Holder>> {
        (**self).live_holder(stream).await
    }

    fn cluster(&self) -> Option<&dyn Cluster> {
        (**self).cluster()
    }

    async fn host_for(&self, session: &StreamName) -> Result<StreamName> {
        (**self).host_for(session).await
    }

    async fn confirm_lease(&self, lease: &Lease) -> Result<()> {
        (**self).confirm_lease(lease).await
    }

    async fn wake_holder(&self, stream: &StreamName) -> Result<()> {
        (**self).wake_holder(stream).await
    }

    async fn wake_signals(&self) -> Result<WakeSignals> {
        (**self).wake_signals().await
    }

    async fn subscribe(&self, holder: &Holder, stream: &StreamName) -> Result<Option<Subscription>> {
        (**self).subscribe(holder, stream).await
    }

    async fn subscribers(&self) -> Result<Subscribers> {
        (**self).subscribers().await
    }

    async fn wake_here(&self, holder: &Holder, streams: &[StreamName]) -> Result<bool> {
        (**self).wake_here(holder, streams).await
    }

    async fn subscribe_here(&self, holder: &Holder, stream: &StreamName) -> Result<Option<Subscription>> {
        (**self).subscribe_here(holder, stream).await
    }

    async fn blob(&self, hash: Hash) -> Result<Vec<u8>> {
        (**self).blob(hash).await
    }

    async fn erase(&self, places: &[(StreamName, Seq)], reason: &str) -> Result<()> {
        (**self).erase(places, reason).await
    }

    async fn remove(&self, stream: &StreamName, lease: Option<&Lease>) -> Result<()> {
        (**self).remove(stream, lease).await
    }

    async fn drop_unused_blobs(&self) -> Result<u64> {
        (**self).drop_unused_blobs().await
    }

    async fn sync(&self) -> Result<()> {
        (**self).sync().await
    }

    async fn adopt(&self, lease: &Lease, records: Vec<Record>, blobs: Vec<Blob>) -> Result<()> {
        (**self).adopt(lease, records, blobs).await
    }

    async fn search(&self, search: &SearchQuery) -> Result<SearchAnswer> {
        (**self).search(search).await
    }

    async fn unembedded(
        &self,
        stream: &StreamName,
        model: &str,
        limit: usize,
    ) -> Result<Vec<UnembeddedRecord>> {
        (**self).unembedded(stream, model, limit).await
    }

    async fn put_vectors(&self, model: &str, vectors: Vec<RecordVector>) -> Result<()> {
        (**self).put_vectors(model, vectors).await
    }

    async fn search_vectors(
        &self,
        search: &SearchQuery,
        model: &str,
        vector: Vec<f32>,
    ) -> Result<Vec<SearchHit>> {
        (**self).search_vectors(search, model, vector).await
    }

    async fn streams_with_words(&self, words: &str) -> Result<FoundStreams> {
        (**self).streams_with_words(words).await
    }

    async fn verify(&self) -> Result<VerifyReport> {
        (**self).verify().await
    }

    async fn backup(&self, file: &Path) -> Result<VerifyReport> {
        (**self).backup(file).await
    }

    async fn close(&self) {
        (**self).close().await;
    }
}
