//! Event streams: what happens in a session, for any number of followers.
//!
//! A session is followed once, and each event is serialised once. Followers share the bytes. The newest events are in a
//! bounded log ([`log::EventLog`]); a client that comes back within it costs no look at the journal. One that was away for
//! longer first gets its events from the journal, a few such clients at a time.
//!
//! | a follower | gets |
//! | --- | --- |
//! | that comes without a cursor | what happens from now on, and before it the text so far of an open answer |
//! | with a cursor | every later record once, in order, whichever process wrote it and however often the server was killed |
//! | that reads too slowly | the end of the stream; it comes back with its cursor |
//! | whose session can't be read any more | a `warning` that says why, and the end; when it comes back, a problem |
//! | when the server stops | `retry: MS`, and the end of the stream |
//!
//! | module | what it holds |
//! | --- | --- |
//! | `log` | the newest events of a session, and where a follower begins |
//! | `feed` | one follower of a session for all clients |
//! | `stream` | the stream of one client |
//! | `followers` | how many streams are open |
//! | `overview` | one message for each active session, and then changes |
//! | `body` | a response body that a task writes |

pub(crate) mod body;
pub(crate) mod feed;
pub(crate) mod followers;
pub(crate) mod log;
pub(crate) mod overview;
pub(crate) mod stream;
