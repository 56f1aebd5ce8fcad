//! Settles the calls of processes that died.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use longhaul_journal::{Holder, Journal, Result};
use longhaul_protocol::{
    AttemptId, Cause, ExtractRecord, MemoryRecord, Record, SessionRecord, SpendHolder, SpendReserved,
    SpendSettled, StreamName, Usage,
};

use super::fold::LedgerFold;
use super::settlement::{settle_at_bound, settle_by_usage};

/// The runtimes of this process that have not ended. A process may have several, and end one of them.
static LIVE_RUNTIMES: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// A runtime of this process as the holder of reservations. It counts as dead when this is dropped.
pub(crate) struct LiveHolder(SpendHolder);

impl LiveHolder {
    pub(crate) fn new() -> Self {
        let runtime = AttemptId::generate().to_string();
        live_runtimes().insert(runtime.clone());
        Self(this_process(runtime))
    }

    pub(crate) fn holder(&self) -> &SpendHolder {
        &self.0
    }
}

impl Drop for LiveHolder {
    fn drop(&mut self) {
        live_runtimes().remove(&self.0.runtime);
    }
}

/// A runtime of this process, as a reservation names it.
pub(crate) fn this_process(runtime: String) -> SpendHolder {
    let Holder { host, boot, pid_namespace, pid, started, .. } = Holder::this_process();
    SpendHolder { host, boot, pid_namespace, pid, started, runtime }
}

fn live_runtimes() -> std::sync::MutexGuard<'static, BTreeSet<String>> {
    LIVE_RUNTIMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the process or the runtime that made a reservation is certainly gone.
fn is_gone(holder: &SpendHolder) -> bool {
    let SpendHolder { host, boot, pid_namespace, pid, started, runtime } = holder.clone();
    let this = Holder::this_process();
    let process = Holder { host, boot, pid_namespace, pid, started, socket: this.socket.clone() };
    if process == this { !live_runtimes().contains(&runtime) } else { process.is_gone() }
}

/// The settlements of all open calls whose process died: at the usage that their session recorded, otherwise at their
/// bound.
pub(crate) async fn settle_dead_calls(journal: &dyn Journal, fold: &LedgerFold) -> Result<Vec<SpendSettled>> {
    let mut settled = Vec::new();
    for open in fold.open().filter(|open| is_gone(&open.reserved.holder)) {
        let usage = recorded_usage(journal, &open.reserved).await?;
        settled.push(match usage {
            Some(usage) => settle_by_usage(&usage),
            None => settle_at_bound(&open.reserved),
        });
    }
    Ok(settled)
}

/// The usage of a call in the records of its session or of its memory, if the provider counted anything.
async fn recorded_usage(journal: &dyn Journal, reserved: &SpendReserved) -> Result<Option<Usage>> {
    let streams = match reserved.cause {
        Cause::Memory => {
            let all = journal.streams().await?;
            let pages = all.into_iter().filter(|stream| stream.as_str().starts_with("memory/"));
            std::iter::once(StreamName::extract(reserved.session)).chain(pages).collect()
        }
        _ => vec![StreamName::session(reserved.session)],
    };
    for stream in streams {
        for kind in ["usage", "extracted", "extraction_failed", "pages_changed"] {
            let records = journal.records_of_kind(&stream, kind).await?;
            let usages = records.iter().rev().flat_map(usages_of);
            let is_counted = |usage: &Usage| usage.input.is_some() || usage.output.is_some();
            let mut own = usages.filter(|usage| usage.attempt == reserved.attempt);
            if let Some(usage) = own.find(is_counted) {
                return Ok(Some(usage));
            }
        }
    }
    Ok(None)
}

/// The usages in a record of a session, of its extracts or of a memory.
pub(crate) fn usages_of(record: &Record) -> Vec<Usage> {
    match record.kind.as_str() {
        "usage" => match SessionRecord::decode(record) {
            Ok(SessionRecord::Usage(usage)) => vec![usage],
            _ => vec![],
        },
        "extracted" | "extraction_failed" => match ExtractRecord::decode(record) {
            Ok(ExtractRecord::Extracted(extracted)) => extracted.usage,
            Ok(ExtractRecord::ExtractionFailed(failed)) => failed.usage,
            _ => vec![],
        },
        "pages_changed" => match MemoryRecord::decode(record) {
            Ok(MemoryRecord::PagesChanged(changed)) => changed.usage,
            _ => vec![],
        },
        _ => vec![],
    }
}
