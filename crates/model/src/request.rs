use std::collections::HashMap;
use std::sync::Arc;

use longhaul_protocol::{Hash, Item, Role, ToolSchema};

/// A model request. Within an epoch only `items` changes, and only at its end.
#[derive(Debug, Clone, Default)]
pub struct Request {
    pub system: Arc<str>,
    pub tools: Arc<[ToolSchema]>,
    /// The conversation. Every call has its result.
    pub items: Vec<Arc<Item>>,
    /// The bytes of the pictures in `items`. A short text replaces a picture whose bytes are missing.
    pub pictures: Arc<HashMap<Hash, Vec<u8>>>,
    pub max_output: Option<u64>,
    /// What the answer is for. It is not sent, but a search offers the provider's own one.
    pub purpose: Purpose,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Step {
        /// Answers of the session that are not in `items` any more.
        answers_before: usize,
    },
    Summary {
        summaries_before: usize,
    },
    Extract {
        extracts_before: usize,
    },
    Consolidate {
        consolidations_before: usize,
    },
    /// The answer to a web search. The provider's own search is offered, in place of tools.
    Search,
}

impl Purpose {
    /// Its name in usage records.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Step { .. } => "step",
            Self::Summary { .. } => "summary",
            Self::Extract { .. } => "extract",
            Self::Consolidate { .. } => "consolidate",
            Self::Search => "search",
        }
    }
}

impl Default for Purpose {
    fn default() -> Self {
        Self::Step { answers_before: 0 }
    }
}

impl Request {
    /// Counts the answers in the items. Each is a run of items that only a model writes.
    pub fn finished_steps(&self) -> usize {
        let by_model = |item: &Item| {
            matches!(
                item,
                Item::Text { role: Role::Assistant, .. } | Item::Reasoning { .. } | Item::ToolCall { .. }
            )
        };
        let begins = |(index, item): (usize, &Arc<Item>)| {
            by_model(item) && (index == 0 || !by_model(&self.items[index - 1]))
        };
        self.items.iter().enumerate().filter(|pair| begins(*pair)).count()
    }
}
