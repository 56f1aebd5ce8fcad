//! Which session a request belongs to, and whether it is a retry.
//!
//! A request is a repetition of the newest request with the same body and conversation if the client's `Idempotency-Key`
//! says so, or if its first answer did not reach the client: the connection is gone, or the client counts its retries.
//! A repetition is answered by the turn of the first request. Every other request makes an input.

use axum::http::HeaderMap;
use hyper::StatusCode;
use longhaul_agent::fork::fork_session;
use longhaul_agent::{Session, UserMessage};
use longhaul_journal::{Error as JournalError, Journal, SessionEntry, name_session};
use longhaul_protocol::{
    Answer, AnsweredQuestion, ClientRequest, ConversationBound, Hash, InputId, JoinMode, Question,
    QuestionKind, Seq, SessionId, StreamName,
};
use serde_json::{Map, Value};

use super::bindings::Bindings;
use super::delivery::{DeliveryGuard, DeliveryState};
use super::error::{OpenaiError, OpenaiResult};
use super::follower::{ToldAnswer, TurnFollower, find_answered, find_input, find_turn, read_answer};
use super::messages::Conversation;
use super::turn::{TurnFold, TurnTarget};
use crate::state::ServerState;

/// How many hex digits of the conversation's hash are in the key of a new session.
const KEY_HASH_DIGITS: usize = 16;
/// The answers to the question of a plan.
const ACCEPTS_PLAN: &str = "yes";
const DECLINES_PLAN: &str = "no";
/// A client that counts its retries means a request of at most this age.
const RETRY_WINDOW_MS: i64 = 3_600_000;

/// The session that a request names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NamedSession {
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
pub(crate) struct Incoming {
    pub(crate) token: String,
    pub(crate) named: Option<NamedSession>,
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
pub(crate) struct Placed {
    pub(crate) session: Session,
    pub(crate) id: SessionId,
    /// The id of the request. A retry has the same.
    pub(crate) request: InputId,
    target: TurnTarget,
    /// A record before everything that comes of the request.
    pub(crate) after: Seq,
    /// The turn was open before, because the request answered its question.
    pub(crate) answered: Option<AnsweredQuestion>,
    pub(crate) delivery: DeliveryGuard,
}

impl Placed {
    /// Follows the turn that answers the request.
    pub(crate) async fn follow(&self, state: &ServerState) -> OpenaiResult<TurnFollower> {
        let fold = TurnFold::new(self.target);
        TurnFollower::start(self.session.clone(), self.after, fold, state.shutdown()).await
    }
}

/// The idempotency key and the retry count of a client.
pub(crate) fn retry_headers(headers: &HeaderMap) -> (Option<String>, bool) {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let count = text("x-stainless-retry-count").and_then(|count| count.parse::<u64>().ok());
    (text("idempotency-key").map(str::to_owned), count.is_some_and(|count| count > 0))
}

/// Finds the session of a request, and puts the request's input into its inbox.
pub(crate) async fn place(state: &ServerState, request: &Incoming) -> OpenaiResult<Placed> {
    let _placing = state.deliveries().lock_placing().await;
    let journal = state.journal();
    let bindings = Bindings { journal: &*journal, token: &request.token };
    if let Some((bound, entry)) = find_repeated(state, &bindings, request).await? {
        let session = state.runtime().session(&entry.key).await?;
        return put_request(state, request, session, bound, false).await;
    }
    let chosen = choose_session(state, &bindings, request).await?;
    let id = name_session(&*journal, &chosen.key).await?;
    let session = state.runtime().session(&chosen.key).await?;
    let answers = if chosen.has_history { find_open_question(&session, request).await? } else { None };
    let bound = ConversationBound { session: id, input: InputId::generate(), body: request.body, answers };
    bindings.bind(request.conversation.hash(), &bound, request.client_key.as_deref()).await?;
    put_request(state, request, session, bound, !chosen.has_history).await
}

/// The question that a request answers instead of sending an input. A plan's question belongs to no turn: its yes begins the
/// turn that carries the plan out, and everything else is the input of a turn that goes on planning.
async fn find_open_question(session: &Session, request: &Incoming) -> OpenaiResult<Option<AnsweredQuestion>> {
    let open = session.open_questions().await?;
    let session_state = session.state().await?;
    if let (Some(turn), Some(asked)) =
        (&session_state.turn, open.iter().find(|open| open.kind != QuestionKind::Plan))
    {
        return Ok(Some(AnsweredQuestion { question: asked.id, turn: turn.number, accepts_plan: false }));
    }
    let accepts = |plan: &&Question| read_as_answer(&request.conversation.input(), plan) == ACCEPTS_PLAN;
    let plan = open.iter().filter(|open| open.kind == QuestionKind::Plan).find(accepts);
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
    request: &Incoming,
    session: Session,
    bound: ConversationBound,
    with_history: bool,
) -> OpenaiResult<Placed> {
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
            let target = TurnTarget::AcceptedPlan(answered.question);
            return Ok(Placed { session, id, request: input, target, after, answered: None, delivery });
        }
        let place = find_turn(&*journal, id, answered.turn).await?;
        let after = place.map_or(0, |place| place.before);
        let target = TurnTarget::Turn(answered.turn);
        return Ok(Placed { session, id, request: input, target, after, answered: Some(answered), delivery });
    }
    let key = format!("v1/{input}");
    let target = TurnTarget::Input(input);
    if journal.find(&StreamName::inbox(id), &key).await?.is_some() {
        let head = journal.head(&StreamName::session(id)).await?.seq;
        let after = find_input(&*journal, id, input).await?.unwrap_or(head);
        return Ok(Placed { session, id, request: input, target, after, answered: None, delivery });
    }
    let message: UserMessage = request.conversation.input();
    let client = ClientRequest {
        token: request.token.clone(),
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
    Ok(Placed { session, id, request: input, target, after: accepted.after, answered: None, delivery })
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
        Answer::Text(text) => text.to_owned(),
        // A short form such as `y` means something at a keyboard only.
        _ => format!("The user answered {text:?}."),
    }
}

