//! The example of docs/schedules.md works as it is printed there.

use std::path::Path;

use serde_json::json;

use crate::desk::Desk;
use crate::{eventually, serve, show};

#[test]
fn the_example_of_the_page_works() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schedules.md"))
        .unwrap();
    let config = page.split_once("```toml\n").unwrap().1.split_once("```").unwrap().0;
    let commands: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("$ longhaul ")).collect();
    let desk = Desk::new(&json!([{"text": "Nothing is new."}, {"text": "Nothing is new."}]));
    desk.configure(config);
    assert!(desk.run(&["config", "show"]).0 == 0, "the page's config is valid");

    for command in &commands {
        // The page quotes as a shell does.
        let (mut words, mut quoted) = (vec![], false);
        for part in command.split('"') {
            match quoted {
                true => words.push(part),
                false => words.extend(part.split_whitespace()),
            }
            quoted = !quoted;
        }
        let (code, _, errors) = desk.run(&words);
        assert_eq!(code, 0, "longhaul {command}: {errors}");
    }
    let serving = serve(&desk);
    eventually("the requested run has not ended", || show(&desk, "builds")["last"]["outcome"] == "completed");
    serving.kill();

    assert!(commands.len() >= 3, "{commands:?}");
    assert_eq!(show(&desk, "morning")["source"], "config");
}
