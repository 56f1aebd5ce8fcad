//! Reading everything, to find what is not as it was committed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::ControlFlow;

use longhaul_protocol::{Body, Hash, Seq, SessionId, StreamName, blob_refs};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, params};

use crate::chain::ChainCheck;
use crate::home::Home;
use crate::names::{NameChange, Named, Names};
use crate::sqlite::heads::{self, Noted};
use crate::sqlite::presence::Presence;
use crate::sqlite::readers::connect_to_read;
use crate::sqlite::rows::{self, Found, StreamNumber};
use crate::sqlite::schema::{self, FileKind};
use crate::{Damage, Error, Head, Report, Result};

/// The most findings that are listed about the file's structure; one is enough to know.
const STRUCTURE_FINDINGS: u32 = 20;

/// Reads a home's journal, whatever its format, and says what is not as it was committed. Unlike opening it, this
/// changes nothing: no migration, and what is in the log stays there.
pub fn verify_home(home: &Home) -> Result<Report> {
    let path = home.journal_file();
    let _together = home.lock_shared()?;
    let _presence = Presence::enter(&path, || match schema::file_kind(&path)? {
        FileKind::Journal { .. } => Ok(()),
        FileKind::Missing => Err(Error::Missing { path: path.clone(), left: home.heads_file() }),
    })?;
    Ok(verify(&connect_to_read(&path, None)?, Some(home)))
}

/// Reads the whole journal, as it stood at one moment, and checks it against itself and, if a home is given,
/// against the heads that were noted there.
pub(crate) fn verify(db: &Connection, home: Option<&Home>) -> Report {
    let mut check = Check { db, report: Report::default(), uses: 0 };
    // Before the moment that is looked at, so that nothing noted is newer than what is read.
    let noted = home.map(heads::load).transpose();
    let snapshot = db.execute_batch("BEGIN");
    if let Err(error) = snapshot.and_then(|()| check.everything()) {
        check.file(format!("it can't be read to the end: {error}"));
    }
    match noted {
        Ok(Some(noted)) => check.against(home, &noted),
        Ok(None) => {}
        Err(error) => check.file(error.to_string()),
    }
    // Reading changed nothing, so there is nothing to undo but the moment itself.
    let _ = db.execute_batch("ROLLBACK");
    check.report
}

struct Check<'a> {
    db: &'a Connection,
    report: Report,
    /// How often blobs are referred to, by the bodies.
    uses: u64,
}

