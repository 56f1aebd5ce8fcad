use std::io::{Error, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::{End, ReceivedRequest, Reply, Script};

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;

/// A real HTTP server on loopback. It lives in a thread of its own, so that tests without a runtime, and tests that stop the
/// clock, can have one; it ends when it is dropped.
pub struct ModelServer {
    url: String,
    script: Script,
    abandoned: Arc<AtomicUsize>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// On any free port.
    pub fn start(script: Script) -> Self {
        Self::at(0, script)
    }

    /// On this port.
    pub fn at(port: u16, script: Script) -> Self {
        let listener = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let abandoned = Arc::new(AtomicUsize::new(0));
        let (stop, stopped) = oneshot::channel();
        let serving = serve(listener, script.clone(), Arc::clone(&abandoned));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                tokio::select! {
                    () = serving => {}
                    _ = stopped => {}
                }
            });
        });
        Self { url, script, abandoned, stop: Some(stop), thread: Some(thread) }
    }

    /// Where it is, without a path.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What was asked so far.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.script.requests()
    }

    /// How many answers a client left before their end.
    pub fn abandoned(&self) -> usize {
        self.abandoned.load(Ordering::SeqCst)
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Takes connections for ever. They end with it.
async fn serve(listener: std::net::TcpListener, script: Script, abandoned: Arc<AtomicUsize>) {
    let listener = TcpListener::from_std(listener).unwrap();
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        while connections.try_join_next().is_some() {}
        connections.spawn(converse(stream, script.clone(), Arc::clone(&abandoned)));
    }
}

/// Answers one request after the other until one of the two sides has enough.
async fn converse(mut stream: TcpStream, script: Script, abandoned: Arc<AtomicUsize>) {
    let _ = stream.set_nodelay(true);
    let mut received = Vec::new();
    loop {
        let (mut reader, mut writer) = stream.split();
        let Ok(Some(seen)) = read_request(&mut reader, &mut received).await else { return };
        let wants_to_close =
            seen.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        let reply = script.reply(seen);
        let (end, resets) = (reply.end, reply.end == End::Reset || reply.trouble.is_some());
        let finished = tokio::select! {
            biased;
            result = write_reply(&mut writer, reply, wants_to_close) => result.is_ok(),
            () = left(&mut reader, &mut received) => false,
        };
        if !finished {
            abandoned.fetch_add(1, Ordering::SeqCst);
            return;
        }
        if resets {
            let _ = stream.set_zero_linger();
            return;
        }
        if end == End::Cut || wants_to_close {
            return;
        }
    }
}

/// Returns when the client is gone. Requests that it sends ahead are kept.
async fn left(reader: &mut ReadHalf<'_>, received: &mut Vec<u8>) {
    while reader.read_buf(received).await.is_ok_and(|count| count > 0) {}
}

/// The next request; nothing if the client has no more.
async fn read_request(
    reader: &mut ReadHalf<'_>,
    received: &mut Vec<u8>,
) -> Result<Option<ReceivedRequest>, Error> {
    const BLANK_LINE: &[u8] = b"\r\n\r\n";
    let head_length = loop {
        if let Some(at) = received.windows(BLANK_LINE.len()).position(|window| window == BLANK_LINE) {
            break at;
        }
        if reader.read_buf(received).await? == 0 {
            return if received.is_empty() { Ok(None) } else { Err(ErrorKind::UnexpectedEof.into()) };
        }
    };
    let mut seen = parse_head(&String::from_utf8_lossy(&received[..head_length]))?;
    let body_at = head_length + BLANK_LINE.len();
    let length: usize = seen.header("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
    while received.len() < body_at + length {
        if reader.read_buf(received).await? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    seen.body = received[body_at..body_at + length].to_vec();
    received.drain(..body_at + length);
    Ok(Some(seen))
}

fn parse_head(head: &str) -> Result<ReceivedRequest, Error> {
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Err(ErrorKind::InvalidData.into());
    };
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        .collect();
    Ok(ReceivedRequest { method: method.to_owned(), path: path.to_owned(), headers, body: vec![] })
}

async fn write_reply(writer: &mut WriteHalf<'_>, reply: Reply, closes: bool) -> Result<(), Error> {
    tokio::time::sleep(reply.delay).await;
    if reply.trouble.is_some() {
        return Ok(());
    }
    let mut head = format!("HTTP/1.1 {} {}\r\n", reply.status, phrase(reply.status));
    for (name, value) in &reply.headers {
        head += &format!("{name}: {value}\r\n");
    }
    match reply.length {
        Some(length) => head += &format!("content-length: {length}\r\n"),
        None => head += "transfer-encoding: chunked\r\n",
    }
    if closes {
        head += "connection: close\r\n";
    }
    writer.write_all((head + "\r\n").as_bytes()).await?;
    for piece in reply.pieces {
        let bytes = piece.come().await;
        match reply.length {
            _ if bytes.is_empty() => {}
            Some(_) => writer.write_all(&bytes).await?,
            None => {
                let size = format!("{:x}\r\n", bytes.len());
                writer.write_all(&[size.as_bytes(), &bytes, b"\r\n"].concat()).await?;
            }
        }
    }
    match reply.end {
        End::Close if reply.length.is_none() => writer.write_all(b"0\r\n\r\n").await,
        End::Stall => std::future::pending().await,
        End::Close | End::Cut | End::Reset => Ok(()),
    }
}

fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Scripted",
    }
}
