//! Images that are named at the prompt, and a work folder whose repository has no commit yet.

use std::process::Command;

use longhaul_model::Protocol;
use longhaul_testkit::Terminal;
use longhaul_testkit::wire::{ModelServer, Reply, Script, ScriptedAnswer};
use serde_json::json;

use crate::Desk;
use crate::terminal::wait_for_prompt;

/// A picture of one pixel, and the same as base64.
const PIXEL: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\xf8\
    \xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82";
const PIXEL_BASE64: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==";

/// An image of the work folder by `@`, and one from elsewhere by its path as a terminal pastes it: the model server gets the bytes of both.
#[test]
fn images_named_at_the_prompt_arrive_in_the_request() {
    for (protocol, name) in [
        (Protocol::OpenaiChat, "openai-chat"),
        (Protocol::Anthropic, "anthropic"),
        (Protocol::Gemini, "gemini"),
    ] {
        let reply = Reply::stream(ScriptedAnswer::text("Two pixels.").bytes(protocol));
        let server = ModelServer::start(Script::list(vec![reply]));
        let desk = Desk::with_model_of_config(&format!(
            "[model]\nname = 'custom/m'\nbase_url = '{}/v1'\nprotocol = '{name}'\ncontext_window = 100000\n\
             [memory]\nextract_at_tokens = 0\n",
            server.url()
        ));
        std::fs::write(desk.path("work/a.png"), PIXEL).unwrap();
        std::fs::write(desk.path("dropped.png"), PIXEL).unwrap();
        let mut terminal = Terminal::of_size(desk.command(&[]), (160, 24));
        wait_for_prompt(&mut terminal);

        terminal.keys(&format!("look at @a.png \x1b[200~{}\x1b[201~", desk.path("dropped.png").display()));
        terminal.wait_to_see(&format!("> look at @a.png {}", desk.path("dropped.png").display()));
        terminal.keys("\r");
        terminal.wait_to_see("Two pixels.");
        terminal.keys("\x04");
        terminal.wait();

        let body = server.requests()[0].json().to_string();
        assert_eq!(body.matches(PIXEL_BASE64).count(), 2, "{name}");
        assert!(body.contains("look at @a.png"), "{name}");
        let images = desk.recorded("input_taken", "images");
        assert_eq!(images[0].as_array().unwrap().len(), 2, "{images:?}");
    }
}

/// A repository without a commit has no HEAD to name: the session opens, commands run, and git works in it.
#[test]
fn a_repository_without_commits_is_a_work_folder_like_any_other() {
    let command = "git status --short && git add a.txt && git status --short";
    let desk =
        Desk::new(&json!([{"calls": [{"name": "exec", "arguments": {"command": command}}]}, "Added."]));
    let git = |arguments: &[&str]| {
        let status = Command::new("git").args(arguments).current_dir(desk.path("work")).status().unwrap();
        assert!(status.success(), "git {arguments:?}");
    };
    git(&["init", "-q", "-b", "trunk"]);
    std::fs::write(desk.path("work/a.txt"), "one\n").unwrap();
    let mut terminal = Terminal::start(desk.command(&[]));
    let opened = wait_for_prompt(&mut terminal);

    terminal.keys("go\r");
    let seen = terminal.wait_to_see("Added.");
    wait_for_prompt(&mut terminal);
    terminal.keys("/status\r");
    terminal.wait_to_see("memory");
    terminal.keys("\x04");

    assert_eq!(terminal.wait().code(), Some(0));
    assert!(!opened.contains("error") && !seen.contains("fatal"), "{seen}");
    let told = desk.recorded("tool_finished", "content");
    let told = told[0].as_str().unwrap();
    assert!(told.starts_with("status: completed") && told.ends_with("?? a.txt\nA  a.txt\n"), "{told}");
    let environment = desk.recorded("epoch_started", "environment");
    assert_eq!(environment[0]["git"]["branch"], json!("trunk"), "{environment:?}");
}
