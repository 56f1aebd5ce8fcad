use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::id::text_form;
use crate::{ParseError, SessionId};

/// The name of a stream: `session/<id>`, `inbox/<id>`, `extract/<id>`, `memory/<scope>`, `schedule/<id>`, `spend/home`,
/// `tree/<id>`, `names`, `schedules`, `tokens`, `host` or `host/<node>`.
///
/// Unknown families are valid: this version can list, verify and export a journal that a newer version wrote.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamName(Arc<str>);

impl StreamName {
    const MAX_BYTES: usize = 200;

    /// The keys of sessions.
    pub fn names() -> Self {
        Self("names".into())
    }

    /// The tokens of the HTTP API. Any process may append to it.
    pub fn tokens() -> Self {
        Self("tokens".into())
    }

    /// A stream without records. The process that holds its lease runs the sessions whose own lease is free, and is
    /// woken for them.
    pub fn host() -> Self {
        Self("host".into())
    }

    /// The same for one node of several. The process that holds its lease hosts the node.
    pub fn host_of(node: &str) -> Result<Self, ParseError> {
        format!("host/{node}").parse()
    }

    /// A stream without records. A server takes its lease for a moment to find out whether the journal can be written.
    pub fn readiness() -> Self {
        Self("readiness".into())
    }

    /// The records of a session. Only the holder of its lease appends to it.
    pub fn session(id: SessionId) -> Self {
        Self(format!("session/{id}").into())
    }

    /// The inputs and orders for a session. Any process may append to it.
    pub fn inbox(id: SessionId) -> Self {
        Self(format!("inbox/{id}").into())
    }

    /// The extracts of a session.
    pub fn extract(id: SessionId) -> Self {
        Self(format!("extract/{id}").into())
    }

    /// The pages of a memory scope.
    pub fn memory(scope: &str) -> Result<Self, ParseError> {
        format!("memory/{scope}").parse()
    }

    /// The ledger of all model calls. Any process appends to it, with the head that it expects.
    pub fn spend() -> Self {
        Self("spend/home".into())
    }

    /// Which schedules there are beside those of the config. Any process appends to it, with the head that it expects.
    pub fn schedules() -> Self {
        Self("schedules".into())
    }

    /// What was decided about the slots of a schedule. Only the holder of its lease appends to it.
    pub fn schedule(id: &str) -> Result<Self, ParseError> {
        format!("schedule/{id}").parse()
    }

    /// A stream without records. The process that holds its lease consolidates the pages of a memory scope. Changes
    /// by people do not need the lease.
    pub fn consolidation(scope: &str) -> Result<Self, ParseError> {
        format!("consolidation/{scope}").parse()
    }

    /// What the OpenAI-compatible API has to know beside the sessions: which session a conversation is in, and which
    /// responses were deleted.
    pub fn openai() -> Self {
        Self("openai".into())
    }

    /// The subagents below a session that is no subagent itself. Any process appends to it, with the head that it expects.
    pub fn tree(root: SessionId) -> Self {
        Self(format!("tree/{root}").into())
    }

    /// The session that the stream belongs to.
    pub fn session_id(&self) -> Option<SessionId> {
        let (family, id) = self.0.split_once('/')?;
        matches!(family, "session" | "inbox" | "extract").then(|| id.parse().ok())?
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamName({})", self.0)
    }
}

impl FromStr for StreamName {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let plain = |character: char| !character.is_control() && !character.is_whitespace();
        let parts_are_named = text.split('/').all(|part| !part.is_empty());
        if text.len() <= Self::MAX_BYTES && parts_are_named && text.chars().all(plain) {
            Ok(Self(text.into()))
        } else {
            Err(ParseError::new(
                "stream name",
                text,
                "a name such as session/<id>, at most 200 bytes, without spaces",
            ))
        }
    }
}

text_form!(StreamName);
