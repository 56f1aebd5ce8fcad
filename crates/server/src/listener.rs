//! Connections: accepting them, bounding them, and ending them.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use crate::connection::Connection;
use crate::metrics::{GaugeGuard, Metrics};
use crate::tls::Tls;
use crate::write_timeout::WriteTimeout;

/// How long a client may take to agree on a TLS connection.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long requests may take to end once the server stops. Event streams end at once.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);
/// The wait after a connection could not be accepted, for example because there are too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);
/// The most connections. Further ones wait until the system's queue is full.
const MAX_CONNECTIONS: u64 = 16_384;
/// The files that are left for everything else: the journal, commands, model servers.
const RESERVED_FILES: u64 = 512;
/// The most headers of a request.
const MAX_HEADERS: usize = 100;
/// The most bytes of the headers of a request.
const MAX_HEADER_BYTES: usize = 64 * 1024;

/// What all connections of a listener share.
pub(crate) struct ConnectionOptions {
    pub(crate) router: Router,
    pub(crate) tls: Option<Tls>,
    pub(crate) header_timeout: Duration,
    pub(crate) write_timeout: Duration,
    pub(crate) metrics: Arc<Metrics>,
}

/// An accepted connection's place among the most that are allowed, and in the figures.
struct ConnectionGuard {
    _permit: OwnedSemaphorePermit,
    _gauge: GaugeGuard,
}

/// Serves connections until `stop` becomes true, then lets open requests end.
pub(crate) async fn serve(
    listener: TcpListener,
    options: ConnectionOptions,
    mut stop: watch::Receiver<bool>,
) {
    let connections = GracefulShutdown::new();
    let limit = Arc::new(Semaphore::new(connection_limit()));
    loop {
        let accepted = async {
            // Before the connection is accepted, so that the newest one waits in the system's queue.
            let permit = limit.clone().acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            accepted = accepted => accepted,
            _ = stop.wait_for(|stopped| *stopped) => break,
        };
        let (Ok(permit), Ok((stream, peer))) = (permit, accepted) else {
            tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            continue;
        };
        let Ok(local) = stream.local_addr() else { continue };
        let _ = stream.set_nodelay(true);
        let guard = ConnectionGuard { _permit: permit, _gauge: options.metrics.open_connection() };
        let connection = Connection::new(peer, local, options.tls.is_some());
        let (router, watcher) = (options.router.clone(), connections.watcher());
        let timeout = options.header_timeout;
        let stream = WriteTimeout::new(stream, options.write_timeout);
        match &options.tls {
            None => {
                let served = watcher.watch(http(stream, router, connection, timeout));
                // A client that breaks off is no failure of the server.
                tokio::spawn(async move { drop((served.await, guard)) });
            }
            Some(tls) => {
                let acceptor = TlsAcceptor::from(tls.0.clone());
                tokio::spawn(async move {
                    if let Some(stream) = accept_tls(acceptor, stream).await {
                        let _ = watcher.watch(http(stream, router, connection, timeout)).await;
                    }
                    drop(guard);
                });
            }
        }
    }
    drop(listener);
    let _ = tokio::time::timeout(SHUTDOWN_GRACE, connections.shutdown()).await;
}

async fn accept_tls(
    acceptor: TlsAcceptor,
    stream: WriteTimeout<TcpStream>,
) -> Option<tokio_rustls::server::TlsStream<WriteTimeout<TcpStream>>> {
    tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await.ok()?.ok()
}

/// Serves HTTP/1.1 on a connection.
fn http<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    router: Router,
    connection: Connection,
    header_timeout: Duration,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> + Send {
    let service = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(connection.clone());
        service.call(request)
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEADER_BYTES);
    builder.serve_connection(TokioIo::new(stream), service)
}

/// Raises the number of files that this process may open, as far as it may, and returns how many connections fit.
fn connection_limit() -> usize {
    let wanted = MAX_CONNECTIONS + RESERVED_FILES;
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if limit.current.is_some_and(|current| current < most) {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: limit.maximum });
    }
    let files = getrlimit(Resource::Nofile).current.unwrap_or(wanted);
    let connections = files.saturating_sub(RESERVED_FILES).clamp(files / 2, MAX_CONNECTIONS);
    usize::try_from(connections).unwrap_or(usize::MAX)
}
