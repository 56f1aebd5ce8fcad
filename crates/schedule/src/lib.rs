//! When a schedule is due, and what is done about each of its slots. Pure: no clock, no async, and no I/O but the zones of the system.
//!
//! A *slot* is a moment that a schedule names: 07:00 on a weekday, or every half hour. Slots belong to the schedule's zone and are
//! enumerated from a cursor, never from "now minus an interval", so that an outage, a restart or a jump of the clock neither loses nor
//! repeats one.
//!
//! # What this crate promises
//!
//! - **Each slot is decided once.** [`decide`] looks at the slots after the cursor that are due, and says what is done about each:
//!   fire, skip or missed. Neighbouring slots with the same decision are one range, so a year of minutes costs one record.
//! - **Daylight saving as Vixie cron does it** (W2). A job at a fixed time that the clock jumps over runs at the end of the gap, and runs
//!   once where the clock repeats an hour. A job with `*` or a step in minute or hour runs by the clock on the wall.
//! - **Mistakes are found when a schedule is made.** A cron line that never fires, an unknown zone or a duration without a unit is an
//!   [`Error`] that says what to write instead.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `interval` | durations as people write them: `90s`, `30m`, `2h`, `1d` |
//! | `slots` | the slots of a cron line, an interval or a single time; the next one, the last one |
//! | `timing` | a spec, parsed and checked |
//! | `decision` | which slots fire, are skipped or missed, and what to wait for next |
//!
//! # Example
//!
//! ```
//! use longhaul_protocol::{At, ScheduleSpec, SlotAction};
//! use longhaul_schedule::{Moment, Timing, Wait, decide};
//!
//! let spec = ScheduleSpec { every: Some("30m".into()), ..ScheduleSpec::new("look", "What is new?") };
//! let timing = Timing::parse("look", &spec, At(0))?;
//! let half_hour = 30 * 60 * 1000;
//!
//! let plan = decide(&timing, At(0), Moment::idle(At(half_hour)));
//!
//! assert_eq!((plan.decisions[0].slot, plan.decisions[0].action), (At(half_hour), SlotAction::Fire));
//! assert_eq!(plan.wait, Wait::Until(At(2 * half_hour)));
//! # Ok::<(), longhaul_schedule::Error>(())
//! ```

mod decision;
mod error;
mod interval;
mod slots;
mod timing;

pub use decision::{Decision, Moment, ON_TIME, Plan, Wait, decide};
pub use error::Error;
pub use interval::Interval;
pub use slots::Slots;
pub use timing::{MAX_PROMPT_BYTES, Timing, check_name, format_slot, input_key, parse_time, run_session_key};
