use std::sync::Arc;

use super::{Phase, ServerPhase};
use crate::Error;

fn ended() -> Error {
    Error::Ended("it closed its output".to_owned())
}

/// A connection that is closed, or not.
type Connection = bool;

fn is_closed(connection: &Connection) -> bool {
    *connection
}

/// E1: the end of a server takes a moment to explain, and its next start may be ready by then.
#[test]
fn the_end_of_an_earlier_start_does_not_fail_the_next_one() {
    let mut phase = ServerPhase::default();
    let (first, _) = phase.begin_start(is_closed).unwrap();
    assert!(phase.set_ready(first, Arc::new(true)));
    let (second, _) = phase.begin_start(is_closed).unwrap();

    assert!(!phase.fail(first, ended(), 0));
    assert!(phase.set_ready(second, Arc::new(false)));
    assert!(!phase.fail(first, ended(), 0) && !phase.stop_generation(first));

    assert!(matches!(phase.phase(), Phase::Ready(_)) && phase.is_running(second) && !phase.is_running(first));
}

#[test]
fn a_start_that_was_stopped_is_not_used_when_it_succeeds_after_the_next_one_has_begun() {
    let mut phase = ServerPhase::<Connection>::default();
    let (first, _) = phase.begin_start(is_closed).unwrap();
    phase.stop();
    let (second, _) = phase.begin_start(is_closed).unwrap();

    assert!(!phase.set_ready(first, Arc::new(false)));
    assert!(phase.set_ready(second, Arc::new(false)));
}

#[test]
fn a_refused_login_fails_only_the_connection_that_got_it() {
    let mut phase = ServerPhase::default();
    let (first, _) = phase.begin_start(is_closed).unwrap();
    let (old, new) = (Arc::new(true), Arc::new(false));
    phase.set_ready(first, Arc::clone(&old));
    let (second, _) = phase.begin_start(is_closed).unwrap();
    phase.set_ready(second, Arc::clone(&new));

    assert!(!phase.fail_connection(&old, ended()));
    assert!(phase.fail_connection(&new, ended()));
}
