//! Event streams of one session and of all.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use hyper::{HeaderMap, Method};
use longhaul_agent::attend;
use longhaul_journal::record_at;
use longhaul_protocol::{Event, Seq, StreamName};
use schemars::JsonSchema;
use serde::Deserialize;

use super::named_session::NamedSession;
use crate::access::{Access, Caller, Scope};
use crate::body::Query;
use crate::events::body::event_stream;
use crate::events::overview::SessionMessage;
use crate::events::stream::{StreamContext, write_stream};
use crate::problem::{ApiResult, Problem};
use crate::route::Route;
use crate::state::ServerState;

const LAST_EVENT_ID: &str = "Last-Event-ID";

pub(crate) fn routes() -> Vec<Route> {
    let read = Access::Token(Scope::Read);
    vec![
        Route::new(Method::GET, "/api/sessions/{key}/events", read, "Follow a session", follow_session)
            .query::<FollowQuery>()
            .header(LAST_EVENT_ID, "The last id that the client has. It counts before `after` and `from`.")
            .answers_events::<Event>("Server-sent events. Each data is an Event, its id the event's seq."),
        Route::new(Method::GET, "/api/events", read, "Follow all sessions in short", follow_overview)
            .query::<OverviewQuery>()
            .answers_events::<SessionMessage>(
                "Server-sent events: one for each active or recent session, then changes.",
            ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FollowQuery {
    /// The last record that the client has. Without it, the stream begins now.
    after: Option<u64>,
    /// `start`: the whole session.
    from: Option<FollowFrom>,
    /// `true`: also an event named `ping` with the data `{}`, at once and then every 15 seconds. A page that gets none for longer
    /// reconnects.
    ping: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OverviewQuery {
    /// As for the events of one session.
    ping: Option<bool>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FollowFrom {
    Start,
}

async fn follow_session(
    State(state): State<ServerState>,
    Extension(caller): Extension<Caller>,
    NamedSession(entry): NamedSession,
    Query(query): Query<FollowQuery>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let head = entry.head.seq;
    let after = match (last_event_id(&headers)?, query.after, query.from) {
        (Some(after), _, _) | (None, Some(after), _) => after,
        (None, None, Some(FollowFrom::Start)) => 0,
        (None, None, None) => head,
    };
    if after > head {
        return Err(Problem::seq_ahead(after, &entry.key, head));
    }
    let streams = state.streams();
    let follower = streams.followers.count(&caller)?;
    let feed = streams.feeds.of_session(state.runtime(), &entry.key, entry.id, after, head);
    let joined = feed.log().join(after);
    // A client that has the headers of the answer sees every event of what it does next.
    feed.wait_subscribed().await;
    // Otherwise the client would come back for the same end again and again.
    if let Some(problem) = feed.log().failure() {
        return Err(problem);
    }
    if after < head {
        record_at(&*state.journal(), &StreamName::session(entry.id), after + 1).await?;
    }
    let session = state.runtime().session_of(&entry);
    let attendance = (caller.scope >= Scope::Act).then(|| attend(&session)).flatten();
    let session = Some(session);
    let (writer, body) = state.written_body();
    let (catch_ups, has_pings) = (streams.catch_ups.clone(), query.ping == Some(true));
    let context = StreamContext { session, catch_ups, has_pings, follower, attendance };
    tokio::spawn(write_stream(writer, feed, joined, context));
    Ok(event_stream(body))
}

async fn follow_overview(
    State(state): State<ServerState>,
    Extension(caller): Extension<Caller>,
    Query(query): Query<OverviewQuery>,
) -> ApiResult<Response> {
    let streams = state.streams();
    let follower = streams.followers.count(&caller)?;
    let (feed, joined) = streams.overview.join(state.runtime()).await?;
    let (writer, body) = state.written_body();
    let (catch_ups, has_pings) = (streams.catch_ups.clone(), query.ping == Some(true));
    let context = StreamContext { session: None, catch_ups, has_pings, follower, attendance: None };
    tokio::spawn(write_stream(writer, feed, joined, context));
    Ok(event_stream(body))
}

fn last_event_id(headers: &HeaderMap) -> ApiResult<Option<Seq>> {
    let Some(value) = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty()) else { return Ok(None) };
    let seq = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    seq.map(Some).ok_or_else(|| {
        Problem::bad_request("invalid_last_event_id", "Last-Event-ID: send the seq of an event, a number")
    })
}
