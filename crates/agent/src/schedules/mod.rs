//! Schedules: turns that begin by themselves (W1–W3).
//!
//! A schedule fires by putting an input into a session's inbox, under a key made of the schedule and the slot. From there on it is a turn
//! like any other. The stream `schedule/<id>` has the decision about each slot before anything is done about it, and holds the cursor.
//!
//! | a crash | is on disk | the next process |
//! | --- | --- | --- |
//! | before `slot_decided` | nothing | decides about the slot, by its own clock and policy |
//! | after `slot_decided{fire}` | the decision, the session's id and the input's id | gives the session its key, and puts the input |
//! | after the session has its key | the decision, an empty session | puts the input |
//! | after the input is in the inbox | the decision, the input | puts it again: the key is used, so nothing is appended; then `slot_fired` |
//! | after `slot_fired` | the open run | waits for the end of the turn |
//! | after the turn has ended | the open run, `turn_ended` in the session | finds it there, and appends `slot_ended` |
//! | after the last failure that is allowed | `slot_ended` | counts the failures, and appends `schedule_paused` |
//! | after a decision not to fire | the decision | goes on with the next slot |
//!
//! Two processes never decide about the same slot: the process that hosts the home runs the schedules, it appends under the lease of
//! each schedule, and with the head that its decision rests on.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `catalog` | which schedules there are: those of the config and of the stream `schedules`, folded. Pure |
//! | `state` | a schedule's cursor, open runs and failures: its stream, folded. Pure |
//! | `work` | the next action of a schedule. Pure |
//! | `action` | carrying it out: deciding, firing, recording the end of a run |
//! | `runner` | all schedules of the home: which are due, and when the next one is |
//! | `registry` | list, add, change, pause, resume, run and delete, for people, programs and the agent |
//! | `report` | a schedule as people and programs see it |
//! | `tool` | `schedule`: the agent makes, lists and removes its own |

mod action;
mod catalog;
mod registry;
mod report;
pub(crate) mod runner;
#[cfg(test)]
#[path = "simulation_tests.rs"]
mod simulation;
mod state;
pub(crate) mod tool;
mod work;

pub use registry::Schedules;
pub(crate) use registry::SharedCatalog;
pub use report::{LastRunReport, ScheduleReport, ScheduleStatus};
