//! Streams end with the token that opened them.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

use crate::tokens::StoredToken;

/// A body that ends when its token is revoked, also while it waits for its next frame.
struct RevocableBody {
    body: Body,
    /// `None` once it has ended.
    revoked: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// Ends the body of a stream when the token is revoked.
pub(crate) fn end_when_revoked(response: Response, token: &StoredToken) -> Response {
    // A body whose length is known is on its way already.
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    let mut revocation = token.revocation();
    let revoked = async move { drop(revocation.wait_for(|revoked| *revoked).await) };
    response.map(|body| Body::new(RevocableBody { body, revoked: Some(Box::pin(revoked)) }))
}

impl HttpBody for RevocableBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(revoked) = &mut self.revoked else { return Poll::Ready(None) };
        if revoked.as_mut().poll(context).is_ready() {
            self.revoked = None;
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(context)
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
