//! Tools whose calls are prepared by a plain function, without waiting for anything.

use std::sync::Arc;

use async_trait::async_trait;
use serde::de::DeserializeOwned;

use crate::{About, Call, Finished, Prepared, Tool, arguments};

type PrepareFunction<S, A> = fn(&S, A, &Call) -> Result<Prepared, Finished>;

struct FunctionTool<S, A> {
    about: About,
    state: S,
    prepare: PrepareFunction<S, A>,
}

/// A tool with this state, whose calls `prepare` prepares from their parsed arguments.
pub(crate) fn function_tool<S, A>(about: About, state: S, prepare: PrepareFunction<S, A>) -> Arc<dyn Tool>
where
    S: Send + Sync + 'static,
    A: DeserializeOwned + 'static,
{
    Arc::new(FunctionTool { about, state, prepare })
}

#[async_trait]
impl<S: Send + Sync, A: DeserializeOwned> Tool for FunctionTool<S, A> {
    fn about(&self) -> &About {
        &self.about
    }

    async fn prepare(&self, call: &Call) -> Result<Prepared, Finished> {
        (self.prepare)(&self.state, arguments::parse(&self.about, &call.arguments)?, call)
    }
}
