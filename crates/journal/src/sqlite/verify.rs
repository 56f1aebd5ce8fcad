//! Verification: reads everything and reports what is not as it was committed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::ControlFlow;

use longhaul_protocol::{Body, Hash, Seq, SessionId, StreamName, blob_refs};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, params};

use crate::chain::ChainCheck;
use crate::home::Home;
use crate::names::{NameChange, NamedSession, Names};
use crate::sqlite::known_heads::{self, KnownHeads};
use crate::sqlite::open_files::OpenFile;
use crate::sqlite::readers::connect_to_read;
use crate::sqlite::rows::{self, ScannedRow, StreamNumber};
use crate::sqlite::schema::{self, FileKind};
use crate::{Damage, Error, Head, Result, VerifyReport};

/// The most findings of SQLite's own integrity check to list.
const MAX_STRUCTURE_FINDINGS: u32 = 20;

/// Verifies a home's journal, whatever its format. Unlike opening it, this changes nothing: it does not migrate, and
/// does not move the log into the file.
pub fn verify_home(home: &Home) -> Result<VerifyReport> {
    let path = home.journal_file();
    let _home_lock = home.lock_shared()?;
    let _open_file = OpenFile::register(&path, || match schema::file_kind(&path)? {
        FileKind::Journal { .. } => Ok(()),
        FileKind::Missing => Err(Error::Missing { path: path.clone(), left: home.heads_file() }),
    })?;
    Ok(verify_connection(&connect_to_read(&path, None)?, Some(home)))
}

/// Verifies one snapshot of a journal: its consistency and, if a home is given, its known heads.
pub(crate) fn verify_connection(db: &Connection, home: Option<&Home>) -> VerifyReport {
    let mut verification = Verification { db, report: VerifyReport::default(), blob_uses: 0 };
    // Loaded before the snapshot begins, so that no known head is newer than the snapshot.
    let known = home.map(known_heads::load).transpose();
    let snapshot = db.execute_batch("BEGIN");
    if let Err(error) = snapshot.and_then(|()| verification.check_all()) {
        verification.add_file_damage(format!("can't read it to the end: {error}"));
    }
    match known {
        Ok(Some(known)) => verification.check_known_heads(home, &known),
        Ok(None) => {}
        Err(error) => verification.add_file_damage(error.to_string()),
    }
    // This only ends the snapshot: nothing was written.
    let _ = db.execute_batch("ROLLBACK");
    verification.report
}

struct Verification<'a> {
    db: &'a Connection,
    report: VerifyReport,
    /// References to blobs in the bodies.
    blob_uses: u64,
}

