use std::sync::Arc;

use longhaul_model::ScriptedModel;

use super::*;
use crate::Runtime;
use crate::runtime::lock;

/// K17, P6: no command inherits the key of a model that the config names, or of a provider that the user added.
#[test]
fn the_keys_of_all_models_of_the_config_are_hidden_from_commands() {
    let home = tempfile::tempdir().unwrap();
    let row = "[office]\nprotocol = \"openai-chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\nkey_env = \"OFFICE_PASS\"\n";
    std::fs::write(home.path().join("providers.toml"), row).unwrap();
    let mut config = Config::at(home.path());
    config.settings.memory.model = Some("huggingface/small".to_owned());
    config.settings.context.summary_model = Some("github-models/cheap".to_owned());

    let hidden = hidden_variables(&Models::at(home.path()).unwrap(), &config);

    for variable in ["OFFICE_PASS", "HF_TOKEN", "GITHUB_TOKEN", "LONGHAUL_CLUSTER_TOKEN"] {
        assert!(hidden.iter().any(|hidden| hidden == variable), "{variable} in {hidden:?}");
    }
    config.settings.memory.model = None;
    let fewer = hidden_variables(&Models::at(home.path()).unwrap(), &config);
    assert!(!fewer.iter().any(|hidden| hidden == "HF_TOKEN"), "a key of a provider that is not used stays");
}

/// K17: no command inherits the key of a model that a session uses later.
#[tokio::test(flavor = "multi_thread")]
async fn the_keys_of_a_model_that_is_chosen_for_a_session_are_hidden() {
    let home = tempfile::tempdir().unwrap();
    let model = Arc::new(ScriptedModel::from_json("[]").unwrap());
    let runtime = Runtime::with_model(Config::at(home.path()), model).await.unwrap();
    let is_hidden = || lock(&runtime.0.hidden).contains(&"LM_API_TOKEN".to_owned());
    assert!(!is_hidden());

    runtime.session("a").await.unwrap().use_model("lmstudio/x").unwrap();

    assert!(is_hidden());
    runtime.shutdown().await.unwrap();
}

/// P6: the password of the database is a secret in each form that it has.
#[test]
fn the_password_of_the_database_is_redacted_as_written_and_as_used() {
    let home = tempfile::tempdir().unwrap();
    for url in [
        "postgres://ann:open%20sesame@db.example/x",
        "postgres://ann@db.example/x?sslmode=require&password=open%20sesame",
    ] {
        let mut config = Config::at(home.path());
        config.settings.journal.url = Some(url.to_owned());
        let redactor = redactor(&config).unwrap();

        assert_eq!(redactor.redact("is open%20sesame."), "is [redacted].", "{url}");
        #[cfg(feature = "postgres")]
        assert_eq!(redactor.redact("is open sesame."), "is [redacted].", "{url}");
    }
}
