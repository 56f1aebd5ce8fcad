use std::path::Path;

use longhaul_tools::{ToolDefinition, all_tool_definitions, tools_reference};

use super::*;
use crate::memory::memory_note_definition;
use crate::recall::recall_definitions;
use crate::schedules::tool::definition as schedule_definition;
use crate::subagents::agent_definition;

/// T15
#[test]
fn docs_tools_md_is_as_the_tools_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tools.md");
    let own = all_tool_definitions()
        .into_iter()
        .chain(recall_definitions())
        .chain([memory_note_definition(), schedule_definition()]);
    let mut definitions: Vec<ToolDefinition> = own.chain(longhaul_mcp::search_tool_definitions()).collect();
    // Where a request has it.
    let place = definitions.iter().position(|tool| tool.name == "ask_user").unwrap();
    definitions.insert(place, agent_definition(&[]));
    let page = tools_reference(&definitions.iter().collect::<Vec<_>>());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }

    let stored = std::fs::read_to_string(&path).unwrap_or_default();

    assert!(
        stored == page,
        "docs/tools.md is not as the tools say; renew it with `UPDATE_DOCS=1 cargo test -p longhaul-agent docs`"
    );
}

/// The schemas go with every request. With the system prompt they must stay within 3,000 tokens.
#[test]
fn all_tools_together_take_few_tokens() {
    const MAX_TOOL_TOKENS: u64 = 2_200;
    // The other one is there only where a searcher is configured.
    let sent = all_tool_definitions().into_iter().filter(|tool| tool.name != "web_search");
    let definitions = sent.chain(recall_definitions()).chain([
        memory_note_definition(),
        schedule_definition(),
        agent_definition(&[]),
    ]);
    let schemas: Vec<ToolSchema> = definitions
        .map(|tool| ToolSchema {
            name: tool.name.into_owned(),
            description: tool.description.into_owned(),
            parameters: tool.schema,
        })
        .collect();
    if let Some(file) = std::env::var_os("WRITE_TOOL_SCHEMAS") {
        std::fs::write(file, serde_json::to_string(&schemas).unwrap()).unwrap();
    }

    let tokens = estimate("", &schemas, &[]);

    assert!(tokens <= MAX_TOOL_TOKENS, "{tokens} tokens");
}

/// P1, P3: or the next run would do what a command has written there.
#[test]
fn the_config_in_use_can_not_be_written_where_it_lies_in_the_work_folder() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().canonicalize().unwrap();
    std::fs::write(work.join("agent.toml"), "").unwrap();
    let file = Some(work.join("agent.toml"));
    let sources =
        crate::config::Sources { config_file: file, work_dir: Some(work.clone()), ..Default::default() };
    let config = Config::load(work.join("home"), &sources).unwrap();

    let scope = tool_scope(&config, &work);

    let denied: Vec<_> = scope.denied().collect();
    assert!(denied.contains(&(work.join("agent.toml"), longhaul_tools::Permission::Write)), "{denied:?}");
}
