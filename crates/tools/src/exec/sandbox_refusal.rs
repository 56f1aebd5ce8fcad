//! Recognising a command that the sandbox has probably stopped.
//!
//! No interface of the kernel tells the keeper that Landlock, a mount or seccomp has refused something. So three facts that the command
//! does not control (it was confined, it ended, its exit code is not 0) and one that it does (its last words) make a refusal. A
//! command can pretend to be refused. It gains nothing by that but a question to the user, which shows what would run.

use longhaul_keeper::{Bounds, Network};

use crate::output::OutputText;
use crate::{RefusedAccess, SandboxRefusal};

/// The end of the output in which the error is looked for.
const TAIL_BYTES: usize = 4 << 10;
/// What programs print when the kernel refuses a file or an operation.
const FILE_REFUSALS: [&str; 3] = ["permission denied", "operation not permitted", "read-only file system"];
/// What programs print without a network.
const NETWORK_REFUSALS: [&str; 4] = [
    "network is unreachable",
    "could not resolve host",
    "temporary failure in name resolution",
    "name or service not known",
];
const FILE_HINT: &str = "the sandbox may have stopped it: it lets commands write only in the work folder and in temporary \
                         folders. If it has to run outside, tell the user, who can run it with `!`";
const NETWORK_HINT: &str = "the sandbox may have stopped it: commands have no network. If it needs one, tell the user, who can \
                            run it with `!`";

/// The refusal in the last words of a command that failed within these bounds.
pub(super) fn find_refusal(bounds: &Bounds, output: &OutputText) -> Option<SandboxRefusal> {
    let text = &output.text;
    let tail = &text[text.ceil_char_boundary(text.len().saturating_sub(TAIL_BYTES))..];
    let line_with = |words: &[&str]| {
        let has_words = |line: &&str| {
            let line = line.to_lowercase();
            words.iter().any(|words| line.contains(words))
        };
        tail.lines().rfind(has_words).map(|line| line.trim().to_owned())
    };
    let refusal = |access, line| SandboxRefusal { access, line };
    let of_files = line_with(&FILE_REFUSALS).map(|line| refusal(RefusedAccess::Files, line));
    of_files.or_else(|| {
        let line = line_with(&NETWORK_REFUSALS).filter(|_| bounds.network == Network::Closed)?;
        Some(refusal(RefusedAccess::Network, line))
    })
}

/// What the model is told of a refusal. A person decides whether to run the command outside: no tool of the model can.
pub(super) fn refusal_hint(refusal: &SandboxRefusal) -> &'static str {
    match refusal.access {
        RefusedAccess::Files => FILE_HINT,
        RefusedAccess::Network => NETWORK_HINT,
    }
}

#[cfg(test)]
#[path = "sandbox_refusal_tests.rs"]
mod tests;
