use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::codec::part_writer::{OpenBlock, PartWriter};
use crate::codec::{Decoder, Fault, Frame, ProviderError, error_body, parse, token_count};
use crate::{AnswerPart, SearchSource, StopKind, StopReason, TokenCounts};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Response<'a> {
    #[serde(borrow)]
    candidates: Option<Vec<Candidate<'a>>>,
    prompt_feedback: Value,
    usage_metadata: Value,
    error: Value,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Candidate<'a> {
    #[serde(borrow)]
    content: Option<Content<'a>>,
    finish_reason: Option<String>,
    finish_message: Option<String>,
    grounding_metadata: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Content<'a> {
    #[serde(borrow)]
    parts: Option<Vec<Piece<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Piece<'a> {
    text: Option<String>,
    thought: Option<bool>,
    #[serde(borrow)]
    function_call: Option<FunctionCall<'a>>,
    thought_signature: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FunctionCall<'a> {
    id: Option<String>,
    name: String,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

/// Decodes frames into parts.
#[derive(Default)]
pub(in crate::codec) struct Generated {
    blocks: PartWriter,
    usage: Option<TokenCounts>,
}

impl Generated {
    /// `None` if the piece is invalid.
    fn write_piece(&mut self, piece: Piece<'_>, parts: &mut VecDeque<AnswerPart>) -> Option<()> {
        if let Some(call) = piece.function_call {
            if call.name.is_empty() {
                return None;
            }
            self.blocks.begin_call(call.id.filter(|id| !id.is_empty()), call.name, parts);
            let arguments = call.args.map(RawValue::get).filter(|arguments| *arguments != "null");
            self.blocks.arguments(arguments.unwrap_or_default().to_owned(), parts);
            self.sign(piece.thought_signature);
            // Gemini sends each call in one piece.
            self.blocks.close(parts);
        } else if piece.thought == Some(true) {
            self.blocks.reasoning(piece.text.unwrap_or_default(), parts);
            if self.blocks.open() == OpenBlock::Reasoning {
                self.sign(piece.thought_signature);
            }
        } else {
            self.blocks.text(piece.text.unwrap_or_default(), parts);
        }
        Some(())
    }

    fn sign(&mut self, signature: Option<String>) {
        if let Some(signature) = signature.filter(|signature| !signature.is_empty()) {
            self.blocks.sign(&signature);
        }
    }

    /// Gemini reports the usage with every frame, and the counts grow.
    fn report_usage(&mut self, usage: &Value, parts: &mut VecDeque<AnswerPart>) {
        let answered = token_count(usage, "/candidatesTokenCount");
        let reasoned = token_count(usage, "/thoughtsTokenCount");
        let tokens = TokenCounts {
            input: token_count(usage, "/promptTokenCount"),
            output: answered.or(reasoned).map(|_| answered.unwrap_or(0) + reasoned.unwrap_or(0)),
            cached: token_count(usage, "/cachedContentTokenCount"),
            written: None,
        };
        if tokens != TokenCounts::default() && self.usage != Some(tokens) {
            self.usage = Some(tokens);
            parts.push_back(AnswerPart::Usage(tokens));
        }
    }

    /// The pages that the provider's search found come with the last frames.
    fn report_sources(grounding: &Value, parts: &mut VecDeque<AnswerPart>) {
        let found = grounding.get("groundingChunks").and_then(Value::as_array);
        for page in found.into_iter().flatten().filter_map(|found| found.get("web")) {
            let field = |name: &str| page.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let (title, url) = (field("title"), field("uri"));
            parts.extend((!url.is_empty()).then_some(AnswerPart::Source(SearchSource { title, url })));
        }
    }

    fn end(&mut self, stop: StopReason, parts: &mut VecDeque<AnswerPart>) {
        self.blocks.close(parts);
        parts.push_back(AnswerPart::End(stop));
    }
}

impl Decoder for Generated {
    fn decode(&mut self, frame: Frame<'_>, parts: &mut VecDeque<AnswerPart>) -> Result<(), Fault> {
        let Some(response) = parse::<Response<'_>>(frame)? else { return Ok(()) };
        if !response.error.is_null() {
            return Err(Fault::Provider(error_body::parse_error_object(&response.error).unwrap_or_default()));
        }
        let Some(candidate) = response.candidates.and_then(|list| list.into_iter().next()) else {
            self.report_usage(&response.usage_metadata, parts);
            if let Some(reason) = response.prompt_feedback.get("blockReason").and_then(Value::as_str) {
                self.end(StopReason::new(StopKind::Refused, reason), parts);
            }
            return Ok(());
        };
        for piece in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
            self.write_piece(piece, parts).ok_or_else(|| Fault::unreadable(frame.data))?;
        }
        Self::report_sources(&candidate.grounding_metadata, parts);
        self.report_usage(&response.usage_metadata, parts);
        let open = |word: &str| word.is_empty() || word == "FINISH_REASON_UNSPECIFIED";
        let Some(word) = candidate.finish_reason.filter(|word| !open(word)) else { return Ok(()) };
        match stop_kind(&word) {
            Some(kind) => {
                self.end(StopReason::new(kind, word), parts);
                Ok(())
            }
            None => {
                let message = candidate.finish_message.filter(|message| !message.is_empty());
                let message = message.unwrap_or_else(|| format!("the provider ended the answer with {word}"));
                Err(Fault::Provider(ProviderError { codes: vec![word], message, ..ProviderError::default() }))
            }
        }
    }
}

/// What a finish reason means. `None` if it is a failure.
fn stop_kind(word: &str) -> Option<StopKind> {
    match word {
        "STOP" | "FUNCTION_CALL" => Some(StopKind::Finished),
        "MAX_TOKENS" => Some(StopKind::Length),
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => Some(StopKind::Refused),
        _ => None,
    }
}
