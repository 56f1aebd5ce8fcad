//! The tools: send to a session, read it, answer its questions, list sessions.

use longhaul_agent::{Error, Session, TurnLocator, TurnTarget};
use longhaul_journal::{SessionEntry, name_session};
use longhaul_protocol::{Answer, Input, InputId, JoinMode, QuestionId, QuestionKind, Seq};
use longhaul_transcript::{Update, page_text};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::dispatch::{McpClient, PendingResult, ResultOf, Work, answer_questions, complete};
use super::error::{McpError, McpResult};
use super::question::{check_agent_answer, question_json, question_text};
use super::request::{ClientContext, Revision};
use super::task::{TaskId, TurnTask};
use super::turn::{TurnReport, TurnStatus, TurnWait, WaitEnd, tool_result};
use crate::api::recorded_blocks::BlockReader;
use crate::api::session_summary::{SessionSummary, read_doing, summarise, summarise_doing};
use crate::api::sessions::{begin_new_session, newest_sessions, require_own_key};
use crate::problem::{ApiResult, Problem};

/// Sessions that a list has, the newest first.
const MAX_LISTED: usize = 100;
/// About how many blocks of a session to read at once, and the bytes that they may have together.
const READ_BLOCKS: usize = 50;
const MAX_READ_BYTES: usize = 32 << 10;
const MAX_KEY_BYTES: usize = 255;

/// The parameters of `tools/call`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallParams {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    /// What the server gave along with its questions, if the client repeats the call with the answers.
    #[serde(default)]
    request_state: Option<String>,
    #[serde(default)]
    input_responses: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SendArguments {
    session: String,
    text: String,
    key: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    session: String,
    before: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerArguments {
    session: String,
    question: String,
    answer: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListArguments {}

/// The tools, sorted by name.
pub(super) fn tool_list(revision: Revision) -> Value {
    let session = json!({"type": "string", "description": "Key or id of the session."});
    let mut send = tool(
        "session_send",
        "Send a message to a session and get the answer of its turn. A key that no session has begins a new one.",
        &json!({
            "session": session,
            "text": {"type": "string", "description": "What to do or to answer."},
            "key": {"type": "string", "description": "Makes the call safe to repeat: the same key with the same text is sent once, also after a restart."},
        }),
        &["session", "text"],
        &json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true}),
    );
    if revision == Revision::Handshake {
        send["execution"] = json!({"taskSupport": "optional"});
    }
    let reads = json!({"readOnlyHint": true, "openWorldHint": false});
    json!([
        tool(
            "session_answer",
            "Answer a question of a session, so that its turn goes on. Questions are for a person: give that person's answer.",
            &json!({
                "session": session,
                "question": {"type": "string", "description": "Id of the question."},
                "answer": {"type": "string", "description": "One of the question's choices, or any text. A text refuses an approval and is the reason."},
            }),
            &["session", "question", "answer"],
            &json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": true}),
        ),
        tool(
            "session_list",
            "List the sessions, the newest first, with what each is doing.",
            &json!({}),
            &[],
            &reads
        ),
        tool(
            "session_read",
            "Read a session: what it is doing, its open questions, and the end of its conversation.",
            &json!({
                "session": session,
                "before": {"type": "integer", "minimum": 1, "description": "Read what came before this record: `next` of the page before."},
            }),
            &["session"],
            &reads,
        ),
        send,
    ])
}

fn tool(name: &str, description: &str, properties: &Value, required: &[&str], annotations: &Value) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": properties, "required": required, "additionalProperties": false},
        "annotations": annotations,
    })
}

/// Calls a tool. What goes wrong in it is a result for the model; only a call that names no tool is an error of the protocol.
pub(super) async fn call_tool(
    client: &McpClient,
    context: &ClientContext,
    CallParams { name, arguments, request_state, input_responses }: CallParams,
) -> McpResult<Work> {
    if let Some(task) = request_state.filter(|_| name == "session_send") {
        return continue_call(client, &task, &input_responses).await;
    }
    let arguments = Value::Object(arguments);
    let called = match name.as_str() {
        "session_answer" => answer(client, context, arguments).await,
        "session_list" => list(client, arguments).await,
        "session_read" => read(client, arguments).await,
        "session_send" => send(client, context, arguments).await,
        _ => {
            let reason = format!("there is no tool {name:?}; tools/list names them");
            return Err(McpError::params("tools/call", reason));
        }
    };
    Ok(match called {
        Ok(Work::Done(result)) => Work::Done(complete(context, result)),
        Ok(wait) => wait,
        Err(problem) => Work::Done(complete(context, tool_result(problem.detail, None, true))),
    })
}

fn parse<T: for<'de> Deserialize<'de>>(tool: &str, arguments: Value) -> ApiResult<T> {
    let wrong = |error: serde_json::Error| {
        Problem::bad_request("invalid_arguments", format!("the arguments of {tool} are wrong: {error}"))
    };
    serde_json::from_value(arguments).map_err(wrong)
}

