//! `todo`.

use std::sync::Arc;

use longhaul_protocol::{Effect, Todo, TodoStatus};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{PreparedCall, Tool, ToolDefinition, ToolInvocation, ToolOutcome, function_tool, schema_of};

const MAX_ITEMS: usize = 200;
const MAX_ITEM_BYTES: usize = 2_000;

/// What todo takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The whole list, in order.
    items: Vec<TodoItem>,
}

/// One line.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TodoItem {
    /// What is to be done.
    text: String,
    /// How far it is.
    status: ItemStatus,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ItemStatus {
    Pending,
    InProgress,
    Done,
}

impl From<ItemStatus> for TodoStatus {
    fn from(status: ItemStatus) -> Self {
        match status {
            ItemStatus::Pending => Self::Pending,
            ItemStatus::InProgress => Self::InProgress,
            ItemStatus::Done => Self::Done,
        }
    }
}

pub(crate) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: "todo".into(),
        description: "Replace this session's todo list. Use it for work of three or more steps, keep one item in progress, and \
                      update it as you go; not for simple requests.".into(),
        effect: Effect::Idempotent,
        schema: schema_of::<Arguments>(),
        limits: &["At most 200 items of 1 to 2,000 bytes each."],
        example: r#"{"items": [{"text": "find the cause", "status": "done"}, {"text": "write a test", "status": "in_progress"}]}"#,
    }
}

pub(crate) fn tool() -> Arc<dyn Tool> {
    function_tool(definition(), (), prepare)
}

fn prepare((): &(), Arguments { items }: Arguments, _: &ToolInvocation) -> Result<PreparedCall, ToolOutcome> {
    if items.len() > MAX_ITEMS {
        return Err(ToolOutcome::error(format!(
            "`items` has {} items; at most {MAX_ITEMS} are kept",
            items.len()
        )));
    }
    if let Some(index) = items.iter().position(|item| !(1..=MAX_ITEM_BYTES).contains(&item.text.len())) {
        let bytes = items[index].text.len();
        return Err(ToolOutcome::error(format!(
            "`items[{index}].text` has {bytes} bytes; it must have 1 to {MAX_ITEM_BYTES}"
        )));
    }
    let list: Vec<Todo> =
        items.into_iter().map(|item| Todo { text: item.text, status: item.status.into() }).collect();
    let finished = ToolOutcome { content: render_list(&list), todo: Some(list), ..ToolOutcome::default() };
    Ok(PreparedCall::new(move |_| async move { finished }))
}

fn render_list(list: &[Todo]) -> String {
    if list.is_empty() {
        return "[the todo list is empty]".to_owned();
    }
    let line = |todo: &Todo| {
        let mark = match todo.status {
            TodoStatus::Pending => ' ',
            TodoStatus::InProgress => '>',
            TodoStatus::Done => 'x',
        };
        format!("[{mark}] {}", todo.text)
    };
    list.iter().map(line).collect::<Vec<_>>().join("\n")
}
