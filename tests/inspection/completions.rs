//! Scripts for shells, from the same definition as the command line is read by.

use std::process::Command;

use serde_json::json;

use crate::desk::{Desk, told};

#[test]
fn every_shell_gets_a_script() {
    let desk = Desk::new(&json!([]));

    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, script, errors) = desk.run(&["completions", shell]);

        assert_eq!((code, errors.as_str()), (0, ""), "{shell}");
        assert!(script.contains("sessions") && script.contains("doctor"), "{shell}: {script}");
    }
    let (code, _, errors) = desk.run(&["completions", "bsh"]);
    assert_eq!((code, errors.contains("'bash'")), (2, true), "{errors}");
}

/// What bash offers after these words, of which the last one is not finished.
fn offered(script: &std::path::Path, words: &str, at: usize) -> Vec<String> {
    let steps = format!(
        "source {}; COMP_WORDS=({words}); COMP_CWORD={at}; \
         _longhaul longhaul \"${{COMP_WORDS[$COMP_CWORD]}}\" \"${{COMP_WORDS[$COMP_CWORD-1]}}\"; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display()
    );
    let (code, out, errors) = told(&Command::new("bash").args(["--norc", "-c", &steps]).output().unwrap());
    assert_eq!((code, errors.as_str()), (0, ""));
    out.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_flags() {
    let desk = Desk::new(&json!([]));
    let script = desk.path("longhaul.bash");
    std::fs::write(&script, desk.run(&["completions", "bash"]).1).unwrap();

    let is_valid = Command::new("bash").arg("-n").arg(&script).status().unwrap().success();

    assert!(is_valid);
    assert_eq!(offered(&script, "longhaul doc", 1), ["doctor"]);
    assert_eq!(offered(&script, "longhaul sessions exp", 2), ["export"]);
    assert!(offered(&script, "longhaul sessions show a --", 4).contains(&"--json".to_owned()));
}
