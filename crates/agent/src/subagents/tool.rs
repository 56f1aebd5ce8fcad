//! The tool `agent`: starts a subagent. What the subagent may do is decided here, within what its parent may do.

#![allow(clippy::result_large_err, reason = "the error of a call is its result, and there is one a call")]

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use longhaul_protocol::{Ancestor, ChildSession, Effect, ParentLink, ScopedTarget, SessionId, ToolStarted};
use longhaul_tools::{
    CallingTurn, Permission, PreparedCall, ResumedCall, Scope, Tool, ToolDefinition, ToolInvocation,
    ToolOutcome, parse_arguments, schema_of, truncate_with_ellipsis,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::child::{ChildState, read_child};
use super::kinds::{AgentKind, find_kind};
use super::run::{NewSubagent, RunMode, SubagentRun};
use crate::runtime::RuntimeShared;
use crate::spend::nano;

/// The name of the tool.
pub(crate) const AGENT_TOOL: &str = "agent";
/// What a subagent without a kind is called.
pub(super) const DEFAULT_NAME: &str = "agent";
/// Bytes of a prompt. A longer text belongs into a file.
const MAX_PROMPT_BYTES: usize = 256 << 10;
const MAX_DESCRIPTION_BYTES: usize = 80;

/// What agent takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Its whole task: it sees nothing of this conversation.
    prompt: String,
    kind: Option<String>,
    /// Default: yours.
    model: Option<String>,
    /// The only files that it may use. Default: yours.
    scope: Option<Vec<ScopeArgument>>,
    /// US dollars.
    budget: Option<f64>,
    /// Return at once.
    background: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScopeArgument {
    target: String,
    #[serde(default)]
    permission: ScopePermission,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ScopePermission {
    #[default]
    Read,
    Write,
}

pub(crate) fn definition(kinds: &[AgentKind]) -> ToolDefinition {
    let mut description = "Start a subagent that does `prompt` by itself; its last message is the result. Calls in one answer run side by \
                           side. One that takes long goes on as a background task."
        .to_owned();
    if !kinds.is_empty() {
        description.push_str(" Kinds: ");
        let listed: Vec<String> =
            kinds.iter().map(|kind| format!("{} ({})", kind.name, kind.description)).collect();
        description.push_str(&truncate_with_ellipsis(&listed.join("; "), MAX_KINDS_BYTES));
    }
    ToolDefinition {
        name: AGENT_TOOL.into(),
        description: description.into(),
        effect: Effect::Command,
        schema: schema_of::<Arguments>(),
        limits: &[
            "A subagent may do at most what its parent may: its files, its permission mode, its budget. What it spends counts to its \
             parent's limits, too.",
            "A prompt has at most 256 KiB.",
            "The result is what the subagent said last. A long one is shown with its head and tail; read_file reads the rest.",
            "It goes to the background after `exec.timeout_s`. How many there may be is set under `[agents]`.",
            "Its background tasks end with it.",
        ],
        example: r#"{"prompt": "Read crates/journal/src and list every place that ignores an error, with file and line.", "kind": "reviewer"}"#,
    }
}

/// Bytes of the list of kinds in the description of the tool.
const MAX_KINDS_BYTES: usize = 2_000;

/// The tool, for the sessions of one folder and scope.
pub(crate) struct AgentTool {
    definition: ToolDefinition,
    runtime: Weak<RuntimeShared>,
    work_dir: Option<PathBuf>,
    scope: Option<Arc<Scope>>,
}

impl AgentTool {
    pub(crate) fn new(
        runtime: &RuntimeShared,
        kinds: &[AgentKind],
        work_dir: Option<PathBuf>,
        scope: Option<Arc<Scope>>,
    ) -> Self {
        Self { definition: definition(kinds), runtime: runtime.this.clone(), work_dir, scope }
    }

    fn runtime(&self) -> Result<Arc<RuntimeShared>, ToolOutcome> {
        self.runtime
            .upgrade()
            .ok_or_else(|| ToolOutcome::error("agent was not run: the runtime is shutting down"))
    }

    fn parse(&self, call: &ToolInvocation) -> Result<Arguments, ToolOutcome> {
        let arguments: Arguments = parse_arguments(&self.definition, &call.arguments)?;
        let refused = |why: String| Err(refusal(&why));
        if arguments.prompt.trim().is_empty() {
            return refused("`prompt` is empty".to_owned());
        }
        if arguments.prompt.len() > MAX_PROMPT_BYTES {
            return refused(format!(
                "`prompt` has {} bytes, and at most {MAX_PROMPT_BYTES} are allowed; write the text to a file and name the file",
                arguments.prompt.len()
            ));
        }
        if arguments.budget.is_some_and(|budget| !budget.is_finite() || budget <= 0.0) {
            return refused("`budget` must be more than 0 US dollars".to_owned());
        }
        Ok(arguments)
    }

    /// What the subagent of a call may do, and what it is told.
    async fn plan(
        &self,
        runtime: &RuntimeShared,
        call: &ToolInvocation,
        arguments: &Arguments,
    ) -> Result<NewSubagent, ToolOutcome> {
        let own = call.turn.parent.as_deref();
        let mut ancestors = own.map(|own| own.ancestors.clone()).unwrap_or_default();
        let budget_nano = own.and_then(|own| own.budget_nano);
        let CallingTurn { number, max_cost_nano, .. } = call.turn;
        ancestors.push(Ancestor {
            session: call.session,
            turn: number,
            budget_nano,
            turn_max_nano: max_cost_nano,
        });
        let depth = runtime.config.settings.agents.depth;
        if ancestors.len() as u64 > depth {
            return Err(refusal(&format!(
                "subagents may be nested {depth} deep at most (agents.depth), so this one can't start any; do it yourself"
            )));
        }
        let kind = match &arguments.kind {
            Some(name) => Some(self.find_kind(runtime, name).await?),
            None => None,
        };
        let model = arguments.model.clone().or_else(|| kind.as_ref()?.model.clone());
        if let Some(model) = &model {
            let unknown = |error: crate::Error| refusal(&format!("`model`: {error}"));
            runtime.check_model_of_agent(model).map_err(unknown)?;
        }
        let scope = match &arguments.scope {
            Some(targets) => Some(self.narrow_scope(targets).await?),
            None => own.and_then(|own| own.scope.clone()),
        };
        let own_tools = own.and_then(|own| own.tools.clone());
        let tools = match (kind.as_ref().and_then(|kind| kind.tools.clone()), own_tools) {
            (Some(tools), Some(allowed)) => {
                Some(tools.into_iter().filter(|tool| allowed.contains(tool)).collect())
            }
            (tools, allowed) => tools.or(allowed),
        };
        let parent = ParentLink {
            session: call.session,
            call: call.id,
            ancestors,
            name: kind.as_ref().map_or_else(|| DEFAULT_NAME.to_owned(), |kind| kind.name.clone()),
            instructions: kind
                .map(|kind| runtime.redactor.redact(&kind.prompt).into_owned())
                .filter(|prompt| !prompt.is_empty()),
            tools,
            model: model.or_else(|| call.turn.model.clone()),
            scope,
            mode: call.turn.mode,
            budget_nano: arguments.budget.map(nano),
            background: arguments.background == Some(true),
        };
        let redact = |text: &str| runtime.redactor.redact(text).into_owned();
        let first_line = redact(arguments.prompt.trim().lines().next().unwrap_or_default());
        Ok(NewSubagent {
            parent,
            work_dir: self.work_dir.clone(),
            prompt: arguments.prompt.clone(),
            description: truncate_with_ellipsis(&first_line, MAX_DESCRIPTION_BYTES),
        })
    }

    async fn find_kind(&self, runtime: &RuntimeShared, name: &str) -> Result<AgentKind, ToolOutcome> {
        let (config, work_dir, name) = (runtime.config.clone(), self.work_dir.clone(), name.to_owned());
        let found = tokio::task::spawn_blocking(move || find_kind(&config, work_dir.as_deref(), &name)).await;
        found.unwrap_or_else(|error| Err(error.to_string())).map_err(|why| refusal(&why))
    }

    /// Checks that each target lies within the parent's own scope.
    async fn narrow_scope(&self, targets: &[ScopeArgument]) -> Result<Vec<ScopedTarget>, ToolOutcome> {
        let Some(scope) = self.scope.clone() else {
            return Err(refusal("`scope` needs a work folder, and this session has none"));
        };
        let targets: Vec<(String, bool)> = targets
            .iter()
            .map(|target| (target.target.clone(), matches!(target.permission, ScopePermission::Write)))
            .collect();
        if targets.is_empty() {
            return Err(refusal("`scope` is empty; leave it out for all files that you may use"));
        }
        let checked = tokio::task::spawn_blocking(move || {
            let check = |(target, write): (String, bool)| {
                let permission = if write { Permission::Write } else { Permission::Read };
                let path = scope.check_path(&target, permission).map_err(|error| error.to_string())?;
                let path = path.to_str().ok_or_else(|| format!("{target}: its path is not UTF-8"))?;
                Ok(ScopedTarget { path: path.to_owned(), write })
            };
            targets.into_iter().map(check).collect::<Result<Vec<_>, String>>()
        });
        let checked = checked.await.unwrap_or_else(|error| Err(error.to_string()));
        checked.map_err(|why| refusal(&format!("`scope` must lie within yours: {why}")))
    }

    /// The call, with what has to be started for it.
    fn run_of(
        runtime: Arc<RuntimeShared>,
        call: &ToolInvocation,
        arguments: &Arguments,
        child: ChildSession,
        new: Option<NewSubagent>,
    ) -> SubagentRun {
        let timeout = Duration::from_secs(runtime.config.settings.exec.timeout_s);
        let recorded = call.task(call.id.into());
        SubagentRun {
            mode: if arguments.background == Some(true) {
                RunMode::Background
            } else {
                RunMode::Foreground(timeout)
            },
            started_at: recorded.and_then(|task| task.started.started_at),
            runtime,
            call: call.id,
            child,
            new: new.map(Arc::new),
        }
    }
}

#[async_trait]
impl Tool for AgentTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn prepare(&self, call: &ToolInvocation) -> Result<PreparedCall, ToolOutcome> {
        let (runtime, arguments) = (self.runtime()?, self.parse(call)?);
        let new = self.plan(&runtime, call, &arguments).await?;
        let key = ChildSession::key_of(call.id);
        let child = call.turn.child.clone();
        let child = child.unwrap_or_else(|| ChildSession { session: SessionId::generate(), key });
        let run = Self::run_of(runtime, call, &arguments, child.clone(), Some(new));
        Ok(PreparedCall::new(move |stop| run.run(stop)).starting(child))
    }

    async fn resume(&self, call: &ToolInvocation, started: &ToolStarted) -> ResumedCall {
        let (runtime, arguments) = match (self.runtime(), self.parse(call)) {
            (Ok(runtime), Ok(arguments)) => (runtime, arguments),
            (Err(refused), _) | (_, Err(refused)) => return ResumedCall::Unknown(refused.content),
        };
        let Some(child) = started.child.as_deref().cloned() else { return ResumedCall::RunAgain };
        let new = match read_child(&*runtime.journal, child.session).await {
            Ok(ChildState::NotStarted) => match self.plan(&runtime, call, &arguments).await {
                Ok(new) => Some(new),
                Err(refused) => {
                    let root = call.turn.parent.as_ref().map_or(call.session, |own| own.root());
                    let run = Self::run_of(runtime, call, &arguments, child, None);
                    return ResumedCall::Finished(run.refuse(root, refused).await);
                }
            },
            Ok(_) => None,
            Err(error) => return ResumedCall::Unknown(error.to_string()),
        };
        let run = Self::run_of(runtime, call, &arguments, child, new);
        ResumedCall::Running { run: Box::new(move |stop| Box::pin(run.run(stop))), takes_up_to: None }
    }
}

fn refusal(why: &str) -> ToolOutcome {
    ToolOutcome::error(format!("agent was not run: {why}"))
}
