use longhaul_protocol::{At, EventKind};

use super::*;

fn event(seq: Option<u64>) -> Event {
    Event { seq, at: At(0), session: "a".to_owned(), turn: None, kind: EventKind::TurnStarted }
}

/// T14
#[test]
fn what_a_slow_watcher_misses_is_one_stretch_and_nothing_overtakes_it() {
    let hub = Arc::new(Hub::default());
    let mut slow = hub.watch(hub.clone());
    for seq in 1..=WAITING as u64 + 3 {
        hub.show(&event(Some(seq)));
    }

    for seq in 1..=WAITING as u64 {
        assert_eq!(slow.try_next(), Some(Watched::Event(event(Some(seq)))));
    }
    hub.show(&event(Some(5_000)));

    let first_missed = WAITING as u64 + 1;
    assert_eq!(slow.try_next(), Some(Watched::Missed { events: 4, from: Some(first_missed) }));
    assert_eq!(slow.try_next(), None);
    hub.show(&event(None));
    assert_eq!(slow.try_next(), Some(Watched::Event(event(None))));
}

#[tokio::test]
async fn a_watcher_of_a_runtime_that_has_ended_sees_what_was_left_and_then_the_end() {
    let hub = Arc::new(Hub::default());
    let mut early = hub.watch(hub.clone());
    hub.show(&event(Some(1)));

    hub.close();

    assert_eq!(early.next().await, Some(Watched::Event(event(Some(1)))));
    assert_eq!(early.next().await, None);
    assert_eq!(hub.watch(hub.clone()).next().await, None);
}
