//! The SQLite engine keeps every promise of the suite. Each test has a home of its own.

use std::sync::Arc;
use std::time::Duration;

use longhaul_journal::conformance::{LEASE_EXPIRY, Place};
use longhaul_journal::{Home, Journal, SqliteJournal, SqliteOptions};

struct SqliteHome(tempfile::TempDir);

impl SqliteHome {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

impl SqliteHome {
    async fn open_with(&self, lease_expiry: Duration) -> Arc<dyn Journal> {
        let home = Home::create(self.0.path()).unwrap();
        let options = SqliteOptions { lease_expiry, ..SqliteOptions::default() };
        Arc::new(SqliteJournal::open_with(&home, options).await.unwrap())
    }
}

impl Place for SqliteHome {
    async fn open(&self) -> Arc<dyn Journal> {
        self.open_with(Duration::from_secs(3_600)).await
    }

    async fn open_expiring(&self) -> Arc<dyn Journal> {
        self.open_with(LEASE_EXPIRY).await
    }
}

longhaul_journal::conformance_tests! { SqliteHome::new() }
