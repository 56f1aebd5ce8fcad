use std::borrow::Cow;

use longhaul_protocol::{Image, ToolSchema};
use serde::Serialize;
use serde_json::Value;

use super::REDACTED_PREFIX;
use crate::codec::messages::{
    self, AllowedIds, AnswerItem, Base64Image, CallResult, Content, NO_PICTURE, RawObject,
};
use crate::codec::roles::{self, ASSISTANT_FILLER, Speaker, USER_FILLER};
use crate::codec::{EncodeInput, to_bytes};
use crate::{Effort, EffortForm, Purpose};

/// The protocol requires a limit, and every model accepts this one.
const DEFAULT_MAX_TOKENS: u64 = 8192;
/// The provider's own search.
const SEARCH_TOOL: &str = "web_search_20250305";
/// Searches in one answer. Each has its price.
const MAX_SEARCHES: u32 = 3;
/// The smallest budget for reasoning that the provider accepts.
const MIN_BUDGET_TOKENS: u64 = 1_024;
/// The tokens that reasoning leaves for the answer, at least.
const MIN_ANSWER_TOKENS: u64 = 1_024;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<OfferedTool<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    messages: Vec<Message<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Thinking {
    Enabled {
        budget_tokens: u64,
    },
    Adaptive {
        #[serde(skip_serializing_if = "Option::is_none")]
        display: Option<&'static str>,
    },
    Disabled,
}

#[derive(Serialize)]
struct OutputConfig {
    effort: &'static str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum OfferedTool<'a> {
    Function(Tool<'a>),
    Search { r#type: &'static str, name: &'static str, max_uses: u32 },
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheMark>,
}

#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheMark {
    Ephemeral,
}

#[derive(Serialize)]
struct Message<'a> {
    role: Role,
    content: Vec<Block<'a>>,
}

impl Message<'_> {
    fn speaker(&self) -> Speaker {
        match self.role {
            Role::User => Speaker::User,
            Role::Assistant => Speaker::Assistant,
        }
    }

    fn filler(speaker: Speaker) -> Self {
        let (role, text) = match speaker {
            Speaker::Assistant => (Role::Assistant, ASSISTANT_FILLER),
            _ => (Role::User, USER_FILLER),
        };
        Self { role, content: vec![Block::text(text.into())] }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Role {
    User,
    Assistant,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheMark>,
    },
    Image {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheMark>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
        content: Content<'a, Block<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheMark>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: RawObject<'a>,
    },
}

#[derive(Serialize)]
struct Source<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: Base64Image<'a>,
}

impl<'a> Block<'a> {
    fn text(text: Cow<'a, str>) -> Self {
        Self::Text { text, cache_control: None }
    }

    fn mark(&mut self) {
        match self {
            Self::Text { cache_control, .. }
            | Self::Image { cache_control, .. }
            | Self::ToolResult { cache_control, .. } => *cache_control = Some(CacheMark::Ephemeral),
            // Reasoning can't have a cache mark, and a call is never in a user message.
            Self::Thinking { .. } | Self::RedactedThinking { .. } | Self::ToolUse { .. } => {}
        }
    }
}

