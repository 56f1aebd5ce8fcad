//! What the model is told, in the requests that a model server gets: the prompt, the surroundings, files with instructions.

use std::fs;
use std::process::Command;

use longhaul_testkit::Terminal;
use longhaul_testkit::wire::{ModelServer, Script, ScriptedAnswer};
use serde_json::json;

use crate::desk::{Desk, told};

/// A repository at `work` with a folder `work/crates/x`, and a model server.
fn project() -> (Desk, ModelServer) {
    let server = ModelServer::start(Script::saying(ScriptedAnswer::text("Hello there.")));
    let desk = Desk::with_model_of_config(&format!(
        "[model]\nname = 'custom/m'\nprotocol = 'openai-chat'\nbase_url = '{}/v1'\ncontext_window = 100000\n\
         [memory]\nextract_at_tokens = 0\n",
        server.url()
    ));
    fs::create_dir_all(desk.path("work/crates/x")).unwrap();
    git(&desk, &["init", "-q", "-b", "trunk"]);
    fs::write(desk.path("work/AGENTS.md"), "Use tabs.").unwrap();
    fs::write(desk.path("work/crates/x/CLAUDE.md"), "Use spaces in x.").unwrap();
    fs::write(desk.path("home/AGENTS.md"), "Answer in French.").unwrap();
    (desk, server)
}

fn git(desk: &Desk, arguments: &[&str]) {
    let status = Command::new("git").args(arguments).current_dir(desk.path("work")).status().unwrap();
    assert!(status.success(), "git {arguments:?}");
}

fn in_x(desk: &Desk, arguments: &[&str]) -> Command {
    let mut command = desk.command(arguments);
    command.current_dir(desk.path("work/crates/x")).env("TZ", "XYZ-5:30");
    command
}

/// The system prompts that the server got.
fn prompts(server: &ModelServer) -> Vec<String> {
    let of = |body: serde_json::Value| body["messages"][0]["content"].as_str().unwrap_or_default().to_owned();
    server.requests().iter().filter(|seen| seen.method == "POST").map(|seen| of(seen.json())).collect()
}

/// P7: whose words they are stands with them, in the order in which they count.
#[test]
fn the_request_has_the_prompt_the_surroundings_and_the_instructions_in_their_order() {
    let (desk, server) = project();

    let (code, out, errors) = told(&in_x(&desk, &["run", "hi"]).output().unwrap());

    assert_eq!((code, out.as_str()), (0, "Hello there.\n"), "{errors}");
    assert!(!errors.contains("instructions:"), "only a person at a terminal is told: {errors}");
    let prompt = prompts(&server).remove(0);
    let order = [
        "You are longhaul",
        "# Instructions of the user",
        "home/AGENTS.md:",
        "Answer in French.",
        "# Instructions of the project",
        "work/AGENTS.md:",
        "Use tabs.",
        "work/crates/x/CLAUDE.md:",
        "Use spaces in x.",
        "# This session",
        "UTC+05:30",
        "- Shell of commands: bash",
        "work/crates/x\n",
        "- Git: branch trunk",
        "The network is on.",
        "- Model: custom/m",
    ];
    let places: Vec<usize> = order
        .iter()
        .map(|text| prompt.find(text).unwrap_or_else(|| panic!("{text:?} is not in {prompt}")))
        .collect();
    assert!(places.is_sorted(), "{places:?} in {prompt}");
}

/// M16: a second process sends the beginning of the first one again, byte for byte, although the day in the user's zone, the
/// branch and the files are others. What the model should know is at the end.
#[test]
fn a_second_process_sends_the_same_beginning_on_another_day_and_branch() {
    let (desk, server) = project();
    told(&in_x(&desk, &["run", "-s", "a", "one"]).output().unwrap());
    git(&desk, &["checkout", "-q", "-b", "feature"]);
    fs::write(desk.path("work/new.txt"), "").unwrap();

    // As far from the first zone as two days.
    let mut second = in_x(&desk, &["run", "-s", "a", "two"]);
    let (code, _, errors) = told(&second.env("TZ", "ABC24").output().unwrap());

    assert_eq!(code, 0, "{errors}");
    let bodies: Vec<_> =
        server.requests().iter().filter(|seen| seen.method == "POST").map(|seen| seen.json()).collect();
    let [one, two] = bodies.as_slice() else { panic!("{} requests", bodies.len()) };
    let messages = |body: &serde_json::Value| body["messages"].as_array().unwrap().clone();
    let (before, after) = (messages(one), messages(two));
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(one["tools"], two["tools"]);
    let rest = json!(after[before.len()..]).to_string();
    assert!(rest.contains("[runtime note]") && rest.contains("Git: branch feature."), "{rest}");
    assert!(rest.contains("Today is 20"), "{rest}");
    assert_eq!(desk.records("a", "epoch_started").len(), 1);
}

/// S2: a person sees once, at the start, which files are read; `status` tells it later.
#[test]
fn the_files_that_are_read_are_named_at_the_start_and_in_the_status() {
    let (desk, _server) = project();
    let line = "AGENTS.md, AGENTS.md, crates/x/CLAUDE.md";

    let mut chat = Terminal::start(in_x(&desk, &[]));
    chat.wait_to_see("instructions: ");
    chat.keys("/exit\r");
    assert_eq!(chat.wait().code(), Some(0));
    let mut run = Terminal::start(in_x(&desk, &["run", "-s", "a", "hi"]));
    run.wait_to_see("instructions: ");
    run.wait_to_see("Hello there.");
    assert_eq!(run.wait().code(), Some(0));
    let (_, status, errors) = told(&in_x(&desk, &["status", "-s", "a"]).output().unwrap());
    let json = desk.json(&["status", "-s", "a", "--json"]);

    let shown = status.lines().find(|line| line.starts_with("instructions")).unwrap_or_default();
    assert!(shown.ends_with(line), "{status}{errors}");
    let files = json["instructions"].as_array().unwrap();
    assert_eq!(files[1..], [json!("AGENTS.md"), json!("crates/x/CLAUDE.md")]);
}

/// The page on what a context holds shows prompt and tools as they are sent.
#[test]
fn the_context_page_counts_prompt_and_tools_as_they_are_sent() {
    let (desk, server) = project();
    told(&in_x(&desk, &["run", "-s", "a", "hi"]).output().unwrap());

    let context = desk.json(&["context", "-s", "a", "--json"]);

    let prompt = prompts(&server).remove(0).len() as u64 / 4;
    let shown = context["parts"]["system"].as_u64().unwrap();
    let total = context["tokens"].as_u64().unwrap();
    assert!(shown > 0 && context["parts"]["tools"].as_u64().unwrap() > 0, "{context}");
    if context["source"] == "estimate" {
        assert!(shown.abs_diff(prompt) <= 2, "{shown} for {prompt}: {context}");
    }
    assert!(shown < total, "{context}");
}

/// Whatever the work folder is in, a turn is run.
#[test]
fn a_broken_repository_or_one_without_commits_is_no_obstacle() {
    let (desk, server) = project();
    for head in ["ref: refs/heads/trunk\n", "nonsense", "\u{0}"] {
        fs::write(desk.path("work/.git/HEAD"), head).unwrap();

        let (code, _, errors) = told(&in_x(&desk, &["run", "hi"]).output().unwrap());

        assert_eq!(code, 0, "{head:?}: {errors}");
    }
    assert_eq!(prompts(&server).len(), 3);
}
