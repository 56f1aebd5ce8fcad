//! From items to messages, before a protocol gives them its form.
//!
//! What becomes of an item depends on it and on those before it, never on one that comes later: so what was sent stays as it
//! was. The only groups are runs that are whole when a request is made: what a model wrote in one answer, and the
//! results of its calls.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use longhaul_protocol::{CallId, Image, Item, Role};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Asked, RoleOrder};
use crate::Request;

/// What a note of the runtime begins with. No one else's text may hold it.
const NOTE_MARK: &str = "[runtime note]";

/// The mark of notes, and what stands in its place in other texts.
const NOT_A_NOTE: (&str, &str) = (NOTE_MARK, "[runtime note?]");

/// What the runtime's own texts begin with, and what stands in place of that in the texts of others. The context crate puts the last
/// two before what it composes, and this one must not depend on that.
const MARKS: [(&str, &str); 3] = [
    NOT_A_NOTE,
    (longhaul_protocol::SUMMARY_MARK, "[Compacted context summary?]"),
    ("[Session todo snapshot]", "[Session todo snapshot?]"),
];

/// What the memory of earlier sessions begins with, and what stands in its place where a user's message begins with it. Elsewhere
/// the words may stand: files have sections of that name.
const MEMORY_MARK: (&str, &str) = ("[Memory]", "[Memory?]");

/// What is sent where there is nothing, since no provider takes a text without words.
const EMPTY: &str = "(empty)";

/// What is sent in place of a picture whose bytes are gone.
pub(super) const NO_PICTURE: &str = "[the picture is not available]";

/// The one field of the object that stands for arguments which are none.
const INVALID_ARGUMENTS: &str = "invalid_arguments";

/// The longest id of a call, and the longest name of a tool, that every provider takes.
const LONGEST_NAME: usize = 64;

/// What goes into one message, or into the items that stand for one.
pub(super) enum Message<'a> {
    /// What the model wrote in one answer; never without anything, and never with a thought at its end.
    Answer(Vec<Written<'a>>),
    /// What its calls gave back.
    Results(Vec<Returned<'a>>),
    /// What a person or a program said.
    User(Cow<'a, str>),
    /// A picture that a person sent.
    Picture(&'a Image),
    /// What the runtime says, notes with their mark, where the server accepts system messages here; else it is
    /// [`User`](Self::User).
    System(Cow<'a, str>),
}

/// Something that the model wrote.
pub(super) enum Written<'a> {
    Text(Cow<'a, str>),
    /// One of the model's own.
    Thought {
        text: &'a str,
        /// The provider's proof, without the name of the model.
        signature: &'a str,
    },
    Call {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        /// Always a JSON object.
        arguments: Cow<'a, str>,
        /// The provider's proof, without the name of the model.
        signature: Option<&'a str>,
    },
}

/// What a call gave back.
pub(super) struct Returned<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    pub(super) content: Cow<'a, str>,
    pub(super) pictures: &'a [Image],
    pub(super) is_error: bool,
}

impl Returned<'_> {
    /// What stands above its pictures where they can't stand in the result itself.
    pub(super) fn caption(&self) -> String {
        format!("[from the result of {}]", self.name)
    }
}

/// Which ids of calls a provider takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ids {
    /// Any.
    Any,
    /// Letters, digits, `_` and `-`.
    Plain,
}

/// The messages of a request.
pub(super) fn messages<'a>(asked: &Asked<'a>, ids: Ids) -> Vec<Message<'a>> {
    let request = asked.request;
    let mut calls = Calls { ids, known: HashMap::new(), used: HashSet::new() };
    let mut messages = Vec::new();
    for run in request.items.chunk_by(|one, next| kind(one) == kind(next) && kind(one) != Kind::Other) {
        match kind(&run[0]) {
            Kind::Written => {
                let mut written: Vec<_> =
                    run.iter().filter_map(|item| write(item, asked, &mut calls)).collect();
                // Providers refuse an answer that ends with a thought.
                while matches!(written.last(), Some(Written::Thought { .. })) {
                    written.pop();
                }
                if !written.is_empty() {
                    messages.push(Message::Answer(written));
                }
            }
            Kind::Returned => give_back(run.iter().map(|item| &**item), request, &calls, &mut messages),
            Kind::Other => messages.push(match other(&run[0]) {
                Message::System(text) if asked.roles > RoleOrder::System => Message::User(text),
                message => message,
            }),
        }
    }
    messages
}

