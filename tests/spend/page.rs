//! The example of docs/spend.md is what the program prints.

use longhaul_model::Protocol;
use longhaul_testkit::wire::{ModelServer, Reply, Script, ScriptedAnswer};
use serde_json::json;

use crate::desk::Desk;

/// The example of the page: what stands after its command.
fn example() -> String {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/spend.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, after) = page.split_once("$ longhaul statement\n").unwrap();
    after.split_once("```").unwrap().0.to_owned()
}

/// B2: a turn that starts a task, and one that the task's end begins.
#[test]
fn the_example_of_the_page_is_what_the_program_prints() {
    let test = json!({"command": "sleep 0.2", "description": "tests", "run_in_background": true});
    let answers = [
        ScriptedAnswer::nothing().call("exec", test).usage(6_120, 64),
        ScriptedAnswer::text("The tests run.").usage(6_280, 38).cached(6_016),
        ScriptedAnswer::text("They pass.").usage(6_410, 52).cached(6_272),
    ];
    let mut replies = answers.into_iter().map(|said| Reply::frames(said.frames(Protocol::OpenaiChat)));
    let server = ModelServer::start(Script::by(move |seen| {
        let reply = seen.protocol().and_then(|_| replies.next());
        reply.unwrap_or_else(|| Reply::error(404, r#"{"error":{"message":"there is nothing"}}"#))
    }));
    let desk = Desk::with_model_of_config("[model]\nname = 'test/m'\n[memory]\nextract_at_tokens = 0\n");
    let providers = format!(
        "[test]\nprotocol = 'openai-chat'\nbase_url = '{}/v1'\n\n[[model]]\npattern = 'test/*'\nwindow = 200000\n\
         prices = {{ input = 3.0, output = 15.0, cached = 0.3 }}\n",
        server.url()
    );
    std::fs::write(desk.path("home/providers.toml"), providers).unwrap();
    let (code, _, errors) = desk.run(&["run", "--wait", "-s", "a", "run the tests"]);
    assert_eq!(code, 0, "{errors}");

    let (_, printed, _) = desk.run(&["statement"]);

    assert_eq!(printed, example());
}
