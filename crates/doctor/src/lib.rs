//! Checks an installation: config, model, journal, schedules, MCP servers, keepers, skills, sandbox and disk. Each finding says what to do about what is
//! wrong. Nothing is changed.
//!
//! [`check_home`] looks at a home from outside, as `longhaul doctor` does. [`check_runtime`] looks at the home of a runtime
//! that is open, with the config that it runs with, as the HTTP API does.

mod journal;
mod mcp;
mod model;
mod nodes;
mod schedules;
mod web;

use std::path::Path;

use longhaul_agent::config::{SandboxMode, SandboxSettings, Sources, WithoutSandbox};
use longhaul_agent::keeper::{Enforcement, Found, Launcher, Network, Tasks, what_can_be_enforced};
use longhaul_agent::skills::{SkillState, find_skills};
use longhaul_agent::{Config, Runtime};
use longhaul_protocol::PrintablePath;
use longhaul_transcript::{format_count, short_id as short};
use rustix::fs::{Access, access, statvfs};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::Serialize;

/// Less free disk space than this is reported.
const MIN_FREE_BYTES: u64 = 1 << 30;

/// The result of one check: the JSON of `longhaul doctor --json` and of the HTTP API.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Finding {
    /// What was checked.
    pub check: &'static str,
    /// Whether all is well.
    pub ok: bool,
    pub found: String,
    /// What to do about it; null if all is well.
    pub to_do: Option<String>,
}

impl Finding {
    fn fine(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, ok: true, found: found.into(), to_do: None }
    }

    fn wrong(check: &'static str, found: impl std::fmt::Display, to_do: impl Into<String>) -> Self {
        Self { check, ok: false, found: found.to_string(), to_do: Some(to_do.into()) }
    }
}

/// Checks the home in this folder, and the config that a command would load.
pub async fn check_home(home: &Path, sources: &Sources) -> Vec<Finding> {
    let (config, mut findings) = load_config(home, sources);
    if let Some(config) = &config {
        findings.extend(model::check(config).await);
        findings.extend(web::check(config));
        findings.extend(mcp::check(config, None));
    }
    findings.extend(journal::check_configured(home, sources).await);
    if let Some(config) = &config {
        findings.extend(schedules::check_home(home, sources, config).await);
    }
    let (folder, home) = (home.join("tasks"), home.to_owned());
    let blocking = move || {
        let mut findings = check_existing_keepers(&folder);
        if let Some(config) = &config {
            findings.extend(check_skills(config));
            findings.extend(check_sandbox(config, || {
                let launcher = Launcher::this_program().map_err(|error| error.to_string())?;
                what_can_be_enforced(&launcher).map_err(|error| error.to_string())
            }));
        }
        findings.push(check_disk(&home));
        findings
    };
    findings.extend(on_blocking_thread(blocking).await);
    findings
}

/// Checks the home of an open runtime, and the config that it runs with.
pub async fn check_runtime(runtime: &Runtime) -> Vec<Finding> {
    let config = runtime.config().clone();
    let sources = Sources {
        work_dir: Some(config.work_dir.clone()),
        config_file: config.file.clone(),
        ..Sources::default()
    };
    let mut findings = check_config(&config, &sources);
    findings.extend(model::check(&config).await);
    findings.extend(web::check(&config));
    findings.extend(mcp::check(&config, Some(runtime)));
    findings.extend(journal::check(&config.home, Some(runtime.journal()), &config.settings.node).await);
    findings.extend(schedules::check(&runtime.schedules()).await);
    let registry = runtime.task_registry();
    let blocking = move || match registry.tasks() {
        Ok(tasks) => {
            let mut findings = check_keepers(tasks);
            findings.extend(check_skills(&config));
            findings.extend(check_sandbox(&config, || Ok(tasks.enforcement().clone())));
            findings.push(check_disk(&config.home));
            findings
        }
        Err(error) => vec![Finding::wrong("keepers", error, "fix the permissions of the folder")],
    };
    findings.extend(on_blocking_thread(blocking).await);
    findings
}

