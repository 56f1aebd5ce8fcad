//! The socket on which other processes ring this one: `run/<pid>.sock`, named in its leases.
//!
//! A caller says lines of JSON. The first must hold the home's token; each one after it names a stream:
//! `{"token":"…"}`, then `{"ring":"session/…"}`. What a newer version says besides is ignored.
//!
//! `{"watch":"session/…"}` is the last thing that a caller says: from there on the connection is in the hands of whoever asked
//! for callers, and lines go the other way.

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

use crate::calls::{Call, Caller, Callers};
use crate::home::{Home, create_once, io_error};
use crate::{Error, Holder, Result};

/// How long a caller may take; a ring is a hint and not worth waiting for.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long a caller is listened to. One whose machine is busy may take a while between two words.
const LISTENS: Duration = Duration::from_secs(10);
/// The longest conversation that is listened to.
const LONGEST: u64 = 16 << 10;
/// How many rings may wait for a slow listener before it is told that it missed some.
const WAITING: usize = 1024;
/// How many callers may wait until somebody has time for them; the next one is hung up on.
const CALLERS: usize = 64;

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

/// What callers want is passed on to these.
struct Door {
    token: String,
    rings: broadcast::Sender<StreamName>,
    /// Whoever last asked for callers.
    callers: Mutex<Option<mpsc::Sender<Caller>>>,
}

/// The doorbell of this process.
pub(crate) struct Doorbell {
    /// None when it was taken down: then whoever listens learns that nobody will come.
    door: Mutex<Option<Arc<Door>>>,
    listening: JoinHandle<()>,
    folder: RunFolder,
    socket: String,
}

/// The folder `run`, held open: an address through it is short, however deep the home lies, and follows a home
/// that is moved.
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

    /// The address of a socket. Only Linux has short ones.
    fn address(&self, socket: &str) -> PathBuf {
        let folder = PathBuf::from(format!("/proc/self/fd/{}", self.handle.as_raw_fd()));
        if folder.exists() { folder.join(socket) } else { self.path.join(socket) }
    }

    /// The home's token, made if there is none.
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
}

impl Doorbell {
    /// Begins to listen.
    pub(crate) fn hang(home: &Home) -> Result<Self> {
        let folder = RunFolder::open(home)?;
        let socket = Holder::this_process().socket;
        let address = folder.address(&socket);
        folder.sweep(&socket);
        let token = folder.token()?;
        let listener =
            UnixListener::bind(&address).map_err(|error| io_error(&folder.path.join(&socket), &error))?;
        let door =
            Arc::new(Door { token, rings: broadcast::Sender::new(WAITING), callers: Mutex::default() });
        let listening = tokio::spawn(listen(listener, Arc::downgrade(&door)));
        Ok(Self { door: Mutex::new(Some(door)), listening, folder, socket })
    }

    /// The rings from now on.
    pub(crate) fn rings(&self) -> Result<broadcast::Receiver<StreamName>> {
        Ok(self.door()?.rings.subscribe())
    }

    /// Those who call from now on. They go to whoever asked last.
    pub(crate) fn callers(&self) -> Result<Callers> {
        let (send, callers) = mpsc::channel(CALLERS);
        *lock(&self.door()?.callers) = Some(send);
        Ok(Callers(callers))
    }

    /// Rings this process itself.
    pub(crate) fn ring(&self, stream: &StreamName) {
        if let Ok(door) = self.door() {
            // Nobody listens: then nobody needs to know.
            let _ = door.rings.send(stream.clone());
        }
    }

    fn door(&self) -> Result<Arc<Door>> {
        lock(&self.door).clone().ok_or(Error::Closed)
    }

    /// Stops listening.
    pub(crate) fn take_down(&self) {
        self.listening.abort();
        drop(lock(&self.door).take());
        let _ = std::fs::remove_file(self.folder.path.join(&self.socket));
    }
}

impl Drop for Doorbell {
    fn drop(&mut self) {
        self.take_down();
    }
}

impl RunFolder {
    /// Removes sockets on which nobody listens any more, and one of our own number that a dead process left.
    fn sweep(&self, own: &str) {
        let names = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        for name in names.filter_map(|entry| entry.file_name().into_string().ok()) {
            if !name.ends_with(".sock") {
                continue;
            }
            let nobody = || {
                let answer = std::os::unix::net::UnixStream::connect(self.address(&name));
                answer.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
            };
            if name == own || nobody() {
                let _ = std::fs::remove_file(self.path.join(&name));
            }
        }
    }
}

async fn listen(listener: UnixListener, door: Weak<Door>) {
    loop {
        match listener.accept().await {
            Ok((caller, _)) => {
                tokio::spawn(tokio::time::timeout(LISTENS, hear(caller, door.clone())));
            }
            // Too many open files, for example: it passes.
            Err(_) => tokio::time::sleep(PATIENCE).await,
        }
    }
}

/// Passes on what a caller wants, once it has shown the token. `None`: it hung up or said something odd.
async fn hear(caller: UnixStream, door: Weak<Door>) -> Option<()> {
    let mut lines = BufReader::new(caller.take(LONGEST)).lines();
    let greeting: Greeting = serde_json::from_str(&lines.next_line().await.ok()??).ok()?;
    if greeting.token != door.upgrade()?.token {
        return None;
    }
    while let Some(line) = lines.next_line().await.ok()? {
        let message: Message = serde_json::from_str(&line).ok()?;
        let door = door.upgrade()?;
        if let Some(stream) = message.ring {
            let _ = door.rings.send(stream);
        }
        if let Some(stream) = message.watch {
            let caller = Caller::new(stream, lines.into_inner().into_inner().into_inner());
            // Nobody has time for it: then it is hung up on, and calls again.
            let _ = lock(&door.callers).as_ref()?.try_send(caller);
            return Some(());
        }
    }
    Some(())
}

/// Rings another process. It may be gone, or not listen: a ring is a hint, the records are the fact.
pub(crate) async fn ring(home: &Home, holder: &Holder, stream: &StreamName) -> Result<()> {
    let message = Message { ring: Some(stream.clone()), ..Message::default() };
    if let Some(mut door) = knock(home, holder, &message).await? {
        let _ = tokio::time::timeout(PATIENCE, door.shutdown()).await;
    }
    Ok(())
}

/// Calls a process to hear of a stream. Nobody may be there; an older version hears and says nothing.
pub(crate) async fn call(home: &Home, holder: &Holder, stream: &StreamName) -> Result<Option<Call>> {
    let message = Message { watch: Some(stream.clone()), ..Message::default() };
    Ok(knock(home, holder, &message).await?.map(Call::new))
}

/// Says something to another process, if it can be reached.
async fn knock(home: &Home, holder: &Holder, message: &Message) -> Result<Option<UnixStream>> {
    let folder = RunFolder::open(home)?;
    let greeting = Greeting { token: folder.token()? };
    let form = "structs of strings are always JSON";
    let lines = format!(
        "{}\n{}\n",
        serde_json::to_string(&greeting).expect(form),
        serde_json::to_string(message).expect(form)
    );
    let knocking = async {
        let mut door = UnixStream::connect(folder.address(&holder.socket)).await?;
        door.write_all(lines.as_bytes()).await?;
        Ok::<_, std::io::Error>(door)
    };
    Ok(tokio::time::timeout(PATIENCE, knocking).await.ok().and_then(std::result::Result::ok))
}

/// What is behind these locks is whole at every moment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
