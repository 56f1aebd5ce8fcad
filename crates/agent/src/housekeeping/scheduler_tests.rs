use super::*;

const INTERVAL: Duration = Duration::from_secs(30);

/// Y3: the first check comes one full interval after the start.
#[tokio::test(start_paused = true)]
async fn a_check_is_due_when_a_full_interval_has_passed() {
    let (_set, mut interval) = watch::channel(INTERVAL);
    let start = Instant::now();

    wait_interval(start, &mut interval).await;

    assert!(start.elapsed() >= INTERVAL && start.elapsed() < INTERVAL + Duration::from_millis(5));
}

/// Y3: the interval can change while running.
#[tokio::test(start_paused = true)]
async fn an_interval_that_is_changed_holds_for_the_wait_that_is_under_way() {
    for (changed, passes) in [(Duration::from_secs(3), 10), (Duration::from_secs(50), 50)] {
        let (set, mut interval) = watch::channel(INTERVAL);
        let start = Instant::now();
        let changing = async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            set.send_replace(changed);
            std::future::pending::<()>().await;
        };

        tokio::select! {
            () = wait_interval(start, &mut interval) => {}
            () = changing => {}
        }

        assert_eq!(start.elapsed().as_secs(), passes, "{changed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_interval_longer_than_a_clock_can_tell_is_waited_for_until_it_is_changed() {
    let (set, mut interval) = watch::channel(Duration::MAX);
    let start = Instant::now();
    let changing = async {
        tokio::time::sleep(INTERVAL).await;
        set.send_replace(Duration::from_secs(1));
        std::future::pending::<()>().await;
    };

    tokio::select! {
        () = wait_interval(start, &mut interval) => {}
        () = changing => {}
    }

    assert_eq!(start.elapsed().as_secs(), 30);
}

fn queued(id: SessionId) -> QueuedSession {
    QueuedSession { id, key: String::new(), at: Instant::now() }
}

/// Y3, Y4: sessions that talk much don't keep those that are idle from being looked at, nor the other way round.
#[test]
fn neither_busy_nor_idle_sessions_keep_the_others_waiting() {
    let mut queues = SessionQueues::default();
    let ids: Vec<SessionId> = (0..6).map(|_| SessionId::generate()).collect();
    queues.idle.extend(ids[..3].iter().copied().map(queued));
    ids[3..].iter().copied().map(queued).for_each(|queued| queues.push_after_turn(queued));

    let order: Vec<CheckReason> = std::iter::from_fn(|| queues.pop()).map(|(why, _)| why).collect();

    let pair = [CheckReason::TurnEnded, CheckReason::Idle];
    assert_eq!(order, [pair, pair, pair].concat());
}

#[test]
fn a_session_that_waits_is_not_queued_again() {
    let mut queues = SessionQueues::default();
    let (id, other) = (SessionId::generate(), SessionId::generate());

    [id, other, id, id].map(queued).into_iter().for_each(|queued| queues.push_after_turn(queued));

    let order: Vec<SessionId> = std::iter::from_fn(|| queues.pop()).map(|(_, queued)| queued.id).collect();
    assert_eq!(order, [id, other]);
}
