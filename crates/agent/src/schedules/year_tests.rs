//! A simulated year of schedules.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_schedule::input_key;
use longhaul_testkit::SeededRandom;

use super::*;

/// The slots of a schedule after one moment and up to another.
fn slots_of(timing: &Timing, after: At, through: At) -> Vec<At> {
    let mut slots = Vec::new();
    let mut after = after;
    while let Some(slot) = timing.slots.next_after(after).filter(|slot| *slot <= through) {
        slots.push(slot);
        after = slot;
    }
    slots
}

fn year_of_schedules() -> Vec<ScheduleSpec> {
    let mut specs = Vec::new();
    let policies = [MissedPolicy::Latest, MissedPolicy::All, MissedPolicy::None];
    let overlaps = [OverlapPolicy::Queue, OverlapPolicy::Skip, OverlapPolicy::Interrupt];
    for (number, (missed, overlap)) in
        policies.into_iter().flat_map(|missed| overlaps.map(|overlap| (missed, overlap))).enumerate()
    {
        let name = format!("job-{number}");
        let (cron, every) = match number % 3 {
            0 => (Some("30 2 * * *".to_owned()), None),
            1 => (None, Some("23h".to_owned())),
            _ => (Some("0 */12 * * 1-5".to_owned()), None),
        };
        specs.push(ScheduleSpec {
            cron,
            every,
            zone: Some("Europe/Berlin".into()),
            session: (number % 2 == 0).then(|| format!("session-{number}")),
            missed,
            overlap,
            grace: ["20m", "9h", "3d"][number / 3 % 3].into(),
            jitter: if number == 4 { "30m" } else { "0s" }.into(),
            max_failures: 0,
            ..ScheduleSpec::new(name, "What is new?")
        });
    }
    specs
}

/// A schedule of the simulated year, as people have left it.
struct YearJob {
    spec: ScheduleSpec,
    /// Its slots count from here on.
    since: At,
    timing: Timing,
    /// The records of its stream so far.
    records: Vec<ScheduleRecord>,
    is_paused: bool,
    /// Requests to run it now, and how many of them have run.
    requests: usize,
    requested_runs: usize,
}

impl YearJob {
    fn new(spec: ScheduleSpec) -> Self {
        let (since, timing) = (At(START), Timing::parse(&spec.name, &spec, At(START)).unwrap());
        Self { spec, since, timing, records: vec![], is_paused: false, requests: 0, requested_runs: 0 }
    }

    /// Whether a run cancels the one before it, which has a session of its own.
    fn interrupts_other_sessions(&self) -> bool {
        self.spec.overlap == OverlapPolicy::Interrupt && self.spec.session.is_none()
    }

    /// The sessions of the runs that have not ended.
    fn open_sessions(&self) -> Vec<SessionId> {
        let records = self.newest_records();
        let is_end = |record: &ScheduleRecord, slot: At| matches!(record, ScheduleRecord::Ended(ended) if ended.slot == slot);
        let is_open = |run: &SlotDecided| !records.iter().any(|record| is_end(record, run.slot));
        fired(records).into_iter().filter(is_open).filter_map(|run| run.session).collect()
    }

    /// The newest records. They have all of its open runs.
    fn newest_records(&self) -> &[ScheduleRecord] {
        &self.records[self.records.len().saturating_sub(TAIL)..]
    }

    /// Its slots count from this moment on, with its spec as it is now.
    fn begin_anew(&mut self, since: At) {
        (self.since, self.timing) = (since, Timing::parse(&self.spec.name, &self.spec, since).unwrap());
    }
}

