use std::collections::BTreeSet;

use super::*;
use crate::{Error, RoleOrder};

fn with_text(text: &str) -> Result<Providers> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("providers.toml");
    std::fs::write(&path, text).unwrap();
    Providers::built_in().clone().with_file(&path)
}

/// The place and the reason of an error.
fn complaint(text: &str) -> (String, String) {
    match with_text(text).unwrap_err() {
        Error::BadProviders { path, place, reason } => {
            assert!(path.ends_with("providers.toml"));
            (place, reason)
        }
        other => panic!("{other}"),
    }
}

#[test]
fn at_least_thirty_providers_are_known_each_by_its_own_name_with_its_key_and_its_address() {
    let providers = Providers::built_in();

    let names: BTreeSet<_> = providers.iter().map(|provider| provider.name.as_str()).collect();
    assert!(names.len() >= 30 && names.len() == providers.iter().count(), "{names:?}");
    for provider in providers.iter() {
        assert!(!provider.key_env.is_empty(), "{provider:?}");
        assert!(provider.key_env.iter().all(|name| name.chars().all(|c| c.is_ascii_uppercase() || c == '_')));
        let address = if provider.local { "http://127.0.0.1:" } else { "https://" };
        assert!(provider.base_url.starts_with(address), "{provider:?}");
        assert_eq!(provider.local, provider.start.is_some(), "{provider:?}");
    }
}

#[test]
fn the_providers_come_in_the_order_of_preference() {
    let providers = Providers::built_in();

    let first: Vec<_> = providers.iter().map(|provider| provider.name.as_str()).take(4).collect();

    assert_eq!(first, ["anthropic", "openai", "gemini", "openrouter"]);
}

#[test]
fn a_provider_has_its_protocol_and_its_quirks() {
    let providers = Providers::built_in();

    let openai = providers.get("openai").unwrap();
    let deepseek = providers.get("deepseek").unwrap();

    assert_eq!(openai.protocol, Protocol::OpenaiResponses);
    let quirks = Quirks { max_completion_tokens: true, roles: RoleOrder::System, ..Quirks::default() };
    assert_eq!(openai.quirks, quirks);
    assert_eq!(deepseek.quirks, Quirks { wants_reasoning_back: true, ..Quirks::default() });
    assert_eq!((providers.get("custom"), providers.get("scripted")), (None, None));
}

#[test]
fn the_first_key_that_is_set_counts() {
    let providers = Providers::built_in();
    let gemini = providers.get("gemini").unwrap();
    let set = |set: &'static [(&str, &str)]| {
        move |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };

    assert_eq!(gemini.key(set(&[("GOOGLE_API_KEY", "b"), ("GEMINI_API_KEY", "a")])), Some("a".to_owned()));
    assert_eq!(gemini.key(set(&[("GOOGLE_API_KEY", "b"), ("GEMINI_API_KEY", " ")])), Some("b".to_owned()));
    assert_eq!(gemini.key(set(&[("OPENAI_API_KEY", "c")])), None);
}

#[test]
fn the_users_file_overrides_key_by_key() {
    let text = r#"
        [openai]
        base_url = "https://proxy.test/v1/"
        quirks = { no_stream_options = true }
    "#;

    let providers = with_text(text).unwrap();

    let built_in = Providers::built_in();
    let expected = Provider {
        base_url: "https://proxy.test/v1".to_owned(),
        quirks: Quirks { max_completion_tokens: true, no_stream_options: true, ..Quirks::default() },
        ..built_in.get("openai").unwrap().clone()
    };
    assert_eq!(providers.get("openai"), Some(&expected));
    assert_eq!(providers.iter().count(), built_in.iter().count());
}

#[test]
fn the_users_file_adds_providers_that_speak_chat_unless_it_says_otherwise() {
    let text =
        "[office]\nbase_url = \"http://10.0.0.5:9000/v1\"\n[[model]]\npattern = \"office/*\"\nwindow = 1\n";

    let providers = with_text(text).unwrap();

    let expected = Provider {
        name: "office".to_owned(),
        protocol: Protocol::OpenaiChat,
        base_url: "http://10.0.0.5:9000/v1".to_owned(),
        key_env: vec![],
        local: false,
        quirks: Quirks::default(),
        start: None,
        usual_model: None,
        shared_key: false,
    };
    assert_eq!(providers.get("office"), Some(&expected));
}

#[test]
fn a_file_that_is_not_there_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();

    let providers = Providers::built_in().clone().with_file(&folder.path().join("providers.toml")).unwrap();

    assert_eq!(&providers, Providers::built_in());
}

#[test]
fn an_error_names_the_provider_and_the_key() {
    let unknown = complaint("[office]\nbase_url = \"http://a\"\nkey_evn = \"X\"");
    let kind = complaint("[office]\nbase_url = \"http://a\"\nlocal = \"yes\"");
    let protocol = complaint("[openai]\nprotocol = \"soap\"");
    let quirk = complaint("[openai]\nquirks = { max_tokens = true }");
    let missing = complaint("[office]\nkey_env = \"X\"");
    let address = complaint("[office]\nbase_url = \"localhost:80\"");

    assert_eq!(unknown.0, "office.key_evn");
    assert!(unknown.1.contains("did you mean key_env?"), "{}", unknown.1);
    assert_eq!(kind.0, "office.local");
    assert!(kind.1.contains("boolean"), "{}", kind.1);
    assert_eq!(protocol.0, "openai.protocol");
    assert!(protocol.1.contains("openai-chat"), "{}", protocol.1);
    assert_eq!(quirk.0, "openai.quirks");
    assert!(quirk.1.contains("max_tokens"), "{}", quirk.1);
    assert_eq!(missing, ("office.base_url".to_owned(), "missing".to_owned()));
    assert_eq!(address.0, "office.base_url");
}

#[test]
fn what_is_no_provider_is_refused() {
    assert_eq!(complaint("[custom]\nbase_url = \"http://a\"").0, "custom");
    assert_eq!(complaint("office = 3").0, "office");
    assert_eq!(complaint("[office").0, "the file");
}

#[test]
fn a_name_that_nobody_has_leads_to_those_that_look_like_it() {
    let providers = Providers::built_in();

    assert_eq!(providers.nearest("antropic")[0], "anthropic");
    assert_eq!(providers.nearest("lm-studio")[0], "lmstudio");
    assert_eq!(providers.nearest("llama.cpp")[0], "llamacpp");
    assert_eq!(providers.nearest("Google"), ["gemini"]);
    assert_eq!(providers.nearest("script")[0], "scripted");
    assert_eq!(providers.nearest("zzz"), Vec::<&str>::new());
}
