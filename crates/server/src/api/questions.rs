//! Questions of all sessions that wait for a person.

use axum::Json;
use axum::extract::State;
use hyper::{Method, StatusCode};
use longhaul_agent::SessionQuestion;
use longhaul_protocol::QuestionKind;
use schemars::JsonSchema;
use serde::Serialize;

use super::list::{List, ListQuery};
use crate::access::{Access, Scope};
use crate::body::Query;
use crate::problem::ApiResult;
use crate::route::Route;
use crate::state::ServerState;

pub(crate) fn routes() -> Vec<Route> {
    let read = Access::Token(Scope::Read);
    vec![
        Route::new(Method::GET, "/api/questions", read, "List open questions", list_questions)
            .query::<ListQuery>()
            .answers::<List<WaitingQuestion>>(StatusCode::OK, "Questions of all sessions, the oldest first."),
    ]
}

/// A question that waits for an answer: `POST /api/sessions/{key}/answers` gives it.
#[derive(Debug, Serialize, JsonSchema)]
struct WaitingQuestion {
    id: String,
    /// The key of the session that asks.
    session: String,
    session_id: String,
    /// `approval`, `ask`, `budget`, `plan` or `elicitation`.
    #[schemars(with = "String")]
    kind: QuestionKind,
    text: String,
    /// Answers with a meaning of their own. Any other text is an answer, too.
    choices: Vec<String>,
    /// The call that waits for the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    call_id: Option<String>,
    /// What the call would change, as a unified diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

impl From<SessionQuestion> for WaitingQuestion {
    fn from(open: SessionQuestion) -> Self {
        let SessionQuestion { session, id, question, .. } = open;
        Self {
            id: question.id.to_string(),
            session,
            session_id: id.to_string(),
            kind: question.kind,
            text: question.text,
            choices: question.choices,
            call_id: question.call.map(|call| call.to_string()),
            diff: question.diff,
        }
    }
}

async fn list_questions(
    State(state): State<ServerState>,
    Query(query): Query<ListQuery>,
) -> ApiResult<Json<List<WaitingQuestion>>> {
    let open = state.runtime().open_questions().await?;
    let mut open: Vec<WaitingQuestion> = open.into_iter().map(WaitingQuestion::from).collect();
    open.sort_by(|one, other| one.id.cmp(&other.id));
    List::page(open, &query, |question: &WaitingQuestion| question.id.clone())
}
