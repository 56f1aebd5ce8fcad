use std::time::{Duration, Instant};

use crate::{Append, Error, Holder, Journal, WakeSignal};

use super::{LEASE_EXPIRY, Place, a_stream, append_notes, note, texts};

/// How long a wake may take. It only decides how soon a failure is reported.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

async fn wait_past_expiry() {
    tokio::time::sleep(LEASE_EXPIRY + Duration::from_millis(50)).await;
}

pub async fn a_lease_is_exclusive_until_it_is_released(place: &impl Place) {
    let stream = a_stream();
    let (first, second) = (place.open().await, place.open().await);
    let lease = first.acquire_lease(&stream).await.unwrap();

    let refused = second.acquire_lease(&stream).await.unwrap_err();
    let holder = second.holder(&stream).await.unwrap();
    let live_holder = second.live_holder(&stream).await.unwrap();
    first.release_lease(&lease).await.unwrap();
    let after_release = second.live_holder(&stream).await.unwrap();
    let taken = second.acquire_lease(&stream).await.unwrap();

    let this = Holder::this_process();
    assert_eq!(refused, Error::Held { stream: stream.clone(), holder: Box::new(this.clone()) });
    assert_eq!(holder, Some(this.clone()));
    assert_eq!(live_holder, Some(this));
    assert_eq!(after_release, None);
    assert!(taken.token > lease.token, "each holder has a higher token");
}

pub async fn an_expired_lease_has_a_holder_but_no_live_one(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open_expiring().await;
    journal.acquire_lease(&stream).await.unwrap();
    wait_past_expiry().await;

    let holder = journal.holder(&stream).await.unwrap();
    let live_holder = journal.live_holder(&stream).await.unwrap();

    assert_eq!(holder, Some(Holder::this_process()));
    assert_eq!(live_holder, None);
}

/// J2.
pub async fn an_expired_lease_that_nobody_took_goes_on(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open_expiring().await;
    let lease = journal.acquire_lease(&stream).await.unwrap();
    wait_past_expiry().await;

    let rival = place.open_expiring().await;
    let since = Instant::now();
    let append = journal.append(Append::under(&lease).expecting(0).record(note("after a long sleep"))).await;
    let refused = rival.acquire_lease(&stream).await;
    let is_over = since.elapsed() >= LEASE_EXPIRY;

    assert!(append.is_ok(), "{append:?}");
    assert!(matches!(refused, Err(Error::Held { .. })) || is_over, "the append has renewed it: {refused:?}");
}

/// J2.
pub async fn a_writer_whose_lease_was_taken_over_is_fenced_however_late(place: &impl Place) {
    let stream = a_stream();
    let (stale, rival) = (place.open_expiring().await, place.open_expiring().await);
    let old = stale.acquire_lease(&stream).await.unwrap();
    append_under(&*stale, &old, "mine").await;
    wait_past_expiry().await;
    let new = rival.acquire_lease(&stream).await.unwrap();
    append_under(&*rival, &new, "theirs").await;

    let held = stale.append(Append::under(&old).record(note("late"))).await.unwrap_err();
    rival.release_lease(&new).await.unwrap();
    let released = stale.append(Append::under(&old).record(note("later still"))).await.unwrap_err();
    let renewed = stale.renew_lease(&old).await.unwrap_err();

    assert!(matches!(held, Error::Fenced { holder: Some(_), .. }), "{held:?}");
    assert!(matches!(released, Error::Fenced { .. }), "{released:?}");
    assert!(matches!(renewed, Error::Fenced { .. }), "{renewed:?}");
    assert_eq!(texts(&*rival, &stream).await, ["mine", "theirs"]);
}

async fn append_under(journal: &dyn Journal, lease: &crate::Lease, text: &str) {
    journal.append(Append::under(lease).record(note(text))).await.unwrap();
}

pub async fn an_append_without_a_lease_is_refused_while_somebody_holds_it(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    let lease = journal.acquire_lease(&stream).await.unwrap();

    let held = journal.append(Append::to(&stream).record(note("no lease"))).await;
    journal.release_lease(&lease).await.unwrap();
    let free = journal.append(Append::to(&stream).record(note("free"))).await;

    assert!(matches!(held, Err(Error::Fenced { .. })), "{held:?}");
    assert!(free.is_ok(), "{free:?}");
}

pub async fn appends_and_renewals_keep_a_lease(place: &impl Place) {
    let stream = a_stream();
    let (journal, rival) = (place.open_expiring().await, place.open_expiring().await);
    let lease = journal.acquire_lease(&stream).await.unwrap();

    let mut since = Instant::now();
    for round in 0..4 {
        tokio::time::sleep(LEASE_EXPIRY / 2).await;
        since = Instant::now();
        if round % 2 == 0 {
            append_under(&*journal, &lease, "still here").await;
        } else {
            journal.renew_lease(&lease).await.unwrap();
        }
    }

    let refused = rival.acquire_lease(&stream).await;
    let is_over = since.elapsed() >= LEASE_EXPIRY;
    assert!(matches!(refused, Err(Error::Held { .. })) || is_over, "{refused:?}");
}