#[derive(PartialEq, Eq)]
enum Kind {
    Written,
    Returned,
    Other,
}

fn kind(item: &Item) -> Kind {
    match item {
        Item::Text { role: Role::Assistant, .. } | Item::Reasoning { .. } | Item::ToolCall { .. } => {
            Kind::Written
        }
        Item::ToolResult { .. } => Kind::Returned,
        Item::Text { role: Role::User | Role::System, .. } | Item::Image(_) | Item::Note { .. } => {
            Kind::Other
        }
    }
}

/// What is known of the calls so far.
struct Calls<'a> {
    ids: Ids,
    known: HashMap<CallId, (Cow<'a, str>, Cow<'a, str>)>,
    used: HashSet<Cow<'a, str>>,
}

impl<'a> Calls<'a> {
    /// The id and the name of a call as they go over the wire.
    fn add(&mut self, call: CallId, wire_id: Option<&'a str>, name: &'a str) -> (Cow<'a, str>, Cow<'a, str>) {
        let accepted =
            wire_id.filter(|id| !id.is_empty() && id.len() <= LONGEST_NAME).map(|id| match self.ids {
                Ids::Any => Cow::Borrowed(id),
                Ids::Plain => plain(id),
            });
        let id = accepted.filter(|id| !self.used.contains(id)).unwrap_or_else(|| call.to_string().into());
        self.used.insert(id.clone());
        let names = (id, plain(name));
        self.known.insert(call, names.clone());
        names
    }
}

fn write<'a>(item: &'a Item, asked: &Asked<'a>, calls: &mut Calls<'a>) -> Option<Written<'a>> {
    match item {
        Item::Text { text, .. } => (!text.trim().is_empty()).then(|| Written::Text(text.into())),
        Item::Reasoning { text, signature } => {
            own(signature.as_deref(), asked.author).map(|signature| Written::Thought { text, signature })
        }
        Item::ToolCall { call, wire_id, name, arguments, signature } => {
            let (id, name) = calls.add(*call, wire_id.as_deref(), name);
            if asked.request.tools.is_empty() {
                return Some(Written::Text(format!("[called {name} with {arguments}]").into()));
            }
            let signature = own(signature.as_deref(), asked.author);
            Some(Written::Call { id, name, arguments: object(arguments), signature })
        }
        Item::ToolResult { .. } | Item::Image(_) | Item::Note { .. } => None,
    }
}

/// Results go back as results where the model has tools, and their calls are there; else as words.
fn give_back<'a>(
    items: impl Iterator<Item = &'a Item>,
    request: &Request,
    calls: &Calls<'a>,
    messages: &mut Vec<Message<'a>>,
) {
    let mut results = Vec::new();
    let mut spoken = Vec::new();
    for item in items {
        let Item::ToolResult { call, content, images, is_error } = item else { continue };
        let known = calls.known.get(call);
        match known.filter(|_| !request.tools.is_empty()) {
            Some((id, name)) => results.push(Returned {
                id: id.clone(),
                name: name.clone(),
                content: said(content),
                pictures: images,
                is_error: *is_error,
            }),
            None => {
                let name = known.map_or("an earlier call", |(_, name)| name);
                let text = format!("[result of {name}: {content}]");
                spoken.push(Message::User(neutral(&text, &MARKS).into_owned().into()));
                spoken.extend(images.iter().map(Message::Picture));
            }
        }
    }
    if !results.is_empty() {
        messages.push(Message::Results(results));
    }
    messages.append(&mut spoken);
}

fn other(item: &Item) -> Message<'_> {
    match item {
        // The runtime composed it, and took the marks out of what others say in it; only a note it is not.
        Item::Text { role: Role::System, text } => Message::System(said_with(text, &[NOT_A_NOTE])),
        Item::Note { text } => Message::System(format!("{NOTE_MARK} {}", neutral(text, &MARKS)).into()),
        Item::Image(image) => Message::Picture(image),
        Item::Text { text, .. }
        | Item::Reasoning { text, .. }
        | Item::ToolCall { arguments: text, .. }
        | Item::ToolResult { content: text, .. } => Message::User(without_memory_mark(said(text))),
    }
}

