use longhaul_protocol::Role;
use proptest::prelude::*;

use super::*;
use crate::histories::{breaks_a_rule, shared};

fn call_id(number: u8) -> CallId {
    CallId::from_bits(u128::from(number))
}

fn call(number: u8) -> Item {
    let (name, arguments) = ("read_file".to_owned(), "{}".to_owned());
    Item::ToolCall { call: call_id(number), wire_id: None, name, arguments, signature: None }
}

fn result(number: u8, content: &str) -> Item {
    Item::ToolResult { call: call_id(number), content: content.to_owned(), images: vec![], is_error: false }
}

fn user_item(role: Role, text: &str) -> Item {
    Item::Text { role, text: text.to_owned() }
}

/// T5
#[test]
fn results_follow_their_calls_in_the_order_of_the_calls() {
    let items = shared(vec![user_item(Role::User, "go"), call(1), call(2), result(2, "b"), result(1, "a")]);

    let normal = normalise(&items);

    let expected =
        shared(vec![user_item(Role::User, "go"), call(1), call(2), result(1, "a"), result(2, "b")]);
    assert_eq!(normal, expected);
}

/// T5
#[test]
fn a_call_without_a_result_gets_one_that_says_so_and_a_result_without_a_call_goes() {
    let items = shared(vec![
        result(9, "stray"),
        call(1),
        user_item(Role::User, "and?"),
        user_item(Role::Assistant, ""),
    ]);

    let normal = normalise(&items);

    let missing =
        Item::ToolResult { call: call_id(1), content: NO_RESULT.to_owned(), images: vec![], is_error: true };
    assert_eq!(normal, shared(vec![call(1), missing, user_item(Role::User, "and?")]));
}

fn any_item() -> impl Strategy<Value = Item> {
    prop_oneof![
        (0u8..6).prop_map(call),
        ((0u8..6), "[ab]{0,2}").prop_map(|(number, content)| result(number, &content)),
        "[ab]{0,2}".prop_map(|text| user_item(Role::User, &text)),
        "[ab]{0,2}".prop_map(|text| user_item(Role::Assistant, &text)),
        "[ab]{1,2}".prop_map(|text| Item::Note { text }),
    ]
}

/// A step as the records give it: calls, then all their results.
fn whole_steps() -> impl Strategy<Value = Vec<Vec<Item>>> {
    let step = (0usize..4, any::<bool>(), any::<bool>());
    proptest::collection::vec(step, 0..8).prop_map(|steps| {
        let mut next = 0u8;
        let numbers = steps.into_iter().map(|(calls, speaks, seen_calls)| {
            let numbers: Vec<u8> = (0..calls)
                .map(|_| {
                    next += 1;
                    next
                })
                .collect();
            let mut items = Vec::new();
            items.extend(seen_calls.then(|| user_item(Role::User, "go")));
            items.extend(speaks.then(|| user_item(Role::Assistant, "so")));
            items.extend(numbers.iter().map(|number| call(*number)));
            items.extend(numbers.iter().map(|number| result(*number, "r")));
            items
        });
        numbers.collect()
    })
}

proptest! {
    /// T5
    #[test]
    fn whatever_the_records_say_every_call_has_exactly_one_result(
        items in proptest::collection::vec(any_item(), 0..24)
    ) {
        let normal = normalise(&shared(items));

        prop_assert_eq!(breaks_a_rule(&normal), None);
        prop_assert_eq!(normalise(&normal), normal);
    }

    /// M16: what was sent stays as it was sent.
    #[test]
    fn whole_steps_are_left_alone_and_only_grow_at_the_end(steps in whole_steps()) {
        let mut items = Vec::new();
        let mut before = Vec::new();
        for step in steps {
            items.extend(shared(step));
            let normal = normalise(&items);

            prop_assert_eq!(&normal, &items);
            prop_assert_eq!(&normal[..before.len()], &before[..]);
            before = normal;
        }
    }
}
