use longhaul_journal::Append;
use longhaul_protocol::{
    Answered, CallId, Input, InputId, InputTaken, JoinMode, MissedPolicy, Outcome, OverlapPolicy, Question,
    QuestionId, QuestionKind, RunOutcome, ScheduleAuthor, ScheduleRecord, SessionRecord, SlotDecided,
    StepStarted, TurnStarted,
};
use longhaul_testkit::{Crash, CrashMoment};

use super::super::Schedules;
use super::super::simulation::Simulation;
use super::*;

const START: i64 = 1_790_000_000_000;
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

#[path = "year_tests.rs"]
mod year;

fn hourly(name: &str) -> ScheduleSpec {
    ScheduleSpec { every: Some("1h".into()), ..ScheduleSpec::new(name, "What is new?") }
}

fn decisions(records: &[ScheduleRecord]) -> Vec<SlotDecided> {
    let decided = |record: &ScheduleRecord| match record {
        ScheduleRecord::Decided(decided) => Some(decided.clone()),
        _ => None,
    };
    records.iter().filter_map(decided).collect()
}

fn fired(records: &[ScheduleRecord]) -> Vec<SlotDecided> {
    decisions(records).into_iter().filter(|decided| decided.action == SlotAction::Fire).collect()
}

fn kinds(records: &[ScheduleRecord]) -> Vec<&str> {
    records.iter().map(ScheduleRecord::kind).collect()
}

async fn open_session(simulation: &Simulation, id: &str) -> SessionId {
    fired(&simulation.schedule(id).await).last().unwrap().session.unwrap()
}

/// One run from the beginning of a schedule to its end, and the next slot: at a crash before and after each append, the
/// slot fires once, its input is in the inbox once, and its end is recorded once (W1).
#[tokio::test]
async fn a_kill_at_any_append_neither_loses_nor_repeats_a_run() {
    let mut appends_of_a_run = 0;
    for append in 1.. {
        for when in [CrashMoment::Before, CrashMoment::After] {
            let mut simulation = Simulation::new(vec![hourly("look")], 4).await;
            simulation.start(Some(Crash { append, when }));
            simulation.step_surely(At(START)).await;

            simulation.step_surely(At(START + HOUR)).await;
            let session = open_session(&simulation, "look").await;
            simulation.play_turn(session, Outcome::Completed).await;
            simulation.step_surely(At(START + HOUR + MINUTE)).await;
            simulation.step_surely(At(START + 2 * HOUR)).await;

            let records = simulation.schedule("look").await;
            let expected =
                ["schedule_began", "slot_decided", "slot_fired", "slot_ended", "slot_decided", "slot_fired"];
            assert_eq!(kinds(&records), expected, "append {append}, {when:?}");
            let slots: Vec<At> = fired(&records).iter().map(|decided| decided.slot).collect();
            assert_eq!(slots, [At(START + HOUR), At(START + 2 * HOUR)], "append {append}, {when:?}");
            for run in fired(&records) {
                let inputs = simulation.inputs(run.session.unwrap()).await;
                assert_eq!(inputs.len(), 1, "append {append}, {when:?}");
                assert_eq!(Some(inputs[0].1.id), run.input);
            }
            appends_of_a_run = records.len() + 2 * 2;
        }
        if append > appends_of_a_run {
            break;
        }
    }
}

/// W1: a second process that decides about the same slot finds that it is decided.
#[tokio::test]
async fn two_processes_do_not_fire_the_same_slot_twice() {
    let mut first = Simulation::new(vec![hourly("look")], 4).await;
    first.step_surely(At(START)).await;
    let mut second = first.beside();
    second.step_surely(At(START)).await;

    first.step_surely(At(START + HOUR)).await;
    second.step_surely(At(START + HOUR)).await;
    second.step_surely(At(START + HOUR + 2 * MINUTE)).await;

    assert_eq!(kinds(&first.schedule("look").await), ["schedule_began", "slot_decided", "slot_fired"]);
}

