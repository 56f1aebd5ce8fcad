//! A model whose summaries come one after the other, whatever came of those before, and that can refuse prompts as too long.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use longhaul_model::{
    AnswerStream, CallPermit, Capabilities, FailureClass, Model, ModelFailure, Purpose, Request,
    ScriptedModel,
};
use serde_json::{Value, json};

use crate::script;

pub(crate) struct Staged {
    steps: ScriptedModel,
    stage: Mutex<Stage>,
    facts: Capabilities,
    /// Of the prompts of steps, those with these numbers are too long.
    refused: Range<usize>,
}

struct Stage {
    summaries: VecDeque<ScriptedModel>,
    requests: Vec<Request>,
}

impl Staged {
    /// Answers of steps, and answers to who asks for a summary.
    pub(crate) fn new(steps: &Value, summaries: Vec<Value>) -> Self {
        let of_its_own = |mut summary: Value| {
            // Whatever it says, it is a summary.
            if let Some(text) = summary.as_str() {
                summary = json!({"text": text});
            }
            summary["summary"] = json!(true);
            script(&json!([summary]))
        };
        let summaries = summaries.into_iter().map(of_its_own).collect();
        let stage = Mutex::new(Stage { summaries, requests: vec![] });
        Self { steps: script(steps), stage, facts: Capabilities::default(), refused: 0..0 }
    }

    /// Refuses the prompts of steps with these numbers, from 0.
    pub(crate) fn refusing(self, refused: Range<usize>) -> Self {
        Self { refused, ..self }
    }

    /// Can't call tools.
    pub(crate) fn without_tools(self) -> Self {
        Self { facts: Capabilities { tools: false, ..Capabilities::default() }, ..self }
    }

    pub(crate) fn shared(self) -> Arc<Self> {
        Arc::new(self)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.stage.lock().unwrap().requests.clone()
    }

    /// What was asked for, in its order: `step`, `summary`, `extract` or `consolidate`.
    pub(crate) fn asked(&self) -> Vec<&'static str> {
        self.requests().iter().map(|request| request.purpose.name()).collect()
    }
}

#[async_trait]
impl Model for Staged {
    fn name(&self) -> &str {
        "scripted/staged"
    }

    async fn capabilities(&self) -> Capabilities {
        self.facts.clone()
    }

    async fn ask(
        &self,
        request: Request,
        permit: &CallPermit,
    ) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        let next = {
            let mut stage = self.stage.lock().unwrap();
            let is_step = |request: &&Request| matches!(request.purpose, Purpose::Step { .. });
            let steps = stage.requests.iter().filter(is_step).count();
            stage.requests.push(request.clone());
            match request.purpose {
                Purpose::Step { .. } if self.refused.contains(&steps) => {
                    return Err(ModelFailure::new(FailureClass::TooLong, "the prompt is too long"));
                }
                Purpose::Step { .. }
                | Purpose::Extract { .. }
                | Purpose::Consolidate { .. }
                | Purpose::Search => None,
                Purpose::Summary { .. } => Some(stage.summaries.pop_front().expect("one more summary")),
            }
        };
        match next {
            None => self.steps.ask(request, permit).await,
            Some(summary) => {
                let purpose = Purpose::Summary { summaries_before: 0 };
                summary.ask(Request { purpose, ..request }, permit).await
            }
        }
    }
}
