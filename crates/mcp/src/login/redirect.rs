//! The address on this machine to which the browser comes back after a login.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::{Error, Result};

const PATH: &str = "/callback";
const MAX_REQUEST_BYTES: usize = 16 << 10;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Listens on loopback for the one request that ends a login.
pub(crate) struct RedirectListener {
    listener: TcpListener,
    port: u16,
}

impl RedirectListener {
    pub(crate) async fn bind() -> Result<Self> {
        let failed = |error: std::io::Error| Error::NotStarted(format!("can't listen on loopback: {error}"));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Self { listener, port })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// The address that the browser asks for, with everything in its query. Requests without this `state` are not ours: any page in
    /// the browser can make one.
    pub(crate) async fn wait(&self, state: &str) -> Result<String> {
        loop {
            let accepted = self.listener.accept().await;
            let (mut stream, _) =
                accepted.map_err(|error| Error::NotStarted(format!("can't listen on loopback: {error}")))?;
            let read = tokio::time::timeout(REQUEST_TIMEOUT, read_target(&mut stream)).await;
            let target = read.ok().flatten().filter(|target| target.starts_with(&format!("{PATH}?")));
            let url = target.and_then(|target| {
                reqwest::Url::parse(&format!("http://127.0.0.1:{}{target}", self.port)).ok()
            });
            let is_ours = url.as_ref().is_some_and(|url| query_value(url, "state").as_deref() == Some(state));
            let (status, text) = match is_ours {
                true => ("200 OK", "You can close this page and go back to the terminal."),
                false => ("404 Not Found", "Nothing here."),
            };
            let answer = format!(
                "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
                text.len()
            );
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
            if let Some(url) = url.filter(|_| is_ours) {
                return Ok(url.into());
            }
        }
    }
}

pub(crate) fn query_value(url: &reqwest::Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// The target of a GET request.
async fn read_target(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|window| window == b"\r\n\r\n") {
        let mut chunk = [0; 2048];
        let count = stream.read(&mut chunk).await.ok()?;
        bytes.extend_from_slice(&chunk[..count]);
        if count == 0 || bytes.len() > MAX_REQUEST_BYTES {
            return None;
        }
    }
    let text = String::from_utf8(bytes).ok()?;
    let mut words = text.lines().next()?.split(' ');
    (words.next()? == "GET").then_some(())?;
    words.next().map(str::to_owned)
}
