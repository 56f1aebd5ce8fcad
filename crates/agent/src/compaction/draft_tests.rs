//! What a compaction comes to, for random contexts, in windows from 200 tokens to 200,000, with models that count differently.

use std::collections::BTreeMap;

use longhaul_context::{CompactionThresholds, ContextBudget, TokenCalibration, normalise};
use longhaul_protocol::{BlobRef, CallId, CompactStart, Image, StepStarted, TurnStarted};
use proptest::prelude::*;

use super::*;
use crate::compaction::plan::Compaction;
use crate::compaction::plan_compaction;
use crate::session::fixtures::record;
use crate::session::state::{Epoch, TokenCounting, Turn};

/// How long a text is.
#[derive(Debug, Clone, Copy)]
enum Length {
    Bytes(usize),
    /// So many thousandths of what the window has room for.
    Share(usize),
}

fn length() -> impl Strategy<Value = Length> {
    prop_oneof![
        6 => (1usize..60).prop_map(Length::Bytes),
        5 => (0usize..40).prop_map(Length::Share),
        2 => (40usize..400).prop_map(Length::Share),
        1 => (400usize..2_000).prop_map(Length::Share),
    ]
}

/// A turn: what was asked, a picture, and the steps with their calls.
#[derive(Debug, Clone)]
struct Exchange {
    request: Length,
    has_picture: bool,
    steps: Vec<(Length, Vec<Length>)>,
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let step = (length(), proptest::collection::vec(length(), 0..3));
    (length(), proptest::bool::weighted(0.1), proptest::collection::vec(step, 0..5))
        .prop_map(|(request, has_picture, steps)| Exchange { request, has_picture, steps })
}

/// Whether the newest turn is open, and how far it is.
#[derive(Debug, Clone, Copy)]
enum Stands {
    Rests,
    Answered,
    Unanswered,
}

#[derive(Debug, Clone)]
struct Case {
    window: u64,
    fixed: u64,
    /// Estimated and counted.
    samples: Vec<(u64, u64)>,
    before: Vec<Exchange>,
    /// Between these two there was another compaction.
    since: Vec<Exchange>,
    stands: Stands,
    written: Option<Vec<Length>>,
    trigger: CompactionTrigger,
}

fn case() -> impl Strategy<Value = Case> {
    let window = prop_oneof![4 => 200u64..1_000, 4 => 1_000u64..10_000, 1 => 10_000u64..200_000];
    let samples = proptest::collection::vec((100u64..5_000, 100u64..5_000), 0..4);
    let stands = prop_oneof![Just(Stands::Rests), Just(Stands::Answered), Just(Stands::Unanswered)];
    let trigger = prop_oneof![
        Just(CompactionTrigger::BeforeTurn),
        Just(CompactionTrigger::WithinTurn),
        Just(CompactionTrigger::Idle),
        Just(CompactionTrigger::Overflow),
        Just(CompactionTrigger::Requested)
    ];
    let exchanges = |least| proptest::collection::vec(exchange(), least..6);
    let written = proptest::option::of(proptest::collection::vec(length(), 0..8));
    (window, 0u64..30, samples, exchanges(0), exchanges(1), stands, written, trigger).prop_map(
        |(window, percent, samples, before, since, stands, written, trigger)| {
            let fixed = window * percent / 100;
            Case { window, fixed, samples, before, since, stands, written, trigger }
        },
    )
}

impl Case {
    fn space(&self, state: &State) -> ContextLimits {
        let (window, answer) = (self.window, (self.window / 4).min(8_192));
        let room = Some(ContextBudget { window, answer, fixed: state.calibrated("m", self.fixed) });
        let model = "m".to_owned();
        ContextLimits {
            model,
            room,
            checks: CompactionThresholds::default(),
            has_summaries: true,
            is_idle: false,
        }
    }

    fn text(&self, length: Length, begin: &str) -> String {
        let bytes = match length {
            Length::Bytes(bytes) => bytes,
            Length::Share(share) => usize::try_from(self.window).unwrap() * 4 * share / 1_000,
        };
        format!("{begin} {}", "wörd ".repeat(bytes / 6))
    }

