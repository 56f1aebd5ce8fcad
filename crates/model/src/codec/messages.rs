//! Converts items into messages that do not depend on the protocol.
//!
//! A message depends only on its own items and those before them, never on later ones, so a message that was sent
//! never changes. Items are grouped only if the group is complete when the request is made: the parts of one answer,
//! and the results of its calls.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use longhaul_protocol::{CallId, Image, Item, MEMORY_MARK, NOTE_MARK, Role, SUMMARY_MARK, TODO_MARK};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{EncodeInput, RoleOrder};
use crate::Request;

/// How the runtime's own texts begin. In other texts, each of these gets a question mark. `MEMORY_MARK` gets one only at
/// the start of a user message: files have sections of that name.
const MARKS: [&str; 3] = [NOTE_MARK, SUMMARY_MARK, TODO_MARK];

/// Replaces an empty text, which providers refuse.
const EMPTY_TEXT: &str = "(empty)";

/// Replaces a picture whose bytes are gone.
pub(super) const NO_PICTURE: &str = "[the picture is not available]";

/// The field that wraps arguments that are not a JSON object.
const INVALID_ARGUMENTS: &str = "invalid_arguments";

/// The longest call id and tool name that every provider accepts.
const MAX_NAME_BYTES: usize = 64;

pub(super) enum Message<'a> {
    /// What the model wrote in one answer. Never empty, and never ends with reasoning.
    Answer(Vec<AnswerItem<'a>>),
    Results(Vec<CallResult<'a>>),
    User(Cow<'a, str>),
    Picture(&'a Image),
    /// A text of the runtime, if the server accepts system messages at this point. Otherwise it is
    /// [`User`](Self::User).
    System(Cow<'a, str>),
}

pub(super) enum AnswerItem<'a> {
    Text(Cow<'a, str>),
    /// Reasoning of the model that gets the request.
    Thought {
        text: &'a str,
        /// The provider's signature, without the name of the model.
        signature: &'a str,
    },
    Call {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        arguments: Cow<'a, str>,
        /// The provider's signature, without the name of the model.
        signature: Option<&'a str>,
    },
}

pub(super) struct CallResult<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    pub(super) content: Cow<'a, str>,
    pub(super) pictures: &'a [Image],
    pub(super) is_error: bool,
}

impl CallResult<'_> {
    /// The caption of the result's pictures, for protocols that can't have them in the result itself.
    pub(super) fn caption(&self) -> String {
        format!("[from the result of {}]", self.name)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AllowedIds {
    Any,
    /// Letters, digits, `_` and `-`.
    Plain,
}

pub(super) fn messages<'a>(asked: &EncodeInput<'a>, ids: AllowedIds) -> Vec<Message<'a>> {
    let request = asked.request;
    let mut calls = KnownCalls { ids, known: HashMap::new(), used: HashSet::new() };
    let mut messages = Vec::new();
    for run in
        request.items.chunk_by(|one, next| run_kind(one) == run_kind(next) && run_kind(one) != RunKind::Other)
    {
        match run_kind(&run[0]) {
            RunKind::AnswerItem => {
                let mut written: Vec<_> =
                    run.iter().filter_map(|item| answer_item(item, asked, &mut calls)).collect();
                // Providers refuse an answer that ends with reasoning.
                while matches!(written.last(), Some(AnswerItem::Thought { .. })) {
                    written.pop();
                }
                if !written.is_empty() {
                    messages.push(Message::Answer(written));
                }
            }
            RunKind::CallResult => {
                push_results(run.iter().map(|item| &**item), request, &calls, &mut messages);
            }
            RunKind::Other => messages.push(match single_message(&run[0]) {
                Message::System(text) if asked.roles > RoleOrder::System => Message::User(text),
                message => message,
            }),
        }
    }
    messages
}

#[derive(PartialEq, Eq)]
enum RunKind {
    AnswerItem,
    CallResult,
    Other,
}

fn run_kind(item: &Item) -> RunKind {
    match item {
        Item::Text { role: Role::Assistant, .. } | Item::Reasoning { .. } | Item::ToolCall { .. } => {
            RunKind::AnswerItem
        }
        Item::ToolResult { .. } => RunKind::CallResult,
        Item::Text { role: Role::User | Role::System, .. } | Item::Image(_) | Item::Note { .. } => {
            RunKind::Other
        }
    }
}

struct KnownCalls<'a> {
    ids: AllowedIds,
    known: HashMap<CallId, (Cow<'a, str>, Cow<'a, str>)>,
    used: HashSet<Cow<'a, str>>,
}

impl<'a> KnownCalls<'a> {
    /// The id and the name of a call on the wire.
    fn add(&mut self, call: CallId, wire_id: Option<&'a str>, name: &'a str) -> (Cow<'a, str>, Cow<'a, str>) {
        let accepted =
            wire_id.filter(|id| !id.is_empty() && id.len() <= MAX_NAME_BYTES).map(|id| match self.ids {
                AllowedIds::Any => Cow::Borrowed(id),
                AllowedIds::Plain => plain_name(id),
            });
        let id = accepted.filter(|id| !self.used.contains(id)).unwrap_or_else(|| call.to_string().into());
        self.used.insert(id.clone());
        let names = (id, plain_name(name));
        self.known.insert(call, names.clone());
        names
    }
}

fn answer_item<'a>(
    item: &'a Item,
    asked: &EncodeInput<'a>,
    calls: &mut KnownCalls<'a>,
) -> Option<AnswerItem<'a>> {
    match item {
        Item::Text { text, .. } => (!text.trim().is_empty()).then(|| AnswerItem::Text(text.into())),
        Item::Reasoning { text, signature } => own_signature(signature.as_deref(), asked.author)
            .map(|signature| AnswerItem::Thought { text, signature }),
        Item::ToolCall { call, wire_id, name, arguments, signature } => {
            let (id, name) = calls.add(*call, wire_id.as_deref(), name);
            if asked.request.tools.is_empty() {
                return Some(AnswerItem::Text(format!("[called {name} with {arguments}]").into()));
            }
            let signature = own_signature(signature.as_deref(), asked.author);
            Some(AnswerItem::Call { id, name, arguments: json_object(arguments), signature })
        }
        Item::ToolResult { .. } | Item::Image(_) | Item::Note { .. } => None,
    }
}

