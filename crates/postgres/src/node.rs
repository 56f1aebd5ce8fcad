//! This node among those that share the database: who it is, its heartbeats, and what there is to do.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use longhaul_journal::{
    Cluster, DueSession, Error, Holder, Home, NodeHealth, NodeReport, NodeState, Result, RunPermission,
    node_names,
};
use longhaul_protocol::{Hash, SessionId, StreamName};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::database::{local_clock, only_row};
use crate::engine::PostgresJournal;
use crate::lease::is_gone;
use crate::rows::{self, DueRow, column};

/// Bytes of a node's id.
const MAX_ID_BYTES: usize = 64;
/// How often a joining node checks whether another one with its id still sends heartbeats.
const JOIN_POLL: Duration = Duration::from_millis(300);
/// Sessions that are listed at a time.
const DUE_PAGE: usize = 500;
/// The file of the home with the id that was made for it.
const ID_FILE: &str = "node";

/// What a node tells the others about itself, and when they count it as dead.
#[derive(Debug, Clone)]
pub struct NodeOptions {
    /// Its id. Without one, an id is made once and kept in the home.
    pub id: Option<String>,
    /// How other nodes reach it.
    pub address: Option<String>,
    /// How long a node may be silent before the others count it as dead. Also how long a lease is valid.
    pub dead_after: Duration,
    /// How long a node may be silent before its tasks count as lost. Zero: only a user decides that.
    pub gone_after: Duration,
}

impl Default for NodeOptions {
    fn default() -> Self {
        Self { id: None, address: None, dead_after: Duration::from_secs(10), gone_after: Duration::ZERO }
    }
}

/// The node of this process.
pub(crate) struct ThisNode {
    pub(crate) id: String,
    /// Tells it from another home with the same id.
    place: String,
    home: String,
    options: NodeOptions,
}

impl ThisNode {
    pub(crate) fn of_home(home: &Home, options: NodeOptions) -> Result<Self> {
        let id = match &options.id {
            Some(id) => id.clone(),
            None => kept_id(home.folder())?,
        };
        check_id(&id, home)?;
        let metadata = fs::metadata(home.folder());
        let (device, inode) = metadata.map(|found| (found.dev(), found.ino())).unwrap_or_default();
        let place = format!("{} {device} {inode}", Holder::this_process().boot);
        Ok(Self { id, place, home: home.folder().display().to_string(), options })
    }

    /// The stream whose lease the process holds that hosts the node.
    pub(crate) fn host_stream(&self) -> StreamName {
        host_stream(&self.id)
    }
}

fn host_stream(node: &str) -> StreamName {
    StreamName::host_of(node).unwrap_or_else(|_| StreamName::host())
}

fn check_id(id: &str, home: &Home) -> Result<()> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    if (1..=MAX_ID_BYTES).contains(&id.len()) && id.chars().all(is_plain) {
        return Ok(());
    }
    let path = home.folder().join("config.toml");
    let reason = format!(
        "node.id {id:?} is not an id: use letters, digits, `-`, `_` and `.`, at most {MAX_ID_BYTES} of them"
    );
    Err(Error::BadFile { path, reason })
}

/// The id that was made for this home: the machine's name and a random suffix, because machines may share a name.
fn kept_id(home: &Path) -> Result<String> {
    let path = home.join(ID_FILE);
    let said = |error: std::io::Error| Error::Io { path: path.clone(), reason: error.to_string() };
    loop {
        match fs::read_to_string(&path) {
            Ok(text) if !text.trim().is_empty() => return Ok(text.trim().to_owned()),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(said(error)),
        }
        let host = Holder::this_process().host.to_lowercase();
        let plain: String =
            host.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-').collect();
        let unique = Hash::of(SessionId::generate().to_string()).to_string();
        let name = if plain.is_empty() { "node" } else { &plain[..plain.len().min(40)] };
        let id = format!("{name}-{}", &unique[..6]);
        // Under its name as a whole, so that two processes agree on one.
        let draft = path.with_extension(format!("{}.draft", std::process::id()));
        let mut file =
            OpenOptions::new().create(true).truncate(true).write(true).open(&draft).map_err(said)?;
        file.write_all(format!("{id}\n").as_bytes()).and_then(|()| file.sync_data()).map_err(said)?;
        let linked = match fs::metadata(&path) {
            // An empty file that a crash left.
            Ok(_) => fs::rename(&draft, &path),
            Err(_) => fs::hard_link(&draft, &path),
        };
        let _ = fs::remove_file(&draft);
        match linked {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(said(error)),
            _ => {}
        }
    }
}

