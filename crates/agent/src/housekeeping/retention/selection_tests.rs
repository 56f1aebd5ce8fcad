use longhaul_journal::Head;
use longhaul_protocol::SessionId;

use super::*;

const NOW: At = At(1_000 * DAY_MS);

fn entry(key: &str, days_ago: i64) -> SessionEntry {
    SessionEntry {
        key: key.to_owned(),
        id: SessionId::generate(),
        trashed: false,
        pinned: false,
        head: Head { seq: 9, ..Head::EMPTY },
        last_at: Some(At(NOW.0 - days_ago * DAY_MS)),
        epoch_from: None,
        inbox_head: 1,
    }
}

/// Sessions `a` to `e`, the newest first, a day apart, each of 10 bytes.
fn five() -> Vec<Candidate> {
    let keys = ["a", "b", "c", "d", "e"];
    keys.iter().zip(1..).map(|(key, days)| Candidate::new(entry(key, days), vec![], None, 10)).collect()
}

fn chosen(settings: &SessionSettings, mut candidates: Vec<Candidate>) -> Vec<(String, PruneReason)> {
    let mut choice = RetentionPolicy::new(settings, NOW, sort_newest_first(&mut candidates));
    let mut chosen = Vec::new();
    for candidate in candidates.iter().rev() {
        if let Some(reason) = choice.reason_to_trash(candidate) {
            choice.record_trashed(candidate);
            chosen.push((candidate.entry.key.clone(), reason));
        }
    }
    chosen
}

fn named(chosen: &[(&str, PruneReason)]) -> Vec<(String, PruneReason)> {
    chosen.iter().map(|(key, reason)| ((*key).to_owned(), *reason)).collect()
}

/// S5: the sessions that schedules make for their runs don't push the others out, and a session with a subagent counts as one.
#[test]
fn runs_have_a_limit_of_their_own_and_subagents_count_with_their_parent() {
    let keys = ["a", "schedule:look/1", "b", "schedule:look/2", "schedule:tidy/1", "c", "schedule:look/3"];
    let candidates = || {
        let with_subagent = |key: &str| if key == "a" { vec![entry("agent:1", 1)] } else { vec![] };
        let candidate =
            |(key, days): (&&str, _)| Candidate::new(entry(key, days), with_subagent(key), None, 10);
        keys.iter().zip(1..).map(candidate).collect::<Vec<_>>()
    };
    let keep = SessionSettings { keep: 2, ..SessionSettings::default() };
    let keep_runs = SessionSettings { keep_runs: 1, ..SessionSettings::default() };

    assert_eq!(chosen(&keep, candidates()), named(&[("c", PruneReason::TooMany)]));
    let runs = [("schedule:look/3", PruneReason::TooManyRuns), ("schedule:look/2", PruneReason::TooManyRuns)];
    assert_eq!(chosen(&keep_runs, candidates()), named(&runs));
}

/// S5.
#[test]
fn each_limit_takes_the_oldest_first_and_no_more_than_it_must() {
    let off = SessionSettings::default();
    let keep = SessionSettings { keep: 3, ..off.clone() };
    let age = SessionSettings { max_age_days: 3, ..off.clone() };
    let bytes = SessionSettings { max_bytes: 35, ..off.clone() };
    let all = SessionSettings { keep: 4, max_age_days: 4, max_bytes: 30, ..off.clone() };

    assert_eq!(chosen(&off, five()), []);
    assert_eq!(chosen(&keep, five()), named(&[("e", PruneReason::TooMany), ("d", PruneReason::TooMany)]));
    assert_eq!(chosen(&age, five()), named(&[("e", PruneReason::TooOld), ("d", PruneReason::TooOld)]));
    assert_eq!(chosen(&bytes, five()), named(&[("e", PruneReason::TooLarge), ("d", PruneReason::TooLarge)]));
    assert_eq!(chosen(&all, five()), named(&[("e", PruneReason::TooOld), ("d", PruneReason::TooLarge)]));
}

/// S5.
#[test]
fn what_is_pinned_and_the_newest_stay_whatever_the_limits_say() {
    let tight = SessionSettings { keep: 1, max_age_days: 1, max_bytes: 1, ..SessionSettings::default() };
    let mut candidates = five();
    candidates[4].entry.pinned = true;
    candidates
        .iter_mut()
        .for_each(|candidate| candidate.last_used = At(candidate.last_used.0 - 100 * DAY_MS));

    let keys: Vec<String> = chosen(&tight, candidates).into_iter().map(|(key, _)| key).collect();

    assert_eq!(keys, ["d", "c", "b"]);
}

/// S4, S5.
#[test]
fn a_new_fork_of_something_old_is_new() {
    let age = SessionSettings { max_age_days: 3, ..SessionSettings::default() };
    let fork = Candidate::new(entry("fork", 400), vec![], Some(NOW), 10);
    let other = Candidate::new(entry("other", 0), vec![], Some(NOW), 10);

    assert_eq!(chosen(&age, vec![other, fork]), []);
}

/// S5: two weeks in the trash, counted from when it was last touched.
#[test]
fn the_trash_is_kept_for_two_weeks() {
    let trashed = |days_ago: i64, used_days_ago: i64| {
        let entry = SessionEntry { trashed: true, ..entry("a", used_days_ago) };
        let times = SessionTimes { named: At(0), trashed: Some(At(NOW.0 - days_ago * DAY_MS)) };
        expired_trash(&entry, &times, NOW)
    };

    assert_eq!(trashed(14, 100), Some(PruneReason::InTrash));
    assert_eq!(trashed(13, 100), None);
    assert_eq!(trashed(30, 5), None, "somebody was at it since");
    let times = SessionTimes { named: At(0), trashed: None };
    assert_eq!(expired_trash(&entry("a", 100), &times, NOW), None);
}

/// S2.
#[test]
fn what_was_named_and_never_begun_goes_after_a_day() {
    let empty = SessionEntry { head: Head::EMPTY, last_at: None, inbox_head: 0, ..entry("a", 0) };
    let named = |days_ago: i64| SessionTimes { named: At(NOW.0 - days_ago * DAY_MS), trashed: None };

    assert_eq!(expired_empty(&empty, &named(1), NOW), Some(PruneReason::Empty));
    assert_eq!(expired_empty(&empty, &named(0), NOW), None);
    assert_eq!(expired_empty(&SessionEntry { inbox_head: 1, ..empty }, &named(1), NOW), None);
    assert_eq!(expired_empty(&entry("a", 100), &named(100), NOW), None);
}
