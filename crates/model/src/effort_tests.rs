use std::sync::Arc;

use longhaul_protocol::{Item, Role, ToolSchema};
use serde_json::{Value, json};

use super::*;
use crate::codec::EncodeInput;
use crate::{Protocol, Quirks, Request, RoleOrder};

const STEP: Purpose = Purpose::Step { answers_before: 0 };

fn sent(effort: Effort, form: EffortForm) -> SentEffort {
    SentEffort::new(effort, STEP, form, None).unwrap()
}

fn usual_form(protocol: Protocol) -> EffortForm {
    match protocol {
        Protocol::OpenaiChat | Protocol::OpenaiResponses => EffortForm::Level,
        Protocol::Anthropic | Protocol::Gemini => EffortForm::Budget,
    }
}

/// What a body has beyond its messages, its tools and its model.
fn fields(protocol: Protocol, effort: Option<SentEffort>, off: Option<&str>, items: Vec<Item>) -> Value {
    let items = items.into_iter().map(Arc::new).collect();
    let (name, description, parameters) = ("exec".to_owned(), String::new(), json!({"type": "object"}));
    let tools = Arc::new([ToolSchema { name, description, parameters }]);
    let request = Request { items, tools, max_output: Some(16_000), ..Request::default() };
    let asked = EncodeInput {
        request: &request,
        model: "m",
        author: "here/m",
        quirks: &Quirks { no_stream_options: true, ..Quirks::default() },
        roles: RoleOrder::System,
        reasons: false,
        effort,
        effort_off: off,
    };
    let mut body: Value = serde_json::from_slice(&protocol.encode(&asked)).unwrap();
    for field in ["model", "stream", "store", "tools", "parallel_tool_calls", "messages", "input", "contents"]
    {
        body.as_object_mut().unwrap().remove(field);
    }
    body
}

fn hi() -> Vec<Item> {
    vec![Item::Text { role: Role::User, text: "Hi.".to_owned() }]
}

#[test]
fn each_protocol_states_the_effort_in_its_own_way() {
    let of = |protocol, effort| fields(protocol, Some(sent(effort, usual_form(protocol))), None, hi());

    let chat = |word: &str| json!({"max_tokens": 16_000, "reasoning_effort": word});
    assert_eq!(of(Protocol::OpenaiChat, Effort::Low), chat("low"));
    assert_eq!(of(Protocol::OpenaiChat, Effort::Off), chat("none"));
    let responses = |word: &str| {
        json!({"max_output_tokens": 16_000, "include": ["reasoning.encrypted_content"],
               "reasoning": {"effort": word, "summary": "auto"}})
    };
    assert_eq!(of(Protocol::OpenaiResponses, Effort::Medium), responses("medium"));
    let off = json!({"max_output_tokens": 16_000, "reasoning": {"effort": "none"}});
    assert_eq!(of(Protocol::OpenaiResponses, Effort::Off), off);
    let anthropic = |thinking: Value| json!({"max_tokens": 16_000, "thinking": thinking});
    let budget = |tokens: u64| anthropic(json!({"type": "enabled", "budget_tokens": tokens}));
    assert_eq!(of(Protocol::Anthropic, Effort::Low), budget(2_048));
    assert_eq!(of(Protocol::Anthropic, Effort::High), budget(12_000));
    assert_eq!(of(Protocol::Anthropic, Effort::Off), anthropic(json!({"type": "disabled"})));
    let gemini = |thinking: Value| json!({"generationConfig": {"maxOutputTokens": 16_000, "thinkingConfig": thinking}});
    let thoughts = |tokens: u64| gemini(json!({"includeThoughts": true, "thinkingBudget": tokens}));
    assert_eq!(of(Protocol::Gemini, Effort::Medium), thoughts(8_192));
    assert_eq!(of(Protocol::Gemini, Effort::High), thoughts(12_000));
    assert_eq!(of(Protocol::Gemini, Effort::Off), gemini(json!({"thinkingBudget": 0})));
}

#[test]
fn models_that_take_levels_or_can_not_be_turned_off_get_what_they_take() {
    let level = |effort| Some(sent(effort, EffortForm::Level));

    let adaptive = fields(Protocol::Anthropic, level(Effort::High), None, hi());
    assert_eq!(
        adaptive,
        json!({"max_tokens": 16_000, "thinking": {"type": "adaptive", "display": "summarized"},
               "output_config": {"effort": "high"}})
    );
    let gemini = fields(Protocol::Gemini, level(Effort::Low), None, hi());
    let config = &gemini["generationConfig"]["thinkingConfig"];
    assert_eq!(config, &json!({"includeThoughts": true, "thinkingLevel": "low"}));
    let minimal = fields(Protocol::Gemini, level(Effort::Off), Some("minimal"), hi());
    assert_eq!(minimal["generationConfig"]["thinkingConfig"], json!({"thinkingLevel": "minimal"}));
    let least = Some(sent(Effort::Off, EffortForm::Budget));
    let least = fields(Protocol::Gemini, least, Some("128"), hi());
    assert_eq!(least["generationConfig"]["thinkingConfig"], json!({"thinkingBudget": 128}));
    let openai = fields(Protocol::OpenaiResponses, level(Effort::Off), Some("minimal"), hi());
    assert_eq!(openai["reasoning"], json!({"effort": "minimal"}));
}

