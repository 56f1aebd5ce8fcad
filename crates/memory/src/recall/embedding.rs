//! Embeddings: finding records by what they mean, with the vectors of a model that the user has.
//!
//! | killed | is stored | next time |
//! | --- | --- | --- |
//! | before a call is answered | nothing of it | the same records are sent again |
//! | after it, before the vectors are stored | nothing of it | the same, once more |
//! | after that | the vectors, in the search index | the next records |

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use longhaul_context::estimate_text;
use longhaul_journal::{Journal, RecordVector, SearchHit, SearchQuery};
use longhaul_model::EmbeddingModel;
use longhaul_protocol::{SessionId, StreamName};
use tokio::time::Instant;

use super::Finder;
use crate::{CallBudget, Error, Result};

/// How long a search waits for the vector of its question. After that it goes by words alone.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a batch of records may take, where no answer waits for it.
const BATCH_TIMEOUT: Duration = Duration::from_secs(120);
/// Records of one call.
const BATCH_RECORDS: usize = 32;
/// The most calls in a row for one session. The rest waits for the next check.
const MAX_BATCHES: usize = 100;
/// After a failed call, searches and jobs leave the server alone for so long.
const PAUSE: Duration = Duration::from_secs(60);

/// An embedding model, and whether its server works.
pub struct Embedder {
    model: EmbeddingModel,
    /// Why the last call failed, and until when no other is made.
    pause: Mutex<Option<(Instant, String)>>,
}

impl Embedder {
    pub fn new(model: EmbeddingModel) -> Self {
        Self { model, pause: Mutex::default() }
    }

    pub fn model(&self) -> &EmbeddingModel {
        &self.model
    }

    async fn embed(
        &self,
        texts: &[String],
        patience: Duration,
        budget: &dyn CallBudget,
    ) -> Result<Vec<Vec<f32>>> {
        let lock = || self.pause.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((until, reason)) = &*lock()
            && Instant::now() < *until
        {
            return Err(Error::Model(reason.clone()));
        }
        let tokens = texts.iter().map(|text| estimate_text(text)).sum();
        let reserved =
            budget.reserve(tokens, 0).await.map_err(|failure| Error::Model(failure.to_string()))?;
        let vectors = self.model.embed(texts, patience, reserved.permit()).await;
        reserved.settle().await;
        let failure = vectors.as_ref().err().map(ToString::to_string);
        *lock() = failure.map(|reason| (Instant::now() + PAUSE, reason));
        vectors.map_err(|failure| Error::Model(failure.to_string()))
    }
}

/// Finds records whose vectors are near to that of the question.
pub struct EmbeddingFinder {
    pub embedder: Arc<Embedder>,
    /// Reserves the call for the question.
    pub budget: Arc<dyn CallBudget>,
}

#[async_trait]
impl Finder for EmbeddingFinder {
    async fn find(&self, journal: &dyn Journal, search: &SearchQuery) -> Result<Vec<SearchHit>> {
        let question = [search.words.clone()];
        let vectors = self.embedder.embed(&question, QUESTION_TIMEOUT, &*self.budget).await?;
        let vector = vectors.into_iter().next().unwrap_or_default();
        Ok(journal.search_vectors(search, self.embedder.model.name(), vector).await?)
    }
}

/// Gives the utterances of a session their vectors. Returns how many got one.
pub async fn embed_session(
    journal: &dyn Journal,
    session: SessionId,
    embedder: &Embedder,
    budget: &dyn CallBudget,
) -> Result<usize> {
    let (stream, model) = (StreamName::session(session), embedder.model.name());
    let mut count = 0;
    for _ in 0..MAX_BATCHES {
        let records = journal.unembedded(&stream, model, BATCH_RECORDS).await?;
        if records.is_empty() {
            break;
        }
        let texts: Vec<String> = records.iter().map(|record| record.text.clone()).collect();
        let vectors = embedder.embed(&texts, BATCH_TIMEOUT, budget).await?;
        count += vectors.len();
        let vectors =
            records.iter().zip(vectors).map(|(record, vector)| RecordVector { slot: record.slot, vector });
        journal.put_vectors(model, vectors.collect()).await?;
    }
    Ok(count)
}
