//! A home, a work folder, the tools, and a session that remembers its tasks as the runtime does.

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use longhaul_keeper::{Launcher, Tasks};
use longhaul_protocol::{CommandReport, Effect, SessionId, TaskEnded, TaskId, TaskStarted, ToolStarted};
use longhaul_tools::{
    ExecSettings, ExecTool, OutputLimit, Redact, ResumedCall, RunCall, Sandbox, SandboxMode, Scope,
    ScopeConfig, SessionTask, StopHandle, StopSignal, TaskSettings, Tool, ToolInvocation, ToolOutcome,
    task_end, task_tools,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// A task of these tests is quiet after this, unless the test says otherwise.
pub(crate) const QUIET: Duration = Duration::from_millis(500);
/// For tests of what is no silence: no machine is so busy that it takes longer over a line.
pub(crate) const LONG_QUIET: Duration = Duration::from_secs(10);
/// For tests in which nothing may be told because of silence.
pub(crate) const NEVER_QUIET: Duration = Duration::from_secs(60 * 60);
/// Nothing depends on it but how soon a failure is told.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(240);
/// What the sessions of these tests know as a secret.
pub(crate) const SECRET: &str = "sk-0123456789abcdef";

#[test]
#[ignore = "a part that other tests play in another process"]
fn plays_the_keeper() {
    longhaul_keeper::keep_here();
}

pub(crate) struct Workplace {
    pub(crate) work: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) settings: ExecSettings,
    pub(crate) output_limit: OutputLimit,
    session: SessionId,
    known: Mutex<Vec<SessionTask>>,
    tools: Vec<Arc<dyn Tool>>,
    _temporary: TempDir,
}

impl Workplace {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut ExecSettings)) -> Self {
        Self::made(QUIET, change)
    }

    /// One in which a task is quiet only after so long.
    pub(crate) fn quiet_after(quiet: Duration) -> Self {
        Self::made(quiet, |_| {})
    }

    fn made(quiet: Duration, change: impl FnOnce(&mut ExecSettings)) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path().canonicalize().unwrap();
        for name in ["work", "home/run"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::write(root.join("home/run/token"), "open sesame").unwrap();
        let keeper =
            ["workplace::plays_the_keeper", "--exact", "--ignored", "--nocapture", "--test-threads=1"];
        let launcher = Launcher::new(std::env::current_exe().unwrap(), keeper);
        let tasks = Arc::new(Tasks::at(&root.join("home/tasks"), launcher).unwrap());
        let environment = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
        let mut settings = ExecSettings {
            sandbox: Sandbox::new(SandboxMode::On, &root.join("home"), &environment),
            tasks: Arc::clone(&tasks),
            scope: Arc::new(Scope::new(&root.join("work"), &ScopeConfig::default(), &root.join("home"))),
            environment,
            output_cap: 64 << 20,
            token_file: "../../run/token".to_owned(),
            timeout: Duration::from_secs(600),
            max_tasks: 16,
            redact: redact(),
        };
        change(&mut settings);
        Self {
            work: root.join("work"),
            folder: root.join("home/tasks"),
            tasks,
            output_limit: OutputLimit::default(),
            session: SessionId::generate(),
            known: Mutex::default(),
            tools: tools(&settings, quiet),
            settings,
            _temporary: temporary,
        }
    }

    pub(crate) fn call(&self, arguments: &Value) -> ToolInvocation {
        ToolInvocation {
            output_limit: self.output_limit,
            tasks: self.known.lock().unwrap().clone().into(),
            ..ToolInvocation::new(self.session, arguments.to_string())
        }
    }

    pub(crate) fn tool(&self, name: &str) -> &Arc<dyn Tool> {
        self.tools.iter().find(|tool| tool.definition().name == name).unwrap()
    }

    /// Makes a call and remembers what came of it, as the runtime does.
    pub(crate) async fn make(&self, tool: &str, arguments: Value) -> ToolOutcome {
        let call = self.call(&arguments);
        self.make_call(tool, &call).await
    }

    pub(crate) async fn make_call(&self, tool: &str, call: &ToolInvocation) -> ToolOutcome {
        let (_stopper, stop) = StopSignal::pair();
        let finished = match self.tool(tool).prepare(call).await {
            Ok(prepared) => in_time((prepared.run)(stop)).await,
            Err(refused) => refused,
        };
        self.remember(&finished);
        finished
    }

    /// Begins a call.
    pub(crate) async fn begin(
        &self,
        tool: &str,
        call: &ToolInvocation,
    ) -> (StopHandle, JoinHandle<ToolOutcome>) {
        let (stopper, stop) = StopSignal::pair();
        let run = self.tool(tool).prepare(call).await.unwrap().run;
        (stopper, tokio::spawn(run(stop)))
    }

    pub(crate) fn remember(&self, finished: &ToolOutcome) {
        let mut known = self.known.lock().unwrap();
        if let Some(started) = finished.task.clone() {
            known.push(started.into());
        }
        if let Some(news) = finished.news {
            let task = known.iter_mut().find(|task| task.started.task_id == news.task_id).unwrap();
            task.told = Some(news);
        }
    }

    /// The start of a task, as its session has it.
    pub(crate) fn started(&self, id: TaskId) -> TaskStarted {
        let known = self.known.lock().unwrap();
        known.iter().find(|task| task.started.task_id == id).unwrap().started.clone()
    }

    /// Gives the session a task whose command another node has.
    pub(crate) fn know_of_another_node(&self, started: TaskStarted, node: &str) {
        let task = SessionTask { other_node: Some(node.to_owned()), ..started.into() };
        self.known.lock().unwrap().push(task);
    }

    /// Records the end of a task, as the runtime does.
    pub(crate) fn record_end(&self, id: TaskId) {
        let ended = task_end(&self.tasks, id, &self.settings.redact).unwrap().unwrap();
        let mut known = self.known.lock().unwrap();
        let task = known.iter_mut().find(|task| task.started.task_id == id).unwrap();
        task.ended = Some(TaskEnded {
            unasked: false,
            task_id: id,
            status: ended.status,
            exit_code: ended.exit_code,
            duration_ms: ended.duration_ms,
            output: None,
            tail: ended.tail,
            message: ended.message,
            session: None,
        });
    }

    /// Runs a command in the background to its end.
    pub(crate) async fn finish(&self, command: &str) -> TaskId {
        let id = self.start(command).await;
        self.until_over(id).await;
        id
    }

    /// Starts a command in the background.
    pub(crate) async fn start(&self, command: &str) -> TaskId {
        let finished = self.make("exec", json!({"command": command, "run_in_background": true})).await;
        assert!(!finished.is_error, "{}", finished.content);
        finished.task.unwrap().task_id
    }

    pub(crate) async fn resume(&self, call: &ToolInvocation) -> ResumedCall {
        let started = ToolStarted {
            call: call.id,
            name: "exec".to_owned(),
            arguments: call.arguments.clone(),
            effect: Effect::Command,
            write: None,
            writes: vec![],
            kept_in: None,
            remote_task: None,
            child: None,
            changes_nothing: false,
        };
        self.tool("exec").resume(call, &started).await
    }

    pub(crate) async fn until_there(&self, name: &str) {
        let file = self.work.join(name);
        until(|| file.exists()).await;
    }

    pub(crate) async fn until_over(&self, id: TaskId) {
        until(|| self.tasks.status(id).unwrap().is_some()).await;
    }

    pub(crate) async fn until_printed(&self, id: TaskId, bytes: u64) {
        until(|| self.tasks.output(id).unwrap().printed().unwrap() >= bytes).await;
    }

    /// Makes a file of a task look as if it was written so long ago: nothing has to be waited for then.
    pub(crate) fn age(&self, id: TaskId, file: &str, by: Duration) {
        self.write_time(id, file, SystemTime::now() - by);
    }

    /// Makes a file of a task look as if it was written just now, for as long as any test takes.
    pub(crate) fn renew(&self, id: TaskId, file: &str) {
        self.write_time(id, file, SystemTime::now() + TEST_TIMEOUT);
    }

    fn write_time(&self, id: TaskId, file: &str, at: SystemTime) {
        let file = fs::File::open(self.folder.join(format!("{id}/{file}"))).unwrap();
        file.set_modified(at).unwrap();
    }

    /// Lets a command go on that waits for this file.
    pub(crate) fn put(&self, name: &str) {
        fs::write(self.work.join(name), "").unwrap();
    }
}