async fn on_blocking_thread(checks: impl FnOnce() -> Vec<Finding> + Send + 'static) -> Vec<Finding> {
    let failed = |error| vec![Finding::wrong("doctor", error, "run the checks again")];
    tokio::task::spawn_blocking(checks).await.unwrap_or_else(failed)
}

/// Loads the config and checks its files.
fn load_config(home: &Path, sources: &Sources) -> (Option<Config>, Vec<Finding>) {
    match Config::load(home, sources) {
        Ok(config) => {
            let findings = check_config(&config, sources);
            (Some(config), findings)
        }
        Err(error) => {
            let to_do = "fix the file; `longhaul config schema` lists every key";
            (None, vec![Finding::wrong("config", error, to_do)])
        }
    }
}

/// Checks the files that a config was loaded from.
fn check_config(config: &Config, sources: &Sources) -> Vec<Finding> {
    let files = match Config::files(&config.home, sources) {
        Ok(files) => files,
        Err(error) => return vec![Finding::wrong("config", error, "fix the file")],
    };
    let used: Vec<String> =
        files.iter().filter(|file| file.is_used()).map(|file| file.path.printable().to_string()).collect();
    let from = if used.is_empty() { "no config file; using defaults".to_owned() } else { used.join(", ") };
    let mut findings = vec![Finding::fine("config", from)];
    let is_of_skipped = |warning: &str| {
        files.iter().filter_map(|file| file.skipped.as_deref()).any(|reason| warning.contains(reason))
    };
    let to_do = |warning: &str| match mcp::project_file_to_do(config, sources, warning) {
        Some(to_do) => to_do,
        None if is_of_skipped(warning) => "fix or remove the file; `longhaul config schema` lists every key",
        None => "review the file and run `longhaul trust`, or remove the key",
    };
    findings.extend(config.warnings.iter().map(|warning| Finding::wrong("config", warning, to_do(warning))));
    findings.extend(config.keys().iter().filter(|shown| !shown.used && shown.source != "default").map(
        |shown| {
            Finding::fine("config", format!("{} ({}) has no effect in this version", shown.key, shown.source))
        },
    ));
    findings
}

/// How many commands run, and whether their keepers can be reached.
fn check_existing_keepers(folder: &Path) -> Vec<Finding> {
    let listed = Launcher::this_program().map_err(|error| error.to_string());
    let listed =
        listed.and_then(|launcher| Tasks::existing(folder, launcher).map_err(|error| error.to_string()));
    match listed {
        Ok(Some(tasks)) => check_keepers(&tasks),
        Ok(None) => vec![Finding::fine("keepers", "none yet")],
        Err(error) => vec![Finding::wrong("keepers", error, "fix the permissions of the folder")],
    }
}

