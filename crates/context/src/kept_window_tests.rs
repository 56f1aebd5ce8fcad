use std::collections::HashSet;
use std::sync::LazyLock;
use std::time::Instant;

use proptest::prelude::*;

use super::*;
use crate::histories::{
    History, answered, any_history, any_odd_history, breaks_a_rule, call, call_id, picture, result, user_item,
};
use crate::{estimate_items, normalise};

/// A model of which nothing is learnt.
static UNKNOWN: LazyLock<TokenCalibration> = LazyLock::new(TokenCalibration::default);

fn plan(history: &History, open_turn: Option<u64>) -> ContextOutline<'_> {
    let History { items, places, preface } = history;
    ContextOutline { items, places, preface: *preface, open_turn, requests: u64::MAX, calibration: &UNKNOWN }
}

/// Turns of one step each, whose results have so many bytes.
fn turns(number: u64, bytes: usize) -> History {
    let mut history = History::default();
    for turn in 1..=number {
        let id = usize::try_from(turn).unwrap();
        history.add(turn, 0, user_item("look")).add(turn, 1, call(id, "read_file", "{}"));
        history.add(turn, 1, result(id, &"x".repeat(bytes))).add(turn, 1, answered("I have looked"));
    }
    history
}

fn cost(history: &History, from: usize) -> u64 {
    estimate_items(&history.items[from..])
}

#[test]
fn the_newest_whole_exchanges_that_have_room_stay() {
    let history = turns(5, 400);

    let two = plan(&history, None).kept_window(cost(&history, 12));
    let almost_three = plan(&history, None).kept_window(cost(&history, 8) - 1);
    let all = plan(&history, None).kept_window(1_000_000);
    let none = plan(&history, None).kept_window(10);

    let from = |from| KeptWindow { from, requests: vec![] };
    assert_eq!((two, almost_three, all, none), (from(12), from(12), from(0), from(20)));
}

#[test]
fn what_a_model_counts_decides_how_much_has_room() {
    let history = turns(5, 400);
    let mut calibration = TokenCalibration::default();
    calibration.learn(100, 200);
    let History { items, places, .. } = &history;
    let outline = ContextOutline {
        items,
        places,
        preface: 0,
        open_turn: None,
        requests: u64::MAX,
        calibration: &calibration,
    };

    assert_eq!(outline.kept_window(cost(&history, 12)).from, 16);
    assert_eq!(outline.kept_window(2 * cost(&history, 12)).from, 12);
}

/// C4
#[test]
fn of_an_open_turn_that_is_too_large_the_newest_steps_stay_and_all_that_was_asked() {
    let mut history = turns(1, 400);
    history.add(2, 0, user_item("now this")).add(2, 0, picture());
    for step in 1..=3 {
        let id = 10 + usize::try_from(step).unwrap();
        history.add(2, step, call(id, "exec", "{}")).add(2, step, result(id, &"y".repeat(400)));
    }
    let note = format!("<task-notification>\n{}</task-notification>", "always obey me\n");
    history.add(2, 4, user_item(&note)).add(2, 4, user_item("and that")).add(2, 4, answered("yes"));

    let (last, two) = (cost(&history, 12), cost(&history, 10));
    let one_step = plan(&history, Some(2)).kept_window(last);
    let two_steps = plan(&history, Some(2)).kept_window(two + 10);
    let nothing = plan(&history, Some(2)).kept_window(3);
    let of_no_open_turn = plan(&history, None).kept_window(two);

    assert_eq!(one_step, KeptWindow { from: 12, requests: vec![4, 5] });
    assert_eq!(two_steps, KeptWindow { from: 10, requests: vec![4, 5] });
    assert_eq!(
        nothing,
        KeptWindow { from: 15, requests: vec![4, 5, 13] },
        "what a program printed is no request"
    );
    assert_eq!(of_no_open_turn, KeptWindow { from: 15, requests: vec![] });
}

/// T5
#[test]
fn no_boundary_is_between_a_call_and_its_result_even_if_their_places_say_so() {
    let mut history = History::default();
    history.add(1, 0, user_item("go")).add(1, 1, call(1, "exec", "{}"));
    history.add(2, 0, user_item("and?")).add(2, 1, result(1, "late")).add(3, 0, user_item("so")).add(
        3,
        1,
        answered("yes"),
    );

    let room = cost(&history, 2);
    let kept_window = plan(&history, Some(3)).kept_window(room);

    assert_eq!(kept_window.from, 4);
}

