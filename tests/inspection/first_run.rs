//! A machine on which nothing is set up yet.

use std::process::{Command, Stdio};

use longhaul_model::LOCAL_SERVER_PORTS;

use crate::desk::told;

/// The program with a user's folder in which nothing is, and no key in its environment; none, where a model server runs on this
/// machine.
fn first(user: &std::path::Path, arguments: &[&str]) -> Option<(i32, String, String)> {
    let is_taken = |port| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
    if LOCAL_SERVER_PORTS.iter().any(|(_, port)| is_taken(*port)) {
        println!("somebody listens on the usual port of a model server, so nothing was tried");
        return None;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    command.args(arguments).env_clear().env("HOME", user).current_dir(user).stdin(Stdio::null());
    Some(told(&command.output().unwrap()))
}

#[test]
fn the_first_run_says_what_was_looked_for_and_how_to_get_a_model() {
    let user = tempfile::tempdir().unwrap();
    let config = user.path().join(".longhaul/config.toml").display().to_string();

    for arguments in [&[][..], &["run", "hi"], &["serve", "--no-http"]] {
        let Some((code, out, said)) = first(user.path(), arguments) else { return };

        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {said}");
        for words in [
            "longhaul: no model to talk to yet\n",
            "OPENAI_API_KEY",
            "ollama (11434)",
            "export ANTHROPIC_API_KEY=",
            "base_url = ",
            "longhaul demo",
            "longhaul doctor",
            &config,
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
        let fits = |line: &str| line.chars().count() <= 80 || line.contains(&config);
        assert!(said.lines().count() < 25 && said.lines().all(fits), "{said}");
    }
    assert_eq!(std::fs::read_dir(user.path()).unwrap().count(), 0, "nothing is stored");
}

#[test]
fn what_the_first_run_advises_works() {
    let user = tempfile::tempdir().unwrap();
    std::fs::create_dir(user.path().join(".longhaul")).unwrap();
    let Some((_, _, said)) = first(user.path(), &["run", "hi"]) else { return };
    let table = &said[said.find("[model]").unwrap()..said.find("  3. ").unwrap()];

    std::fs::write(user.path().join(".longhaul/config.toml"), table).unwrap();
    let Some((_, shown, errors)) = first(user.path(), &["config", "show"]) else { return };

    assert!(shown.contains("http://127.0.0.1:8080/v1") && shown.contains("qwen3"), "{shown}{errors}");
}

/// S8: the doctor says the same thing about a home in which nothing is yet.
#[test]
fn the_doctor_can_be_asked_before_anything_is_there() {
    let user = tempfile::tempdir().unwrap();

    let Some((code, out, errors)) = first(user.path(), &["doctor"]) else { return };

    assert_eq!(code, 1, "{out}{errors}");
    assert!(out.contains("✗ model") && out.contains("✓ journal"), "{out}");
    assert_eq!(std::fs::read_dir(user.path()).unwrap().count(), 0, "nothing is stored");
}
