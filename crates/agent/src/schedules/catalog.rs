//! Which schedules there are. Pure.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_protocol::{At, Record, ScheduleAuthor, ScheduleSpec, SchedulesRecord, Seq, SessionId};

/// The most requests to run a schedule that are kept. The catalog does not know which ones have run; no more than these ever wait.
const MAX_REQUESTS: usize = 16;

/// The stream `schedules`, folded.
#[derive(Debug, Clone, Default)]
pub(crate) struct CatalogFold {
    pub(crate) head: Seq,
    added: BTreeMap<String, AddedSchedule>,
    controls: BTreeMap<String, ScheduleControls>,
    /// Every id that was ever used.
    used_ids: BTreeSet<String>,
}

#[derive(Debug, Clone)]
struct AddedSchedule {
    spec: ScheduleSpec,
    author: ScheduleAuthor,
    session: Option<SessionId>,
    /// When it was added, or its terms were changed.
    since: At,
}

/// Pauses and requests to run, for a schedule of the config or an added one.
#[derive(Debug, Clone, Default)]
struct ScheduleControls {
    pause: Option<Pause>,
    resumed_at: Option<At>,
    requests: Vec<RunRequest>,
}

/// A schedule is paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pause {
    pub(crate) at: At,
    /// Why the runtime paused it.
    pub(crate) reason: Option<String>,
}

/// A request to run a schedule now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunRequest {
    pub(crate) seq: Seq,
    pub(crate) at: At,
}

/// Where a schedule is defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ScheduleSource {
    Config,
    Added(ScheduleAuthor),
}

/// One schedule.
#[derive(Debug, Clone)]
pub(crate) struct CatalogEntry {
    pub(crate) id: String,
    pub(crate) spec: ScheduleSpec,
    pub(crate) source: ScheduleSource,
    /// Its slots count from here on: it was added, changed or resumed then. `None` for a schedule of the config that was never resumed:
    /// its slots count from when a runtime first sees it.
    pub(crate) since: Option<At>,
    /// The session with the key that the spec names, if there was one then.
    pub(crate) session: Option<SessionId>,
    pub(crate) pause: Option<Pause>,
    pub(crate) requests: Vec<RunRequest>,
    /// Why it can't run.
    pub(crate) problem: Option<String>,
}

impl CatalogEntry {
    pub(crate) fn is_by_agent(&self) -> bool {
        matches!(self.source, ScheduleSource::Added(ScheduleAuthor::Agent { .. }))
    }
}

impl CatalogFold {
    /// Applies one record. A record that can't be read is skipped: it must not stop the other schedules.
    pub(crate) fn apply(&mut self, record: &Record) {
        self.head = record.seq;
        let at = record.at;
        match SchedulesRecord::decode(record) {
            Ok(SchedulesRecord::Added(added)) => {
                let schedule = AddedSchedule {
                    spec: added.spec,
                    author: added.author,
                    session: added.session,
                    since: at,
                };
                self.used_ids.insert(added.id.clone());
                self.added.insert(added.id, schedule);
            }
            Ok(SchedulesRecord::Changed(changed)) => {
                if let Some(schedule) = self.added.get_mut(&changed.id) {
                    if schedule.spec.terms() != changed.spec.terms() {
                        (schedule.since, schedule.session) = (at, changed.session);
                    }
                    schedule.spec = changed.spec;
                }
            }
            Ok(SchedulesRecord::Deleted(deleted)) => {
                self.added.remove(&deleted.id);
                self.controls.remove(&deleted.id);
                // The record that added it is erased.
                self.used_ids.insert(deleted.id);
            }
            Ok(SchedulesRecord::Paused(paused)) => {
                self.controls(paused.id).pause = Some(Pause { at, reason: paused.reason });
            }
            Ok(SchedulesRecord::Resumed(resumed)) => {
                let controls = self.controls(resumed.id);
                if controls.pause.take().is_some() {
                    controls.resumed_at = Some(at);
                }
            }
            Ok(SchedulesRecord::RunRequested(requested)) => {
                let requests = &mut self.controls(requested.id).requests;
                requests.push(RunRequest { seq: record.seq, at });
                if requests.len() > MAX_REQUESTS {
                    requests.remove(0);
                }
            }
            Ok(SchedulesRecord::Unknown { .. }) | Err(_) => {}
        }
    }

    fn controls(&mut self, id: String) -> &mut ScheduleControls {
        self.controls.entry(id).or_default()
    }

    pub(crate) fn is_used_id(&self, id: &str) -> bool {
        self.used_ids.contains(id)
    }

    /// All schedules by id: those of the config, whose name is their id, and the added ones.
    pub(crate) fn entries(&self, config: &[ScheduleSpec]) -> BTreeMap<String, CatalogEntry> {
        let in_config: BTreeSet<&str> = config.iter().map(|spec| spec.name.as_str()).collect();
        let of_config = config.iter().map(|spec| (spec.name.clone(), spec, ScheduleSource::Config, None));
        let added = self.added.iter().map(|(id, added)| {
            (id.clone(), &added.spec, ScheduleSource::Added(added.author.clone()), Some(added))
        });
        let entry =
            |(id, spec, source, added): (String, &ScheduleSpec, ScheduleSource, Option<&AddedSchedule>)| {
                let controls = self.controls.get(&id).cloned().unwrap_or_default();
                let is_shadowed = added.is_some() && in_config.contains(spec.name.as_str());
                let entry = CatalogEntry {
                    id: id.clone(),
                    spec: spec.clone(),
                    source,
                    since: added.map(|added| added.since).max(controls.resumed_at),
                    session: added.and_then(|added| added.session),
                    pause: controls.pause,
                    requests: controls.requests,
                    problem: is_shadowed.then(|| {
                        format!(
                            "the config has a schedule {:?}, too; delete this one, or rename that one",
                            spec.name
                        )
                    }),
                };
                (id, entry)
            };
        // An id of the config wins over an added one, which has a random part.
        added.map(entry).chain(of_config.map(entry)).collect()
    }
}
