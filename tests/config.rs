//! The configuration through the real binary: files, variables, flags, and what a project may.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

/// Every section and key.
const EXAMPLE: &str = r#"[agent]
name = "longhaul"
instructions = "…"              # or instructions_file; AGENTS.md of the work folder is added by itself

[model]
name = "anthropic/claude-sonnet-4-5"   # provider/model; `longhaul models` lists providers
base_url = "http://127.0.0.1:8080/v1"  # any OpenAI-, Anthropic- or Gemini-speaking server
api_key_env = "ANTHROPIC_API_KEY"
protocol = ""                   # openai-chat | openai-responses | anthropic | gemini; default: the provider's
tools = true
connect_timeout_s = 10
first_byte_timeout_s = 300
silence_timeout_s = 120
context_window = 200000         # default: asked of the server, else catalogue
max_output_tokens = 8192
effort = ""                     # off | low | medium | high
fallback = ["openai/gpt-5-mini"]

[retry]
max_retries = 4
base_ms = 1000
cap_ms = 30000
budget_s = 120
offline_wait_s = 600            # one-shot; the terminal and serve wait without end; 0: counts as a try
max_server_delay_s = 60

[context]
compact_at = 0.85               # of the usable window; or compact_at_tokens
compact_now_at = 0.92           # or compact_now_at_tokens
compact_idle_at = 0.7           # or compact_idle_at_tokens
summary = "model"               # off: only the rule-based drop
keep_tokens = 8000
summary_model = ""              # default: the session's model

[memory]
extract_at_tokens = 8000        # 0: off
consolidate_at_items = 20       # 0: off
check_interval_s = 30
scope = "project"               # agent | project | person
model = ""                      # default: the session's model
extract_min_tokens = 500        # less that is new is not worth a call while idle; it waits for more

[exec]
timeout_s = 30
max_tasks = 16
wake = "always"                 # on_failure | never
output_cap_bytes = 67108864

[[scope.allow]]
target = "./"
permission = "write"            # read | write

[approval]
default = "auto"                # auto | ask | deny
[[approval.rule]]
tool = "exec"
command = "git push*"
action = "ask"

[sandbox]
mode = "on"                     # off | on | strict
unavailable = "ask"             # refuse | ask | allow

[secrets]
patterns = []                   # redacted everywhere

[sessions]
keep = 0                        # retention: off
max_age_days = 0
max_bytes = 0

[limits]
steps = 200
tokens_per_turn = 0
cost_per_turn = 0.0
seconds_per_turn = 0
cost_per_day = 0.0

cost_per_session = 0.0
cost_per_month = 0.0
cost_total = 0.0
tokens_per_day = 0              # where prices are unknown
tokens_per_month = 0
soft = 0.0                      # share of any limit at which a question is asked, once; 0: never

[journal]
url = ""                        # default: $LONGHAUL_HOME/journal.db ; or postgres://…

[server]
listen = "127.0.0.1:7171"
token_env = "LONGHAUL_TOKEN"
"#;

/// A home and a project, in which the program is started.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        let desk = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir(desk.path("home")).unwrap();
        std::fs::create_dir_all(desk.path("project/below")).unwrap();
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
        command
            .args(arguments)
            .current_dir(self.path("project/below"))
            .env("LONGHAUL_HOME", self.path("home"))
            .env_remove("LONGHAUL_MODEL")
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// What a command that must succeed prints.
    fn stdout(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", errors(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.stdout(arguments)).unwrap()
    }

    /// What a command that must be refused says.
    fn refusal(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", errors(&output));
        errors(&output)
    }
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_whole_example_is_shown_with_the_source_of_each_value() {
    let desk = Desk::new();
    desk.write("home/config.toml", EXAMPLE);
    let file = desk.path("home/config.toml");

    let shown = desk.stdout(&["config", "show"]);
    let keys = desk.json(&["config", "show", "--json"]);

    let expected: toml::Table = EXAMPLE.parse().unwrap();
    let mut seen = 0;
    for (section, table) in &expected {
        for (name, value) in table.as_table().unwrap() {
            let key = format!("{section}.{name}");
            let line = shown.lines().find(|line| line.starts_with(&format!("{key} = "))).unwrap_or(&key);
            assert!(line.contains(&format!("  # {}:", file.display())), "{line}");
            let found = keys.as_array().unwrap().iter().find(|shown| shown["key"] == *key).unwrap();
            let (_, number) = found["source"].as_str().unwrap().rsplit_once(':').unwrap();
            let written = EXAMPLE.lines().nth(number.parse::<usize>().unwrap() - 1).unwrap();
            assert!(written.starts_with(name) || written == format!("[[{key}]]"), "{key}: {written}");
            assert_eq!(found["value"], serde_json::to_value(value).unwrap(), "{key}");
            seen += 1;
        }
    }
    assert_eq!(seen, 59);
    assert!(shown.contains("\nscope.deny = []  # default\n"), "{shown}");
    assert!(shown.contains("\n# context.compact_at_tokens is not set\n"), "{shown}");
    assert_eq!(desk.stdout(&["config"]), shown, "alone, it shows");
}