fn check_keepers(tasks: &Tasks) -> Vec<Finding> {
    let ids = match tasks.all() {
        Ok(ids) => ids,
        Err(error) => return vec![Finding::wrong("keepers", error, "fix the permissions of the folder")],
    };
    let mut running = 0;
    let mut findings = Vec::new();
    for id in ids.into_iter().filter(|id| tasks.is_kept(*id).unwrap_or(true)) {
        running += 1;
        let reached = match tasks.find(id) {
            Ok(Found::Running(task)) => task.connect().map(drop),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = reached {
            let to_do = format!("run `longhaul tasks kill {}`", short(id));
            findings.push(Finding::wrong(
                "keepers",
                format!("task {} is running, but {error}", short(id)),
                to_do,
            ));
        }
    }
    findings.insert(0, Finding::fine("keepers", format!("{} running", format_count(running, "task"))));
    findings
}

/// How many skills can be used, and which of them can't.
fn check_skills(config: &Config) -> Vec<Finding> {
    let library = find_skills(config, &config.work_dir);
    if library.skills.is_empty() && library.notes.is_empty() {
        return vec![];
    }
    let ready = format!("{} can be used", format_count(library.ready().count() as u64, "skill"));
    let mut findings = vec![Finding::fine("skills", ready)];
    findings
        .extend(library.notes.iter().map(|note| Finding::wrong("skills", note, "fix or remove the folder")));
    let broken = library.skills.iter().filter(|skill| skill.state == SkillState::Malformed);
    findings.extend(broken.map(|skill| {
        let found = format!("{} is not used: {}", skill.folder.printable(), skill.reason);
        Finding::wrong("skills", found, "fix it; `longhaul skills check` checks it again")
    }));
    // An untrusted skill is no mistake: the user may not want it.
    let waiting =
        library.in_state(SkillState::Untrusted).chain(library.in_state(SkillState::Changed)).count();
    if waiting > 0 {
        let found = format!(
            "{} of this project not trusted; `longhaul trust` shows what is in them",
            format_count(waiting as u64, "skill")
        );
        findings.push(Finding::fine("skills", found));
    }
    findings
}

/// Checks by trying it whether the system lets a keeper restrict commands to the scope.
fn check_sandbox(config: &Config, try_it: impl FnOnce() -> Result<Enforcement, String>) -> Vec<Finding> {
    let sandbox = &config.settings.sandbox;
    let Some(network) = sandbox.network() else {
        return vec![Finding::fine(
            "sandbox",
            "off (sandbox.mode): commands run with all of your permissions",
        )];
    };
    let enforcement = match try_it() {
        Ok(enforcement) => enforcement,
        Err(error) => return vec![Finding::wrong("sandbox", error, "run `longhaul doctor` again")],
    };
    sandbox_findings(&enforcement, sandbox, network)
}

/// What the sandbox enforces, and what happens to commands if it can't.
fn sandbox_findings(enforcement: &Enforcement, sandbox: &SandboxSettings, network: Network) -> Vec<Finding> {
    if let Some(missing) = sandbox.unenforceable(enforcement) {
        let policy = match sandbox.unavailable {
            WithoutSandbox::Refuse => "commands are refused",
            WithoutSandbox::Ask => "longhaul asks before each command",
            WithoutSandbox::Allow => "commands run without a sandbox",
        };
        let to_do = format!("follow the steps above, or set sandbox.unavailable; for now, {policy}");
        return vec![Finding::wrong("sandbox", format!("commands can't be sandboxed. {missing}"), to_do)];
    }
    let mode = if sandbox.mode == SandboxMode::Strict { "strict" } else { "on" };
    let network = match network {
        Network::Open => "on",
        Network::Closed => "off",
    };
    let held = format!(
        "mode {mode}, network {network}: commands are confined to the scope (Landlock and namespaces)"
    );
    let gaps = enforcement
        .gaps()
        .into_iter()
        .map(|gap| Finding::fine("sandbox", format!("not enforced on this system: {gap}")));
    std::iter::once(Finding::fine("sandbox", held)).chain(gaps).collect()
}

fn check_disk(folder: &Path) -> Finding {
    let there = folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    match (statvfs(there), access(there, Access::WRITE_OK)) {
        (_, Err(Errno::ROFS | Errno::ACCESS | Errno::PERM)) => {
            let found =
                format!("{} is read-only: sessions can be read, but not continued", there.printable());
            Finding::wrong("disk", found, "make it writable, or use another folder with --home")
        }
        (Ok(disk), _) => free_space_finding(disk.f_bavail.saturating_mul(disk.f_frsize), folder),
        (Err(error), _) => {
            Finding::wrong("disk", format!("{}: {error}", there.printable()), "check that it is mounted")
        }
    }
}

fn free_space_finding(free: u64, folder: &Path) -> Finding {
    let found = format!("{} free on the disk of {}", size(free), folder.printable());
    match free < MIN_FREE_BYTES {
        true => Finding::wrong("disk", found, "free some space, or use another folder with --home"),
        false => Finding::fine("disk", found),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..0x4000_0000 => format!("{} MiB", bytes >> 20),
        _ => format!("{} GiB", bytes >> 30),
    }
}

#[cfg(test)]
#[path = "doctor_tests.rs"]
mod tests;
