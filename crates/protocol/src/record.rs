use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::{At, Hash, StreamName};

/// The position of a record in its stream, from 1. The head of an empty stream is 0.
pub type Seq = u64;

/// One durable fact.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "RecordForm")]
pub struct Record {
    /// The stream that it belongs to.
    pub stream: StreamName,
    pub seq: Seq,
    /// When it was committed, by the clock of the engine.
    pub at: At,
    pub kind: String,
    /// The hash of its idempotency key, which is unique in the stream.
    pub key: Option<Hash>,
    pub body: Body,
    /// The hash of the record before it.
    pub prev: Hash,
    /// The hash of this one.
    pub hash: Hash,
}

/// The body of a record.
#[derive(Debug, Clone)]
pub enum Body {
    /// The JSON text, exactly as it was committed.
    Here(Box<RawValue>),
    /// Erased on purpose, or lost to damage and replaced during a salvage.
    Gone(Gone),
}

/// The stub of an erased or lost body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gone {
    /// When it was erased or lost.
    pub at: At,
    pub reason: String,
    /// The hash of the erased bytes. Absent if the record was lost to damage. Then its own hash can't be verified,
    /// only that its neighbours agree on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_hash: Option<Hash>,
}

/// A record to append. The journal assigns its position, time and hash.
#[derive(Debug, Clone)]
pub struct NewRecord {
    pub kind: String,
    /// The JSON text of the body.
    pub body: Box<RawValue>,
    /// The hash of an idempotency key, which must be unique in the stream.
    pub key: Option<Hash>,
}

impl NewRecord {
    /// Adds an idempotency key: the journal appends the record only once.
    #[must_use]
    pub fn with_key(self, key: &str) -> Self {
        Self { key: Some(Hash::of(key)), ..self }
    }
}

/// Why the body of a record can't be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The body was erased or lost.
    #[error("the body of {stream} seq {seq} is gone: {reason}")]
    Gone { stream: StreamName, seq: Seq, reason: String },
    /// The body does not match the type of its kind.
    #[error("{stream} seq {seq} is not a valid {kind}: {reason}")]
    Malformed { stream: StreamName, seq: Seq, kind: String, reason: String },
}

impl Record {
    /// The JSON text of the body, if it is still there.
    pub fn text(&self) -> Option<&str> {
        match &self.body {
            Body::Here(body) => Some(body.get()),
            Body::Gone(_) => None,
        }
    }

    /// Decodes the body.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> Result<T, DecodeError> {
        let (stream, seq) = (self.stream.clone(), self.seq);
        match &self.body {
            Body::Here(body) => serde_json::from_str(body.get()).map_err(|error| DecodeError::Malformed {
                stream,
                seq,
                kind: self.kind.clone(),
                reason: error.to_string(),
            }),
            Body::Gone(gone) => Err(DecodeError::Gone { stream, seq, reason: gone.reason.clone() }),
        }
    }
}

/// The JSON form of a record: `body` with its bytes unchanged, or `gone` instead.
#[derive(Serialize, Deserialize)]
struct RecordForm<B = Box<RawValue>> {
    stream: StreamName,
    seq: Seq,
    at: At,
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<Hash>,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    body: Option<B>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gone: Option<Gone>,
    prev: Hash,
    hash: Hash,
}

/// For `#[serde(default)]`, which alone would require `B: Default`.
fn none<B>() -> Option<B> {
    None
}

/// The form of a record in JSON, for a schema: the body is any JSON.
#[cfg(feature = "schema")]
impl schemars::JsonSchema for Record {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Record".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let (stream, hash) = (generator.subschema_for::<StreamName>(), generator.subschema_for::<Hash>());
        let (at, gone) = (generator.subschema_for::<At>(), generator.subschema_for::<Gone>());
        let count = schemars::json_schema!({"type": "integer", "minimum": 1});
        schemars::json_schema!({
            "type": "object",
            "properties": {
                "stream": stream, "seq": count, "at": at, "kind": {"type": "string"}, "key": hash, "body": true,
                "gone": gone, "prev": hash, "hash": hash,
            },
            "required": ["stream", "seq", "at", "kind", "prev", "hash"],
        })
    }
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (body, gone) = match &self.body {
            Body::Here(body) => (Some(&**body), None),
            Body::Gone(gone) => (None, Some(gone.clone())),
        };
        let (stream, kind) = (self.stream.clone(), self.kind.clone());
        let (seq, at, key, prev, hash) = (self.seq, self.at, self.key, self.prev, self.hash);
        RecordForm { stream, seq, at, kind, key, body, gone, prev, hash }.serialize(serializer)
    }
}

impl TryFrom<RecordForm> for Record {
    type Error = &'static str;

    fn try_from(form: RecordForm) -> Result<Self, &'static str> {
        let RecordForm { stream, seq, at, kind, key, body, gone, prev, hash } = form;
        let body = match (body, gone) {
            (Some(body), None) => Body::Here(body),
            (None, Some(gone)) => Body::Gone(gone),
            (Some(_), Some(_)) => return Err("a record has a body or says that it is gone, not both"),
            (None, None) => return Err("a record has neither a body nor a word on where it went"),
        };
        Ok(Self { stream, seq, at, kind, key, body, prev, hash })
    }
}

/// Ties each kind of record in a family of streams to the type of its body.
///
/// `decode` keeps a kind that this version does not know together with its bytes, and `encode` returns them
/// unchanged.
macro_rules! record_kinds {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $kind:literal => $variant:ident($body:ty),)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone)]
        pub enum $name {
            $($(#[$doc])* $variant($body),)*
            /// A kind that only a newer version knows. Readers keep and skip it.
            Unknown {
                kind: String,
                /// Its body, unchanged.
                body: Box<serde_json::value::RawValue>,
            },
        }

        impl $name {
            /// Every kind that this version knows.
            pub const KINDS: &'static [&'static str] = &[$($kind),*];

            pub fn kind(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $kind,)*
                    Self::Unknown { kind, .. } => kind,
                }
            }

            /// Decodes the body of a record by its kind.
            pub fn decode(record: &$crate::Record) -> Result<Self, $crate::DecodeError> {
                match record.kind.as_str() {
                    $($kind => record.decode().map(Self::$variant),)*
                    kind => Ok(Self::Unknown { kind: kind.to_owned(), body: record.decode()? }),
                }
            }

            /// Encodes it as a record to append.
            pub fn encode(&self) -> $crate::NewRecord {
                let body = match self {
                    $(Self::$variant(body) => serde_json::value::to_raw_value(body)
                        .expect("serde_json never fails on plain structs with string keys"),)*
                    Self::Unknown { body, .. } => body.clone(),
                };
                $crate::NewRecord { kind: self.kind().to_owned(), body, key: None }
            }
        }
    };
}
pub(crate) use record_kinds;