/// W1, W2: a year with kills at random appends, outages, jumps of the clock in both directions, runs of any length, pauses, other times in
/// the config and runs by hand: each slot is decided once and in order, what fires is in an inbox once, nothing fires that the policies
/// forbid, and what they demand fires at the first step at which nothing is in its way.
#[tokio::test]
async fn a_year_of_kills_outages_and_clock_jumps_leaves_each_slot_decided_once() {
    let mut random = SeededRandom::new();
    let mut jobs: Vec<YearJob> = year_of_schedules().into_iter().map(YearJob::new).collect();
    let specs = |jobs: &[YearJob]| jobs.iter().map(|job| job.spec.clone()).collect::<Vec<_>>();
    let mut simulation = Simulation::new(specs(&jobs), AT_ONCE).await;
    simulation.step_surely(At(START)).await;
    let (mut clock, mut latest) = (START, START);
    // When each open run ends, by its session; and the clock at each decision to fire.
    let mut ends: BTreeMap<SessionId, i64> = BTreeMap::new();
    let mut decided_at: BTreeMap<(String, At), i64> = BTreeMap::new();
    let (mut kills, mut steps, mut demanded, mut changes) = (0, 0, 0, 0);
    while clock < START + 365 * DAY {
        clock += match random.below(150) {
            0 => i64::try_from(random.below(15 * DAY.unsigned_abs())).unwrap(),
            1 => -i64::try_from(random.below(3 * HOUR.unsigned_abs())).unwrap(),
            // As a process that sleeps until something is due, and now and then longer.
            _ => {
                let late = i64::try_from(random.below(5 * HOUR.unsigned_abs())).unwrap();
                let end = ends.values().min().copied();
                let slot = jobs.iter().filter_map(|job| job.timing.next_due(At(clock))).min();
                let wait = end.into_iter().chain(slot.map(|slot| slot.0)).min().unwrap() - clock;
                if random.below(8) == 0 { late } else { wait.max(0) }
            }
        };
        steps += 1;
        // What people do counts from when they do it, so they don't do it while the clock is behind.
        if clock > latest && random.below(12) == 0 {
            let number = usize::try_from(random.below(jobs.len() as u64)).unwrap();
            change_job(&mut simulation, &mut jobs[number], At(clock), random.below(3)).await;
            simulation.set_config(specs(&jobs));
            changes += 1;
        }
        latest = latest.max(clock);
        if random.below(6) == 0 {
            simulation.kill().await;
            let append = 1 + usize::try_from(random.below(8)).unwrap();
            let when = if random.below(2) == 0 { CrashMoment::Before } else { CrashMoment::After };
            simulation.start(Some(Crash { append, when }));
        }
        for (session, end) in ends.extract_if(.., |_, end| *end <= clock) {
            let outcome = if random.below(3) == 0 { Outcome::Failed } else { Outcome::Completed };
            simulation.play_turn_until(session, outcome, At(end)).await;
        }
        let demands = demanded_fires(&jobs, At(clock));
        while simulation.step(At(clock)).await.is_err() {
            kills += 1;
        }
        for job in &mut jobs {
            let new = simulation.schedule_after(&job.spec.name, job.records.len()).await;
            for run in fired(&new) {
                let key = (job.spec.name.clone(), run.slot);
                if let std::collections::btree_map::Entry::Vacant(new) = decided_at.entry(key) {
                    new.insert(clock);
                    job.requested_runs += usize::from(run.request.is_some());
                    let longest = if random.below(10) == 0 { 2 * DAY } else { 20 * MINUTE };
                    let length = random.below(longest.unsigned_abs());
                    ends.insert(run.session.unwrap(), clock + i64::try_from(length).unwrap());
                }
            }
            let newest = fired(&new).pop();
            job.records.extend(new);
            // A run that is interrupted ends at once.
            if let Some(newest) = newest.filter(|_| job.interrupts_other_sessions()) {
                let others =
                    job.open_sessions().into_iter().filter(|session| Some(*session) != newest.session);
                ends.extend(others.map(|session| (session, clock)));
            }
        }
        demanded += demands.len();
        for demand in demands {
            assert_eq!(decided_at.get(&demand), Some(&clock), "{demand:?} did not fire when it could");
        }
    }

    println!(
        "{steps} steps, {kills} kills, {changes} changes, {} runs, {demanded} of them demanded",
        decided_at.len()
    );
    assert!(
        kills > 20 && demanded > 100 && changes > 20,
        "{kills} kills, {demanded} demanded, {changes} changes"
    );
    for job in &jobs {
        check_year(&simulation, job, &decided_at).await;
    }
}

/// Pauses or resumes a schedule, gives it other times in the config, or runs it now.
async fn change_job(simulation: &mut Simulation, job: &mut YearJob, now: At, what: u64) {
    let (name, schedules) = (job.spec.name.clone(), simulation.registry());
    match what {
        0 if job.is_paused => {
            simulation.at(now, schedules.resume(&name)).await.unwrap();
            job.is_paused = false;
            job.begin_anew(now);
        }
        0 => {
            simulation.at(now, schedules.pause(&name)).await.unwrap();
            job.is_paused = true;
        }
        1 => {
            simulation.at(now, schedules.run(&name)).await.unwrap();
            job.requests += 1;
        }
        _ => {
            let other = |one: &str, other: &str, now: &str| if now == one { other } else { one }.to_owned();
            job.spec.cron = job.spec.cron.take().map(|cron| match cron.len() {
                10 => other("30 2 * * *", "45 3 * * *", &cron),
                _ => other("0 */12 * * 1-5", "20 */12 * * 1-5", &cron),
            });
            job.spec.every = job.spec.every.take().map(|every| other("23h", "22h", &every));
            job.begin_anew(now);
            simulation.kill().await;
        }
    }
}

/// How many late runs go on together in the simulated year.
const AT_ONCE: u64 = 4;
/// Records at the end of a schedule's stream that have all of its open runs.
const TAIL: usize = 40;

