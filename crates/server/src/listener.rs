//! Connections: accepting them, bounding them, and ending them.

use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// How long a client may take to send the headers of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long requests may take to end once the server stops. Event streams end at once.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
/// The wait after a connection could not be accepted, for example because there are too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Serves connections until `stop` becomes true, then lets open requests end.
pub(crate) async fn serve(listener: TcpListener, router: Router, mut stop: watch::Receiver<bool>) {
    let connections = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stopped| *stopped) => break,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(router.clone());
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let connection = connections.watch(connection);
        // A client that breaks off is no failure of the server.
        tokio::spawn(async move { drop(connection.await) });
    }
    drop(listener);
    let _ = tokio::time::timeout(SHUTDOWN_GRACE, connections.shutdown()).await;
}
