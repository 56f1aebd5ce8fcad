use longhaul_protocol::{
    AttemptEnded, AttemptStarted, Body, Effect, Hash, SessionId, StepStarted, ToolFinished, ToolStarted,
};

use super::*;

/// A turn whose records have the times that a test gives them.
struct RecordedTurn {
    timeline: TimelineFold,
    seq: Seq,
}

impl RecordedTurn {
    fn at(at: i64) -> Self {
        let started = record(1, at, &SessionRecord::TurnStarted(TurnStarted::new(3)));
        Self { timeline: TimelineFold::new(3, &started), seq: 1 }
    }

    fn record(&mut self, at: i64, fact: &SessionRecord) {
        self.seq += 1;
        self.timeline.apply(&record(self.seq, at, fact));
    }

    fn attempt(&mut self, from: i64, to: i64, error: Option<&str>) {
        let attempt = AttemptId::generate();
        self.record(from, &SessionRecord::AttemptStarted(AttemptStarted { attempt, model: "a/b".into() }));
        let (kept, stop, error) = (0, None, error.map(str::to_owned));
        let (goes_on, too_long) = (false, None);
        let ended = AttemptEnded { attempt, kept, stop, error, goes_on, too_long };
        self.record(to, &SessionRecord::AttemptEnded(ended));
    }

    fn begin_call(&mut self, at: i64) -> CallId {
        let call = CallId::generate();
        let (name, arguments, effect) = ("exec".to_owned(), "{}".to_owned(), Effect::Command);
        let (write, writes, kept_in) = (None, vec![], None);
        let remote_task = None;
        let started = ToolStarted {
            call,
            name,
            arguments,
            effect,
            write,
            writes,
            kept_in,
            remote_task,
            child: None,
            changes_nothing: false,
        };
        self.record(at, &SessionRecord::ToolStarted(started));
        call
    }

    fn end_call(&mut self, at: i64, call: CallId) {
        self.record(at, &SessionRecord::ToolFinished(ToolFinished::new(call, "exec", "done")));
    }

    fn end(mut self, at: i64) -> TurnTimeline {
        let (outcome, limit, text) = (Outcome::Completed, None, String::new());
        let (error, code, inbox_through) = (None, None, None);
        let ended = TurnEnded { turn: 3, outcome, limit, text, error, code, inbox_through };
        self.record(at, &SessionRecord::TurnEnded(ended));
        self.timeline.finish(At(1_000_000))
    }
}

fn record(seq: Seq, at: i64, fact: &SessionRecord) -> Record {
    let new = fact.encode();
    let stream = StreamName::session(SessionId::from_bits(1));
    let (prev, hash) = (Hash::ZERO, Hash::ZERO);
    Record { stream, seq, at: At(at), kind: new.kind, key: None, body: Body::Here(new.body), prev, hash }
}

fn total(timeline: &TurnTimeline, kind: SpanKind) -> (usize, u64) {
    let total = timeline.totals.iter().find(|total| total.kind == kind).unwrap();
    (total.spans, total.ms)
}

/// H8.
#[test]
fn the_time_of_a_turn_is_told_by_what_it_was_used_for() {
    let mut turn = RecordedTurn::at(0);
    turn.record(10, &SessionRecord::StepStarted(StepStarted::new(1)));
    turn.attempt(500, 1_500, Some("the stream broke"));
    turn.attempt(4_500, 6_500, None);
    // Two calls run beside each other.
    let (one, two) = (turn.begin_call(6_500), turn.begin_call(6_600));
    turn.end_call(8_500, one);
    turn.end_call(9_500, two);
    turn.attempt(9_500, 10_000, None);

    let timeline = turn.end(10_000);

    assert_eq!((timeline.took_ms, timeline.outcome), (10_000, Some(Outcome::Completed)));
    assert_eq!(total(&timeline, SpanKind::Model), (3, 3_500));
    assert_eq!(total(&timeline, SpanKind::Tool), (2, 3_000), "time that both ran counts once");
    assert_eq!(total(&timeline, SpanKind::Retry), (1, 3_000));
    assert_eq!(total(&timeline, SpanKind::Wait), (1, 500), "the time before the first call");
    let kinds: Vec<SpanKind> = timeline.spans.iter().map(|span| span.kind).collect();
    let (model, tool) = (SpanKind::Model, SpanKind::Tool);
    assert_eq!(kinds, [SpanKind::Wait, model, SpanKind::Retry, model, tool, tool, model]);
    let sum: u64 = timeline.totals.iter().map(|total| total.ms).sum();
    assert_eq!(sum, timeline.took_ms, "no time is missing");
}

#[test]
fn what_goes_on_has_no_end_and_counts_until_now() {
    let mut turn = RecordedTurn::at(0);
    turn.attempt(0, 2_000, None);
    turn.begin_call(2_000);

    let timeline = turn.timeline.finish(At(5_000));

    assert_eq!((&timeline.ended_at, timeline.outcome, timeline.took_ms), (&None, None, 5_000));
    let last = timeline.spans.last().unwrap();
    assert_eq!((last.kind, &last.ended_at, last.outcome), (SpanKind::Tool, &None, None));
    assert_eq!(total(&timeline, SpanKind::Tool), (1, 3_000));
}

/// The clock of another machine may have said anything.
#[test]
fn a_clock_that_was_set_back_makes_no_time_negative() {
    let mut turn = RecordedTurn::at(i64::MAX);
    turn.attempt(5_000, i64::MIN, Some("x"));

    let timeline = turn.end(-5);

    assert_eq!(timeline.took_ms, 0);
    assert_eq!(total(&timeline, SpanKind::Model), (1, 0));
}
