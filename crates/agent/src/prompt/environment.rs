//! The surroundings of a session: captured once, when the session begins, and compared again at the start of each turn.

use std::path::Path;

use longhaul_context::environment_note;
use longhaul_keeper::shell_for;
use longhaul_protocol::{Environment, GitState, Note};
use longhaul_tools::{GitCheckout, LastLink, git_checkout, read_small_file};

use super::local_date::{LocalDate, local_date};
use crate::clock::now;

const OS_RELEASE: &str = "/etc/os-release";
const KERNEL_RELEASE: &str = "/proc/sys/kernel/osrelease";
const MAX_RELEASE_BYTES: u64 = 16 << 10;

/// What a session works with. The rest of its surroundings is asked of the system.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionSetup<'a> {
    /// `None` if the session has no work folder.
    pub(crate) work_dir: Option<&'a Path>,
    /// What the sandbox allows, in words.
    pub(crate) sandbox: &'a str,
    pub(crate) model: &'a str,
}

impl SessionSetup<'_> {
    /// The surroundings of a session that begins now. Runs no program.
    pub(crate) fn capture(&self, is_clean: Option<bool>) -> Environment {
        let path = std::env::var("PATH").ok();
        let shell = shell_for(path.as_deref());
        let shell = shell.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let mut environment = Environment { os: operating_system(), shell, ..Environment::default() };
        self.update(&mut environment);
        if let Some(git) = &mut environment.git {
            git.is_clean = is_clean;
        }
        environment
    }

    /// The note about what has changed since the model was last told, with the surroundings that it tells.
    pub(crate) fn change_note(&self, told: &Environment) -> Option<Note> {
        let mut now = told.clone();
        self.update(&mut now);
        let text = environment_note(told, &now)?;
        Some(Note { environment: Some(Box::new(now)), ..Note::new(text) })
    }

    /// Sets everything that can change during a session.
    fn update(&self, environment: &mut Environment) {
        let variable = std::env::var("TZ").ok();
        let LocalDate { date, zone } = local_date(now(), variable.as_deref());
        let git = self.work_dir.and_then(git_checkout).map(|GitCheckout { branch, commit }| GitState {
            branch,
            commit,
            is_clean: None,
        });
        let (sandbox, model) = (self.sandbox.to_owned(), self.model.to_owned());
        *environment = Environment { date, zone, git, sandbox, model, ..std::mem::take(environment) };
    }
}

/// The operating system with its version: `Debian GNU/Linux 12 (bookworm), Linux 6.1.0-18-amd64 x86_64`.
fn operating_system() -> String {
    let read = |path: &str| {
        let file = read_small_file(Path::new(path), LastLink::Follow, MAX_RELEASE_BYTES).ok()??;
        Some(String::from_utf8_lossy(&file.bytes).into_owned())
    };
    let distribution = read(OS_RELEASE).and_then(|text| pretty_name(&text));
    let system = match std::env::consts::OS {
        "linux" => "Linux",
        "macos" => "macOS",
        other => other,
    };
    let release = read(KERNEL_RELEASE).map(|release| format!(" {}", release.trim())).unwrap_or_default();
    let kernel = format!("{system}{release} {}", std::env::consts::ARCH);
    distribution.map_or_else(|| kernel.clone(), |distribution| format!("{distribution}, {kernel}"))
}

/// The name for people in a text of `os-release`.
fn pretty_name(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim().trim_matches(['"', '\'']).to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
#[path = "environment_tests.rs"]
mod tests;
