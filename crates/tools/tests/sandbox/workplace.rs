//! A work folder, and around it everything that a command must not reach.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul_keeper::{Enforcement, Launcher, Network, ProcessNamespace, Tasks};
use longhaul_protocol::{CommandReport, SessionId};
use longhaul_tools::{
    AllowedTarget, DeniedTarget, ExecSettings, ExecTool, Permission, RepositoryTracker, Sandbox, SandboxMode,
    Scope, ScopeConfig, StopSignal, Tool, ToolInvocation, ToolOutcome,
};
use rustix::pty::{OpenptFlags, grantpt, openpt, unlockpt};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Content that no command in the scope may read.
pub(crate) const SECRET: &str = "correct horse battery staple";
const TEST_TIMEOUT: Duration = Duration::from_secs(240);

#[test]
#[ignore = "a part that other tests play in another process"]
fn plays_the_keeper() {
    longhaul_keeper::keep_here();
}

/// What commands are held by.
#[derive(Clone, Copy)]
pub(crate) struct SandboxChoice {
    pub(crate) mode: SandboxMode,
    pub(crate) network: Network,
    /// Whether the system can give commands processes of their own.
    pub(crate) processes: ProcessNamespace,
}

impl From<SandboxMode> for SandboxChoice {
    fn from(mode: SandboxMode) -> Self {
        Self { mode, network: mode.default_network(), processes: ProcessNamespace::Own }
    }
}

/// A user's folder, Longhaul's home, a work folder, a library that may be read, and something outside of all of them.
pub(crate) struct Workplace {
    pub(crate) work: PathBuf,
    pub(crate) root: PathBuf,
    pub(crate) temporary: TempDir,
    session: SessionId,
    tool: ExecTool,
    scope: Arc<Scope>,
    repositories: Arc<RepositoryTracker>,
    /// A process of another user, whose folder and open file are outside.
    victim: Child,
    /// A terminal of another user.
    terminal: OwnedFd,
    /// System V memory of another process.
    memory: String,
    _sockets: [UnixListener; 6],
    _folder: TempDir,
}

impl Workplace {
    pub(crate) fn new(sandbox: impl Into<SandboxChoice>) -> Self {
        // Not where temporary files are: those folders are private, and nothing else would be tried out.
        Self::within(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(), sandbox)
    }