async fn send(client: &McpClient, context: &ClientContext, arguments: Value) -> ApiResult<Work> {
    let SendArguments { session: name, text, key } = parse("session_send", arguments)?;
    if text.trim().is_empty() {
        return Err(Problem::bad_request("invalid_arguments", "text is empty"));
    }
    let key = match key {
        Some(key) if key.trim().is_empty() || key.len() > MAX_KEY_BYTES => {
            let detail = format!("key: use a text of 1 to {MAX_KEY_BYTES} bytes");
            return Err(Problem::bad_request("invalid_arguments", detail));
        }
        Some(key) => format!("mcp/{key}"),
        // A task finds its input by its position in the inbox, and where to begin reading by what is stored under its key.
        None => format!("mcp-once/{}", InputId::generate()),
    };
    let session = find_or_begin(client, &name).await?;
    // A turn of its own, so that its answer is not mixed with the answer to a person.
    let mut input = Input::new(InputId::generate(), text, JoinMode::After);
    input.sender = client.sender();
    let accepted = session.put_once(input, &key).await.map_err(|error| match error {
        Error::KeyReused { .. } => {
            let detail = "key: it was used before with another text; use a new key for a new message";
            Problem::bad_request("key_reused", detail)
        }
        error => error.into(),
    })?;
    if context.wants_task
        && let Some(id) = session.id()
    {
        let id = TaskId { session: id, seq: accepted.seq };
        let task = TurnTask::find(&client.state, &id.to_string()).await;
        return match task {
            Ok(task) => Ok(Work::Done(task.created(context))),
            Err(error) => Err(Problem::conflict("no_such_task", error.error.message)),
        };
    }
    let locator = TurnLocator::new(TurnTarget::Input(accepted.id), accepted.after);
    let of =
        session.id().map_or(ResultOf::Call, |id| ResultOf::Send(TaskId { session: id, seq: accepted.seq }));
    let turn = TurnWait { session, locator, turn: None, until: WaitEnd::Question };
    Ok(Work::Wait(Box::new(PendingResult { turn, of })))
}

/// Continues a call whose turn had questions, with the client's answers. The message is not sent again.
async fn continue_call(client: &McpClient, task: &str, responses: &Map<String, Value>) -> McpResult<Work> {
    let task = TurnTask::find(&client.state, task).await?;
    answer_questions(client, "tools/call", &task, responses).await?;
    let (locator, of) = (task.locator(), ResultOf::Send(task.id));
    let turn = TurnWait { session: task.session, locator, turn: None, until: WaitEnd::Question };
    Ok(Work::Wait(Box::new(PendingResult { turn, of })))
}

/// The session with this key or id, or a new one with this key.
async fn find_or_begin(client: &McpClient, name: &str) -> ApiResult<Session> {
    let state = &client.state;
    if let Some(entry) = find(client, name).await?
        && (entry.head.seq > 0 || entry.inbox_head > 0)
    {
        return Ok(state.runtime().session_of(&entry));
    }
    require_own_key(&client.caller, name)?;
    let id = name_session(&*state.journal(), name).await?;
    let session = state.runtime().session(name).await?;
    begin_new_session(state, &client.caller, &session, id).await?;
    Ok(session)
}

/// The session with this key or id, unless it is in the trash.
async fn find(client: &McpClient, name: &str) -> ApiResult<Option<SessionEntry>> {
    match client.state.session_entry(name).await {
        Ok(entry) if entry.trashed => Err(Problem::in_trash(&entry.key)),
        Ok(entry) => Ok(Some(entry)),
        Err(problem) if problem.code == "no_such_session" => Ok(None),
        Err(problem) => Err(problem),
    }
}

async fn find_existing(client: &McpClient, name: &str) -> ApiResult<SessionEntry> {
    let missing = || {
        let detail = format!("no session has the key or id {name:?}; session_list names them");
        Problem::not_found("no_such_session", detail)
    };
    find(client, name).await?.ok_or_else(missing)
}

