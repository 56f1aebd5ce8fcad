//! Turns, model calls and tasks, counted from the runtime's events. A turn never waits for this.

use std::collections::HashSet;
use std::sync::Arc;

use longhaul_agent::{Runtime, Watched};
use longhaul_protocol::{Event, EventKind, Outcome, TaskId};

use super::Metrics;

/// Counts until the runtime has ended.
pub(crate) async fn count_turns(metrics: Arc<Metrics>, runtime: Runtime) {
    let mut watcher = runtime.watch();
    let mut counter = TurnCounter { metrics, tasks: HashSet::new() };
    while let Some(watched) = watcher.next().await {
        if let Watched::Event(event) = watched {
            counter.count(&event);
        }
    }
}

struct TurnCounter {
    metrics: Arc<Metrics>,
    tasks: HashSet<TaskId>,
}

impl TurnCounter {
    fn count(&mut self, event: &Event) {
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
            EventKind::Usage { input, output, cached, cost, model, .. } => {
                // Events of a process with an older version name no model.
                let model = model.as_deref().unwrap_or("unknown");
                let figures = tables.models.entry(model.to_owned()).or_default();
                figures.calls += 1;
                // A provider may have counted anything.
                figures.input = figures.input.saturating_add(input.unwrap_or(0));
                figures.output = figures.output.saturating_add(output.unwrap_or(0));
                figures.cached = figures.cached.saturating_add(cached.unwrap_or(0));
                figures.cost += cost.unwrap_or(0.0);
            }
            EventKind::TaskStarted { task_id, .. } | EventKind::ChildStarted { task_id, .. } => {
                self.tasks.insert(*task_id);
            }
            EventKind::TaskEnded { task_id, .. } | EventKind::ChildEnded { task_id, .. } => {
                self.tasks.remove(task_id);
            }
            _ => {}
        }
        tables.tasks_running = self.tasks.len() as u64;
    }
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