    /// The same with another work folder, made by a command that runs in the root before anything is looked at.
    pub(crate) fn prepared(mode: SandboxMode, work: &str, command: &str) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::create_dir_all(folder.path().join("user")).unwrap();
        let ended =
            user_command(folder.path()).arg("-ec").arg(command).current_dir(folder.path()).output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        fs::create_dir_all(folder.path().join(work)).unwrap();
        Self::new_in(folder, mode.into(), work, &ScopeConfig::default())
    }

    pub(crate) fn within(folder: TempDir, sandbox: impl Into<SandboxChoice>) -> Self {
        Self::with(folder, sandbox.into(), &scope_config())
    }

    pub(crate) fn with_network(mode: SandboxMode, network: Network) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        Self::with(folder, SandboxChoice { network, ..mode.into() }, &scope_config())
    }

    pub(crate) fn with_scope(mode: SandboxMode, scope: &ScopeConfig) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        Self::with(folder, mode.into(), scope)
    }

    fn with(folder: TempDir, sandbox: SandboxChoice, scope: &ScopeConfig) -> Self {
        let root = folder.path();
        for name in ["work/denied", "work/holder/denied", "work/fixed/deep"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for name in ["denied/secret", "holder/denied/secret", "denied-file", "fixed/deep/secret"] {
            fs::write(root.join("work").join(name), SECRET).unwrap();
        }
        fs::write(root.join("work/fixed/file"), "to be read").unwrap();
        Self::new_in(folder, sandbox, "work", scope)
    }

    fn new_in(folder: TempDir, choice: SandboxChoice, work: &str, scope: &ScopeConfig) -> Self {
        let root = folder.path().canonicalize().unwrap();
        let folders = [
            "outside",
            "library",
            "home/run",
            "user/.ssh",
            "user/.docker",
            "user/.colima/default",
            "user/.1password",
            "user/tool",
            "user/.cache/envs/one",
            "user/caches",
        ];
        for name in folders {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let secrets = [
            "outside/secret",
            "outside/movable",
            "home/run/token",
            "home/journal.db",
            "user/.ssh/id_ed25519",
            "user/.docker/config.json",
            "user/.netrc",
        ];
        for name in secrets {
            fs::write(root.join(name), SECRET).unwrap();
        }
        fs::write(root.join("library/file"), "to be read").unwrap();
        fs::write(root.join("user/.docker/plugins"), "to be read").unwrap();
        let temporary = tempfile::tempdir_in("/tmp").unwrap();
        fs::write(temporary.path().join("secret"), SECRET).unwrap();

        let mut environment = BTreeMap::from([
            ("PATH".to_owned(), std::env::var("PATH").unwrap()),
            ("HOME".to_owned(), root.join("user").to_str().unwrap().to_owned()),
        ]);
        environment.extend(toolchains());
        let named = [
            ("VIRTUAL_ENV", "user/.cache/envs/one"),
            ("PIP_CACHE_DIR", "user/caches/pip"),
            ("XDG_CACHE_HOME", "user/caches"),
        ];
        let path = |below: &str| root.join(below).to_str().unwrap().to_owned();
        environment.extend(named.map(|(name, below)| (name.to_owned(), path(below))));
        let victim = victim(&root.join("outside"));
        let name = abstract_name(&root);
        let sockets = [
            UnixListener::bind(root.join("home/run/doorbell")).unwrap(),
            UnixListener::bind(root.join("user/.colima/default/docker.sock")).unwrap(),
            UnixListener::bind(root.join("user/.1password/agent.sock")).unwrap(),
            UnixListener::bind(root.join("user/tool/socket")).unwrap(),
            UnixListener::bind(root.join("work/service.sock")).unwrap(),
            UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap(),
        ];
        let work = root.join(work);
        let scope = Arc::new(Scope::new(&work, scope, &root.join("home")));
        let sandbox =
            Sandbox::new(choice.mode, &root.join("home"), &environment).with_network(choice.network);
        let repositories = Arc::clone(sandbox.repositories());
        let tool = tool(tasks(&root, choice.processes), Arc::clone(&scope), sandbox, environment);
        let session = SessionId::generate();
        let (terminal, memory) = (terminal(), memory());
        Self {
            work,
            root,
            temporary,
            session,
            tool,
            scope,
            repositories,
            victim,
            terminal,
            memory,
            _sockets: sockets,
            _folder: folder,
        }
    }

    /// Runs a command to its end, and says what it printed.
    pub(crate) fn run(&self, command: &str) -> String {
        let result = self.result(command);
        result["output"].as_str().unwrap_or_default().to_owned()
    }

    /// Runs a command to its end, and says what became of it.
    pub(crate) fn result(&self, command: &str) -> Value {
        self.try_result(command).unwrap()
    }

    /// The same, or why it was not run.
    pub(crate) fn try_result(&self, command: &str) -> Result<Value, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let command = format!("{}\n{command}", self.header());
        let call = ToolInvocation::new(self.session, json!({ "command": command }).to_string());
        let (_stopper, stop) = StopSignal::pair();
        let finished = runtime.block_on(async {
            let prepared = self.tool.prepare(&call).await?;
            Ok(tokio::time::timeout(TEST_TIMEOUT, (prepared.run)(stop)).await.expect("it ends in time"))
        });
        let finished = finished.map_err(|refused: ToolOutcome| refused.content)?;
        match finished.is_error {
            true => Err(finished.content),
            false => Ok(CommandReport::parse_to_json(&finished.content).unwrap()),
        }
    }

    /// What comes next is another session's.
    pub(crate) fn begin_session(&mut self) {
        self.session = SessionId::generate();
    }

    /// What the user is told about git at the end of the turn.
    pub(crate) fn git_news(&self) -> String {
        let news = self.repositories.news(&self.scope, self.session, |_| false);
        news.map(|news| news.text).unwrap_or_default()
    }

    /// Where the session's temporary files are kept.
    pub(crate) fn session_folder(&self) -> PathBuf {
        self.root.join("home/tmp").join(self.session.to_string())
    }

    /// Where everything is, for the command.
    fn header(&self) -> String {
        let (root, temporary) = (self.root.display(), self.temporary.path().display());
        format!(
            "ROOT={root} OUTSIDE={root}/outside LIBRARY={root}/library LONGHAUL={root}/home TEMPORARY={temporary} \
             MEMORY={} VICTIM={} TERMINAL={} ABSTRACT={}; \
             export ROOT OUTSIDE LIBRARY LONGHAUL TEMPORARY MEMORY VICTIM TERMINAL ABSTRACT",
            self.memory,
            self.victim.id(),
            rustix::pty::ptsname(&self.terminal, Vec::new()).unwrap().to_str().unwrap(),
            abstract_name(&self.root),
        )
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        let _ = Command::new("ipcrm").args(["--shmem-id", &self.memory]).status();
    }
}

