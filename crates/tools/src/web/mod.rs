//! P5: every page and search goes through one guarded client.
//!
//! The model chooses addresses, and so does a page that it reads. Neither may reach this machine, its network, or the metadata service of a
//! cloud. So:
//!
//! - **The address that was checked is the one that is connected.** [`NetworkGuard`] is the resolver of the HTTP client: it looks a name up
//!   once and hands on only allowed addresses. Addresses in the URL itself are checked in the form into which the URL parser brings every
//!   spelling of them.
//! - **Every hop is checked.** The HTTP client follows no redirect by itself; [`GuardedClient`] follows them, each through the same checks.
//! - **No proxy of the environment** is used, because a proxy resolves names itself. One that the user configures (`web.proxy`) is.
//! - **Nothing of the user goes along**: no cookies, no keys, no referrer, no credentials in the URL.
//! - **Everything is bounded**: redirects, time, and the bytes of a body before and after decompression.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `address` | which addresses are public |
//! | `allow_list` | the private hosts that the user allows |
//! | `guard` | the checks of a URL and of the addresses of a name |
//! | `client` | requests and redirects |
//! | `body` | reading a body within its limits |
//! | `fetch`, `page` | `web_fetch`; a page as Markdown |
//! | `page_tree`, `page_table` | the tree of a page, within bounds; its tables |
//! | `search` | `web_search`, and the searchers that it can ask |
//!
//! # For other clients
//!
//! A client of a service that the user configured may reach that service, wherever it is, and nothing else that is private:
//! [`NetworkGuard::with_configured`]. Use [`GuardedClient::request`] for each request; addresses that the service names (redirects, metadata,
//! icons) then go through the same checks.

mod address;
mod allow_list;
mod body;
mod client;
mod error;
pub(crate) mod fetch;
mod guard;
mod page;
mod page_table;
mod page_tree;
pub(crate) mod search;

pub use allow_list::{AllowList, InvalidAllowedHost};
pub use client::{GuardedClient, WebLimits, WebResponse};
pub use error::WebError;
pub use fetch::web_fetch_tool;
pub use guard::{LookupName, NetworkGuard, SystemLookup};
pub use search::{
    HostedAnswer, HostedSearch, SearchService, SearcherConfig, hosted_search_tool, web_search_tool,
};
