use std::borrow::Cow;

use longhaul_protocol::{Image, ToolSchema};
use serde::Serialize;
use serde_json::Value;

use crate::codec::messages::{self, AllowedIds, AnswerItem, Base64Image, CallResult, NO_PICTURE, RawObject};
use crate::codec::roles::{self, ASSISTANT_FILLER, Speaker, USER_FILLER};
use crate::codec::{EncodeInput, to_bytes};
use crate::{Effort, EffortForm, Purpose};

/// The model is not in the body: it is part of the URL.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_config: Option<GenerationConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Tools<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<SystemInstruction<'a>>,
    contents: Vec<Content<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    include_thoughts: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Tools<'a> {
    FunctionDeclarations(Vec<Declaration<'a>>),
    /// The provider's own search, which takes no settings.
    GoogleSearch(NoSettings),
}

#[derive(Serialize)]
struct NoSettings {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a Value,
}

#[derive(Serialize)]
struct SystemInstruction<'a> {
    parts: [Piece<'a>; 1],
}

#[derive(Serialize)]
struct Content<'a> {
    role: Role,
    parts: Vec<Piece<'a>>,
}

impl Content<'_> {
    fn speaker(&self) -> Speaker {
        match self.role {
            Role::User => Speaker::User,
            Role::Model => Speaker::Assistant,
        }
    }

    fn filler(speaker: Speaker) -> Self {
        let (role, text) = match speaker {
            Speaker::Assistant => (Role::Model, ASSISTANT_FILLER),
            _ => (Role::User, USER_FILLER),
        };
        Self { role, parts: vec![Piece::Text { text: text.into() }] }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Role {
    User,
    Model,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Piece<'a> {
    Text {
        text: Cow<'a, str>,
    },
    #[serde(rename_all = "camelCase")]
    Picture {
        inline_data: InlineData<'a>,
    },
    #[serde(rename_all = "camelCase")]
    Call {
        function_call: FunctionCall<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'a str>,
    },
    #[serde(rename_all = "camelCase")]
    Result {
        function_response: FunctionResponse<'a>,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    mime_type: &'a str,
    data: Base64Image<'a>,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    id: Cow<'a, str>,
    name: Cow<'a, str>,
    args: RawObject<'a>,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    id: Cow<'a, str>,
    name: Cow<'a, str>,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Response<'a> {
    Output(Cow<'a, str>),
    Error(Cow<'a, str>),
}

/// The body of a request.
pub(in crate::codec) fn encode(asked: &EncodeInput<'_>) -> Vec<u8> {
    let request = asked.request;
    let max_output_tokens = request.max_output;
    let thinking_config = thinking_config(asked);
    let configured = max_output_tokens.is_some() || thinking_config.is_some();
    let tools = match request.purpose {
        Purpose::Search => Some([Tools::GoogleSearch(NoSettings {})]),
        _ if request.tools.is_empty() => None,
        _ => Some([Tools::FunctionDeclarations(request.tools.iter().map(declaration).collect())]),
    };
    let instruction = || SystemInstruction { parts: [Piece::Text { text: Cow::Borrowed(&request.system) }] };
    let mut contents = Vec::new();
    for message in messages::messages(asked, AllowedIds::Any) {
        add(message, asked, &mut contents);
    }
    let contents = roles::insert_fillers(asked.roles, contents, Content::speaker, Content::filler);
    to_bytes(&Body {
        generation_config: configured.then_some(GenerationConfig { max_output_tokens, thinking_config }),
        tools,
        system_instruction: (!request.system.is_empty()).then(instruction),
        contents,
    })
}

fn thinking_config<'a>(asked: &EncodeInput<'a>) -> Option<ThinkingConfig<'a>> {
    let Some(sent) = asked.effort else {
        let include_thoughts = Some(true);
        return asked.reasons.then_some(ThinkingConfig {
            include_thoughts,
            thinking_budget: None,
            thinking_level: None,
        });
    };
    // Thoughts can't be asked for where there are none.
    let include_thoughts = (sent.effort > Effort::Off).then_some(true);
    Some(match sent.form {
        EffortForm::Level => {
            let thinking_level = Some(asked.effort_word(sent.effort, "low"));
            ThinkingConfig { include_thoughts, thinking_budget: None, thinking_level }
        }
        EffortForm::Budget => {
            let least = asked.effort_off.and_then(|least| least.parse().ok()).unwrap_or(0);
            // The limit counts reasoning and answer together.
            let room = asked.request.max_output.map_or(u64::MAX, |limit| limit - limit / 4);
            let thinking_budget = Some(sent.effort.budget_tokens().min(room).max(least));
            ThinkingConfig { include_thoughts, thinking_budget, thinking_level: None }
        }
    })
}

fn declaration(schema: &ToolSchema) -> Declaration<'_> {
    let ToolSchema { name, description, parameters } = schema;
    Declaration { name, description, parameters_json_schema: parameters }
}

fn add<'a>(message: messages::Message<'a>, asked: &EncodeInput<'a>, contents: &mut Vec<Content<'a>>) {
    let by_user = |parts| Content { role: Role::User, parts };
    match message {
        messages::Message::Answer(written) => {
            let parts: Vec<_> = written.into_iter().filter_map(written_piece).collect();
            if !parts.is_empty() {
                contents.push(Content { role: Role::Model, parts });
            }
        }
        messages::Message::Results(results) => {
            let pictures =
                messages::pictures(&results, |text| Piece::Text { text }, |image| picture(image, asked));
            contents.push(by_user(results.into_iter().map(result).collect()));
            if !pictures.is_empty() {
                contents.push(by_user(pictures));
            }
        }
        messages::Message::User(text) | messages::Message::System(text) => {
            contents.push(by_user(vec![Piece::Text { text }]));
        }
        messages::Message::Picture(image) => contents.push(by_user(vec![picture(image, asked)])),
    }
}

fn written_piece(written: AnswerItem<'_>) -> Option<Piece<'_>> {
    match written {
        AnswerItem::Text(text) => Some(Piece::Text { text }),
        // Gemini wants only the signatures back, and those are sent with the calls.
        AnswerItem::Thought { .. } => None,
        AnswerItem::Call { id, name, arguments, signature } => Some(Piece::Call {
            function_call: FunctionCall { id, name, args: RawObject(arguments) },
            thought_signature: signature.filter(|signature| !signature.is_empty()),
        }),
    }
}

fn result(result: CallResult<'_>) -> Piece<'_> {
    let response =
        if result.is_error { Response::Error(result.content) } else { Response::Output(result.content) };
    Piece::Result { function_response: FunctionResponse { id: result.id, name: result.name, response } }
}

fn picture<'a>(image: &'a Image, asked: &EncodeInput<'a>) -> Piece<'a> {
    match Base64Image::of(image, asked.request) {
        Some(data) => Piece::Picture { inline_data: InlineData { mime_type: &image.data.media, data } },
        None => Piece::Text { text: NO_PICTURE.into() },
    }
}
