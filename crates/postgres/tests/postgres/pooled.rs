//! J9, N3: the same suite through PgBouncer in transaction mode, which gives each transaction to another connection.

use crate::database::TestDatabase;

longhaul_journal::conformance_tests! { TestDatabase::behind_pooler("transaction") }
