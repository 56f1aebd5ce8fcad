//! The files of the web console. They need no token: they say nothing about a session.

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH};
use longhaul_console::{CONTENT_SECURITY_POLICY as PAGE_POLICY, ConsoleFile, FILES};

/// A router with a route for each file.
pub(crate) fn router() -> Router {
    FILES.iter().fold(Router::new(), |router, file| {
        router.route(file.path, get(move |request: Request| async move { serve(file, &request) }))
    })
}

/// No other page keeps a handle to the window of the console, with which it could lead a person's click to a question.
const OPENER_POLICY: (HeaderName, &str) =
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
/// The console needs none of these.
const PERMISSIONS_POLICY: (HeaderName, &str) = (
    HeaderName::from_static("permissions-policy"),
    "camera=(), display-capture=(), geolocation=(), hid=(), microphone=(), midi=(), payment=(), serial=(), usb=()",
);

fn serve(file: &'static ConsoleFile, request: &Request) -> Response {
    // A browser asks each time and gets the file again only if it has changed, so an upgrade is never half there.
    let headers = [
        (ETAG, file.tag()),
        (CACHE_CONTROL, "no-cache"),
        (CONTENT_SECURITY_POLICY, PAGE_POLICY),
        OPENER_POLICY,
        PERMISSIONS_POLICY,
    ];
    let known = request.headers().get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    if known
        .is_some_and(|known| known.split(',').any(|tag| tag.trim().trim_start_matches("W/") == file.tag()))
    {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    (headers, [(CONTENT_TYPE, file.media_type)], file.bytes()).into_response()
}
