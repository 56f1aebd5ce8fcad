//! The files of the web console. They need no token: they say nothing about a session.

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH};
use longhaul_console::{CONTENT_SECURITY_POLICY as PAGE_POLICY, ConsoleFile, FILES};

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// A router with a route for each file.
pub(crate) fn router() -> Router {
    FILES.iter().fold(Router::new(), |router, file| {
        router.route(file.path, get(move |request: Request| async move { serve(file, &request) }))
    })
}

fn serve(file: &'static ConsoleFile, request: &Request) -> Response {
    // A browser asks each time and gets the file again only if it has changed, so an upgrade is never half there.
    let headers = [
        (ETAG, file.tag()),
        (CACHE_CONTROL, "no-cache"),
        (CONTENT_SECURITY_POLICY, PAGE_POLICY),
        // A page that opens this one can't steer it to a question under the pointer.
        (OPENER_POLICY, "same-origin"),
    ];
    let known = request.headers().get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    if known
        .is_some_and(|known| known.split(',').any(|tag| tag.trim().trim_start_matches("W/") == file.tag()))
    {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    (headers, [(CONTENT_TYPE, file.media_type)], file.bytes).into_response()
}
