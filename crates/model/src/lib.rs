//! Talking to language models.
//!
//! # What this crate promises
//!
//! - **One stream for everything.** A model is asked with a [`Request`] and answers with [`Part`]s as they come. There is
//!   no second way of asking that waits for the whole answer: whoever wants that, collects.
//! - **An answer is whole only with its end.** An [`Answer`] that stops without [`Part::End`] is an [`Error::Broken`].
//! - **The same request, the same bytes.** What is sent is a function of the [`Request`] alone.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `request` | what a model is asked |
//! | `answer` | the trait [`Model`], and what comes back |
//! | `open` | from a name to a model |
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
//! # Ok::<(), longhaul_model::Error>(()) }).unwrap();
//! ```

mod answer;
mod error;
mod open;
mod request;
mod scripted;

pub use answer::{Answer, Model, Part, Tokens};
pub use error::{Error, Result};
pub use open::open;
pub use request::Request;
pub use scripted::Scripted;
