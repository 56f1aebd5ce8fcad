//! Random interleavings of inputs, orders, answers, tool ends, compactions and crashes, against the pure core: a thousand sessions a
//! second.
//!
//! A driver without a journal carries out what `decide` says, one append at a time. Between any two appends the process may
//! die: what it knew is gone, and the state is folded again from the records.

mod world;

use std::collections::HashMap;

use longhaul_context::WrittenSummary;
use longhaul_protocol::{
    AttemptEnded, AttemptId, CompactedBy, InputId, Item, JoinMode, Role, SessionRecord, Summary, TaskStatus,
};
use longhaul_testkit::broken_rules;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use world::{Nature, World};

use crate::wire::facts;

/// What happens besides what the driver does.
#[derive(Debug, Clone)]
enum Happens {
    Input(JoinMode),
    Cancel,
    /// Somebody wants the context to be made smaller.
    Ask,
    /// Nobody has had to do with the session for a while.
    Idle,
    /// One of the next prompts is too long, whatever was thought.
    Refuse,
    /// The driver makes so many appends.
    Work(usize),
    Crash,
    /// What a context begins with has changed.
    Upgrade,
    /// One of the tasks that run ends.
    End(usize, TaskStatus),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        4 => prop_oneof![Just(JoinMode::Join), Just(JoinMode::After), Just(JoinMode::Interrupt)].prop_map(Happens::Input),
        2 => Just(Happens::Cancel),
        1 => Just(Happens::Ask),
        1 => Just(Happens::Idle),
        1 => Just(Happens::Refuse),
        12 => (1usize..9).prop_map(Happens::Work),
        4 => Just(Happens::Crash),
        2 => Just(Happens::Upgrade),
        4 => (0usize..4, prop_oneof![3 => Just(TaskStatus::Completed), 1 => Just(TaskStatus::Killed)])
            .prop_map(|(which, status)| Happens::End(which, status)),
    ]
}

fn nature() -> impl Strategy<Value = Nature> {
    let calls = proptest::collection::vec(0usize..4, 1..6);
    let sizes = proptest::collection::vec(
        prop_oneof![4 => 0usize..60, 3 => 60usize..900, 1 => 900usize..4_000],
        1..5,
    );
    let outputs = prop_oneof![2 => 0usize..60, 1 => 400usize..4_000];
    let window =
        prop_oneof![2 => Just(None), 1 => (200u64..700).prop_map(Some), 5 => (700u64..8_000).prop_map(Some)];
    let written = prop_oneof![3 => Just(Some(60)), 1 => (0usize..20_000).prop_map(Some), 1 => Just(None)];
    let summaries = proptest::collection::vec(written, 1..4);
    let counts = prop_oneof![Just(None), (5u64..20).prop_map(Some)];
    (calls, sizes, outputs, window, summaries, proptest::bool::weighted(0.8), counts).prop_map(
        |(calls, sizes, output, window, summaries, has_summaries, counts)| Nature {
            calls,
            sizes,
            output,
            window,
            summaries,
            has_summaries,
            counts,
        },
    )
}

/// How many histories; `scripts/soak` sets another number.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|number| number.parse().ok()).unwrap_or(600)
}

