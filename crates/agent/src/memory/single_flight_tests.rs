use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Semaphore;

use super::*;

/// Y5
#[tokio::test]
async fn who_comes_while_a_job_is_under_way_gets_what_it_came_to() {
    let (single_flight, begun, gate) =
        (SingleFlight::<u8, usize>::default(), AtomicUsize::new(0), Semaphore::new(0));
    let job = || async {
        let number = begun.fetch_add(1, Ordering::SeqCst) + 1;
        gate.acquire().await.unwrap().forget();
        number
    };
    let release = async {
        tokio::task::yield_now().await;
        gate.add_permits(1);
    };

    let (first, second, third, ()) = tokio::join!(
        single_flight.run_shared(1, job()),
        single_flight.run_shared(1, job()),
        single_flight.run_shared(1, job()),
        release
    );
    gate.add_permits(1);
    let later = single_flight.run_shared(1, job()).await;

    assert_eq!((first, second, third, later), (1, 1, 1, 2));
}

/// Y5
#[tokio::test]
async fn a_job_that_was_cut_is_done_by_who_waited_for_it() {
    let (single_flight, begun) = (SingleFlight::<u8, usize>::default(), AtomicUsize::new(0));
    let never = async {
        begun.fetch_add(1, Ordering::SeqCst);
        std::future::pending().await
    };
    let at_once = async { begun.fetch_add(1, Ordering::SeqCst) + 1 };
    let mut cut = Box::pin(single_flight.run_shared(1, never));
    let mut waiting = Box::pin(single_flight.run_shared(1, at_once));
    let polled = tokio::select! {
        biased;
        _ = &mut cut => true,
        _ = &mut waiting => true,
        () = std::future::ready(()) => false,
    };

    drop(cut);
    let done = waiting.await;

    assert_eq!((polled, done), (false, 2));
}

/// Y5
#[tokio::test]
async fn jobs_for_different_things_run_side_by_side() {
    let (single_flight, gate) = (SingleFlight::<u8, u8>::default(), Semaphore::new(0));
    let waits = async {
        gate.acquire().await.unwrap().forget();
        1
    };
    let lets_go = async {
        gate.add_permits(1);
        2
    };

    assert_eq!(
        tokio::join!(single_flight.run_shared(1, waits), single_flight.run_shared(2, lets_go)),
        (1, 2)
    );
}

/// Y8: what was new only after a job had begun is not left to chance.
#[tokio::test]
async fn who_must_see_what_is_new_does_it_after_the_one_under_way() {
    let (single_flight, begun, gate) =
        (SingleFlight::<u8, usize>::default(), AtomicUsize::new(0), Semaphore::new(0));
    let job = || async {
        let number = begun.fetch_add(1, Ordering::SeqCst) + 1;
        gate.acquire().await.unwrap().forget();
        number
    };
    let release = async {
        tokio::task::yield_now().await;
        gate.add_permits(2);
    };

    let (first, second, ()) =
        tokio::join!(single_flight.run_exclusive(1, job()), single_flight.run_exclusive(1, job()), release);

    assert_eq!((first, second), (1, 2));
}
