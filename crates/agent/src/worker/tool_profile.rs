//! What decides which tools a session has: its work folder, and for a subagent what its parent lets it use. Sessions with the same
//! profile share their tools.

use std::path::{Path, PathBuf};

use longhaul_protocol::{ParentLink, SCHEDULE, ScopedTarget};
use longhaul_tools::{Permission, Scope, Tool};

use crate::Config;
use crate::runtime::RuntimeShared;
use crate::session::state::State;
use crate::subagents::AGENT_TOOL;
use crate::worker::toolset::{session_work_dir, tool_scope};

/// Tools that come with the tools that start tasks.
const TASK_TOOLS: [&str; 2] = ["task_output", "task_kill"];
const EXEC: &str = "exec";

/// What decides which tools a session has.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ToolProfile {
    /// `None` if the session has no work folder.
    pub(crate) work_dir: Option<PathBuf>,
    /// `None` if the session is no subagent.
    subagent: Option<SubagentProfile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SubagentProfile {
    scope: Option<Vec<ScopedTarget>>,
    tools: Option<Vec<String>>,
    depth: u64,
}

impl ToolProfile {
    /// The profile of sessions in a folder.
    pub(crate) fn of_folder(work_dir: Option<&Path>) -> Self {
        Self { work_dir: work_dir.map(Path::to_owned), subagent: None }
    }

    /// The profile of a session.
    pub(crate) fn of_session(runtime: &RuntimeShared, state: &State) -> Self {
        let subagent = state.parent().map(|parent| {
            let ParentLink { scope, tools, ancestors, .. } = &**parent;
            SubagentProfile { scope: scope.clone(), tools: tools.clone(), depth: ancestors.len() as u64 }
        });
        Self { work_dir: session_work_dir(runtime, state), subagent }
    }

    /// The scope of its tools. That of a subagent lies within its parent's.
    pub(crate) fn scope(&self, config: &Config) -> Option<Scope> {
        let work_dir = self.work_dir.as_deref()?;
        let scope = tool_scope(config, work_dir);
        let Some(targets) = self.subagent.as_ref().and_then(|subagent| subagent.scope.as_ref()) else {
            return Some(scope);
        };
        let target = |target: &ScopedTarget| {
            (PathBuf::from(&target.path), if target.write { Permission::Write } else { Permission::Read })
        };
        Some(scope.narrow_to(targets.iter().map(target)))
    }

    /// Whether it may use less than the MCP servers of its folder can reach.
    pub(crate) fn has_own_scope(&self) -> bool {
        self.subagent.as_ref().is_some_and(|subagent| subagent.scope.is_some())
    }

    /// Whether it may start subagents.
    pub(crate) fn may_start_subagents(&self, config: &Config) -> bool {
        let depth = self.subagent.as_ref().map_or(0, |subagent| subagent.depth);
        depth < config.settings.agents.depth
    }

    /// Whether it may use this tool. A subagent's session ends with its task, so it has no schedules.
    pub(crate) fn allows(&self, tool: &str) -> bool {
        let Some(subagent) = &self.subagent else { return true };
        if tool == SCHEDULE {
            return false;
        }
        let Some(allowed) = &subagent.tools else { return true };
        let has = |name: &str| allowed.iter().any(|allowed| allowed == name);
        has(tool) || (TASK_TOOLS.contains(&tool) && (has(EXEC) || has(AGENT_TOOL)))
    }

    /// Whether it may use this tool, by its definition.
    pub(crate) fn allows_tool(&self, tool: &dyn Tool) -> bool {
        self.allows(&tool.definition().name)
    }
}

#[cfg(test)]
#[path = "tool_profile_tests.rs"]
mod tests;
