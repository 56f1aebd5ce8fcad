//! Databases that can't be used: one line that names the database, what is wrong and what to do, and nothing changed.

use longhaul_journal::{Error, Journal};
use longhaul_postgres::{DatabaseAddress, PostgresJournal, PostgresOptions};
use longhaul_testkit::PostgresServer;

use crate::database::TestDatabase;

/// The one line with which a database is refused.
async fn refusal(database: &TestDatabase, url: &str) -> String {
    let opened = PostgresJournal::open(&DatabaseAddress::parse(url).unwrap(), &database.home()).await;
    let Err(error @ Error::Database { .. }) = opened else { panic!("{:?}", opened.err()) };
    let line = error.to_string();
    assert!(!line.contains('\n'), "{line}");
    line
}

fn has_journal(database: &TestDatabase) -> bool {
    database.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'longhaul'") == "1"
}

#[tokio::test]
async fn a_wrong_password_is_named_and_not_shown() {
    let database = TestDatabase::of(PostgresServer::with_password());
    let with = |password: &str| database.url().replacen("postgres@", &format!("postgres{password}@"), 1);

    let wrong = refusal(&database, &with(":hunter2")).await;
    let none = refusal(&database, &with("")).await;
    let right =
        PostgresJournal::open(&DatabaseAddress::parse(&with(":open%20sesame")).unwrap(), &database.home())
            .await;

    assert!(wrong.contains("the server refuses postgres") && wrong.contains("PGPASSFILE"), "{wrong}");
    assert!(!wrong.contains("hunter2"), "{wrong}");
    assert!(none.contains("asks for a password") && none.contains("journal.url_env"), "{none}");
    assert!(right.is_ok(), "{:?}", right.err());
}

#[tokio::test]
async fn a_database_of_another_program_is_left_alone() {
    let database = TestDatabase::new();
    database.sql("CREATE TABLE customers (name text)");

    let refused = refusal(&database, &database.url()).await;

    assert!(refused.contains("belongs to another program (it has a table public.customers)"), "{refused}");
    assert!(refused.contains("createdb longhaul"), "{refused}");
    assert!(!has_journal(&database));
}

#[tokio::test]
async fn a_schema_that_only_has_the_name_is_left_alone() {
    let database = TestDatabase::new();
    database.sql("CREATE SCHEMA longhaul");
    database.sql("CREATE TABLE longhaul.stream (name text)");

    let refused = refusal(&database, &database.url()).await;

    assert!(refused.contains("its schema longhaul is not a journal"), "{refused}");
    assert_eq!(database.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'longhaul'"), "1");
}

#[tokio::test]
async fn a_journal_of_a_newer_version_is_left_alone() {
    let database = TestDatabase::new();
    database.try_open().await.unwrap().close().await;
    database.sql("UPDATE longhaul.format SET format = 99");

    let refused = refusal(&database, &database.url()).await;

    assert!(refused.contains("a newer longhaul made this journal (format 99"), "{refused}");
    assert!(refused.ends_with("; update longhaul"), "{refused}");
    assert_eq!(database.sql("SELECT format FROM longhaul.format"), "99");
}

#[tokio::test]
async fn a_server_that_is_too_old_is_named_with_its_version() {
    let database = TestDatabase::new();

    let opened =
        database.open_with(PostgresOptions { oldest_server: 990_000, ..PostgresOptions::default() }).await;

    let refused = opened.err().unwrap().to_string();
    assert!(refused.contains("longhaul needs 99 or later; upgrade the server"), "{refused}");
    assert!(!has_journal(&database));
}

#[tokio::test]
async fn a_read_only_replica_is_refused_with_the_way_to_the_primary() {
    let database = TestDatabase::of(PostgresServer::alone());
    let replica = database.server.replica();

    let refused = refusal(&database, &replica.url(&database.name)).await;

    assert!(refused.contains("read-only replica") && refused.contains("target_session_attrs"), "{refused}");
    assert!(!has_journal(&database));
}

#[tokio::test]
async fn a_pooler_that_takes_transactions_apart_is_refused() {
    let database = TestDatabase::behind_pooler("statement");

    let refused = refusal(&database, &database.url()).await;

    assert!(refused.contains("does not keep a transaction together"), "{refused}");
    assert!(refused.contains("pool_mode to transaction or session"), "{refused}");
    assert!(!has_journal(&database));
}

#[tokio::test]
async fn a_database_of_another_encoding_is_refused() {
    let database = TestDatabase::new();
    let other = format!("{}_ascii", database.name);
    database
        .server
        .sql("postgres", &format!("CREATE DATABASE {other} ENCODING 'SQL_ASCII' TEMPLATE template0"));

    let refused = refusal(&database, &database.server.url(&other)).await;
    database.server.sql("postgres", &format!("DROP DATABASE {other} WITH (FORCE)"));

    assert!(refused.contains("its encoding is SQL_ASCII"), "{refused}");
}

#[tokio::test]
async fn a_server_or_a_database_that_is_not_there_is_named() {
    let database = TestDatabase::new();

    let no_database = refusal(&database, &database.server.url("nowhere")).await;
    let no_server = refusal(&database, "postgres://postgres@/x?host=/nonexistent").await;

    assert!(
        no_database.contains("there is no database \"nowhere\"; create it: `createdb nowhere`"),
        "{no_database}"
    );
    assert!(no_server.contains("can't reach it") && no_server.contains("journal.url"), "{no_server}");
}

#[tokio::test]
async fn a_user_without_rights_is_told_whose_the_database_must_be() {
    let database = TestDatabase::new();
    let user = format!("guest_{}", database.name);
    database.sql(&format!("CREATE ROLE {user} LOGIN"));
    let url = database.url().replacen("postgres@", &format!("{user}@"), 1);

    let refused = refusal(&database, &url).await;
    database.sql(&format!("DROP ROLE {user}"));

    assert!(refused.contains(&format!("{user} may not do this")), "{refused}");
    assert!(refused.contains(&format!("make {user} the owner of the database")), "{refused}");
    assert!(!has_journal(&database));
}
