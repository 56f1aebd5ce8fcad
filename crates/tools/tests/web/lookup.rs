//! A lookup of names that can lie, and clients that use it.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use longhaul_tools::{AllowList, GuardedClient, LookupName, NetworkGuard, WebError, WebLimits, WebResponse};

/// A lookup that gives each name its answers in turn, the last one again and again, and counts.
#[derive(Default)]
pub(crate) struct LyingLookup {
    answers: HashMap<String, Vec<Vec<IpAddr>>>,
    pub(crate) lookups: AtomicUsize,
}

impl LyingLookup {
    pub(crate) fn with(mut self, name: &str, answers: &[&[&str]]) -> Self {
        let parse = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        self.answers.insert(name.to_owned(), answers.iter().map(parse).collect());
        self
    }
}

#[async_trait]
impl LookupName for LyingLookup {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let turn = self.lookups.fetch_add(1, Ordering::SeqCst);
        let answers = self.answers.get(name).ok_or_else(|| io::Error::other("no such name"))?;
        Ok(answers[turn.min(answers.len() - 1)].clone())
    }
}

/// Short times, so that a test of them is quick.
pub(crate) fn limits() -> WebLimits {
    WebLimits { connect: Duration::from_secs(2), total: Duration::from_secs(20), ..WebLimits::default() }
}

/// A client that may reach these private hosts.
pub(crate) fn client(allowed: &[&str]) -> GuardedClient {
    GuardedClient::new(guard(allowed), limits())
}

pub(crate) fn guard(allowed: &[&str]) -> NetworkGuard {
    NetworkGuard::new(AllowList::parse(allowed.iter().copied()).unwrap())
}

pub(crate) async fn get(client: &GuardedClient, url: &str) -> Result<WebResponse, WebError> {
    client.get(url, "*/*", |_| true).await
}
