use longhaul_protocol::{
    At, AttemptId, Cause, SessionId, SpendHolder, SpendReserved, SpendSettled, SpendSource, SpentTokens,
};
use proptest::prelude::*;

use super::super::amount::{dollars, nano};
use super::super::limits::LimitKind;
use super::*;

/// 2026-11-17 in the afternoon.
const NOW: At = At(1_794_923_000_000);
const SESSION: SessionId = SessionId::from_bits(7);
const PRICES: Prices = Prices { input: 1.0, output: 10.0, cached: None, written: None };

fn limited(kind: LimitKind, max: u64, soft: f64) -> SpendLimits {
    SpendLimits { limits: vec![SpendLimit { kind, max }], soft }
}

fn call(input: u64, max_output: u64, urgency: Urgency) -> WantedCall {
    WantedCall {
        scope: CallScope { at: NOW, session: SESSION, turn: Some(1), turn_max_nano: None, parent: None },
        bound: CallBound::new(input, max_output, Some(&PRICES)),
        urgency,
        consents: vec![],
    }
}

fn turn_call(input: u64, max_output: u64) -> WantedCall {
    call(input, max_output, Urgency::Foreground { at_soft: AtSoftLimit::Ask })
}

fn reserve(fold: &mut LedgerFold, attempt: u128, tokens: u64, cost: f64) {
    let holder = SpendHolder {
        host: String::new(),
        boot: String::new(),
        pid_namespace: String::new(),
        pid: 1,
        started: 1,
        runtime: String::new(),
    };
    let reserved = SpendReserved {
        attempt: AttemptId::from_bits(attempt),
        session: SESSION,
        cause: Cause::Turn,
        model: "a/b".to_owned(),
        limits: vec!["turn/1".to_owned()],
        past_soft: vec![],
        tokens,
        made_at: None,
        cost: Some(cost),
        holder,
    };
    fold.fold_reserved(NOW, reserved);
}

fn settle(fold: &mut LedgerFold, attempt: u128, tokens: u64, cost: f64) {
    let usage = SpentTokens { input: Some(tokens), output: Some(0), ..SpentTokens::default() };
    let (attempt, source) = (AttemptId::from_bits(attempt), SpendSource::Provider);
    fold.fold_settled(NOW, &SpendSettled { attempt, usage, cost: Some(cost), source });
}

fn spent(tokens: u64, cost: f64) -> LedgerFold {
    let mut fold = LedgerFold::default();
    reserve(&mut fold, 1, tokens, cost);
    settle(&mut fold, 1, tokens, cost);
    fold
}

/// B1
#[test]
fn a_call_that_does_not_fit_gets_less_room_for_its_answer() {
    // 1,000 tokens of input cost $0.001, and each token of the answer $0.00001.
    let limits = limited(LimitKind::CostPerDay, nano(0.051), 0.0);

    let verdict = judge(&LedgerFold::default(), &limits, &turn_call(1_000, 8_192));

    assert_eq!(verdict, Verdict::Fits { max_output: 5_000, past_soft: vec![] });
}

/// B1
#[test]
fn an_answer_never_gets_less_room_than_a_thousand_tokens() {
    let limits = limited(LimitKind::TokensPerTurn, 2_000, 0.0);

    let verdict = judge(&LedgerFold::default(), &limits, &turn_call(1_000, 8_192));

    let Verdict::Reached(reached) = verdict else { panic!("{verdict:?}") };
    assert_eq!(reached.limit, Limit::Tokens);
    assert!(reached.text.contains("limits.tokens_per_turn"), "{}", reached.text);
}

/// B1: only when nothing is open is the limit reached.
#[test]
fn a_call_waits_for_others_that_may_use_less_than_they_reserved() {
    let limits = limited(LimitKind::CostPerDay, nano(0.1), 0.0);
    let mut fold = LedgerFold::default();
    reserve(&mut fold, 1, 9_192, 0.095);

    let before = judge(&fold, &limits, &turn_call(1_000, 8_192));
    settle(&mut fold, 1, 1_100, 0.002);
    let after = judge(&fold, &limits, &turn_call(1_000, 8_192));

    assert_eq!(before, Verdict::Wait);
    assert!(matches!(after, Verdict::Fits { max_output: 8_192, .. }), "{after:?}");
}

/// B3: with an unknown price, cost limits don't hold.
#[test]
fn a_call_without_a_price_passes_cost_limits_but_not_token_limits() {
    let mut wanted = turn_call(1_000, 8_192);
    wanted.bound.price = None;

    let cost = judge(&spent(0, 5.0), &limited(LimitKind::CostPerDay, nano(1.0), 0.0), &wanted);
    let tokens = judge(&spent(9_000, 0.0), &limited(LimitKind::TokensPerDay, 10_000, 0.0), &wanted);

    assert!(matches!(cost, Verdict::Fits { .. }), "{cost:?}");
    assert!(matches!(tokens, Verdict::Reached(_)), "{tokens:?}");
}

/// B3: one question for each limit and period, before it is passed.
#[test]
fn a_soft_limit_asks_once_and_lets_pass_what_was_agreed() {
    let limits = limited(LimitKind::CostPerDay, nano(1.0), 0.5);
    let mut fold = spent(10, 0.499);
    let mut wanted = turn_call(1_000, 8_192);

    let first = judge(&fold, &limits, &wanted);
    let Verdict::Ask(soft) = first else { panic!("{first:?}") };
    wanted.consents = soft.names.clone();
    let agreed = judge(&fold, &limits, &wanted);
    reserve(&mut fold, 2, 10, 0.1);
    settle(&mut fold, 2, 10, 0.1);

    assert_eq!(soft.names, ["cost_per_day/2026-11-17"]);
    assert_eq!(agreed, Verdict::Fits { max_output: 8_192, past_soft: soft.names });
}