/// The earlier request that this one repeats.
async fn find_repeated(
    state: &ServerState,
    bindings: &Bindings<'_>,
    request: &Incoming,
) -> OpenaiResult<Option<(ConversationBound, SessionEntry)>> {
    let journal = bindings.journal;
    if let Some(key) = &request.client_key {
        let Some(bound) = bindings.of_client_key(key).await? else { return Ok(None) };
        if bound.body != request.body {
            let message = "this Idempotency-Key was used for another request; use a new one";
            return Err(OpenaiError::new(StatusCode::UNPROCESSABLE_ENTITY, "key_reused", message));
        }
        let entry = journal.session_with_id(bound.session).await?;
        return Ok(entry.map(|entry| (bound, entry)));
    }
    for bound in bindings.newest(request.conversation.hash()).await? {
        if bound.body != request.body {
            continue;
        }
        let Some(entry) = journal.session_with_id(bound.session).await? else { continue };
        let is_elsewhere = match &request.named {
            Some(NamedSession::Key(key)) => *key != entry.key,
            Some(NamedSession::Id(id)) => *id != entry.id,
            _ => false,
        };
        if !is_elsewhere {
            let is_retry = is_retry(state, request, &bound).await?;
            return Ok(is_retry.then_some((bound, entry)));
        }
    }
    Ok(None)
}

/// Whether a request with the same body is a retry of this one.
async fn is_retry(state: &ServerState, request: &Incoming, bound: &ConversationBound) -> OpenaiResult<bool> {
    let journal = state.journal();
    match state.deliveries().state(bound.session, bound.input) {
        DeliveryState::Delivered => return Ok(false),
        DeliveryState::Lost => return Ok(true),
        DeliveryState::Awaited => return Ok(request.is_counted_retry),
        DeliveryState::Unknown => {}
    }
    let began = state.deliveries().began();
    if request.is_counted_retry && began.0 - bound.input.made_at().0 < RETRY_WINDOW_MS {
        return Ok(true);
    }
    // A later request of the session took its place here.
    if bound.input.made_at() >= began {
        return Ok(false);
    }
    // No earlier process has delivered the answer of a turn that ended in this one.
    let told = read_bound_answer(&*journal, bound).await?;
    let Some(ended) = told.and_then(|told| told.ended) else { return Ok(true) };
    let record = longhaul_journal::record_at(&*journal, &StreamName::session(bound.session), ended).await?;
    Ok(record.is_some_and(|record| record.at >= began))
}

/// The session that takes a new request.
struct ChosenSession {
    key: String,
    /// The session has the conversation up to the input.
    has_history: bool,
}

