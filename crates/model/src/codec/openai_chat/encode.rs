use std::borrow::Cow;

use longhaul_protocol::{Image, ToolSchema};
use serde::Serialize;
use serde_json::Value;

use crate::codec::messages::{self, AllowedIds, AnswerItem, Base64Image, Content, DataUrl, NO_PICTURE};
use crate::codec::roles::{self, ASSISTANT_FILLER, Speaker, USER_FILLER};
use crate::codec::{EncodeInput, RoleOrder, to_bytes};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Vec<Message<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Message<'a> {
    System {
        content: Cow<'a, str>,
    },
    User {
        content: Content<'a, Piece<'a>>,
    },
    Assistant {
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: Cow<'a, str>,
    },
}

impl<'a> Message<'a> {
    fn user(text: Cow<'a, str>) -> Self {
        Self::User { content: Content::Text(text) }
    }

    fn speaker(&self) -> Speaker {
        match self {
            Self::System { .. } => Speaker::System,
            Self::User { .. } => Speaker::User,
            Self::Assistant { .. } => Speaker::Assistant,
            Self::Tool { .. } => Speaker::Tool,
        }
    }

    fn filler(speaker: Speaker) -> Self {
        match speaker {
            Speaker::Assistant => Self::Assistant {
                reasoning_content: None,
                content: Some(ASSISTANT_FILLER.into()),
                tool_calls: vec![],
            },
            _ => Self::user(USER_FILLER.into()),
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl<'a> },
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    url: DataUrl<'a>,
}

#[derive(Serialize)]
struct Call<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: Cow<'a, str>,
    arguments: Cow<'a, str>,
}

/// The body of a request.
pub(in crate::codec) fn encode(asked: &EncodeInput<'_>) -> Vec<u8> {
    let (request, quirks) = (asked.request, asked.quirks);
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        let content = Cow::Borrowed(&*request.system);
        messages.push(match asked.roles {
            RoleOrder::NoSystem => Message::user(content),
            _ => Message::System { content },
        });
    }
    for message in messages::messages(asked, AllowedIds::Any) {
        add(message, asked, &mut messages);
    }
    let messages = roles::insert_fillers(asked.roles, messages, Message::speaker, Message::filler);
    to_bytes(&Body {
        model: asked.model,
        stream: true,
        stream_options: (!quirks.no_stream_options).then_some(StreamOptions { include_usage: true }),
        max_tokens: request.max_output.filter(|_| !quirks.max_completion_tokens),
        max_completion_tokens: request.max_output.filter(|_| quirks.max_completion_tokens),
        reasoning_effort: asked.effort.map(|sent| asked.effort_word(sent.effort, "none")),
        tools: request.tools.iter().map(tool).collect(),
        messages,
    })
}

fn tool(schema: &ToolSchema) -> Tool<'_> {
    let ToolSchema { name, description, parameters } = schema;
    Tool { r#type: "function", function: Function { name, description, parameters } }
}

fn add<'a>(message: messages::Message<'a>, asked: &EncodeInput<'a>, messages: &mut Vec<Message<'a>>) {
    match message {
        messages::Message::Answer(written) => messages.extend(answer(written, asked)),
        messages::Message::Results(results) => {
            let pictures =
                messages::pictures(&results, |text| Piece::Text { text }, |image| picture(image, asked));
            messages.extend(
                results
                    .into_iter()
                    .map(|result| Message::Tool { tool_call_id: result.id, content: result.content }),
            );
            // A tool message can hold only text.
            if !pictures.is_empty() {
                messages.push(Message::User { content: Content::Pieces(pictures) });
            }
        }
        messages::Message::User(text) => messages.push(Message::user(text)),
        messages::Message::Picture(image) => {
            messages.push(Message::User { content: Content::Pieces(vec![picture(image, asked)]) });
        }
        messages::Message::System(content) => messages.push(Message::System { content }),
    }
}

fn answer<'a>(written: Vec<AnswerItem<'a>>, asked: &EncodeInput<'a>) -> Option<Message<'a>> {
    let (mut thoughts, mut texts, mut tool_calls) = (Vec::new(), Vec::new(), Vec::new());
    for piece in written {
        match piece {
            AnswerItem::Text(text) => texts.push(text),
            AnswerItem::Thought { text, .. } if asked.quirks.wants_reasoning_back => {
                thoughts.push(text.into());
            }
            AnswerItem::Thought { .. } => {}
            AnswerItem::Call { id, name, arguments, .. } => {
                tool_calls.push(Call {
                    id,
                    r#type: "function",
                    function: CalledFunction { name, arguments },
                });
            }
        }
    }
    let (reasoning_content, content) = (joined(thoughts), joined(texts));
    (content.is_some() || !tool_calls.is_empty()).then_some(Message::Assistant {
        reasoning_content,
        content,
        tool_calls,
    })
}

/// Joins several texts into one.
fn joined(mut texts: Vec<Cow<'_, str>>) -> Option<Cow<'_, str>> {
    texts.retain(|text| !text.trim().is_empty());
    if texts.len() > 1 { Some(texts.join("\n\n").into()) } else { texts.pop() }
}

fn picture<'a>(image: &'a Image, asked: &EncodeInput<'a>) -> Piece<'a> {
    match Base64Image::of(image, asked.request) {
        Some(bytes) => {
            Piece::ImageUrl { image_url: ImageUrl { url: DataUrl { media: &image.data.media, bytes } } }
        }
        None => Piece::Text { text: NO_PICTURE.into() },
    }
}
