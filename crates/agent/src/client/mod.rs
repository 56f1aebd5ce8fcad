//! One handle to a session, the same wherever the session runs: send, follow, cancel, answer.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `session`, `detached` | [`Session`](session::Session), the handle; [`Client`](detached::Client), which makes handles without a runtime |
//! | `creation`, `accepted` | creating a session before its first input; what a client gets for an input or order |
//! | `request` | what a client can ask for, and the pending request with its events and outcome |
//! | `local` | a request that the worker of this process carries out |
//! | `remote` | a request that another process carries out: inbox in, records out |
//! | `cancel`, `questions` | ending a turn, answering a question, from any process |
//! | `useless_order` | orders that have nothing to do |
//! | `question_index` | the open questions of all sessions |
//! | `events` | everything that happens in a session, for a program that shows it |
//! | `recorded_events` | the events of a range of records |
//! | `follow` | every record of a session, and live events from the process that runs it |
//! | `watch` | events of the sessions that this process runs |
//! | `turn_steps` | one turn as typed steps, for a client that asked for it |
//! | `call_output` | the whole output of a call |
//! | `session_title` | the first input of a session, for lists |
//! | `overview` | what a session is doing, for lists of many sessions |
//! | `status`, `context_report` | the present state of a session; how full its context is |

pub(crate) mod accepted;
pub(crate) mod call_output;
pub(crate) mod cancel;
pub(crate) mod context_report;
pub(crate) mod creation;
pub(crate) mod detached;
pub(crate) mod events;
pub(crate) mod follow;
pub(crate) mod local;
pub(crate) mod overview;
pub(crate) mod question_index;
pub(crate) mod questions;
pub(crate) mod recorded_events;
pub(crate) mod remote;
pub(crate) mod request;
pub(crate) mod session;
pub(crate) mod session_title;
pub(crate) mod status;
pub(crate) mod turn_steps;
pub(crate) mod useless_order;
pub(crate) mod watch;