/// W3: after so many failures in a row a schedule pauses and says so once. Resumed, it starts with its next slot, and the failures
/// before don't count.
#[tokio::test]
async fn a_schedule_pauses_after_failures_in_a_row_and_counts_anew_when_it_is_resumed() {
    let spec = ScheduleSpec { max_failures: 2, session: Some("work".into()), ..hourly("look") };
    let mut simulation = Simulation::new(vec![spec], 4).await;
    simulation.step_surely(At(START)).await;
    let mut warnings = Vec::new();
    for (hour, outcome) in
        [(1, Outcome::Failed), (2, Outcome::Completed), (3, Outcome::Failed), (4, Outcome::Failed)]
    {
        warnings.extend(run_slot(&mut simulation, At(START + hour * HOUR), outcome).await);
    }
    simulation.step_surely(At(START + 5 * HOUR)).await;
    let while_paused = fired(&simulation.schedule("look").await).len();
    simulation.registry().resume("look").await.unwrap();

    let next = simulation.step_surely(At(START + 6 * HOUR)).await.unwrap();
    let after_one_more = run_slot(&mut simulation, next, Outcome::Failed).await;
    let after_two_more = run_slot(&mut simulation, At(next.0 + HOUR), Outcome::Failed).await;

    let expected = "schedule look is paused: 2 runs in a row failed, the last one with: offline; \
                    `longhaul schedules resume look` starts it again";
    assert_eq!(warnings, [("schedule_paused", expected.to_owned())]);
    assert_eq!(while_paused, 4, "the fifth slot does not fire");
    assert_eq!(after_one_more, []);
    assert_eq!(after_two_more, warnings);
}

/// Fires the slot of the schedule `look` that is due now, ends its turn, and returns what the runner has to say.
async fn run_slot(simulation: &mut Simulation, slot: At, outcome: Outcome) -> Vec<(&'static str, String)> {
    simulation.step_surely(slot).await;
    simulation.play_turn(open_session(simulation, "look").await, outcome).await;
    simulation.step_surely(At(slot.0 + MINUTE)).await;
    simulation.warnings()
}

