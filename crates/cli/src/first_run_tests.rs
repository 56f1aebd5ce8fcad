use std::path::Path;

use super::guidance;

const VARIABLES: &str = "ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY, GROQ_API_KEY, \
                         DEEPSEEK_API_KEY, MISTRAL_API_KEY, XAI_API_KEY";

#[test]
fn whoever_has_no_model_is_told_three_ways_to_one_that_fit_the_terminal() {
    let guidance = guidance(VARIABLES, None, Path::new("/home/somebody/.longhaul/config.toml"));

    for words in [
        "ANTHROPIC_API_KEY, OPENAI_API_KEY",
        "XAI_API_KEY",
        "ollama (11434)",
        "export ANTHROPIC_API_KEY=…",
        "\n     /home/somebody/.longhaul/config.toml:\n       [model]\n",
        "base_url = \"http://127.0.0.1:8080/v1\"",
        "longhaul demo",
        "longhaul doctor",
    ] {
        assert!(guidance.contains(words), "{words}: {guidance}");
    }
    // The first line has the name of the program before it.
    let widths = guidance.lines().map(|line| line.chars().count());
    assert!(widths.max().unwrap() <= 70 + 10, "{guidance}");
    assert!(guidance.lines().all(|line| line == line.trim_end()), "{guidance}");
}

#[test]
fn the_table_that_is_shown_can_be_read_as_a_config() {
    let guidance = guidance(VARIABLES, None, Path::new("config.toml"));

    let begin = guidance.find("[model]").unwrap();
    let end = guidance.find("  3. ").unwrap();
    let table: toml::Table = guidance[begin..end].parse().unwrap();

    assert_eq!(table["model"]["name"].as_str(), Some("qwen3"));
}
