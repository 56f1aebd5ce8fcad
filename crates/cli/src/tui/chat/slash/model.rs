//! `/model`.

use longhaul_agent::model_list::model_choices;
use longhaul_model::ModelChoice;

use super::{CommandContext, TurnPhase};
use crate::output::{format_number, truncate};
use crate::tui::{PickerItem, ScreenUpdate};

/// `/model [NAME]`; without a name, one is picked from a list. While a turn runs, the model in use is shown instead.
pub(super) async fn run(
    context: &mut CommandContext<'_>,
    name: &str,
    phase: TurnPhase,
) -> anyhow::Result<()> {
    if !name.is_empty() {
        use_model(context, name).await;
    } else if context.screen.is_some() && phase == TurnPhase::BetweenTurns {
        if let Some(name) = pick_model(context).await? {
            use_model(context, &name).await;
        }
    } else {
        let (name, facts) = context.runtime.model_of(context.session.key()).await;
        let window = facts
            .window
            .map(|window| format!(": {} tokens of context, {}", format_number(window.tokens), window.source));
        context.printer.note(format!("{name}{}", window.unwrap_or_default()));
    }
    Ok(())
}

async fn use_model(context: &mut CommandContext<'_>, name: &str) {
    if let Err(error) = context.session.use_model(name) {
        return context.printer.note(error);
    }
    context.printer.note(format!("{} answers from the next request on", truncate(name, 100)));
    let (name, facts) = context.runtime.model_of(context.session.key()).await;
    let window = facts.window.map(|window| window.tokens);
    context.printer.tell(ScreenUpdate::Model { name, window });
    // Each model counts in its own way.
    if let Ok(state) = context.session.state().await
        && state.head > 0
    {
        let report = context.runtime.context_report(context.session.key(), &state).await;
        context.printer.tell(ScreenUpdate::ContextTokens(report.tokens()));
    }
}

/// Lets the user pick a model. The one in use comes first and is marked.
async fn pick_model(context: &mut CommandContext<'_>) -> anyhow::Result<Option<String>> {
    let (current, _) = context.runtime.model_of(context.session.key()).await;
    let mut choices = model_choices(context.config).await?;
    choices.retain(|choice| choice.name != current);
    let source = "in use".to_owned();
    choices.insert(0, ModelChoice { name: current.clone(), source });
    let item = |choice: &ModelChoice| PickerItem {
        key: String::new(),
        line: choice.name.clone(),
        detail: choice.source.clone(),
    };
    let items = choices.iter().map(item).collect();
    let title = "Which model? /model NAME takes any other.".to_owned();
    let picked = context.pick(title, items).await.map(|index| choices.swap_remove(index).name);
    Ok(picked.filter(|picked| *picked != current))
}
