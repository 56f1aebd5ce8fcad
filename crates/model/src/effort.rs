//! How much a model reasons before it answers (`model.effort`): the forms in which servers take it, and what to send
//! after a refusal.

use serde::{Deserialize, Serialize};

use crate::{FailureClass, ModelFailure, Purpose};

#[cfg(test)]
#[path = "effort_tests.rs"]
mod tests;

/// Words in an error about reasoning parameters.
const EFFORT_WORDS: [&str; 3] = ["reasoning", "thinking", "effort"];
/// Words in an error about the request for a summary of the reasoning.
const SUMMARY_WORDS: [&str; 3] = ["summary", "summaries", "display"];
/// Words with which a server asks for levels in place of budgets.
const LEVEL_WORDS: [&str; 3] = ["adaptive", "thinking_level", "thinkinglevel"];

/// How much a model reasons before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// Not at all, or as little as the model can.
    Off,
    Low,
    Medium,
    High,
}

impl Effort {
    pub const ALL: [Self; 4] = [Self::Off, Self::Low, Self::Medium, Self::High];

    /// Its name in the config.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// The tokens of reasoning that it stands for, where a server takes a number.
    pub(crate) fn budget_tokens(self) -> u64 {
        match self {
            Self::Off => 0,
            Self::Low => 2_048,
            Self::Medium => 8_192,
            Self::High => 24_576,
        }
    }

    /// The effort for a request. Memory and searches need little.
    fn for_purpose(self, purpose: Purpose) -> Self {
        match purpose {
            Purpose::Step { .. } | Purpose::Summary { .. } => self,
            Purpose::Extract { .. } | Purpose::Consolidate { .. } | Purpose::Search => self.min(Self::Low),
        }
    }
}

/// The form in which a model takes the effort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EffortForm {
    /// A number of tokens.
    Budget,
    /// A word such as `low`.
    Level,
}

/// The effort as a request states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SentEffort {
    /// The effort that is configured.
    declared: Effort,
    /// The effort for this request.
    pub(crate) effort: Effort,
    pub(crate) form: EffortForm,
    /// Whether to ask for a summary of the reasoning, which can be shown.
    pub(crate) with_summary: bool,
}

/// What a server accepted after it had refused something else. It is valid only while the configured effort stays the
/// same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LearnedEffort {
    declared: Effort,
    /// `None` if it accepts no effort at all.
    form: Option<EffortForm>,
    with_summary: bool,
}

impl SentEffort {
    pub(crate) fn new(
        declared: Effort,
        purpose: Purpose,
        form: EffortForm,
        learned: Option<LearnedEffort>,
    ) -> Option<Self> {
        let usual = Self { declared, effort: declared.for_purpose(purpose), form, with_summary: true };
        match learned.filter(|learned| learned.declared == declared) {
            Some(LearnedEffort { form, with_summary, .. }) => {
                Some(Self { form: form?, with_summary, ..usual })
            }
            None => Some(usual),
        }
    }

    /// What to send in place of this after a refusal. The outer `None` means that the refusal is not about the
    /// effort, the inner one that none is sent.
    pub(crate) fn after_refusal(self, failure: &ModelFailure) -> Option<Option<Self>> {
        let is_refusal = matches!(failure.class, FailureClass::Invalid | FailureClass::NotFound)
            && matches!(failure.status, Some(400 | 404 | 422));
        let message = failure.message.to_lowercase();
        let names = |words: &[&str]| words.iter().any(|word| message.contains(word));
        if !is_refusal || !names(&EFFORT_WORDS) {
            return None;
        }
        if self.effort == Effort::Off {
            return Some(None);
        }
        if self.form == EffortForm::Budget && names(&LEVEL_WORDS) {
            return Some(Some(Self { form: EffortForm::Level, ..self }));
        }
        if self.with_summary && names(&SUMMARY_WORDS) {
            return Some(Some(Self { with_summary: false, ..self }));
        }
        Some(None)
    }

    /// What to remember if the server accepts `sent` in place of this.
    pub(crate) fn learned(self, sent: Option<Self>) -> LearnedEffort {
        LearnedEffort {
            declared: self.declared,
            form: sent.map(|sent| sent.form),
            with_summary: sent.is_some_and(|sent| sent.with_summary),
        }
    }
}
