//! A machine on which nothing is set up yet.

use std::process::{Command, Stdio};

use longhaul_model::{LOCAL_SERVER_PORTS, Provider, Providers};
use serde_json::Value;

use crate::desk::told;

/// The program with a user's folder in which nothing is, and no key in its environment; none, where a model server runs on this
/// machine.
fn first(user: &std::path::Path, arguments: &[&str]) -> Option<(i32, String, String)> {
    let is_taken = |port| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
    if LOCAL_SERVER_PORTS.iter().any(|(_, port)| is_taken(*port)) {
        println!("somebody listens on the usual port of a model server, so nothing was tried");
        return None;
    }
    Some(told(&program(user, arguments).output().unwrap()))
}

fn program(user: &std::path::Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    command.args(arguments).env_clear().env("HOME", user).current_dir(user).stdin(Stdio::null());
    command
}

/// What `longhaul models --json` says where these variables are set.
fn with_keys(user: &std::path::Path, variables: &[&str]) -> Value {
    let mut command = program(user, &["models", "--json"]);
    let output = command.envs(variables.iter().map(|variable| (*variable, "a key"))).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_key_of_any_provider_is_found() {
    let user = tempfile::tempdir().unwrap();
    if first(user.path(), &["models"]).is_none() {
        return;
    }

    for provider in Providers::built_in().iter() {
        for variable in &provider.key_env {
            let said = with_keys(user.path(), &[variable]);

            let Provider { name, usual_model, .. } = provider;
            match usual_model {
                Some(model) if provider.shared_key => {
                    assert!(said["used"].is_null(), "{variable}: {said}");
                    let problem = said["problem"].as_str().unwrap();
                    let way = format!("--model {name}/{model}");
                    assert!(problem.starts_with(&format!("{variable} is set")) && problem.contains(&way));
                }
                Some(model) => {
                    assert_eq!(said["used"]["name"], format!("{name}/{model}"), "{variable}: {said}");
                    assert_eq!(said["used"]["reason"], format!("{variable} is set"));
                }
                None => {
                    let problem = said["problem"].as_str().unwrap();
                    let way = format!("--model {name}/NAME");
                    assert!(problem.starts_with(&format!("{variable} is set")) && problem.contains(&way));
                }
            }
        }
    }
}

#[test]
fn of_several_keys_the_first_in_the_order_of_preference_counts() {
    let user = tempfile::tempdir().unwrap();
    let used = |variables: &[&str]| {
        let said = with_keys(user.path(), variables);
        said["used"]["name"].as_str().map(|name| name.split('/').next().unwrap().to_owned())
    };
    let order = ["TOGETHER_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY"];

    let chosen: Vec<_> = (1..=order.len()).filter_map(|count| used(&order[..count])).collect();

    assert_eq!(chosen, ["together", "openrouter", "gemini", "openai"]);
    assert_eq!(used(&["GITHUB_TOKEN", "HF_TOKEN", "TOGETHER_API_KEY"]).unwrap(), "together");
}

/// A key that people have for another purpose sends nothing anywhere, unless its provider is named.
#[test]
fn a_key_that_may_be_there_for_another_purpose_does_not_choose_a_provider() {
    let user = tempfile::tempdir().unwrap();
    if first(user.path(), &["models"]).is_none() {
        return;
    }
    for (variable, model) in
        [("GITHUB_TOKEN", "github-models/openai/gpt-4.1"), ("HF_TOKEN", "huggingface/openai/gpt-oss-120b")]
    {
        let with_key = |arguments: &[&str]| {
            told(&program(user.path(), arguments).env(variable, "a key").output().unwrap())
        };

        let (code, out, errors) = with_key(&["run", "hi"]);
        let (_, examined, _) = with_key(&["doctor"]);
        let (_, listed, _) = with_key(&["models"]);
        let (_, named, _) = with_key(&["models", "--model", model]);

        assert_eq!((code, out.as_str()), (2, ""), "{errors}");
        let way = format!("{variable} is set, but may be there for another purpose");
        assert!(
            errors.contains(&way) && errors.contains(&format!("\n  longhaul --model {model}\n")),
            "{errors}"
        );
        assert!(errors.lines().all(|line| line.chars().count() <= 80), "{errors}");
        assert!(examined.contains(&way) && examined.contains(&format!("--model {model}")), "{examined}");
        assert!(listed.contains("In use: none") && listed.contains(&format!("{variable} (set)")), "{listed}");
        assert!(named.contains(&format!("In use: {model} (set by --model)")), "{named}");
    }
}

#[test]
fn a_key_whose_provider_has_no_default_model_is_named_with_the_next_step() {
    let user = tempfile::tempdir().unwrap();
    if first(user.path(), &["models"]).is_none() {
        return;
    }

    let output = program(user.path(), &["run", "hi"]).env("HYPERBOLIC_API_KEY", "a key").output().unwrap();
    let (code, out, errors) = told(&output);

    assert_eq!((code, out.as_str()), (2, ""), "{errors}");
    assert_eq!(
        errors,
        "longhaul: HYPERBOLIC_API_KEY is set, but no model is named, and hyperbolic has no default model: \
         `longhaul models hyperbolic` lists what it offers, or name one: --model hyperbolic/NAME, or model.name in \
         the config\n"
    );
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
            "TOGETHER_API_KEY",
            "GITHUB_TOKEN",
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
        assert!(said.lines().count() < 32 && said.lines().all(fits), "{said}");
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