impl Check<'_> {
    fn file(&mut self, reason: impl Into<String>) {
        self.report.damage.push(Damage::of_file(reason));
    }

    fn everything(&mut self) -> rusqlite::Result<()> {
        self.structure()?;
        for oddity in schema::oddities(self.db)? {
            self.file(oddity);
        }
        let named = self.streams()?;
        for (number, name) in &named {
            self.stream(*number, name);
        }
        self.strays(&named)?;
        self.blobs(&named)?;
        self.names(&named)
    }

    /// The tree itself.
    fn structure(&mut self) -> rusqlite::Result<()> {
        let mut statement = self.db.prepare(&format!("PRAGMA integrity_check({STRUCTURE_FINDINGS})"))?;
        let findings = statement.query_map([], |row| row.get::<_, String>(0))?;
        for finding in findings {
            match finding {
                Ok(line) if line == "ok" => {}
                Ok(line) => self.file(line.replace('\n', " ")),
                Err(error) => self.file(error.to_string()),
            }
        }
        Ok(())
    }

    fn streams(&mut self) -> rusqlite::Result<Vec<(StreamNumber, StreamName)>> {
        let named = rows::streams(self.db)?;
        let all: u64 = self.db.query_row("SELECT count(*) FROM streams", [], |row| row.get(0))?;
        let unreadable = all.saturating_sub(named.len() as u64);
        if unreadable > 0 {
            self.file(format!("the names of {unreadable} streams can't be read"));
        }
        self.report.streams = all;
        Ok(named)
    }

    /// Follows one stream from its first record to its last; what can't be read is passed over and named.
    fn stream(&mut self, number: StreamNumber, name: &StreamName) {
        let mut from = 1;
        loop {
            let mut chain = ChainCheck::from(from);
            let scanned = rows::scan(self.db, (number, name), from, |found| {
                self.record(number, name, found, &mut chain);
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

    fn record(&mut self, number: StreamNumber, name: &StreamName, found: Found, chain: &mut ChainCheck) {
        let expected = chain.next_seq();
        let seq = match &found {
            Found::Record(record) => record.seq,
            Found::Unreadable(seq, _) => *seq,
        };
        if seq > expected {
            self.report.damage.push(Damage::between(name, expected, seq - 1, "missing"));
            *chain = ChainCheck::from(seq);
        }
        let verdict = match &found {
            Found::Record(record) => chain.follow(record),
            Found::Unreadable(_, reason) => Err((*reason).to_owned()),
        };
        if let Err(reason) = verdict {
            self.report.damage.push(Damage::at(name, seq, reason));
            // The hash that the next one should name is not known any more; it is checked by its own.
            *chain = ChainCheck::from(seq + 1);
        }
        let Found::Record(record) = found else { return };
        self.report.records += 1;
        match &record.body {
            Body::Gone(gone) if gone.body_hash.is_some() => self.report.erased += 1,
            Body::Gone(_) => self.report.lost += 1,
            Body::Here(body) => {
                for blob in blob_refs(body.get()) {
                    self.uses += 1;
                    if !self.has_use(blob.hash, number.row(seq)).unwrap_or(false) {
                        let reason = format!("the blob {} that it refers to is missing", blob.hash);
                        self.report.damage.push(Damage::at(name, seq, reason));
                    }
                }
            }
        }
    }

    fn has_use(&self, blob: Hash, row: i64) -> rusqlite::Result<bool> {
        self.db
            .prepare_cached(
                "SELECT 1 FROM blob_uses JOIN blobs ON hash = blob WHERE blob = ?1 AND record = ?2",
            )?
            .exists(params![blob.as_bytes(), row])
    }

    /// Records whose stream has no name.
    fn strays(&mut self, named: &[(StreamNumber, StreamName)]) -> rusqlite::Result<()> {
        let named: HashSet<i64> = named.iter().map(|(number, _)| number.0).collect();
        let mut statement = self.db.prepare("SELECT id FROM records WHERE id >= ?1 ORDER BY id LIMIT 1")?;
        let mut from = i64::MIN;
        while let Some(row) = statement.query_row([from], |row| row.get(0)).optional()? {
            let (number, seq) = StreamNumber::of_row(row);
            if !named.contains(&number.0) {
                self.file(format!(
                    "records from seq {seq} on belong to stream number {}, which has no name",
                    number.0
                ));
            }
            from = number.end();
        }
        Ok(())
    }

    fn blobs(&mut self, named: &[(StreamNumber, StreamName)]) -> rusqlite::Result<()> {
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
                self.bad_blob(named, address);
            }
        }
        let uses: u64 = self.db.query_row("SELECT count(*) FROM blob_uses", [], |row| row.get(0))?;
        if uses != self.uses {
            self.file(format!("bodies refer to blobs {} times, the index of that says {uses}", self.uses));
        }
        Ok(())
    }

    /// A blob that is not what its address says, by the records that refer to it.
    fn bad_blob(&mut self, named: &[(StreamNumber, StreamName)], address: Option<Hash>) {
        let users = |address: Hash| -> rusqlite::Result<Vec<i64>> {
            let mut statement = self.db.prepare_cached("SELECT record FROM blob_uses WHERE blob = ?1")?;
            statement.query_map([address.as_bytes()], |row| row.get(0))?.collect()
        };
        let rows = address.and_then(|address| users(address).ok()).unwrap_or_default();
        let user = |row: i64| {
            let (number, seq) = StreamNumber::of_row(row);
            let (_, name) = named.iter().find(|(known, _)| *known == number)?;
            Some(Damage::at(name, seq, "a blob that it refers to does not match its hash"))
        };
        let users: Vec<Damage> = rows.into_iter().filter_map(user).collect();
        if users.is_empty() {
            self.file("a blob that no record refers to does not match its hash");
        }
        self.report.damage.extend(users);
    }

    /// The index of keys must be what the stream `names` says.
    fn names(&mut self, named: &[(StreamNumber, StreamName)]) -> rusqlite::Result<()> {
        let mut folded = Names::default();
        if let Some((number, name)) = named.iter().find(|(_, name)| *name == StreamName::names()) {
            rows::scan(self.db, (*number, name), 1, |found| {
                if let Found::Record(record) = &found
                    && let Some(change) = NameChange::of(record)
                {
                    folded.apply(change);
                }
                ControlFlow::Continue(())
            })?;
        }
        let (indexed, pins) = (self.indexed()?, self.pins()?);
        let are_pinned = folded.sessions.iter().filter(|(_, session)| session.pinned).map(|(id, _)| id);
        if indexed != folded.sessions || !pins.iter().eq(are_pinned) {
            self.file("the index of session keys is not what the stream names says");
        }
        let is_named = |id: SessionId| folded.sessions.contains_key(&id.to_string());
        let sessions: BTreeSet<SessionId> = named.iter().filter_map(|(_, name)| name.session_id()).collect();
        self.report.unnamed = sessions.into_iter().filter(|id| !is_named(*id)).collect();
        Ok(())
    }

    /// The index of keys, with the pins.
    fn indexed(&self) -> rusqlite::Result<BTreeMap<String, Named>> {
        let pins = self.pins()?;
        let mut statement = self.db.prepare("SELECT id, key, trashed FROM sessions ORDER BY id")?;
        statement
            .query_map([], |row| {
                let text = |column| rows::text(row, column).map(|text| text.unwrap_or_default().to_owned());
                let (id, key, trashed) = (text(0)?, text(1)?, row.get(2)?);
                let pinned = pins.contains(&id);
                Ok((id, Named { key, trashed, pinned }))
            })?
            .collect()
    }

    fn pins(&self) -> rusqlite::Result<BTreeSet<String>> {
        if !rows::has_pins(self.db)? {
            return Ok(BTreeSet::new());
        }
        let mut statement = self.db.prepare("SELECT id FROM pinned")?;
        statement.query_map([], |row| Ok(rows::text(row, 0)?.unwrap_or_default().to_owned()))?.collect()
    }

    /// A stream that ends before its noted head has lost its tail.
    fn against(&mut self, home: Option<&Home>, noted: &Noted) {
        // A stream that was removed since is no longer noted.
        let Some(still) = home.and_then(|home| heads::load(home).ok()) else { return };
        for (name, head) in noted.heads.iter().filter(|(name, _)| still.heads.contains_key(name)) {
            let number = rows::number_of(self.db, name).ok().flatten();
            let now = number.and_then(|number| rows::head(self.db, number).ok()).unwrap_or(Head::EMPTY);
            if now.seq < head.seq {
                let reason = format!("the tail is lost: it ended at seq {} when last noted", head.seq);
                self.report.damage.push(Damage::between(name, now.seq + 1, head.seq, reason));
            } else if !number.is_some_and(|number| heads::has_record(self.db, number, *head).unwrap_or(false))
            {
                self.report.damage.push(Damage::at(name, head.seq, "it is not the record that was noted"));
            }
        }
        for (name, head) in noted.lost.iter().filter(|(name, _)| still.lost.contains_key(name)) {
            let reason = "what was noted here was gone when the stream was next written: a tail is lost";
            self.report.damage.push(Damage::at(name, head.seq, reason));
        }
    }
}

/// The first place from `broken` on at which reading works again. What can't be read lies together, on one page or
/// below one, so doubling steps and then halving them finds it without asking for every place.
pub(crate) fn next_readable(db: &Connection, stream: StreamNumber, broken: Seq) -> Option<Seq> {
    let first_from = |seq: Seq| -> rusqlite::Result<Option<Seq>> {
        db.prepare_cached("SELECT id, length(hash), length(body) FROM records WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT 1")?
            .query_row([stream.row(seq), stream.end()], |row| Ok(StreamNumber::of_row(row.get(0)?).1))
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