/// Results become tool results if the model has tools and the call is known. Otherwise they become text.
fn push_results<'a>(
    items: impl Iterator<Item = &'a Item>,
    request: &Request,
    calls: &KnownCalls<'a>,
    messages: &mut Vec<Message<'a>>,
) {
    let mut results = Vec::new();
    let mut spoken = Vec::new();
    for item in items {
        let Item::ToolResult { call, content, images, is_error } = item else { continue };
        let known = calls.known.get(call);
        match known.filter(|_| !request.tools.is_empty()) {
            Some((id, name)) => results.push(CallResult {
                id: id.clone(),
                name: name.clone(),
                content: non_empty(content),
                pictures: images,
                is_error: *is_error,
            }),
            None => {
                let name = known.map_or("an earlier call", |(_, name)| name);
                let text = format!("[result of {name}: {content}]");
                spoken.push(Message::User(neutralise(&text, &MARKS).into_owned().into()));
                spoken.extend(images.iter().map(Message::Picture));
            }
        }
    }
    if !results.is_empty() {
        messages.push(Message::Results(results));
    }
    messages.append(&mut spoken);
}

fn single_message(item: &Item) -> Message<'_> {
    match item {
        // The runtime composed it and neutralised other texts in it; it only is no note.
        Item::Text { role: Role::System, text } => Message::System(non_empty_with(text, &[NOTE_MARK])),
        Item::Note { text } => Message::System(format!("{NOTE_MARK} {}", neutralise(text, &MARKS)).into()),
        Item::Image(image) => Message::Picture(image),
        Item::Text { text, .. }
        | Item::Reasoning { text, .. }
        | Item::ToolCall { arguments: text, .. }
        | Item::ToolResult { content: text, .. } => Message::User(without_memory_mark(non_empty(text))),
    }
}

