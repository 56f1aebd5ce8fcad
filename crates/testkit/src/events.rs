use std::time::Duration;

use longhaul_agent::{Watched, Watcher};
use longhaul_protocol::{Event, EventKind};

/// How long a test waits before it gives up; nothing depends on it but how soon a failure is told.
const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// Everything that a watcher sees up to and with the first event that this is true of.
pub async fn collect_until(watcher: &mut Watcher, last: impl Fn(&EventKind) -> bool) -> Vec<Event> {
    let mut events = Vec::new();
    let collecting = async {
        loop {
            match watcher.next().await {
                Some(Watched::Event(event)) => {
                    let is_last = last(&event.kind);
                    events.push(event);
                    if is_last {
                        return;
                    }
                }
                Some(Watched::Missed { .. }) => {}
                None => panic!("the runtime has ended"),
            }
        }
    };
    if tokio::time::timeout(WAIT_LIMIT, collecting).await.is_err() {
        panic!("it did not come; until then there were {events:#?}");
    }
    events
}

/// Whether an event is the end of a turn.
pub fn ended_turn(kind: &EventKind) -> bool {
    matches!(kind, EventKind::TurnEnded { .. })
}
