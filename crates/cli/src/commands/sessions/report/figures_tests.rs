use longhaul_protocol::{
    At, AttemptId, Body, CompactDone, CompactedBy, Hash, Record, Seq, SessionRecord, StepStarted, StreamName,
    TurnStarted, Usage,
};

use super::{Figures, MAX_CHART_POINTS};

fn record(seq: Seq, fact: &SessionRecord) -> Record {
    let encoded = fact.encode();
    let stream: StreamName = "session/01JDFJM0000000000000000001".parse().unwrap();
    let zero = Hash::of("");
    Record {
        stream,
        seq,
        at: At(0),
        kind: encoded.kind,
        key: None,
        body: Body::Here(encoded.body),
        prev: zero,
        hash: zero,
    }
}

fn usage(input: u64, cost: Option<f64>) -> Usage {
    Usage {
        input: Some(input),
        output: Some(10),
        cost,
        window: Some(1_000),
        ..Usage::of(AttemptId::generate())
    }
}

fn count(figures: &mut Figures, facts: impl IntoIterator<Item = SessionRecord>) {
    for (place, fact) in facts.into_iter().enumerate() {
        figures.count(&record(place as Seq + 1, &fact));
    }
}

/// A file that was imported may claim any number.
#[test]
fn sums_of_the_largest_numbers_stay_the_largest() {
    let mut figures = Figures::new(2);
    let most = Usage { output: Some(u64::MAX), cached: Some(u64::MAX), ..usage(u64::MAX, Some(1e308)) };

    count(&mut figures, [SessionRecord::Usage(most.clone()), SessionRecord::Usage(most)]);

    assert!(
        figures.spend.to_string().contains("18,446,744,073,709,551,615 out"),
        "{}",
        figures.spend.to_string()
    );
    assert_eq!(figures.points[0].tokens, Some(u64::MAX));
    assert!(figures.spend.cost.unwrap() < 1e16, "a chart can be drawn of it");
}

#[test]
fn a_point_is_the_context_after_a_step_and_the_cost_of_everything_so_far() {
    let mut figures = Figures::new(2);
    let extract = Usage { purpose: Some("extract".into()), ..usage(9_999, Some(0.5)) };
    let done = CompactDone { epoch: 2, by: CompactedBy::Model, before: 500, after: 90, from: 1, through: 3 };

    count(
        &mut figures,
        [
            SessionRecord::TurnStarted(TurnStarted::new(1)),
            SessionRecord::StepStarted(StepStarted::new(1)),
            SessionRecord::Usage(usage(100, Some(0.1))),
            SessionRecord::Usage(extract),
            SessionRecord::CompactDone(done),
            SessionRecord::StepStarted(StepStarted::new(2)),
            SessionRecord::Usage(usage(50, Some(0.1))),
        ],
    );

    let told: Vec<_> = figures.points.iter().map(|point| (point.step, point.tokens, point.window)).collect();
    assert_eq!(told, [(1, Some(110), Some(1_000)), (2, Some(60), Some(1_000))]);
    assert!((figures.points[0].cost.unwrap() - 0.6).abs() < 1e-9);
    assert_eq!(figures.compactions[0].point, 1, "it stands before the second point");
}

/// However long a session is, its charts have few points, and none of them hides how full it was.
#[test]
fn many_steps_become_few_points_and_the_fullest_stays() {
    let mut figures = Figures::new(2);
    let steps = 10_000;
    let fullest = 4_321;

    figures.count(&record(1, &SessionRecord::TurnStarted(TurnStarted::new(1))));
    for step in 1..=steps {
        figures.count(&record(step * 2, &SessionRecord::StepStarted(StepStarted::new(step))));
        let input = if step == 7_777 { fullest } else { 100 };
        figures.count(&record(step * 2 + 1, &SessionRecord::Usage(usage(input, Some(0.001)))));
    }

    assert!(
        figures.points.len() <= MAX_CHART_POINTS
            && figures.points.len() * figures.steps_per_point as usize >= 9_000
    );
    assert_eq!(figures.points.iter().filter_map(|point| point.tokens).max(), Some(fullest + 10));
    assert_eq!(figures.points.last().unwrap().step, steps);
    assert_eq!(figures.steps, steps);
}