/// The body of a request.
pub(in crate::codec) fn encode(asked: &EncodeInput<'_>) -> Vec<u8> {
    let request = asked.request;
    // Only the requests of a session share a prefix. Any other call is sent once, and a cache write costs extra.
    let mark = matches!(request.purpose, Purpose::Step { .. }).then_some(CacheMark::Ephemeral);
    let mut tools: Vec<_> = request.tools.iter().map(tool).collect();
    if let Some(last) = tools.last_mut() {
        last.cache_control = mark;
    }
    let mut tools: Vec<_> = tools.into_iter().map(OfferedTool::Function).collect();
    if request.purpose == Purpose::Search {
        tools.push(OfferedTool::Search { r#type: SEARCH_TOOL, name: "web_search", max_uses: MAX_SEARCHES });
    }
    let mut system = Vec::new();
    if !request.system.is_empty() {
        system.push(Block::Text { text: Cow::Borrowed(&*request.system), cache_control: mark });
    }
    let messages =
        messages::messages(asked, AllowedIds::Plain).into_iter().map(|message| form(message, asked));
    let messages = messages.filter(|message| !message.content.is_empty()).collect();
    let mut messages = roles::insert_fillers(asked.roles, messages, Message::speaker, Message::filler);
    if mark.is_some() {
        mark_for_cache(&mut messages);
    }
    let max_tokens = request.max_output.unwrap_or(DEFAULT_MAX_TOKENS);
    let thinking = thinking(asked, max_tokens, &messages);
    let adaptive = asked.effort.filter(|_| matches!(thinking, Some(Thinking::Adaptive { .. })));
    let output_config = adaptive.map(|sent| OutputConfig { effort: sent.effort.name() });
    to_bytes(&Body {
        model: asked.model,
        stream: true,
        max_tokens,
        thinking,
        output_config,
        tools,
        system,
        messages,
    })
}

/// The reasoning parameter. `max_tokens` limits reasoning and answer together, so the budget leaves room for the answer.
fn thinking(asked: &EncodeInput<'_>, max_tokens: u64, messages: &[Message<'_>]) -> Option<Thinking> {
    let sent = asked.effort?;
    if sent.effort == Effort::Off {
        return Some(Thinking::Disabled);
    }
    if sent.form == EffortForm::Level {
        return Some(Thinking::Adaptive { display: sent.with_summary.then_some("summarized") });
    }
    let room = max_tokens.saturating_sub(MIN_ANSWER_TOKENS.max(max_tokens / 4));
    let budget_tokens = sent.effort.budget_tokens().min(room);
    (budget_tokens >= MIN_BUDGET_TOKENS && may_begin_thinking(messages))
        .then_some(Thinking::Enabled { budget_tokens })
}

/// Whether the provider accepts a budget here. It wants the last answer to begin with reasoning if that answer called
/// tools. It doesn't if the model was asked without reasoning then, or was another one.
fn may_begin_thinking(messages: &[Message<'_>]) -> bool {
    let Some(answer) = messages.iter().rfind(|message| message.role == Role::Assistant) else { return true };
    let calls_tools = answer.content.iter().any(|block| matches!(block, Block::ToolUse { .. }));
    let reasons =
        matches!(answer.content.first(), Some(Block::Thinking { .. } | Block::RedactedThinking { .. }));
    reasons || !calls_tools
}

/// Marks two places for the cache: the end of this request, for the next request to read; and the last user message
/// before the last answer, where the previous request ended and set its own mark.
fn mark_for_cache(messages: &mut [Message<'_>]) {
    let last_answer = messages.iter().rposition(|message| message.role == Role::Assistant).unwrap_or(0);
    let (before, after) = messages.split_at_mut(last_answer);
    for part in [before, after] {
        let by_user = part.iter_mut().rfind(|message| message.role == Role::User);
        if let Some(block) = by_user.and_then(|message| message.content.last_mut()) {
            block.mark();
        }
    }
}

fn tool(schema: &ToolSchema) -> Tool<'_> {
    let ToolSchema { name, description, parameters } = schema;
    Tool { name, description, input_schema: parameters, cache_control: None }
}

fn form<'a>(message: messages::Message<'a>, asked: &EncodeInput<'a>) -> Message<'a> {
    let (role, content) = match message {
        messages::Message::Answer(written) => {
            (Role::Assistant, written.into_iter().filter_map(written_block).collect())
        }
        messages::Message::Results(results) => {
            (Role::User, results.into_iter().map(|result| result_block(result, asked)).collect())
        }
        messages::Message::User(text) | messages::Message::System(text) => {
            (Role::User, vec![Block::text(text)])
        }
        messages::Message::Picture(image) => (Role::User, vec![picture(image, asked)]),
    };
    Message { role, content }
}

fn written_block(written: AnswerItem<'_>) -> Option<Block<'_>> {
    match written {
        AnswerItem::Text(text) => Some(Block::text(text)),
        // The provider refuses reasoning without a signature.
        AnswerItem::Thought { signature: "", .. } => None,
        AnswerItem::Thought { text, signature } => Some(match signature.strip_prefix(REDACTED_PREFIX) {
            Some(data) => Block::RedactedThinking { data },
            None => Block::Thinking { thinking: text, signature },
        }),
        AnswerItem::Call { id, name, arguments, .. } => {
            Some(Block::ToolUse { id, name, input: RawObject(arguments) })
        }
    }
}

fn result_block<'a>(result: CallResult<'a>, asked: &EncodeInput<'a>) -> Block<'a> {
    let content = if result.pictures.is_empty() {
        Content::Text(result.content)
    } else {
        let pictures = result.pictures.iter().map(|image| picture(image, asked));
        Content::Pieces(std::iter::once(Block::text(result.content)).chain(pictures).collect())
    };
    let is_error = result.is_error.then_some(true);
    Block::ToolResult { tool_use_id: result.id, is_error, content, cache_control: None }
}

fn picture<'a>(image: &'a Image, asked: &EncodeInput<'a>) -> Block<'a> {
    match Base64Image::of(image, asked.request) {
        Some(data) => {
            let source = Source { r#type: "base64", media_type: &image.data.media, data };
            Block::Image { source, cache_control: None }
        }
        None => Block::text(NO_PICTURE.into()),
    }
}
