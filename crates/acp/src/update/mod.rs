//! From what happens in a session to what an editor shows. Everything here is pure.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `fold` | records and live events become updates, the same for the past and for what happens now |
//! | `streamed_text` | which text of an answer the editor has, and whether it counts |
//! | `tool_call` | calls: kind, title, locations, diff, output |

pub(crate) mod fold;
mod streamed_text;
pub(crate) mod tool_call;
