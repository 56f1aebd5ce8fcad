//! Embeddings: texts become vectors, by an OpenAI-compatible `/embeddings` of a server that the user runs or pays.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use crate::endpoint::Endpoint;
use crate::transport::{HttpRequest, HttpResponse, Transport, TransportError};
use crate::{CallPermit, FailureClass, ModelFailure, Prices, Protocol, TokenCounts};

/// The most bytes of an answer: 64 vectors of 4,096 numbers are 6 MB.
const MAX_ANSWER_BYTES: usize = 32 << 20;

/// A model that turns texts into vectors.
pub struct EmbeddingModel {
    endpoint: Endpoint,
    transport: Arc<dyn Transport>,
}

#[derive(Deserialize)]
struct EmbeddingAnswer {
    data: Vec<EmbeddingItem>,
    usage: Option<EmbeddingUsage>,
}

#[derive(Deserialize)]
struct EmbeddingItem {
    index: Option<usize>,
    embedding: Vec<f32>,
}

#[derive(Deserialize)]
struct EmbeddingUsage {
    prompt_tokens: Option<u64>,
}

impl EmbeddingModel {
    pub(crate) fn new(endpoint: Endpoint, transport: Arc<dyn Transport>) -> Self {
        // Only OpenAI's protocols have such a path, and their keys are sent in the same way.
        Self { endpoint: Endpoint { protocol: Protocol::OpenaiChat, ..endpoint }, transport }
    }

    /// As `provider/model`.
    pub fn name(&self) -> &str {
        &self.endpoint.name
    }

    /// What a token costs, if it is known.
    pub fn prices(&self) -> Option<Prices> {
        self.endpoint.entry.as_ref().and_then(|entry| entry.prices)
    }

    /// One vector for each text, in their order. Fails if they don't come within `timeout`.
    pub async fn embed(
        &self,
        texts: &[String],
        timeout: Duration,
        permit: &CallPermit,
    ) -> Result<Vec<Vec<f32>>, ModelFailure> {
        permit.begin_call();
        let answered = self.call(texts, timeout).await;
        let counted = answered.as_ref().ok().map(|(_, tokens)| *tokens);
        permit.end_call(counted);
        answered.map(|(vectors, _)| vectors)
    }

    async fn call(
        &self,
        texts: &[String],
        timeout: Duration,
    ) -> Result<(Vec<Vec<f32>>, TokenCounts), ModelFailure> {
        let endpoint = &self.endpoint;
        let late = || {
            let (host, seconds) = (endpoint.host(), timeout.as_secs());
            ModelFailure::new(FailureClass::Timeout, format!("no embeddings from {host} within {seconds} s"))
        };
        let deadline = Instant::now() + timeout;
        let body = serde_json::json!({ "model": endpoint.model, "input": texts, "encoding_format": "float" });
        let request = HttpRequest {
            url: format!("{}/embeddings", endpoint.base_url.trim_end_matches('/')),
            headers: endpoint.protocol.headers(endpoint.key.as_ref().map(|key| key.value.as_str())),
            body: Some(body.to_string().into_bytes()),
            connect_within: endpoint.clocks.connect.min(timeout),
        };
        let trouble = |error: TransportError| endpoint.transport_failure(&error, true);
        let sent = timeout_at(deadline, self.transport.send(request)).await;
        let mut response = sent.map_err(|_| late())?.map_err(trouble)?;
        let bytes =
            timeout_at(deadline, read_body(&mut response)).await.map_err(|_| late())?.map_err(trouble)?;
        if response.status != 200 {
            return Err(endpoint.http_failure(response.status, response.header("location"), None, &bytes));
        }
        let unusable = |what: &str| {
            let text = format!("{} gave no usable embeddings: {what}", endpoint.host());
            ModelFailure::new(FailureClass::Invalid, text)
        };
        let answer: EmbeddingAnswer =
            serde_json::from_slice(&bytes).map_err(|error| unusable(&endpoint.quote(&error.to_string())))?;
        let vectors =
            in_order(answer.data, texts.len()).ok_or_else(|| unusable("one for each text was asked"))?;
        let input = answer.usage.and_then(|usage| usage.prompt_tokens);
        Ok((vectors, TokenCounts { input, output: Some(0), ..TokenCounts::default() }.plausible()))
    }
}

/// The vectors by their numbers. `None` if there is not exactly one for each text, or one is empty.
fn in_order(mut items: Vec<EmbeddingItem>, texts: usize) -> Option<Vec<Vec<f32>>> {
    if items.iter().all(|item| item.index.is_some()) {
        items.sort_by_key(|item| item.index);
    }
    let is_whole = items.len() == texts && items.iter().all(|item| !item.embedding.is_empty());
    is_whole.then(|| items.into_iter().map(|item| item.embedding).collect())
}

async fn read_body(response: &mut HttpResponse) -> Result<Vec<u8>, TransportError> {
    let mut body = Vec::new();
    while let Some(bytes) = response.body.next().await? {
        body.extend(bytes);
        if body.len() > MAX_ANSWER_BYTES {
            return Err(TransportError::Broken(format!("the answer has more than {MAX_ANSWER_BYTES} bytes")));
        }
    }
    Ok(body)
}
