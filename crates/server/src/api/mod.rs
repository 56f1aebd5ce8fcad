//! The API for programs, under `/api`.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `sessions` | sessions: list, create, change, delete |
//! | `session_summary`, `session_status` | a session in a list; the status of one |
//! | `inputs`, `orders` | inputs; cancel, retry, answers and the like |
//! | `events` | event streams of one session and of all |
//! | `records`, `transcript` | what a session has recorded, and what it looks like to people |
//! | `transfer` | export and import |
//! | `named_session` | the session that a path names |

mod events;
mod inputs;
mod named_session;
mod orders;
mod records;
mod session_status;
pub(crate) mod session_summary;
mod sessions;
mod transcript;
mod transfer;

use crate::route::Route;

pub(crate) fn routes() -> Vec<Route> {
    let of_sessions = [sessions::routes(), session_status::routes(), inputs::routes(), orders::routes()];
    let of_content = [events::routes(), records::routes(), transcript::routes(), transfer::routes()];
    of_sessions.into_iter().chain(of_content).flatten().collect()
}
