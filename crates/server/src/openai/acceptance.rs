//! Which session a request belongs to, and whether it is a retry.
//!
//! A request is a repetition of the newest request with the same body and conversation if the client's `Idempotency-Key`
//! says so, or if its first answer did not reach the client: the connection is gone a short time ago, or the client counts
//! its retries.
//! A repetition is answered by the turn of the first request. Every other request makes an input.

use axum::http::HeaderMap;
use hyper::StatusCode;
use longhaul_agent::fork::fork_session;
use longhaul_agent::{
    Session, TurnLocator, TurnTarget, UserMessage, accepted_after, find_answered, find_turn, now,
};
use longhaul_journal::{Error as JournalError, Journal, SessionEntry, name_session};
use longhaul_protocol::{
    Answer, AnsweredQuestion, At, ClientRequest, ConversationBound, Hash, InputId, JoinMode, Outcome,
    Question, QuestionKind, Seq, SessionId, StreamName,
};
use serde_json::{Map, Value};

use super::answer::{AnswerEnd, ReportedAnswer, read_answer};
use super::bindings::{Bindings, KeyUses};
use super::delivery::{DeliveryGuard, DeliveryState, REPEAT_WINDOW_MS};
use super::error::{OpenaiError, OpenaiResult};
use super::follower::TurnSteps;
use super::messages::Conversation;
use super::models::check_model_choice;
use crate::access::{Caller, Scope};
use crate::api::inputs::idempotency_key;
use crate::api::orders::check_answer;
use crate::api::sessions::{begin_new_session, require_own_key};
use crate::state::ServerState;

/// How many hex digits of a hash are in the key of a new session.
const KEY_HASH_DIGITS: usize = 16;
/// The answers to the question of a plan.
const ACCEPTS_PLAN: &str = "yes";
const DECLINES_PLAN: &str = "no";
/// A client that counts its retries means a request of at most this age.
const RETRY_WINDOW_MS: i64 = 3_600_000;

/// As [`REPEAT_WINDOW_MS`], after a turn that failed.
const FAILED_REPEAT_WINDOW_MS: i64 = 60_000;

/// The session that a request names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionReference {
    Key(String),
    Id(SessionId),
    /// After this turn.
    Response {
        session: SessionId,
        turn: u64,
    },
}

/// A request of either endpoint.
#[derive(Debug)]
pub(crate) struct IncomingRequest {
    pub(crate) caller: Caller,
    pub(crate) named: Option<SessionReference>,
    pub(crate) conversation: Conversation,
    /// The hash of the body.
    pub(crate) body: Hash,
    pub(crate) client_key: Option<String>,
    /// The client says that it sends the request again.
    pub(crate) is_counted_retry: bool,
    pub(crate) user: Option<String>,
    pub(crate) max_output_tokens: Option<u64>,
    pub(crate) unstored: bool,
    /// The model, as the client named it.
    pub(crate) model: Option<String>,
    pub(crate) background: bool,
    pub(crate) previous_response_id: Option<String>,
    pub(crate) metadata: Map<String, Value>,
}

/// A request whose input is on disk.
pub(crate) struct AcceptedRequest {
    pub(crate) session: Session,
    pub(crate) id: SessionId,
    /// The id of the request. A retry has the same.
    pub(crate) request: InputId,
    /// The turn that answers the request.
    turn: TurnLocator,
    /// The turn was open before, because the request answered its question.
    pub(crate) answered: Option<AnsweredQuestion>,
    pub(crate) delivery: DeliveryGuard,
}

impl AcceptedRequest {
    /// Follows the turn that answers the request.
    pub(crate) async fn follow(&self, state: &ServerState) -> OpenaiResult<TurnSteps> {
        TurnSteps::follow(&self.session, self.turn.clone(), state.shutdown()).await
    }
}

/// The idempotency key and the retry count of a client.
pub(crate) fn retry_headers(headers: &HeaderMap) -> OpenaiResult<(Option<String>, bool)> {
    let count =
        headers.get("x-stainless-retry-count").and_then(|count| count.to_str().ok()?.parse::<u64>().ok());
    Ok((idempotency_key(headers)?, count.is_some_and(|count| count > 0)))
}

