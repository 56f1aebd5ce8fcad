//! A work folder with something outside of it, and the tools to reach it.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longhaul_protocol::{Effect, FileWrite, Hash, SessionId, ToolStarted};
use longhaul_tools::{
    AllowedTarget, DeniedTarget, Permission, PreparedCall, ResumedCall, Scope, ScopeConfig, StopHandle,
    StopSignal, Tool, ToolInvocation, ToolOutcome, file_tools,
};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const SECRET: &str = "the secret of the outside";

/// A folder with `work`, which may be written, `outside`, which holds a secret, and `home`.
pub(crate) struct Workplace {
    _folder: TempDir,
    pub(crate) root: PathBuf,
    tools: Vec<Arc<dyn Tool>>,
}

impl Workplace {
    pub(crate) fn new() -> Self {
        Self::with(&ScopeConfig::default())
    }

    pub(crate) fn denying(targets: &[&str]) -> Self {
        let denied =
            |target: &&str| DeniedTarget { target: (*target).to_owned(), permission: Permission::Read };
        Self::with(&ScopeConfig { deny: targets.iter().map(denied).collect(), ..ScopeConfig::default() })
    }

    pub(crate) fn allowing(targets: &[(&str, Permission)]) -> Self {
        let allowed = |(target, permission): &(&str, Permission)| AllowedTarget {
            target: (*target).to_owned(),
            permission: *permission,
        };
        Self::with(&ScopeConfig { allow: targets.iter().map(allowed).collect(), ..ScopeConfig::default() })
    }

    /// A user's home folder `user`, of which these targets are allowed, from it on. `variables` name places from the root on.
    pub(crate) fn of_user(targets: &[&str], variables: &[(&str, &str)]) -> Self {
        let allowed = |target: &&str| AllowedTarget {
            target: Path::new("../user").join(target).to_str().unwrap().to_owned(),
            permission: Permission::Write,
        };
        let config = ScopeConfig { allow: targets.iter().map(allowed).collect(), ..ScopeConfig::default() };
        let place = Self::within(&config, &|root| {
            let in_root =
                |name: &str, path: &str| (name.to_owned(), root.join(path).to_str().unwrap().to_owned());
            let named = variables.iter().map(|(name, path)| in_root(name, path));
            [in_root("HOME", "user")].into_iter().chain(named).collect()
        });
        fs::create_dir_all(place.root.join("user/project")).unwrap();
        place
    }

    fn with(config: &ScopeConfig) -> Self {
        Self::within(config, &|_| std::env::vars().collect())
    }

    fn within(config: &ScopeConfig, environment: &dyn Fn(&Path) -> BTreeMap<String, String>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["work", "outside", "home"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        fs::write(root.join("outside/secret.txt"), SECRET).unwrap();
        fs::write(root.join("home/journal.db"), SECRET).unwrap();
        let environment = environment(&root);
        let scope = Scope::for_user(&root.join("work"), config, &root.join("home"), &environment);
        let scope = Arc::new(scope);
        Self { tools: file_tools(scope), root, _folder: folder }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.root.join("outside")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.work().join(name)
    }

    /// Puts a file into the work folder.
    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn names(&self, folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    pub(crate) fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    pub(crate) fn tool(&self, name: &str) -> &dyn Tool {
        self.tools.iter().find(|tool| tool.definition().name == name).unwrap().as_ref()
    }

    /// Calls a tool as the runtime does.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolOutcome {
        self.make(tool, &call(&arguments)).await
    }

    pub(crate) async fn make(&self, tool: &str, call: &ToolInvocation) -> ToolOutcome {
        match self.tool(tool).prepare(call).await {
            Ok(prepared) => run(prepared).await,
            Err(finished) => finished,
        }
    }

    pub(crate) async fn read(&self, path: &str) -> ToolOutcome {
        self.call("read_file", json!({ "path": path })).await
    }

    pub(crate) async fn write(&self, path: &str, content: &str) -> ToolOutcome {
        self.call("write_file", json!({ "path": path, "content": content })).await
    }

    pub(crate) async fn resume(&self, tool: &str, call: &ToolInvocation, write: FileWrite) -> ResumedCall {
        let started = ToolStarted {
            call: call.id,
            name: tool.to_owned(),
            arguments: call.arguments.clone(),
            effect: Effect::CheckedWrite,
            write: Some(write),
            writes: vec![],
            kept_in: None,
            remote_task: None,
            child: None,
            changes_nothing: false,
        };
        self.tool(tool).resume(call, &started).await
    }
}

pub(crate) fn call(arguments: &Value) -> ToolInvocation {
    call_with_text(&arguments.to_string())
}

pub(crate) fn call_with_text(arguments: &str) -> ToolInvocation {
    ToolInvocation::new(SessionId::generate(), arguments)
}

/// A call of a model that has seen this file as it was with this hash.
pub(crate) fn call_having_seen(arguments: &Value, path: &Path, hash: Hash) -> ToolInvocation {
    let seen = HashMap::from([(path.to_str().unwrap().to_owned(), hash)]);
    ToolInvocation { seen: Arc::new(seen), ..call(arguments) }
}

pub(crate) async fn run(prepared: PreparedCall) -> ToolOutcome {
    let (_stopper, stop): (StopHandle, StopSignal) = StopSignal::pair();
    (prepared.run)(stop).await
}

/// The content of a call that should have worked.
#[track_caller]
pub(crate) fn content(finished: ToolOutcome) -> String {
    assert!(!finished.is_error, "{}", finished.content);
    finished.content
}

/// The content of a call that should have failed.
#[track_caller]
pub(crate) fn error(finished: ToolOutcome) -> String {
    assert!(finished.is_error, "{}", finished.content);
    assert!(!finished.content.contains(SECRET), "{}", finished.content);
    finished.content
}
