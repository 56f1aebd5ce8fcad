//! The actions of a turn, as functions over the [`Worker`](crate::worker::Worker)'s interface.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `request` | the model call: context, tools, answer length; checking the context's room |
//! | `attempt` | one try at a model call: streaming the answer, checkpoints |
//! | `outcome` | recording how the attempt went: complete, empty, refused, failed |
//! | `answer_length` | an answer cut off at its maximum length, and how it continues |
//! | `size_limits` | correcting window and answer length after a server refused a request |
//! | `retry` | retry with back-off, Retry-After, giving up |
//! | `fallback` | the chain of models; falling back to the next one |
//! | `tool_calls`, `tool_result` | running calls, resuming them after a crash; recording and truncating their output |
//! | `approval`, `approval_question` | whether a call may run; the question to the user |
//! | `call_lines` | what running calls say: tasks at a server, questions to the user |
//! | `outside_run` | asking about a command that the sandbox refused, and running it once outside |
//! | `user_question` | asking the user what the agent wants to know |
//! | `full_output` | reading an output that was truncated |
//! | `budget` | what was spent today, and the limit for a day |
//! | `epoch`, `end` | the records that begin an epoch and end a turn |

mod answer_length;
mod approval;
mod approval_question;
pub(crate) mod attempt;
pub(crate) mod budget;
mod call_lines;
pub(crate) mod end;
pub(crate) mod epoch;
pub(crate) mod fallback;
pub(crate) mod full_output;
mod outcome;
mod outside_run;
pub(crate) mod request;
pub(crate) mod retry;
mod size_limits;
pub(crate) mod tool_calls;
mod tool_result;
mod user_question;
