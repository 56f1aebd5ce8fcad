//! A web server on loopback that answers with the bytes that a test gives it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the server does with a request: it gets the whole head of the request.
type Handler = dyn Fn(&str) -> WebReply + Send + Sync;

/// What the server sends.
pub enum WebReply {
    /// These bytes, then the end.
    Bytes(Vec<u8>),
    /// These bytes, and then this part again and again.
    Endless(Vec<u8>, Vec<u8>),
    /// These bytes, and then nothing: the connection stays open.
    Silent(Vec<u8>),
}

/// The server. It stops with the runtime in which it was started.
pub struct WebServer {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
}

impl WebServer {
    pub async fn start(handler: impl Fn(&str) -> WebReply + Send + Sync + 'static) -> Self {
        Self::start_on("127.0.0.1:0", handler).await
    }

    pub async fn start_on(address: &str, handler: impl Fn(&str) -> WebReply + Send + Sync + 'static) -> Self {
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
    pub async fn of_page(page: &str) -> Self {
        let answer = web_page("text/html; charset=utf-8", page.as_bytes());
        Self::start(move |_| WebReply::Bytes(answer.clone())).await
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The heads of all requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
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
        WebReply::Bytes(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
        }
        WebReply::Endless(start, part) => {
            let mut next = stream.write_all(&start).await;
            while next.is_ok() {
                next = stream.write_all(&part).await;
            }
        }
        WebReply::Silent(bytes) => {
            let _ = stream.write_all(&bytes).await;
            // Until the client gives up.
            let _ = stream.read(&mut buffer).await;
        }
    }
}

/// An answer with this body.
pub fn web_page(media: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {media}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// A redirect to this address.
pub fn web_redirect(location: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        .into_bytes()
}