/// Finds the session of a request, and puts the request's input into its inbox.
pub(crate) async fn accept_request(
    state: &ServerState,
    request: &IncomingRequest,
) -> OpenaiResult<AcceptedRequest> {
    let (journal, conversation) = (state.journal(), request.conversation.hash());
    let bindings = Bindings { journal: &*journal, token_id: &request.caller.token_id };
    let _conversation = state.deliveries().lock_conversation(bindings.name_of(conversation)).await;
    let key_uses = match &request.client_key {
        Some(key) => Some(bindings.uses_of(key).await?),
        None => None,
    };
    if let Some((bound, entry)) = find_repeated(state, &bindings, request, key_uses.as_ref()).await? {
        let _session = state.deliveries().lock_session(entry.id).await;
        let session = state.runtime().session(&entry.key).await?;
        return put_request(state, request, session, bound, !has_history(&entry)).await;
    }
    let chosen = choose_session(state, &bindings, request).await?;
    check_model_choice(state, &request.caller, request.model.as_deref(), chosen.entry()).await?;
    let (key, has_history) = match chosen {
        ChosenSession::Known(entry) => (entry.key.clone(), has_history(&entry)),
        ChosenSession::Fork { parent, at } => (fork_at(&bindings, request, &parent, at).await?, true),
        ChosenSession::New { key } => (key, false),
    };
    let id = name_session(&*journal, &key).await?;
    let _session = state.deliveries().lock_session(id).await;
    let session = state.runtime().session(&key).await?;
    let answers = if has_history { find_open_question(&session, request).await? } else { None };
    let bound = ConversationBound { session: id, input: InputId::generate(), body: request.body, answers };
    bindings.bind(conversation, &bound, key_uses.as_ref()).await?;
    put_request(state, request, session, bound, !has_history).await
}

/// Whether a session has more than its beginning.
fn has_history(entry: &SessionEntry) -> bool {
    entry.head.seq > 1 || entry.inbox_head > 0
}

/// The question that a request answers instead of sending an input. A plan's question belongs to no turn: its yes begins the
/// turn that carries the plan out, and everything else is the input of a turn that goes on planning.
async fn find_open_question(
    session: &Session,
    request: &IncomingRequest,
) -> OpenaiResult<Option<AnsweredQuestion>> {
    let open = session.open_questions().await?;
    let session_state = session.state().await?;
    if let (Some(turn), Some(asked)) =
        (&session_state.turn, open.iter().find(|open| open.kind != QuestionKind::Plan))
    {
        check_answer(&request.caller, asked, &read_as_answer(&request.conversation.input(), asked))?;
        return Ok(Some(AnsweredQuestion { question: asked.id, turn: turn.number, accepts_plan: false }));
    }
    let accepts = |plan: &&Question| read_as_answer(&request.conversation.input(), plan) == ACCEPTS_PLAN;
    let plan = open.iter().filter(|open| open.kind == QuestionKind::Plan).find(accepts);
    if plan.is_some() {
        request.caller.require(Scope::Admin, "accept a plan, because that changes the session's mode")?;
    }
    let turn = session_state.turn_count;
    Ok(plan.map(|plan| AnsweredQuestion { question: plan.id, turn, accepts_plan: true }))
}

/// Settles the question of a plan that the input does not accept, so that it counts as a no with these words as the reason.
async fn decline_plan(session: &Session) -> OpenaiResult<()> {
    let open = session.open_questions().await?;
    if let Some(plan) = open.iter().find(|open| open.kind == QuestionKind::Plan) {
        session.put_answer(plan.id, DECLINES_PLAN).await?;
    }
    Ok(())
}

