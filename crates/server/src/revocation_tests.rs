use http_body_util::BodyExt;

use super::*;
use crate::access::Scope;
use crate::tokens::TokenStore;

/// A stream that has one frame, or always more, and never ends.
struct Unending {
    frames: usize,
}

impl HttpBody for Unending {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(left) = self.frames.checked_sub(1) else { return Poll::Pending };
        self.frames = left;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"data: 1\n\n")))))
    }
}

/// H5: nothing is sent to a revoked token, on streams that it opened before either; and a silent stream ends at once.
#[tokio::test]
async fn a_stream_ends_when_its_token_is_revoked() {
    for frames in [1, usize::MAX] {
        let mut tokens = TokenStore::default();
        tokens.insert("laptop", Scope::Read, "text");
        let token = tokens.find("text").unwrap();
        let mut body = end_when_revoked(Response::new(Body::new(Unending { frames })), &token).into_body();

        let before = body.frame().await.is_some();
        let (after, ()) = tokio::join!(body.frame(), async { token.revoke() });
        let later = body.frame().await;

        assert!(before);
        assert!(frames > 1 || after.is_none(), "a silent stream ends");
        assert!(later.is_none());
    }
}
