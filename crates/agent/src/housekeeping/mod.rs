//! What a runtime does while no turn waits for it.

pub(crate) mod cleanup;
pub(crate) mod idle;
pub(crate) mod remove_tree;
pub(crate) mod retention;
