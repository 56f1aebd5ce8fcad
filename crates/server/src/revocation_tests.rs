use http_body_util::BodyExt;

use super::*;
use crate::access::Scope;
use crate::tokens::TokenStore;

/// A stream that always has more.
struct Endless;

impl HttpBody for Endless {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"data: 1\n\n")))))
    }
}

/// H5: nothing is sent to a revoked token, on streams that it opened before either.
#[tokio::test]
async fn a_stream_ends_when_its_token_is_revoked() {
    let mut tokens = TokenStore::default();
    tokens.insert("laptop", Scope::Read, "text");
    let token = tokens.find("text").unwrap();
    let mut body = end_when_revoked(Response::new(Body::new(Endless)), token.clone()).into_body();

    let before = body.frame().await.is_some();
    token.revoke();
    let after = body.frame().await.is_some();

    assert!(before);
    assert!(!after);
}
