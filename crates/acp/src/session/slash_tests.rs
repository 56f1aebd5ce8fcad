use super::{SlashCommand, SlashLine, parse};

fn parsed(text: &str) -> Option<SlashLine> {
    parse(&text.into())
}

#[test]
fn a_prompt_that_is_a_command_is_carried_out_and_any_other_is_for_the_model() {
    let line = |command, words: &str| Some(SlashLine { command, words: words.to_owned() });

    assert_eq!(parsed("/compact the API  "), line(SlashCommand::Compact, "the API"));
    assert_eq!(parsed("/retry"), line(SlashCommand::Retry, ""));
    assert_eq!(parsed("/retry the upload, please"), None);
    assert_eq!(parsed("/usr/bin/env is missing"), None);
    assert_eq!(parsed("retry"), None);
}
