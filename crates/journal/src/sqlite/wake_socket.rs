//! The socket `run/<pid>.sock`, on which other processes wake this one or subscribe to its streams. The leases of the
//! process contain its name.
//!
//! A client sends lines of JSON. The first one contains the home's token: `{"token":"…"}`. Each later
//! `{"ring":"session/…"}` wakes the holder of that stream. `{"watch":"session/…"}` is the client's last line: it
//! turns the connection into a subscription, on which the server sends lines to the client. Unknown fields are
//! ignored.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use longhaul_protocol::{Hash, StreamName};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinHandle;

use crate::home::{Home, create_once, io_error};
use crate::subscribers::{Subscriber, Subscribers, Subscription};
use crate::{Error, Holder, Result, WakeSignals};

/// How long a client tries to reach another process. A wake is a hint and not worth a longer wait.
const SEND_TIMEOUT: Duration = Duration::from_millis(500);
/// How long the server reads from one client. The client's machine may be busy.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// How much the server reads from one client.
const MAX_CLIENT_BYTES: u64 = 16 << 10;
/// The most wakes that wait for a slow receiver. If there are more, they are dropped and the receiver learns that.
const WAKE_QUEUE: usize = 1024;
/// The most subscribers that wait to be served. Further ones are disconnected.
const SUBSCRIBER_QUEUE: usize = 64;

#[derive(Serialize, Deserialize)]
struct Greeting {
    token: String,
}

#[derive(Default, Serialize, Deserialize)]
struct Message {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ring: Option<StreamName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    watch: Option<StreamName>,
}

/// The receivers to which the server passes the requests of clients.
struct Receivers {
    token: String,
    wakes: broadcast::Sender<StreamName>,
    /// The receiver that last asked for subscribers.
    subscribers: Mutex<Option<mpsc::Sender<Subscriber>>>,
}

impl Receivers {
    /// Passes on a subscriber. If there is no receiver, or its queue is full, dropping the subscriber disconnects it, and
    /// it may try again.
    fn pass_on(&self, subscriber: Subscriber) {
        if let Some(receiver) = lock(&self.subscribers).as_ref() {
            let _ = receiver.try_send(subscriber);
        }
    }
}

/// The server side: this process's socket.
pub struct WakeSocket {
    /// `None` once closed, which tells every receiver that nothing more will come.
    receivers: Mutex<Option<Arc<Receivers>>>,
    server: JoinHandle<()>,
    folder: RunFolder,
    socket: String,
}

/// The folder `run`, kept open. An address through its handle is short, however deep the home is, and stays valid if
/// the home is moved.
struct RunFolder {
    path: PathBuf,
    handle: File,
}

impl RunFolder {
    fn open(home: &Home) -> Result<Self> {
        let path = home.subfolder("run")?;
        let handle = File::open(&path).map_err(|error| io_error(&path, &error))?;
        Ok(Self { path, handle })
    }

    /// The address of a socket. Only Linux has the short form.
    fn address(&self, socket: &str) -> PathBuf {
        let folder = PathBuf::from(format!("/proc/self/fd/{}", self.handle.as_raw_fd()));
        if folder.exists() { folder.join(socket) } else { self.path.join(socket) }
    }

    /// Reads the home's token; creates it if there is none.
    fn token(&self) -> Result<String> {
        let path = self.path.join("token");
        if let Ok(token) = std::fs::read_to_string(&path) {
            return Ok(token);
        }
        let mut random = [0; 32];
        let source = Path::new("/dev/urandom");
        File::open(source)
            .and_then(|mut file| file.read_exact(&mut random))
            .map_err(|error| io_error(source, &error))?;
        let token = Hash::from_bytes(random).to_string();
        create_once(&path, token.as_bytes())?;
        std::fs::read_to_string(&path).map_err(|error| io_error(&path, &error))
    }

    /// Removes sockets without a listening process, and one with this process's pid that a dead process left.
    fn remove_dead_sockets(&self, own: &str) {
        let names = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        for name in names.filter_map(|entry| entry.file_name().into_string().ok()) {
            if !name.ends_with(".sock") {
                continue;
            }
            let is_dead = || {
                let answer = std::os::unix::net::UnixStream::connect(self.address(&name));
                answer.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
            };
            if name == own || is_dead() {
                let _ = std::fs::remove_file(self.path.join(&name));
            }
        }
    }
}

impl WakeSocket {
    /// Binds the socket and starts to serve it.
    pub fn bind(home: &Home) -> Result<Self> {
        let folder = RunFolder::open(home)?;
        let socket = Holder::this_process().socket;
        let address = folder.address(&socket);
        folder.remove_dead_sockets(&socket);
        let token = folder.token()?;
        let listener =
            UnixListener::bind(&address).map_err(|error| io_error(&folder.path.join(&socket), &error))?;
        let wakes = broadcast::Sender::new(WAKE_QUEUE);
        let receivers = Arc::new(Receivers { token, wakes, subscribers: Mutex::default() });
        let server = tokio::spawn(serve(listener, Arc::downgrade(&receivers)));
        Ok(Self { receivers: Mutex::new(Some(receivers)), server, folder, socket })
    }

