//! Pages of memory, with the real journal: what people do to them, what the machine does, and their files.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod changing;
mod consolidating;
mod diligent;
mod mirroring;
mod mishaps;
