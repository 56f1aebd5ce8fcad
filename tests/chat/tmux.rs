//! A conversation in a terminal that many people have: tmux, with a shell in it.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::Desk;

/// How long it may take until something is seen.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(10);
/// What the shell says when it waits for a command.
const SHELL: &str = "shell$ ";
const USUAL: (u16, u16) = (100, 30);
const NARROW: (u16, u16) = (38, 16);
/// What is typed and not sent. On a narrow terminal it takes two rows.
const THOUGHT: &str = "half a thought that is longer than a narrow row";

/// A tmux server of its own, which ends with the test.
struct Tmux<'a> {
    desk: &'a Desk,
}

impl<'a> Tmux<'a> {
    /// With a shell in the work folder, in which `longhaul` is the program.
    fn start(desk: &'a Desk) -> Self {
        let tmux = Self { desk };
        std::fs::write(desk.path("shellrc"), format!("PS1='{SHELL}'\n")).unwrap();
        let (columns, rows) = (USUAL.0.to_string(), USUAL.1.to_string());
        tmux.does(&["-f", "/dev/null", "new-session", "-d", "-x", &columns, "-y", &rows, "exec sh"]);
        tmux.wait_until("the shell waits", |screen| screen.ends_with(SHELL.trim_end()));
        tmux
    }