#[test]
fn an_empty_effort_sends_nothing() {
    for protocol in [Protocol::OpenaiChat, Protocol::OpenaiResponses, Protocol::Anthropic, Protocol::Gemini] {
        let body = fields(protocol, None, Some("minimal"), hi()).to_string();

        assert!(EFFORT_WORDS.iter().all(|word| !body.contains(word)), "{protocol:?}: {body}");
    }
}

/// Anthropic refuses a budget where the last answer called a tool without reasoning first.
#[test]
fn a_budget_waits_until_an_answer_that_called_tools_without_reasoning_is_over() {
    let call = longhaul_protocol::CallId::from_bits(1);
    let (name, arguments) = ("exec".to_owned(), "{}".to_owned());
    let mut items = hi();
    items.push(Item::ToolCall { call, wire_id: None, name, arguments, signature: None });
    items.push(Item::ToolResult { call, content: "ok".to_owned(), images: vec![], is_error: false });
    let effort = Some(sent(Effort::Low, EffortForm::Budget));

    let within = fields(Protocol::Anthropic, effort, None, items.clone());
    let signature = Some("here/m EqQB".to_owned());
    items.insert(1, Item::Reasoning { text: "Hm.".to_owned(), signature });
    let with_reasoning = fields(Protocol::Anthropic, effort, None, items);

    assert_eq!(within.get("thinking"), None);
    assert_eq!(with_reasoning["thinking"]["budget_tokens"], 2_048);
}

#[test]
fn a_small_answer_leaves_no_room_for_a_budget() {
    let request = Request { items: vec![], max_output: Some(1_500), ..Request::default() };
    let asked = EncodeInput {
        request: &request,
        model: "m",
        author: "here/m",
        quirks: &Quirks::default(),
        roles: RoleOrder::System,
        reasons: true,
        effort: Some(sent(Effort::High, EffortForm::Budget)),
        effort_off: None,
    };

    let body: Value = serde_json::from_slice(&Protocol::Anthropic.encode(&asked)).unwrap();

    assert_eq!(body.get("thinking"), None);
}

#[test]
fn a_refusal_leads_to_a_plainer_form_and_then_to_none() {
    let refusal = |message: &str| ModelFailure {
        status: Some(400),
        ..ModelFailure::new(FailureClass::Invalid, message)
    };
    let budget = sent(Effort::High, EffortForm::Budget);
    let level = SentEffort { form: EffortForm::Level, ..budget };
    let unseen = SentEffort { with_summary: false, ..level };
    let off = sent(Effort::Off, EffortForm::Budget);

    let adaptive = refusal("\"thinking.type.enabled\" is not supported. Use \"thinking.type.adaptive\".");
    let summary = refusal("Your organization must be verified to generate reasoning summaries.");
    let unsupported = refusal("Unsupported parameter: 'reasoning.effort'");

    assert_eq!(budget.after_refusal(&adaptive), Some(Some(level)));
    assert_eq!(level.after_refusal(&summary), Some(Some(unseen)));
    assert_eq!(unseen.after_refusal(&unsupported), Some(None));
    assert_eq!(off.after_refusal(&adaptive), Some(None));
    assert_eq!(level.after_refusal(&refusal("no such tool")), None);
    let overloaded = ModelFailure::new(FailureClass::Overloaded, "reasoning models are busy");
    assert_eq!(level.after_refusal(&overloaded), None);
    assert_eq!(SentEffort::new(Effort::High, STEP, EffortForm::Budget, Some(budget.learned(None))), None);
    let learned = Some(budget.learned(Some(unseen)));
    assert_eq!(SentEffort::new(Effort::High, STEP, EffortForm::Budget, learned), Some(unseen));
    assert_eq!(SentEffort::new(Effort::Off, STEP, EffortForm::Budget, learned), Some(off));
}

#[test]
fn memory_reasons_little() {
    let extract = Purpose::Extract { extracts_before: 0 };
    let of = |effort| SentEffort::new(effort, extract, EffortForm::Level, None).unwrap().effort;

    assert_eq!((of(Effort::High), of(Effort::Off)), (Effort::Low, Effort::Off));
}