/// The answer to a heartbeat.
enum HeartbeatAnswer {
    Done(NodeHealth),
    InUse { other: String, seen: i64, seen_ago_ms: u64 },
}

impl PostgresJournal {
    async fn send_heartbeat(&self) -> Result<HeartbeatAnswer> {
        let (node, db) = (&self.node, &self.db);
        let milliseconds = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX / 4);
        let (dead, gone) = (milliseconds(node.options.dead_after), milliseconds(node.options.gone_after));
        let now = local_clock();
        let sql = "SELECT * FROM longhaul.heartbeat($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
        let parameters = [
            (&node.id as _, Type::TEXT),
            (&node.place as _, Type::TEXT),
            (&node.home as _, Type::TEXT),
            (&self.process.number as _, Type::INT8),
            (&node.options.address as _, Type::TEXT),
            (&env!("CARGO_PKG_VERSION") as _, Type::TEXT),
            (&dead as _, Type::INT8),
            (&self.hears_wakes() as _, Type::BOOL),
            (&now as _, Type::INT8),
            (&gone as _, Type::INT8),
        ];
        let row = only_row(db.write_repeatably(sql, &parameters).await?, &db.address)?;
        let clock = column(&row, 1).unwrap_or(0);
        if column::<&str>(&row, 0) == Some("done") {
            return Ok(HeartbeatAnswer::Done(NodeHealth { is_draining: column(&row, 2).unwrap_or(false) }));
        }
        let process = rows::holder_column(&row, 3).map(|holder| holder.to_string());
        let home = column::<&str>(&row, 4).unwrap_or_default();
        let other = format!("{} ({home})", process.unwrap_or_else(|| "another process".to_owned()));
        let seen: i64 = column(&row, 5).unwrap_or(0);
        Ok(HeartbeatAnswer::InUse { other, seen, seen_ago_ms: (clock - seen).max(0).unsigned_abs() })
    }

    async fn known_nodes(&self) -> Result<Vec<String>> {
        Ok(node_names(&self.nodes().await?))
    }

    /// The node that a session without a holder should be run by: its own, else this one, else any that takes sessions.
    pub(crate) async fn host_stream_for(&self, session: &StreamName) -> Result<StreamName> {
        let Some(id) = session.session_id() else { return Ok(StreamName::host()) };
        let sql = "SELECT coalesce(
            (SELECT node FROM longhaul.session WHERE id = $1),
            (SELECT id FROM longhaul.node WHERE longhaul.is_live(node) AND NOT draining
             ORDER BY id <> $2, random() LIMIT 1),
            $2)";
        let parameters = [(&id.to_string() as _, Type::TEXT), (&self.node.id as _, Type::TEXT)];
        let row = self.db.read_row(sql, &parameters).await?;
        Ok(row
            .and_then(|row| column::<&str>(&row, 0).map(host_stream))
            .unwrap_or_else(|| self.node.host_stream()))
    }
}

#[async_trait]
impl Cluster for PostgresJournal {
    fn node(&self) -> &str {
        &self.node.id
    }