#[test]
fn flags_win_over_the_environment_over_the_project_over_the_home() {
    let desk = Desk::new();
    desk.write("home/config.toml", "[agent]\nname = \"home\"\n[model]\nname = \"a/home\"\n");
    let shown = |arguments: &[&str], variable: Option<&str>| {
        let mut command = desk.command(arguments);
        variable.map(|name| command.env("LONGHAUL_MODEL", name));
        let output = command.args(["config", "show"]).output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
        let lines = String::from_utf8(output.stdout).unwrap();
        let kept = |line: &&str| line.starts_with("agent.name") || line.starts_with("model.name");
        lines.lines().filter(kept).map(str::to_owned).collect::<Vec<_>>()
    };
    let (home, project) = (desk.path("home/config.toml"), desk.path("project/longhaul.toml"));

    let of_home = shown(&[], None);
    desk.write("project/longhaul.toml", "[agent]\nname = \"project\"\n");
    let of_project = shown(&[], None);
    let of_environment = shown(&[], Some("a/environment"));
    let of_flag = shown(&["--model", "a/flag"], Some("a/environment"));

    let agent = format!("agent.name = \"project\"  # {}:2", project.display());
    let model = format!("model.name = \"a/home\"  # {}:4", home.display());
    assert_eq!(of_home, [format!("agent.name = \"home\"  # {}:2", home.display()), model.clone()]);
    assert_eq!(of_project, [agent.clone(), model]);
    assert_eq!(
        of_environment,
        [agent.clone(), "model.name = \"a/environment\"  # environment LONGHAUL_MODEL".to_owned()]
    );
    assert_eq!(of_flag, [agent, "model.name = \"a/flag\"  # --model".to_owned()]);
}

#[test]
fn a_mistake_is_refused_with_its_file_its_line_and_the_nearest_key() {
    let desk = Desk::new();
    let file = desk.path("home/config.toml");
    desk.write(
        "home/config.toml",
        "[model]\nname = \"a/b\"\n\n[retry]\nmax_retries = \"four\"\nmax_retry = 1\n",
    );

    for arguments in [["config", "show"], ["serve", "--no-http"]] {
        let said = desk.refusal(&arguments);

        assert_eq!(
            said,
            format!(
                "longhaul: {0}:5: retry.max_retries must be a whole number, not a string\n\
                 {0}:6: unknown key \"max_retry\" in [retry]; did you mean \"max_retries\"?\n",
                file.display()
            )
        );
    }
}

#[test]
fn a_named_config_must_be_there_and_replaces_the_homes() {
    let desk = Desk::new();
    desk.write("home/config.toml", "[agent]\nname = \"home\"\n");
    desk.write("other.toml", "[exec]\ntimeout_s = 7\n");
    let other = desk.path("other.toml");

    let shown = desk.stdout(&["--config", other.to_str().unwrap(), "config", "show"]);
    let relative = desk.stdout(&["config", "show", "--config", "../../other.toml"]);
    let missing = desk.refusal(&["--config", "missing.toml", "config", "show"]);

    assert!(shown.contains(&format!("exec.timeout_s = 7  # {}:2", other.display())), "{shown}");
    assert!(shown.contains("agent.name = \"longhaul\"  # default"), "{shown}");
    assert!(relative.contains("exec.timeout_s = 7  # "), "{relative}");
    assert!(missing.contains("missing.toml"), "{missing}");
}

