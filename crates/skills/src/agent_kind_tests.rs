use super::*;

#[test]
fn a_kind_of_another_program_keeps_its_meaning() {
    let text = "---\nname: reviewer\ndescription: Use it after changes: it reads them\ntools: Read, Grep, mcp__docs__find\nmodel: sonnet\n\
                color: red\n---\n\nYou review code.\n";

    let kind = parse_agent_kind(text).unwrap();

    let tools = ["read_file", "search_text", "docs__find"].map(str::to_owned).to_vec();
    let expected = AgentKind {
        name: "reviewer".to_owned(),
        description: "Use it after changes: it reads them".to_owned(),
        tools: Some(tools),
        model: None,
        prompt: "You review code.".to_owned(),
    };
    assert_eq!(kind, expected);
}

#[test]
fn a_kind_says_everything_that_is_wrong_with_it() {
    let error = parse_agent_kind("---\nname: a b\ntools: []\n---\nx").unwrap_err().to_string();

    assert!(error.contains("may have only letters"), "{error}");
    assert!(error.contains("no description"), "{error}");
    assert!(error.contains("its tools are empty"), "{error}");
}

#[test]
fn a_file_without_a_front_matter_is_no_kind() {
    assert!(parse_agent_kind("You review code.").is_err());
}
