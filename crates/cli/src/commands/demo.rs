//! `longhaul demo`: a turn that survives `kill -9`. The model is scripted; everything else is real.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context;
use longhaul_agent::keeper::{Launcher, Tasks};
use longhaul_journal::{Home, Journal, SqliteJournal, name_session, put};
use longhaul_protocol::{
    CallId, Event, EventKind, InboxRecord, Input, InputId, JoinMode, Outcome, PrintablePath, SessionId,
    TaskId,
};
use longhaul_transcript::{Call, call_text};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::args::DemoOptions;
use crate::exit;
use crate::output::{line, truncate};
use crate::signals::ExitSignals;

const KEY: &str = "demo:turn";
/// The command prints a line every half second.
const PART_COUNT: u32 = 8;
/// Lines of output at which the runtime is killed, and at which it is started again.
const KILLED_AT: usize = 3;
const RESUMED_AT: usize = 5;
/// The longest wait for the next event or line.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) async fn run(options: &DemoOptions) -> anyhow::Result<u8> {
    let folder = std::env::temp_dir().join(format!("longhaul-demo-{}", SessionId::generate()));
    let mut signals = ExitSignals::new()?;
    let outcome = tokio::select! {
        outcome = play(&folder) => outcome,
        // Dropping the demo kills its processes; its folder is removed below.
        number = signals.next() => Ok(exit::SIGNAL + number),
    };
    let home = folder.join("home").display().to_string();
    if options.keep {
        line(format!(
            "\nKept the demo's files. To look around:\n  longhaul --home {home} sessions show {KEY}\n  longhaul --home {home} verify"
        ))?;
    } else {
        std::fs::remove_dir_all(&folder).with_context(|| format!("can't remove {}", folder.printable()))?;
        line("\nRemoved the demo's files (use --keep to look around).")?;
    }
    outcome
}

async fn play(folder: &Path) -> anyhow::Result<u8> {
    line(
        "An agent is asked to write a program and to run it. The model is a script: its answers and tool calls",
    )?;
    line("are fixed. Everything else is real: the journal, the files, the command, the kill.\n")?;
    let stage = DemoHome::build(folder)?;
    let journal = SqliteJournal::open(&Home::create(&stage.home)?).await?;
    let session = name_session(&journal, KEY).await?;
    let input = Input::new(
        InputId::generate(),
        "Write a program that builds something in parts, and run it.",
        JoinMode::Join,
    );
    line(format!("you      {}", input.text))?;
    put(&journal, session, InboxRecord::Input(input).encode()).await?;

    let mut first = stage.start().await?;
    let call = first.show_until_command().await?;
    let mut output = stage.output_of(call)?;
    output.print_lines(KILLED_AT).await?;
    let pid = first.kill().await?;
    line(format!("\n>>>      kill -9 {pid}. The agent is dead, in the middle of its turn."))?;
    line(">>>      The command it started keeps running:\n")?;
    output.print_lines(RESUMED_AT).await?;

    let mut second = stage.start().await?;
    line(format!(
        "\n>>>      A new process ({}) resumes the turn and attaches to the running command.\n",
        second.pid()
    ))?;
    let outcome = second.show_until_the_end().await?;
    second.suspend().await?;
    anyhow::ensure!(outcome == Outcome::Completed, "the demo's turn ended as {outcome:?}");

    let runs = std::fs::read_to_string(stage.work.join("runs.txt"))?.lines().count();
    let parts = output.lines()?.len();
    let report = journal.verify().await?;
    journal.close().await;
    anyhow::ensure!(
        runs == 1 && parts == PART_COUNT as usize + 1 && report.is_sound(),
        "the demo did not recover as it should"
    );
    line(format!(
        "\nThe command was started once, and all {parts} lines of its output are there. The journal has {} entries,\nand all of them verify.",
        report.records
    ))?;
    Ok(exit::DONE)
}

/// The folder of the demo: its home, work folder and scripted model.
struct DemoHome {
    home: PathBuf,
    work: PathBuf,
    script: PathBuf,
}

impl DemoHome {
    fn build(folder: &Path) -> anyhow::Result<Self> {
        let stage =
            Self { home: folder.join("home"), work: folder.join("work"), script: folder.join("script.json") };
        Home::create(folder)?;
        std::fs::create_dir_all(&stage.work)?;
        std::fs::write(&stage.script, script().to_string())?;
        Ok(stage)
    }

