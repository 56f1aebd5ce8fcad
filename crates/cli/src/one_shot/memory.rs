//! Y2: `run --wait` extracts memory before it ends. A failure is a warning only: the request itself is done.

use longhaul_agent::{RetryMode, Runtime, Session};

use super::OneShot;
use crate::one_shot::event_loop::EventLoop;
use crate::{config, exit};

/// Extracts memory from a session. Returns the exit code if a signal ended the wait.
pub(super) async fn extract(session: &Session, watch: &mut EventLoop<'_>) -> Option<u8> {
    let mut watcher = session.watch();
    let mut work = std::pin::pin!(session.extract());
    let extracted = loop {
        tokio::select! {
            biased;
            number = watch.signals.next() => {
                watch.printer.note("stopped; memory will be updated later");
                return Some(exit::SIGNAL + number);
            }
            Some(watched) = watcher.next() => watch.printer.watched(&watched),
            extracted = &mut work => break extracted,
        }
    };
    while let Some(watched) = watcher.next_waiting().await {
        watch.printer.watched(&watched);
    }
    if let Err(error) = extracted {
        watch.printer.note(extraction_failed(&error));
    }
    None
}

/// The same where another process runs the session: extraction does not need its lease.
pub(super) async fn extract_in_own_runtime(one_shot: &OneShot<'_>, watch: &mut EventLoop<'_>) -> Option<u8> {
    let opened = async {
        let config = config::with_model(one_shot.globals, RetryMode::OneShot).await?;
        if config.settings.memory.extract_at_tokens == 0 {
            return Ok(None);
        }
        let runtime = Runtime::open(config).await?;
        let session = runtime.session(&one_shot.key).await?;
        anyhow::Ok(Some((runtime, session)))
    };
    match opened.await {
        Ok(Some((runtime, session))) => {
            let by_signal = extract(&session, watch).await;
            let _ = runtime.shutdown().await;
            by_signal
        }
        Ok(None) => None,
        Err(error) => {
            watch.printer.note(extraction_failed(format_args!("{error:#}")));
            None
        }
    }
}

fn extraction_failed(error: impl std::fmt::Display) -> String {
    format!("warning: could not update memory: {error}; will retry later")
}