    async fn join(&self) -> Result<()> {
        let mut first_seen = None;
        loop {
            let HeartbeatAnswer::InUse { other, seen, seen_ago_ms } = self.send_heartbeat().await? else {
                return Ok(());
            };
            // The other one may be this node before it moved, or before its machine restarted. If it is another one that runs, it
            // sends a heartbeat soon.
            if *first_seen.get_or_insert(seen) != seen {
                return Err(Error::NodeInUse { node: self.node.id.clone(), other, seen_ago_ms });
            }
            tokio::time::sleep(JOIN_POLL).await;
        }
    }

    async fn heartbeat(&self) -> Result<NodeHealth> {
        match self.send_heartbeat().await? {
            HeartbeatAnswer::Done(health) => Ok(health),
            HeartbeatAnswer::InUse { other, seen_ago_ms, .. } => {
                Err(Error::NodeInUse { node: self.node.id.clone(), other, seen_ago_ms })
            }
        }
    }

    async fn leave(&self) -> Result<()> {
        let sql =
            "UPDATE longhaul.node SET hosts = false, seen = longhaul.now_ms() WHERE id = $1 AND process = $2";
        let parameters = [(&self.node.id as _, Type::TEXT), (&self.process.number as _, Type::INT8)];
        self.db.write_repeatably(sql, &parameters).await.map(drop)
    }

    async fn nodes(&self) -> Result<Vec<NodeReport>> {
        let sql = "
            SELECT member.id, longhaul.is_live(member), hosts, draining, gone, longhaul.now_ms() - seen, address,
                holder.process, version, hears, ahead,
                (SELECT count(*) FROM longhaul.due JOIN longhaul.stream ON stream.name = 'session/' || due.session
                    JOIN longhaul.holder AS by ON by.id = stream.holder
                    WHERE by.node = member.id AND stream.expires_at > longhaul.now_ms()),
                (SELECT count(*) FROM longhaul.session WHERE session.node = member.id)
            FROM longhaul.node AS member JOIN longhaul.holder ON holder.id = member.process ORDER BY member.id";
        let rows = self.db.read(sql, &[]).await?;
        let report = |row: &Row| {
            let flag = |place| column(row, place).unwrap_or(false);
            let number = |place| column::<i64>(row, place).unwrap_or(0);
            let state = match (flag(1), flag(3), flag(4), flag(2)) {
                (true, false, ..) => NodeState::Live,
                (true, true, ..) => NodeState::Draining,
                (false, _, true, _) => NodeState::Gone,
                (false, _, false, true) => NodeState::Dead,
                (false, _, false, false) => NodeState::Stopped,
            };
            let id: String = column(row, 0)?;
            Some(NodeReport {
                is_this: id == self.node.id,
                id,
                state,
                seen_ago_ms: number(5).max(0).unsigned_abs(),
                address: column(row, 6),
                host: rows::holder_column(row, 7).map(|holder| holder.host).unwrap_or_default(),
                version: column(row, 8)?,
                hears_wakes: flag(9),
                clock_ahead_ms: number(10),
                running: number(11).unsigned_abs(),
                bound: number(12).unsigned_abs(),
            })
        };
        Ok(rows.iter().filter_map(report).collect())
    }

    async fn set_draining(&self, node: &str, draining: bool) -> Result<()> {
        let sql = "UPDATE longhaul.node SET draining = $2 WHERE id = $1 RETURNING 1";
        let changed = self.db.write_repeatably(sql, &[(&node, Type::TEXT), (&draining, Type::BOOL)]).await?;
        if changed.is_empty() {
            return Err(Error::NoSuchNode { node: node.to_owned(), known: self.known_nodes().await? });
        }
        Ok(())
    }

    async fn give_up(&self, node: &str) -> Result<()> {
        let sql =
            "UPDATE longhaul.node SET gone = true WHERE id = $1 AND NOT longhaul.is_live(node) RETURNING 1";
        if !self.db.write_repeatably(sql, &[(&node, Type::TEXT)]).await?.is_empty() {
            return Ok(());
        }
        let nodes = self.nodes().await?;
        match nodes.iter().find(|known| known.id == node) {
            Some(live) => Err(Error::NodeIsLive { node: node.to_owned(), seen_ago_ms: live.seen_ago_ms }),
            None => Err(Error::NoSuchNode { node: node.to_owned(), known: node_names(&nodes) }),
        }
    }