async fn answer(client: &McpClient, context: &ClientContext, arguments: Value) -> ApiResult<Work> {
    let AnswerArguments { session: name, question, answer } = parse("session_answer", arguments)?;
    let session = client.state.runtime().session_of(&find_existing(client, &name).await?);
    let id: QuestionId = question.parse().map_err(|_| {
        let detail = format!("there is no question {question:?}; session_read shows those that are open");
        Problem::not_found("no_such_question", detail)
    })?;
    let turn = session.state().await?.turn.map(|turn| turn.number);
    let open = session.open_questions().await?;
    let asked = open.iter().find(|open| open.id == id);
    asked.map_or(Ok(()), |asked| check_agent_answer(&client.caller, asked, &answer))?;
    let kind = asked.map(|open| open.kind);
    let acknowledged = || {
        let data = json!({"session": session.key(), "question": id.to_string(), "answer": answer});
        Ok(Work::Done(tool_result("The answer is recorded.", Some(data), false)))
    };
    let order = match session.put_answer_of(client.sender(), id, &answer).await {
        Ok(order) => order,
        // The client sends its answer again, because it did not learn that the first one arrived.
        Err(error @ Error::QuestionSettled { .. }) => {
            return match session.recorded_answer(id, &answer).await? {
                Some(_) => acknowledged(),
                None => Err(error.into()),
            };
        }
        Err(error) => return Err(error.into()),
    };
    let target = match (kind, turn) {
        // It has the task of the turn.
        _ if context.revision == Revision::Stateless && context.wants_task => return acknowledged(),
        (Some(QuestionKind::Plan), _) if Answer::parse(&answer) != Answer::Yes => return acknowledged(),
        (Some(QuestionKind::Plan), _) => TurnTarget::AcceptedPlan(id),
        (_, Some(turn)) => TurnTarget::RestOfTurn(turn),
        (_, None) => return acknowledged(),
    };
    let others: Vec<_> = open.into_iter().filter(|open| open.id != id).collect();
    if !others.is_empty() {
        let report =
            TurnReport { session: session.key().to_owned(), turn, status: TurnStatus::Asking(others) };
        return Ok(Work::Done(report.result()));
    }
    let locator = TurnLocator::new(target, order.after);
    let wait = TurnWait { session, locator, turn, until: WaitEnd::Question };
    Ok(Work::Wait(Box::new(PendingResult { turn: wait, of: ResultOf::Call })))
}

async fn list(client: &McpClient, arguments: Value) -> ApiResult<Work> {
    let ListArguments {} = parse("session_list", arguments)?;
    let (journal, runtime) = (client.state.journal(), client.state.runtime());
    let mut sessions: Vec<SessionSummary> = Vec::new();
    let all = newest_sessions(&*journal, None).await?;
    for entry in all.iter().filter(|entry| !entry.trashed).take(MAX_LISTED) {
        let doing = read_doing(&*journal, entry).await?;
        sessions.push(summarise_doing(runtime, entry, doing).await);
    }
    let lines: Vec<String> = sessions.iter().map(summary_line).collect();
    let text = if lines.is_empty() { "There are no sessions.".to_owned() } else { lines.join("\n") };
    Ok(Work::Done(tool_result(text, Some(json!({"sessions": sessions})), false)))
}

/// `http:alice: working (running cargo test) - Fix the build`.
fn summary_line(summary: &SessionSummary) -> String {
    let state = json!(summary.state).as_str().unwrap_or_default().to_owned();
    let doing = summary.doing.as_ref().map(|doing| format!(" ({doing})")).unwrap_or_default();
    let title = summary.title.as_ref().map(|title| format!(" - {title}")).unwrap_or_default();
    format!("{}: {state}{doing}{title}", summary.key)
}

async fn read(client: &McpClient, arguments: Value) -> ApiResult<Work> {
    let ReadArguments { session: name, before } = parse("session_read", arguments)?;
    let entry = find_existing(client, &name).await?;
    let (journal, state) = (client.state.journal(), &client.state);
    let summary = summarise(state.runtime(), &entry).await?;
    let questions = state.runtime().session_of(&entry).open_questions().await?;
    let end = before.map_or(entry.head.seq, |before| before.saturating_sub(1).min(entry.head.seq));
    let page = read_page(&BlockReader::new(&*journal, entry.id, state.fold_starts()), end).await?;
    let mut parts = vec![summary_line(&summary)];
    parts.extend(page.next.map(|next| format!("[older: session_read with before = {next}]")));
    parts.push(page.text);
    if before.is_none() {
        parts.extend(questions.iter().map(question_text));
    }
    parts.retain(|part| !part.is_empty());
    let questions: Vec<Value> = questions.iter().map(question_json).collect();
    let data = json!({"session": summary, "questions": questions, "next": page.next});
    Ok(Work::Done(tool_result(parts.join("\n"), Some(data), false)))
}

/// A part of a conversation, as text.
struct ReadPage {
    text: String,
    /// Where the part before it ends; `None` at the beginning.
    next: Option<Seq>,
}

/// The blocks that end with a record, as many as fit.
async fn read_page(reader: &BlockReader<'_>, end: Seq) -> ApiResult<ReadPage> {
    if end == 0 {
        return Ok(ReadPage { text: String::new(), next: None });
    }
    let first = reader.find_page_start(end, READ_BLOCKS).await?;
    let span = reader.blocks_after(first - 1, end, usize::MAX).await?;
    let mut next = (first > 1).then_some(first);
    let (mut texts, mut bytes): (Vec<String>, usize) = (Vec::new(), 0);
    for ended in span.into_iter().flat_map(|span| span.ended).rev() {
        let text = page_text(&Update::Ended(ended.block));
        if bytes + text.len() > MAX_READ_BYTES && !texts.is_empty() {
            next = Some(ended.seq + 1);
            break;
        }
        bytes += text.len();
        texts.push(text);
    }
    texts.reverse();
    Ok(ReadPage { text: texts.concat().trim().to_owned(), next })
}
