//! The tasks of a home, for people and programs: which there are, how they are doing, and what they have printed. Works
//! from any process, also while no runtime runs.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `registry` | which tasks there are, by the records, and their condition, by their keepers |
//! | `report` | a task as programs see it |
//! | `output_reader` | reads the output of a task, now and while more comes |
//! | `output_filter` | removes secrets, and for terminals control characters |

mod output_filter;
mod output_reader;
mod registry;
mod report;

use std::panic::resume_unwind;

pub use output_filter::{Audience, OutputFilter};
pub use output_reader::{OutputChunk, OutputReader, OutputStream, TaskOutput};
pub use registry::{TaskCondition, TaskEntry, TaskRegistry, left_behind};
pub use report::TaskReport;

use crate::{Error, Result};

/// Runs work that may block on a thread of its own.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done),
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The process is about to end.
            Err(_) => Err(Error::Suspended),
        },
    }
}
