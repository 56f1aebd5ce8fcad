use std::collections::HashMap;
use std::sync::Arc;

use longhaul_protocol::{Hash, Item, Role, ToolSchema};

/// What a model is asked. Within an epoch only `items` changes, and only at its end.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The system prompt.
    pub system: Arc<str>,
    /// The tools that it may call.
    pub tools: Arc<[ToolSchema]>,
    /// What was said and done so far. Every call in it has its result.
    pub items: Vec<Arc<Item>>,
    /// The bytes of the pictures in it. One that is missing is sent as words that say so.
    pub pictures: Arc<HashMap<Hash, Vec<u8>>>,
    /// How many tokens the answer may have.
    pub max_output: Option<u64>,
    /// What the answer is for. It does not go over the wire.
    pub purpose: Purpose,
}

/// What an answer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A step of a turn.
    Step {
        /// So many answers of the session came before those that the items show.
        answers_before: usize,
    },
    /// A summary of what was said and done.
    Summary {
        /// So many summaries of the session came before.
        summaries_before: usize,
    },
    /// What is worth remembering in a part of a session.
    Extract {
        /// So many parts of the session were gone through before.
        extracts_before: usize,
    },
    /// Pages of memory.
    Consolidate {
        /// So many times the pages were put in order before.
        consolidations_before: usize,
    },
}

impl Purpose {
    /// Its name, as records of usage have it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Step { .. } => "step",
            Self::Summary { .. } => "summary",
            Self::Extract { .. } => "extract",
            Self::Consolidate { .. } => "consolidate",
        }
    }
}

impl Default for Purpose {
    fn default() -> Self {
        Self::Step { answers_before: 0 }
    }
}

impl Request {
    /// How many answers of a model are in it: each is a run of items that only a model writes.
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
