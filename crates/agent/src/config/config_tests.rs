use std::fs;

use super::*;

fn from_text(text: &str) -> Result<Config> {
    let mut layers = default_layers();
    layers.put(parse_layer(text, "config.toml")?);
    Config::at("/home").with_layers(layers)
}

/// A home and a project with a folder in it, in which the work is done.
fn desk() -> (tempfile::TempDir, PathBuf, Sources) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("home")).unwrap();
    fs::create_dir_all(root.join("project/below")).unwrap();
    let sources = Sources { work_dir: Some(root.join("project/below")), ..Sources::default() };
    (folder, root, sources)
}

#[test]
fn a_home_without_a_file_has_the_defaults() {
    let (_folder, root, sources) = desk();

    let config = Config::load(root.join("home"), &sources).unwrap();

    assert_eq!(config.settings, Settings::default());
    assert_eq!(config.work_dir, root.join("project/below"));
    assert!(config.warnings.is_empty());
    assert!(config.keys().iter().all(|key| key.source == "default"));
    assert_eq!(config.set_by("model.base_url"), "the default of model.base_url");
}

#[test]
fn flags_win_over_the_environment_over_the_project_over_the_home() {
    let (_folder, root, sources) = desk();
    let home = root.join("home");
    fs::write(home.join("config.toml"), "[model]\nname = \"a/home\"\n[agent]\nname = \"home\"\n").unwrap();
    fs::write(root.join("project/longhaul.toml"), "\n[agent]\nname = \"project\"\n").unwrap();
    let with_variable = Sources { model_variable: Some("a/variable".to_owned()), ..sources.clone() };
    let with_flag = Sources { model_flag: Some("a/flag".to_owned()), ..with_variable.clone() };

    let [plain, variable, flag] =
        [sources, with_variable, with_flag].map(|sources| Config::load(&home, &sources).unwrap());

    let home_file = home.join("config.toml");
    assert_eq!(plain.settings.agent.name, "project");
    assert_eq!(
        plain.set_by("agent.name"),
        format!("agent.name in {}:3", root.join("project/longhaul.toml").display())
    );
    assert_eq!(plain.settings.model.name, "a/home");
    assert_eq!(plain.set_by("model.name"), format!("model.name in {}:2", home_file.display()));
    assert_eq!(variable.settings.model.name, "a/variable");
    assert_eq!(variable.set_by("model.name"), "LONGHAUL_MODEL in the environment");
    assert_eq!(flag.settings.model.name, "a/flag");
    assert_eq!(flag.set_by("model.name"), "--model");
}

#[test]
fn a_variable_that_is_empty_says_nothing() {
    let (_folder, root, sources) = desk();
    fs::write(root.join("home/config.toml"), "[model]\nname = \"a/home\"\n").unwrap();

    let sources = Sources { model_variable: Some(String::new()), ..sources };
    let config = Config::load(root.join("home"), &sources).unwrap();

    assert_eq!(config.settings.model.name, "a/home");
}

#[test]
fn a_named_file_stands_in_place_of_the_homes_and_must_be_there() {
    let (_folder, root, sources) = desk();
    fs::write(root.join("home/config.toml"), "[model]\nname = \"a/home\"\n").unwrap();
    fs::write(root.join("other.toml"), "[agent]\ninstructions_file = \"rules.md\"\n").unwrap();
    fs::write(root.join("rules.md"), "Be brief.").unwrap();
    let named = |file: &str| Sources { config_file: Some(root.join(file)), ..sources.clone() };

    let config = Config::load(root.join("home"), &named("other.toml")).unwrap();
    let missing = Config::load(root.join("home"), &named("missing.toml")).unwrap_err();

    assert_eq!(config.settings.model.name, "");
    assert_eq!(config.instructions().unwrap(), "Be brief.");
    assert!(missing.to_string().starts_with(&root.join("missing.toml").display().to_string()), "{missing}");
}

#[test]
fn a_projects_file_that_is_named_is_the_persons_own() {
    let (_folder, root, sources) = desk();
    fs::write(root.join("project/longhaul.toml"), "[model]\nname = \"a/b\"\n").unwrap();

    let sources = Sources { config_file: Some(root.join("project/longhaul.toml")), ..sources };
    let config = Config::load(root.join("home"), &sources).unwrap();

    assert_eq!((config.settings.model.name.as_str(), config.warnings), ("a/b", vec![]));
}

/// P7
#[test]
fn instructions_of_a_project_leave_a_file_of_the_home_in_place() {
    let (_folder, root, sources) = desk();
    fs::write(root.join("home/rules.md"), "As the home says.").unwrap();
    fs::write(root.join("home/config.toml"), "[agent]\ninstructions_file = \"rules.md\"\n").unwrap();
    fs::write(root.join("project/longhaul.toml"), "[agent]\ninstructions = \"As the project says.\"\n")
        .unwrap();

    let config = Config::load(root.join("home"), &sources).unwrap();

    assert_eq!(config.instructions().unwrap(), "As the home says.");
    assert_eq!(config.project_instructions.unwrap().text, "As the project says.");
}

