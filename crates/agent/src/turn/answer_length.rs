//! Handles an answer that was truncated at its maximum length. It continues once, with a higher maximum.

use longhaul_protocol::{Item, Limit, Note, SessionRecord, TurnEnded};

use crate::session::decide::TurnEnding;
use crate::session::state;
use crate::turn::end::end_turn;
use crate::turn::outcome::{AttemptClose, has_content, open_items};
use crate::worker::{Worker, WorkerResult};

/// The note to a model whose answer was truncated.
const CONTINUE_NOTE: &str =
    "Your answer reached the limit of its length. Go on from exactly this point, without repeating anything.";

/// Records a truncated answer: its complete calls run, its text continues in the next attempt, or the turn ends with a limit.
pub(super) async fn record_truncated_answer(
    worker: &mut Worker,
    mut close: AttemptClose<'_>,
) -> WorkerResult<()> {
    let is_first = worker.models_mut().count_truncated_answer() == 1;
    let items = open_items(worker);
    let first_call = items.iter().position(|item| matches!(**item, Item::ToolCall { .. }));
    // Complete calls run. A truncated call gets an error as its result. Then the model can call again with more room,
    // but only once.
    if first_call.is_some() && (is_first || items.last().is_none_or(|item| !is_truncated_call(item))) {
        let cut_call = items.last().filter(|item| is_truncated_call(item)).and_then(|item| called_tool(item));
        let discarded: Vec<String> = close.unfinished_call.take().or(cut_call).into_iter().collect();
        close.keep(items.len());
        close.after.extend(discarded_calls_note(&discarded));
        close.warn("answer_length", "the answer reached its length limit; keeping the part that is complete");
        return worker.commit(close.into_records(), vec![]).await;
    }
    let before_calls = &items[..first_call.unwrap_or(items.len())];
    let discarded = items[before_calls.len()..].iter().filter_map(|item| called_tool(item));
    let discarded: Vec<String> = discarded.chain(close.unfinished_call.take()).collect();
    let text = state::text_of(before_calls);
    let has_text = before_calls.iter().any(|item| has_content(item));
    if has_text {
        close.keep(before_calls.len());
    } else {
        close.ended.error = Some("it reached its length limit before it said anything".to_owned());
    }
    let client_limit = worker.state().turn.as_ref().and_then(|turn| turn.max_output);
    if let Some(limit) = client_limit.filter(|_| first_call.is_none()) {
        let error = format!("the answer reached the limit of {limit} tokens that the client set");
        let (text, code) = (Some(text), Some(TurnEnded::MAX_OUTPUT_TOKENS.to_owned()));
        let ending = TurnEnding { text, code, ..TurnEnding::limit(Limit::Tokens, error) };
        return end_turn(worker, close.into_records(), ending).await;
    }
    if !is_first {
        let error = "the answer reached its length limit, even with a higher one; \
                     raise model.max_output_tokens, or send a message to go on";
        let carried =
            worker.state().turn.as_ref().map(|turn| turn.text_before_cut.clone()).unwrap_or_default();
        close.after.extend(discarded_calls_note(&discarded));
        let ending = TurnEnding { text: Some(carried + &text), ..TurnEnding::limit(Limit::Tokens, error) };
        return end_turn(worker, close.into_records(), ending).await;
    }
    if has_text {
        close.ended.goes_on = true;
    }
    let go_on = || has_text.then(|| SessionRecord::Note(Note::new(CONTINUE_NOTE)));
    close.after.extend(discarded_calls_note(&discarded).or_else(go_on));
    worker.commit(close.into_records(), vec![]).await
}

/// Tells the model which of its calls did not run because its answer was truncated. `None` if there are none.
fn discarded_calls_note(tools: &[String]) -> Option<SessionRecord> {
    let note = match tools {
        [] => return None,
        [tool] => format!(
            "Your answer reached the limit of its length in a call of `{tool}`: that call was discarded and did not run. Make \
             it again with less in it, in several calls if need be."
        ),
        tools => format!(
            "Your answer reached the limit of its length: its calls of {} were discarded and did not run. Make them again, \
             fewer at a time or with less in each.",
            tools.iter().map(|tool| format!("`{tool}`")).collect::<Vec<_>>().join(", ")
        ),
    };
    Some(SessionRecord::Note(Note::new(&note)))
}

/// The tool that an item calls, if it is a call.
fn called_tool(item: &Item) -> Option<String> {
    match item {
        Item::ToolCall { name, .. } => Some(name.clone()),
        _ => None,
    }
}

/// Whether an item is a call whose arguments are incomplete.
fn is_truncated_call(item: &Item) -> bool {
    match item {
        Item::ToolCall { arguments, .. } => serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_err(),
        _ => false,
    }
}