async fn choose_session(
    state: &ServerState,
    bindings: &Bindings<'_>,
    request: &Incoming,
) -> OpenaiResult<ChosenSession> {
    let journal = bindings.journal;
    let of_entry =
        |entry: &SessionEntry| ChosenSession { key: entry.key.clone(), has_history: entry.head.seq > 0 };
    match &request.named {
        Some(NamedSession::Key(key)) => match state.session_entry(key).await {
            Ok(entry) => Ok(of_entry(&entry)),
            Err(problem) if problem.status == StatusCode::NOT_FOUND => {
                Ok(ChosenSession { key: key.clone(), has_history: false })
            }
            Err(problem) => Err(problem.into()),
        },
        Some(NamedSession::Id(id)) => {
            let entry = journal.session_with_id(*id).await?;
            let missing = || {
                OpenaiError::not_found("no_such_conversation", format!("there is no conversation conv_{id}"))
            };
            entry.as_ref().map(of_entry).ok_or_else(missing)
        }
        Some(NamedSession::Response { session, turn }) => {
            let missing = || {
                let message = format!("there is no response resp_{session}_{turn}");
                OpenaiError::not_found("previous_response_not_found", message).about("previous_response_id")
            };
            let entry = journal.session_with_id(*session).await?.ok_or_else(missing)?;
            let place = find_turn(journal, *session, *turn).await?.ok_or_else(missing)?;
            match place.ended.filter(|_| !place.is_last) {
                Some(ended) => fork_at(bindings, request, &entry, ended).await,
                None => Ok(of_entry(&entry)),
            }
        }
        None => match find_conversation(bindings, request).await? {
            Some(chosen) => Ok(chosen),
            None => Ok(ChosenSession { key: new_key(bindings, request).await?, has_history: false }),
        },
    }
}

/// The session whose last turns are the messages that the client sent, the newest first. A fork if it went on since.
async fn find_conversation(
    bindings: &Bindings<'_>,
    request: &Incoming,
) -> OpenaiResult<Option<ChosenSession>> {
    let Some((answered, last_answer)) = request.conversation.answered() else { return Ok(None) };
    let journal = bindings.journal;
    for bound in bindings.newest(answered).await? {
        let entry = journal.session_with_id(bound.session).await?.filter(|entry| !entry.trashed);
        let Some(entry) = entry else { continue };
        let told = read_bound_answer(journal, &bound).await?;
        let Some(told) = told.filter(|told| told.text.trim() == last_answer) else { continue };
        let place = find_turn(journal, bound.session, told.turn).await?;
        let is_last = place.is_some_and(|place| place.is_last);
        match told.ended {
            _ if is_last => return Ok(Some(ChosenSession { key: entry.key, has_history: true })),
            Some(ended) => return fork_at(bindings, request, &entry, ended).await.map(Some),
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
) -> OpenaiResult<Option<ToldAnswer>> {
    let session = bound.session;
    let Some(answered) = bound.answers else {
        let Some(after) = find_input(journal, session, bound.input).await? else { return Ok(None) };
        return read_answer(journal, session, after, TurnFold::new(TurnTarget::Input(bound.input))).await;
    };
    let Some(settled) = find_answered(journal, session, answered.question).await? else { return Ok(None) };
    if answered.accepts_plan {
        let fold = TurnFold::new(TurnTarget::AcceptedPlan(answered.question));
        return read_answer(journal, session, settled - 1, fold).await;
    }
    read_answer(journal, session, settled, TurnFold::within_turn(answered.turn)).await
}

/// Forks a session at a record, under a key that a retry makes again.
async fn fork_at(
    bindings: &Bindings<'_>,
    request: &Incoming,
    parent: &SessionEntry,
    at: Seq,
) -> OpenaiResult<ChosenSession> {
    let key = new_key(bindings, request).await?;
    match fork_session(bindings.journal, &parent.key, Some(at), &key).await {
        Ok(_) => {}
        // Made by a request that was killed before its binding.
        Err(longhaul_agent::Error::Journal(JournalError::SessionExists { .. })) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(ChosenSession { key, has_history: true })
}

/// The key of a new session: derived from the token and the conversation, so that a retry after a crash finds it. The
/// same conversation once more gets a number.
async fn new_key(bindings: &Bindings<'_>, request: &Incoming) -> OpenaiResult<String> {
    let conversation = request.conversation.hash();
    let digits = &conversation.to_string()[..KEY_HASH_DIGITS];
    let key = format!("http:{}:{digits}", bindings.token);
    Ok(match bindings.count(conversation).await? {
        0 => key,
        count => format!("{key}-{}", count + 1),
    })
}
