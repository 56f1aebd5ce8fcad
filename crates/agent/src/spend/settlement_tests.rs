use longhaul_model::CallProgress;

use super::*;

const PRICES: Prices = Prices { input: 1.0, output: 10.0, cached: Some(0.1), written: None };

fn settle(progress: CallProgress) -> SpendSettled {
    let bound = CallBound::new(1_000, 500, Some(&PRICES));
    settle_call(AttemptId::from_bits(1), &progress, &bound, Some(&PRICES))
}

fn sent() -> CallProgress {
    CallProgress { is_sent: true, ..CallProgress::default() }
}

/// B1
#[test]
fn a_call_that_was_not_sent_or_failed_before_its_first_byte_costs_nothing() {
    for progress in [CallProgress::default(), CallProgress { has_failed: true, ..sent() }] {
        let settled = settle(progress);

        assert_eq!((settled.source, settled.cost), (SpendSource::None, Some(0.0)));
    }
}

/// B1
#[test]
fn a_whole_answer_costs_what_the_provider_counted() {
    let tokens = TokenCounts { input: Some(900), output: Some(20), cached: Some(500), written: None };
    let progress = CallProgress {
        has_begun: true,
        is_complete: true,
        received_bytes: 9,
        tokens: Some(tokens),
        ..sent()
    };

    let settled = settle(progress);

    assert_eq!(settled.source, SpendSource::Provider);
    assert_eq!(settled.usage.output, Some(20));
    assert!((settled.cost.unwrap() - (400.0 + 50.0 + 200.0) / 1e6).abs() < 1e-12, "{settled:?}");
}

/// B1
#[test]
fn a_call_that_was_cancelled_costs_its_input_and_what_was_received() {
    let waiting = settle(sent());
    let cut = settle(CallProgress { has_begun: true, has_failed: true, received_bytes: 400, ..sent() });

    assert_eq!(
        (waiting.source, waiting.usage.input, waiting.usage.output),
        (SpendSource::Estimate, Some(1_000), Some(0))
    );
    assert_eq!((cut.source, cut.usage.input), (SpendSource::Estimate, Some(1_000)));
    assert_eq!(cut.usage.output, Some(estimate_bytes(400)));
}

/// B1: Anthropic counts the input at the start, with an output of one token.
#[test]
fn a_cut_answer_costs_at_least_what_was_received_of_it() {
    let tokens = TokenCounts { input: Some(900), output: Some(1), ..TokenCounts::default() };
    let progress = CallProgress { has_begun: true, received_bytes: 400, tokens: Some(tokens), ..sent() };

    let settled = settle(progress);

    assert_eq!((settled.source, settled.usage.input), (SpendSource::Estimate, Some(900)));
    assert_eq!(settled.usage.output, Some(estimate_bytes(400)));
}
