//! A web server on loopback that answers with the bytes that a test gives it, and a lookup of names that can lie.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use longhaul_tools::{AllowList, GuardedClient, LookupName, NetworkGuard, WebError, WebLimits, WebResponse};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the server does with a request: it gets the whole head of the request.
type Handler = dyn Fn(&str) -> Reply + Send + Sync;

pub(crate) enum Reply {
    /// These bytes, then the end.
    Bytes(Vec<u8>),
    /// These bytes, and then this part again and again.
    Endless(Vec<u8>, Vec<u8>),
    /// These bytes, and then nothing: the connection stays open.
    Silent(Vec<u8>),
}

pub(crate) struct WebServer {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
}

impl WebServer {
    pub(crate) async fn start(handler: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_on("127.0.0.1:0", handler).await
    }

    pub(crate) async fn start_on(
        address: &str,
        handler: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, connections) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<AtomicUsize>::default());
        let (seen, counted, handler) = (
            Arc::clone(&requests),
            Arc::clone(&connections),
            Arc::<Handler>::from(Box::new(handler) as Box<Handler>),
        );
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, Arc::clone(&seen), Arc::clone(&handler)));
            }
        });
        Self { address, requests, connections }
    }

    /// A server that answers every request with this page.
    pub(crate) async fn of_page(page: &str) -> Self {
        let answer = page_of("text/html; charset=utf-8", page.as_bytes());
        Self::start(move |_| Reply::Bytes(answer.clone())).await
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The heads of all requests so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn serve(mut stream: TcpStream, seen: Arc<Mutex<Vec<String>>>, handler: Arc<Handler>) {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(read) => head.extend_from_slice(&buffer[..read]),
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    seen.lock().unwrap().push(head.clone());
    match handler(&head) {
        Reply::Bytes(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
        }
        Reply::Endless(start, part) => {
            let mut next = stream.write_all(&start).await;
            while next.is_ok() {
                next = stream.write_all(&part).await;
            }
        }
        Reply::Silent(bytes) => {
            let _ = stream.write_all(&bytes).await;
            // Until the client gives up.
            let _ = stream.read(&mut buffer).await;
        }
    }
}

/// An answer with this body.
pub(crate) fn page_of(media: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {media}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

pub(crate) fn redirect_to(location: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        .into_bytes()
}

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
