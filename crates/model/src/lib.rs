//! Talking to language models.
//!
//! # What this crate promises
//!
//! - **Every call has a cause.** A [`Model`] is called with a [`CallPermit`], which says why and for which attempt.
//! - **Every answer is a stream.** A [`Model`] takes a [`Request`] and returns an [`AnswerStream`] of [`AnswerPart`]s.
//!   [`complete`] collects one for callers that need the whole answer.
//! - **An answer is complete only with its end.** A stream without [`AnswerPart::End`] is a [`FailureClass::Broken`].
//! - **The same request gives the same bytes**, and each request of a conversation begins with the bytes of the one before.
//! - **A [`Model`] never retries.** [`RetryState`] decides whether and when its caller should. Only a request whose
//!   reasoning effort was refused is sent again at once.
//! - **A failure says what happened and what to do**, for people in its message and for programs in its [`FailureClass`].
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `request`, `answer_stream` | what a model is asked; the trait [`Model`] and the parts of an answer |
//! | `permit` | the right to make one call, with its cause; what the call is settled by |
//! | `completion`, `block_assembler` | one request with its whole answer; from parts to blocks |
//! | `codec` | four wire protocols: from requests to bytes and from bytes to parts. Pure |
//! | `transport` | HTTP requests and responses; the seam for tests |
//! | `remote`, `stream_reader` | a model behind a network: one call, its timeouts (connect, first byte, idle) |
//! | `endpoint` | how a model is reached, and the messages for what goes wrong there |
//! | `failure`, `classify`, `limits` | failure classes; classifying provider errors; limits that a refusal states. Pure |
//! | `retry`, `retry_after` | retry policy and backoff; the server's `Retry-After`. Pure |
//! | `registry` | from a model name to a model; the default model |
//! | `provider`, `catalogue`, `table_file` | the provider table; model facts and prices; their TOML files |
//! | `capabilities`, `discovery` | context window, longest answer, tools and prices of a model; asking servers for them |
//! | `embedding` | texts become vectors, by an OpenAI-compatible `/embeddings` |
//! | `effort` | how much a model reasons: the forms in which servers take it, and what follows a refusal. Pure |
//! | `learned_capabilities`, `role_order`, `known_hosts`, `cache_file` | what servers were seen to accept, kept in cache files |
//! | `scripted` | a model that plays a list of answers, for tests, examples and the demo |
//!
//! # Example
//!
//! ```
//! use longhaul_model::{AnswerPart, CallPermit, Request, ScriptedModel};
//! use longhaul_protocol::Cause;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let model = ScriptedModel::from_json(r#"["Hello."]"#)?;
//! let permit = CallPermit::unreserved(Cause::Turn);
//! let mut answer = permit.send(&model, Request::default()).await?;
//! let mut text = String::new();
//! loop {
//!     match answer.next().await? {
//!         AnswerPart::TextDelta(delta) => text += &delta,
//!         AnswerPart::End(_) => break,
//!         _ => {}
//!     }
//! }
//! assert_eq!(text, "Hello.");
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```

mod answer_stream;
mod block_assembler;
mod cache_file;
mod capabilities;
mod catalogue;
mod choices;
mod classify;
mod codec;
mod completion;
mod discovery;
mod effort;
mod embedding;
mod endpoint;
mod error;
mod failure;
mod known_hosts;
mod learned_capabilities;
mod limits;
mod permit;
mod provider;
mod registry;
mod remote;
mod request;
mod retry;
mod retry_after;
mod role_order;
mod scripted;
mod stream_reader;
mod table_file;
pub mod transport;

pub use answer_stream::{
    AnswerPart, AnswerStream, Model, RateLimits, SearchSource, SearchSupport, StopKind, StopReason,
    TokenCounts,
};
pub use block_assembler::{BlockAssembler, BlockProgress};
pub use capabilities::{Capabilities, ContextWindow, PriceBound, Prices, WindowSource};
pub use catalogue::{Catalogue, CatalogueEntry, PriceSource};
pub use choices::ModelChoice;
pub use codec::{Protocol, Quirks, RoleOrder};
pub use completion::{Completion, WholeAnswer, complete};
pub use discovery::{
    DiscoveredCapabilities, LOCAL_SERVER_PORTS, LocalServer, ServerQuery, discover_capabilities,
    find_local_servers,
};
pub use effort::{Effort, EffortForm};
pub use embedding::EmbeddingModel;
pub use endpoint::{ApiKey, Endpoint, SettingSources, Timeouts};
pub use error::{Error, Result};
pub use failure::{FailureClass, ModelFailure};
pub use known_hosts::KnownHosts;
pub use learned_capabilities::LearnedCapabilities;
pub use limits::{CorrectedLimits, RefusedSize, StatedLimits};
pub use permit::{CallPermit, CallProgress, ObservedAnswer};
pub use provider::{Provider, Providers};
pub use registry::{DefaultModel, ModelSpec, Models};
pub use remote::RemoteModel;
pub use request::{Purpose, Request};
pub use retry::{
    LongDelayPolicy, OfflinePolicy, RetriesExhausted, RetryDecision, RetryDelay, RetryLimit, RetryPolicy,
    RetryState,
};
pub use role_order::MAX_ROLE_REORDERS;
pub use scripted::ScriptedModel;
