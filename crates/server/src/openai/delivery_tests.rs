use std::time::Duration;

use super::*;

/// H1.
#[test]
fn a_delivered_answer_is_forgotten_and_a_lost_one_is_not() {
    let deliveries = Deliveries::default();
    let (session, other) = (SessionId::generate(), SessionId::generate());
    let (first, second) = (InputId::generate(), InputId::generate());

    let guard = deliveries.connect(session, first);
    assert_eq!(deliveries.state(session, first), DeliveryState::Awaited);
    guard.mark_delivered();
    assert_eq!(deliveries.state(session, first), DeliveryState::Delivered);
    drop(guard);
    drop(deliveries.connect(other, second));

    assert_eq!(deliveries.state(session, first), DeliveryState::Unknown);
    assert_eq!(deliveries.state(other, second), DeliveryState::Lost);
    assert_eq!(deliveries.lock().keys().collect::<Vec<_>>(), [&other]);
}

/// H1: a request of an earlier process whose answer was delivered in this one is not taken for one that is still owed.
#[test]
fn the_delivery_of_an_earlier_request_is_remembered() {
    let request = InputId::generate();
    let deliveries = Deliveries { began: At(request.made_at().0 + 1), ..Deliveries::default() };
    let session = SessionId::generate();

    deliveries.connect(session, request).mark_delivered();

    assert_eq!(deliveries.state(session, request), DeliveryState::Delivered);
}

/// T2: a request waits for those of its own conversation only.
#[tokio::test]
async fn a_lock_holds_up_its_own_name_only() {
    let deliveries = Deliveries::default();
    let held = deliveries.lock_conversation("one".to_owned()).await;

    let second = deliveries.lock_conversation("two".to_owned());
    let second = tokio::time::timeout(Duration::from_secs(10), second).await.expect("another lock");
    let same =
        tokio::time::timeout(Duration::from_millis(20), deliveries.lock_conversation("one".to_owned())).await;
    assert!(same.is_err(), "the lock is held");
    drop((held, second));
    drop(deliveries.lock_conversation("one".to_owned()).await);

    assert!(deliveries.locks.0.lock().unwrap().values().all(|lock| lock.strong_count() == 0));
}
