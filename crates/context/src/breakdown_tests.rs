use proptest::prelude::*;

use super::*;
use crate::estimate_items;
use crate::histories::{answered, any_odd_history, call, noted, result, shared, user_item};

#[test]
fn each_item_counts_for_one_part() {
    let items = shared(vec![
        noted("the summary"),
        noted("a pin"),
        noted("another"),
        user_item("go"),
        call(1, "exec", "{}"),
        result(1, "a long output"),
        answered("done"),
    ]);

    let parts = ContextBreakdown::of_items(&items, 3);

    let expected = ContextBreakdown {
        summary: estimate_items(&items[..1]),
        pins: estimate_items(&items[1..3]),
        turns: estimate_items(&items[3..5]) + estimate_items(&items[6..]),
        tool_output: estimate_items(&items[5..6]),
        ..ContextBreakdown::default()
    };
    assert_eq!(parts, expected);
}

#[test]
fn what_a_provider_counted_is_spread_over_the_parts() {
    let parts = ContextBreakdown { system: 100, tools: 50, turns: 50, ..ContextBreakdown::default() };

    let scaled = parts.scaled_to(401);

    assert_eq!(
        scaled,
        ContextBreakdown { system: 201, tools: 100, turns: 100, ..ContextBreakdown::default() }
    );
    assert_eq!(
        ContextBreakdown::default().scaled_to(7),
        ContextBreakdown { turns: 7, ..ContextBreakdown::default() }
    );
    assert_eq!(parts.scaled_to(0), ContextBreakdown::default());
}

proptest! {
    /// C1
    #[test]
    fn the_parts_are_together_what_all_of_it_is(
        history in any_odd_history(), system in any::<u64>(), total in any::<u64>()
    ) {
        let parts = ContextBreakdown::of_items(&history.items, history.preface);
        prop_assert_eq!(parts.total(), estimate_items(&history.items));

        let scaled = ContextBreakdown { system, ..parts }.scaled_to(total);
        prop_assert_eq!(scaled.total(), total);
    }
}
