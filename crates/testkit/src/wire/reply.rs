use std::sync::Arc;
use std::time::Duration;

use longhaul_model::transport::TransportError;
use tokio::sync::Semaphore;

/// What a server does with one request.
#[derive(Debug, Clone)]
pub struct Reply {
    /// How long connecting takes. Only [`super::Memory`] can do this; loopback connects at once.
    pub connecting: Duration,
    /// Instead of an answer. [`super::ModelServer`] has only one way to do this: it resets the connection.
    pub trouble: Option<TransportError>,
    /// How long it takes until the head comes.
    pub delay: Duration,
    /// The status.
    pub status: u16,
    /// Names and values, as they are sent.
    pub headers: Vec<(String, String)>,
    /// The length that the head promises; without one the body is sent in chunks, one for each piece.
    pub length: Option<usize>,
    /// What comes after the head.
    pub pieces: Vec<Piece>,
    /// How it ends.
    pub end: End,
}

/// A piece of a body.
#[derive(Debug, Clone)]
pub enum Piece {
    /// Bytes, sent at once.
    Bytes(Vec<u8>),
    /// Nothing, for so long.
    Pause(Duration),
    /// Nothing, until a test says so.
    Gate(Latch),
}

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// As HTTP says that it does.
    Close,
    /// The connection is closed in the middle of it.
    Cut,
    /// The connection is reset.
    Reset,
    /// Nothing more comes, and the connection stays.
    Stall,
}

impl Reply {
    fn new(status: u16, kind: &str, body: Vec<u8>) -> Self {
        Self {
            connecting: Duration::ZERO,
            trouble: None,
            delay: Duration::ZERO,
            status,
            headers: vec![("content-type".to_owned(), kind.to_owned())],
            length: None,
            pieces: vec![Piece::Bytes(body)],
            end: End::Close,
        }
    }

    /// A stream of server-sent events.
    pub fn stream(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, "text/event-stream", body.into())
    }

    /// A stream with a chunk for each of these.
    pub fn frames(frames: Vec<Vec<u8>>) -> Self {
        Self { pieces: frames.into_iter().map(Piece::Bytes).collect(), ..Self::stream("") }
    }

    /// A JSON value with its length.
    pub fn json(value: &serde_json::Value) -> Self {
        Self::error(200, value.to_string())
    }

    /// A status and a body, usually JSON, with its length.
    pub fn error(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        Self { length: Some(body.len()), ..Self::new(status, "application/json", body) }
    }

    /// No answer at all, for this reason.
    pub fn trouble(trouble: TransportError) -> Self {
        Self { trouble: Some(trouble), ..Self::error(599, "") }
    }

    /// With this header; one with the same name goes.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Only the first bytes of the body; then the connection is closed in the middle of it.
    #[must_use]
    pub fn cut_at(mut self, byte: usize) -> Self {
        let mut left = byte;
        let mut kept = Vec::new();
        for piece in std::mem::take(&mut self.pieces) {
            match piece {
                Piece::Bytes(mut bytes) => {
                    let whole = bytes.len() <= left;
                    bytes.truncate(left);
                    left -= bytes.len();
                    kept.push(Piece::Bytes(bytes));
                    if !whole {
                        break;
                    }
                }
                other => kept.push(other),
            }
        }
        self.pieces = kept;
        self.ending(End::Cut)
    }

    /// With this end.
    #[must_use]
    pub fn ending(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    /// With its bytes in pieces that are no longer than this.
    #[must_use]
    pub fn in_pieces(mut self, size: usize) -> Self {
        let split = |piece| match piece {
            Piece::Bytes(bytes) => {
                bytes.chunks(size.max(1)).map(|chunk| Piece::Bytes(chunk.to_vec())).collect()
            }
            other => vec![other],
        };
        self.pieces = self.pieces.into_iter().flat_map(split).collect();
        self
    }

    /// With a pause before each piece but the first.
    #[must_use]
    pub fn with_pauses(mut self, pause: Duration) -> Self {
        let pieces = std::mem::take(&mut self.pieces);
        for (index, piece) in pieces.into_iter().enumerate() {
            if index > 0 {
                self.pieces.push(Piece::Pause(pause));
            }
            self.pieces.push(piece);
        }
        self
    }

    /// With more at its end.
    #[must_use]
    pub fn then(mut self, piece: Piece) -> Self {
        self.pieces.push(piece);
        self
    }

    /// With a head that takes so long.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// With a connection that takes so long to make.
    #[must_use]
    pub fn connecting(mut self, time: Duration) -> Self {
        self.connecting = time;
        self
    }
}

/// A point in a body at which a server waits for the test.
#[derive(Debug, Clone)]
pub struct Latch {
    reached: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

impl Latch {
    /// A closed one.
    pub fn new() -> Self {
        Self { reached: Arc::new(Semaphore::new(0)), open: Arc::new(Semaphore::new(0)) }
    }

    /// Waits until a server has come there once more.
    pub async fn reached(&self) {
        self.reached.acquire().await.unwrap().forget();
    }

    /// Lets a server pass once.
    pub fn open(&self) {
        self.open.add_permits(1);
    }

    async fn pass(&self) {
        self.reached.add_permits(1);
        self.open.acquire().await.unwrap().forget();
    }
}

impl Default for Latch {
    fn default() -> Self {
        Self::new()
    }
}

impl Piece {
    /// Its bytes, once it is time for them.
    pub(super) async fn come(self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Pause(time) => {
                tokio::time::sleep(time).await;
                vec![]
            }
            Self::Gate(latch) => {
                latch.pass().await;
                vec![]
            }
        }
    }
}
