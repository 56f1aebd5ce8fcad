use super::*;

#[test]
fn the_prompt_holds_instructions_rules_folder_and_the_day_of_the_start() {
    let prompt = Prompt {
        name: "longhaul",
        instructions: " Be brief. ",
        project_instructions: Some("Write tests.\n"),
        work_dir: Some("/w"),
        project_rules: Some("Use tabs.\n"),
        sandbox: "The network is off.",
        started_at: At(1_794_700_000_000),
    };

    let text = system_prompt(&prompt);

    let expected = "You are longhaul, an agent that works with tools.\n\n# Instructions\n\nBe brief.\n\n\
        # Instructions of this project (longhaul.toml)\n\nWrite tests.\n\n\
        # Rules of this project (AGENTS.md)\n\nUse tabs.\n\n# This session\n\nIt began on 2026-11-14.\n\
        The work folder is /w; relative paths begin there.\nThe network is off.\n";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn what_is_empty_gets_no_heading() {
    let prompt = Prompt {
        name: "a",
        instructions: "",
        project_instructions: Some(" "),
        work_dir: None,
        project_rules: Some(" "),
        sandbox: "",
        started_at: At(0),
    };

    let text = system_prompt(&prompt);

    assert_eq!(text.matches("\n# ").count(), 1, "{text}");
}