/// W2: a run that ended before an outage does not make the slots in the outage count as on time, although its end is noticed only
/// afterwards.
#[tokio::test]
async fn a_run_that_ended_before_an_outage_excuses_no_late_slot() {
    let spec = ScheduleSpec { missed: MissedPolicy::None, ..hourly("look") };
    let mut simulation = Simulation::new(vec![spec], 4).await;
    simulation.step_surely(At(START)).await;
    simulation.step_surely(At(START + HOUR)).await;
    let session = open_session(&simulation, "look").await;
    simulation.play_turn_until(session, Outcome::Completed, At(START + HOUR + MINUTE)).await;
    simulation.kill().await;

    simulation.step_surely(At(START + 2 * HOUR + 40 * MINUTE)).await;

    let records = simulation.schedule("look").await;
    let last = decisions(&records).pop().unwrap();
    assert_eq!((last.slot, last.action), (At(START + 2 * HOUR), SlotAction::Missed));
    let ends: Vec<At> = records
        .iter()
        .filter_map(|record| match record {
            ScheduleRecord::Ended(ended) => Some(ended.at),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [At(START + HOUR + MINUTE)]);
}

/// W2: after an outage, so many late runs go on at once, and the others follow as these end.
#[tokio::test]
async fn after_an_outage_schedules_start_a_few_at_a_time() {
    let specs: Vec<ScheduleSpec> = (0..7)
        .map(|number| ScheduleSpec { grace: "3d".into(), ..hourly(&format!("job-{number}")) })
        .collect();
    let mut simulation = Simulation::new(specs, 3).await;
    simulation.step_surely(At(START)).await;
    let mut now = START + 40 * HOUR + 10 * MINUTE;
    let mut started = Vec::new();
    while started.len() < 7 {
        simulation.step_surely(At(now)).await;

        let mut new = Vec::new();
        for number in 0..7 {
            let id = format!("job-{number}");
            new.extend(fired(&simulation.schedule(&id).await).into_iter().filter_map(|run| run.session));
        }
        new.retain(|session| !started.contains(session));
        assert_eq!(new.len(), 3.min(7 - started.len()));
        for session in &new {
            simulation.play_turn(*session, Outcome::Completed).await;
        }
        started.extend(new);
        now += 5_000;
    }
}

/// W2: that holds for each run that the outage left behind, also where all of them are made up for.
#[tokio::test]
async fn after_an_outage_schedules_that_make_up_for_all_runs_keep_to_the_limit() {
    let spec = |number| ScheduleSpec {
        missed: MissedPolicy::All,
        grace: "3d".into(),
        ..hourly(&format!("job-{number}"))
    };
    let mut simulation = Simulation::new((0..5).map(spec).collect(), 2).await;
    simulation.step_surely(At(START)).await;
    let mut now = START + 3 * HOUR + 10 * MINUTE;
    for _ in 0..5 * 3 {
        simulation.step_surely(At(now)).await;

        let mut open = Vec::new();
        for number in 0..5 {
            let records = simulation.schedule(&format!("job-{number}")).await;
            let ends = kinds(&records).into_iter().filter(|kind| *kind == "slot_ended").count();
            open.extend(fired(&records).into_iter().skip(ends));
        }
        assert!((1..=2).contains(&open.len()), "{} late runs at once", open.len());
        simulation.play_turn(open[0].session.unwrap(), Outcome::Completed).await;
        now += 5_000;
    }
}

/// W2: a run by hand may have a later slot than a run of the schedule that jitter delays. The later run interrupts it all the same.
#[tokio::test]
async fn a_delayed_run_interrupts_the_run_by_hand_before_it() {
    let spec = ScheduleSpec { overlap: OverlapPolicy::Interrupt, jitter: "50m".into(), ..hourly("look") };
    let delay = Timing::parse("look", &spec, At(START)).unwrap().delay.milliseconds();
    assert!(delay > 2 * MINUTE, "the id decides how long it is");
    let mut simulation = Simulation::new(vec![spec], 4).await;
    simulation.step_surely(At(START)).await;
    let by_hand = At(START + HOUR + MINUTE);
    simulation.at(by_hand, simulation.registry().run("look")).await.unwrap();
    simulation.step_surely(by_hand).await;

    simulation.step_surely(At(START + HOUR + delay)).await;

    let runs = fired(&simulation.schedule("look").await);
    let slots: Vec<At> = runs.iter().map(|run| run.slot).collect();
    assert_eq!(slots.len(), 2, "{slots:?}");
    assert!(slots[0] > slots[1], "{slots:?}");
    assert!(simulation.is_cancelled(runs[0].session.unwrap()).await);
    assert!(!simulation.is_cancelled(runs[1].session.unwrap()).await);
}

/// A slot whose session was deleted is missed, and the schedule says why it pauses.
#[tokio::test]
async fn a_schedule_whose_session_was_deleted_pauses_and_names_the_session() {
    let spec = ScheduleSpec { session: Some("work".into()), ..hourly("look") };
    let mut simulation = Simulation::new(vec![spec], 4).await;
    simulation.step_surely(At(START)).await;
    simulation.step_surely(At(START + HOUR)).await;
    let session = open_session(&simulation, "look").await;
    simulation.play_turn(session, Outcome::Completed).await;
    simulation.step_surely(At(START + HOUR + MINUTE)).await;
    longhaul_journal::trash_session(&*simulation.journal, "work").await.unwrap();

    simulation.step_surely(At(START + 2 * HOUR)).await;

    let expected = "schedule look is paused: its session \"work\" was deleted; \
                    `longhaul schedules resume look` starts it again";
    assert_eq!(simulation.warnings(), [("schedule_paused", expected.to_owned())]);
    let last = decisions(&simulation.schedule("look").await).pop().unwrap();
    assert_eq!((last.slot, last.action), (At(START + 2 * HOUR), SlotAction::Missed));
}

/// P8: what an agent scheduled goes to the session that it was made in, or nowhere: not to another one that got its key.
#[tokio::test]
async fn an_agents_schedule_pauses_when_its_session_is_gone_and_takes_no_other() {
    for is_deleted in [false, true] {
        let mut simulation = Simulation::new(vec![], 4).await;
        let session = SessionId::generate();
        longhaul_journal::bind_session_key(&*simulation.journal, "work", session).await.unwrap();
        let spec = ScheduleSpec { session: Some("work".into()), ..hourly("look") };
        let author = ScheduleAuthor::Agent { session, call: CallId::generate() };
        let made = simulation.registry().add(spec, author).await.unwrap();
        longhaul_journal::trash_session(&*simulation.journal, "work").await.unwrap();
        if is_deleted {
            longhaul_journal::delete_session(&*simulation.journal, "work").await.unwrap();
            let other = SessionId::generate();
            longhaul_journal::bind_session_key(&*simulation.journal, "work", other).await.unwrap();
        }

        let mut warnings = Vec::new();
        for _ in 0..2 {
            let next = simulation.step_surely(At(START)).await.unwrap();
            simulation.step_surely(next).await;
            warnings.extend(simulation.warnings());
            simulation.registry().resume("look").await.unwrap();
        }

        let expected = "schedule look is paused: its session \"work\" was deleted; \
                        `longhaul schedules resume look` starts it again";
        assert_eq!(warnings, vec![("schedule_paused", expected.to_owned()); 2], "deleted: {is_deleted}");
        assert_eq!(fired(&simulation.schedule(&made.id).await), []);
    }
}

/// P8: the key of a run can be guessed. A session that has it already does not get the run.
#[tokio::test]
async fn a_run_does_not_go_to_a_session_that_somebody_gave_its_key() {
    let mut simulation = Simulation::new(vec![hourly("look")], 4).await;
    simulation.step_surely(At(START)).await;
    let taken = SessionId::generate();
    let key = longhaul_schedule::run_session_key("look", At(START + HOUR));
    longhaul_journal::bind_session_key(&*simulation.journal, &key, taken).await.unwrap();

    simulation.step_surely(At(START + HOUR)).await;

    let session = open_session(&simulation, "look").await;
    assert_eq!(simulation.inputs(taken).await, []);
    assert_eq!(simulation.inputs(session).await.len(), 1);
    let named = simulation.journal.session_with_id(session).await.unwrap().unwrap();
    assert_eq!(named.key, format!("{key}/{session}"));
}

/// W2: `interrupt` cancels the schedule's own run. A person's turn in the same session goes on, and the run waits for its end.
#[tokio::test]
async fn an_interrupting_schedule_waits_for_a_persons_turn() {
    for is_persons in [false, true] {
        let spec = ScheduleSpec {
            session: Some("work".into()),
            overlap: OverlapPolicy::Interrupt,
            ..hourly("look")
        };
        let mut simulation = Simulation::new(vec![spec], 4).await;
        simulation.step_surely(At(START)).await;
        simulation.step_surely(At(START + HOUR)).await;
        let session = open_session(&simulation, "look").await;
        let (seq, input) = simulation.inputs(session).await.remove(0);
        let person = Input::new(InputId::generate(), "hello", JoinMode::Join);
        let taken = if is_persons { InputTaken::of(person, 0) } else { InputTaken::of(input, seq) };
        let open = [
            SessionRecord::InputTaken(taken),
            SessionRecord::TurnStarted(TurnStarted::new(1)),
            SessionRecord::StepStarted(StepStarted { step: 1, later: vec![] }),
        ];
        let stream = StreamName::session(session);
        let append = open.into_iter().fold(Append::to(&stream), |append, fact| append.record(fact.encode()));
        simulation.journal.append(append).await.unwrap();

        simulation.step_surely(At(START + 2 * HOUR)).await;

        let inputs = simulation.inputs(session).await;
        let mode = if is_persons { JoinMode::After } else { JoinMode::Interrupt };
        assert_eq!(inputs.iter().map(|(_, input)| input.mode).collect::<Vec<_>>(), [JoinMode::After, mode]);
    }
}

/// W1: a renamed session stays the target.
#[tokio::test]
async fn a_schedule_follows_its_session_when_the_session_is_renamed() {
    let spec = ScheduleSpec { session: Some("work".into()), ..hourly("look") };
    let mut simulation = Simulation::new(vec![spec], 4).await;
    simulation.step_surely(At(START)).await;
    simulation.step_surely(At(START + HOUR)).await;
    let session = open_session(&simulation, "look").await;
    simulation.play_turn(session, Outcome::Completed).await;
    longhaul_journal::rename_session(&*simulation.journal, "work", "play").await.unwrap();
    simulation.kill().await;

    simulation.step_surely(At(START + HOUR + MINUTE)).await;
    simulation.step_surely(At(START + 2 * HOUR)).await;

    assert_eq!(open_session(&simulation, "look").await, session);
    assert_eq!(simulation.inputs(session).await.len(), 2);
}

/// A request to run now fires between the slots, under a slot of its own, also while the schedule is paused.
#[tokio::test]
async fn a_request_to_run_now_fires_once_and_leaves_the_slots_alone() {
    let mut simulation = Simulation::new(vec![hourly("look")], 4).await;
    simulation.step_surely(At(START)).await;
    let schedules = simulation.registry();
    schedules.pause("look").await.unwrap();
    schedules.run("look").await.unwrap();

    simulation.step_surely(At(START + 10 * MINUTE)).await;
    simulation.kill().await;
    simulation.step_surely(At(START + HOUR)).await;

    let runs = fired(&simulation.schedule("look").await);
    assert_eq!(runs.len(), 1, "the slot of the paused schedule does not fire");
    assert_eq!(runs[0].request, Some(2));
    assert_ne!(runs[0].slot.0 % 1_000, 0, "no slot of its own");
}

/// W3: times that change count from the change on, so that nothing before it is made up for.
#[tokio::test]
async fn a_schedule_of_the_config_with_other_times_begins_anew() {
    let mut simulation = Simulation::new(vec![hourly("look")], 4).await;
    simulation.step_surely(At(START)).await;
    simulation.kill().await;
    simulation.set_config(vec![ScheduleSpec { every: Some("1m".into()), ..hourly("look") }]);

    let next = simulation.step_surely(At(START + 30 * MINUTE)).await;

    assert_eq!(next, Some(At(START + 31 * MINUTE)));
    assert_eq!(kinds(&simulation.schedule("look").await), ["schedule_began", "schedule_began"]);
}

/// W1: times that change in the config count from then on, also if a person resumed the schedule before: slots since then have fired.
#[tokio::test]
async fn other_times_in_the_config_do_not_repeat_the_slots_since_the_schedule_was_resumed() {
    for session in [None, Some("work".to_owned())] {
        let spec = |every: &str| ScheduleSpec {
            every: Some(every.into()),
            session: session.clone(),
            ..hourly("look")
        };
        let mut simulation = Simulation::new(vec![spec("1h")], 4).await;
        simulation.step_surely(At(START)).await;
        simulation.registry().pause("look").await.unwrap();
        simulation.registry().resume("look").await.unwrap();
        let slot = simulation.step_surely(At(START)).await.unwrap();
        run_slot(&mut simulation, slot, Outcome::Completed).await;
        simulation.kill().await;
        simulation.set_config(vec![spec("30m")]);

        let changed = At(slot.0 + 20 * MINUTE);
        let next = simulation.step_surely(changed).await;

        let slots: Vec<At> =
            fired(&simulation.schedule("look").await).iter().map(|decided| decided.slot).collect();
        assert_eq!(slots, [slot]);
        assert_eq!(next, Some(At(changed.0 + 30 * MINUTE)));
    }
}

/// W1: where the clock was set back before the schedule was resumed, a slot can come twice. Its session has its input already, so the
/// second run ends at once instead of waiting for another input.
#[tokio::test]
async fn a_slot_that_comes_again_in_the_same_session_is_no_second_run() {
    let spec = ScheduleSpec {
        cron: Some("0 7 1 * *".into()),
        zone: Some("UTC".into()),
        session: Some("work".into()),
        ..ScheduleSpec::new("look", "What is new?")
    };
    let mut simulation = Simulation::new(vec![spec], 4).await;
    let mut slots = Vec::new();
    for _ in 0..2 {
        simulation.step_surely(At(START)).await;
        simulation.registry().pause("look").await.unwrap();
        simulation.registry().resume("look").await.unwrap();
        let slot = simulation.step_surely(At(START)).await.unwrap();
        run_slot(&mut simulation, slot, Outcome::Completed).await;
        slots.push(slot);
    }

    let report = simulation.registry().show("look").await.unwrap();

    assert_eq!(slots[0], slots[1]);
    assert_eq!(report.running, None);
    assert_eq!(report.last.unwrap().outcome, RunOutcome::Abandoned);
    assert_eq!(simulation.inputs(open_session(&simulation, "look").await).await.len(), 1);
}

/// J10: what a deleted schedule said is gone, its id is never used again, and the others stay.
#[tokio::test]
async fn a_deleted_schedule_leaves_no_words_behind() {
    let mut simulation = Simulation::new(vec![], 4).await;
    let schedules = simulation.registry();
    let spec = |name: &str, prompt: &str| ScheduleSpec { prompt: prompt.to_owned(), ..hourly(name) };
    let made = schedules.add(spec("look", "Look for xyzzysecret."), ScheduleAuthor::Person).await.unwrap();
    schedules.add(spec("tidy", "Tidy up."), ScheduleAuthor::Person).await.unwrap();
    schedules.change("look", spec("look", "Look again for xyzzysecret.")).await.unwrap();

    schedules.delete("look").await.unwrap();

    let all = records(&*simulation.journal, &StreamName::schedules(), 1).collect().await.unwrap();
    assert!(!all.iter().any(|record| record.text().is_some_and(|text| text.contains("xyzzysecret"))));
    simulation.step_surely(At(START)).await;
    assert_eq!(simulation.warnings(), []);
    let names: Vec<String> =
        schedules.list().await.unwrap().into_iter().map(|report| report.spec.name).collect();
    assert_eq!(names, ["tidy"]);
    let mut catalog = CatalogFold::default();
    all.iter().for_each(|record| catalog.apply(record));
    assert!(catalog.is_used_id(&made.id));
}

/// However often a schedule is run by hand, and however long the list of schedules has been read, little is kept and read again.
#[tokio::test]
async fn requests_and_reads_of_the_catalog_are_bounded() {
    let simulation = Simulation::new(vec![hourly("look")], 4).await;
    let counting = longhaul_testkit::FaultyJournal::new(simulation.journal.clone(), None);
    let redactor = Arc::new(longhaul_redact::Redactor::default());
    let schedules = Schedules::new(counting.clone(), redactor, &[hourly("look")]);
    for _ in 0..100 {
        schedules.run("look").await.unwrap();
    }
    let before = counting.records_read();

    schedules.list().await.unwrap();

    assert!(counting.records_read() - before <= 2, "{} records", counting.records_read() - before);
    let all = records(&*simulation.journal, &StreamName::schedules(), 1).collect().await.unwrap();
    let mut catalog = CatalogFold::default();
    all.iter().for_each(|record| catalog.apply(record));
    let requests = &catalog.entries(&[hourly("look")])["look"].requests;
    assert_eq!(
        requests.iter().map(|request| request.seq).collect::<Vec<_>>(),
        (85..=100).collect::<Vec<_>>()
    );
}

/// A state is loaded from the newest decision that was made at rest, whatever lies before it.
#[tokio::test]
async fn a_schedule_is_loaded_from_its_last_rest() {
    let mut simulation = Simulation::new(vec![hourly("look")], 4).await;
    simulation.step_surely(At(START)).await;
    for hour in 1..=60 {
        simulation.step_surely(At(START + hour * HOUR)).await;
        simulation.play_turn(open_session(&simulation, "look").await, Outcome::Completed).await;
        simulation.step_surely(At(START + hour * HOUR + MINUTE)).await;
    }
    let stream = StreamName::schedule("look").unwrap();
    let whole = records(&*simulation.journal, &stream, 1).collect().await.unwrap();

    let counting = longhaul_testkit::FaultyJournal::new(simulation.journal.clone(), None);
    let loaded = load_state(&*counting, &stream).await.unwrap();

    let mut folded = ScheduleState::default();
    whole.iter().for_each(|record| folded.apply(record).unwrap());
    assert_eq!(loaded, folded);
    assert!(whole.len() > 150 && counting.records_read() <= 64, "{} records read", counting.records_read());
}

#[test]
fn a_set_clock_is_noticed_and_a_late_scan_is_not() {
    let steady = tokio::time::Instant::now();
    let before = ClockReading { steady, wall: At(START) };
    let after = |passed: u64, by_wall: i64| ClockReading {
        steady: steady + Duration::from_millis(passed),
        wall: At(START + by_wall),
    };

    assert!(!has_jumped(before, after(90_000, 90_400)));
    assert!(has_jumped(before, after(1_000, HOUR)), "set forward, or the machine slept");
    assert!(has_jumped(before, after(1_000, -HOUR)), "set back");
}

/// W3: a run that asks something keeps the next ones from starting, and the report says so.
#[tokio::test]
async fn the_report_says_that_a_run_waits_for_an_answer() {
    let mut simulation = Simulation::new(vec![hourly("look")], 4).await;
    simulation.step_surely(At(START)).await;
    simulation.step_surely(At(START + HOUR)).await;
    let session = open_session(&simulation, "look").await;
    let (seq, input) = simulation.inputs(session).await.remove(0);
    let question = QuestionId::generate();
    let asks = Question::new(question, QuestionKind::Ask, "Which branch?");
    let open = [
        SessionRecord::InputTaken(InputTaken::of(input, seq)),
        SessionRecord::TurnStarted(TurnStarted::new(1)),
        SessionRecord::StepStarted(StepStarted::new(1)),
        SessionRecord::Question(asks),
    ];
    let stream = StreamName::session(session);
    let append = open.into_iter().fold(Append::to(&stream), |append, fact| append.record(fact.encode()));
    simulation.journal.append(append).await.unwrap();

    let asking = simulation.registry().show("look").await.unwrap();
    let answered = Answered { id: question, answer: "main".to_owned(), by: None };
    let answer = Append::to(&stream).record(SessionRecord::Answered(answered).encode());
    simulation.journal.append(answer).await.unwrap();
    let running = simulation.registry().show("look").await.unwrap();

    assert_eq!((asking.status.as_str(), asking.question.as_deref()), ("asking", Some("Which branch?")));
    assert_eq!((running.status.as_str(), running.question), ("running", None));
}

/// The runs of a schedule that was restarted go on; what the record of a pause says is kept.
#[tokio::test]
async fn the_report_says_what_a_schedule_does_and_why_it_does_not() {
    let mut simulation = Simulation::new(vec![ScheduleSpec { max_failures: 1, ..hourly("look") }], 4).await;
    simulation.step_surely(At(START)).await;
    simulation.step_surely(At(START + HOUR)).await;
    let running = simulation.registry().show("look").await.unwrap();
    simulation.play_turn(open_session(&simulation, "look").await, Outcome::Failed).await;
    simulation.step_surely(At(START + HOUR + MINUTE)).await;
    simulation.step_surely(At(START + HOUR + 2 * MINUTE)).await;

    let paused = simulation.registry().show("look").await.unwrap();

    assert_eq!(running.status.as_str(), "running");
    assert!(running.running.unwrap().starts_with("schedule:look/20"));
    assert_eq!((paused.status.as_str(), paused.failures), ("paused", 1));
    assert_eq!(paused.reason.unwrap(), "1 runs in a row failed, the last one with: offline");
    assert_eq!(paused.last.unwrap().outcome, RunOutcome::Failed);
}