/// Everything that happens, and then until there is nothing left to do.
fn play(nature: Nature, history: &[Happens]) -> Result<World, TestCaseError> {
    let mut world = World::new(nature);
    for what in history {
        world.happens(what);
    }
    let mut appends = 0;
    while world.work() || world.end_all() {
        appends += 1;
        prop_assert!(appends < 20_000, "it does not come to an end");
    }
    Ok(world)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    /// T1, T3, T5, T13, K5, K9, M16, C3, C6, C12
    #[test]
    fn nothing_is_lost_and_nothing_is_done_twice(
        nature in nature(),
        history in proptest::collection::vec(happens(), 1..40),
    ) {
        let world = play(nature, &history)?;

        prop_assert_eq!(broken_rules(&world.records), Vec::<String>::new());
        let state = &world.state;
        prop_assert!(state.turn.is_none() && state.pending_inputs.is_empty() && state.compaction.open_reason.is_none());
        // T3: every input is in the context, once, or a compaction covers it.
        let said: Vec<&str> = state.items.iter().filter_map(|item| match &**item {
            Item::Text { role: Role::User, text } => Some(text.as_str()),
            _ => None,
        }).collect();
        let seen = |id: &InputId| said.iter().filter(|text| text.starts_with(&format!("input {id}"))).count();
        for id in &world.inputs {
            let is_covered = world.seen_at[id] <= state.compaction.covered_through;
            prop_assert!(seen(id) == 1 || (seen(id) == 0 && is_covered), "{} is there {} times", id, seen(id));
        }
        // Only what waits for the next turn may be overtaken.
        let joins: Vec<String> = world.joined().map(|id| format!("input {id}")).collect();
        let in_order = said.iter().filter_map(|text| joins.iter().find(|join| text.starts_with(*join)));
        let still_there = joins.iter().filter(|join| said.iter().any(|text| text.starts_with(*join)));
        prop_assert_eq!(in_order.collect::<Vec<_>>(), still_there.collect::<Vec<_>>());
        let facts = facts(&world.records);
        // T13: what may not happen twice did not.
        for fact in &facts {
            if let SessionRecord::ToolStarted(started) = fact && started.name == "launch" {
                prop_assert!(world.effects.get(&started.call).is_none_or(|times| *times == 1));
            }
        }
        // K5, K8, K9: each task was started once, and its end is told once, unless somebody ended it.
        let told = |id| facts.iter()
            .filter(|fact| matches!(fact, SessionRecord::Notification(told) if told.task_id == id)).count();
        for (id, status) in &world.keepers {
            prop_assert_eq!(world.effects[&id.call()], 1);
            prop_assert_eq!(told(*id), usize::from(*status != TaskStatus::Killed), "{}", id);
        }
        // T5: and each call has its result right where a provider wants it.
        let normal = longhaul_context::normalise(&state.items);
        prop_assert_eq!(&normal, &state.items);
    }
}

/// The worlds are such that everything that they are about does happen in them.
#[test]
fn in_the_random_worlds_contexts_are_made_smaller_in_every_way() {
    let mut runner = TestRunner::deterministic();
    let worlds = (nature(), proptest::collection::vec(happens(), 20..40));
    let mut counts: HashMap<String, usize> = HashMap::new();

    for _ in 0..200 {
        let (nature, history) = worlds.new_tree(&mut runner).unwrap().current();
        let world = play(nature, &history).unwrap();
        for fact in facts(&world.records) {
            let what = match fact {
                SessionRecord::CompactStart(start) => format!("start {}", start.reason),
                SessionRecord::CompactDone(done) if done.by == CompactedBy::Model => "by model".to_owned(),
                SessionRecord::CompactDone(_) => "by rule".to_owned(),
                SessionRecord::CompactFailed(failed) if failed.tokens.is_some() => "failed".to_owned(),
                SessionRecord::CompactFailed(failed) => failed.reason,
                SessionRecord::Stubbed(_) => "stubbed".to_owned(),
                SessionRecord::TurnEnded(ended) => ended.code.unwrap_or_default(),
                _ => continue,
            };
            *counts.entry(what).or_default() += 1;
        }
    }

    let expected = [
        "start before_turn",
        "start within_turn",
        "start overflow",
        "start asked",
        "start idle",
        "by model",
        "by rule",
        "failed",
        "interrupted",
        "cancelled",
        "stubbed",
        "context_too_long",
    ];
    for what in expected {
        assert!(counts.contains_key(what), "{what} never happened: {counts:?}");
    }
}

fn ended(attempt: AttemptId, kept: usize, error: Option<&str>) -> SessionRecord {
    let (kept, stop) = (u32::try_from(kept).unwrap(), error.is_none().then(|| "stop".to_owned()));
    let error = error.map(str::to_owned);
    SessionRecord::AttemptEnded(AttemptEnded { attempt, kept, stop, error, goes_on: false, too_long: None })
}

fn written(size: usize) -> WrittenSummary {
    let goal = "goal ".repeat(size / 5);
    let summary = Summary { goal, next_action: "go on".to_owned(), ..Summary::default() };
    WrittenSummary { summary, withdrawn: vec![] }
}
