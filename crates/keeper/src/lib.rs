//! Commands that outlive the runtime.