/// Puts the input of a bound request into the inbox, unless it is there or the request answered a question.
async fn put_request(
    state: &ServerState,
    request: &IncomingRequest,
    session: Session,
    bound: ConversationBound,
    with_history: bool,
) -> OpenaiResult<AcceptedRequest> {
    let journal = state.journal();
    let ConversationBound { session: id, input, answers, .. } = bound;
    let delivery = state.deliveries().connect(id, input);
    if let Some(answered) = answers {
        let head = journal.head(&StreamName::session(id)).await?.seq;
        let open = session.open_questions().await?;
        if let Some(question) = open.iter().find(|open| open.id == answered.question) {
            session.put_answer(question.id, &read_as_answer(&request.conversation.input(), question)).await?;
        }
        if answered.accepts_plan {
            let settled = find_answered(&*journal, id, answered.question).await?;
            let after = settled.map_or(head, |settled| settled - 1);
            let turn = TurnLocator::new(TurnTarget::AcceptedPlan(answered.question), after);
            return Ok(AcceptedRequest { session, id, request: input, turn, answered: None, delivery });
        }
        let place = find_turn(&*journal, id, answered.turn).await?;
        let after = place.map_or(0, |place| place.before);
        let turn = TurnLocator::new(TurnTarget::Turn(answered.turn), after);
        return Ok(AcceptedRequest { session, id, request: input, turn, answered: Some(answered), delivery });
    }
    let key = inbox_key(input);
    let target = TurnTarget::Input(input);
    if let Some(after) = accepted_after(&*journal, id, &key).await? {
        let turn = TurnLocator::new(target, after);
        return Ok(AcceptedRequest { session, id, request: input, turn, answered: None, delivery });
    }
    begin_new_session(state, &request.caller, &session, id).await?;
    let message: UserMessage = request.conversation.input();
    let client = ClientRequest {
        token: request.caller.token.clone(),
        body: request.body,
        conversation: request.conversation.hash(),
        user: request.user.clone(),
        max_output_tokens: request.max_output_tokens,
        instructions: request.conversation.instructions(),
        history: request.conversation.untrusted_history().filter(|_| with_history),
        unstored: request.unstored,
        model: request.model.clone(),
        background: request.background,
        previous_response_id: request.previous_response_id.clone(),
        metadata: request.metadata.clone(),
    };
    decline_plan(&session).await?;
    let mut put = message.input(input, JoinMode::After);
    put.client = Some(Box::new(client));
    let accepted = session.put_with_images(put, message.blobs(), &key).await?;
    let turn = TurnLocator::new(target, accepted.after);
    Ok(AcceptedRequest { session, id, request: input, turn, answered: None, delivery })
}

/// The key of a request's input in the inbox.
fn inbox_key(input: InputId) -> String {
    format!("v1/{input}")
}

/// The answer to a question in the user's words: a yes, a no or a choice if it is exactly that, otherwise a no with these
/// words as its reason.
fn read_as_answer(message: &UserMessage, question: &Question) -> String {
    let text = message.text.trim();
    let words = ["yes", "no"].into_iter().chain(question.choices.iter().map(String::as_str));
    if let Some(word) = words.into_iter().find(|word| word.eq_ignore_ascii_case(text)) {
        return word.to_owned();
    }
    match Answer::parse(text) {
        // Every text answers a question of the agent or of a server.
        _ if question.kind.takes_text() => text.to_owned(),
        Answer::Text(text) => text.to_owned(),
        // A short form such as `y` means something at a keyboard only.
        _ => format!("The user answered {text:?}."),
    }
}

/// The earlier request that this one repeats, and its session.
async fn find_repeated(
    state: &ServerState,
    bindings: &Bindings<'_>,
    request: &IncomingRequest,
    key_uses: Option<&KeyUses>,
) -> OpenaiResult<Option<(ConversationBound, SessionEntry)>> {
    let journal = bindings.journal;
    if let Some(uses) = key_uses {
        let Some(bound) = uses.last.clone() else { return Ok(None) };
        if bound.body != request.body {
            let message = "this Idempotency-Key was used for another request; use a new one";
            return Err(OpenaiError::new(StatusCode::UNPROCESSABLE_ENTITY, "key_reused", message));
        }
        // If the session was deleted, the answer is gone, and the request is a new one.
        let Some(entry) = journal.session_with_id(bound.session).await? else { return Ok(None) };
        return Ok(Some((bound, usable(entry)?)));
    }
    for bound in bindings.newest(request.conversation.hash()).await? {
        if bound.body != request.body {
            continue;
        }
        let Some(entry) = journal.session_with_id(bound.session).await? else { continue };
        let is_elsewhere = match &request.named {
            Some(SessionReference::Key(key)) => *key != entry.key,
            Some(SessionReference::Id(id)) => *id != entry.id,
            _ => false,
        };
        if !is_elsewhere {
            return match is_retry(state, request, &bound).await? {
                true => Ok(Some((bound, usable(entry)?))),
                false => Ok(None),
            };
        }
    }
    Ok(None)
}