/// The slots that must fire at this moment, as the page on schedules says it, of the schedules that have no open run. None if late runs might
/// have to wait for each other.
fn demanded_fires(jobs: &[YearJob], now: At) -> Vec<(String, At)> {
    let mut demands = Vec::new();
    let mut open_runs = 0;
    for job in jobs {
        let records = job.newest_records();
        let open = job.open_sessions().len();
        open_runs += open;
        let waiting_requests = job.requests - job.requested_runs;
        if open > 0 || job.is_paused || waiting_requests > 0 {
            // A run by hand that comes first is a run that may be late, too.
            open_runs += waiting_requests;
            continue;
        }
        let timing = &job.timing;
        let own = decisions(records).into_iter().rfind(|decided| decided.request.is_none());
        let through = own.map_or(job.since, |decided| decided.slot.max(job.since));
        let horizon = At(now.0 - timing.delay.milliseconds());
        let lateness = |slot: &At| horizon.0 - slot.0;
        let mut due = slots_of(timing, through.max(At(horizon.0 - 4 * DAY)), horizon);
        due.retain(|slot| lateness(slot) <= timing.grace.milliseconds());
        let demand = match job.spec.missed {
            MissedPolicy::Latest => due.last(),
            MissedPolicy::All => due.first(),
            MissedPolicy::None => due.last().filter(|slot| lateness(slot) <= MINUTE),
        };
        demands.extend(demand.map(|slot| (job.spec.name.clone(), *slot)));
    }
    if open_runs + demands.len() > usize::try_from(AT_ONCE).unwrap() { Vec::new() } else { demands }
}

async fn check_year(simulation: &Simulation, job: &YearJob, decided_at: &BTreeMap<(String, At), i64>) {
    let (spec, name) = (&job.spec, &job.spec.name);
    let records = &job.records;
    let mut slots_decided = BTreeSet::new();
    // Each session's inputs are read once: those of the named ones are many.
    let mut inputs_of: BTreeMap<SessionId, BTreeMap<InputId, usize>> = BTreeMap::new();
    let (mut timing, mut through, mut free_since) = (job.timing.clone(), At(START), At(i64::MIN));
    for record in records {
        match record {
            ScheduleRecord::Began(began) => {
                assert!(began.from >= through, "{name}: it never goes back");
                let terms = ScheduleSpec {
                    cron: began.terms.cron.clone(),
                    every: began.terms.every.clone(),
                    ..spec.clone()
                };
                (timing, through) = (Timing::parse(name, &terms, began.from).unwrap(), began.from);
            }
            ScheduleRecord::Ended(ended) => free_since = ended.at,
            ScheduleRecord::Decided(decided) => {
                if decided.action == SlotAction::Fire {
                    let session = decided.session.unwrap();
                    if !inputs_of.contains_key(&session) {
                        let counts = inputs_of.entry(session).or_default();
                        for (_, input) in simulation.inputs(session).await {
                            *counts.entry(input.id).or_default() += 1;
                        }
                    }
                    let count = inputs_of[&session].get(&decided.input.unwrap());
                    assert_eq!(count, Some(&1), "{}", input_key(name, decided.slot));
                }
                if decided.request.is_some() {
                    free_since = At(i64::MIN);
                    continue;
                }
                let slots = slots_of(&timing, through, decided.slot);
                let first = decided.since.unwrap_or(decided.slot);
                assert_eq!(
                    (slots.first(), slots.last()),
                    (Some(&first), Some(&decided.slot)),
                    "{name}: each slot, in order"
                );
                assert!(slots.into_iter().all(|slot| slots_decided.insert(slot)), "{name}: each slot once");
                through = decided.slot;
                if decided.action != SlotAction::Fire {
                    continue;
                }
                let clock = decided_at[&(name.clone(), decided.slot)];
                let late = clock - decided.slot.0 - timing.delay.milliseconds();
                assert!((0..=timing.grace.milliseconds()).contains(&late), "{name}: {late} ms late");
                let newest = timing.slots.last_until(At(START), At(clock - timing.delay.milliseconds()));
                if spec.missed != MissedPolicy::All {
                    assert!(newest <= Some(decided.slot), "{name}: an older slot than the newest fired");
                }
                if spec.missed == MissedPolicy::None {
                    let waited = clock - (clock - late).max(free_since.0);
                    assert!(waited <= MINUTE, "{name}: {waited} ms late, and nothing was in its way");
                }
                free_since = At(i64::MIN);
            }
            _ => {}
        }
    }
    let requests = decisions(records).iter().filter(|decided| decided.request.is_some()).count();
    let open = fired(records).len()
        - records.iter().filter(|record| matches!(record, ScheduleRecord::Ended(_))).count();
    assert!(requests == job.requests || open > 0, "{name}: {requests} of {} runs by hand", job.requests);
    check_overlap(simulation, job).await;
}

/// Without `interrupt`, a run begins only after the one before it has ended. With it, the one before is cancelled; where both have the
/// same session, the mode of the input does that.
async fn check_overlap(simulation: &Simulation, job: &YearJob) {
    let name = &job.spec.name;
    let mut open = Vec::new();
    for record in &job.records {
        match record {
            ScheduleRecord::Decided(decided) if decided.action == SlotAction::Fire => {
                if job.interrupts_other_sessions() {
                    for (_, session) in &open {
                        assert!(
                            simulation.is_cancelled(*session).await,
                            "{name}: {session} is not cancelled"
                        );
                    }
                }
                open.push((decided.slot, decided.session.unwrap()));
            }
            ScheduleRecord::Ended(ended) => open.retain(|(slot, _)| *slot != ended.slot),
            _ => {}
        }
        let is_alone = open.len() <= 1 || job.spec.overlap == OverlapPolicy::Interrupt;
        assert!(is_alone, "{name}: {} runs at once", open.len());
    }
}
