//! Embeddings: finding records by what they mean, with the vectors of a model that the user has.
//!
//! | killed | is stored | next time |
//! | --- | --- | --- |
//! | before a call is answered | nothing of it | the same records are sent again |
//! | after it, before the vectors are stored | nothing of it | the same, once more |
//! | after that | the vectors, in the search index | the next records |
//!
//! If the server refuses a batch, its halves are sent, and so on: the text that it refuses is left without a vector.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use longhaul_context::estimate_text;
use longhaul_journal::{Journal, RecordVector, SearchHit, SearchQuery};
use longhaul_model::{EmbeddingModel, FailureClass, ModelFailure};
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
/// A text that every embedding model takes.
const HARMLESS_TEXT: &str = "hello";

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

    /// Leaves the server alone for a while, and returns why.
    fn pause(&self, reason: String) -> Error {
        let mut pause = self.pause.lock().unwrap_or_else(PoisonError::into_inner);
        *pause = Some((Instant::now() + PAUSE, reason.clone()));
        Error::Model(reason)
    }

    async fn embed(
        &self,
        texts: &[String],
        timeout: Duration,
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
        let vectors = self.model.embed(texts, timeout, reserved.permit()).await;
        reserved.settle().await;
        if let Err(failure) = &vectors
            && refuses_texts(failure)
        {
            return Err(Error::RefusedTexts(failure.to_string()));
        }
        let failure = vectors.as_ref().err().map(ToString::to_string);
        *lock() = failure.map(|reason| (Instant::now() + PAUSE, reason));
        vectors.map_err(|failure| Error::Model(failure.to_string()))
    }
}

/// Whether the server works, and does not take these texts: one of them is too long for it, or has something that it can't read.
fn refuses_texts(failure: &ModelFailure) -> bool {
    matches!(failure.class, FailureClass::Invalid | FailureClass::TooLong)
        && matches!(failure.status, Some(400 | 413 | 422))
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
        let vectors = embed_batch(embedder, &texts, budget).await?;
        count += vectors.iter().filter(|vector| !vector.is_empty()).count();
        let vectors =
            records.iter().zip(vectors).map(|(record, vector)| RecordVector { slot: record.slot, vector });
        journal.put_vectors(model, vectors.collect()).await?;
    }
    Ok(count)
}

/// The vectors of texts. One that the server refuses gets an empty one, so that the others get theirs, and it is not sent again.
async fn embed_batch(
    embedder: &Embedder,
    texts: &[String],
    budget: &dyn CallBudget,
) -> Result<Vec<Vec<f32>>> {
    let mut vectors = vec![Vec::new(); texts.len()];
    let mut is_server_checked = false;
    // From the first to before the last.
    let mut pending = vec![(0, texts.len())];
    while let Some((start, end)) = pending.pop() {
        match embedder.embed(&texts[start..end], BATCH_TIMEOUT, budget).await {
            Ok(found) => (start..end).zip(found).for_each(|(place, vector)| vectors[place] = vector),
            Err(Error::RefusedTexts(reason)) => {
                // A model that makes no embeddings refuses every text.
                if !is_server_checked
                    && let Err(Error::RefusedTexts(_)) =
                        embedder.embed(&[HARMLESS_TEXT.to_owned()], BATCH_TIMEOUT, budget).await
                {
                    return Err(embedder.pause(reason));
                }
                is_server_checked = true;
                if end - start > 1 {
                    let middle = usize::midpoint(start, end);
                    pending.extend([(start, middle), (middle, end)]);
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(vectors)
}
