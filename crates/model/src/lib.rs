//! Talking to language models.
//!
//! # What this crate promises
//!
//! - **One stream for everything.** A model is asked with a [`Request`] and answers with [`AnswerPart`]s as they come. There is
//!   no second way of asking that waits for the whole answer: whoever wants that, collects.
//! - **An answer is whole only with its end.** An [`AnswerStream`] that stops without [`AnswerPart::End`] is a [`FailureClass::Broken`].
//! - **The same request, the same bytes.** What is sent is a function of the [`Request`] alone, and each request of a conversation
//!   begins with the bytes of the one before.
//! - **One request is one request.** A [`Model`] tries nothing again; [`RetryState`] says whether and when somebody should.
//! - **A failure says what happened, whose doing it is and what to do**, for people and, as its [`FailureClass`], for programs.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `request` | what a model is asked |
//! | `answer` | the trait [`Model`], and what comes back |
//! | `codec` | from requests to bytes and from bytes to parts, in four protocols. Pure |
//! | `transport` | the seam to the network |
//! | `remote`, `listening` | a model behind a wire: one call, with its clocks |
//! | `target` | how a model is reached, and the words for what went wrong with it |
//! | `classify`, `failure` | what a failure is, by what a provider says. Pure |
//! | `retry` | whether and when to try again. Pure |
//! | `open` | from a name to a model |
//! | `facts`, `hosts` | what is known about a model; which hosts have answered before |
//! | `cache_file` | reading and appending the lines in which that is kept |
//! | `learned`, `role_check` | what servers were seen to accept; finding the order of roles that a server accepts |
//! | `limits` | what a refusal says about the size of the context and of an answer. Pure |
//! | `provider` | who serves models: protocol, address, key, quirks |
//! | `catalogue` | what is known about models where their servers don't say it |
//! | `discovery` | what a server says about its models, and which servers run on this machine |
//! | `scripted` | a model made of a list of answers, for tests, examples and the demo |
//!
//! # Example
//!
//! ```
//! use longhaul_model::{Model, Part, Request, Scripted};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let model = Scripted::from_json(r#"["Hello."]"#)?;
//! let mut answer = model.ask(Request::default()).await?;
//! let mut text = String::new();
//! loop {
//!     match answer.next().await? {
//!         Part::TextDelta(delta) => text += &delta,
//!         Part::End(_) => break,
//!         _ => {}
//!     }
//! }
//! assert_eq!(text, "Hello.");
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```

mod answer;
mod blocks;
mod cache_file;
mod catalogue;
mod classify;
mod codec;
mod discovery;
mod error;
mod facts;
mod failure;
mod hearing;
mod hosts;
mod learned;
mod limits;
mod listening;
mod open;
mod provider;
mod remote;
mod request;
mod retry;
mod role_check;
mod rows;
mod scripted;
mod target;
pub mod transport;

pub use answer::{AnswerPart, AnswerStream, Model, RateLimits, StopKind, StopReason, TokenCounts};
pub use blocks::{BlockAssembler, BlockProgress};
pub use catalogue::{Catalogue, CatalogueEntry};
pub use codec::{Protocol, Quirks, RoleOrder};
pub use discovery::{
    DiscoveredCapabilities, LOCAL_SERVER_PORTS, LocalServer, ServerQuery, discover_capabilities,
    find_local_servers,
};
pub use error::{Error, Result};
pub use facts::{Capabilities, ContextWindow, Prices, WindowSource};
pub use failure::{FailureClass, ModelFailure};
pub use hearing::{Completion, WholeAnswer, complete};
pub use hosts::KnownHosts;
pub use learned::LearnedCapabilities;
pub use limits::{CorrectedLimits, RefusedSize, StatedLimits};
pub use open::{DefaultModel, ModelSpec, Models};
pub use provider::{Provider, Providers};
pub use remote::RemoteModel;
pub use request::{Purpose, Request};
pub use retry::{
    LongDelayPolicy, OfflinePolicy, RetriesExhausted, RetryDecision, RetryDelay, RetryLimit, RetryPolicy,
    RetryState,
};
pub use role_check::MAX_ROLE_REORDERS;
pub use scripted::ScriptedModel;
pub use target::{ApiKey, Endpoint, SettingSources, Timeouts};