#[test]
fn the_files_that_are_looked_for_are_shown() {
    let desk = Desk::new();
    desk.write("project/longhaul.toml", "");

    let files = desk.json(&["config", "path", "--json"]);
    let lines = desk.stdout(&["config", "path"]);

    let file = |path: &str, exists: bool, of_project: bool| json!({"path": desk.path(path), "exists": exists, "of_project": of_project});
    assert_eq!(
        files,
        json!([
            file("home/config.toml", false, false),
            file("project/longhaul.toml", true, true),
            file("project/below/longhaul.toml", false, true),
        ])
    );
    assert!(
        lines.starts_with(&format!("{}  # not there\n", desk.path("home/config.toml").display())),
        "{lines}"
    );
}

/// P7: what is not used is not called used, and the next file above is.
#[test]
fn a_file_of_a_project_that_is_not_used_is_shown_as_skipped_with_the_reason() {
    let desk = Desk::new();
    desk.write("project/longhaul.toml", "[agent]\nnaem = \"x\"\n");
    std::os::unix::fs::symlink("../longhaul.toml", desk.path("project/below/longhaul.toml")).unwrap();

    let lines = desk.stdout(&["config", "path"]);
    let files = desk.json(&["config", "path", "--json"]);
    let doctor = String::from_utf8(desk.command(&["doctor"]).output().unwrap().stdout).unwrap();

    let shown = |path: &str| {
        let line = lines.lines().find(|line| line.starts_with(desk.path(path).to_str().unwrap()));
        line.unwrap_or_else(|| panic!("{path}: {lines}"))
    };
    assert!(shown("project/longhaul.toml").contains("# skipped: "), "{lines}");
    assert!(shown("project/longhaul.toml").contains("naem"), "{lines}");
    assert!(shown("project/below/longhaul.toml").contains("# skipped: "), "{lines}");
    assert!(files[1]["skipped"].as_str().unwrap().contains("naem"), "{files}");
    assert!(doctor.contains("no config file; using defaults"), "{doctor}");
}

#[test]
fn the_schema_describes_what_the_example_sets() {
    let desk = Desk::new();

    let schema = desk.json(&["config", "schema"]);

    let example: toml::Table = EXAMPLE.parse().unwrap();
    for (section, keys) in &example {
        for key in keys.as_table().unwrap().keys() {
            let field = &schema["properties"][section]["properties"][key];
            assert!(field["description"].is_string(), "{section}.{key}: {field}");
        }
    }
}

/// P7
#[test]
fn a_project_is_bounded_until_it_is_trusted_and_again_when_it_changes() {
    let desk = Desk::new();
    let file = desk.path("project/longhaul.toml");
    let text = "[agent]\nname = \"project\"\n[model]\nbase_url = \"http://evil.example/v1\"\n";
    desk.write("project/longhaul.toml", text);
    let seen = || {
        let output = desk.run(&["config", "show"]);
        let lines = String::from_utf8(output.stdout.clone()).unwrap();
        assert!(lines.contains("agent.name = \"project\""), "{lines}");
        (lines.contains("model.base_url = \"http://evil.example/v1\""), errors(&output))
    };

    let bounded = seen();
    let unasked = desk.refusal(&["trust"]);
    let still_bounded = seen();
    let trusted = desk.stdout(&["trust", "--yes"]);
    let open = seen();
    let listed = desk.json(&["trust", "--list", "--json"]);
    desk.write("project/longhaul.toml", &format!("{text}api_key_env = \"OTHER\"\n"));
    let changed = seen();
    let shown = String::from_utf8(desk.run(&["trust"]).stdout).unwrap();
    let again = desk.json(&["trust", "--json", "--yes"]);
    let removed = desk.stdout(&["trust", "--remove"]);
    let none = desk.refusal(&["trust", "--remove"]);

    assert!(unasked.contains("--yes") && !still_bounded.0, "{unasked}");
    assert!(!bounded.0 && bounded.1.lines().count() == 1, "{}", bounded.1);
    assert!(
        bounded.1.starts_with(&format!("longhaul: {}:4: ignoring model.base_url", file.display())),
        "{}",
        bounded.1
    );
    assert!(bounded.1.contains("`longhaul trust`"), "{}", bounded.1);
    assert!(trusted.contains(&file.display().to_string()), "{trusted}");
    assert!(trusted.contains("line 4: model.base_url = \"http://evil.example/v1\""), "{trusted}");
    assert_eq!(open, (true, String::new()));
    assert_eq!((listed[0]["path"].clone(), listed[0]["standing"].clone()), (json!(file), json!("trusted")));
    assert!(!changed.0 && changed.1.contains("changed since it was trusted"), "{}", changed.1);
    assert!(shown.contains("  +api_key_env = \"OTHER\"\n") && !shown.contains("  -"), "{shown}");
    assert_eq!(
        (again["before"].clone(), again["sets"][1]["key"].clone()),
        (json!("changed"), json!("model.api_key_env"))
    );
    assert!(removed.contains("no longer trusted"), "{removed}");
    assert!(none.contains("--list"), "{none}");
    assert!(!seen().0);
}

