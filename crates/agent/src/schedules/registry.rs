//! The schedules of a home, for people, programs and the agent: list, add, change, pause, resume, run, delete.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use jiff::tz::TimeZone;
use longhaul_journal::{Append, Error as JournalError, Journal, records};
use longhaul_protocol::{
    InputId, ScheduleAdded, ScheduleAuthor, ScheduleChanged, ScheduleDeleted, SchedulePaused,
    ScheduleResumed, ScheduleRunRequested, ScheduleSpec, SchedulesRecord, Seq, SessionId, StreamName,
};
use longhaul_redact::Redactor;
use longhaul_schedule::{Interval, Timing};

use super::action::schedule_stream;
use super::catalog::{CatalogEntry, CatalogFold, ScheduleSource};
use super::report::{ScheduleReport, describe};
use super::state::load_state;
use crate::clock::now;
use crate::runtime::lock;
use crate::{Error, Result};

/// Schedules that the agent of one session may have at the same time.
const MAX_BY_AGENT: usize = 10;
/// The shortest interval that an agent may choose.
const MIN_AGENT_INTERVAL_S: u64 = 60;
/// Characters of the random part of an id.
const ID_SUFFIX_CHARS: usize = 8;

/// The schedules of a home. Any process may use it, whether it runs schedules or not.
#[derive(Clone)]
pub struct Schedules {
    journal: Arc<dyn Journal>,
    redactor: Arc<Redactor>,
    /// The schedules of the config.
    config: Arc<[ScheduleSpec]>,
    /// The stream `schedules`, as far as it was read.
    catalog: SharedCatalog,
}

/// What the users of one journal in a process have read of the stream `schedules`.
pub(crate) type SharedCatalog = Arc<Mutex<CatalogFold>>;

impl Schedules {
    /// The schedules in this journal, and those of the config.
    pub fn new(journal: Arc<dyn Journal>, redactor: Arc<Redactor>, config: &[ScheduleSpec]) -> Self {
        Self { journal, redactor, config: config.into(), catalog: SharedCatalog::default() }
    }

    /// The same, with what others in this process have read.
    pub(crate) fn with_catalog(self, catalog: SharedCatalog) -> Self {
        Self { catalog, ..self }
    }

    /// All schedules, in the order of their names.
    pub async fn list(&self) -> Result<Vec<ScheduleReport>> {
        let mut reports = Vec::new();
        for (_, entry) in self.load().await?.entries(&self.config) {
            reports.push(self.describe(entry).await?);
        }
        reports.sort_by(|one, other| one.spec.name.cmp(&other.spec.name));
        Ok(reports)
    }

    /// The schedules that the agent of this session made.
    pub(crate) async fn list_of_agent(&self, session: SessionId) -> Result<Vec<ScheduleReport>> {
        let mut reports = Vec::new();
        let entries = self.load().await?.entries(&self.config);
        for entry in entries.into_values().filter(|entry| is_of_agent(entry, session)) {
            reports.push(self.describe(entry).await?);
        }
        Ok(reports)
    }

    /// The key of a session.
    pub(crate) async fn session_key(&self, session: SessionId) -> Result<String> {
        let missing = || JournalError::NoSuchSession { key: session.to_string() };
        Ok(self.journal.session_with_id(session).await?.ok_or_else(missing)?.key)
    }

    /// The schedule with this name.
    pub async fn show(&self, name: &str) -> Result<ScheduleReport> {
        let entry = find(&self.load().await?, &self.config, name)?;
        self.describe(entry).await
    }

    /// Makes a schedule. Its only time, if it has one, must be ahead, and its name must be free.
    pub async fn add(&self, spec: ScheduleSpec, author: ScheduleAuthor) -> Result<ScheduleReport> {
        let spec = self.check(spec)?;
        self.append(|catalog| {
            let entries = catalog.entries(&self.config);
            // A call that is repeated after a crash has made its schedule.
            let is_made = |entry: &CatalogEntry| {
                entry.spec.name == spec.name && entry.source == ScheduleSource::Added(author.clone())
            };
            if author != ScheduleAuthor::Person && entries.values().any(is_made) {
                return Ok(None);
            }
            if entries.values().any(|entry| entry.spec.name == spec.name) {
                return Err(Error::ScheduleExists { name: spec.name.clone() });
            }
            if let ScheduleAuthor::Agent { session, .. } = &author {
                check_agent_limits(&spec, entries.values(), *session)?;
            }
            let (spec, author) = (spec.clone(), author.clone());
            let id = new_id(catalog, &spec.name);
            // An agent's schedule belongs to the agent's own session, whatever key that has.
            let session = match &author {
                ScheduleAuthor::Agent { session, .. } => Some(*session),
                _ => None,
            };
            Ok(Some(SchedulesRecord::Added(ScheduleAdded { id, spec, author, session })))
        })
        .await?;
        self.show(&spec.name).await
    }

