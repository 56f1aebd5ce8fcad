//! The part that `delete_file`, `move_file` and `patch` share: the changes of a call are planned, recorded, performed,
//! and checked after a crash.

use std::marker::PhantomData;
use std::sync::Arc;

use async_trait::async_trait;
use longhaul_protocol::{FileChange, ToolStarted};
use serde::de::DeserializeOwned;

use super::change_plan::{ChangePlan, resume};
use super::write_plan::{FileBeforeWrite, SizeLimit};
use crate::blocking_run::run_to_completion;
use crate::{PreparedCall, ResumedCall, Scope, Tool, ToolDefinition, ToolInvocation, ToolOutcome, arguments};

/// What a plan is made from.
pub(super) struct PlanContext<'a> {
    pub(super) scope: &'a Scope,
    pub(super) call: &'a ToolInvocation,
    /// After a crash, the changes that are left to make.
    rest: Option<&'a [FileChange]>,
}

impl PlanContext<'_> {
    /// A file of the call as it is now. A path that ends with a link is refused.
    pub(super) fn load(&self, path: &str, largest: SizeLimit) -> Result<FileBeforeWrite, ToolOutcome> {
        self.scope.refuse_link(path)?;
        Ok(FileBeforeWrite::load(self.scope, self.call, path, largest)?)
    }

    /// Whether the file is still to be changed.
    pub(super) fn is_pending(&self, file: &FileBeforeWrite) -> bool {
        self.rest.is_none_or(|rest| rest.iter().any(|change| change.path == file.key))
    }
}

/// The arguments of a tool that may change several files or remove one.
pub(super) trait ChangeArguments: DeserializeOwned + Send + 'static {
    /// Decides what each file that is still to be changed will be. Changes nothing.
    fn plan(&self, context: &PlanContext<'_>) -> Result<ChangePlan, ToolOutcome>;

    /// The result of changes that worked. It depends only on the arguments, so that it is the same after a crash.
    fn success_text(&self) -> String;
}

/// A tool that may change several files or remove one.
pub(super) struct ChangingTool<A> {
    definition: ToolDefinition,
    scope: Arc<Scope>,
    arguments: PhantomData<fn() -> A>,
}

impl<A: ChangeArguments> ChangingTool<A> {
    pub(super) fn new(definition: ToolDefinition, scope: Arc<Scope>) -> Self {
        Self { definition, scope, arguments: PhantomData }
    }
}

#[async_trait]
impl<A: ChangeArguments> Tool for ChangingTool<A> {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn prepare(&self, call: &ToolInvocation) -> Result<PreparedCall, ToolOutcome> {
        let arguments: A = arguments::parse(&self.definition, &call.arguments)?;
        let (scope, call) = (Arc::clone(&self.scope), call.clone());
        let planned = run_to_completion(move || {
            arguments.plan(&PlanContext { scope: &scope, call: &call, rest: None })
        });
        let plan = planned.await?;
        let (records, caution, diff) = (plan.records(), plan.caution.clone(), plan.diff());
        let run = plan.into_run(&self.scope);
        Ok(PreparedCall::new(run).changing(records).with_caution(caution).with_diff(diff))
    }

    async fn resume(&self, call: &ToolInvocation, started: &ToolStarted) -> ResumedCall {
        let arguments = match arguments::parse::<A>(&self.definition, &call.arguments) {
            Ok(arguments) => arguments,
            Err(problem) => return ResumedCall::Unknown(problem.content),
        };
        let (scope, call, started) = (Arc::clone(&self.scope), call.clone(), started.clone());
        let resumed = run_to_completion(move || {
            let plan_rest = |rest: &[FileChange]| {
                arguments.plan(&PlanContext { scope: &scope, call: &call, rest: Some(rest) })
            };
            Ok(resume(&scope, &started, arguments.success_text(), plan_rest))
        });
        resumed.await.unwrap_or_else(|problem| ResumedCall::Unknown(problem.content))
    }
}
