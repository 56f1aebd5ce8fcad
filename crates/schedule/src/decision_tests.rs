use longhaul_protocol::ScheduleSpec;
use proptest::prelude::*;

use super::*;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

fn timing(every: &str, missed: MissedPolicy, overlap: OverlapPolicy, grace: &str) -> Timing {
    let spec = ScheduleSpec {
        every: Some(every.to_owned()),
        missed,
        overlap,
        grace: grace.to_owned(),
        ..ScheduleSpec::new("look", "What is new?")
    };
    Timing::parse("look", &spec, At(0)).unwrap()
}

fn fire(slot: i64) -> Decision {
    Decision { slot: At(slot), since: None, action: SlotAction::Fire, is_late: false }
}

fn fire_late(slot: i64) -> Decision {
    Decision { is_late: true, ..fire(slot) }
}

fn unfired(action: SlotAction, since: i64, slot: i64) -> Decision {
    Decision { slot: At(slot), since: Some(At(since)).filter(|since| since.0 < slot), action, is_late: false }
}

/// W2: after an outage of five hours with a slot each hour, the latest run is made up for.
#[test]
fn after_an_outage_the_latest_slot_fires_and_the_others_are_missed() {
    let hourly = timing("1h", MissedPolicy::Latest, OverlapPolicy::Queue, "1h");

    let plan = decide(&hourly, At(0), Moment::idle(At(5 * HOUR + 10 * MINUTE)));

    let missed = unfired(SlotAction::Missed, HOUR, 4 * HOUR);
    assert_eq!(plan, Plan { decisions: vec![missed, fire_late(5 * HOUR)], wait: Wait::Until(At(6 * HOUR)) });
}

/// W2: with `all`, each slot within the grace period fires, one after the other. Each makes up for the outage; one that was due while
/// such a run went on does not.
#[test]
fn with_all_each_slot_in_the_grace_period_waits_for_the_one_before() {
    let hourly = timing("1h", MissedPolicy::All, OverlapPolicy::Queue, "3h");
    let now = Moment::idle(At(5 * HOUR + 10 * MINUTE));

    let first = decide(&hourly, At(0), now);
    let while_running = decide(&hourly, At(3 * HOUR), Moment { is_running: true, ..now });
    let ended = Moment { free_since: Some(now.at), late_run_began: Some(now.at), ..now };
    let after_its_end = decide(&hourly, At(3 * HOUR), ended);
    let long_run =
        Moment { at: At(6 * HOUR + 10 * MINUTE), free_since: Some(At(6 * HOUR + 10 * MINUTE)), ..ended };
    let due_meanwhile = decide(&hourly, At(5 * HOUR), long_run);

    assert_eq!(first.decisions, [unfired(SlotAction::Missed, HOUR, 2 * HOUR), fire_late(3 * HOUR)]);
    assert_eq!(while_running, Plan { decisions: vec![], wait: Wait::RunEnd });
    assert_eq!(after_its_end.decisions, [fire_late(4 * HOUR)]);
    assert_eq!(due_meanwhile.decisions, [fire(6 * HOUR)]);
}

/// W2: with `none`, a slot counts as on time for a minute.
#[test]
fn with_none_a_slot_fires_within_a_minute_and_never_later() {
    let hourly = timing("1h", MissedPolicy::None, OverlapPolicy::Queue, "1h");

    let on_time = decide(&hourly, At(0), Moment::idle(At(HOUR + MINUTE)));
    let late = decide(&hourly, At(0), Moment::idle(At(HOUR + MINUTE + 1)));
    let waited = Moment { free_since: Some(At(HOUR + 30 * MINUTE)), ..Moment::idle(At(HOUR + 30 * MINUTE)) };

    assert_eq!(on_time.decisions, [fire(HOUR)]);
    assert_eq!(late.decisions, [unfired(SlotAction::Missed, HOUR, HOUR)]);
    assert_eq!(decide(&hourly, At(0), waited).decisions, [fire(HOUR)], "it waited for the run before it");
}

/// W2: a slot that is later than `grace` is missed, whatever the policy.
#[test]
fn a_slot_later_than_the_grace_period_is_missed_under_each_policy() {
    for missed in [MissedPolicy::Latest, MissedPolicy::All, MissedPolicy::None] {
        let daily = timing("1d", missed, OverlapPolicy::Queue, "10m");

        let plan = decide(&daily, At(0), Moment::idle(At(24 * HOUR + 10 * MINUTE + 1)));

        assert_eq!(plan.decisions, [unfired(SlotAction::Missed, 24 * HOUR, 24 * HOUR)], "{missed:?}");
    }
}

/// W2: `skip` leaves out what comes while a run goes on, `interrupt` cancels the run.
#[test]
fn a_slot_during_a_run_waits_is_skipped_or_interrupts() {
    let now = Moment { is_running: true, ..Moment::idle(At(HOUR)) };
    let plan = |overlap| decide(&timing("1h", MissedPolicy::Latest, overlap, "1h"), At(0), now);

    assert_eq!(plan(OverlapPolicy::Queue), Plan { decisions: vec![], wait: Wait::RunEnd });
    assert_eq!(plan(OverlapPolicy::Skip).decisions, [unfired(SlotAction::Skip, HOUR, HOUR)]);
    assert_eq!(plan(OverlapPolicy::Interrupt).decisions, [fire(HOUR)]);
}

