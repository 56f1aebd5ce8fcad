//! A database and a home for one test.

use std::sync::Arc;
use std::time::Duration;

use longhaul_journal::conformance::{LEASE_EXPIRY, Place};
use longhaul_journal::{Home, Journal, Result};
use longhaul_postgres::{DatabaseAddress, PostgresJournal, PostgresOptions};
use longhaul_testkit::{PgBouncer, PostgresServer};

use crate::cutting_proxy::CuttingProxy;

pub(crate) struct TestDatabase {
    pub(crate) server: PostgresServer,
    pub(crate) name: String,
    pub(crate) home: tempfile::TempDir,
    pooler: Option<PgBouncer>,
    pub(crate) proxy: Option<CuttingProxy>,
}

impl TestDatabase {
    /// An empty database of the shared server.
    pub(crate) fn new() -> Self {
        Self::of(PostgresServer::shared())
    }

    pub(crate) fn of(server: PostgresServer) -> Self {
        let name = server.create_database();
        Self { server, name, home: tempfile::tempdir().unwrap(), pooler: None, proxy: None }
    }

    /// An empty database of a server of its own, behind a proxy that loses answers.
    pub(crate) fn behind_proxy() -> Self {
        Self::of(PostgresServer::alone()).with_proxy()
    }

    /// The same behind a proxy.
    pub(crate) fn with_proxy(mut self) -> Self {
        self.proxy = Some(CuttingProxy::start(&self.server));
        self
    }

    /// The same behind PgBouncer.
    pub(crate) fn behind_pooler(pool_mode: &str) -> Self {
        let mut database = Self::new();
        database.pooler = Some(PgBouncer::start(&database.server, pool_mode));
        database
    }

    pub(crate) fn url(&self) -> String {
        if let Some(proxy) = &self.proxy {
            return proxy.url(&self.name);
        }
        match &self.pooler {
            Some(pooler) => pooler.url(&self.name),
            None => self.server.url(&self.name),
        }
    }

    pub(crate) fn home(&self) -> Home {
        Home::create(self.home.path()).unwrap()
    }

    pub(crate) async fn open_with(&self, options: PostgresOptions) -> Result<PostgresJournal> {
        PostgresJournal::open_with(&DatabaseAddress::parse(&self.url())?, &self.home(), options).await
    }

    pub(crate) async fn try_open(&self) -> Result<PostgresJournal> {
        self.open_with(PostgresOptions::default()).await
    }

    async fn open_expiring_after(&self, lease_expiry: Duration) -> Arc<dyn Journal> {
        Arc::new(
            self.open_with(PostgresOptions { lease_expiry, ..PostgresOptions::default() }).await.unwrap(),
        )
    }

    /// What a statement prints.
    pub(crate) fn sql(&self, sql: &str) -> String {
        self.server.sql(&self.name, sql)
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        // The journal of the test may still be connected.
        self.server.sql("postgres", &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
    }
}

impl Place for TestDatabase {
    async fn open(&self) -> Arc<dyn Journal> {
        self.open_expiring_after(Duration::from_secs(3_600)).await
    }

    async fn open_expiring(&self) -> Arc<dyn Journal> {
        self.open_expiring_after(LEASE_EXPIRY).await
    }
}