    /// Starts `longhaul serve` for the demo's home.
    async fn start(&self) -> anyhow::Result<ServeProcess> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg("--home")
            .arg(&self.home)
            .arg("--work-dir")
            .arg(&self.work)
            .arg("--model")
            .arg(format!("scripted/{}", self.script.display()))
            .args(["serve", "--no-http", "--json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("can't start the demo's agent")?;
        let output = process.stdout.take().context("the runtime has an output")?;
        Ok(ServeProcess { process, events: BufReader::new(output).lines() })
    }

    fn output_of(&self, call: CallId) -> anyhow::Result<CommandOutput> {
        let tasks = Tasks::at(&self.home.join("tasks"), Launcher::this_program()?)?;
        Ok(CommandOutput { tasks, id: call.into(), shown: 0 })
    }
}

/// The scripted model.
fn script() -> Value {
    let program = format!(
        "#!/bin/bash\necho \"run $$\" >> runs.txt\nfor part in $(seq 1 {PART_COUNT}); do\n  echo \"part $part of {PART_COUNT} is built\"\n  sleep 0.5\ndone\necho \"all parts are built\"\n"
    );
    json!([
        {"text": "I write the program.", "piece_ms": 40, "calls": [
            {"name": "write_file", "arguments": {"path": "build.sh", "content": program}},
        ]},
        {"text": "Now I run it.", "piece_ms": 40, "calls": [
            {"name": "exec", "arguments": {"command": "bash build.sh", "description": "build"}},
        ]},
        {"text": "The program ran to its end: all parts are built.", "piece_ms": 40},
    ])
}

/// The output of the command, read from its keeper.
struct CommandOutput {
    tasks: Tasks,
    id: TaskId,
    /// Lines printed so far.
    shown: usize,
}

impl CommandOutput {
    fn lines(&self) -> anyhow::Result<Vec<String>> {
        // A command that has not begun has printed nothing.
        let Ok(output) = self.tasks.output(self.id) else { return Ok(vec![]) };
        let bytes = output.read(0, 1 << 16)?.bytes;
        Ok(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
    }

    /// Prints the output until it has `count` lines.
    async fn print_lines(&mut self, count: usize) -> anyhow::Result<()> {
        let deadline = Instant::now() + STEP_TIMEOUT;
        while self.shown < count {
            for text in self.lines()?.iter().take(count).skip(self.shown) {
                line(format!("           │ {text}"))?;
                self.shown += 1;
            }
            anyhow::ensure!(Instant::now() < deadline, "the demo's command printed nothing");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }
}

/// A `longhaul serve --json` process and its events.
struct ServeProcess {
    process: Child,
    events: Lines<BufReader<ChildStdout>>,
}

impl ServeProcess {
    fn pid(&self) -> u32 {
        self.process.id().unwrap_or_default()
    }

    async fn next(&mut self) -> anyhow::Result<Event> {
        let text = tokio::time::timeout(STEP_TIMEOUT, self.events.next_line())
            .await
            .context("nothing happens")??;
        Ok(serde_json::from_str(&text.context("the demo's agent has ended")?)?)
    }

    /// Prints events until the command starts.
    async fn show_until_command(&mut self) -> anyhow::Result<CallId> {
        loop {
            let event = self.next().await?;
            show(&event)?;
            if let EventKind::ToolStarted { name, call_id, .. } = &event.kind
                && name == "exec"
            {
                return Ok(*call_id);
            }
        }
    }

    async fn show_until_the_end(&mut self) -> anyhow::Result<Outcome> {
        loop {
            let event = self.next().await?;
            show(&event)?;
            if let EventKind::TurnEnded { outcome, .. } = event.kind {
                return Ok(outcome);
            }
        }
    }

    async fn kill(mut self) -> anyhow::Result<u32> {
        let pid = self.pid();
        self.process.kill().await?;
        Ok(pid)
    }

    async fn suspend(mut self) -> anyhow::Result<()> {
        let pid = i32::try_from(self.pid()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        }
        self.process.wait().await?;
        Ok(())
    }
}

fn show(event: &Event) -> anyhow::Result<()> {
    match &event.kind {
        EventKind::Message { content, .. } => line(format!("model    {content}")),
        EventKind::ToolStarted { call_id, name, arguments, .. } => {
            let (call, name, arguments) = (*call_id, name.clone(), arguments.clone());
            let call = Call { call, name, arguments, effect: None, result: None };
            line(format!("tool     {}", call_text(&call)))
        }
        EventKind::ToolFinished { content, .. } => line(format!("         → {}", truncate(content, 80))),
        EventKind::TurnEnded { outcome, .. } => line(format!(
            "turn     {}",
            if *outcome == Outcome::Completed { "completed" } else { "not completed" }
        )),
        _ => Ok(()),
    }
}
