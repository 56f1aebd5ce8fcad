use super::*;

/// C13
#[test]
fn a_beginning_that_leaves_nothing_is_refused_with_the_arithmetic() {
    let beginning = PromptOverhead { system: 300, tools: 450 };

    let refused = misfit_reason(beginning, 1_000, 250).unwrap();

    assert_eq!(
        refused,
        "the system prompt (300 tokens) and the tools (450) take 750, but only 750 are available (a window of 1000 less 250 for \
         the answer); raise model.context_window, or set model.tools = false"
    );
    assert_eq!(misfit_reason(beginning, 1_002, 250), None);
}

/// C13
#[test]
fn without_tools_only_the_system_prompt_is_in_the_way() {
    let refused = misfit_reason(PromptOverhead { system: 300, tools: 0 }, 200, 50).unwrap();

    assert!(
        refused.starts_with("the system prompt takes 300 tokens, but only 150 are available"),
        "{refused}"
    );
    assert!(!refused.contains("tools"), "{refused}");
}

/// C13: to give up the tools would not help.
#[test]
fn a_system_prompt_that_is_too_long_by_itself_is_what_has_to_be_shortened() {
    let refused = misfit_reason(PromptOverhead { system: 300, tools: 20 }, 200, 50).unwrap();

    assert!(
        refused.ends_with("or shorten the AGENTS.md of the work folder or agent.instructions"),
        "{refused}"
    );
}
