//! `longhaul serve`: holds the sessions of a home until it is told to end.

use std::time::Duration;

use longhaul_agent::{Config, Runtime, Watched, Watcher};
use longhaul_protocol::{Event, EventKind, Outcome};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::arguments::{Choice, Place, ServeOptions};
use crate::output::{in_words, note, shortened};
use crate::{BadUsage, exit};

/// How long what is still to be shown may take when everything else has ended.
const LAST_WORDS: Duration = Duration::from_millis(500);

pub(crate) async fn run(place: &Place, choice: &Choice, options: &ServeOptions) -> anyhow::Result<u8> {
    if !options.no_http {
        return Err(
            BadUsage("this version has no HTTP API yet: use `longhaul serve --no-http`".to_owned()).into()
        );
    }
    let mut config = Config::of_home(place.folder()?)?;
    if let Some(folder) = choice.work_dir()? {
        config = config.with_work_dir(&folder);
    }
    if let Some(model) = choice.model() {
        config.settings.model.name = model;
    }
    if config.settings.model.name.is_empty() {
        let hint = "no model: name one with --model scripted/FILE.json, LONGHAUL_MODEL or [model] name in config.toml";
        return Err(BadUsage(hint.to_owned()).into());
    }
    // From here on a signal is ours: one that comes while the journal is opened must not be lost.
    let mut ends = Ends::new()?;
    let home = config.home.display().to_string();
    let model = config.settings.model.name.clone();
    let runtime = Runtime::open(config).await?;
    let watching = tokio::spawn(show(runtime.watch(), tokio::io::stdout(), options.json));
    runtime.start().await?;
    note(format!("serving {home} with {model}; Ctrl-C suspends"));
    let number = ends.next().await;
    note("suspending; what is open is resumed by the next `longhaul serve`");
    tokio::select! {
        ended = runtime.shutdown() => ended?,
        // Whoever asks twice means it. What is on disk is on disk.
        _ = ends.next() => std::process::exit(i32::from(exit::SIGNAL + number)),
    }
    // A reader that has gone or is slow is no reason to stay.
    let _ = tokio::time::timeout(LAST_WORDS, watching).await;
    Ok(exit::SIGNAL + number)
}

/// The signals that suspend.
struct Ends {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Ends {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// The number of the next one.
    async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.terminate.recv() => 15,
            _ = self.interrupt.recv() => 2,
            _ = self.hang_up.recv() => 1,
        }
    }
}

/// Prints what happens until the runtime has ended, or nobody reads it any more. Nothing else waits for the reader.
async fn show(
    mut watcher: Watcher,
    mut output: impl AsyncWrite + Unpin,
    as_json: bool,
) -> anyhow::Result<()> {
    while let Some(watched) = watcher.next().await {
        let text = match watched {
            Watched::Event(event) if as_json => Some(serde_json::to_string(&event)?),
            Watched::Event(event) => told(&event),
            Watched::Missed { events, .. } => {
                note(format!("{events} events were not shown"));
                None
            }
        };
        if let Some(text) = text {
            output.write_all(format!("{text}\n").as_bytes()).await?;
            output.flush().await?;
        }
    }
    Ok(())
}

/// What people want to know while it runs.
fn told(event: &Event) -> Option<String> {
    let what = match &event.kind {
        EventKind::TurnStarted => "started".to_owned(),
        EventKind::ToolStarted { name, arguments, .. } => format!("{name} {}", shortened(arguments, 90)),
        EventKind::ToolFinished { name, is_error: true, content, .. } => {
            format!("{name} failed: {}", shortened(content, 90))
        }
        EventKind::Warning { text, .. } => format!("warning: {}", shortened(text, 200)),
        EventKind::TurnEnded { outcome: Outcome::Completed, text, .. } => {
            format!("completed: {}", shortened(text, 90))
        }
        EventKind::TurnEnded { outcome, error, .. } => {
            let error = error.as_deref().map(|error| format!(": {}", shortened(error, 200)));
            format!("{}{}", in_words(*outcome), error.unwrap_or_default())
        }
        _ => return None,
    };
    let turn = event.turn.map(|turn| format!(" turn {turn}")).unwrap_or_default();
    Some(format!("{}{turn} {what}", shortened(&event.session, 60)))
}
