//! The real binary against servers that are not ours: a judge of a client's manners, a scripted server of four wire formats,
//! a small real model, and the package that knows prices. `scripts/peers` installs them, `scripts/test` runs this.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod client_behaviour;
mod desk;
mod prices;
mod scenarios;
mod servers;
mod small_model;
