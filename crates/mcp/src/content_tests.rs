use rmcp::model::{ContentBlock, PromptMessage};

use super::*;

fn result(messages: Vec<PromptMessage>) -> GetPromptResult {
    GetPromptResult::new(messages)
}

#[test]
fn a_prompt_of_one_message_is_its_text() {
    let only = result(vec![PromptMessage::new_text(Role::User, "review this")]);

    assert_eq!(prompt_content(&only).text, "review this");
}

#[test]
fn a_prompt_of_several_messages_says_whose_each_is() {
    let messages = vec![
        PromptMessage::new_text(Role::User, "review this"),
        PromptMessage::new_text(Role::Assistant, "with pleasure"),
    ];

    assert_eq!(prompt_content(&result(messages)).text, "user:\nreview this\nassistant:\nwith pleasure");
}

#[test]
fn a_long_text_is_cut_at_a_character_and_says_how_much_is_missing() {
    let mut parts = ContentParts::default();
    parts.add_block(&ContentBlock::text("ä".repeat(MAX_TEXT_BYTES)));

    let content = capped(parts);

    assert!(content.text.len() < MAX_TEXT_BYTES + 100, "{}", content.text.len());
    assert!(content.text.ends_with("ä\n[262144 bytes left out]"));
}
