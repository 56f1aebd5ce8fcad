//! Cron lines, by two other implementations (W2).
//!
//! `cronsim` has the rules of Debian's cron, as this program does, and has to agree everywhere. Two things are left out of the lines, because the
//! programs read them differently: a step from `*` in day or weekday while the other is set (`*/2` counts as `*` in cron, and as a set of days here and in
//! most libraries), and a weekday range up to 7. On a day without midnight, such as the one in Havana on which the clock goes from 0:00 to
//! 1:00, `cronsim` looks for the day's first slot at a time that is not there: it leaves out the hour from 1:00 of `* 1 * * */4`, and takes
//! 1:00 for an hour of `*/25 */8 * * *`. Spans with such a day don't count.
//!
//! `croniter` has rules of its own for the days on which a clock changes: it leaves out or repeats runs there. It has to agree
//! on all spans in which no clock changes. It takes a range of one value, such as `3-3`, for `*`, so the lines have none.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use longhaul_protocol::{At, ScheduleSpec};
use longhaul_schedule::Timing;
use longhaul_testkit::SeededRandom;
use serde::Deserialize;
use serde_json::json;

use crate::installed::peer;

const LINES: usize = 2_000;
const SLOTS: usize = 6;
/// The two years from 2026-01-01 on.
const FROM: i64 = 1_767_225_600;
const SPAN: u64 = 2 * 366 * 86_400;

struct Question {
    line: String,
    zone: String,
    start: i64,
}

#[derive(Deserialize)]
struct Answer {
    cronsim: Vec<i64>,
    croniter: Vec<i64>,
}

/// A field: `*`, a step, a value, a range or a list.
fn field(random: &mut SeededRandom, first: u64, last: u64, may_step: bool) -> String {
    let value = |random: &mut SeededRandom| first + random.below(last - first + 1);
    match random.below(if may_step { 6 } else { 4 }) {
        0 | 1 => value(random).to_string(),
        2 => {
            let (one, other) = (value(random), value(random));
            match one == other {
                true => one.to_string(),
                false => format!("{}-{}", one.min(other), one.max(other)),
            }
        }
        3 => {
            let mut values: Vec<u64> = (0..3).map(|_| value(random)).collect();
            values.sort_unstable();
            values.dedup();
            values.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
        }
        4 => format!("*/{}", 2 + random.below(last.min(30) - 1)),
        _ => "*".to_owned(),
    }
}

fn cron_line(random: &mut SeededRandom) -> String {
    let minute = field(random, 0, 59, true);
    // Half of the hours are those in which clocks change.
    let hour = if random.below(2) == 0 { random.below(4).to_string() } else { field(random, 0, 23, true) };
    let (day, weekday) = match random.below(4) {
        0 => ("*".to_owned(), "*".to_owned()),
        1 => (field(random, 1, 28, true), "*".to_owned()),
        2 => ("*".to_owned(), field(random, 0, 6, true)),
        _ => (field(random, 1, 28, false), field(random, 0, 6, false)),
    };
    let month = if random.below(3) == 0 { field(random, 1, 12, true) } else { "*".to_owned() };
    format!("{minute} {hour} {day} {month} {weekday}")
}

/// Every zone of the system.
fn zones() -> Vec<String> {
    let names = jiff::tz::db().available().map(|name| name.to_string());
    let is_place =
        |name: &String| !name.starts_with("right/") && !name.starts_with("posix/") && name.contains('/');
    names.filter(is_place).collect()
}

/// A start within three days before a change of the zone's clock, if there is one within the span.
fn start_in(random: &mut SeededRandom, zone: &TimeZone) -> i64 {
    let anywhere = FROM + i64::try_from(random.below(SPAN)).unwrap();
    let change = zone
        .following(Timestamp::from_second(anywhere).unwrap())
        .next()
        .map(|change| change.timestamp().as_second());
    let before = i64::try_from(random.below(3 * 86_400)).unwrap();
    change
        .filter(|change| change - anywhere < i64::try_from(SPAN).unwrap())
        .map_or(anywhere, |change| change - before)
}

