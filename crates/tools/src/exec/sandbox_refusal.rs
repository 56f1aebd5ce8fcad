//! Recognising a command that the sandbox has probably stopped.

use longhaul_keeper::Network;

use crate::output::OutputText;
use crate::{Sandbox, SandboxMode};

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

/// A hint for a command that failed, if its last words look like a refusal by the sandbox. A person decides whether to run it
/// outside, at the keyboard: no tool of the model can.
pub(super) fn refusal_hint(sandbox: &Sandbox, output: &OutputText) -> Option<&'static str> {
    if sandbox.mode() == SandboxMode::Off {
        return None;
    }
    let text = &output.text;
    let tail = &text[text.ceil_char_boundary(text.len().saturating_sub(TAIL_BYTES))..];
    let tail = tail.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|words| tail.contains(words));
    if has(&FILE_REFUSALS) {
        Some(FILE_HINT)
    } else if sandbox.network() == Network::Closed && has(&NETWORK_REFUSALS) {
        Some(NETWORK_HINT)
    } else {
        None
    }
}

#[cfg(test)]
#[path = "sandbox_refusal_tests.rs"]
mod tests;
