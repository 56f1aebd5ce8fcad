//! The OpenAI-compatible API, under `/v1`.

mod error;

use crate::route::Route;

pub(crate) use error::show_openai_errors;

pub(crate) fn routes() -> Vec<Route> {
    vec![]
}