    /// Gives a schedule another spec. Its name stays. A schedule of the config can't be changed here.
    pub async fn change(&self, name: &str, spec: ScheduleSpec) -> Result<ScheduleReport> {
        let spec = self.check(ScheduleSpec { name: name.to_owned(), ..spec })?;
        self.append(|catalog| {
            let id = find_added(catalog, &self.config, name)?;
            Ok(Some(SchedulesRecord::Changed(ScheduleChanged { id, spec: spec.clone(), session: None })))
        })
        .await?;
        self.show(name).await
    }

    /// Deletes a schedule and erases its prompt. A run that has begun goes on. A schedule of the config can't be deleted here.
    pub async fn delete(&self, name: &str) -> Result<()> {
        self.append(|catalog| {
            let id = find_added(catalog, &self.config, name)?;
            Ok(Some(SchedulesRecord::Deleted(ScheduleDeleted { id })))
        })
        .await?;
        self.erase_deleted().await
    }

    /// Erases the prompts of deleted schedules. After a kill before this, the next deletion does it.
    async fn erase_deleted(&self) -> Result<()> {
        let stream = StreamName::schedules();
        let (mut specs, mut deleted) = (Vec::new(), HashSet::new());
        let mut cursor = records(&*self.journal, &stream, 1);
        while let Some(record) = cursor.next().await? {
            match SchedulesRecord::decode(&record) {
                Ok(SchedulesRecord::Added(added)) => specs.push((added.id, record.seq)),
                Ok(SchedulesRecord::Changed(changed)) => specs.push((changed.id, record.seq)),
                Ok(SchedulesRecord::Deleted(gone)) => drop(deleted.insert(gone.id)),
                _ => {}
            }
        }
        specs.retain(|(id, _)| deleted.contains(id));
        let places: Vec<(StreamName, Seq)> =
            specs.into_iter().map(|(_, seq)| (stream.clone(), seq)).collect();
        if places.is_empty() {
            return Ok(());
        }
        Ok(self.journal.erase(&places, "the schedule was deleted").await?)
    }

    /// Pauses a schedule until it is resumed. A run that has begun goes on.
    pub async fn pause(&self, name: &str) -> Result<ScheduleReport> {
        self.append(|catalog| {
            let id = find(catalog, &self.config, name)?.id;
            Ok(Some(SchedulesRecord::Paused(SchedulePaused { id, reason: None })))
        })
        .await?;
        self.show(name).await
    }

    /// Resumes a paused schedule with its next slot. Does nothing to one that is not paused.
    pub async fn resume(&self, name: &str) -> Result<ScheduleReport> {
        self.append(|catalog| {
            let id = find(catalog, &self.config, name)?.id;
            Ok(Some(SchedulesRecord::Resumed(ScheduleResumed { id })))
        })
        .await?;
        self.show(name).await
    }

    /// Runs a schedule now, paused or not, after the run that goes on. The process that hosts the home does it.
    pub async fn run(&self, name: &str) -> Result<ScheduleReport> {
        self.append(|catalog| {
            let id = find(catalog, &self.config, name)?.id;
            Ok(Some(SchedulesRecord::RunRequested(ScheduleRunRequested { id })))
        })
        .await?;
        self.show(name).await
    }

    /// Whether a process runs the schedules of this home.
    pub async fn is_hosted(&self) -> Result<bool> {
        Ok(self.journal.live_holder(&StreamName::host()).await?.is_some())
    }

    /// Checks a new spec. Its times count in the zone of this process, wherever they are run.
    fn check(&self, spec: ScheduleSpec) -> Result<ScheduleSpec> {
        let needs_zone = spec.zone.is_none() && spec.every.is_none();
        let zone =
            if needs_zone { TimeZone::system().iana_name().map(str::to_owned) } else { spec.zone.clone() };
        let spec = ScheduleSpec { zone, prompt: self.redactor.redact(&spec.prompt).into_owned(), ..spec };
        let invalid = |reason| Error::Schedule { name: spec.name.clone(), reason };
        Timing::check_new(&spec, now()).map_err(invalid)?;
        Ok(spec)
    }

    async fn load(&self) -> Result<CatalogFold> {
        let stream = StreamName::schedules();
        let mut catalog = lock(&self.catalog).clone();
        let mut cursor = records(&*self.journal, &stream, catalog.head + 1);
        while let Some(record) = cursor.next().await? {
            catalog.apply(&record);
        }
        let mut shared = lock(&self.catalog);
        if shared.head < catalog.head {
            *shared = catalog.clone();
        }
        Ok(catalog)
    }

