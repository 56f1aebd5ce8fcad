//! Variables that make a shell or a program run something: `PAGER`, `PS4`, `BASH_ENV`, `LD_PRELOAD`.
//!
//! Variables that only say where to look (`PATH`, `PYTHONPATH`, `LD_LIBRARY_PATH`) are not among them: what they lead to is a
//! file, and no file is read here.

use std::collections::HashSet;

/// What is done with the value of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VariableUse {
    /// It is run as a command, with more arguments behind it.
    Command,
    /// It is expanded as a prompt, commands in it included.
    Prompt,
    /// It is evaluated as a number.
    Integer,
    /// It names code that is loaded, or configures a program to run something.
    Loads,
}

/// Run as a command by the program that reads them.
const COMMANDS: [&str; 34] = [
    "PAGER",
    "GIT_PAGER",
    "MANPAGER",
    "SYSTEMD_PAGER",
    "PSQL_PAGER",
    "EDITOR",
    "VISUAL",
    "FCEDIT",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "SUDO_EDITOR",
    "SVN_EDITOR",
    "HGEDITOR",
    "KUBE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_ASKPASS",
    "GIT_PROXY_COMMAND",
    "GIT_EXTERNAL_DIFF",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "SVN_SSH",
    "CVS_RSH",
    "RSYNC_RSH",
    "RSYNC_CONNECT_PROG",
    "BROWSER",
    "PROMPT_COMMAND",
    "CC",
    "CXX",
    "LD",
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "KUBECTL_EXTERNAL_DIFF",
];
const LOADS: [&str; 24] = [
    "BASH_ENV",
    "ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "LD_PRELOAD",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "LESSOPEN",
    "LESSCLOSE",
    "GCONV_PATH",
    "OPENSSL_CONF",
    "PERL5OPT",
    "PERL5DB",
    "RUBYOPT",
    "PYTHONSTARTUP",
    "PYTHONBREAKPOINT",
    "JAVA_TOOL_OPTIONS",
    "TAR_OPTIONS",
    "MAKEFLAGS",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
    "GIT_CONFIG",
    "VIMINIT",
    "EXINIT",
];

/// What is done with the value of this variable, if that runs anything.
pub(super) fn variable_use(name: &str) -> Option<VariableUse> {
    let is_loaded = LOADS.contains(&name)
        || ["GIT_CONFIG_", "BASH_FUNC_", "CARGO_TARGET_", "npm_config_", "NPM_CONFIG_"]
            .iter()
            .any(|prefix| name.starts_with(prefix));
    match name {
        "PS0" | "PS1" | "PS2" | "PS3" | "PS4" => Some(VariableUse::Prompt),
        "RANDOM" | "OPTIND" | "HISTCMD" | "SECONDS" => Some(VariableUse::Integer),
        // Where a target folder or a linter's level is set, nothing is run.
        "CARGO_TARGET_DIR" | "npm_config_loglevel" | "NPM_CONFIG_LOGLEVEL" => None,
        _ if is_loaded => Some(VariableUse::Loads),
        _ if COMMANDS.contains(&name) => Some(VariableUse::Command),
        _ => None,
    }
}

/// How a line uses the names of its variables, as far as that decides what is evaluated.
#[derive(Debug, Default)]
pub(super) struct NameUses {
    /// Set to a text.
    pub(super) texts: HashSet<String>,
    /// Made an array.
    pub(super) arrays: HashSet<String>,
    /// Taken for numbers, because an arithmetic expression set them.
    pub(super) numbers: HashSet<String>,
    /// Given to `declare` with a value that would be evaluated for an array: `declare a="$x"`.
    pub(super) declared: HashSet<String>,
}

impl NameUses {
    /// A name that one part of the line relies on and another part breaks.
    pub(super) fn conflict(&self) -> Option<&String> {
        let mut conflicts: Vec<&String> =
            self.numbers.intersection(&self.texts).chain(self.declared.intersection(&self.arrays)).collect();
        conflicts.sort();
        conflicts.into_iter().next()
    }
}
