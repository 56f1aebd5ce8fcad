//! Windows that are too small: for what every request begins with, and for what is said.

use serde_json::json;

use crate::Desk;

fn window(tokens: u64, more: &str) -> String {
    format!("[model]\ncontext_window = {tokens}\n{more}")
}

/// The number before or after some words of a message.
fn number_after(text: &str, words: &str) -> u64 {
    let rest = text.split(words).nth(1).unwrap_or_else(|| panic!("{words}: {text}"));
    rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

/// C13
#[test]
fn a_window_in_which_system_prompt_and_tools_do_not_fit_is_refused_with_the_arithmetic() {
    let desk = Desk::new(&json!(["One."]));

    for tokens in [200, 1_000] {
        desk.configure(&window(tokens, ""));
        let (code, out, errors) = desk.run(&["run", "hello"]);

        assert_eq!((code, out.as_str()), (2, ""), "{errors}");
        assert!(errors.contains("model.context_window in "), "{errors}");
        let [system, tools, both] =
            ["system prompt (", "and the tools (", " take "].map(|words| number_after(&errors, words));
        assert_eq!(system + tools, both, "{errors}");
        assert_eq!(number_after(&errors, ", but only "), tokens - tokens / 4, "{errors}");
        assert_eq!(desk.json(&["sessions", "list", "--all", "--json"]), json!([]), "nothing was begun");
    }
}

/// A home whose window is so much larger than what every request begins with.
fn with_room_for(tokens: u64) -> Desk {
    let desk = Desk::new(&json!(["One."]));
    desk.configure(&window(1_000, ""));
    let (_, _, refused) = desk.run(&["run", "hello"]);
    let fixed = number_after(&refused, " take ");
    // What is usable is three quarters of such a window.
    desk.configure(&window((fixed + tokens).div_ceil(3) * 4, ""));
    desk
}

/// C13
#[test]
fn a_window_that_is_just_large_enough_is_taken() {
    let (code, out, errors) = with_room_for(100).run(&["run", "hello"]);

    assert_eq!((code, out.as_str()), (0, "One.\n"), "{errors}");
}

/// C13
#[test]
fn without_tools_only_the_system_prompt_counts() {
    let desk = Desk::new(&json!(["One."]));
    let instructions = "be brief ".repeat(400);

    desk.configure(&window(1_600, "tools = false\n"));
    let (begun, _, _) = desk.run(&["run", "hello"]);
    desk.configure(&window(1_600, &format!("tools = false\n[agent]\ninstructions = '{instructions}'\n")));
    let (code, _, errors) = desk.run(&["run", "hello"]);

    assert_ne!(begun, 2, "the system prompt alone fits");
    assert_eq!(code, 2, "{errors}");
    assert!(
        errors.contains("the system prompt takes ") && errors.contains(", but only 1200 are available"),
        "{errors}"
    );
}

/// M12
#[test]
fn a_turn_that_can_not_be_made_to_fit_ends_with_its_own_exit_code() {
    let (code, out, errors) = with_room_for(40).run(&["run", &"word ".repeat(2_000)]);

    assert_eq!((code, out.as_str()), (5, ""), "{errors}");
    assert!(errors.contains("are available (a context of "), "the arithmetic: {errors}");
}
