//! The user's own files through the real binary: the home folder, startup files, keys, exports.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

#[allow(dead_code, reason = "each test program uses a part of it")]
#[path = "../desk.rs"]
mod desk;

mod instructions;

use std::os::unix::fs::symlink;
use std::process::Command;

use desk::{Desk, told};
use longhaul_testkit::Terminal;
use serde_json::{Value, json};

impl Desk {
    /// The program, started in the home folder of a user.
    fn at_home(&self, arguments: &[&str]) -> Command {
        let user = self.path("user");
        std::fs::create_dir_all(&user).unwrap();
        let mut command = self.command(arguments);
        command.env("HOME", &user).current_dir(&user);
        command
    }

    fn run_at_home(&self, arguments: &[&str]) -> (i32, String, String) {
        told(&self.at_home(arguments).output().unwrap())
    }
}

fn writes(path: &str, content: &str) -> Value {
    json!({"calls": [{"name": "write_file", "arguments": {"path": path, "content": content}}]})
}

/// P4: whatever the rules say, because the shell runs it later.
#[test]
fn a_startup_file_is_written_only_after_a_yes() {
    for (answer, written) in [("yes", true), ("no", false)] {
        let desk = Desk::new(&json!([writes(".bashrc", "new"), "Done."]));
        desk.configure(
            "[approval]\ndefault = \"auto\"\n[[approval.rule]]\ntool = \"*\"\naction = \"auto\"\n",
        );

        let (code, _, errors) = desk.run_at_home(&["run", "-s", "a", "go"]);
        let before = desk.path("user/.bashrc").exists();
        let answered = desk.run_at_home(&["answer", "-s", "a", answer]);
        let resumed = desk.run_at_home(&["resume", "a"]);

        assert_eq!((code, before), (7, false), "{errors}");
        assert!(errors.contains(".bashrc is a startup file"), "{errors}");
        assert_eq!((answered.0, resumed.0), (0, 0), "{}{}", answered.2, resumed.2);
        assert_eq!(desk.path("user/.bashrc").exists(), written, "{}", resumed.2);
    }
}

/// P3
#[test]
fn commands_can_not_change_startup_files_or_read_keys_where_the_work_folder_is_the_home_folder() {
    let command =
        "echo planted >> .bashrc; echo planted > .local/bin/ls; cat .ssh/id_ed25519; echo fine > notes.txt";
    let exec = json!({"calls": [{"name": "exec", "arguments": {"command": command}}]});
    let desk = Desk::new(&json!([exec, "Done."]));
    std::fs::create_dir_all(desk.path("user/.local/bin")).unwrap();
    std::fs::create_dir_all(desk.path("user/.ssh")).unwrap();
    std::fs::write(desk.path("user/.ssh/id_ed25519"), "THE KEY").unwrap();
    std::fs::write(desk.path("user/.bashrc"), "old\n").unwrap();

    let (code, _, errors) = desk.run_at_home(&["run", "-s", "a", "go"]);

    assert_eq!(code, 0, "{errors}");
    let result = desk.records("a", "tool_finished").remove(0)["content"].to_string();
    assert_eq!(std::fs::read_to_string(desk.path("user/notes.txt")).unwrap(), "fine\n", "{result}");
    assert_eq!(std::fs::read_to_string(desk.path("user/.bashrc")).unwrap(), "old\n", "{result}");
    assert!(!desk.path("user/.local/bin/ls").exists() && !result.contains("THE KEY"), "{result}");
}

