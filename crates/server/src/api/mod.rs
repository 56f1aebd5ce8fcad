//! The API for programs, under `/api`.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `sessions` | sessions: list, create, change, delete |

mod sessions;

use crate::route::Route;

pub(crate) fn routes() -> Vec<Route> {
    [sessions::routes()].into_iter().flatten().collect()
}