    /// The program that talks to the server; the first one is what the server gets its environment from.
    fn command(&self) -> Command {
        let program = self.desk.command(&[]);
        let folder = Path::new(program.get_program()).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let mut command = Command::new("tmux");
        command
            .args(["-u", "-L", "longhaul"])
            .current_dir(self.desk.path("work"))
            .envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .env("TMUX_TMPDIR", self.desk.path(""))
            .env("PATH", format!("{}:{path}", folder.display()))
            .env("LC_ALL", "C.UTF-8")
            .env("ENV", self.desk.path("shellrc"))
            .env_remove("TMUX");
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).output().unwrap()
    }

    fn does(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tmux {arguments:?}: {told}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn types(&self, text: &str) {
        self.does(&["send-keys", "-l", text]);
    }

    /// A key by its name, as tmux has it.
    fn presses(&self, key: &str) {
        self.does(&["send-keys", key]);
    }

    fn enters(&self, line: &str) {
        self.types(line);
        self.presses("Enter");
    }

    fn resize(&self, (columns, rows): (u16, u16)) {
        self.does(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
    }

    /// What is on the screen.
    fn screen(&self) -> String {
        self.does(&["capture-pane", "-p"]).trim_end().to_owned()
    }

    /// What was scrolled away, and what is on the screen. Rows that the terminal has broken are whole again.
    fn everything(&self) -> String {
        self.does(&["capture-pane", "-p", "-J", "-S", "-"])
    }

    fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(Instant::now() < deadline, "not seen: {what}\n{screen}");
            std::thread::sleep(LOOK);
        }
    }

    fn wait_to_see(&self, text: &str) -> String {
        self.wait_until(text, |screen| screen.contains(text))
    }

    /// Waits until the program waits for somebody to type: below its prompt there is only its last row.
    fn wait_for_prompt(&self) -> String {
        self.wait_until("an empty prompt", |screen| {
            let rows: Vec<&str> = screen.lines().map(str::trim_end).collect();
            matches!(rows[..], [.., ">", last] if last.contains("scripted/"))
        })
    }

    /// How the terminal treats what is typed, as its shell sees it. The shell must be there.
    fn modes(&self, name: &str) -> String {
        self.enters(&format!("stty -a > {name}.part; mv {name}.part {name}"));
        let file = self.desk.path("work").join(name);
        let deadline = Instant::now() + TEST_TIMEOUT;
        while !file.exists() {
            assert!(Instant::now() < deadline, "the shell is not there\n{}", self.screen());
            std::thread::sleep(LOOK);
        }
        std::fs::read_to_string(file).unwrap()
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

/// Whether the last rows are what is typed, broken as the program breaks it at this width, and the status.
fn is_typed(screen: &str, (columns, _): (u16, u16)) -> bool {
    let rows: Vec<&str> = screen.lines().map(str::trim_end).collect();
    let Some(first) = rows.iter().rposition(|row| row.starts_with("> ")) else { return false };
    let fits = rows.iter().all(|row| row.chars().count() <= usize::from(columns));
    let is_narrow = THOUGHT.len() + 2 > usize::from(columns);
    match rows[first..] {
        [one, status] if !is_narrow => fits && one.ends_with(THOUGHT) && status.contains("scripted/"),
        [one, two, status] if is_narrow => {
            let whole = format!("{} {}", one.trim_start_matches("> "), two.trim_start());
            fits && two.starts_with("  ") && whole == THOUGHT && status.contains("scripted/")
        }
        _ => false,
    }
}

fn empty_prompts(screen: &str) -> usize {
    screen.lines().filter(|row| row.trim_end() == ">").count()
}

fn long_answer() -> String {
    (1..=60).fold(String::from("The list:\n\n"), |text, number| format!("{text}- item {number} of sixty\n"))
}

/// S1
#[test]
fn in_tmux_it_answers_is_resized_stopped_brought_back_and_leaves_no_trace() {
    let desk = Desk::new(&json!([
        {"text": "I look.", "calls": [{"name": "exec", "arguments": {"command": "echo what-it-printed"}}]},
        long_answer(),
        "And this is the second one.",
    ]));
    let tmux = Tmux::start(&desk);
    let before = tmux.modes("before");

    tmux.enters("longhaul");
    tmux.wait_for_prompt();
    tmux.enters("hello there");
    tmux.wait_to_see("item 60 of sixty");
    tmux.wait_for_prompt();
    for number in [1, 2, 59, 60] {
        let item = format!("item {number} of sixty\n");
        assert_eq!(tmux.everything().matches(&item).count(), 1, "{}", tmux.everything());
    }

    // Narrow and wide again: one prompt, and nothing is lost.
    tmux.types(THOUGHT);
    tmux.wait_to_see(THOUGHT);
    for size in [NARROW, (140, 40), NARROW, USUAL] {
        tmux.resize(size);
        let screen = tmux.wait_until("what is typed, at its new width", |screen| is_typed(screen, size));
        assert_eq!(screen.matches("half a thought").count(), 1, "{size:?}\n{screen}");
        let everything = tmux.everything();
        for said in ["half a thought", "> hello there", "item 7 of sixty", "item 60 of sixty"] {
            assert_eq!(everything.matches(said).count(), 1, "{said} at {size:?}\n{everything}");
        }
    }

    // Details are on a page of their own, which leaves the other one as it was.
    let shown = tmux.screen();
    tmux.presses("C-o");
    tmux.wait_to_see("Enter opens");
    tmux.presses("Enter");
    tmux.wait_to_see("what-it-printed");
    tmux.presses("C-o");
    let closed = tmux.wait_to_see(THOUGHT);
    assert_eq!(closed, shown);

    // Stopped, the terminal is the shell's; brought back, it is as before.
    tmux.presses("C-z");
    tmux.wait_until("the shell is back", |screen| screen.ends_with(SHELL.trim_end()));
    assert_eq!(tmux.modes("stopped"), before);
    tmux.enters("fg");
    let back = tmux.wait_to_see(THOUGHT);
    assert_eq!(empty_prompts(&back), 0, "{back}");
    tmux.presses("C-u");
    tmux.wait_for_prompt();
    tmux.enters("and now?");
    tmux.wait_to_see("And this is the second one.");
    tmux.wait_for_prompt();

    tmux.enters("/exit");
    let left = tmux.wait_until("the shell is back", |screen| screen.ends_with(SHELL.trim_end()));
    assert_eq!(tmux.modes("after"), before);

    assert_eq!(empty_prompts(&left), 0, "{left}");
    let everything = tmux.everything();
    for said in ["item 1 of sixty", "item 60 of sixty", "And this is the second one."] {
        assert_eq!(everything.matches(said).count(), 1, "{everything}");
    }
    let inputs: Vec<_> =
        desk.records(&desk.key(), "input_taken").iter().map(|body| body["text"].clone()).collect();
    assert_eq!(inputs, [json!("hello there"), json!("and now?")]);
}
