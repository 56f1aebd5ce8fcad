//! Structured answers: a model is asked for one tool call, and its answer is parsed. Pure: the caller sends and
//! retries.
//!
//! [`StructuredAsk`] holds what changes from request to request:
//!
//! | what happened | what the next request does |
//! | --- | --- |
//! | the model can't call tools | it asks for the same as text ([`StructuredAsk::switch_to_text`]) |
//! | the prompt was too long | it has half the budget ([`StructuredAsk::halve_budget`]) |
//! | the answer can't be used | it says what was wrong ([`StructuredAsk::reject_answer`]) |
//! | the answer was cut at its length limit | the same, with half the budget: a smaller prompt asks for a shorter answer |

use std::sync::Arc;

use longhaul_protocol::{Item, Role, ToolSchema};
use serde_json::Value;

use crate::estimate;
use crate::token_estimate::estimate_text;

/// The most opening braces of a text at which [`list_entries`] tries to parse an object. Each attempt ends at the end
/// of the object or at the first error.
const MAX_OBJECT_STARTS: usize = 20;

/// The form in which a model should give a structured answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerForm {
    /// As the arguments of a tool call.
    ToolCall,
    /// M18: as text, for models that can't call tools.
    Text,
}

/// A request for a structured answer: a system prompt, one message, and the tool if the form is a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StructuredPrompt {
    pub system: String,
    pub text: String,
    pub tools: Vec<ToolSchema>,
}

impl StructuredPrompt {
    /// The tokens of the whole request, by the uncorrected estimate.
    pub fn tokens(&self) -> u64 {
        estimate(&self.system, &self.tools, &[]) + estimate_text(&self.text)
    }
}

/// When a [`StructuredAsk`] gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StructuredLimits {
    /// It gives up after this many unusable answers in a row. With 2, the model gets one chance to fix its answer.
    pub unusable_answers: u32,
    /// The same limit for answers that were cut at their length limit. It applies while the budget can be halved.
    pub cut_answers: u32,
    pub halvings: u32,
    /// The budget is never halved below this many tokens.
    pub min_budget: u64,
}

/// A request for a structured answer. Failures and unusable answers change its form, budget and complaint.
#[derive(Debug, Clone)]
pub struct StructuredAsk {
    pub form: AnswerForm,
    /// The most tokens of the prompt, or of the material in it.
    pub budget: u64,
    /// The problem of the last answer, for the next prompt.
    pub complaint: Option<String>,
    limits: StructuredLimits,
    halvings: u32,
    unusable: u32,
}

impl StructuredAsk {
    pub fn new(form: AnswerForm, budget: u64, limits: StructuredLimits) -> Self {
        Self { form, budget, complaint: None, limits, halvings: 0, unusable: 0 }
    }

    /// Asks for text from now on, because the model can't call tools. Returns false if text was already asked for.
    pub fn switch_to_text(&mut self) -> bool {
        std::mem::replace(&mut self.form, AnswerForm::Text) == AnswerForm::ToolCall
    }

    /// Halves the budget. Returns false if it is already at its minimum.
    pub fn halve_budget(&mut self) -> bool {
        let may_halve = self.halvings < self.limits.halvings && self.budget / 2 >= self.limits.min_budget;
        if may_halve {
            (self.halvings, self.budget) = (self.halvings + 1, self.budget / 2);
        }
        may_halve
    }

    /// Records why the answer can't be used. With `is_cut` the answer reached its length limit, so the next budget is
    /// half of this one. Returns the reason as an error if the model should not be asked again.
    pub fn reject_answer(&mut self, reason: String, is_cut: bool) -> Result<(), String> {
        self.unusable += 1;
        let is_halved = is_cut && self.unusable < self.limits.cut_answers && self.halve_budget();
        if !is_halved && self.unusable >= self.limits.unusable_answers {
            return Err(reason);
        }
        self.complaint = Some(reason);
        Ok(())
    }

    /// Records that the answer was used. The form and the budget stay for the next question.
    pub fn accept_answer(&mut self) {
        (self.complaint, self.unusable) = (None, 0);
    }
}

/// The arguments of each call of a tool in an answer.
pub fn call_arguments<'a>(answer: &'a [Arc<Item>], tool: &str) -> impl Iterator<Item = &'a str> {
    answer.iter().filter_map(move |item| match &**item {
        Item::ToolCall { name, arguments, .. } if name.trim().eq_ignore_ascii_case(tool) => {
            Some(arguments.as_str())
        }
        _ => None,
    })
}

/// The text of an answer. Each block begins on a new line.
pub fn answer_text(answer: &[Arc<Item>]) -> String {
    let texts = answer.iter().filter_map(|item| match &**item {
        Item::Text { role: Role::Assistant, text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The entries of the list with this name, from all calls of the tool. If there is no call, uses the first JSON
/// object in the text that has such a list, because a model may write the call down instead of making it. The error
/// says what is wrong with the answer as a whole.
pub fn list_entries(answer: &[Arc<Item>], tool: &str, list: &str) -> Result<Vec<Value>, String> {
    let calls: Vec<_> =
        call_arguments(answer, tool).map(|arguments| list_in_arguments(arguments, list)).collect();
    if calls.is_empty() {
        return list_in_text(&answer_text(answer), list)
            .ok_or_else(|| format!("there was neither a call of {tool} nor an object with a list `{list}`"));
    }
    let first_error = calls.iter().find_map(|read| read.as_ref().err()).cloned();
    let read: Vec<Vec<Value>> = calls.into_iter().flatten().collect();
    match first_error {
        Some(error) if read.is_empty() => Err(format!("the arguments of {tool}: {error}")),
        _ => Ok(read.into_iter().flatten().collect()),
    }
}

fn list_in_arguments(arguments: &str, list: &str) -> Result<Vec<Value>, String> {
    let object = serde_json::from_str(arguments).map_err(|error| format!("not JSON: {error}"))?;
    list_in_object(object, list).ok_or_else(|| format!("no list `{list}`"))
}

fn list_in_text(text: &str, list: &str) -> Option<Vec<Value>> {
    let object = |start: usize| serde_json::Deserializer::from_str(&text[start..]).into_iter().next()?.ok();
    let starts = text.match_indices('{').take(MAX_OBJECT_STARTS);
    starts.filter_map(|(start, _)| object(start)).find_map(|object| list_in_object(object, list))
}

fn list_in_object(mut object: Value, list: &str) -> Option<Vec<Value>> {
    let entries = match object.get_mut(list).map(Value::take)? {
        // Some models write the list as a string that contains JSON.
        Value::String(text) => serde_json::from_str(&text).ok()?,
        entries => entries,
    };
    match entries {
        Value::Array(entries) => Some(entries),
        _ => None,
    }
}

#[cfg(test)]
#[path = "structured_tests.rs"]
mod tests;