/// A user's text that does not begin like the memory of earlier sessions.
fn without_memory_mark(text: Cow<'_, str>) -> Cow<'_, str> {
    let (mark, stands_in) = MEMORY_MARK;
    let begins = text.trim_start();
    match begins.get(..mark.len()) {
        Some(start) if start.eq_ignore_ascii_case(mark) => {
            Cow::Owned(format!("{stands_in}{}", &begins[mark.len()..]))
        }
        _ => text,
    }
}

/// The provider's part of a signature, if it belongs to this model.
pub(super) fn own<'a>(signature: Option<&'a str>, author: &str) -> Option<&'a str> {
    signature?.strip_prefix(author)?.strip_prefix(' ')
}

/// A text that nobody can take for the runtime's, and that is not empty.
fn said(text: &str) -> Cow<'_, str> {
    said_with(text, &MARKS)
}

fn said_with<'a>(text: &'a str, marks: &[(&str, &str)]) -> Cow<'a, str> {
    if text.trim().is_empty() { EMPTY.into() } else { neutral(text, marks) }
}

/// A text in which none of these marks stands, in whatever case.
fn neutral<'a>(text: &'a str, marks: &[(&str, &str)]) -> Cow<'a, str> {
    let mut neutral = String::new();
    let mut copied = 0;
    for (start, _) in text.match_indices('[') {
        let begins = |mark: &str| {
            let found = text.get(start..start + mark.len());
            found.is_some_and(|found| found.eq_ignore_ascii_case(mark))
        };
        if let Some((mark, stands_in)) = marks.iter().find(|(mark, _)| begins(mark)) {
            neutral.push_str(&text[copied..start]);
            neutral.push_str(stands_in);
            copied = start + mark.len();
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    neutral.push_str(&text[copied..]);
    Cow::Owned(neutral)
}

/// A name in the letters that every provider takes.
fn plain(name: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    let name: String = name.chars().take(LONGEST_NAME).map(|c| if fits(c) { c } else { '_' }).collect();
    Cow::Owned(if name.is_empty() { "_".to_owned() } else { name })
}

/// Arguments as a JSON object: as they came if they are one, else inside one.
///
/// They are parsed in full, since a text that only looks like JSON (half a surrogate pair, nested without end) is refused by
/// some providers, and then every request of the session would be.
fn object(arguments: &str) -> Cow<'_, str> {
    if arguments.trim().is_empty() {
        return Cow::Borrowed("{}");
    }
    match serde_json::from_str::<Map<String, Value>>(arguments) {
        Ok(_) => Cow::Borrowed(arguments.trim()),
        Err(_) => Cow::Owned(Value::from_iter([(INVALID_ARGUMENTS, arguments)]).to_string()),
    }
}

/// A JSON object, byte for byte: only what [`object`] made.
pub(super) struct Raw<'a>(pub(super) Cow<'a, str>);

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// The bytes of a picture, as base64.
#[derive(Clone, Copy)]
pub(super) struct Encoded<'a>(&'a [u8]);

impl<'a> Encoded<'a> {
    /// Those of this one, if they are there.
    pub(super) fn of(image: &Image, request: &'a Request) -> Option<Self> {
        request.pictures.get(&image.data.hash).map(|bytes| Self(bytes))
    }
}

impl fmt::Display for Encoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Base64Display::new(self.0, &STANDARD).fmt(f)
    }
}

impl Serialize for Encoded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The bytes of a picture, as an address that holds them.
pub(super) struct DataUrl<'a> {
    pub(super) media: &'a str,
    pub(super) bytes: Encoded<'a>,
}

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("data:{};base64,{}", self.media, self.bytes))
    }
}

/// The pictures of results where they can't go with them: after each one's caption.
pub(super) fn pictures<'a, P>(
    results: &[Returned<'a>],
    caption: impl Fn(Cow<'a, str>) -> P,
    picture: impl Fn(&'a Image) -> P,
) -> Vec<P> {
    let mut pieces = Vec::new();
    for result in results.iter().filter(|result| !result.pictures.is_empty()) {
        pieces.push(caption(result.caption().into()));
        pieces.extend(result.pictures.iter().map(&picture));
    }
    pieces
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
