//! What model calls cost: one ledger for all sessions of a home, in the stream `spend/home`.
//!
//! A call is reserved before it is made, at the most that it can use, and settled afterwards at what it used. All limits
//! are folds of this one stream, and a reservation is appended with the head that it was decided on. So two processes
//! can't both take the last cent.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `amount`, `limits` | tokens, money and periods; the limits of the config. Pure |
//! | `fold` | what the records add up to. Pure |
//! | `decision` | whether a call fits: yes, with less room, later, after a question, no. Pure |
//! | `settlement` | what a call is settled at. Pure |
//! | `reader` | reading the ledger from its newest opening, and back through its segments |
//! | `ledger`, `writer` | the handle of a runtime; the task that puts the records of all its sessions into one append |
//! | `recovery` | settling the calls of processes that died |
//! | `backfill` | calls that only the sessions know: from before the ledger, or lost by a crash |
//! | `statement` | what was spent, and on what; what is left of each limit |
//!
//! Where no limit is set, no call and no end of a turn waits for the ledger: reservations and settlements are appended in
//! the background. Only the records of memory's calls, which no one waits for, are written after it. So a crash may leave
//! a call in its session that the ledger does not know. Each statement, each first limit of a process and each opening
//! looks for such calls in the sessions that have changed since the last look.
//!
//! | a crash after | is on disk | next time |
//! | --- | --- | --- |
//! | the decision, before the append | nothing | nothing: the call was not made |
//! | an append that fails | perhaps everything | the ledger is read first: what is on disk is granted, refused and settled as recorded, once |
//! | `spend_reserved` | the bound, and who holds it | the holder is dead: settled at the bound, once, and marked so |
//! | the call, before the session's `usage` | the same | the same: what the call cost is not known |
//! | the session's `usage`, before `spend_settled` | the bound; what the call used | settled at that, once |
//! | `spend_settled` | everything | nothing |
//! | the session's `usage`, before `spend_reserved` (no limits) | what the call used | reserved and settled at that, once |
//! | the call, before both (no limits) | nothing | nothing: no one knows of the call |
//! | such a call's reservation and settlement: one append | everything | nothing |
//! | `spend_opened` | the totals so far | the fold begins there |
//! | reading the usage from before the ledger | nothing | it is read again |
//! | `spend_opened` with that usage: one append | all of it | it is never read again |
//! | a yes to passing a soft limit, before the `spend_reserved` with its name | the answer, in the session | its turn is resumed, and reserves with it |
//! | that `spend_reserved`, before the question of another session is withdrawn | the soft limit is passed | that session asks no more: its question is withdrawn |
//! | a no to passing a soft limit, before `spend_refused` | the answer, in the session | its turn is resumed, and records it |
//! | `spend_refused`, before the end of the turn | both | the turn ends; recorded again, which changes nothing |
//!
//! Never: a call that is counted twice or not at all; a reservation that ends because time has passed; a limit that two
//! calls pass together.

pub(crate) mod amount;
mod backfill;
pub(crate) mod decision;
mod fold;
pub(crate) mod ledger;
pub(crate) mod limits;
mod reader;
mod recovery;
mod settlement;
mod statement;
mod writer;

pub(crate) use amount::nano;
pub(crate) use decision::{AtSoftLimit, CallBound, Urgency, Verdict, WantedCall};
pub use decision::{LimitReached, SoftLimits};
pub(crate) use ledger::{NewCall, Reservation, ReserveOutcome, SpendLedger};
pub(crate) use limits::{LimitKind, ScopedTurn, SpendLimits};
pub(crate) use reader::load_fold;
pub use statement::{
    LimitStatus, Statement, StatementBy, StatementItem, StatementQuery, limit_status, statement,
    statement_since,
};
