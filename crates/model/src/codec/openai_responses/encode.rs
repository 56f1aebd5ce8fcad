use std::borrow::Cow;

use longhaul_protocol::{Image, ToolSchema};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::ReasoningSignature;
use crate::codec::messages::{self, AllowedIds, AnswerItem, Base64Image, Content, DataUrl, NO_PICTURE};
use crate::codec::roles::{self, ASSISTANT_FILLER, Speaker, USER_FILLER};
use crate::codec::{EncodeInput, to_bytes};
use crate::{Effort, Purpose};

/// Asks for encrypted reasoning, which can be sent back although the provider does not store it.
const ENCRYPTED_REASONING: &str = "reasoning.encrypted_content";

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    include: Option<[&'static str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<OfferedTool<'a>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    input: Vec<Item<'a>>,
}

#[derive(Serialize)]
struct Reasoning<'a> {
    effort: &'a str,
    /// A summary is all that the provider shows of the reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum OfferedTool<'a> {
    Function(Tool<'a>),
    Search { r#type: &'static str },
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    /// False: the strict mode has rules for schemas that ours may not follow.
    strict: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: Role,
        content: Content<'a, Piece<'a>>,
    },
    Reasoning {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<Cow<'a, str>>,
        summary: Option<&'a RawValue>,
        encrypted_content: Cow<'a, str>,
    },
    FunctionCall {
        call_id: Cow<'a, str>,
        name: Cow<'a, str>,
        arguments: Cow<'a, str>,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: Cow<'a, str>,
    },
}

impl<'a> Item<'a> {
    fn said(role: Role, text: Cow<'a, str>) -> Self {
        Self::Message { role, content: Content::Text(text) }
    }

    fn speaker(&self) -> Speaker {
        match self {
            Self::Message { role: Role::Developer, .. } => Speaker::System,
            Self::Message { role: Role::User, .. } => Speaker::User,
            Self::Message { role: Role::Assistant, .. }
            | Self::Reasoning { .. }
            | Self::FunctionCall { .. } => Speaker::Assistant,
            Self::FunctionCallOutput { .. } => Speaker::Tool,
        }
    }

    fn filler(speaker: Speaker) -> Self {
        match speaker {
            Speaker::Assistant => Self::said(Role::Assistant, ASSISTANT_FILLER.into()),
            _ => Self::said(Role::User, USER_FILLER.into()),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Role {
    Developer,
    User,
    Assistant,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece<'a> {
    InputText { text: Cow<'a, str> },
    InputImage { image_url: DataUrl<'a> },
}

/// The body of a request.
pub(in crate::codec) fn encode(asked: &EncodeInput<'_>) -> Vec<u8> {
    let request = asked.request;
    let mut input = Vec::new();
    for message in messages::messages(asked, AllowedIds::Any) {
        add(message, asked, &mut input);
    }
    let mut tools: Vec<_> = request.tools.iter().map(|schema| OfferedTool::Function(tool(schema))).collect();
    if request.purpose == Purpose::Search {
        tools.push(OfferedTool::Search { r#type: "web_search" });
    }
    let input = roles::insert_fillers(asked.roles, input, Item::speaker, Item::filler);
    to_bytes(&Body {
        model: asked.model,
        stream: true,
        store: false,
        include: (asked.reasons || asked.effort.is_some_and(|sent| sent.effort > Effort::Off))
            .then_some([ENCRYPTED_REASONING]),
        max_output_tokens: request.max_output,
        reasoning: asked.effort.map(|sent| Reasoning {
            effort: asked.effort_word(sent.effort, "none"),
            summary: (sent.with_summary && sent.effort > Effort::Off).then_some("auto"),
        }),
        parallel_tool_calls: (!request.tools.is_empty()).then_some(true),
        tools,
        instructions: &request.system,
        input,
    })
}

fn tool(schema: &ToolSchema) -> Tool<'_> {
    let ToolSchema { name, description, parameters } = schema;
    Tool { r#type: "function", name, description, parameters, strict: false }
}

fn add<'a>(message: messages::Message<'a>, asked: &EncodeInput<'a>, input: &mut Vec<Item<'a>>) {
    match message {
        messages::Message::Answer(written) => input.extend(written.into_iter().filter_map(written_item)),
        messages::Message::Results(results) => {
            let pictures =
                messages::pictures(&results, |text| Piece::InputText { text }, |image| picture(image, asked));
            input.extend(
                results
                    .into_iter()
                    .map(|result| Item::FunctionCallOutput { call_id: result.id, output: result.content }),
            );
            if !pictures.is_empty() {
                input.push(Item::Message { role: Role::User, content: Content::Pieces(pictures) });
            }
        }
        messages::Message::User(text) => input.push(Item::said(Role::User, text)),
        messages::Message::System(text) => input.push(Item::said(Role::Developer, text)),
        messages::Message::Picture(image) => {
            let content = Content::Pieces(vec![picture(image, asked)]);
            input.push(Item::Message { role: Role::User, content });
        }
    }
}

fn written_item(written: AnswerItem<'_>) -> Option<Item<'_>> {
    match written {
        AnswerItem::Text(text) => Some(Item::said(Role::Assistant, text)),
        AnswerItem::Thought { signature, .. } => {
            let ReasoningSignature { id, summary, encrypted_content } =
                serde_json::from_str(signature).ok()?;
            let summary = summary.or_else(|| serde_json::from_str("[]").ok());
            Some(Item::Reasoning { id, summary, encrypted_content })
        }
        AnswerItem::Call { id, name, arguments, .. } => {
            Some(Item::FunctionCall { call_id: id, name, arguments })
        }
    }
}

fn picture<'a>(image: &'a Image, asked: &EncodeInput<'a>) -> Piece<'a> {
    match Base64Image::of(image, asked.request) {
        Some(bytes) => Piece::InputImage { image_url: DataUrl { media: &image.data.media, bytes } },
        None => Piece::InputText { text: NO_PICTURE.into() },
    }
}
