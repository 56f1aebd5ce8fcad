//! For tests only: homes, a journal that can be made to crash and to refuse, models that wait, a model server that fails as it is
//! told, and checks that hold for every session whatever happened to it.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `place` | a home and a work folder that clean up after themselves |
//! | `journal` | a real journal with a fault in front of it |
//! | `model` | models that wait at a gate, and that remember what they were asked |
//! | `terminal`, `emulated`, `picture` | a program in a terminal of its own; what somebody sees there, and as a picture |
//! | `chance` | random numbers with a seed that is printed |
//! | `watching` | a watcher that collects events |
//! | `invariants` | what must hold for the records of any session |
//! | [`wire`] | a model server, and a transport, that do what they are told, byte for byte |

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a test that can't go on should stop")]

mod chance;
mod emulated;
mod invariants;
mod journal;
mod model;
mod picture;
mod place;
mod terminal;
mod watching;
pub mod wire;

pub use chance::Chance;
pub use emulated::Emulated;
pub use invariants::{broken_rules, of_newest_epoch, records_of};
pub use journal::{Crash, FaultyJournal, When};
pub use model::{Gate, Gated, Recording};
pub use place::{Place, TaskProcesses};
pub use terminal::Terminal;
pub use watching::{collect_until, ended_turn};