pub async fn a_lease_of_a_removed_stream_fits_nothing(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    let old = journal.acquire_lease(&stream).await.unwrap();
    let refused = place.open().await.remove(&stream, None).await;
    journal.remove(&stream, Some(&old)).await.unwrap();
    let new = journal.acquire_lease(&stream).await.unwrap();

    let late = journal.append(Append::under(&old).record(note("from the first life"))).await;

    assert!(
        matches!(refused, Err(Error::Fenced { .. })),
        "held streams are not removed by others: {refused:?}"
    );
    assert!(matches!(late, Err(Error::Fenced { .. })), "{late:?}");
    append_under(&*journal, &new, "from the second").await;
    journal.remove(&stream, Some(&new)).await.unwrap();
    journal.release_lease(&new).await.unwrap();
    assert!(
        !journal.streams().await.unwrap().contains(&stream),
        "giving back what is gone brings nothing back"
    );
}

/// J3: what one stream's writer does touches no other stream.
pub async fn a_lease_on_one_stream_says_nothing_about_another(place: &impl Place) {
    let (session, extract) = (a_stream(), a_stream());
    let (turn, memory) = (place.open().await, place.open().await);
    let turn_lease = turn.acquire_lease(&session).await.unwrap();
    let memory_lease = memory.acquire_lease(&extract).await.unwrap();

    append_under(&*memory, &memory_lease, "extract").await;
    append_under(&*turn, &turn_lease, "turn").await;
    let crossed = memory.append(Append::under(&memory_lease).record(note("x")).expecting(9)).await;

    assert!(matches!(crossed, Err(Error::Conflict { .. })));
    assert_eq!(texts(&*turn, &session).await, ["turn"]);
    assert_eq!(texts(&*turn, &extract).await, ["extract"]);
}

pub async fn a_ring_reaches_the_holder(place: &impl Place) {
    let (stream, other) = (a_stream(), a_stream());
    let (holder, visitor) = (place.open().await, place.open().await);
    let mut wakes = holder.wake_signals().await.unwrap();
    holder.acquire_lease(&stream).await.unwrap();

    visitor.wake_holder(&other).await.unwrap();
    visitor.wake_holder(&stream).await.unwrap();
    holder.wake_holder(&stream).await.unwrap();

    for _ in 0..2 {
        let wake = tokio::time::timeout(TEST_TIMEOUT, wakes.next()).await.expect("a wake");
        assert_eq!(wake, WakeSignal::Stream(stream.clone()), "only for what the holder holds");
    }
}

pub async fn a_ring_for_a_stream_that_nobody_holds_reaches_the_host(place: &impl Place) {
    let (held, free) = (a_stream(), a_stream());
    let (host, visitor) = (place.open().await, place.open().await);
    let mut wakes = host.wake_signals().await.unwrap();
    let of_host = host.host_for(&free).await.unwrap();
    host.acquire_lease(&of_host).await.unwrap();
    let lease = visitor.acquire_lease(&held).await.unwrap();
    visitor.release_lease(&lease).await.unwrap();

    visitor.wake_holder(&free).await.unwrap();
    visitor.wake_holder(&held).await.unwrap();

    for stream in [free, held] {
        let wake = tokio::time::timeout(TEST_TIMEOUT, wakes.next()).await.expect("a wake");
        assert_eq!(wake, WakeSignal::Stream(stream));
    }
}

/// A process that waits for wakes learns that none will come any more.
pub async fn a_closed_journal_rings_no_more(place: &impl Place) {
    let journal = place.open().await;
    let mut wakes = journal.wake_signals().await.unwrap();

    journal.close().await;

    let last = tokio::time::timeout(TEST_TIMEOUT, wakes.next()).await.expect("an answer");
    assert_eq!(last, WakeSignal::Closed);
}

/// A subscriber hears what it is sent until one side hangs up; a process that takes no subscribers hangs up at once.
pub async fn a_caller_hears_lines_until_one_side_hangs_up(place: &impl Place) {
    let stream = a_stream();
    let (holder, visitor) = (place.open().await, place.open().await);
    let _rings = holder.wake_signals().await.unwrap();
    holder.acquire_lease(&stream).await.unwrap();
    let process = visitor.holder(&stream).await.unwrap().unwrap();

    let mut unheard = visitor.subscribe(&process, &stream).await.unwrap().expect("the holder is there");
    let hung_up = tokio::time::timeout(TEST_TIMEOUT, unheard.next()).await.expect("an answer");
    let mut callers = holder.subscribers().await.unwrap();
    let mut call = visitor.subscribe(&process, &stream).await.unwrap().expect("the holder is there");
    let mut caller = tokio::time::timeout(TEST_TIMEOUT, callers.next()).await.expect("a call").unwrap();
    let was_heard = caller.tell("one\ntwo\n").await;
    let lines = [call.next().await, call.next().await];
    drop(call);
    tokio::time::timeout(TEST_TIMEOUT, caller.hung_up()).await.expect("it hung up");
    holder.close().await;

    assert_eq!(hung_up, None);
    assert_eq!((caller.stream(), was_heard), (&stream, true));
    assert_eq!(lines, [Some("one".to_owned()), Some("two".to_owned())]);
    assert!(callers.next().await.is_none(), "no subscriber can come any more");
}

pub async fn a_lost_ring_loses_nothing(place: &impl Place) {
    let stream = a_stream();
    let (holder, visitor) = (place.open().await, place.open().await);
    holder.acquire_lease(&stream).await.unwrap();

    let nobody_listens = visitor.wake_holder(&stream).await;
    append_notes(&*visitor, &a_stream(), &["goes on"]).await;

    assert_eq!(nobody_listens, Ok(()));
}
