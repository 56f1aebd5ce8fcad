//! Parameters in paths.

use axum::extract::{FromRequestParts, Path};
use hyper::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::problem::{ApiResult, Problem};
use crate::state::ServerState;

/// The parameters of the path, in their order.
pub(crate) struct PathParameters<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<ServerState> for PathParameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ServerState) -> ApiResult<Self> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(parameters)) => Ok(Self(parameters)),
            Err(rejection) => {
                let detail = format!("the path can't be read: {}", rejection.body_text());
                Err(Problem::bad_request("invalid_path", detail))
            }
        }
    }
}