/// W2: after an outage, a slot waits until fewer late runs of others go on. One that is on time does not.
#[test]
fn a_late_slot_waits_for_room_and_one_on_time_does_not() {
    let hourly = timing("1h", MissedPolicy::Latest, OverlapPolicy::Queue, "2h");
    let full = |at| Moment { has_room: false, ..Moment::idle(At(at)) };

    assert_eq!(decide(&hourly, At(0), full(HOUR)).decisions, [fire(HOUR)]);
    assert_eq!(
        decide(&hourly, At(0), full(HOUR + 20 * MINUTE)),
        Plan { decisions: vec![], wait: Wait::Room }
    );
    assert_eq!(
        decide(&hourly, At(0), full(4 * HOUR + 20 * MINUTE)),
        Plan { decisions: vec![unfired(SlotAction::Missed, HOUR, 2 * HOUR)], wait: Wait::Room },
    );
}

/// A year of minutes is three decisions, found without looking at each slot.
#[test]
fn an_outage_of_a_year_is_a_few_decisions() {
    let minutely = timing("1m", MissedPolicy::Latest, OverlapPolicy::Queue, "1h");
    let year = 365 * 24 * HOUR;

    let plan = decide(&minutely, At(0), Moment::idle(At(year)));

    assert_eq!(plan.decisions, [unfired(SlotAction::Missed, MINUTE, year - MINUTE), fire(year)]);
}

#[derive(Debug, Clone)]
struct Passage {
    /// How far the clock moves, also back.
    by: i64,
    is_running: bool,
    has_room: bool,
}

fn any_timing() -> impl Strategy<Value = Timing> {
    let missed = prop::sample::select(vec![MissedPolicy::Latest, MissedPolicy::All, MissedPolicy::None]);
    let overlap =
        prop::sample::select(vec![OverlapPolicy::Queue, OverlapPolicy::Skip, OverlapPolicy::Interrupt]);
    let when = prop::sample::select(vec![
        (Some("*/10 * * * *"), None),
        (Some("30 2 * * *"), None),
        (Some("0 */3 * * 1-5"), None),
        (None, Some("7m")),
        (None, Some("13h")),
    ]);
    let durations = prop::sample::select(vec!["0s", "90s", "20m", "5h", "3d"]);
    (missed, overlap, when, durations.clone(), durations).prop_map(
        |(missed, overlap, when, grace, jitter)| {
            let spec = ScheduleSpec {
                cron: when.0.map(str::to_owned),
                every: when.1.map(str::to_owned),
                zone: Some("Europe/Berlin".to_owned()),
                missed,
                overlap,
                grace: grace.to_owned(),
                jitter: jitter.to_owned(),
                ..ScheduleSpec::new("look", "What is new?")
            };
            Timing::parse("look", &spec, At(1_790_000_000_000)).unwrap()
        },
    )
}

fn passages() -> impl Strategy<Value = Vec<Passage>> {
    let by = prop_oneof![
        6 => 0_i64..20 * MINUTE, 2 => 0_i64..10 * HOUR, 1 => 0_i64..20 * 24 * HOUR, 1 => -5 * HOUR..0_i64,
    ];
    let passage = (by, any::<bool>(), any::<bool>()).prop_map(|(by, is_running, has_room)| Passage {
        by,
        is_running,
        has_room,
    });
    prop::collection::vec(passage, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// W1, W2: whatever the clock and the runs do, each slot is decided once, in order, and fires only in its time.
    #[test]
    fn each_slot_is_decided_once(timing in any_timing(), passages in passages()) {
        let mut through = At(1_790_000_000_000);
        let mut clock = through.0;
        for passage in passages {
            clock += passage.by;
            let now = Moment { is_running: passage.is_running, has_room: passage.has_room, ..Moment::idle(At(clock)) };
            let plan = decide(&timing, through, now);

            for decision in &plan.decisions {
                let next = timing.slots.next_after(through).unwrap();
                prop_assert_eq!(decision.since.unwrap_or(decision.slot), next, "no slot is left out or decided twice");
                prop_assert_eq!(timing.slots.next_after(At(decision.slot.0 - 1)), Some(decision.slot), "the range ends with a slot");
                let late = clock - decision.slot.0 - timing.delay.milliseconds();
                prop_assert!(late >= 0, "nothing is decided before it is due");
                if decision.action == SlotAction::Fire {
                    prop_assert!(decision.since.is_none());
                    prop_assert!(late <= timing.grace.milliseconds());
                    prop_assert!(!passage.is_running || timing.overlap == OverlapPolicy::Interrupt);
                    prop_assert!(late <= ON_TIME.milliseconds() || (passage.has_room && timing.missed != MissedPolicy::None));
                }
                through = decision.slot;
            }
            prop_assert!(plan.decisions.iter().filter(|decision| decision.action == SlotAction::Fire).count() <= 1);
            if let Wait::Until(at) = plan.wait {
                prop_assert_eq!(Some(at), timing.next_due(through));
            }
        }
    }
}
