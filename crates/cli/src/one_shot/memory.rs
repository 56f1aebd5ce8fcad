//! Y2: whoever stays until all is done leaves a session that was gone through for memory. That it could not be is a warning: what was
//! asked for is done.

use longhaul_agent::{Patience, Runtime, Session};

use super::OneShot;
use crate::one_shot::event_loop::Attendant;
use crate::{config, exit};

/// Goes through a session, once; the exit code, if a signal ended the wait for it.
pub(super) async fn go_through(session: &Session, attendant: &mut Attendant<'_>) -> Option<u8> {
    let mut watcher = session.watch();
    let mut work = std::pin::pin!(session.extract());
    let extracted = loop {
        tokio::select! {
            biased;
            number = attendant.ends.next() => {
                attendant.teller.note("stopped; what is worth remembering of it is looked for later");
                return Some(exit::SIGNAL + number);
            }
            Some(watched) = watcher.next() => attendant.teller.watched(&watched),
            extracted = &mut work => break extracted,
        }
    };
    while let Some(watched) = watcher.next_waiting().await {
        attendant.teller.watched(&watched);
    }
    if let Err(error) = extracted {
        attendant.teller.note(not_gone_through(&error));
    }
    None
}

/// The same where another process runs the session: memory is nothing that only that one could write.
pub(super) async fn in_a_runtime_of_its_own(
    one_shot: &OneShot<'_>,
    attendant: &mut Attendant<'_>,
) -> Option<u8> {
    let opened = async {
        let config = config::with_model(one_shot.place, one_shot.choice, Patience::OneShot).await?;
        if config.settings.memory.extract_at_tokens == 0 {
            return Ok(None);
        }
        let runtime = Runtime::open(config).await?;
        let session = runtime.session(&one_shot.key).await?;
        anyhow::Ok(Some((runtime, session)))
    };
    match opened.await {
        Ok(Some((runtime, session))) => {
            let by_signal = go_through(&session, attendant).await;
            let _ = runtime.shutdown().await;
            by_signal
        }
        Ok(None) => None,
        Err(error) => {
            attendant.teller.note(not_gone_through(format_args!("{error:#}")));
            None
        }
    }
}

fn not_gone_through(error: impl std::fmt::Display) -> String {
    format!("warning: the session could not be gone through for memory: {error}; this is tried again later")
}
