//! Model calls in the background. No user waits for them, so they retry less, and a budget may turn them off.

use std::sync::Arc;

use async_trait::async_trait;
use longhaul_context::{AnswerForm, StructuredPrompt};
use longhaul_model::{
    CallPermit, Capabilities, FailureClass, Model, ModelFailure, Purpose, RefusedSize, Request,
    RetryDecision, RetryPolicy, RetryState, WholeAnswer, complete,
};
use longhaul_protocol::{Cause, Item, Role, Usage};

/// Replaces secrets in a text.
pub type RedactFn = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// The budget of background calls.
#[async_trait]
pub trait CallBudget: Send + Sync {
    /// Reserves a call with a prompt and an answer of at most so many tokens. Fails if the budget is spent.
    async fn reserve(&self, prompt: u64, answer: u64) -> Result<Box<dyn ReservedCall>, ModelFailure>;
}

/// A call that was reserved. Dropping it settles what the call used.
#[async_trait]
pub trait ReservedCall: Send + Sync {
    fn permit(&self) -> &CallPermit;

    /// The most tokens of the answer. It may be less than was asked for.
    fn max_answer(&self) -> u64;

    /// Settles what the call used. The caller records its usage after this.
    async fn settle(self: Box<Self>) {}
}

/// No budget: every call is made. For tests, and for programs that keep account themselves.
pub struct Unbudgeted;

struct UnbudgetedCall(CallPermit, u64);

#[async_trait]
impl CallBudget for Unbudgeted {
    async fn reserve(&self, _: u64, answer: u64) -> Result<Box<dyn ReservedCall>, ModelFailure> {
        Ok(Box::new(UnbudgetedCall(CallPermit::unreserved(Cause::Memory), answer)))
    }
}

impl ReservedCall for UnbudgetedCall {
    fn permit(&self) -> &CallPermit {
        &self.0
    }

    fn max_answer(&self) -> u64 {
        self.1
    }
}

/// A model for background calls, with its limits.
#[derive(Clone)]
pub struct BackgroundModel {
    pub model: Arc<dyn Model>,
    pub capabilities: Capabilities,
    /// The retry policy of the foreground, from which that of the background is derived.
    pub retry: RetryPolicy,
    /// The context window in tokens, if it is known.
    pub window: Option<u64>,
    /// The most tokens of an answer, if configured.
    pub max_output: Option<u64>,
    /// Reserves each call.
    pub budget: Arc<dyn CallBudget>,
    /// Applied to every text that is stored.
    pub redact: RedactFn,
}

impl BackgroundModel {
    /// The form in which the model can give a structured answer.
    pub fn answer_form(&self) -> AnswerForm {
        if self.capabilities.tools { AnswerForm::ToolCall } else { AnswerForm::Text }
    }

    /// The most tokens that an answer may have.
    pub fn answer_tokens(&self) -> u64 {
        self.capabilities.answer_tokens(self.max_output, self.window)
    }

    /// The most tokens that a prompt may have. `None` if the window is unknown.
    pub fn usable_tokens(&self) -> Option<u64> {
        self.window.map(|window| window.saturating_sub(self.answer_tokens()))
    }

    /// Sends a prompt, with retries. Adds the usage of every attempt that cost something to `usages`,
    /// including failed ones. If the prompt
    /// is too long or the model has no tools, returns the failure at once, because the caller has to change the
    /// prompt.
    pub(crate) async fn ask(
        &self,
        prompt: &StructuredPrompt,
        purpose: Purpose,
        usages: &mut Vec<Usage>,
    ) -> Result<WholeAnswer, ModelFailure> {
        let mut retries = RetryState::new(self.retry.for_background());
        loop {
            let reserved = self.budget.reserve(prompt.tokens(), self.answer_tokens()).await?;
            let request = Request {
                system: prompt.system.as_str().into(),
                tools: prompt.tools.as_slice().into(),
                items: vec![Arc::new(Item::Text { role: Role::User, text: prompt.text.clone() })],
                max_output: Some(reserved.max_answer()),
                purpose,
                ..Request::default()
            };
            let completion = complete(&*self.model, request, &self.capabilities, reserved.permit()).await;
            reserved.settle().await;
            let is_reported = completion.usage.input.is_some() || completion.usage.output.is_some();
            if is_reported || completion.answer.is_ok() {
                usages.push(completion.usage);
            }
            let failure = match completion.answer {
                Ok(whole) => return Ok(whole),
                Err(failure) => failure,
            };
            if failure.class == FailureClass::TooLong {
                // The next job starts with the corrected window.
                let size = RefusedSize { prompt: prompt.tokens(), answer: self.answer_tokens() };
                self.model.correct_limits(&failure, size).await;
            }
            if matches!(failure.class, FailureClass::TooLong | FailureClass::NoTools) {
                return Err(failure);
            }
            match retries.failed(&failure, fastrand::f64()) {
                RetryDecision::Wait(wait) => tokio::time::sleep(wait.delay).await,
                RetryDecision::GiveUp(spent) => {
                    return Err(ModelFailure::new(failure.class, (self.redact)(&spent.to_string())));
                }
            }
        }
    }
}