/// Refuses a session in the trash, as `/api` does.
fn usable(entry: SessionEntry) -> OpenaiResult<SessionEntry> {
    if entry.trashed { Err(OpenaiError::in_trash(&entry.key)) } else { Ok(entry) }
}

/// Whether a request with the same body is a retry of this one.
async fn is_retry(
    state: &ServerState,
    request: &IncomingRequest,
    bound: &ConversationBound,
) -> OpenaiResult<bool> {
    let (journal, made_at) = (state.journal(), bound.input.made_at());
    // Also after an answer that counts as delivered: it may have gone into a connection that the client no longer reads.
    if request.is_counted_retry && now().0 - made_at.0 < RETRY_WINDOW_MS {
        return Ok(true);
    }
    let deliveries = state.deliveries();
    let is_lost = match deliveries.state(bound.session, bound.input) {
        DeliveryState::Delivered | DeliveryState::Awaited => return Ok(false),
        DeliveryState::Lost => true,
        // It was delivered, or a later request of the session took its place here.
        DeliveryState::Unknown if made_at >= deliveries.began() => return Ok(false),
        DeliveryState::Unknown => false,
    };
    let Some(reported) = read_bound_answer(&*journal, bound).await? else { return Ok(true) };
    let Some(ended) = reported.ended else { return Ok(true) };
    // No earlier process has delivered the answer of a turn that ended in this one.
    let is_undelivered = is_lost || ended.at >= deliveries.began();
    Ok(is_undelivered && !deliveries.is_fetched(bound.session, reported.turn) && is_recent(ended, now()))
}

/// Whether a turn ended so short a time ago that a client which missed its answer still asks for it.
fn is_recent(ended: AnswerEnd, now: At) -> bool {
    let window = match ended.outcome {
        Outcome::Failed => FAILED_REPEAT_WINDOW_MS,
        _ => REPEAT_WINDOW_MS,
    };
    now.0 - ended.at.0 < window
}

/// The session that takes a new request.
enum ChosenSession {
    Known(SessionEntry),
    /// A fork of this session after this record.
    Fork {
        parent: SessionEntry,
        at: Seq,
    },
    New {
        key: String,
    },
}

impl ChosenSession {
    /// The session that has the conversation so far.
    fn entry(&self) -> Option<&SessionEntry> {
        match self {
            Self::Known(entry) | Self::Fork { parent: entry, .. } => Some(entry),
            Self::New { .. } => None,
        }
    }
}

async fn choose_session(
    state: &ServerState,
    bindings: &Bindings<'_>,
    request: &IncomingRequest,
) -> OpenaiResult<ChosenSession> {
    let journal = bindings.journal;
    match &request.named {
        Some(SessionReference::Key(key)) => match state.session_entry(key).await {
            Ok(entry) => Ok(ChosenSession::Known(usable(entry)?)),
            Err(problem) if problem.status == StatusCode::NOT_FOUND => {
                require_own_key(&request.caller, key)?;
                Ok(ChosenSession::New { key: key.clone() })
            }
            Err(problem) => Err(problem.into()),
        },
        Some(SessionReference::Id(id)) => {
            let entry = journal.session_with_id(*id).await?.ok_or_else(|| {
                OpenaiError::not_found("no_such_conversation", format!("there is no conversation conv_{id}"))
            })?;
            Ok(ChosenSession::Known(usable(entry)?))
        }
        Some(SessionReference::Response { session, turn }) => {
            let missing = || {
                let message = format!("there is no response resp_{session}_{turn}");
                OpenaiError::not_found("previous_response_not_found", message).about("previous_response_id")
            };
            let entry = usable(journal.session_with_id(*session).await?.ok_or_else(missing)?)?;
            let place = find_turn(journal, *session, *turn).await?.ok_or_else(missing)?;
            Ok(match place.ended.filter(|_| !place.is_last) {
                Some(at) => ChosenSession::Fork { parent: entry, at },
                None => ChosenSession::Known(entry),
            })
        }
        None => match find_conversation(bindings, request).await? {
            Some(chosen) => Ok(chosen),
            None => Ok(ChosenSession::New { key: new_key(bindings, request).await? }),
        },
    }
}