/// Takes from this thread, and those that it starts, root's right to read every folder. Programs that it executes have it again.
pub(crate) fn give_up_rights_over_folders() {
    use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
    let sets = capabilities(None).unwrap();
    let rights = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
    set_capabilities(None, CapabilitySets { effective: sets.effective.difference(rights), ..sets }).unwrap();
}

/// A shell as the user runs it, outside of every sandbox.
pub(crate) fn user_command(root: &Path) -> Command {
    let mut command = Command::new("bash");
    command.env("HOME", root.join("user")).env_remove("XDG_CONFIG_HOME").stdin(Stdio::null());
    command
}

fn scope_config() -> ScopeConfig {
    let deny = |target: &str, permission| DeniedTarget { target: target.to_owned(), permission };
    ScopeConfig {
        allow: vec![
            AllowedTarget { target: "./".to_owned(), permission: Permission::Write },
            AllowedTarget { target: "../library".to_owned(), permission: Permission::Read },
            AllowedTarget { target: "fixed/deep".to_owned(), permission: Permission::Write },
            AllowedTarget { target: "../user/.docker/plugins".to_owned(), permission: Permission::Read },
        ],
        deny: vec![
            deny("denied", Permission::Read),
            deny("denied-file", Permission::Read),
            deny("holder/denied", Permission::Read),
            deny("fixed", Permission::Write),
            deny("fixed/deep/secret", Permission::Read),
        ],
    }
}

/// The tasks of a system that can give commands processes of their own, or of one that can't: in a container with a masked `/proc`.
fn tasks(root: &Path, processes: ProcessNamespace) -> Tasks {
    let keeper = ["workplace::plays_the_keeper", "--exact", "--ignored", "--nocapture", "--test-threads=1"];
    let launcher = Launcher::new(std::env::current_exe().unwrap(), keeper);
    let tasks = Tasks::at(&root.join("home/tasks"), launcher).unwrap();
    match processes {
        ProcessNamespace::Own => tasks,
        ProcessNamespace::Shared => {
            let found = tasks.enforcement().clone();
            let why = Some("mounting /proc: Operation not permitted".to_owned());
            tasks.with_enforcement(Enforcement { no_process_namespace: why, ..found })
        }
    }
}

fn tool(
    tasks: Tasks,
    scope: Arc<Scope>,
    sandbox: Sandbox,
    environment: BTreeMap<String, String>,
) -> ExecTool {
    ExecTool::new(ExecSettings {
        tasks: Arc::new(tasks),
        scope,
        sandbox,
        environment,
        output_cap: 1 << 20,
        token_file: "../../run/token".to_owned(),
        timeout: Duration::from_secs(600),
        max_tasks: 16,
        redact: Arc::new(str::to_owned),
    })
}

/// The toolchains of the user that runs the tests: the user of a workplace has none.
fn toolchains() -> impl Iterator<Item = (String, String)> {
    let own = std::env::home_dir().unwrap();
    let names = [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup"), ("PYENV_ROOT", ".pyenv")];
    names.into_iter().map(move |(name, below)| {
        let usual = || own.join(below).to_str().unwrap().to_owned();
        (name.to_owned(), std::env::var(name).unwrap_or_else(|_| usual()))
    })
}

/// System V memory, by its number.
fn memory() -> String {
    let made = Command::new("ipcmk").args(["--shmem", "4096"]).output().unwrap();
    let said = String::from_utf8(made.stdout).unwrap();
    said.split_whitespace().last().expect("ipcmk says the number").to_owned()
}

fn terminal() -> OwnedFd {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    terminal
}

/// Root's has no capabilities: the system refuses access to a process with more of them, and the other refusals would not be tested.
fn victim(outside: &Path) -> Child {
    let given_up: &[&str] = match rustix::process::geteuid().is_root() {
        true => &["--bounding-set=-all", "--inh-caps=-all"],
        false => &[],
    };
    let victim = Command::new("setpriv")
        .args(given_up)
        .args(["sleep", "600"])
        .current_dir(outside)
        .env("A_KEY", SECRET)
        .stdin(fs::File::open(outside.join("secret")).unwrap())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let since = Instant::now();
    while fs::read_to_string(format!("/proc/{}/comm", victim.id())).unwrap() != "sleep\n" {
        assert!(since.elapsed() < TEST_TIMEOUT, "it has not begun to sleep");
        std::thread::sleep(Duration::from_millis(1));
    }
    victim
}

fn abstract_name(root: &Path) -> String {
    format!("longhaul{}", root.file_name().unwrap().to_str().unwrap())
}
