//! Turns, model calls and tasks, counted from the runtime's events. A turn never waits for this.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use longhaul_agent::{Runtime, Watched};
use longhaul_protocol::{Event, EventKind, Outcome, TaskId};

use super::Metrics;

/// Counts until the runtime has ended.
pub(crate) async fn count_turns(metrics: Arc<Metrics>, runtime: Runtime) {
    let mut watcher = runtime.watch();
    let mut counter = TurnCounter { metrics, models: HashMap::new(), tasks: HashSet::new() };
    while let Some(watched) = watcher.next().await {
        let Watched::Event(event) = watched else { continue };
        let default = match event.kind {
            EventKind::Usage { .. } => runtime.model().await.0,
            _ => String::new(),
        };
        counter.count(&event, default);
    }
}

struct TurnCounter {
    metrics: Arc<Metrics>,
    /// Sessions that changed their model while this process ran. The others have the runtime's.
    models: HashMap<String, String>,
    tasks: HashSet<TaskId>,
}

impl TurnCounter {
    fn count(&mut self, event: &Event, default_model: String) {
        let mut tables = self.metrics.tables();
        match &event.kind {
            EventKind::TurnEnded { outcome, .. } => {
                let outcome = match outcome {
                    Outcome::Completed => "completed",
                    Outcome::Cancelled => "cancelled",
                    Outcome::Failed => "failed",
                    Outcome::Limit => "limit",
                };
                *tables.turns.entry(outcome).or_default() += 1;
            }
            EventKind::ModelChanged { to, .. } => drop(self.models.insert(event.session.clone(), to.clone())),
            EventKind::Usage { input, output, cached, cost, .. } => {
                let model = self.models.get(&event.session).cloned().unwrap_or(default_model);
                let figures = tables.models.entry(model).or_default();
                figures.calls += 1;
                // A provider may have counted anything.
                figures.input = figures.input.saturating_add(input.unwrap_or(0));
                figures.output = figures.output.saturating_add(output.unwrap_or(0));
                figures.cached = figures.cached.saturating_add(cached.unwrap_or(0));
                figures.cost += cost.unwrap_or(0.0);
            }
            EventKind::TaskStarted { task_id, .. } => drop(self.tasks.insert(*task_id)),
            EventKind::TaskEnded { task_id, .. } => drop(self.tasks.remove(task_id)),
            _ => {}
        }
        tables.tasks_running = self.tasks.len() as u64;
    }
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