/// The session whose last turns are the messages that the client sent, the newest first. A fork if it went on since.
async fn find_conversation(
    bindings: &Bindings<'_>,
    request: &IncomingRequest,
) -> OpenaiResult<Option<ChosenSession>> {
    let Some((answered, last_answer)) = request.conversation.answered() else { return Ok(None) };
    let journal = bindings.journal;
    for bound in bindings.newest(answered).await? {
        let entry = journal.session_with_id(bound.session).await?.filter(|entry| !entry.trashed);
        let Some(entry) = entry else { continue };
        let reported = read_bound_answer(journal, &bound).await?;
        let Some(reported) = reported.filter(|reported| reported.text.trim() == last_answer) else {
            continue;
        };
        let place = find_turn(journal, bound.session, reported.turn).await?;
        let is_last = place.is_some_and(|place| place.is_last);
        match reported.ended.map(|ended| ended.seq) {
            _ if is_last => return Ok(Some(ChosenSession::Known(entry))),
            Some(at) => return Ok(Some(ChosenSession::Fork { parent: entry, at })),
            // The question was answered otherwise since.
            None => {}
        }
    }
    Ok(None)
}

/// What the client of a bound request was told; `None` if the answer is not complete.
async fn read_bound_answer(
    journal: &dyn Journal,
    bound: &ConversationBound,
) -> OpenaiResult<Option<ReportedAnswer>> {
    let session = bound.session;
    let Some(answered) = bound.answers else {
        let after = accepted_after(journal, session, &inbox_key(bound.input)).await?;
        let Some(after) = after else { return Ok(None) };
        return read_answer(journal, session, TurnLocator::new(TurnTarget::Input(bound.input), after)).await;
    };
    let Some(settled) = find_answered(journal, session, answered.question).await? else { return Ok(None) };
    if answered.accepts_plan {
        let target = TurnTarget::AcceptedPlan(answered.question);
        return read_answer(journal, session, TurnLocator::new(target, settled - 1)).await;
    }
    let rest = TurnLocator::new(TurnTarget::RestOfTurn(answered.turn), settled);
    read_answer(journal, session, rest).await
}

/// Forks a session at a record, under a key that a retry makes again.
async fn fork_at(
    bindings: &Bindings<'_>,
    request: &IncomingRequest,
    parent: &SessionEntry,
    at: Seq,
) -> OpenaiResult<String> {
    let key = new_key(bindings, request).await?;
    match fork_session(bindings.journal, &parent.key, Some(at), &key).await {
        Ok(_) => {}
        // Made by a request that was killed before its binding.
        Err(longhaul_agent::Error::Journal(JournalError::SessionExists { .. })) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(key)
}

/// The key of a new session: derived from the token and the conversation, so that a retry after a crash finds it. The
/// same conversation once more gets a number.
async fn new_key(bindings: &Bindings<'_>, request: &IncomingRequest) -> OpenaiResult<String> {
    let conversation = request.conversation.hash();
    // Not the conversation's hash alone: another token may get the same name later.
    let hash = Hash::of(bindings.name_of(conversation)).to_string();
    let key = format!("http:{}:{}", request.caller.token, &hash[..KEY_HASH_DIGITS]);
    Ok(match bindings.count(conversation).await? {
        0 => key,
        count => format!("{key}-{}", count + 1),
    })
}

#[cfg(test)]
#[path = "acceptance_tests.rs"]
mod tests;
