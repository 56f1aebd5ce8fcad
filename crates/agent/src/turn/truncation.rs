//! An answer that was truncated because it reached its maximum length. It continues once, with a higher maximum.

use longhaul_protocol::{AttemptEnded, Item, Limit, Note, SessionRecord};

use crate::session::decide::Ending;
use crate::session::state;
use crate::turn::end::end_turn;
use crate::turn::outcome::{attempt_ended, has_content, open_items, warning};
use crate::turn::request::ModelCall;
use crate::worker::{Worker, WorkerResult};

/// What the model reads when its answer was truncated.
const CONTINUE_NOTE: &str =
    "Your answer reached the limit of its length. Go on from exactly this point, without repeating anything.";

/// Records a truncated answer: its complete calls run, its text continues in the next attempt, or the turn ends with a limit.
pub(super) async fn record_truncated_answer(
    worker: &mut Worker,
    call: &ModelCall,
    stop: String,
    after: Vec<SessionRecord>,
) -> WorkerResult<()> {
    let is_first = worker.models_mut().count_truncated_answer() == 1;
    let items = open_items(worker);
    let first_call = items.iter().position(|item| matches!(**item, Item::ToolCall { .. }));
    let before_calls = &items[..first_call.unwrap_or(items.len())];
    let has_text = before_calls.iter().any(|item| has_content(item));
    let kept = if has_text { before_calls.len() } else { 0 };
    // Complete calls run. A truncated one gets an error as its result, and the model can call again with more room; once.
    if first_call.is_some() && (is_first || items.last().is_none_or(|item| !is_truncated_call(item))) {
        let mut facts = vec![attempt_ended(call.attempt, items.len(), Some(stop), None)];
        facts.extend(after);
        let text = "the answer reached the limit of its length; what was complete of it counts";
        facts.push(warning("answer_length", text.to_owned()));
        return worker.commit(facts, vec![]).await;
    }
    let text = state::text_of(before_calls);
    let error = (kept == 0).then(|| "it reached the limit of its length before it said anything".to_owned());
    let goes_on = is_first && kept > 0;
    let ended = AttemptEnded {
        attempt: call.attempt,
        kept: u32::try_from(kept).unwrap_or(u32::MAX),
        stop: Some(stop),
        error,
        goes_on,
        too_long: None,
    };
    let mut facts = vec![SessionRecord::AttemptEnded(ended)];
    facts.extend(after);
    if !is_first {
        let error = "the answer reached the limit of its length, also with a higher one; \
                     raise model.max_output_tokens, or send anything to go on";
        let carried = worker.state().turn.as_ref().map(|turn| turn.carried.clone()).unwrap_or_default();
        let ending = Ending { text: Some(carried + &text), ..Ending::limit(Limit::Tokens, error) };
        return end_turn(worker, facts, ending).await;
    }
    if goes_on {
        facts.push(SessionRecord::Note(Note::new(CONTINUE_NOTE)));
    }
    worker.commit(facts, vec![]).await
}

/// Whether an item is a call whose arguments are incomplete.
fn is_truncated_call(item: &Item) -> bool {
    match item {
        Item::ToolCall { arguments, .. } => serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_err(),
        _ => false,
    }
}
