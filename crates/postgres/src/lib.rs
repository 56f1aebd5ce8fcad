//! The journal on PostgreSQL: the same promises as the default engine, for sessions that run on several machines.
//!
//! # What this crate promises
//!
//! Everything that `longhaul-journal` promises of an engine: it passes the same suite. Beyond that:
//!
//! - **An append is one statement.** It checks the head and the lease and inserts the records; a writer that was replaced can't come
//!   in between. An append whose answer is lost is settled by its own hash: committed once or not at all.
//! - **One clock.** Leases and the times of records follow the clock of the database.
//! - **Nothing depends on a notification.** NOTIFY is sent after the commit and may be lost.
//! - **A pooler may stand between**, in session or transaction mode: no statement has a name, and no setting belongs to a connection.
//! - **Passwords are never shown.** [`DatabaseAddress`] leaves them out, and errors name the database by it.
//!
//! # How it is built
//!
//! A stream is a row of `stream` with its head and its lease; its records are rows of `record`, partitioned by the stream's number.
//! The function `append` updates the row *if* head and token are as expected, and inserts; the row's lock orders the writers of that
//! stream, and no other order is promised: nothing reads a global sequence. Hashes are made by the client, which remembers the
//! heads of the streams that it writes; a head that moved comes back with the answer, and costs one more round trip.
//!
//! Appends of many sessions are pipelined over a few connections, each a transaction of its own, so that a conflict costs only itself
//! and the server groups their commits. Blobs are rows, counted by `blob_use` and locked by the append that refers to them. Search
//! is the index of the default engine, a file of each machine that is fed by its cursors. A backup is a file of the default engine.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `engine` | [`PostgresJournal`], which implements the trait with the modules below |
//! | `address`, `failure` | the URL and the password file; errors of the database as the journal's |
//! | `connection`, `database` | connections that many tasks share; statements over them |
//! | `schema` | what a database must be, its tables and functions (`schema/*.sql`) |
//! | `append`, `adopt` | appends, with the table of what happens when a connection breaks; records that keep their hashes |
//! | `lease`, `erase`, `rows` | leases; erasing and removing; reads |
//! | `lease_clock` | until when this process is certain to hold a lease |
//! | `node` | the nodes that share the database: heartbeats, what is due, where a session may run |
//! | `node_link` | wakes and live events directly from node to node |
//! | `notification` | wakes between machines, through the database |
//! | `search` | the search index of this machine |
//! | `snapshot`, `verify`, `backup` | a snapshot of the whole journal; verification and backups of it |
//!
//! # Example
//!
//! ```no_run
//! use longhaul_journal::{Home, Journal};
//! use longhaul_postgres::{DatabaseAddress, PostgresJournal};
//!
//! # async fn example() -> longhaul_journal::Result<()> {
//! let address = DatabaseAddress::parse("postgres://longhaul@db.example/longhaul")?;
//! let journal = PostgresJournal::open(&address, &Home::create("/var/lib/longhaul".as_ref())?).await?;
//! println!("{} streams in {address}", journal.streams().await?.len());
//! # Ok(()) }
//! ```

mod address;
mod adopt;
mod append;
mod backup;
mod connection;
mod database;
mod engine;
mod erase;
mod failure;
mod lease;
mod lease_clock;
mod node;
mod node_link;
mod notification;
mod rows;
mod schema;
mod search;
mod snapshot;
mod verify;

pub use address::DatabaseAddress;
pub use engine::{PostgresJournal, PostgresOptions};
pub use node::NodeOptions;
pub use node_link::{NodeLink, NodeLinkError};
