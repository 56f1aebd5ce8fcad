//! Whether the server works: for load balancers and monitoring.

use hyper::{Method, StatusCode};

use crate::access::Access;
use crate::route::{PLAIN_TEXT, Route};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(Method::GET, "/healthz", Access::Open, "Whether the process answers", healthz)
            .answers_raw(PLAIN_TEXT, "It does."),
    ]
}

async fn healthz() -> (StatusCode, &'static str) {
    (StatusCode::OK, "ok\n")
}
