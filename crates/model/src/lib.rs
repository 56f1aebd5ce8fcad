//! Talking to language models.
//!
//! # What this crate promises
//!
//! - **One stream for everything.** A model is asked with a [`Request`] and answers with [`Part`]s as they come. There is
//!   no second way of asking that waits for the whole answer: whoever wants that, collects.
//! - **An answer is whole only with its end.** An [`Answer`] that stops without [`Part::End`] is a [`Class::Broken`].
//! - **The same request, the same bytes.** What is sent is a function of the [`Request`] alone, and each request of a conversation
//!   begins with the bytes of the one before.
//! - **One request is one request.** A [`Model`] tries nothing again; [`Tries`] says whether and when somebody should.
//! - **A failure says what happened, whose doing it is and what to do**, for people and, as its [`Class`], for programs.
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

pub use answer::{Answer, Model, Part, RateLimits, Stop, StopKind, Tokens};
pub use blocks::{Blocks, Progress};
pub use catalogue::{Catalogue, Entry};
pub use codec::{Protocol, Quirks, RoleOrder};
pub use discovery::{Discovered, LocalServer, Server, USUAL_PORTS, discover, find_local};
pub use error::{Error, Result};
pub use facts::{Facts, Prices, Window, WindowSource};
pub use failure::{Class, Failure};
pub use hearing::{Heard, Whole, hear};
pub use hosts::Hosts;
pub use learned::Learned;
pub use limits::{CorrectedLimits, RefusedSize, StatedLimits};
pub use open::{Found, Models, Wanted};
pub use provider::{Provider, Providers};
pub use remote::Remote;
pub use request::{Purpose, Request};
pub use retry::{Limit, LongDelays, Next, Offline, RetryPolicy, Spent, Tries, Wait};
pub use role_check::MAX_REORDERED;
pub use scripted::Scripted;
pub use target::{Clocks, Key, SetBy, Target};