/// B3: there is room for 5,000 tokens below the soft limit, and for all below the hard one.
#[test]
fn an_answer_is_not_cut_short_before_a_soft_limit() {
    let limits = limited(LimitKind::CostPerDay, nano(1.0), 0.5);

    let verdict = judge(&spent(10, 0.449), &limits, &turn_call(1_000, 8_192));

    assert_eq!(verdict, Verdict::Fits { max_output: 8_192, past_soft: vec![] });
}

/// B3
#[test]
fn a_soft_limit_warns_where_no_one_attends() {
    let limits = limited(LimitKind::CostPerDay, nano(1.0), 0.5);

    let verdict = judge(
        &spent(10, 0.6),
        &limits,
        &call(1_000, 8_192, Urgency::Foreground { at_soft: AtSoftLimit::Warn }),
    );

    let past_soft = vec!["cost_per_day/2026-11-17".to_owned()];
    assert_eq!(verdict, Verdict::Fits { max_output: 8_192, past_soft });
}

/// B3: a compaction in a turn does not use up the question or the warning of the call that follows it.
#[test]
fn a_call_within_a_turn_leaves_the_soft_limit_to_the_next_one() {
    let limits = limited(LimitKind::CostPerDay, nano(1.0), 0.5);
    let mut fold = spent(10, 0.6);

    let compaction = Urgency::Foreground { at_soft: AtSoftLimit::LeaveToNextCall };
    let verdict = judge(&fold, &limits, &call(1_000, 8_192, compaction));
    reserve(&mut fold, 2, 10, 0.1);
    let next = judge(&fold, &limits, &turn_call(1_000, 8_192));

    assert_eq!(verdict, Verdict::Fits { max_output: 8_192, past_soft: vec![] });
    assert!(matches!(next, Verdict::Ask(_)), "{next:?}");
}

/// B3: after a no, no one is asked again in the period, in no session.
#[test]
fn a_soft_limit_that_was_refused_ends_the_next_turn() {
    let limits = limited(LimitKind::CostPerDay, nano(1.0), 0.5);
    let mut fold = spent(10, 0.6);
    fold.fold_refused(vec!["cost_per_day/2026-11-17".to_owned()]);

    let reached = judge(&fold, &limits, &turn_call(1_000, 8_192));
    let below = judge(&LedgerFold::default(), &limits, &turn_call(1_000, 8_192));

    let Verdict::Reached(LimitReached { limit, text }) = reached else { panic!("{reached:?}") };
    assert_eq!(limit, Limit::Cost);
    assert!(text.contains("limits.cost_per_day; raise it, or go on tomorrow"), "{text}");
    assert!(matches!(below, Verdict::Fits { .. }), "{below:?}");
}

/// B3: calls that no one waits for stop first.
#[test]
fn a_background_call_leaves_room_for_a_further_call_of_the_session() {
    let limits = limited(LimitKind::TokensPerDay, 20_000, 0.0);
    let further = CallBound::new(10_000, 8_192, Some(&PRICES));
    let background = Urgency::Background { further };

    let fits = judge(&LedgerFold::default(), &limits, &call(1_000, 2_000, background));
    let refused = judge(&spent(7_000, 0.0), &limits, &call(1_000, 2_000, background));
    let of_turn = judge(&spent(7_000, 0.0), &limits, &turn_call(1_000, 2_000));

    assert!(matches!(fits, Verdict::Fits { .. }), "{fits:?}");
    assert!(matches!(refused, Verdict::Reached(_)), "{refused:?}");
    assert!(matches!(of_turn, Verdict::Fits { .. }), "{of_turn:?}");
}

proptest! {
    /// B1: whatever fits stays within the limit, together with everything that is settled and reserved.
    #[test]
    fn what_fits_never_passes_a_limit(
        input in 0_u64..50_000,
        max_output in 1_u64..20_000,
        settled in 0.0_f64..1.0,
        open in 0.0_f64..1.0,
        max in 0.0_f64..2.0,
        input_price in 0.0_f64..20.0,
        output_price in 0.0_f64..100.0,
        soft in prop_oneof![Just(0.0), 0.1_f64..1.0],
    ) {
        let prices = Prices { input: input_price, output: output_price, cached: None, written: None };
        let limits = limited(LimitKind::CostTotal, nano(max).max(1), soft);
        let mut fold = spent(0, settled);
        reserve(&mut fold, 2, 0, open);
        let mut wanted = turn_call(input, max_output);
        wanted.bound = CallBound::new(input, max_output, Some(&prices));

        if let Verdict::Fits { max_output: room, .. } = judge(&fold, &limits, &wanted) {
            let bound = wanted.bound.with_answer(room).amount().nano;
            let used = nano(settled) + nano(open) + bound;
            prop_assert!(room <= max_output && room >= max_output.min(MIN_ANSWER_TOKENS));
            prop_assert!(used <= limits.limits[0].max, "{used} of {}", limits.limits[0].max);
            // A call passes a soft limit unasked only by the length of its answer.
            let least = wanted.bound.with_answer(room.min(MIN_ANSWER_TOKENS)).amount().nano;
            let share = if soft > 0.0 { soft } else { 1.0 };
            let least = dollars(nano(settled) + nano(open) + least);
            prop_assert!(least <= dollars(limits.limits[0].max) * share + 1e-9);
        }
    }
}