fn slots_here(question: &Question) -> Vec<i64> {
    let spec = ScheduleSpec {
        cron: Some(question.line.clone()),
        zone: Some(question.zone.clone()),
        ..ScheduleSpec::new("peer", "x")
    };
    let slots = Timing::parse("peer", &spec, At(0))
        .unwrap_or_else(|error| panic!("{}: {error}", question.line))
        .slots;
    let mut after = At(question.start * 1_000);
    (0..SLOTS)
        .map(|_| {
            after = slots.next_after(after).unwrap();
            after.0 / 1_000
        })
        .collect()
}

fn slots_elsewhere(questions: &[Question]) -> Vec<Answer> {
    let lines: Vec<String> = questions
        .iter()
        .map(|Question { line, zone, start }| {
            json!({"line": line, "zone": zone, "start": start, "count": SLOTS}).to_string()
        })
        .collect();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers/cron.py");
    let mut peer = Command::new(peer("cron/bin/python"))
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = peer.stdin.take().unwrap();
    let writing = std::thread::spawn(move || stdin.write_all(lines.join("\n").as_bytes()).unwrap());
    let output = peer.wait_with_output().unwrap();
    writing.join().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Whether a clock of the zone changes on a day of the span.
fn has_change(zone: &TimeZone, start: i64, end: i64) -> bool {
    let day = 86_400;
    let from = Timestamp::from_second(start - day).unwrap();
    zone.following(from).next().is_some_and(|change| change.timestamp().as_second() < end + day)
}

/// Whether a day of the span has no midnight, because the clock jumps over it.
fn leaves_out_midnight(zone: &TimeZone, start: i64, end: i64) -> bool {
    let day = 86_400;
    let seconds = |at: Timestamp| i64::from(zone.to_offset(at).seconds());
    let is_without = |change: Timestamp| {
        let before = change - jiff::SignedDuration::from_secs(1);
        let (from, to) = (change.as_second() + seconds(before), change.as_second() + seconds(change));
        (from + day - 1).div_euclid(day) * day < to
    };
    let changes =
        zone.following(Timestamp::from_second(start - day).unwrap()).map(|change| change.timestamp());
    changes.take_while(|change| change.as_second() < end + day).any(is_without)
}

/// W2: two thousand lines over all zones, half of them across a change of the clock.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn slots_are_those_of_other_implementations() {
    let mut random = SeededRandom::new();
    let zones = zones();
    assert!(zones.len() > 300, "{} zones", zones.len());
    let questions: Vec<Question> = (0..LINES)
        .map(|number| {
            let name = zones[number * 7 % zones.len()].clone();
            let start = start_in(&mut random, &TimeZone::get(&name).unwrap());
            Question { line: cron_line(&mut random), zone: name, start }
        })
        .collect();

    let answers = slots_elsewhere(&questions);

    let (mut with_change, mut differences) = (0, Vec::new());
    for (question, answer) in questions.iter().zip(&answers) {
        let here = slots_here(question);
        let Question { line, zone, start } = question;
        let zone_rules = TimeZone::get(zone).unwrap();
        if here != answer.cronsim && !leaves_out_midnight(&zone_rules, *start, here[SLOTS - 1]) {
            differences.push(format!(
                "{line} in {zone} after {start}: {here:?} here, {:?} by cronsim",
                answer.cronsim
            ));
        }
        let changes = has_change(&zone_rules, *start, here[SLOTS - 1]);
        with_change += usize::from(changes);
        if !changes && here != answer.croniter {
            differences.push(format!(
                "{line} in {zone} after {start}: {here:?} here, {:?} by croniter",
                answer.croniter
            ));
        }
    }
    assert_eq!(answers.len(), LINES);
    assert!(with_change > LINES / 4, "only {with_change} lines across a change of the clock");
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}
