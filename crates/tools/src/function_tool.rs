//! Tools whose calls are prepared by a plain function, without waiting for anything.

use std::sync::Arc;

use async_trait::async_trait;
use serde::de::DeserializeOwned;

use crate::{PreparedCall, Tool, ToolDefinition, ToolInvocation, ToolOutcome, arguments};

type PrepareFunction<S, A> = fn(&S, A, &ToolInvocation) -> Result<PreparedCall, ToolOutcome>;

struct FunctionTool<S, A> {
    definition: ToolDefinition,
    state: S,
    prepare: PrepareFunction<S, A>,
}

/// A tool with this state, whose calls `prepare` prepares from their parsed arguments.
pub(crate) fn function_tool<S, A>(
    definition: ToolDefinition,
    state: S,
    prepare: PrepareFunction<S, A>,
) -> Arc<dyn Tool>
where
    S: Send + Sync + 'static,
    A: DeserializeOwned + 'static,
{
    Arc::new(FunctionTool { definition, state, prepare })
}

#[async_trait]
impl<S: Send + Sync, A: DeserializeOwned> Tool for FunctionTool<S, A> {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn prepare(&self, call: &ToolInvocation) -> Result<PreparedCall, ToolOutcome> {
        (self.prepare)(&self.state, arguments::parse(&self.definition, &call.arguments)?, call)
    }
}