    /// Appends the record that `record` makes of the present catalog, if it makes one, and wakes the process that runs the schedules.
    async fn append(&self, record: impl Fn(&CatalogFold) -> Result<Option<SchedulesRecord>>) -> Result<()> {
        let stream = StreamName::schedules();
        loop {
            let catalog = self.load().await?;
            let Some(mut record) = record(&catalog)? else { return Ok(()) };
            self.bind_session(&mut record).await?;
            let record = self.redactor.redact_record(record.encode());
            match self.journal.append(Append::to(&stream).expecting(catalog.head).record(record)).await {
                Ok(_) => break,
                Err(JournalError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        // The host notices the change within a second even if this wake is lost.
        let _ = self.journal.wake_holder(&stream).await;
        Ok(())
    }

    /// Notes which session the key of a new spec belongs to, so that the schedule follows the session when it is renamed.
    async fn bind_session(&self, record: &mut SchedulesRecord) -> Result<()> {
        let (spec, session) = match record {
            SchedulesRecord::Added(added) => (&added.spec, &mut added.session),
            SchedulesRecord::Changed(changed) => (&changed.spec, &mut changed.session),
            _ => return Ok(()),
        };
        if let Some(key) = spec.session.as_ref().filter(|_| session.is_none()) {
            *session = self.journal.session(key).await?.filter(|entry| !entry.trashed).map(|entry| entry.id);
        }
        Ok(())
    }

    async fn describe(&self, entry: CatalogEntry) -> Result<ScheduleReport> {
        let state = load_state(&*self.journal, &schedule_stream(&entry.id)?).await?;
        describe(&*self.journal, entry, &state, now()).await
    }
}

/// The schedule with this name. Of two, the one of the config.
fn find(catalog: &CatalogFold, config: &[ScheduleSpec], name: &str) -> Result<CatalogEntry> {
    let entries = catalog.entries(config);
    let named = || entries.values().filter(|entry| entry.spec.name == name);
    let of_config = named().find(|entry| entry.source == ScheduleSource::Config);
    of_config.or_else(|| named().next()).cloned().ok_or_else(|| {
        let names: Vec<&str> = entries.values().map(|entry| entry.spec.name.as_str()).collect();
        Error::NoSuchSchedule { name: name.to_owned(), known: suggest_name(name, &names) }
    })
}

/// The id of the added schedule with this name.
fn find_added(catalog: &CatalogFold, config: &[ScheduleSpec], name: &str) -> Result<String> {
    let entries = catalog.entries(config);
    let is_added = |entry: &&CatalogEntry| entry.spec.name == name && entry.source != ScheduleSource::Config;
    match entries.values().find(is_added) {
        Some(entry) => Ok(entry.id.clone()),
        None => {
            find(catalog, config, name)?;
            Err(Error::ScheduleInConfig { name: name.to_owned() })
        }
    }
}

fn suggest_name(name: &str, names: &[&str]) -> String {
    if names.is_empty() {
        return "there are none; `longhaul schedules add` makes one".to_owned();
    }
    let nearest = names.iter().map(|other| (strsim::damerau_levenshtein(name, other), other)).min();
    match nearest {
        Some((distance, other)) if distance <= 2 => format!("did you mean {other:?}?"),
        _ => format!("there are {}", names.join(", ")),
    }
}

/// An id that no schedule ever had: the name, for people who read it, and a random part.
fn new_id(catalog: &CatalogFold, name: &str) -> String {
    loop {
        let random = InputId::generate().to_string().to_lowercase();
        let id = format!("{name}-{}", &random[random.len() - ID_SUFFIX_CHARS..]);
        if !catalog.is_used_id(&id) {
            return id;
        }
    }
}

/// Whether the agent of this session made a schedule.
fn is_of_agent(entry: &CatalogEntry, session: SessionId) -> bool {
    match &entry.source {
        ScheduleSource::Added(ScheduleAuthor::Agent { session: maker, .. }) => *maker == session,
        _ => false,
    }
}

/// Checks the limits on the schedules of an agent.
fn check_agent_limits<'a>(
    spec: &ScheduleSpec,
    entries: impl Iterator<Item = &'a CatalogEntry>,
    session: SessionId,
) -> Result<()> {
    if entries.filter(|entry| is_of_agent(entry, session)).count() >= MAX_BY_AGENT {
        let limit = format!("this session has {MAX_BY_AGENT} schedules, the most that an agent may make");
        return Err(Error::ScheduleLimit { limit });
    }
    let interval = spec.every.as_ref().and_then(|text| text.parse::<Interval>().ok());
    if interval.is_some_and(|interval| interval.seconds() < MIN_AGENT_INTERVAL_S) {
        let limit = format!("an agent's interval is at least {MIN_AGENT_INTERVAL_S}s");
        return Err(Error::ScheduleLimit { limit });
    }
    Ok(())
}