    /// The wakes from now on.
    pub fn wakes(&self) -> Result<WakeSignals> {
        Ok(WakeSignals(self.receivers()?.wakes.subscribe()))
    }

    /// The subscribers from now on. Only the last receiver gets them.
    pub fn subscribers(&self) -> Result<Subscribers> {
        let (send, subscribers) = mpsc::channel(SUBSCRIBER_QUEUE);
        *lock(&self.receivers()?.subscribers) = Some(send);
        Ok(Subscribers(subscribers))
    }

    /// Wakes this process itself.
    pub fn wake(&self, stream: &StreamName) {
        if let Ok(receivers) = self.receivers() {
            // An error means that there is no receiver.
            let _ = receivers.wakes.send(stream.clone());
        }
    }

    /// Subscribes to a stream of this process itself, without the socket.
    pub fn subscribe(&self, stream: &StreamName) -> Result<Subscription> {
        let (subscriber, subscription) = Subscriber::pair(stream.clone());
        self.receivers()?.pass_on(subscriber);
        Ok(subscription)
    }

    fn receivers(&self) -> Result<Arc<Receivers>> {
        lock(&self.receivers).clone().ok_or(Error::Closed)
    }

    pub fn close(&self) {
        self.server.abort();
        drop(lock(&self.receivers).take());
        let _ = std::fs::remove_file(self.folder.path.join(&self.socket));
    }
}

impl Drop for WakeSocket {
    fn drop(&mut self) {
        self.close();
    }
}

async fn serve(listener: UnixListener, receivers: Weak<Receivers>) {
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                tokio::spawn(tokio::time::timeout(READ_TIMEOUT, serve_client(client, receivers.clone())));
            }
            // A temporary error, such as too many open files.
            Err(_) => tokio::time::sleep(SEND_TIMEOUT).await,
        }
    }
}

/// Passes on the requests of a client after it has sent the token. `None` if the client hung up or sent something
/// else.
async fn serve_client(client: UnixStream, receivers: Weak<Receivers>) -> Option<()> {
    let mut lines = BufReader::new(client.take(MAX_CLIENT_BYTES)).lines();
    let greeting: Greeting = serde_json::from_str(&lines.next_line().await.ok()??).ok()?;
    if greeting.token != receivers.upgrade()?.token {
        return None;
    }
    while let Some(line) = lines.next_line().await.ok()? {
        let message: Message = serde_json::from_str(&line).ok()?;
        let receivers = receivers.upgrade()?;
        if let Some(stream) = message.ring {
            let _ = receivers.wakes.send(stream);
        }
        if let Some(stream) = message.watch {
            receivers.pass_on(Subscriber::new(stream, lines.into_inner().into_inner().into_inner()));
            return Some(());
        }
    }
    Some(())
}

/// Wakes another process. It may be gone or not listening: a wake is a hint, the records are the fact. Returns whether
/// it could be reached.
pub async fn wake(home: &Home, holder: &Holder, stream: &StreamName) -> Result<bool> {
    let message = Message { ring: Some(stream.clone()), ..Message::default() };
    let Some(mut connection) = connect(home, holder, &message).await? else { return Ok(false) };
    let _ = tokio::time::timeout(SEND_TIMEOUT, connection.shutdown()).await;
    Ok(true)
}

/// Subscribes to a stream that another process holds. `None` if the process can't be reached. An older version
/// accepts the subscription and sends nothing.
pub async fn subscribe(home: &Home, holder: &Holder, stream: &StreamName) -> Result<Option<Subscription>> {
    let message = Message { watch: Some(stream.clone()), ..Message::default() };
    Ok(connect(home, holder, &message).await?.map(Subscription::new))
}

/// Connects to another process and sends the token and a message; `None` if it can't be reached.
async fn connect(home: &Home, holder: &Holder, message: &Message) -> Result<Option<UnixStream>> {
    let folder = RunFolder::open(home)?;
    let json_error = |error: serde_json::Error| io_error(&folder.path, &error.into());
    let greeting = serde_json::to_string(&Greeting { token: folder.token()? }).map_err(json_error)?;
    let lines = format!("{greeting}\n{}\n", serde_json::to_string(message).map_err(json_error)?);
    let sending = async {
        let mut connection = UnixStream::connect(folder.address(&holder.socket)).await?;
        connection.write_all(lines.as_bytes()).await?;
        Ok::<_, std::io::Error>(connection)
    };
    Ok(tokio::time::timeout(SEND_TIMEOUT, sending).await.ok().and_then(std::result::Result::ok))
}

/// The values in these locks are complete at every moment, so a poisoned lock can be used.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