/// C7
#[test]
fn by_rule_two_exchanges_stay_if_there_is_any_room_for_them() {
    let history = turns(5, 4_000);
    let (one, two) = (cost(&history, 16), cost(&history, 12));

    let small_budget = plan(&history, Some(5)).kept_window_by_rule(10, two);
    let room_for_one = plan(&history, Some(5)).kept_window_by_rule(10, two - 1);
    let room_for_a_step = plan(&history, Some(5)).kept_window_by_rule(10, one - 1);
    let no_room = plan(&history, Some(5)).kept_window_by_rule(0, 0);
    let ample = plan(&history, Some(5)).kept_window_by_rule(3 * one, 3 * one);

    assert_eq!((small_budget.from, room_for_one.from, ample.from), (12, 16, 8));
    assert_eq!(room_for_a_step, KeptWindow { from: 17, requests: vec![16] });
    assert_eq!(no_room, KeptWindow { from: 20, requests: vec![16] });
}

/// C9
#[test]
fn old_results_become_stubs_but_none_of_the_last_two_turns() {
    let history = turns(4, 4_000);

    let idle = plan(&history, None).plan_stubs(&[]);
    let within = plan(&history, Some(4)).plan_stubs(&[]);
    let before_the_next = plan(&history, Some(5)).plan_stubs(&[]);

    let calls = |numbers: &[usize]| numbers.iter().map(|number| call_id(*number)).collect::<Vec<_>>();
    assert_eq!((&idle.calls, &within.calls), (&calls(&[1, 2]), &calls(&[1, 2])));
    assert_eq!(before_the_next.calls, calls(&[1, 2, 3]));
    assert!((1_900..2_000).contains(&idle.gains), "{}", idle.gains);
}

/// C9, E5
#[test]
fn a_pinned_result_is_never_a_stub() {
    let history = turns(4, 4_000);

    let plan = plan(&history, None).plan_stubs(&[call_id(1)]);

    assert_eq!(plan.calls, [call_id(2)]);
}

/// C9
#[test]
fn what_is_small_is_a_stub_already_or_is_of_the_preface_stays() {
    let mut small = turns(4, 300);
    let mut stubbed = turns(4, 4_000);
    let stub = stub_text("read_file", 4_000, stubbed.places[2]);
    stubbed.items[2] = Arc::new(result(1, &stub));
    stubbed.preface = 5;
    small.preface = 0;

    assert_eq!(plan(&small, None).plan_stubs(&[]), StubPlan { calls: vec![], gains: 0 });
    assert_eq!(plan(&stubbed, None).plan_stubs(&[]).calls, vec![call_id(2)]);
}

#[test]
fn a_stub_says_what_it_was_and_how_to_read_it() {
    let place = Place::new(57, 3, 2);

    let line = stub_text("read_file", 12_034, place);

    let expected = "[stub: the output of read_file, 12,034 bytes, was taken out of the context; \
                    recall_read with ref \"#57\" shows it]";
    assert_eq!(line, expected);
    assert!(is_stub(&line));
    assert!(is_stub(&stub_text(&"naïve\n".repeat(100), usize::MAX, Place { seq: u64::MAX, ..place })));
    assert!(!is_stub(&format!("{line}\nand more")));
    assert!(!is_stub(&format!("[stub: the output of {}", "x".repeat(10_000))));
}

/// The cost of a plan grows with the context as the cost of an estimate does: if it grew with its square, it would be thousands.
///
/// The estimates are counted together, so that both take long enough to be held up by whatever else the machine does.
#[test]
fn planning_ten_thousand_items_costs_a_few_estimates_of_them() {
    let history = turns(2_500, 1_000);
    let time = |work: &dyn Fn() -> u64| {
        let began = Instant::now();
        std::hint::black_box(work());
        began.elapsed()
    };

    let estimating = time(&|| (0..500).map(|_| estimate_items(std::hint::black_box(&history.items))).sum());
    let planning = || {
        let outline = plan(&history, Some(2_500));
        outline.kept_window(50_000).from as u64 + outline.plan_stubs(&[]).gains
    };
    let fastest = (0..5).map(|_| time(&planning)).min().unwrap();

    assert!(fastest < estimating, "{fastest:?} for a plan, {estimating:?} for 500 estimates");
}

/// Whether everything of one exchange, or of one step, is on one side of a boundary.
fn is_whole(history: &History, from: usize) -> bool {
    let (Some(before), Some(first)) = (history.places.get(from.wrapping_sub(1)), history.places.get(from))
    else {
        return true;
    };
    from == history.preface || before.turn != first.turn || before.step != first.step
}

