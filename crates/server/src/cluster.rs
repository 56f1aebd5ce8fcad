//! What nodes of a cluster do for each other: wakes and live events. The other end is the agent's `HttpNodeLink`.
//!
//! The routes are there only if the server has the cluster's token. That token alone opens them, and it opens nothing else. A
//! request names a process, because a node may have several; one that this node does not have is 409, and the other node goes on
//! without it. A wake is a hint and changes nothing. The lines of a subscription are those of the holder, with an empty line
//! while it is silent.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use hyper::header::CONTENT_TYPE;
use hyper::{Method, StatusCode};
use longhaul_agent::ClusterToken;
use longhaul_journal::{Holder, Subscription};
use longhaul_protocol::StreamName;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::access::Access;
use crate::body::read_json;
use crate::events::body::{BodyWriter, COMMENT_INTERVAL, WriterStop};
use crate::problem::{ApiResult, Problem};
use crate::route::Route;
use crate::state::ServerState;

/// A hundred names of streams are a tenth of this.
const MAX_BODY_BYTES: usize = 64 << 10;
/// The streams of one wake.
const MAX_STREAMS: usize = 100;
/// The most streams of sessions that other nodes follow here at once. A node needs one for each session that its clients follow.
const MAX_FOLLOWERS: usize = 960;
/// Lines are collected up to this many bytes and then sent.
const SEND_BATCH_BYTES: usize = 64 << 10;
const JSON_LINES: &str = "application/x-ndjson";

/// What a node of a cluster needs to serve the others.
pub(crate) struct ClusterAccess {
    token: blake3::Hash,
    followers: Arc<Semaphore>,
}

impl ClusterAccess {
    pub(crate) fn new(token: &ClusterToken) -> Self {
        let followers = Arc::new(Semaphore::new(MAX_FOLLOWERS));
        Self { token: blake3::hash(token.text().as_bytes()), followers }
    }

    /// Whether this is the cluster's token. blake3 compares hashes in constant time.
    pub(crate) fn has_token(&self, presented: &str) -> bool {
        self.token == blake3::hash(presented.as_bytes())
    }
}

/// The process that a request is meant for, as the leases name it.
#[derive(Debug, Deserialize, JsonSchema)]
struct ProcessName {
    host: String,
    boot: String,
    pid_namespace: String,
    pid: u32,
    started: u64,
    socket: String,
}

impl From<ProcessName> for Holder {
    fn from(process: ProcessName) -> Self {
        let ProcessName { host, boot, pid_namespace, pid, started, socket } = process;
        Self { host, boot, pid_namespace, pid, started, socket }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct WakeRequest {
    /// The process to wake.
    holder: ProcessName,
    /// The streams that have something to do. None only asks whether the node has the process.
    #[schemars(with = "Vec<String>", length(max = 100))]
    streams: Vec<StreamName>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct FollowRequest {
    /// The process that holds the stream.
    holder: ProcessName,
    #[schemars(with = "String")]
    stream: StreamName,
}

pub(crate) fn routes() -> Vec<Route> {
    let no_process = "This node does not have the process, or the process can't be reached.";
    let wake = "For other nodes: wakes a process of this node";
    let follow = "For other nodes: the live events of a stream that a process of this node holds";
    vec![
        Route::new(Method::POST, "/cluster/wake", Access::Cluster, wake, wake_process)
            .body::<WakeRequest>()
            .answers_empty(StatusCode::NO_CONTENT, "The process was woken, once for each stream.")
            .fails(StatusCode::CONFLICT, no_process),
        Route::new(Method::POST, "/cluster/follow", Access::Cluster, follow, follow_stream)
            .body::<FollowRequest>()
            .answers_raw(JSON_LINES, "Lines of JSON as they come; an empty one while there is nothing.")
            .fails(StatusCode::CONFLICT, no_process),
    ]
}

async fn wake_process(State(state): State<ServerState>, request: Request) -> ApiResult<StatusCode> {
    let WakeRequest { holder, streams } = read_json(request, &state, MAX_BODY_BYTES).await?;
    if streams.len() > MAX_STREAMS {
        let detail = format!("streams: at most {MAX_STREAMS} in one request");
        return Err(Problem::bad_request("invalid_body", detail));
    }
    match state.journal().wake_here(&holder.into(), &streams).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(process_not_here()),
    }
}

async fn follow_stream(State(state): State<ServerState>, request: Request) -> ApiResult<Response> {
    let FollowRequest { holder, stream } = read_json(request, &state, MAX_BODY_BYTES).await?;
    let permit = count_follower(&state)?;
    let subscription = state.journal().subscribe_here(&holder.into(), &stream).await?;
    let subscription = subscription.ok_or_else(process_not_here)?;
    let (writer, body) = state.written_body();
    tokio::spawn(send_lines(writer, subscription, permit));
    Ok(([(CONTENT_TYPE, JSON_LINES)], body).into_response())
}

fn process_not_here() -> Problem {
    Problem::conflict("process_not_here", "this node has no such process, or it can't be reached")
}

fn count_follower(state: &ServerState) -> ApiResult<OwnedSemaphorePermit> {
    let room = state.cluster_access().map(|cluster| Arc::clone(&cluster.followers));
    room.and_then(|room| room.try_acquire_owned().ok()).ok_or_else(|| {
        let detail = "too many streams of this node are followed; their records are in the journal";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_followers", detail)
    })
}

/// Sends the lines of a subscription until either end is gone or the server stops.
async fn send_lines(mut writer: BodyWriter, mut subscription: Subscription, _permit: OwnedSemaphorePermit) {
    let mut silence = interval_at(Instant::now() + COMMENT_INTERVAL, COMMENT_INTERVAL);
    silence.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let sent = async {
        loop {
            let line = tokio::select! {
                line = subscription.next() => line,
                _ = silence.tick() => Some(String::new()),
                stop = writer.stopped() => return Err(stop),
            };
            let Some(line) = line else { return Ok(()) };
            let mut lines = line + "\n";
            while lines.len() < SEND_BATCH_BYTES
                && let Some(Some(line)) = subscription.next_received()
            {
                lines = lines + &line + "\n";
            }
            writer.write(Bytes::from(lines)).await?;
            silence.reset();
        }
    };
    // The other node reads the rest in the journal, however this ends.
    let _: Result<(), WriterStop> = sent.await;
}
