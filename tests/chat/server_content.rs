//! Resources and prompts of MCP servers at the prompt and in `longhaul run`, and `/mcp`.

use longhaul_testkit::{Terminal, write_mcp_server};
use serde_json::{Value, json};

use crate::Desk;
use crate::terminal::wait_for_prompt;

fn desk(answers: &Value) -> Desk {
    let desk = Desk::new(answers);
    write_mcp_server(&desk.path("work"));
    let config = std::fs::read_to_string(desk.path("home/config.toml")).unwrap();
    desk.configure(&format!(
        "{config}\n[mcp.servers.notes]\ncommand = 'python3'\nargs = ['server.py']\n\
         [mcp.servers.gone]\ncommand = 'no-such-program'\n[mcp.servers.off]\ncommand = 'x'\nenabled = false\n"
    ));
    desk
}

/// E1, P8
#[test]
fn run_attaches_a_resource_and_starts_a_prompt() {
    let desk = desk(&json!(["At noon.", "A plan."]));

    let (first, _, errors) = desk.run(&["run", "-s", "a", "When? @notes:note://today"]);
    let (second, _, _) = desk.run(&["run", "-s", "a", "/notes:plan city=Graz"]);
    let (refused, _, why) = desk.run(&["run", "-s", "a", "@notes:note://gone"]);

    assert_eq!((first, second, refused), (0, 0, 2), "{errors}{why}");
    assert!(why.contains("can't read @notes:note://gone: there is no such note; nothing was sent"), "{why}");
    let inputs = desk.records("a", "input_taken");
    let said: Vec<&str> = inputs.iter().map(|input| input["text"].as_str().unwrap()).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("the ferry leaves at noon"), "{said:?}");
    assert!(said[1].contains("Plan a day in Graz."), "{said:?}");
}

/// P8: a text that comes through a pipe may be anyone's, and names nothing.
#[test]
fn a_piped_prompt_attaches_nothing() {
    let desk = desk(&json!(["Hm.", "Hm."]));

    let (code, _, errors) = desk.talk(&["run", "-s", "a", "-"], "@notes:note://today\n");
    let (beside, _, _) = desk.talk(&["run", "-s", "a", "What is this?"], "@notes:note://today\n");

    assert_eq!((code, beside), (0, 0), "{errors}");
    assert!(desk.records("a", "input_taken").iter().all(|input| !input.to_string().contains("ferry")));
}

/// E1
#[test]
fn the_terminal_offers_what_servers_have_and_shows_them() {
    let desk = desk(&json!(["Hello.", "A plan."]));
    let mut terminal = Terminal::of_size(desk.command(&[]), (120, 40));
    wait_for_prompt(&mut terminal);

    terminal.keys("hi\r");
    terminal.wait_to_see("Hello.");
    wait_for_prompt(&mut terminal);
    terminal.keys("@notes:to");
    terminal.wait_to_see("Note of today");
    terminal.keys("\x15/notes:");
    terminal.wait_to_see("/notes:plan CITY [DAY]");
    terminal.keys("\x15/notes:plan Graz\r");
    terminal.wait_to_see("A plan.");
    wait_for_prompt(&mut terminal);
    terminal.keys("/mcp\r");
    let seen = terminal.wait_to_see("off: not enabled");
    terminal.keys("\x04");
    terminal.wait();

    assert!(seen.contains("notes: ready, 10 tools, protocol 2025-11-25"), "{seen}");
    assert!(seen.contains("gone: failed, the command `no-such-program` is not on the PATH"), "{seen}");
    assert!(desk.recorded("input_taken", "text")[1].as_str().unwrap().contains("Plan a day in Graz."));
}