#[test]
fn where_there_is_no_projects_file_there_is_nothing_to_trust() {
    let desk = Desk::new();

    let said = desk.refusal(&["trust"]);

    assert!(
        said.contains("no longhaul.toml and no .mcp.json in") && said.contains("nothing to trust"),
        "{said}"
    );
    assert!(!desk.path("home/trust.toml").exists());
    assert_eq!(desk.stdout(&["trust", "--list"]), "No trusted projects.\n");
    assert_eq!(desk.json(&["trust", "--list", "--json"]), json!([]));
}

/// P7
#[test]
fn a_projects_file_with_a_mistake_is_a_warning_and_trust_refuses_it() {
    let desk = Desk::new();
    desk.write("project/longhaul.toml", "[agent]\nnaem = \"x\"\n");
    let place = format!("{}:2: unknown key \"naem\"", desk.path("project/longhaul.toml").display());

    let shown = desk.run(&["config", "show"]);
    let trusting = desk.refusal(&["trust", "--yes"]);

    assert_eq!(shown.status.code(), Some(0));
    assert!(errors(&shown).contains(&place), "{}", errors(&shown));
    assert!(trusting.contains(&place), "{trusting}");
}

/// P7: a name that came with a project can't drive the terminal.
#[test]
fn names_of_folders_are_printed_without_control_characters() {
    let desk = Desk::new();
    let folder = "project/\u{1b}]0;owned\u{7}\n\u{202e}evil";
    std::fs::create_dir(desk.path(folder)).unwrap();
    desk.write(&format!("{folder}/longhaul.toml"), "[model]\nname = \"a/b\"\n[agent]\nname = \"x\"\n");
    let misleading = |text: &str| text.contains(['\u{1b}', '\u{7}', '\u{202e}']) || text.contains("\nevil");

    for arguments in [
        ["config", "show"].as_slice(),
        &["config", "path"],
        &["trust"],
        &["trust", "--yes"],
        &["trust", "--list"],
        &["doctor"],
        &["trust", "--remove"],
    ] {
        let output = desk.command(arguments).current_dir(desk.path(folder)).output().unwrap();
        let (out, said) = (String::from_utf8_lossy(&output.stdout).into_owned(), errors(&output));
        assert!(out.contains("evil") || said.contains("evil"), "{arguments:?}: {out}{said}");
        assert!(!misleading(&out) && !misleading(&said), "{arguments:?}: {out:?} {said:?}");
    }
}

#[test]
fn verbose_says_which_files_are_used() {
    let desk = Desk::new();
    desk.write("home/config.toml", "");

    let output = desk.run(&["-v", "config", "show"]);

    assert_eq!(
        errors(&output),
        format!("longhaul: config from {}\n", desk.path("home/config.toml").display())
    );
}

/// E1, P7: the MCP servers of a project are shown with everything that they get of the user's before they are trusted.
#[test]
fn a_projects_mcp_servers_are_shown_with_the_variables_and_headers_that_they_get() {
    let desk = Desk::new();
    let servers = json!({"mcpServers": {
        "docs": {"url": "https://docs.example/mcp", "headers": {"Authorization": "Bearer ${DOCS_TOKEN}"}},
        "files": {"command": "serve-files", "args": ["."], "env": {"NODE_OPTIONS": "--require ./x.js"}},
    }});
    desk.write("project/.mcp.json", &servers.to_string());

    let unasked = desk.refusal(&["trust"]);
    let shown = desk.stdout(&["trust", "--yes"]);
    let again = desk.json(&["trust", "--yes", "--json"]);

    assert!(unasked.contains("--yes"), "{unasked}");
    assert!(shown.contains("docs: https://docs.example/mcp"), "{shown}");
    assert!(shown.contains("sends the header Authorization: Bearer ${DOCS_TOKEN}"), "{shown}");
    assert!(shown.contains("gets NODE_OPTIONS=--require ./x.js"), "{shown}");
    assert_eq!(
        (&again["mcp"]["before"], &again["mcp"]["servers"]),
        (&json!("trusted"), &json!(["docs", "files"]))
    );
}