    fn written(&self) -> Option<WrittenSummary> {
        let texts = self.written.as_ref()?;
        let list: Vec<String> = texts.iter().map(|length| self.text(*length, "entry")).collect();
        let goal = list.first().cloned().unwrap_or_default();
        let summary = Summary { goal, directives: list.clone(), files: list, ..Summary::default() };
        Some(WrittenSummary { summary, withdrawn: vec![] })
    }

    fn state(&self) -> State {
        let blob = BlobRef::to(b"x", "text/plain");
        let epoch = Epoch { number: 1, began: 1, folds_from: 1, system: blob.clone(), tools: blob };
        let counting = TokenCounting {
            calibration: TokenCalibration::from_samples(self.samples.clone()),
            ..TokenCounting::default()
        };
        let mut state = State {
            head: 1,
            epoch: Some(epoch),
            token_counts: BTreeMap::from([("m".to_owned(), counting)]),
            ..State::default()
        };
        self.add(&mut state, &self.before);
        if !self.before.is_empty() {
            self.open(&mut state, Stands::Rests);
            let keep = self.window / 20;
            apply_start(&mut state);
            if let Ok(facts) = plan_compaction(
                &state,
                &self.space(&state),
                CompactionTrigger::Requested,
                self.written(),
                keep,
            ) {
                facts.iter().for_each(|fact| apply(&mut state, fact));
            }
        }
        self.add(&mut state, &self.since);
        self.open(&mut state, self.stands);
        state.compaction = Compaction { open_reason: None, answers_since_last: 1, ..state.compaction };
        state
    }

    fn add(&self, state: &mut State, exchanges: &[Exchange]) {
        for exchange in exchanges {
            state.turn_count += 1;
            let turn = state.turn_count;
            let mut push = |step: u64, item: Item| {
                state.head += 1;
                state.places.push(Place::new(state.head, turn, step));
                state.items.push(Arc::new(item));
            };
            let text = self.text(exchange.request, &format!("request {turn}"));
            push(1, Item::Text { role: Role::User, text });
            // One takes more than a small window has.
            if exchange.has_picture && self.window >= 4_000 {
                push(1, Item::Image(Image { data: BlobRef::to(b"picture", "image/png") }));
            }
            for (step, (said, results)) in (1..).zip(&exchange.steps) {
                push(step, Item::Text { role: Role::Assistant, text: self.text(*said, "said") });
                let id = |at: usize| {
                    CallId::from_bits(u128::from(turn) * 10_000 + u128::from(step) * 10 + at as u128)
                };
                for at in 0..results.len() {
                    let (name, arguments) = ("exec".to_owned(), "{}".to_owned());
                    push(
                        step,
                        Item::ToolCall { call: id(at), wire_id: None, name, arguments, signature: None },
                    );
                }
                for (at, length) in results.iter().enumerate() {
                    let content = self.text(*length, "result");
                    push(step, Item::ToolResult { call: id(at), content, images: vec![], is_error: false });
                }
            }
        }
    }

    fn open(&self, state: &mut State, stands: Stands) {
        let steps = self.since.last().map_or(1, |exchange| exchange.steps.len().max(1)) as u64;
        let turn =
            Turn { number: state.turn_count, request_turn: state.turn_count, steps, ..Turn::default() };
        state.turn = match stands {
            Stands::Rests => None,
            Stands::Answered => {
                Some(Turn { answered: true, results_in_context: true, had_calls: true, ..turn })
            }
            Stands::Unanswered => Some(turn),
        };
    }
}

fn apply(state: &mut State, fact: &SessionRecord) {
    state.apply(&record(state.head + 1, fact)).unwrap();
}

fn apply_start(state: &mut State) {
    apply(state, &SessionRecord::CompactStart(CompactStart { reason: "asked".to_owned(), focus: None }));
}

/// The texts that a person said in a turn.
fn requests(state: &State, of_turn: Option<u64>) -> Vec<String> {
    let all = state.items.iter().zip(&state.places).skip(state.preface_len);
    let said = all.filter_map(|(item, place)| match &**item {
        Item::Text { role: Role::User, text } if of_turn.is_none_or(|turn| turn == place.turn) => {
            Some(text.clone())
        }
        _ => None,
    });
    said.collect()
}

