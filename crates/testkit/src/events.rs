use std::time::Duration;

use longhaul_agent::{Watched, Watcher};
use longhaul_protocol::{Event, EventKind};

/// How long a test waits before it fails. Only the speed of a failure depends on it.
const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// Collects the events of a watcher up to and including the first that `last` accepts.
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
