//! `longhaul serve`: runs the sessions of a home until a signal ends it, and answers HTTP.

mod http;
mod port;

use std::collections::BTreeMap;
use std::time::Duration;

use longhaul_agent::{RetryMode, Runtime, Watched, Watcher};
use longhaul_protocol::{Effect, Event, EventKind, PrintablePath};
use longhaul_transcript::{Transcript, log_line};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::args::{GlobalArgs, ServeOptions};
use crate::output::{note, truncate};
use crate::questions::answer_command;
use crate::signals::ExitSignals;
use crate::{config, event_text, exit, panics, suggested_command};
use http::PreparedServer;

/// When the process ends, whatever still hangs. What is committed stays.
const SHUTDOWN_DEADLINE: Duration = Duration::from_millis(4_800);
/// How long the last events may take to print after the shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

pub(crate) async fn run(globals: &GlobalArgs, options: &ServeOptions) -> anyhow::Result<u8> {
    let config = config::with_model(globals, RetryMode::Interactive).await?;
    if let Some(warning) = config.exposed_home() {
        note(warning);
    }
    // Before the journal is opened, so that no signal is lost meanwhile.
    let mut signals = ExitSignals::new()?;
    let server = match options.no_http {
        true => None,
        false => Some(PreparedServer::prepare(globals, &config, options).await?),
    };
    let home_dir = config.home.clone();
    let home = home_dir.printable().to_string();
    let model = config.settings.model.name.clone();
    let runtime = tokio::select! {
        opened = Runtime::open(config) => opened?,
        number = signals.next() => return Ok(exit::SIGNAL + number),
    };
    panics::register_runtime(&runtime, suggested_command::command(globals, &["resume"]));
    let mut watching = tokio::spawn(print_events(runtime.watch(), tokio::io::stdout(), options.json));
    let other = runtime.other_host().await?;
    runtime.start().await?;
    note(format!("serving {home} with {model}; press Ctrl-C to stop"));
    let server = server.map(|server| server.start(&runtime, &home_dir)).transpose()?;
    if let Some(why) = runtime.not_enforced().await {
        note(event_text::not_enforced(&why));
    }
    if let Some(other) = other {
        note(format!("{other} is already serving this home; standing by until it ends"));
    }
    let code = tokio::select! {
        number = signals.next() => exit::SIGNAL + number,
        // Ends early only by an error of its own.
        _ = &mut watching => exit::FAILED,
    };
    note("suspending");
    let ending = async {
        // Requests first: what they append is durable before the journal closes.
        if let Some(server) = server {
            server.shutdown().await;
        }
        runtime.shutdown().await
    };
    tokio::select! {
        ended = tokio::time::timeout(SHUTDOWN_DEADLINE, ending) => match ended {
            Ok(ended) => ended?,
            Err(_) => std::process::exit(i32::from(code)),
        },
        // A second signal ends the process at once. What is committed stays.
        _ = signals.next_deliberate() => std::process::exit(i32::from(code)),
    }
    if code == exit::FAILED {
        return Ok(code);
    }
    // A slow reader must not delay the exit.
    if let Ok(Ok(Ok(open))) = tokio::time::timeout(DRAIN_TIMEOUT, watching).await {
        for (session, what) in open.0 {
            let resume = suggested_command::resume(globals, &session);
            note(format!(
                "{} is suspended until the next `longhaul serve`{what}; to resume: {resume}",
                truncate(&session, 60)
            ));
        }
    }
    Ok(code)
}

/// Sessions with an open turn, each with the command that keeps running without it.
#[derive(Default)]
struct OpenTurns(BTreeMap<String, String>);

impl OpenTurns {
    fn see(&mut self, event: &Event) {
        let session = event.session.clone();
        match &event.kind {
            EventKind::TurnEnded { .. } => drop(self.0.remove(&session)),
            EventKind::ToolStarted { effect: Effect::Command, arguments, .. } => {
                let command = format!("; its command keeps running: {}", truncate(arguments, 60));
                self.0.insert(session, command);
            }
            EventKind::ToolFinished { .. } => drop(self.0.insert(session, String::new())),
            _ if event.turn.is_some() => drop(self.0.entry(session).or_default()),
            _ => {}
        }
    }
}

/// Prints events until the runtime has ended. A reader that has gone is noted once.
async fn print_events(
    mut watcher: Watcher,
    mut output: impl AsyncWrite + Unpin,
    as_json: bool,
) -> anyhow::Result<OpenTurns> {
    let (mut open, mut log) = (OpenTurns::default(), SessionLog::default());
    let mut is_read = true;
    while let Some(watched) = watcher.next().await {
        panics::panic_for_tests(&watched);
        let lines = match watched {
            Watched::Event(event) => {
                open.see(&event);
                if as_json { vec![serde_json::to_string(&event)?] } else { log.lines(&event) }
            }
            Watched::Missed { events, from } if as_json => {
                vec![serde_json::json!({"type": "missed", "events": events, "from": from}).to_string()]
            }
            Watched::Missed { events, .. } => {
                note(format!("{events} events skipped"));
                vec![]
            }
        };
        if !lines.is_empty() && is_read {
            let line = lines.join("\n") + "\n";
            let written = async {
                output.write_all(line.as_bytes()).await?;
                output.flush().await
            };
            if written.await.is_err() {
                is_read = false;
                note("standard output is closed; still serving, send SIGTERM to stop");
            }
        }
    }
    Ok(open)
}

/// The log of all sessions. It has a transcript for each session in which something is open.
#[derive(Default)]
struct SessionLog(BTreeMap<String, Transcript>);

impl SessionLog {
    /// The lines for an event.
    fn lines(&mut self, event: &Event) -> Vec<String> {
        let transcript = self.0.entry(event.session.clone()).or_default();
        let updates = transcript.apply(event);
        if transcript.turn_started_at().is_none() && transcript.open_blocks().is_empty() {
            self.0.remove(&event.session);
        }
        let command = |id, kind| answer_command(&event.session, id, kind);
        updates.iter().filter_map(|update| log_line(event, update, command)).collect()
    }
}
