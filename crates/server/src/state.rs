//! What all handlers share.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use longhaul_agent::Runtime;
use longhaul_journal::{Journal, SessionEntry};
use longhaul_protocol::SessionId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::ServerOptions;
use crate::api::fold_starts::FoldStarts;
use crate::api::models::ProviderLists;
use crate::body::BodyBudget;
use crate::cluster::ClusterAccess;
use crate::events::body::{BodyWriter, written_body};
use crate::events::feed::EventFeeds;
use crate::events::followers::Followers;
use crate::events::overview::OverviewFeed;
use crate::metrics::Metrics;
use crate::openai::{Deliveries, ServedModels};
use crate::origin::OriginPolicy;
use crate::problem::{ApiResult, Problem};
use crate::readiness::Readiness;
use crate::tokens::{CookieKey, FailureLimiter, RateLimit, SignedOutCookies, TokenStore};

/// What all handlers share. A clone is cheap.
#[derive(Clone)]
pub(crate) struct ServerState(Arc<SharedState>);

struct SharedState {
    runtime: Runtime,
    tokens: TokenStore,
    failures: FailureLimiter,
    cookie_key: CookieKey,
    signed_out: Arc<SignedOutCookies>,
    origin_policy: OriginPolicy,
    limits: RequestLimits,
    body_budget: BodyBudget,
    shutdown: watch::Receiver<bool>,
    read_timeout: Duration,
    streams: EventStreams,
    deliveries: Deliveries,
    served_models: ServedModels,
    metrics: Arc<Metrics>,
    readiness: Readiness,
    fold_starts: FoldStarts,
    provider_lists: ProviderLists,
    /// `None` if this server is no node of a cluster.
    cluster_access: Option<ClusterAccess>,
}

/// What a request may cost.
#[derive(Clone, Copy)]
pub(crate) struct RequestLimits {
    pub(crate) max_body_bytes: usize,
    /// How long a client may be silent in the middle of a body.
    pub(crate) body_silence_timeout: Duration,
    /// How many requests each token may make.
    pub(crate) token_rate: RateLimit,
}

/// What event streams share.
pub(crate) struct EventStreams {
    pub(crate) feeds: EventFeeds,
    pub(crate) overview: OverviewFeed,
    /// Streams that may read old records at once.
    pub(crate) catch_ups: Arc<Semaphore>,
    /// Streams that are open.
    pub(crate) followers: Followers,
}

/// Streams that may read old records at once. Each holds the state of its session meanwhile.
const MAX_CATCH_UPS: usize = 8;

impl EventStreams {
    fn new(max_followers: usize) -> Self {
        Self {
            feeds: EventFeeds::default(),
            overview: OverviewFeed::default(),
            catch_ups: Arc::new(Semaphore::new(MAX_CATCH_UPS)),
            followers: Followers::new(max_followers),
        }
    }
}

impl ServerState {
    pub(crate) fn new(
        runtime: Runtime,
        tokens: TokenStore,
        options: &ServerOptions,
        shutdown: watch::Receiver<bool>,
    ) -> Self {
        let signed_out = Arc::new(SignedOutCookies::in_home(&runtime.config().home));
        Self(Arc::new(SharedState {
            runtime,
            signed_out,
            tokens,
            failures: FailureLimiter::default(),
            cookie_key: CookieKey::derive(&options.cookie_secret),
            origin_policy: OriginPolicy::new(&options.allowed_hosts, &options.allowed_origins),
            limits: RequestLimits {
                max_body_bytes: options.max_body_bytes,
                body_silence_timeout: options.body_silence_timeout,
                token_rate: options.token_rate,
            },
            body_budget: BodyBudget::new(options.max_body_bytes),
            shutdown,
            read_timeout: options.read_timeout,
            streams: EventStreams::new(options.max_followers),
            cluster_access: options.cluster_token.as_ref().map(ClusterAccess::new),
            metrics: Arc::default(),
            readiness: Readiness::default(),
            fold_starts: FoldStarts::default(),
            provider_lists: ProviderLists::default(),
            deliveries: Deliveries::default(),
            served_models: ServedModels::default(),
        }))
    }

    pub(crate) fn cluster_access(&self) -> Option<&ClusterAccess> {
        self.0.cluster_access.as_ref()
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.0.runtime
    }

    pub(crate) fn journal(&self) -> Arc<dyn Journal> {
        self.0.runtime.journal()
    }

    pub(crate) fn tokens(&self) -> &TokenStore {
        &self.0.tokens
    }

    pub(crate) fn failures(&self) -> &FailureLimiter {
        &self.0.failures
    }

    /// The cookies that no longer count.
    pub(crate) fn signed_out(&self) -> &Arc<SignedOutCookies> {
        &self.0.signed_out
    }

    pub(crate) fn cookie_key(&self) -> &CookieKey {
        &self.0.cookie_key
    }

    pub(crate) fn origin_policy(&self) -> &OriginPolicy {
        &self.0.origin_policy
    }

    pub(crate) fn limits(&self) -> RequestLimits {
        self.0.limits
    }

    /// The memory for request bodies.
    pub(crate) fn body_budget(&self) -> &BodyBudget {
        &self.0.body_budget
    }

    /// Which answers of `/v1` have reached their clients.
    pub(crate) fn deliveries(&self) -> &Deliveries {
        &self.0.deliveries
    }

    /// The models that the servers of this home offer.
    pub(crate) fn served_models(&self) -> &ServedModels {
        &self.0.served_models
    }

    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.0.metrics
    }

    pub(crate) fn readiness(&self) -> &Readiness {
        &self.0.readiness
    }

    /// What providers offered when they were last asked.
    pub(crate) fn provider_lists(&self) -> &ProviderLists {
        &self.0.provider_lists
    }

    /// Where folds of transcripts may begin.
    pub(crate) fn fold_starts(&self) -> &FoldStarts {
        &self.0.fold_starts
    }

    /// Becomes true when the server stops. A stream then sends `retry: MS` and ends; a request that waits answers at once.
    /// It is never false again.
    pub(crate) fn shutdown(&self) -> watch::Receiver<bool> {
        self.0.shutdown.clone()
    }

    pub(crate) fn streams(&self) -> &EventStreams {
        &self.0.streams
    }

    /// A response body and the end that writes it.
    pub(crate) fn written_body(&self) -> (BodyWriter, Body) {
        written_body(self.shutdown(), self.0.read_timeout)
    }

    /// Counts a stream as open until the permit is dropped.
    pub(crate) fn count_follower(&self) -> ApiResult<OwnedSemaphorePermit> {
        self.streams().followers.count_any()
    }

    /// The session with this key or id.
    pub(crate) async fn session_entry(&self, key: &str) -> ApiResult<SessionEntry> {
        let journal = self.journal();
        if let Some(entry) = journal.session(key).await? {
            return Ok(entry);
        }
        let by_id = match key.parse::<SessionId>() {
            Ok(id) => journal.session_with_id(id).await?,
            Err(_) => None,
        };
        by_id.ok_or_else(|| Problem::no_such_session(key))
    }
}
