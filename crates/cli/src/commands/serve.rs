//! `longhaul serve`: runs the sessions of a home until a signal ends it.

use std::collections::BTreeMap;
use std::time::Duration;

use longhaul_agent::{Patience, Runtime, Watched, Watcher};
use longhaul_protocol::{Effect, Event, EventKind, Outcome, PrintablePath};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::args::{GlobalArgs, ServeOptions};
use crate::output::{in_words, note, safe, shortened};
use crate::questions::OpenQuestion;
use crate::short_id::short;
use crate::signals::ExitSignals;
use crate::{BadUsage, config, event_text, exit, panics, suggested_command};

/// How long the last events may take to print after the shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

pub(crate) async fn run(globals: &GlobalArgs, options: &ServeOptions) -> anyhow::Result<u8> {
    if !options.no_http {
        return Err(
            BadUsage("this version has no HTTP API yet: use `longhaul serve --no-http`".to_owned()).into()
        );
    }
    let config = config::with_model(globals, Patience::Attended).await?;
    if let Some(warning) = config.exposed_home() {
        note(warning);
    }
    // Before the journal is opened, so that no signal is lost meanwhile.
    let mut signals = ExitSignals::new()?;
    let home = config.home.printable().to_string();
    let model = config.settings.model.name.clone();
    let runtime = tokio::select! {
        opened = Runtime::open(config) => opened?,
        number = signals.next() => return Ok(exit::SIGNAL + number),
    };
    panics::register_runtime(&runtime, suggested_command::command(globals, &["resume"]));
    let mut watching = tokio::spawn(print_events(runtime.watch(), tokio::io::stdout(), options.json));
    let other = runtime.other_host().await?;
    runtime.start().await?;
    note(format!("serving {home} with {model}; Ctrl-C suspends"));
    if let Some(why) = runtime.not_enforced().await {
        note(event_text::not_enforced(&why));
    }
    if let Some(other) = other {
        note(format!("{other} serves this home already; this one stands by, and goes on when that one ends"));
    }
    let code = tokio::select! {
        number = signals.next() => exit::SIGNAL + number,
        // Ends early only by an error of its own.
        _ = &mut watching => exit::FAILED,
    };
    note("suspending");
    tokio::select! {
        ended = runtime.shutdown() => ended?,
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
                "{} is suspended{what}; the next `longhaul serve` goes on with it; or, to go on: {resume}",
                shortened(&session, 60)
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
                let command = format!("; meanwhile its command goes on: {}", shortened(arguments, 60));
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
    let mut open = OpenTurns::default();
    let mut is_read = true;
    while let Some(watched) = watcher.next().await {
        panics::panic_for_tests(&watched);
        let text = match watched {
            Watched::Event(event) => {
                open.see(&event);
                if as_json {
                    Some(serde_json::to_string(&event)?)
                } else {
                    describe_event(&event).map(|text| safe(&text))
                }
            }
            Watched::Missed { events, from } if as_json => {
                Some(serde_json::json!({"type": "missed", "events": events, "from": from}).to_string())
            }
            Watched::Missed { events, .. } => {
                note(format!("{events} events were not shown"));
                None
            }
        };
        if let Some(text) = text.filter(|_| is_read) {
            let line = format!("{text}\n");
            let written = async {
                output.write_all(line.as_bytes()).await?;
                output.flush().await
            };
            if written.await.is_err() {
                is_read = false;
                note("nobody reads what is printed any more; serving goes on, and a signal ends it");
            }
        }
    }
    Ok(open)
}

/// An event in one line, if people want to see it.
fn describe_event(event: &Event) -> Option<String> {
    let what = match &event.kind {
        EventKind::TurnStarted => "started".to_owned(),
        EventKind::ToolStarted { name, arguments, .. } => {
            format!("{} {}", shortened(name, 60), shortened(arguments, 90))
        }
        EventKind::ToolFinished { name, is_error: true, content, .. } => {
            format!("{} failed: {}", shortened(name, 60), shortened(content, 90))
        }
        EventKind::ToolFinished { name, content, .. } if name == "exec" => event_text::ended(content)?,
        EventKind::Message { content, .. } => format!("says: {}", shortened(content, 90)),
        EventKind::Warning { code, text } if code == "resumed" => return Some(with_session(event, text)),
        EventKind::Warning { text, .. } => {
            format!("warning: {}", shortened(text, event_text::MAX_WARNING_CHARS))
        }
        EventKind::RetryWait { .. } => event_text::wait(&event.kind)?,
        EventKind::ModelChanged { .. } => event_text::model_change(&event.kind)?,
        EventKind::TaskStarted { task_id, description } => {
            format!("task {} goes on in the background: {}", short(*task_id), shortened(description, 90))
        }
        EventKind::TaskEnded { task_id, status, exit_code } => {
            event_text::task(*task_id, *status, *exit_code)
        }
        EventKind::Question { id, text } => {
            let open = OpenQuestion { id: *id, text: text.clone() };
            format!("{}; to answer: {}", open.shown(), open.command(&event.session))
        }
        EventKind::Answered { id } => format!("question {id} is settled"),
        EventKind::ExtractDone { through } => format!("gone through for memory up to record {through}"),
        EventKind::MemoryChanged { .. } => event_text::aside(&event.kind)?,
        EventKind::TurnEnded { outcome: Outcome::Completed, text, .. } => {
            format!("completed: {}", shortened(text, 90))
        }
        EventKind::TurnEnded { outcome, error, .. } => {
            let error = error.as_deref().map(|error| format!(": {}", shortened(error, 200)));
            format!("{}{}", in_words(*outcome), error.unwrap_or_default())
        }
        _ => return None,
    };
    let turn = event.turn.map(|turn| format!("turn {turn} ")).unwrap_or_default();
    Some(with_session(event, &format!("{turn}{what}")))
}

/// The session key before the text; events of the home have none.
fn with_session(event: &Event, what: &str) -> String {
    match event.session.as_str() {
        "" => what.to_owned(),
        key => format!("{} {what}", shortened(key, 60)),
    }
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