    async fn is_gone(&self, node: &str) -> Result<bool> {
        let sql = "SELECT NOT EXISTS (SELECT 1 FROM longhaul.node WHERE id = $1 AND NOT gone)";
        let row = only_row(self.db.read(sql, &[(&node, Type::TEXT)]).await?, &self.db.address)?;
        Ok(column(&row, 0).unwrap_or(false))
    }

    async fn run_permission(&self, session: SessionId) -> Result<RunPermission> {
        let sql = "
            SELECT named.placed, named.node, longhaul.is_live(bound), longhaul.now_ms() - bound.seen,
                longhaul.hands_over($2)
            FROM (SELECT 1) AS one
            LEFT JOIN longhaul.session AS named ON named.id = $1
            LEFT JOIN longhaul.node AS bound ON bound.id = named.node";
        let parameters = [(&session.to_string() as _, Type::TEXT), (&self.node.id as _, Type::TEXT)];
        let row = only_row(self.db.read(sql, &parameters).await?, &self.db.address)?;
        let stream = StreamName::session(session);
        let bound: Option<String> = column(&row, 1);
        Ok(match bound {
            Some(node) if node != self.node.id => RunPermission::Refused(Error::OtherNode {
                stream,
                node,
                is_live: column(&row, 2).unwrap_or(false),
                seen_ago_ms: column::<i64>(&row, 3).map(|ago| ago.max(0).unsigned_abs()),
            }),
            None if column(&row, 4) == Some(true) => {
                RunPermission::Refused(Error::Draining { stream, node: self.node.id.clone() })
            }
            _ => RunPermission::Granted { is_placed: column(&row, 0).unwrap_or(false) },
        })
    }

    async fn placement(&self, session: SessionId) -> Result<Option<Option<String>>> {
        let sql = "SELECT placed, node FROM longhaul.session WHERE id = $1";
        let row = self.db.read_row(sql, &[(&session.to_string(), Type::TEXT)]).await?;
        Ok(row.and_then(|row| (column(&row, 0) == Some(true)).then(|| column(&row, 1))))
    }

    async fn due_sessions(&self) -> Result<Vec<DueSession>> {
        let (mut found, mut after) = (Vec::new(), None::<String>);
        // Whether a process on this machine is gone.
        let mut known: HashMap<String, bool> = HashMap::new();
        loop {
            let page = rows::due_sessions(&self.db, &self.node.id, &self.process, after.as_deref(), DUE_PAGE)
                .await?;
            let is_last = page.len() < DUE_PAGE;
            after = page.last().map(|row| row.session.clone()).or(after);
            for DueRow { due, holder, .. } in page {
                let is_free = holder.is_none_or(|json| {
                    let is_gone = || serde_json::from_str(&json).is_ok_and(|holder| is_gone(&holder));
                    *known.entry(json.clone()).or_insert_with(is_gone)
                });
                found.extend(due.filter(|_| is_free));
            }
            if is_last {
                return Ok(found);
            }
        }
    }

    async fn settle(&self, sessions: &[DueSession]) -> Result<()> {
        let ids: Vec<String> = sessions.iter().map(|due| due.entry.id.to_string()).collect();
        let marks: Vec<i64> = sessions.iter().map(|due| due.mark).collect();
        let sql = "DELETE FROM longhaul.due USING unnest($1::text[], $2::bigint[]) AS rest (session, mark)
                   WHERE due.session = rest.session AND due.mark = rest.mark";
        let parameters = [(&ids as _, Type::TEXT_ARRAY), (&marks as _, Type::INT8_ARRAY)];
        self.db.write_repeatably(sql, &parameters).await.map(drop)
    }
}
