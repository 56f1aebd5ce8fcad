//! Streams end with the token that opened them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

use crate::tokens::StoredToken;

/// A body that ends before its next frame once its token is revoked. An event stream has a frame at least every 15
/// seconds, so it sends nothing after the revocation and is gone soon.
struct RevocableBody {
    body: Body,
    token: Arc<StoredToken>,
}

/// Ends the body of a stream when the token is revoked.
pub(crate) fn end_when_revoked(response: Response, token: Arc<StoredToken>) -> Response {
    // A body whose length is known is on its way already.
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    response.map(|body| Body::new(RevocableBody { body, token }))
}

impl HttpBody for RevocableBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if polled.is_ready() && self.token.is_revoked() { Poll::Ready(None) } else { polled }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
#[path = "revocation_tests.rs"]
mod tests;
