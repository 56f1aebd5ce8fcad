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
//! | `tasks`, `task_output` | tasks of all sessions; what they have printed |
//! | `memory` | the pages of memory: list, read, search, change, undo |
//! | `questions` | questions of all sessions that wait for a person |
//! | `models` | providers and models |
//! | `statement` | what was spent, and on what |
//! | `installation` | status, config and checks of this installation |
//! | `list`, `path` | lists in pages; parameters in paths |
//! | `named_session` | the session that a path names |

mod events;
pub(crate) mod inputs;
mod installation;
mod list;
mod memory;
mod models;
mod named_session;
mod orders;
mod path;
mod questions;
mod records;
mod session_status;
pub(crate) mod session_summary;
pub(crate) mod sessions;
mod statement;
mod task_output;
mod tasks;
mod transcript;
mod transfer;

use crate::route::Route;

pub(crate) fn routes() -> Vec<Route> {
    [
        sessions::routes(),
        session_status::routes(),
        inputs::routes(),
        orders::routes(),
        events::routes(),
        records::routes(),
        transcript::routes(),
        transfer::routes(),
        tasks::routes(),
        task_output::routes(),
        memory::routes(),
        questions::routes(),
        models::routes(),
        statement::routes(),
        installation::routes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