/// Nothing that a test started outlives it.
impl Drop for Workplace {
    fn drop(&mut self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) {
                let _ = self.tasks.kill(id);
            }
        }
    }
}

fn tools(settings: &ExecSettings, quiet: Duration) -> Vec<Arc<dyn Tool>> {
    let (tasks, redact) = (Arc::clone(&settings.tasks), Arc::clone(&settings.redact));
    let mut tools = task_tools(&TaskSettings { quiet, ..TaskSettings::new(tasks, redact) });
    tools.push(Arc::new(ExecTool::new(settings.clone())));
    tools
}

pub(crate) fn redact() -> Redact {
    Arc::new(|text: &str| text.replace(SECRET, "[redacted]"))
}

/// The part of a command that waits for a file.
pub(crate) fn wait_for(name: &str) -> String {
    format!("while [ ! -e {name} ]; do sleep 0.01; done")
}

pub(crate) async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TEST_TIMEOUT, future).await.expect("it ends in time")
}

pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < TEST_TIMEOUT, "it did not come");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) fn fields(finished: &ToolOutcome) -> Value {
    assert!(!finished.is_error, "{}", finished.content);
    CommandReport::parse_to_json(&finished.content).unwrap_or_else(|| panic!("{}", finished.content))
}

/// The offset from which the message says to read on.
pub(crate) fn next_offset(fields: &Value) -> Option<u64> {
    let message = fields["message"].as_str()?;
    message.split("`offset` ").nth(1)?.split(' ').next()?.parse().ok()
}

pub(crate) fn text<'a>(fields: &'a Value, name: &str) -> &'a str {
    fields[name].as_str().unwrap_or_else(|| panic!("{name} in {fields}"))
}

pub(crate) fn running(resumed: ResumedCall) -> RunCall {
    match resumed {
        ResumedCall::Running { run, .. } => run,
        ResumedCall::Finished(finished) => panic!("it ended: {finished:?}"),
        ResumedCall::RunAgain => panic!("it was not started"),
        ResumedCall::Unknown(why) => panic!("{why}"),
    }
}