#[test]
fn the_files_that_are_looked_for_are_named_up_to_the_nearest() {
    let (_folder, root, sources) = desk();
    fs::write(root.join("longhaul.toml"), "").unwrap();
    fs::write(root.join("project/longhaul.toml"), "").unwrap();

    let files = Config::files(&root.join("home"), &sources).unwrap();

    let file = |path: &str, exists, is_project| ConfigFile {
        path: root.join(path),
        exists,
        is_project,
        skipped: None,
    };
    assert_eq!(
        files,
        [
            file("home/config.toml", false, false),
            file("project/longhaul.toml", true, true),
            file("project/below/longhaul.toml", false, true),
        ]
    );
}

#[test]
fn scopes_are_read_as_they_are_written() {
    let text =
        "[[scope.allow]]\ntarget = \"./\"\npermission = \"write\"\n[[scope.deny]]\ntarget = \"secret\"\n";

    let config = from_text(text).unwrap();

    assert_eq!(
        (config.settings.scope.allow.len(), config.settings.scope.deny[0].target.as_str()),
        (1, "secret")
    );
}

/// The schema of the scope is written by hand, since its type belongs to another crate: the two must not part.
#[test]
fn the_schema_of_the_scope_has_the_keys_of_its_type() {
    let text = "[[scope.allow]]\ntarget = \"a\"\n[[scope.deny]]\ntarget = \"b\"\n";

    let scope = serde_json::to_value(from_text(text).unwrap().settings.scope).unwrap();

    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let schema = &config_schema()["properties"]["scope"]["properties"];
    assert_eq!(keys(&scope), keys(schema));
    for list in ["allow", "deny"] {
        assert_eq!(keys(&scope[list][0]), keys(&schema[list]["items"]["properties"]));
    }
}

#[test]
fn an_empty_text_is_none() {
    let text = "[model]\nprotocol = \"\"\nbase_url = \"\"\napi_key_env = \"\"\n[server]\ntoken_env = \"\"\n";

    let config = from_text(text).unwrap();

    let model = &config.settings.model;
    assert_eq!((model.protocol, &model.base_url, &model.api_key_env), (None, &None, &None));
    assert_eq!(config.settings.server.token_env, None);
}

#[test]
fn a_protocol_is_written_as_it_is_read() {
    for word in ["openai-chat", "openai-responses", "anthropic", "gemini"] {
        let config = from_text(&format!("[model]\nprotocol = \"{word}\"\n")).unwrap();

        let shown = config.keys().into_iter().find(|key| key.key == "model.protocol").unwrap();

        assert!(config.settings.model.protocol.is_some());
        assert_eq!(shown.value, word);
    }
}

#[test]
fn schedules_are_read_from_the_config_with_their_defaults() {
    let text = "[[schedule]]\nname = \"morning\"\ncron = \"0 7 * * 1-5\"\nzone = \"Europe/Berlin\"\nprompt = \"What is new?\"\n\
                [[schedule]]\nname = \"look\"\nevery = \"30m\"\nsession = \"work\"\nprompt = \"Look.\"\noverlap = \"skip\"\n\
                [schedules]\nat_once = 2\n";

    let settings = Config::from_toml(text).unwrap().settings;

    let names: Vec<&str> = settings.schedule.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!((names, settings.schedules.at_once), (vec!["morning", "look"], 2));
    assert_eq!((settings.schedule[1].grace.as_str(), settings.schedule[1].max_failures), ("1h", 5));
}

#[test]
fn a_schedule_that_can_not_run_is_an_error_of_the_config() {
    let reason = |schedule: &str| Config::from_toml(schedule).unwrap_err().to_string();
    let with = |lines: &str| format!("[[schedule]]\nname = \"look\"\nprompt = \"Look.\"\n{lines}\n");

    assert_eq!(
        reason(&with("cron = \"0 0 30 2 *\"")),
        "the config:1: schedule \"look\": cron \"0 0 30 2 *\" never fires"
    );
    assert_eq!(
        reason(&with("every = \"1h\"").repeat(2)),
        "the config:1: two schedules have the name \"look\"; choose another for one of them"
    );
    assert_eq!(
        reason(&with("evry = \"1h\"")),
        "the config:4: unknown key \"evry\" in [schedule]; did you mean \"every\"?"
    );
    assert_eq!(
        reason("[[schedule]]\nevery = \"1h\"\nname = \"look\"\n"),
        "the config:1: schedule needs a prompt"
    );
}
