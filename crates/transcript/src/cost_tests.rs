use longhaul_protocol::AttemptId;

use super::*;

#[test]
fn what_is_not_known_is_not_counted_and_that_is_said() {
    let usage = |input, cost| Usage {
        input: Some(input),
        output: Some(10),
        cost,
        ..Usage::of(AttemptId::from_bits(1))
    };
    let mut spend = SessionCost::default();
    assert_eq!(spend.to_string(), "tokens unknown");

    spend.add(&usage(1_000, Some(0.01)));
    spend.add(&usage(2_000, None));

    assert_eq!(spend.to_string(), "3,000 tokens in, 20 out, at least $0.0100");
}