impl Verification<'_> {
    fn add_file_damage(&mut self, reason: impl Into<String>) {
        self.report.damage.push(Damage::of_file(reason));
    }

    fn check_all(&mut self) -> rusqlite::Result<()> {
        self.check_tree()?;
        for difference in schema::schema_differences(self.db)? {
            self.add_file_damage(difference);
        }
        let named = self.check_stream_names()?;
        for (number, name) in &named {
            self.check_stream(*number, name);
        }
        self.check_unnamed_records(&named)?;
        self.check_blobs(&named)?;
        self.check_session_index(&named)
    }

    /// SQLite's own integrity check.
    fn check_tree(&mut self) -> rusqlite::Result<()> {
        let mut statement = self.db.prepare(&format!("PRAGMA integrity_check({MAX_STRUCTURE_FINDINGS})"))?;
        let findings = statement.query_map([], |row| row.get::<_, String>(0))?;
        for finding in findings {
            match finding {
                Ok(line) if line == "ok" => {}
                Ok(line) => self.add_file_damage(line.replace('\n', " ")),
                Err(error) => self.add_file_damage(error.to_string()),
            }
        }
        Ok(())
    }

    fn check_stream_names(&mut self) -> rusqlite::Result<Vec<(StreamNumber, StreamName)>> {
        let named = rows::streams(self.db)?;
        let all: u64 = self.db.query_row("SELECT count(*) FROM streams", [], |row| row.get(0))?;
        let unreadable = all.saturating_sub(named.len() as u64);
        if unreadable > 0 {
            self.add_file_damage(format!("unreadable names of {unreadable} streams"));
        }
        self.report.streams = all;
        Ok(named)
    }

    /// Follows one stream from its first record to its last. Reports unreadable ranges and skips them.
    fn check_stream(&mut self, number: StreamNumber, name: &StreamName) {
        let mut from = 1;
        loop {
            let mut chain = ChainCheck::from(from);
            let scanned = rows::scan(self.db, (number, name), from, |found| {
                self.check_record(number, name, found, &mut chain);
                ControlFlow::Continue(())
            });
            let Err(error) = scanned else { return };
            let broken = chain.next_seq();
            let next = next_readable(self.db, number, broken);
            let through = next.map_or(broken, |next| next - 1);
            self.report.damage.push(Damage::between(name, broken, through, error.to_string()));
            match next {
                Some(next) => from = next,
                None => return,
            }
        }
    }

    fn check_record(
        &mut self,
        number: StreamNumber,
        name: &StreamName,
        found: ScannedRow,
        chain: &mut ChainCheck,
    ) {
        let expected = chain.next_seq();
        let seq = match &found {
            ScannedRow::Record(record) => record.seq,
            ScannedRow::Unreadable(seq, _) => *seq,
        };
        if seq > expected {
            self.report.damage.push(Damage::between(name, expected, seq - 1, "missing"));
            *chain = ChainCheck::from(seq);
        }
        let verdict = match &found {
            ScannedRow::Record(record) => chain.follow(record),
            ScannedRow::Unreadable(_, reason) => Err((*reason).to_owned()),
        };
        if let Err(reason) = verdict {
            self.report.damage.push(Damage::at(name, seq, reason));
            // The next record can't be checked against this one's hash, only against its own.
            *chain = ChainCheck::from(seq + 1);
        }
        let ScannedRow::Record(record) = found else { return };
        self.report.records += 1;
        match &record.body {
            Body::Gone(gone) if gone.body_hash.is_some() => self.report.erased += 1,
            Body::Gone(_) => self.report.lost += 1,
            Body::Here(body) => {
                for blob in blob_refs(body.get()) {
                    self.blob_uses += 1;
                    if !self.has_blob_use(blob.hash, number.row_id(seq)).unwrap_or(false) {
                        let reason = format!("the blob {} that it refers to is missing", blob.hash);
                        self.report.damage.push(Damage::at(name, seq, reason));
                    }
                }
            }
        }
    }

    fn has_blob_use(&self, blob: Hash, row: i64) -> rusqlite::Result<bool> {
        self.db
            .prepare_cached(
                "SELECT 1 FROM blob_uses JOIN blobs ON hash = blob WHERE blob = ?1 AND record = ?2",
            )?
            .exists(params![blob.as_bytes(), row])
    }

    /// Reports records whose stream has no name.
    fn check_unnamed_records(&mut self, named: &[(StreamNumber, StreamName)]) -> rusqlite::Result<()> {
        let named: HashSet<i64> = named.iter().map(|(number, _)| number.0).collect();
        let mut statement = self.db.prepare("SELECT id FROM records WHERE id >= ?1 ORDER BY id LIMIT 1")?;
        let mut from = i64::MIN;
        while let Some(row) = statement.query_row([from], |row| row.get(0)).optional()? {
            let (number, seq) = StreamNumber::from_row_id(row);
            if !named.contains(&number.0) {
                self.add_file_damage(format!(
                    "entries from {seq} on belong to stream number {}, which has no name",
                    number.0
                ));
            }
            from = number.end();
        }
        Ok(())
    }

    fn check_blobs(&mut self, named: &[(StreamNumber, StreamName)]) -> rusqlite::Result<()> {
        let mut statement = self.db.prepare("SELECT hash, bytes FROM blobs")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            self.report.blobs += 1;
            let bytes = row.get_ref(1)?;
            if bytes == ValueRef::Null {
                self.report.lost += 1;
                continue;
            }
            let address = rows::hash(row, 0).ok();
            if address != bytes.as_bytes().ok().map(Hash::of) {
                self.add_blob_damage(named, address);
            }
        }
        let uses: u64 = self.db.query_row("SELECT count(*) FROM blob_uses", [], |row| row.get(0))?;
        if uses != self.blob_uses {
            let found = self.blob_uses;
            self.add_file_damage(format!("entries refer to blobs {found} times, but the index says {uses}"));
        }
        Ok(())
    }

    /// Reports a blob that doesn't match its hash, once for each record that refers to it.
    fn add_blob_damage(&mut self, named: &[(StreamNumber, StreamName)], address: Option<Hash>) {
        let users = |address: Hash| -> rusqlite::Result<Vec<i64>> {
            let mut statement = self.db.prepare_cached("SELECT record FROM blob_uses WHERE blob = ?1")?;
            statement.query_map([address.as_bytes()], |row| row.get(0))?.collect()
        };
        let rows = address.and_then(|address| users(address).ok()).unwrap_or_default();
        let user = |row: i64| {
            let (number, seq) = StreamNumber::from_row_id(row);
            let (_, name) = named.iter().find(|(known, _)| *known == number)?;
            Some(Damage::at(name, seq, "a blob it refers to does not match its hash"))
        };
        let users: Vec<Damage> = rows.into_iter().filter_map(user).collect();
        if users.is_empty() {
            self.add_file_damage("an unused blob does not match its hash");
        }
        self.report.damage.extend(users);
    }

    /// Checks that the tables `sessions` and `pinned` match the stream `names`.
    fn check_session_index(&mut self, named: &[(StreamNumber, StreamName)]) -> rusqlite::Result<()> {
        let mut folded = Names::default();
        if let Some((number, name)) = named.iter().find(|(_, name)| *name == StreamName::names()) {
            rows::scan(self.db, (*number, name), 1, |found| {
                if let ScannedRow::Record(record) = &found
                    && let Some(change) = NameChange::from_record(record)
                {
                    folded.apply(change);
                }
                ControlFlow::Continue(())
            })?;
        }
        let (indexed, pins) = (self.indexed_sessions()?, self.pinned_sessions()?);
        let are_pinned = folded.sessions.iter().filter(|(_, session)| session.pinned).map(|(id, _)| id);
        if indexed != folded.sessions || !pins.iter().eq(are_pinned) {
            self.add_file_damage("the index of session keys does not match the stream names");
        }
        let is_named = |id: SessionId| folded.sessions.contains_key(&id.to_string());
        let sessions: BTreeSet<SessionId> = named.iter().filter_map(|(_, name)| name.session_id()).collect();
        self.report.unnamed = sessions.into_iter().filter(|id| !is_named(*id)).collect();
        Ok(())
    }

    fn indexed_sessions(&self) -> rusqlite::Result<BTreeMap<String, NamedSession>> {
        let pins = self.pinned_sessions()?;
        let mut statement = self.db.prepare("SELECT id, key, trashed FROM sessions ORDER BY id")?;
        statement
            .query_map([], |row| {
                let text = |column| rows::text(row, column).map(|text| text.unwrap_or_default().to_owned());
                let (id, key, trashed) = (text(0)?, text(1)?, row.get(2)?);
                let pinned = pins.contains(&id);
                Ok((id, NamedSession { key, trashed, pinned }))
            })?
            .collect()
    }

    fn pinned_sessions(&self) -> rusqlite::Result<BTreeSet<String>> {
        if !rows::has_pins(self.db)? {
            return Ok(BTreeSet::new());
        }
        let mut statement = self.db.prepare("SELECT id FROM pinned")?;
        statement.query_map([], |row| Ok(rows::text(row, 0)?.unwrap_or_default().to_owned()))?.collect()
    }

    /// Reports streams that end before their known head, because they have lost their tail.
    fn check_known_heads(&mut self, home: Option<&Home>, noted: &KnownHeads) {
        // Loaded again: a stream that was removed since then is no longer listed.
        let Some(still) = home.and_then(|home| known_heads::load(home).ok()) else { return };
        for (name, head) in noted.heads.iter().filter(|(name, _)| still.heads.contains_key(name)) {
            let number = rows::stream_number(self.db, name).ok().flatten();
            let now = number.and_then(|number| rows::head(self.db, number).ok()).unwrap_or(Head::EMPTY);
            if now.seq < head.seq {
                let reason = format!("the end is lost: it ended at entry {} when last seen", head.seq);
                self.report.damage.push(Damage::between(name, now.seq + 1, head.seq, reason));
            } else if !number
                .is_some_and(|number| known_heads::has_record(self.db, number, *head).unwrap_or(false))
            {
                self.report.damage.push(Damage::at(name, head.seq, "not the entry that was noted"));
            }
        }
        for (name, head) in noted.lost.iter().filter(|(name, _)| still.lost.contains_key(name)) {
            let reason = "what was noted here was gone when the stream was next written: a tail is lost";
            self.report.damage.push(Damage::at(name, head.seq, reason));
        }
    }
}

/// The first readable record from `broken` on. Unreadable records are usually adjacent, on one page or below one, so
/// this gallops forward and then bisects.
pub(crate) fn next_readable(db: &Connection, stream: StreamNumber, broken: Seq) -> Option<Seq> {
    let first_from = |seq: Seq| -> rusqlite::Result<Option<Seq>> {
        db.prepare_cached("SELECT id, length(hash), length(body) FROM records WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT 1")?
            .query_row([stream.row_id(seq), stream.end()], |row| Ok(StreamNumber::from_row_id(row.get(0)?).1))
            .optional()
    };
    let mut step = 1;
    while first_from(broken + step).is_err() {
        step *= 2;
        if step >= 1 << schema::SEQ_BITS {
            return None;
        }
    }
    let (mut unreadable, mut readable) = (broken + step / 2, broken + step);
    while readable - unreadable > 1 {
        let middle = unreadable + (readable - unreadable) / 2;
        if first_from(middle).is_ok() { readable = middle } else { unreadable = middle }
    }
    first_from(readable).ok().flatten()
}
