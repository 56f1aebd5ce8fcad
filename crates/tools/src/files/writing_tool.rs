//! The part that `write_file` and `edit_file` share: a call is planned, recorded, performed, and checked after a crash.

use std::marker::PhantomData;
use std::sync::Arc;

use async_trait::async_trait;
use longhaul_protocol::{FileWrite, ToolStarted};
use serde::de::DeserializeOwned;

use super::write_plan::{WritePlan, resume};
use crate::blocking_run::run_to_completion;
use crate::{PreparedCall, ResumedCall, Scope, Tool, ToolDefinition, ToolInvocation, ToolOutcome, arguments};

/// The arguments of a tool that writes one file.
pub(super) trait WriteArguments: DeserializeOwned + Send + 'static {
    /// Decides what the file will hold. Changes nothing.
    fn plan(self, scope: &Scope, call: &ToolInvocation) -> Result<WritePlan, ToolOutcome>;

    /// How much the call writes, for the success text.
    fn amount(&self) -> usize;

    /// The result of a write that worked. It depends only on the record and the arguments, so that it is the same after a crash.
    fn success_text(shown: &str, write: &FileWrite, amount: usize) -> String;
}

/// A tool that writes one file.
pub(super) struct WritingTool<A> {
    definition: ToolDefinition,
    scope: Arc<Scope>,
    arguments: PhantomData<fn() -> A>,
}

impl<A: WriteArguments> WritingTool<A> {
    pub(super) fn new(definition: ToolDefinition, scope: Arc<Scope>) -> Self {
        Self { definition, scope, arguments: PhantomData }
    }
}

#[async_trait]
impl<A: WriteArguments> Tool for WritingTool<A> {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn prepare(&self, call: &ToolInvocation) -> Result<PreparedCall, ToolOutcome> {
        let arguments: A = arguments::parse(&self.definition, &call.arguments)?;
        let amount = arguments.amount();
        let (scope, call) = (Arc::clone(&self.scope), call.clone());
        let plan = run_to_completion(move || arguments.plan(&scope, &call)).await?;
        let (scope, write, caution) = (Arc::clone(&self.scope), plan.write.clone(), plan.caution.clone());
        let diff = plan.diff.clone();
        let run = move |_| async move {
            let success = move |shown: &str, write: &FileWrite| A::success_text(shown, write, amount);
            run_to_completion(move || Ok(plan.perform(&scope, success)))
                .await
                .unwrap_or_else(|problem| problem)
        };
        Ok(PreparedCall::new(run).writing(write).with_caution(caution).with_diff(diff))
    }

    async fn resume(&self, call: &ToolInvocation, started: &ToolStarted) -> ResumedCall {
        let amount = match arguments::parse::<A>(&self.definition, &call.arguments) {
            Ok(arguments) => arguments.amount(),
            Err(problem) => return ResumedCall::Unknown(problem.content),
        };
        let (scope, started) = (Arc::clone(&self.scope), started.clone());
        let success = move |shown: &str, write: &FileWrite| A::success_text(shown, write, amount);
        let resumed = run_to_completion(move || Ok(resume(&scope, &started, success)));
        resumed.await.unwrap_or_else(|problem| ResumedCall::Unknown(problem.content))
    }
}