fn without_memory_mark(text: Cow<'_, str>) -> Cow<'_, str> {
    let begins = text.trim_start();
    match begins.get(..MEMORY_MARK.len()) {
        Some(start) if start.eq_ignore_ascii_case(MEMORY_MARK) => {
            Cow::Owned(with_question_mark(MEMORY_MARK) + &begins[MEMORY_MARK.len()..])
        }
        _ => text,
    }
}

/// The provider's part of a signature, if it is from this model.
pub(super) fn own_signature<'a>(signature: Option<&'a str>, author: &str) -> Option<&'a str> {
    signature?.strip_prefix(author)?.strip_prefix(' ')
}

/// Replaces an empty text, and neutralises the runtime's marks.
fn non_empty(text: &str) -> Cow<'_, str> {
    non_empty_with(text, &MARKS)
}

fn non_empty_with<'a>(text: &'a str, marks: &[&str]) -> Cow<'a, str> {
    if text.trim().is_empty() { EMPTY_TEXT.into() } else { neutralise(text, marks) }
}

/// Neutralises these marks, in any case.
fn neutralise<'a>(text: &'a str, marks: &[&str]) -> Cow<'a, str> {
    let mut neutralised = String::new();
    let mut copied = 0;
    for (start, _) in text.match_indices('[') {
        let begins = |mark: &str| {
            let found = text.get(start..start + mark.len());
            found.is_some_and(|found| found.eq_ignore_ascii_case(mark))
        };
        if let Some(mark) = marks.iter().find(|mark| begins(mark)) {
            neutralised.push_str(&text[copied..start]);
            neutralised.push_str(&with_question_mark(mark));
            copied = start + mark.len();
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    neutralised.push_str(&text[copied..]);
    Cow::Owned(neutralised)
}

fn with_question_mark(mark: &str) -> String {
    mark.replace(']', "?]")
}

fn plain_name(name: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    let name: String = name.chars().take(MAX_NAME_BYTES).map(|c| if fits(c) { c } else { '_' }).collect();
    Cow::Owned(if name.is_empty() { "_".to_owned() } else { name })
}

/// Arguments as a JSON object. Those that are no JSON object are wrapped in one.
///
/// They are parsed in full, because some providers refuse text that only looks like JSON (half a surrogate pair,
/// endless nesting). Every later request of the session would contain it and fail.
fn json_object(arguments: &str) -> Cow<'_, str> {
    if arguments.trim().is_empty() {
        return Cow::Borrowed("{}");
    }
    match serde_json::from_str::<Map<String, Value>>(arguments) {
        Ok(_) => Cow::Borrowed(arguments.trim()),
        Err(_) => Cow::Owned(Value::from_iter([(INVALID_ARGUMENTS, arguments)]).to_string()),
    }
}

/// A JSON object from [`json_object`], serialised byte for byte.
pub(super) struct RawObject<'a>(pub(super) Cow<'a, str>);

impl Serialize for RawObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

#[derive(Clone, Copy)]
pub(super) struct Base64Image<'a>(&'a [u8]);

impl<'a> Base64Image<'a> {
    pub(super) fn of(image: &Image, request: &'a Request) -> Option<Self> {
        request.pictures.get(&image.data.hash).map(|bytes| Self(bytes))
    }
}

impl fmt::Display for Base64Image<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Base64Display::new(self.0, &STANDARD).fmt(f)
    }
}

impl Serialize for Base64Image<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A picture as a data URL.
pub(super) struct DataUrl<'a> {
    pub(super) media: &'a str,
    pub(super) bytes: Base64Image<'a>,
}

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("data:{};base64,{}", self.media, self.bytes))
    }
}

/// The content of a message: one text, or several pieces in the form of the protocol.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a, P> {
    Text(Cow<'a, str>),
    Pieces(Vec<P>),
}

/// The pictures of results for a message of their own, each after its caption.
pub(super) fn pictures<'a, P>(
    results: &[CallResult<'a>],
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
#[path = "messages_tests.rs"]
mod tests;
