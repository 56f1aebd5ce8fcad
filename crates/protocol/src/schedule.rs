use serde::{Deserialize, Serialize};

use crate::record::record_kinds;
use crate::{At, CallId, InputId, Outcome, Seq, SessionId};

record_kinds! {
    /// The records of the stream `schedules`: which schedules there are beside those of the config, and what people want of all of
    /// them. Any process appends to it, with the head that it expects.
    SchedulesRecord {
        "schedule_added" => Added(ScheduleAdded),
        "schedule_changed" => Changed(ScheduleChanged),
        "schedule_deleted" => Deleted(ScheduleDeleted),
        "schedule_paused" => Paused(SchedulePaused),
        "schedule_resumed" => Resumed(ScheduleResumed),
        "schedule_run_requested" => RunRequested(ScheduleRunRequested),
    }
}

record_kinds! {
    /// The records of `schedule/<id>`: what was decided about each slot, and what came of it. Appended under the stream's lease.
    ScheduleRecord {
        "schedule_began" => Began(ScheduleBegan),
        "slot_decided" => Decided(SlotDecided),
        "slot_fired" => Fired(SlotFired),
        "slot_ended" => Ended(SlotEnded),
    }
}

/// A schedule as people write it: in the config, on the command line, over HTTP. The times are texts, which the crate `schedule` parses.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScheduleSpec {
    /// Name, unique in the home: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// When it runs: five fields (minute, hour, day, month, weekday), such as `0 7 * * 1-5`. Or `every`, or `at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// Time between two runs, such as `30m`, counted from when the schedule was made or resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// The time of the only run, such as `2026-12-24T18:00`, with a zone of its own or without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Time zone, such as `Europe/Berlin`; unset: the zone of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Session that the runs go to; unset: each run has a session of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Folder that a new session works in; unset: the folder of the process that runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_dir: Option<String>,
    /// What the agent is asked to do.
    pub prompt: String,
    /// Which runs are made up for after an outage: `latest`, `all` or `none`.
    #[serde(default)]
    pub missed: MissedPolicy,
    /// What a run does while the one before it goes on: `queue` (wait), `skip` or `interrupt`.
    #[serde(default)]
    pub overlap: OverlapPolicy,
    /// How late a run may still start.
    #[serde(default = "ScheduleSpec::default_grace")]
    pub grace: String,
    /// Longest delay of the runs. Each schedule has a fixed delay up to it, so that many don't start together.
    #[serde(default = "ScheduleSpec::default_jitter")]
    pub jitter: String,
    /// US dollars per run; 0 for no limit.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub cost_per_run: f64,
    /// Failures in a row after which it pauses; 0 for never.
    #[serde(default = "ScheduleSpec::default_max_failures")]
    pub max_failures: u32,
    /// A heartbeat: a run may end with "nothing to do", and such runs don't stay in the context.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub heartbeat: bool,
    /// Whether it runs.
    #[serde(default = "ScheduleSpec::default_enabled")]
    pub enabled: bool,
}

impl ScheduleSpec {
    /// A schedule with this name and prompt and the defaults. It has no time yet.
    pub fn new(name: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            cron: None,
            every: None,
            at: None,
            zone: None,
            session: None,
            work_dir: None,
            prompt: prompt.into(),
            missed: MissedPolicy::default(),
            overlap: OverlapPolicy::default(),
            grace: Self::default_grace(),
            jitter: Self::default_jitter(),
            cost_per_run: 0.0,
            max_failures: Self::default_max_failures(),
            heartbeat: false,
            enabled: Self::default_enabled(),
        }
    }

    fn default_grace() -> String {
        "1h".to_owned()
    }

    fn default_jitter() -> String {
        "0s".to_owned()
    }

    fn default_max_failures() -> u32 {
        5
    }

    fn default_enabled() -> bool {
        true
    }

    /// What the schedule's slots and their session depend on.
    pub fn terms(&self) -> ScheduleTerms {
        ScheduleTerms {
            cron: self.cron.clone(),
            every: self.every.clone(),
            at: self.at.clone(),
            zone: self.zone.clone(),
            session: self.session.clone(),
            enabled: self.enabled,
        }
    }
}

/// What the slots of a schedule and their session depend on. When these change, a schedule begins anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleTerms {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    pub enabled: bool,
}

