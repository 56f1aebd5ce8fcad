//! The API for programs, under `/api`.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `sessions` | sessions: list, create, change, delete |
//! | `session_summary`, `session_status` | a session in a list; the status of one |
//! | `inputs`, `orders` | inputs; cancel, retry, answers and the like |
//! | `events` | event streams of one session and of all |
//! | `records`, `transcript` | what a session has recorded, and what it looks like to people |
//! | `recorded_blocks`, `fold_starts` | blocks from a span of records; where a fold of them may begin |
//! | `figures`, `timeline` | context and spend of a session, for charts; where the time of a turn went |
//! | `transfer` | export and import |
//! | `tasks`, `task_output` | tasks of all sessions; what they have printed |
//! | `agents` | subagents: the trees of all sessions |
//! | `memory` | the pages of memory: list, read, search, change, undo |
//! | `questions` | questions of all sessions that wait for a person |
//! | `models` | providers and models |
//! | `schedules` | schedules: list, make, change, pause, resume, run, delete |
//! | `statement` | what was spent, and on what |
//! | `installation` | status, config and checks of this installation |
//! | `nodes` | the machines that share the journal |
//! | `list`, `path` | lists in pages; parameters in paths |
//! | `named_session` | the session that a path names |

mod agents;
mod events;
mod figures;
pub(crate) mod fold_starts;
mod fork_content;
pub(crate) mod inputs;
mod installation;
mod list;
mod mcp;
mod memory;
pub(crate) mod models;
mod named_session;
mod nodes;
pub(crate) mod orders;
mod path;
mod questions;
pub(crate) mod recorded_blocks;
mod records;
mod schedules;
mod session_status;
pub(crate) mod session_summary;
pub(crate) mod sessions;
mod statement;
mod task_output;
mod tasks;
mod timeline;
mod transcript;
mod transfer;

pub(crate) use transfer::remove_abandoned_transfers;

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
        figures::routes(),
        timeline::routes(),
        transfer::routes(),
        tasks::routes(),
        agents::routes(),
        task_output::routes(),
        memory::routes(),
        mcp::routes(),
        questions::routes(),
        models::routes(),
        schedules::routes(),
        statement::routes(),
        installation::routes(),
        nodes::routes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