/// P3: nothing of the user's that runs later can be made or changed, and what stands in for a missing file goes with the command.
#[test]
fn commands_can_not_make_startup_files_or_programs_where_the_work_folder_is_the_home_folder() {
    let planted = [
        ".bash_profile",
        ".zshrc",
        ".gitconfig",
        ".config/autostart/x.desktop",
        ".ssh/authorized_keys",
        "bin/ls",
        ".cargo/bin/cargo",
        ".cargo/env",
        ".local/lib/python3.13/site-packages/all.pth",
        ".vscode/extensions/one/main.js",
        "miniconda3/bin/python",
        "go/bin/gopls",
    ];
    let make = planted.map(|name| format!("mkdir -p $(dirname {name}); echo planted > {name}")).join("; ");
    let command = format!("{make}; . ~/.bash_profile; echo login=$?; echo fine > notes.txt");
    let exec = json!({"calls": [{"name": "exec", "arguments": {"command": command}}]});
    let desk = Desk::new(&json!([exec, "Done."]));
    for folder in [".config", ".cargo/bin", ".local/lib", ".vscode/extensions", "miniconda3/bin", "go"] {
        std::fs::create_dir_all(desk.path("user").join(folder)).unwrap();
    }
    std::fs::write(desk.path("user/.cargo/env"), "old").unwrap();
    let [conda, go] = ["miniconda3/bin", "go/bin"].map(|name| desk.path("user").join(name));
    let path = format!("{}:{}:/usr/bin:/bin", conda.display(), go.display());

    let (code, _, errors) =
        told(&desk.at_home(&["run", "-s", "a", "go"]).env("PATH", path).output().unwrap());

    assert_eq!(code, 0, "{errors}");
    let result = desk.records("a", "tool_finished").remove(0)["content"].to_string();
    assert_eq!(std::fs::read_to_string(desk.path("user/notes.txt")).unwrap(), "fine\n", "{result}");
    assert!(result.contains("login=0"), "{result}");
    for name in planted.into_iter().filter(|name| *name != ".cargo/env") {
        assert!(!desk.path("user").join(name).exists(), "{name}: {result}");
    }
    assert_eq!(std::fs::read_to_string(desk.path("user/.cargo/env")).unwrap(), "old");
}

/// P1: said by everything that runs turns; settled by naming the folder.
#[test]
fn a_work_folder_that_is_or_contains_the_home_folder_is_said() {
    let desk = Desk::new(&json!(["Hello.", "Hello.", "Hello."]));
    let words = "your home folder, so the agent can change everything in it";

    let at_home = desk.run_at_home(&["run", "-s", "a", "hi"]);
    let above = told(&desk.at_home(&["run", "-s", "b", "hi"]).current_dir(desk.path("")).output().unwrap());
    desk.configure("[[scope.allow]]\ntarget = \"~\"\npermission = \"write\"\n");
    let settled = desk.run_at_home(&["run", "-s", "c", "hi"]);

    assert!(at_home.2.contains(&format!("the work folder is {words}")), "{}", at_home.2);
    assert!(above.2.contains(&format!("contains {words}")), "{}", above.2);
    assert_eq!((at_home.0, above.0, settled.0), (0, 0, 0));
    assert!(!settled.2.contains(words), "{}", settled.2);
}

/// P1
#[test]
fn the_terminal_asks_before_it_works_in_the_home_folder() {
    let desk = Desk::new(&json!(["Hello there."]));

    let mut refused = Terminal::start(desk.at_home(&[]));
    refused.wait_to_see("Continue here? [y/N]");
    refused.keys("\r");
    let left = refused.wait();
    let mut agreed = Terminal::start(desk.at_home(&[]));
    agreed.wait_to_see("Continue here? [y/N]");
    agreed.keys("y\r");
    agreed.wait_to_see("longhaul: session ");
    agreed.keys("hi\r");
    agreed.wait_to_see("Hello there.");
    agreed.keys("/exit\r");

    assert_eq!((left.code(), agreed.wait().code()), (Some(0), Some(0)));
}

