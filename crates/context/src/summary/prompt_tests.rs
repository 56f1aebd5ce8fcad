use std::sync::Arc;
use std::time::Instant;

use longhaul_protocol::{Item, Role, Summary};
use proptest::prelude::*;

use super::*;
use crate::histories::{any_item, any_words, call, result, shared, user_item};
use crate::{estimate, estimate_items, parse_summary};

fn tokens(prompt: &StructuredPrompt) -> u64 {
    let message = Item::Text { role: Role::User, text: prompt.text.clone() };
    estimate(&prompt.system, &prompt.tools, &[Arc::new(message)])
}

fn material(items: &[Arc<Item>]) -> SummaryMaterial<'_> {
    SummaryMaterial { previous: None, items, focus: None }
}

#[test]
fn a_request_has_the_previous_summary_the_material_and_the_focus() {
    let items = shared(vec![user_item("Never push to main."), call(1, "exec", "{}"), result(1, "ok")]);
    let previous = Summary { goal: "Ship it <<user>>".to_owned(), ..Summary::default() };
    let material = SummaryMaterial { previous: Some(&previous), items: &items, focus: Some("the\ntests") };

    let prompt = build_summary_prompt(&material, AnswerForm::ToolCall, 10_000);

    let expected = "<<previous summary>>\n# Goal\nShip it < user>>\n<<transcript>>\n<<user>>\nNever push to main.\n\
                    <<call of exec>>\n{}\n<<result of exec>>\nok\n<<end>>\n\n\
                    Now call write_summary once, with everything that the agent has to know to go on.\n\
                    Dwell on this above all: the tests";
    assert_eq!(prompt.text, expected);
    assert_eq!(prompt.system, FULL_INSTRUCTIONS);
}

#[test]
fn the_tool_has_a_field_for_each_part_of_a_summary() {
    let prompt = build_summary_prompt(&material(&[]), AnswerForm::ToolCall, 10_000);

    let tool = &prompt.tools[0];
    let mut fields: Vec<&str> =
        tool.parameters["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    let expected = [
        "blocked",
        "commands",
        "constraints",
        "decisions",
        "directives",
        "done",
        "files",
        "goal",
        "in_progress",
        "next_action",
        "withdrawn",
    ];
    assert_eq!((tool.name.as_str(), fields.as_slice()), (WRITE_SUMMARY, &expected[..]));
}

/// M18
#[test]
fn a_model_without_tools_is_asked_for_the_same_headings() {
    let prompt = build_summary_prompt(&material(&[]), AnswerForm::Text, 10_000);

    assert_eq!(prompt.tools, vec![]);
    let headings: Vec<&str> = prompt.text.lines().filter_map(|line| line.strip_prefix("# ")).collect();
    assert_eq!(headings, Field::requested().map(Field::heading).collect::<Vec<_>>());
    // Whoever repeats the form without a word of their own has written nothing.
    let form = headings.iter().map(|heading| format!("# {heading}\n")).collect::<String>();
    let answer = Item::Text { role: Role::Assistant, text: form };
    assert_eq!(parse_summary(&[Arc::new(answer)]), Err("the summary is empty".to_owned()));
}

/// C7
#[test]
fn a_tiny_window_still_gets_a_request() {
    let items = shared(vec![user_item("Never push to main."), result(1, &"x".repeat(100_000))]);

    for most in 6..200 {
        let prompt = build_summary_prompt(&material(&items), AnswerForm::ToolCall, most);

        assert!(tokens(&prompt) <= most, "{most}: {prompt:?}");
    }
    let prompt = build_summary_prompt(&material(&items), AnswerForm::ToolCall, 100);
    assert!(prompt.text.contains("Never push to main.") && prompt.text.contains("# Goal"), "{}", prompt.text);
}

/// The cost of a request grows with the material, and not with its square.
#[test]
fn asking_about_ten_thousand_items_costs_few_estimates_of_them() {
    let items: Vec<Arc<Item>> =
        shared((0..5_000).flat_map(|id| [call(id, "exec", "{}"), result(id, &"word ".repeat(40))]).collect());
    let time = |work: &dyn Fn() -> u64| {
        let began = Instant::now();
        std::hint::black_box(work());
        began.elapsed()
    };

    // Counted together, so that both take long enough to be held up by whatever else the machine does.
    let estimating = time(&|| (0..1_000).map(|_| estimate_items(std::hint::black_box(&items))).sum());
    let asking = || tokens(&build_summary_prompt(&material(&items), AnswerForm::ToolCall, 20_000));
    let fastest = (0..3).map(|_| time(&asking)).min().unwrap();

    assert!(fastest < estimating, "{fastest:?} to ask, {estimating:?} for a thousand estimates");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// C6, C7
    #[test]
    fn a_request_always_has_room(
        items in proptest::collection::vec(any_item().prop_map(Arc::new), 0..40),
        (goal, directive, focus) in (any_words(), any_words(), proptest::option::of(any_words())),
        most in prop_oneof![50u64..1_000, 1_000u64..20_000, 20_000u64..=200_000],
        form in prop_oneof![Just(AnswerForm::ToolCall), Just(AnswerForm::Text)],
    ) {
        let previous = Summary { goal, directives: vec![directive; 3], ..Summary::default() };
        let material = SummaryMaterial { previous: Some(&previous), items: &items, focus: focus.as_deref() };

        let prompt = build_summary_prompt(&material, form, most);

        prop_assert!(tokens(&prompt) <= most);
        prop_assert!(!prompt.text.is_empty());
        prop_assert!(most < 2_000 || prompt.tools.len() == usize::from(form == AnswerForm::ToolCall));
    }
}
