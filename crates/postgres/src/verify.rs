//! Verification: reads everything in one snapshot and reports what is not as it was committed.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_journal::engine::{ChainCheck, NameChange, NamedSession, Names, ScannedRow};
use longhaul_journal::{Damage, Head, Result, VerifyReport};
use longhaul_protocol::{Body, Hash, Record, Seq, SessionId, StreamName, blob_refs};
use tokio_postgres::types::Type;

use crate::rows::{column, hash_column, seq_column};
use crate::snapshot::{Snapshot, StreamRow};

pub(crate) fn verify(snapshot: &Snapshot) -> Result<VerifyReport> {
    let mut check =
        Verification { snapshot, report: VerifyReport::default(), uses: 0, names: Names::default() };
    check.check_all()?;
    Ok(check.report)
}

struct Verification<'a> {
    snapshot: &'a Snapshot,
    report: VerifyReport,
    /// References to blobs in the bodies.
    uses: u64,
    names: Names,
}

/// What the records of a stream say about its row.
#[derive(Default)]
struct FoldedStream {
    head: Option<Head>,
    last_at: Option<i64>,
    epoch: Option<Seq>,
}

impl Verification<'_> {
    fn add_database_damage(&mut self, reason: impl Into<String>) {
        self.report.damage.push(Damage::of_file(reason));
    }

    fn check_all(&mut self) -> Result<()> {
        let streams = self.snapshot.streams()?;
        self.report.streams = streams.len() as u64;
        let unreadable = streams.iter().filter(|stream| stream.name.is_none()).count();
        if unreadable > 0 {
            self.add_database_damage(format!("unreadable names of {unreadable} streams"));
        }
        for stream in &streams {
            if let Some(name) = &stream.name {
                self.check_stream(stream, name)?;
            }
        }
        let orphans = "SELECT count(*) FROM longhaul.record
                       WHERE NOT EXISTS (SELECT 1 FROM longhaul.stream WHERE stream.id = record.stream)";
        let orphans = self.snapshot.count(orphans)?;
        if orphans > 0 {
            self.add_database_damage(format!("{orphans} entries belong to a stream that has no name"));
        }
        self.check_blobs()?;
        self.check_sessions(&streams)
    }

    fn check_stream(&mut self, stream: &StreamRow, name: &StreamName) -> Result<()> {
        let uses = self.stored_uses(stream)?;
        let (mut chain, mut folded) = (ChainCheck::from(1), FoldedStream::default());
        let snapshot = self.snapshot;
        snapshot.scan(stream.number, name, |row| {
            self.check_row(name, row, &mut chain, &mut folded, &uses);
            Ok(())
        })?;
        if folded.head.unwrap_or(Head::EMPTY) != stream.head {
            let (noted, last) = (stream.head.seq, folded.head.map_or(0, |head| head.seq));
            let reason = format!("its head is noted at entry {noted}, and its last entry is {last}");
            self.report.damage.push(Damage::at(name, last.max(1), reason));
        } else if (folded.last_at, folded.epoch) != (stream.last_at, stream.epoch) {
            let reason = "its noted time or epoch does not match its entries";
            self.report.damage.push(Damage::at(name, stream.head.seq, reason));
        }
        Ok(())
    }

    fn check_row(
        &mut self,
        name: &StreamName,
        row: ScannedRow,
        chain: &mut ChainCheck,
        folded: &mut FoldedStream,
        uses: &BTreeSet<(Seq, Hash)>,
    ) {
        let seq = match &row {
            ScannedRow::Record(record) => record.seq,
            ScannedRow::Unreadable(seq, _) => *seq,
        };
        if seq > chain.next_seq() {
            self.report.damage.push(Damage::between(name, chain.next_seq(), seq - 1, "missing"));
            *chain = ChainCheck::from(seq);
        }
        let verdict = match &row {
            ScannedRow::Record(record) => chain.follow(record),
            ScannedRow::Unreadable(_, reason) => Err((*reason).to_owned()),
        };
        if let Err(reason) = verdict {
            self.report.damage.push(Damage::at(name, seq, reason));
            *chain = ChainCheck::from(seq + 1);
        }
        let ScannedRow::Record(record) = row else { return };
        self.report.records += 1;
        folded.head = Some(Head { seq, hash: record.hash });
        folded.last_at = Some(record.at.0);
        if record.kind == "epoch_started" {
            folded.epoch = Some(seq);
        }
        self.check_body(name, &record, uses);
        if *name == StreamName::names()
            && let Some(change) = NameChange::from_record(&record)
        {
            self.names.apply(change);
        }
    }

    fn check_body(&mut self, name: &StreamName, record: &Record, uses: &BTreeSet<(Seq, Hash)>) {
        match &record.body {
            Body::Gone(gone) if gone.body_hash.is_some() => self.report.erased += 1,
            Body::Gone(_) => self.report.lost += 1,
            Body::Here(body) => {
                for blob in blob_refs(body.get()) {
                    self.uses += 1;
                    if !uses.contains(&(record.seq, blob.hash)) {
                        let reason = format!("the blob {} that it refers to is missing", blob.hash);
                        self.report.damage.push(Damage::at(name, record.seq, reason));
                    }
                }
            }
        }
    }

    /// The references of a stream's records to blobs that are there.
    fn stored_uses(&self, stream: &StreamRow) -> Result<BTreeSet<(Seq, Hash)>> {
        let sql =
            "SELECT seq, blob FROM longhaul.blob_use JOIN longhaul.blob ON hash = blob WHERE stream = $1";
        let rows = self.snapshot.read(sql, &[(&stream.number.0, Type::INT8)])?;
        Ok(rows.iter().filter_map(|row| Some((seq_column(row, 0), hash_column(row, 1)?))).collect())
    }

    fn check_blobs(&mut self) -> Result<()> {
        let (mut blobs, mut lost, mut changed) = (0, 0, Vec::new());
        self.snapshot.scan_blobs(|address, bytes| {
            blobs += 1;
            match bytes {
                None => lost += 1,
                Some(bytes) if address != Some(Hash::of(bytes)) => changed.push(address),
                Some(_) => {}
            }
            Ok(())
        })?;
        self.report.blobs = blobs;
        self.report.lost += lost;
        for address in changed {
            let shown = address.map_or_else(|| "an unreadable address".to_owned(), |hash| hash.to_string());
            self.add_database_damage(format!("the blob {shown} does not match its hash"));
        }
        let stored = self.snapshot.count("SELECT count(*) FROM longhaul.blob_use")?;
        if stored != self.uses {
            let found = self.uses;
            self.add_database_damage(format!(
                "entries refer to blobs {found} times, but the index says {stored}"
            ));
        }
        Ok(())
    }

    /// Checks that the table `session` matches the stream `names`.
    fn check_sessions(&mut self, streams: &[StreamRow]) -> Result<()> {
        let rows = self.snapshot.read("SELECT id, key, trashed, pinned FROM longhaul.session", &[])?;
        let indexed: BTreeMap<String, NamedSession> = rows
            .iter()
            .filter_map(|row| {
                let (key, trashed, pinned) = (column(row, 1)?, column(row, 2)?, column(row, 3)?);
                Some((column(row, 0)?, NamedSession { key, trashed, pinned }))
            })
            .collect();
        if indexed != self.names.sessions {
            self.add_database_damage("the index of session keys does not match the stream names");
        }
        let ids: BTreeSet<SessionId> =
            streams.iter().filter_map(|stream| stream.name.as_ref()?.session_id()).collect();
        let is_named = |id: &SessionId| self.names.sessions.contains_key(&id.to_string());
        self.report.unnamed = ids.into_iter().filter(|id| !is_named(id)).collect();
        Ok(())
    }
}