/// How many tokens what is asked in a turn has.
fn asked(state: &State, turn: u64) -> u64 {
    let all = state.items.iter().zip(&state.places).skip(state.preface_len);
    let by_person = |item: &Item| matches!(item, Item::Text { role: Role::User, .. } | Item::Image(_));
    let asked = all.filter(|(item, place)| by_person(item) && place.turn == turn);
    let items: Vec<_> = asked.map(|(item, _)| item.clone()).collect();
    state.calibrated("m", estimate_items(&items))
}

/// Whether a text is another one, or what is left of it where there is little room.
fn is_of(text: &str, whole: &str) -> bool {
    let is_shortened = text.len() < whole.len() && text.contains("bytes are left out here");
    text == whole || is_shortened || whole.starts_with(text.trim_end_matches('…'))
}

/// Where the second of the newest exchanges begins, if there are two.
fn newest_two(state: &State) -> Option<usize> {
    let begins = |index: &usize| {
        *index == state.preface_len || state.places[*index].turn != state.places[*index - 1].turn
    };
    (state.preface_len..state.items.len()).rev().filter(begins).nth(1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// C6, C7, T5
    #[test]
    fn a_compaction_makes_room_and_keeps_what_must_stay(case in case(), keep in prop_oneof![Just(8_000u64), 0u64..2_000]) {
        let mut state = case.state();
        let space = case.space(&state);
        let usable = space.room.unwrap().usable();
        let need = crate::compaction::plan::next_prompt_tokens(&state, &space);
        apply_start(&mut state);

        let planned = plan_compaction(&state, &space, case.trigger, case.written(), keep);

        // Whether it need only fit.
        let is_free = match case.trigger {
            CompactionTrigger::Requested | CompactionTrigger::Overflow => true,
            CompactionTrigger::Idle => false,
            CompactionTrigger::BeforeTurn | CompactionTrigger::WithinTurn => need > usable,
        };
        let Ok(facts) = planned else {
            // C7: by rule there is a way, unless what must stay is too large alone.
            let fixed = space.room.unwrap().fixed;
            let asked = state.turn.as_ref().map_or(0, |turn| asked(&state, turn.number));
            prop_assert!(case.written.is_some() || !is_free || fixed + asked > usable / 4 || usable < 600,
                "{planned:?}: {need} of {usable}, of them {fixed} fixed and {asked} asked");
            return Ok(());
        };
        let kinds: Vec<&str> = facts.iter().map(SessionRecord::kind).collect();
        prop_assert_eq!(kinds, ["epoch_started", "system_message", "system_message", "compact_done"]);
        let Some(SessionRecord::CompactDone(done)) = facts.last().cloned() else { unreachable!() };
        let before = state.clone();
        facts.iter().for_each(|fact| apply(&mut state, fact));
        // C6, by the estimator that says how large the next request will be.
        prop_assert_eq!((crate::compaction::plan::next_prompt_tokens(&state, &space), state.epoch.as_ref().unwrap().number), (done.after, done.epoch));
        prop_assert!(done.after <= usable, "{} of {}", done.after, usable);
        if !is_free && done.before >= SMALL_CONTEXT_TOKENS {
            prop_assert!(done.after < done.before);
        }
        // C7: by rule the two newest exchanges stay if they fit, which may be less than that.
        if !is_free && done.before >= SMALL_CONTEXT_TOKENS && done.by == CompactedBy::Model {
            prop_assert!(done.after <= done.before / 10 * 7 && done.after < usable / 10 * 6);
        }
        prop_assert_eq!(&normalise(&state.items), &state.items);
        prop_assert_eq!(state.items.len(), state.places.len());
        // C7: the first request is there, or pinned.
        let first = before.pins.iter().find(|pin| pin.name == FIRST_REQUEST_PIN).map(|pin| pin.text.clone());
        let first = first.or_else(|| requests(&before, None).first().cloned()).unwrap();
        let pinned = state.pins.iter().filter(|pin| pin.name == FIRST_REQUEST_PIN).map(|pin| pin.text.clone());
        prop_assert!(pinned.chain(requests(&state, None)).any(|text| is_of(&text, &first)), "{first}");
        // C4: what was asked in the open turn is there, in its order.
        if let Some(turn) = &before.turn {
            let (asked, still) = (requests(&before, Some(turn.number)), requests(&state, Some(turn.number)));
            prop_assert_eq!(asked, still);
        }
    }

    /// C7: at least the two newest exchanges, if they fit.
    #[test]
    fn by_rule_the_two_newest_exchanges_stay_if_they_fit(case in case()) {
        let mut state = case.state();
        let space = case.space(&state);
        apply_start(&mut state);
        let epoch = state.epoch.clone().unwrap();
        let (covered, goal) = (state.head - 1, CompactionGoal::SmallerOrFits);
        let (system, tools) = (epoch.system.clone(), epoch.tools.clone());
        let drafter =
            EpochDrafter { state: &state, space: &space, system, tools, environment: None, covered, keep: 0, goal, preface: PrefaceTexts::default() };
        let Some(from) = newest_two(&state) else { return Ok(()) };
        let calibration = state.calibration("m");
        let usable = drafter.usable();
        let sizes = PartLimits::usual(calibration.largest_within(usable));
        let bare = drafter.build_by_rule(&crate::compaction::plan::context_outline(&state, &calibration, u64::MAX).kept_window(0), sizes).done.after;
        let newest = state.calibrated("m", estimate_items(&state.items[from..]));
        if bare + newest + 2 > usable {
            return Ok(());
        }

        let draft = drafter.draft_by_rule().unwrap();

        let kept: Vec<&Item> = draft.epoch.kept.iter().map(|kept| &kept.item).collect();
        for item in &state.items[from..] {
            prop_assert!(kept.contains(&&**item));
        }
        prop_assert!(draft.done.after <= usable);
    }
}

/// C7: whatever the window, nobody panics, and the error says why.
#[test]
fn a_window_of_a_few_tokens_is_refused_in_words() {
    for window in 0..300 {
        let request = Exchange { request: Length::Bytes(400), has_picture: false, steps: vec![] };
        let case = Case {
            window,
            fixed: 20,
            samples: vec![],
            before: vec![],
            since: vec![request; 3],
            stands: Stands::Unanswered,
            written: Some(vec![Length::Bytes(4_000)]),
            trigger: CompactionTrigger::WithinTurn,
        };
        let state = case.state();
        let space = case.space(&state);

        for written in [case.written(), None] {
            let planned = plan_compaction(&state, &space, case.trigger, written, 8_000);

            if let Err(reason) = planned {
                assert!(reason.contains("are available") || reason.contains("nothing"), "{window}: {reason}");
            }
        }
    }
}

/// A result that is too large by itself goes; its call goes with it.
#[test]
fn an_open_turn_with_a_result_that_has_no_room_keeps_what_was_asked() {
    let steps = vec![(Length::Bytes(20), vec![Length::Share(1_500)])];
    let case = Case {
        window: 4_000,
        fixed: 100,
        samples: vec![],
        before: vec![],
        since: vec![Exchange { request: Length::Bytes(40), has_picture: true, steps }],
        stands: Stands::Answered,
        written: None,
        trigger: CompactionTrigger::WithinTurn,
    };
    let mut state = case.state();
    let space = case.space(&state);
    apply_start(&mut state);

    let facts = plan_compaction(&state, &space, case.trigger, None, 8_000).unwrap();
    facts.iter().for_each(|fact| apply(&mut state, fact));

    let kept: Vec<&str> = state.items[state.preface_len..]
        .iter()
        .map(|item| match &**item {
            Item::Text { role: Role::User, .. } => "request",
            Item::Image(_) => "picture",
            Item::Note { .. } => "note",
            _ => "something else",
        })
        .collect();
    assert_eq!(kept, ["request", "picture", "note"]);
}

/// A context of exchanges that make a window of 8,000 tokens as full as they say, in thousandths.
fn full(since: Vec<Exchange>, stands: Stands) -> Case {
    let (samples, before) = (vec![], vec![]);
    Case {
        window: 8_000,
        fixed: 100,
        samples,
        before,
        since,
        stands,
        written: None,
        trigger: CompactionTrigger::WithinTurn,
    }
}

fn exchange_of(share: usize) -> Exchange {
    let steps =
        vec![(Length::Bytes(20), vec![Length::Share(share)]), (Length::Bytes(20), vec![Length::Bytes(20)])];
    Exchange { request: Length::Bytes(40), has_picture: false, steps }
}

fn compact(state: &mut State, space: &ContextLimits, trigger: CompactionTrigger) -> CompactDone {
    apply_start(state);
    let facts = plan_compaction(state, space, trigger, None, 8_000).unwrap();
    let Some(SessionRecord::CompactDone(done)) = facts.last().cloned() else { unreachable!() };
    facts.iter().for_each(|fact| apply(state, fact));
    done
}

/// C4, M19
#[test]
fn a_turn_that_is_run_again_keeps_its_request_in_its_middle() {
    let case = full(vec![exchange_of(1_500)], Stands::Rests);
    let mut state = case.state();
    (state.request_turn, state.turn_request) = (1, Some(crate::session::state::TurnRequest::Retry));
    apply(&mut state, &SessionRecord::TurnStarted(TurnStarted::new(2)));
    apply(&mut state, &SessionRecord::StepStarted(StepStarted::new(1)));
    let space = case.space(&state);

    compact(&mut state, &space, CompactionTrigger::WithinTurn);

    assert_eq!(requests(&state, None).len(), 1, "{:#?}", &state.items);
}

/// C4, M19
#[test]
fn a_turn_that_is_run_again_twice_keeps_its_request_before_it_begins() {
    let case = full(vec![exchange_of(1_500)], Stands::Rests);
    let mut state = case.state();
    (state.turn_count, state.request_turn, state.turn_request) =
        (2, 1, Some(crate::session::state::TurnRequest::Retry));
    let space = case.space(&state);

    compact(&mut state, &space, CompactionTrigger::BeforeTurn);

    assert_eq!(requests(&state, None).len(), 1, "{:#?}", &state.items);
}

/// C7
#[test]
fn by_rule_the_older_of_two_exchanges_goes_before_the_open_one() {
    let case = full(vec![exchange_of(300), exchange_of(330)], Stands::Answered);
    let mut state = case.state();
    let space = ContextLimits { has_summaries: false, ..case.space(&state) };

    let done = compact(&mut state, &space, CompactionTrigger::WithinTurn);

    let results = state.items.iter().filter(|item| matches!(***item, Item::ToolResult { .. })).count();
    assert!(results > 0, "{done:?}");
}

/// C6, C7
#[test]
fn by_rule_a_compaction_that_would_drop_nothing_is_none() {
    let case = full(vec![exchange_of(10)], Stands::Answered);
    let mut state = case.state();
    let space = ContextLimits { has_summaries: false, ..case.space(&state) };
    let first = compact(&mut state, &space, CompactionTrigger::Requested);
    apply_start(&mut state);

    let second = plan_compaction(&state, &space, CompactionTrigger::Requested, None, 8_000);

    assert!(first.from <= first.through, "{first:?}");
    let is_upside_down = second.is_ok_and(|facts| {
        matches!(facts.last(), Some(SessionRecord::CompactDone(done)) if done.from > done.through + 1)
    });
    assert!(!is_upside_down);
}

/// C4, J10
#[test]
fn where_the_epoch_of_an_open_turn_is_gone_its_request_stays() {
    let case = full(vec![exchange_of(10), exchange_of(1_500)], Stands::Answered);
    let mut state = case.state();
    let space = case.space(&state);
    apply_start(&mut state);
    let facts = plan_compaction(&state, &space, CompactionTrigger::WithinTurn, None, 8_000).unwrap();

    facts[1..].iter().for_each(|fact| apply(&mut state, fact));

    assert_eq!(requests(&state, Some(2)).len(), 1, "{:#?}", &state.items);
    assert_eq!(state.compaction.open_reason, None);
}
