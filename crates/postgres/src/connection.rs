//! Connections to the database, and what is sent over them.
//!
//! Every statement is parsed, bound and run in one message without a name. So a pooler may give each transaction to another
//! connection of its own, and requests of many tasks are pipelined over one connection.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use longhaul_journal::{Error, Result};
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, NoTls, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::address::DatabaseAddress;
use crate::failure::{failure, unreachable, unusable};

/// How long the server may take to answer a short statement. Then the connection counts as broken.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// A parameter of a statement.
pub(crate) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// An error of a statement.
#[derive(Debug)]
pub(crate) enum StatementError {
    /// The server refused it, and nothing has changed.
    Refused(tokio_postgres::Error),
    /// There was no answer. Whether it took effect is unknown.
    Unanswered(Error),
}

impl StatementError {
    pub(crate) fn into_error(self, address: &DatabaseAddress) -> Error {
        match self {
            Self::Refused(error) => failure(address, &error),
            Self::Unanswered(error) => error,
        }
    }
}

/// One connection. It is closed when it is dropped.
pub(crate) struct Connection {
    client: Client,
    driver: JoinHandle<()>,
    is_broken: AtomicBool,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    pub(crate) async fn open(address: &DatabaseAddress) -> Result<Self> {
        Self::open_with(address, None).await
    }

    /// A connection that passes on the payloads of notifications.
    pub(crate) async fn open_listening(
        address: &DatabaseAddress,
        notifications: UnboundedSender<String>,
    ) -> Result<Self> {
        Self::open_with(address, Some(notifications)).await
    }

    async fn open_with(
        address: &DatabaseAddress,
        notifications: Option<UnboundedSender<String>>,
    ) -> Result<Self> {
        let config = &address.config;
        let said = |error: tokio_postgres::Error| failure(address, &error);
        let opening = async {
            if config.get_ssl_mode() == SslMode::Disable {
                let (client, connection) = config.connect(NoTls).await.map_err(said)?;
                return Ok((client, tokio::spawn(drive(connection, notifications))));
            }
            let tls = MakeRustlsConnect::new(tls_config(address)?);
            let (client, connection) = config.connect(tls).await.map_err(said)?;
            Ok((client, tokio::spawn(drive(connection, notifications))))
        };
        let (client, driver) = tokio::time::timeout(ANSWER_TIMEOUT, opening)
            .await
            .map_err(|_| unreachable(address, "the server does not answer"))??;
        Ok(Self { client, driver, is_broken: AtomicBool::new(false) })
    }

    pub(crate) fn is_usable(&self) -> bool {
        !self.client.is_closed() && !self.is_broken.load(Ordering::Relaxed)
    }

    /// Runs a statement. After `limit` without an answer the connection is given up.
    pub(crate) async fn query(
        &self,
        address: &DatabaseAddress,
        sql: &str,
        parameters: &[Parameter<'_>],
        limit: Duration,
    ) -> std::result::Result<Vec<Row>, StatementError> {
        let running = self.client.query_typed(sql, parameters);
        let Ok(answer) = tokio::time::timeout(limit, running).await else {
            self.is_broken.store(true, Ordering::Relaxed);
            let reason = format!("no answer for {} s", limit.as_secs());
            return Err(StatementError::Unanswered(unreachable(address, reason)));
        };
        answer.map_err(|error| match error.as_db_error() {
            // The server ends the connection: the statement may have been committed before.
            Some(answer) if answer.severity() == "FATAL" || answer.severity() == "PANIC" => {
                self.is_broken.store(true, Ordering::Relaxed);
                StatementError::Unanswered(failure(address, &error))
            }
            Some(_) => StatementError::Refused(error),
            None if error.is_closed() || !self.is_usable() || has_io_cause(&error) => {
                self.is_broken.store(true, Ordering::Relaxed);
                StatementError::Unanswered(failure(address, &error))
            }
            None => StatementError::Refused(error),
        })
    }

    /// Runs statements without parameters, as one script.
    pub(crate) async fn run_script(&self, address: &DatabaseAddress, sql: &str) -> Result<()> {
        self.client.batch_execute(sql).await.map_err(|error| failure(address, &error))
    }
}

/// Carries the bytes of a connection until it is closed.
async fn drive<S, T>(
    mut connection: tokio_postgres::Connection<S, T>,
    notifications: Option<UnboundedSender<String>>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let (AsyncMessage::Notification(notification), Some(sender)) = (message, &notifications) {
            // An error means that nothing listens any more.
            let _ = sender.send(notification.payload().to_owned());
        }
    }
}

fn has_io_cause(error: &tokio_postgres::Error) -> bool {
    std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<std::io::Error>)
}

fn tls_config(address: &DatabaseAddress) -> Result<ClientConfig> {
    let wrong =
        |reason: String| unusable(address, reason, "check sslrootcert, or the certificates of this machine");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(error.to_string()))?;
    let Some(file) = &address.root_certificate else {
        let verified = builder.with_platform_verifier().map_err(|error| wrong(error.to_string()))?;
        return Ok(verified.with_no_client_auth());
    };
    let unreadable =
        |reason: String| wrong(format!("can't use the certificates in {}: {reason}", file.display()));
    let mut roots = rustls::RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(file).map_err(|error| unreadable(error.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unreadable(error.to_string()))?;
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Connections that many tasks share. They are opened when they are needed, and opened again after they broke.
pub(crate) struct Connections {
    slots: Vec<Slot>,
    closed: OnceLock<()>,
}

#[derive(Default)]
struct Slot {
    connection: Mutex<Option<Arc<Connection>>>,
    /// Statements that were sent over it and are not answered yet.
    waiting: AtomicUsize,
}

/// Counts a statement until it is answered, or until its caller drops the future.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn count(counter: &'a AtomicUsize) -> Self {
        counter.fetch_add(1, Ordering::Relaxed);
        Self(counter)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Connections {
    /// At most `most` connections.
    pub(crate) fn new(most: usize) -> Self {
        Self { slots: (0..most).map(|_| Slot::default()).collect(), closed: OnceLock::new() }
    }

    /// Runs a statement over the connection with the fewest waiting ones.
    pub(crate) async fn query(
        &self,
        address: &DatabaseAddress,
        sql: &str,
        parameters: &[Parameter<'_>],
        limit: Duration,
    ) -> std::result::Result<Vec<Row>, StatementError> {
        let least_busy = self.slots.iter().min_by_key(|slot| slot.waiting.load(Ordering::Relaxed));
        let Some(slot) = least_busy else { return Err(StatementError::Unanswered(Error::Closed)) };
        let _waiting = Waiting::count(&slot.waiting);
        let connection = self.connection(slot, address).await.map_err(StatementError::Unanswered)?;
        connection.query(address, sql, parameters, limit).await
    }

    async fn connection(&self, slot: &Slot, address: &DatabaseAddress) -> Result<Arc<Connection>> {
        let mut current = slot.connection.lock().await;
        if self.closed.get().is_some() {
            return Err(Error::Closed);
        }
        match &*current {
            Some(connection) if connection.is_usable() => Ok(Arc::clone(connection)),
            _ => {
                let opened = Arc::new(Connection::open(address).await?);
                *current = Some(Arc::clone(&opened));
                Ok(opened)
            }
        }
    }

    /// Closes every connection. Later statements get `Closed`. Statements under way are finished.
    pub(crate) async fn close(&self) {
        let _ = self.closed.set(());
        for slot in &self.slots {
            drop(slot.connection.lock().await.take());
        }
    }
}
