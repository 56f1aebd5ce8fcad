//! What the agent may do.

mod tool;

pub use tool::{About, Call, Cap, Finished, Picture, Prepared, Resumed, Run, Stop, Stopper, Tool};