/// P1: `run` and `resume` ask too, each about the folder that its session works in; a no runs nothing.
#[test]
fn a_turn_at_a_terminal_asks_before_it_works_in_the_home_folder() {
    let desk = Desk::new(&json!(["Hello there.", "And again."]));

    let mut refused = Terminal::start(desk.at_home(&["run", "-s", "a", "hi"]));
    refused.wait_to_see("the work folder is your home folder");
    refused.wait_to_see("Continue here? [y/N]");
    refused.keys("n\r");
    let left = refused.wait().code();
    let nothing = desk.json(&["sessions", "list", "--json"]);
    let mut agreed = Terminal::start(desk.at_home(&["run", "-s", "a", "hi"]));
    agreed.wait_to_see("Continue here? [y/N]");
    agreed.keys("y\r");
    agreed.wait_to_see("Hello there.");
    let ran = agreed.wait().code();
    // The session works in the home folder, wherever its user is.
    let mut elsewhere = desk.command(&["resume", "a"]);
    elsewhere.env("HOME", desk.path("user"));
    let mut resumed = Terminal::start(elsewhere);
    resumed.wait_to_see("Continue here? [y/N]");
    resumed.keys("\r");
    let mut elsewhere = desk.command(&["-s", "a"]);
    elsewhere.env("HOME", desk.path("user"));
    let mut reopened = Terminal::start(elsewhere);
    reopened.wait_to_see("Continue here? [y/N]");
    reopened.keys("\r");
    let json = Terminal::start(desk.at_home(&["run", "--json", "-s", "a", "hi"])).wait().code();

    assert_eq!((left, nothing), (Some(2), json!([])));
    assert_eq!((ran, resumed.wait().code(), json), (Some(0), Some(2), Some(0)));
    assert_eq!(reopened.wait().code(), Some(0));
}

/// P7: what is shown is all that is allowed, and what is not shown is not asked about.
#[test]
fn trust_shows_long_values_whole_and_asks_nothing_unseen() {
    let desk = Desk::new(&json!([]));
    let targets: Vec<String> =
        (0..400).map(|number| format!("{{ target = \"/data/{number}\", permission = \"read\" }}")).collect();
    let text =
        format!("[scope]\nallow = [{}, {{ target = \"/\", permission = \"write\" }}]\n", targets.join(", "));
    std::fs::write(desk.path("work/longhaul.toml"), text).unwrap();

    let mut unseen = Terminal::start(desk.command(&["trust", "--json"]));
    unseen.wait_to_see("add --yes");
    let refused = unseen.wait().code();
    let (_, shown, errors) = desk.run(&["trust", "--yes"]);

    assert_eq!(refused, Some(2));
    assert!(shown.contains("\"/\""), "{shown}{errors}");
    assert!(shown.contains("/data/399"), "{shown}{errors}");
}

/// P7
#[test]
fn trust_asks_in_a_terminal_and_a_no_trusts_nothing() {
    let desk = Desk::new(&json!([]));
    std::fs::write(desk.path("work/longhaul.toml"), "[sandbox]\nmode = \"off\"\n").unwrap();
    let listed = || desk.json(&["trust", "--list", "--json"]).as_array().unwrap().len();

    let mut refused = Terminal::start(desk.command(&["trust"]));
    refused.wait_to_see("sandbox.mode = \"off\"");
    refused.wait_to_see("longhaul.toml? [y/N]");
    refused.keys("n\r");
    let no = (refused.wait().code(), listed());
    let mut agreed = Terminal::start(desk.command(&["trust"]));
    agreed.wait_to_see("longhaul.toml? [y/N]");
    agreed.keys("yes\r");
    let yes = (agreed.wait().code(), listed());

    assert_eq!((no, yes), ((Some(2), 0), (Some(0), 1)));
}

/// P1: the agent can put a link where the user is about to write.
#[test]
fn exports_and_reports_replace_a_link_and_leave_what_it_leads_to() {
    let desk = Desk::new(&json!(["Hello."]));
    let (code, _, errors) = desk.run(&["run", "-s", "a", "hi"]);
    assert_eq!(code, 0, "{errors}");
    std::fs::write(desk.path("precious"), "precious").unwrap();

    for (name, arguments) in [
        ("a.jsonl", ["sessions", "export", "a", "a.jsonl"].as_slice()),
        ("a.html", &["sessions", "show", "a", "--html", "a.html"]),
        ("memory.json", &["memory", "export", "memory.json", "--json"]),
    ] {
        symlink("../precious", desk.path("work").join(name)).unwrap();
        let (code, out, errors) = desk.run(arguments);

        assert_eq!(code, 0, "{arguments:?}: {out}{errors}");
        assert!(desk.path("work").join(name).symlink_metadata().unwrap().is_file(), "{name}");
        assert_eq!(std::fs::read_to_string(desk.path("precious")).unwrap(), "precious", "{name}");
    }
}
