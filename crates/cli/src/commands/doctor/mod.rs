//! `longhaul doctor`: checks config, model, journal, keepers, sandbox and disk, and says what to do about what is wrong.

mod journal;
mod model;

use std::path::Path;

use longhaul_agent::Config;
use longhaul_agent::config::{SandboxMode, SandboxSettings, WithoutSandbox};
use longhaul_agent::keeper::{Enforcement, Found, Launcher, Network, Tasks, what_can_be_enforced};
use longhaul_protocol::PrintablePath;
use rustix::fs::{Access, access, statvfs};
use rustix::io::Errno;
use serde_json::json;

use crate::args::{DoctorOptions, GlobalArgs};
use crate::exit;
use crate::output::{format_count, print, sanitize};
use crate::short_id::short;

/// Less free disk space than this is reported.
const MIN_FREE_BYTES: u64 = 1 << 30;

/// The result of one check.
pub(crate) struct Finding {
    check: &'static str,
    found: String,
    /// What to do about it; `None` if all is well.
    to_do: Option<String>,
}

impl Finding {
    fn fine(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, found: found.into(), to_do: None }
    }

    fn wrong(check: &'static str, found: impl std::fmt::Display, to_do: impl Into<String>) -> Self {
        Self { check, found: found.to_string(), to_do: Some(to_do.into()) }
    }

    pub(crate) fn line(&self) -> String {
        let mark = if self.to_do.is_some() { "✗" } else { "✓" };
        // Programs know the check under its older name.
        let check = if self.check == "keepers" { "tasks" } else { self.check };
        let to_do = self.to_do.as_ref().map(|to_do| format!("\n{:11}→ {to_do}", "")).unwrap_or_default();
        sanitize(&format!("{mark} {check:<8} {}{to_do}", self.found))
    }
}

/// Runs all checks.
pub(crate) async fn run_checks(globals: &GlobalArgs) -> anyhow::Result<Vec<Finding>> {
    let (config, mut findings) = check_config(globals)?;
    if let Some(config) = &config {
        findings.extend(model::check(config).await);
    }
    let folder = globals.home_dir()?;
    findings.extend(journal::check(globals, &folder).await);
    let tasks = folder.join("tasks");
    findings.extend(tokio::task::spawn_blocking(move || check_keepers(&tasks)).await?);
    findings.extend(config.as_ref().map(check_sandbox).unwrap_or_default());
    findings.push(check_disk(&folder));
    Ok(findings)
}

pub(crate) async fn run(globals: &GlobalArgs, options: &DoctorOptions) -> anyhow::Result<u8> {
    let findings = run_checks(globals).await?;
    let code = if findings.iter().all(|finding| finding.to_do.is_none()) { exit::DONE } else { exit::FAILED };
    let form = |Finding { check, found, to_do }: &Finding| json!({"check": check, "ok": to_do.is_none(), "found": found, "to_do": to_do});
    print(
        options.json,
        || findings.iter().map(form).collect::<Vec<_>>(),
        || findings.iter().map(Finding::line).collect(),
    )?;
    Ok(code)
}

/// Loads the config and checks its files.
fn check_config(globals: &GlobalArgs) -> anyhow::Result<(Option<Config>, Vec<Finding>)> {
    let (home, sources) = (globals.home_dir()?, globals.sources()?);
    let files = match Config::files(&home, &sources) {
        Ok(files) => files,
        Err(error) => return Ok((None, vec![Finding::wrong("config", error, "fix the file")])),
    };
    let used: Vec<String> =
        files.iter().filter(|file| file.is_used()).map(|file| file.path.printable().to_string()).collect();
    let config = match Config::load(home, &sources) {
        Ok(config) => config,
        Err(error) => {
            let to_do = "fix the file; `longhaul config schema` lists every key";
            return Ok((None, vec![Finding::wrong("config", error, to_do)]));
        }
    };
    let from = if used.is_empty() { "no config file; using defaults".to_owned() } else { used.join(", ") };
    let mut findings = vec![Finding::fine("config", from)];
    let is_of_skipped = |warning: &str| {
        files.iter().filter_map(|file| file.skipped.as_deref()).any(|reason| warning.contains(reason))
    };
    let to_do = |warning: &str| match is_of_skipped(warning) {
        true => "fix or remove the file; `longhaul config schema` lists every key",
        false => "review the file and run `longhaul trust`, or remove the key",
    };
    findings.extend(config.warnings.iter().map(|warning| Finding::wrong("config", warning, to_do(warning))));
    findings.extend(config.keys().iter().filter(|shown| !shown.used && shown.source != "default").map(
        |shown| {
            Finding::fine("config", format!("{} ({}) has no effect in this version", shown.key, shown.source))
        },
    ));
    Ok((Some(config), findings))
}

/// How many commands run, and whether their keepers can be reached.
fn check_keepers(folder: &Path) -> Vec<Finding> {
    let listed = Launcher::this_program()
        .map_err(anyhow::Error::from)
        .and_then(|launcher| Ok(Tasks::existing(folder, launcher)?))
        .and_then(|tasks| tasks.map(|tasks| Ok((tasks.all()?, tasks))).transpose());
    let (ids, tasks) = match listed {
        Ok(Some(listed)) => listed,
        Ok(None) => return vec![Finding::fine("keepers", "none yet")],
        Err(error) => {
            return vec![Finding::wrong(
                "keepers",
                format!("{error:#}"),
                "fix the permissions of the folder",
            )];
        }
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

/// Checks by trying it whether the system lets a keeper restrict commands to the scope.
fn check_sandbox(config: &Config) -> Vec<Finding> {
    let sandbox = &config.settings.sandbox;
    let Some(network) = sandbox.network() else {
        return vec![Finding::fine(
            "sandbox",
            "off (sandbox.mode): commands run with all of your permissions",
        )];
    };
    let tried = Launcher::this_program().map_err(|error| error.to_string());
    let tried = tried.and_then(|launcher| what_can_be_enforced(&launcher).map_err(|error| error.to_string()));
    let enforcement = match tried {
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
