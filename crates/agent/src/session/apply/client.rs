//! What a client of the OpenAI-compatible API sends beside the words of an input.

use std::sync::Arc;

use longhaul_protocol::{ClientRequest, Item, Place, Role};

use super::push_item;
use crate::session::state::State;

/// Begins the note with the instructions of a client.
const CLIENT_INSTRUCTIONS: &str = "The program through which the user talks to you sends these instructions:";

/// Adds what a client sent beside the words of an input. None of it is the user's own words (P8).
pub(super) fn fold_client(state: &mut State, client: ClientRequest, place: Place) {
    if let Some(instructions) = client.instructions
        && state.client_instructions.as_ref() != Some(&instructions)
    {
        let text = format!("{CLIENT_INSTRUCTIONS}\n{instructions}");
        push_item(state, place, Arc::new(Item::Note { text }));
        state.client_instructions = Some(instructions);
    }
    if let Some(text) = client.history {
        push_item(state, place, Arc::new(Item::Text { role: Role::User, text }));
    }
    if let Some(turn) = &mut state.turn {
        turn.max_output = turn.max_output.into_iter().chain(client.max_output_tokens).min();
    }
}
