//! Logins at HTTP servers (OAuth): what is kept of one, how it is renewed, and how the user gives it.
//!
//! A runtime never logs in by itself. A server that refuses a request without a login, or without more rights, costs its own
//! tools, and says so; `longhaul mcp login NAME` is how the user gives it. What the protocol of the login needs (discovery, PKCE,
//! registration, the exchange of the code, renewal) is rmcp's; where it may reach, what is kept, and what is hidden is decided here.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `store` | the file with a login, private to the user, and its lock |
//! | `access` | the tokens of a connection, from the file |
//! | `flow` | `longhaul mcp login`: from the address for the browser to the token |
//! | `redirect` | the address on this machine to which the browser comes back |
//! | `guarded_http` | the requests of all of this: only to where web pages may be fetched from |
//!
//! | a crash | on the next start |
//! | --- | --- |
//! | before the code is exchanged | the server needs a login, as before |
//! | after the exchange, before the file is written | the token is lost at the server's side only; the server needs a login |
//! | while a token is renewed, before the file is written | if the server takes each renewal token once, it needs a login |
//! | after the file is written | the token is used |

mod access;
mod flow;
mod guarded_http;
mod redirect;
mod store;

pub(crate) use access::{Challenge, LoginAccess, find_challenge};
pub use flow::Login;
pub(crate) use store::LoginStore;
pub use store::{LoginState, stored_secrets};