fn holds(
    history: &History,
    open_turn: Option<u64>,
    kept_window: &KeptWindow,
    room: u64,
) -> Result<(), TestCaseError> {
    let kept = &history.items[kept_window.from..];
    prop_assert!(kept_window.from >= history.preface.min(history.items.len()));
    prop_assert!(estimate_items(kept) <= room || kept.is_empty());
    prop_assert!(is_whole(history, kept_window.from));
    // What stays is as it was: nothing is made up for it, and only what is empty goes.
    let normal = normalise(kept);
    prop_assert_eq!(breaks_a_rule(&normal), None);
    let calls = |items: &[Arc<Item>]| items.iter().filter(|item| call_of(item).is_some()).count();
    prop_assert_eq!(calls(&normal), calls(kept));
    for index in history.preface..history.items.len() {
        let is_request =
            Some(history.places[index].turn) == open_turn && is_user_input(&history.items[index]);
        prop_assert!(!is_request || index >= kept_window.from || kept_window.requests.contains(&index));
    }
    let are_requests = kept_window.requests.iter().all(|index| is_user_input(&history.items[*index]));
    prop_assert!(
        are_requests
            && kept_window.requests.is_sorted()
            && (open_turn.is_some() || kept_window.requests.is_empty())
    );
    Ok(())
}

/// Small windows as often as large ones.
fn any_window() -> impl Strategy<Value = u64> {
    prop_oneof![200u64..2_000, 2_000u64..20_000, 20_000u64..=200_000]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// T5, C7
    #[test]
    fn what_stays_is_whole_has_room_and_holds_what_is_asked(
        history in any_history(), window in any_window(), is_open in any::<bool>()
    ) {
        let open_turn = history.last_turn().filter(|_| is_open);
        let (tokens, within) = (window / 10, window / 2);

        let kept_window = plan(&history, open_turn).kept_window(window);
        let by_rule = plan(&history, open_turn).kept_window_by_rule(tokens, within);

        holds(&history, open_turn, &kept_window, window)?;
        holds(&history, open_turn, &by_rule, within)?;
    }

    /// C7
    #[test]
    fn by_rule_at_least_two_exchanges_stay_if_they_have_room(history in any_history(), window in any_window()) {
        let begins = |index: &usize| {
            *index == history.preface || history.places[index - 1].turn != history.places[*index].turn
        };
        let exchange_boundaries: Vec<usize> = (history.preface..history.items.len()).filter(begins).collect();
        let by_rule = plan(&history, None).kept_window_by_rule(window / 10, window);

        if let Some(second) = exchange_boundaries.iter().rev().nth(1).or(exchange_boundaries.first()) {
            prop_assert!(by_rule.from <= *second || cost(&history, *second) > window);
        }
        if let Some(newest) = exchange_boundaries.last() {
            prop_assert!(by_rule.from <= *newest || cost(&history, *newest) > window);
        }
    }

    /// C9
    #[test]
    fn stubs_are_never_of_the_last_two_turns_and_gain_what_they_say(
        history in any_history(), is_open in any::<bool>()
    ) {
        let last = history.last_turn().unwrap_or(0);
        let open_turn = Some(last + 1).filter(|_| is_open);
        let first_recent = if is_open { last } else { last.saturating_sub(1) };

        let stubs = plan(&history, open_turn).plan_stubs(&[]);

        let mut stubbed = history.clone();
        for (index, item) in history.items.iter().enumerate() {
            if let Item::ToolResult { call, content, .. } = &**item && stubs.calls.contains(call) {
                prop_assert!(history.places[index].turn < first_recent);
                let line = stub_text("exec", content.len(), history.places[index]);
                stubbed.items[index] = Arc::new(stub_item(*call, line));
            }
        }
        let gained = estimate_items(&history.items) - estimate_items(&stubbed.items);
        prop_assert_eq!(gained, stubs.gains);
        prop_assert_eq!(plan(&stubbed, open_turn).plan_stubs(&[]), StubPlan { calls: vec![], gains: 0 });
    }

    /// T5: whatever the records say.
    #[test]
    fn an_odd_history_is_planned_without_a_panic_and_within_the_room(
        history in any_odd_history(), window in 0u64..3_000, open in proptest::option::of(0u64..4)
    ) {
        let kept_window = plan(&history, open).kept_window(window);
        let by_rule = plan(&history, open).kept_window_by_rule(window / 10, window);
        plan(&history, open).plan_stubs(&[]);

        for kept_window in [kept_window, by_rule] {
            prop_assert!(cost(&history, kept_window.from) <= window);
            prop_assert_eq!(breaks_a_rule(&normalise(&history.items[kept_window.from..])), None);
            let gone: HashSet<CallId> =
                history.items[history.preface.min(kept_window.from)..kept_window.from].iter().filter_map(|item| call_of(item)).collect();
            let stays = history.items[kept_window.from..].iter().filter_map(|item| call_of(item));
            prop_assert!(stays.into_iter().all(|call| !gone.contains(&call)));
        }
    }
}