/// Which slots of an outage are run afterwards. Slots that are later than the grace period never are.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissedPolicy {
    /// The newest one.
    #[default]
    Latest,
    /// Each of them, one after the other.
    All,
    /// None of them.
    None,
}

/// What happens to a slot while the run before it goes on.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverlapPolicy {
    /// It waits for the end of that run.
    #[default]
    Queue,
    /// It is skipped.
    Skip,
    /// It cancels that run.
    Interrupt,
}

/// Who made a schedule.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum ScheduleAuthor {
    /// A person, by the command line or over HTTP.
    Person,
    /// The agent of a session. Its prompt is not a person's word (P8).
    Agent { session: SessionId, call: CallId },
}

/// A schedule was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScheduleAdded {
    /// Never used again, even after the schedule is deleted and another one gets its name.
    pub id: String,
    pub spec: ScheduleSpec,
    pub author: ScheduleAuthor,
    /// The session with the key that the spec names, if there was one. It stays the target when it is renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

/// A schedule got another spec. Its name stays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScheduleChanged {
    pub id: String,
    pub spec: ScheduleSpec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

/// A schedule was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleDeleted {
    pub id: String,
}

/// A schedule runs no more until it is resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulePaused {
    pub id: String,
    /// Why the runtime paused it; absent if a person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A schedule runs again. Slots before this record are not made up for, and failures before it do not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleResumed {
    pub id: String,
}

/// Somebody wants a schedule to run now, whatever its times are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleRunRequested {
    pub id: String,
}

/// The runtime saw a schedule for the first time, with other terms, or after it was resumed. Its slots and its failures count from here
/// on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleBegan {
    /// Slots after this moment count, and an `every` counts from it: when the schedule was added, changed or resumed. For a schedule of
    /// the config, when the runtime first saw it.
    pub from: At,
    pub terms: ScheduleTerms,
    /// The session that the runs go to, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

/// What is done about a slot. On record before it is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlotDecided {
    /// The time that the schedule names. Slots up to it are decided.
    pub slot: At,
    /// The same was decided about all slots since this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<At>,
    pub action: SlotAction,
    /// The slot fires to make up for an outage. Only so many of these run at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// The session that a fired slot goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The input that a fired slot becomes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<InputId>,
    /// The request of a person, in the stream `schedules`. The slot is none of the schedule's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Seq>,
    /// The state before this record. Present if no run was open, so that the fold can begin here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Box<ScheduleCheckpoint>>,
}

/// What is done about a slot.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotAction {
    /// An input is put into the session's inbox.
    Fire,
    /// Nothing, because the run before it goes on.
    Skip,
    /// Nothing, because it is too late.
    Missed,
}

/// The state of a schedule at which no run is open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScheduleCheckpoint {
    /// Slots up to here are decided.
    pub through: At,
    /// Failed runs since the last one that succeeded.
    #[serde(default)]
    pub failures: u32,
    /// The last request to run now that was decided, in the stream `schedules`.
    #[serde(default)]
    pub requests_through: Seq,
    /// How the schedule began, with the session that its runs go to.
    pub began: ScheduleBegan,
    /// The last run that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<LastRun>,
}

/// The input of a fired slot is in the session's inbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotFired {
    pub slot: At,
    /// The position of the input in the inbox.
    pub input_seq: Seq,
    /// A record of the session before the one that takes the input.
    pub after: Seq,
}

/// The turn of a fired slot has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlotEnded {
    pub slot: At,
    /// When the runtime saw the end. A slot that waited for it is not late because of that.
    pub at: At,
    pub outcome: RunOutcome,
    /// US dollars that the turn cost; absent if a price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Why it did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How a run ended.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    Completed,
    Cancelled,
    Failed,
    /// A limit of the turn or of spending was reached.
    Limit,
    /// The session was deleted, or the input was taken back, before a turn ended.
    Abandoned,
}

impl From<Outcome> for RunOutcome {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Completed => Self::Completed,
            Outcome::Cancelled => Self::Cancelled,
            Outcome::Failed => Self::Failed,
            Outcome::Limit => Self::Limit,
        }
    }
}

/// The last run of a schedule that has ended.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LastRun {
    pub slot: At,
    pub session: SessionId,
    pub outcome: RunOutcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
