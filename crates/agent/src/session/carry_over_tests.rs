//! Everything that a session is, besides its context, outlives a compaction; and whoever reads only the newest epoch knows what
//! whoever reads everything knows. For random histories in which everything happens that a state remembers.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use longhaul_context::{WrittenSummary, normalise};
use longhaul_protocol::{
    Answered, ApprovalGrant, At, AttemptEnded, AttemptId, AttemptStarted, BlobRef, Block, CallId, Checkpoint,
    CompactFailed, CompactStart, Effect, EpochReason, EpochStarted, FileSeen, FileWrite, Hash, Image,
    Imported, Input, InputId, InputTaken, Item, JoinMode, ModeChanged, ModelChanged, Note, Order, OrderId,
    OrderKind, OrderTaken, Outcome, PermissionMode, Question, QuestionId, QuestionKind, Record, Role,
    SessionCreated, SessionId, SessionPermission, SessionRecord, StepStarted, Stubbed, Summary, TaskEnded,
    TaskId, TaskNews, TaskStarted, TaskStatus, Todo, TodoStatus, ToolFinished, ToolStarted, TurnEnded,
    TurnStarted, Usage, Warning,
};
use proptest::prelude::*;

use super::MAX_KNOWN_FILES;
use crate::compaction::plan::{Compaction, CompactionTrigger, ContextLimits};
use crate::compaction::plan_compaction;
use crate::session::decide::{Action, decide};
use crate::session::fixtures::{policy, record};
use crate::session::state::{State, Turn};
use crate::session::tasks::TaskState;

/// Something that happens between two steps, or a whole step.
#[derive(Debug, Clone)]
enum Happens {
    Input(JoinMode),
    Cancel,
    Retry,
    Continue,
    Kill,
    AskToCompact,
    /// A step that comes to its answer, with so many calls; the answer may be cut.
    Step {
        calls: usize,
        goes_on: bool,
    },
    /// A step whose answer fails.
    Fail {
        said: bool,
        too_long: bool,
    },
    EndTurn(Outcome),
    StartTask,
    EndTask(TaskStatus),
    Tell,
    Stall,
    AskPerson,
    AnswerPerson,
    ChangeMode(PermissionMode),
    ChangeModel,
    Warn,
    Compact {
        keep: u64,
        by_model: bool,
    },
    FailToCompact,
    LeaveCompactionOpen,
    Stub,
    Upgrade,
    Import {
        mine: bool,
    },
}

fn happens() -> impl Strategy<Value = Happens> {
    let mode =
        prop_oneof![3 => Just(JoinMode::Join), 1 => Just(JoinMode::After), 1 => Just(JoinMode::Interrupt)];
    let outcome = prop_oneof![
        Just(Outcome::Completed),
        Just(Outcome::Cancelled),
        Just(Outcome::Failed),
        Just(Outcome::Limit)
    ];
    let status = prop_oneof![Just(TaskStatus::Completed), Just(TaskStatus::Killed)];
    prop_oneof![
        6 => mode.prop_map(Happens::Input),
        1 => Just(Happens::Cancel),
        1 => Just(Happens::Retry),
        1 => Just(Happens::Continue),
        1 => Just(Happens::Kill),
        1 => Just(Happens::AskToCompact),
        8 => (0usize..4, any::<bool>()).prop_map(|(calls, goes_on)| Happens::Step { calls, goes_on }),
        3 => (any::<bool>(), any::<bool>()).prop_map(|(said, too_long)| Happens::Fail { said, too_long }),
        3 => outcome.prop_map(Happens::EndTurn),
        3 => Just(Happens::StartTask),
        2 => status.prop_map(Happens::EndTask),
        2 => Just(Happens::Tell),
        2 => Just(Happens::Stall),
        1 => Just(Happens::AskPerson),
        1 => Just(Happens::AnswerPerson),
        1 => proptest::sample::select(PermissionMode::ALL.to_vec()).prop_map(Happens::ChangeMode),
        1 => Just(Happens::ChangeModel),
        1 => Just(Happens::Warn),
        3 => (prop_oneof![Just(0u64), 0u64..2_000], any::<bool>())
            .prop_map(|(keep, by_model)| Happens::Compact { keep, by_model }),
        1 => Just(Happens::FailToCompact),
        1 => Just(Happens::LeaveCompactionOpen),
        1 => Just(Happens::Stub),
        1 => Just(Happens::Upgrade),
        1 => any::<bool>().prop_map(|mine| Happens::Import { mine }),
    ]
}

/// Whoever writes the records of a session.
struct Scribe {
    records: Vec<Record>,
    state: State,
    ids: u128,
}

impl Scribe {
    fn new() -> Self {
        let mut scribe = Self { records: vec![], state: State::default(), ids: 1_000 };
        let (id, work_dir) = (SessionId::from_bits(1), Some("/work".to_owned()));
        let created =
            SessionCreated { id, key: "a".into(), work_dir, origin: None, version: "1".into(), parent: None };
        let blob = BlobRef::to(b"x", "text/plain");
        scribe.write(&SessionRecord::SessionCreated(created));
        let epoch = EpochStarted::new(1, EpochReason::Created, blob.clone(), blob);
        scribe.write(&SessionRecord::EpochStarted(epoch));
        scribe
    }

    fn write(&mut self, fact: &SessionRecord) {
        let seq = self.records.len() as u64 + 1;
        let record = Record { at: At(i64::try_from(seq).unwrap() * 10), ..record(seq, fact) };
        self.state.apply(&record).unwrap();
        self.records.push(record);
    }

    fn id(&mut self) -> u128 {
        self.ids += 1;
        self.ids
    }

    fn order(&mut self, kind: OrderKind) {
        let (id, inbox_through) = (OrderId::from_bits(self.id()), self.state.inbox_through + 1);
        self.write(&SessionRecord::OrderTaken(OrderTaken { inbox_through, order: Order { id, kind } }));
    }

    /// Begins a step, if there is anything to begin it for, and an attempt.
    fn begin(&mut self) -> Option<AttemptId> {
        let state = &self.state;
        match &state.turn {
            Some(turn) if turn.cancelled => return None,
            None if state.pending_inputs.is_empty() && state.turn_request.is_none() => return None,
            Some(_) => {}
            None => self.write(&SessionRecord::TurnStarted(TurnStarted::new(self.state.turn_count + 1))),
        }
        let turn = self.state.turn.clone().unwrap();
        if turn.cancelled {
            return None;
        }
        if turn.steps == 0 || turn.answered {
            self.write(&SessionRecord::StepStarted(StepStarted::new(turn.steps + 1)));
        }
        let attempt = AttemptId::from_bits(self.id());
        let model = self.state.model.clone().unwrap_or_else(|| "m".to_owned());
        self.write(&SessionRecord::AttemptStarted(AttemptStarted { attempt, model }));
        Some(attempt)
    }

    fn step(&mut self, calls: usize, goes_on: bool) {
        let Some(attempt) = self.begin() else { return };
        let number = self.id();
        let text = Item::Text { role: Role::Assistant, text: format!("answer {number}") };
        let calls: Vec<CallId> = (0..calls).map(|_| CallId::from_bits(self.id())).collect();
        let called = calls.iter().map(|call| Item::ToolCall {
            call: *call,
            wire_id: None,
            name: "write_file".into(),
            arguments: format!("{{{}}}", number % 2),
            signature: None,
        });
        let blocks: Vec<Item> = std::iter::once(text).chain(called).collect();
        let kept = u32::try_from(blocks.len()).unwrap();
        for (index, item) in (0..).zip(blocks) {
            self.write(&SessionRecord::Block(Block { attempt, index, item }));
        }
        let (stop, goes_on) = (Some("stop".to_owned()), goes_on && calls.is_empty());
        let ended = AttemptEnded { attempt, kept, stop, error: None, goes_on, too_long: None };
        self.write(&SessionRecord::AttemptEnded(ended));
        self.write(&SessionRecord::Usage(Usage {
            cause: None,
            model: None,
            attempt,
            purpose: None,
            input: Some(500 + 7 * u64::try_from(number).unwrap()),
            output: Some(3),
            cached: None,
            cache_written: None,
            cost: Some(0.25),
            estimated: Some(900),
            window: Some(4_000),
            parts: None,
            limits: BTreeMap::from([("requests".to_owned(), number.to_string())]),
        }));
        for call in calls {
            self.call(call, number);
        }
    }

    /// A call with everything that a result can say.
    fn call(&mut self, call: CallId, number: u128) {
        let (name, arguments, path) = ("write_file".to_owned(), "{}".to_owned(), format!("/w/{number}"));
        let hash = Hash::of(number.to_string());
        let write = Some(FileWrite { path: path.clone(), before: None, after: hash });
        let started = ToolStarted {
            call,
            name,
            arguments,
            effect: Effect::CheckedWrite,
            write,
            writes: vec![],
            kept_in: None,
            remote_task: None,
            child: None,
            changes_nothing: false,
        };
        self.write(&SessionRecord::ToolStarted(started));
        let news = self.a_task(|_| true).map(|task_id| TaskNews { task_id, printed: 9, ended: false });
        let todo = Todo { text: format!("todo {number}"), status: TodoStatus::InProgress };
        self.write(&SessionRecord::ToolFinished(ToolFinished {
            seen: Some(FileSeen { path, hash }),
            todo: Some(vec![todo]),
            whole: number.is_multiple_of(2).then(|| BlobRef::to(b"all of it", "text/plain")),
            news,
            ..ToolFinished::new(call, "write_file", "done ".repeat(120))
        }));
    }

    fn fail(&mut self, said: bool, too_long: bool) {
        let Some(attempt) = self.begin() else { return };
        if said {
            self.write(&SessionRecord::Checkpoint(Checkpoint { attempt, text: "half an".into() }));
        }
        let (error, too_long) = (Some("it failed".to_owned()), too_long.then_some(3_000));
        let ended = AttemptEnded { attempt, kept: 0, stop: None, error, goes_on: false, too_long };
        self.write(&SessionRecord::AttemptEnded(ended));
    }

    fn a_task(&self, is_wanted: impl Fn(&TaskState) -> bool) -> Option<TaskId> {
        self.state.tasks.all().iter().rev().find(|task| is_wanted(task)).map(TaskState::id)
    }

    fn next_epoch(&self, reason: EpochReason) -> EpochStarted {
        let blob = BlobRef::to(&self.records.len().to_le_bytes(), "text/plain");
        let before = self.state.epoch.clone().unwrap();
        EpochStarted {
            turns: self.state.turn_count,
            inbox_through: self.state.inbox_through,
            pins: self.state.pins.clone(),
            todo: self.state.todo.clone(),
            folds_from: Some(before.folds_from),
            ..EpochStarted::new(before.number + 1, reason, blob.clone(), blob)
        }
    }

    #[allow(clippy::too_many_lines, reason = "one arm for each kind of record")]
    fn happens(&mut self, what: &Happens) {
        match what {
            Happens::Input(mode) => {
                let (id, inbox_through) = (InputId::from_bits(self.id()), self.state.inbox_through + 1);
                let images = vec![Image { data: BlobRef::to(b"picture", "image/png") }];
                let text = format!("input {id}");
                let input = InputTaken::of(Input { images, ..Input::new(id, text, *mode) }, inbox_through);
                self.write(&SessionRecord::InputTaken(input));
            }
            Happens::Cancel => self.order(OrderKind::Cancel),
            Happens::Retry => self.order(OrderKind::Retry),
            Happens::Continue => self.order(OrderKind::Continue),
            Happens::Kill => {
                if let Some(task) = self.a_task(TaskState::is_running) {
                    self.order(OrderKind::Kill { task });
                }
            }
            Happens::AskToCompact => self.order(OrderKind::Compact { focus: Some("this".into()) }),
            Happens::Step { calls, goes_on } => self.step(*calls, *goes_on),
            Happens::Fail { said, too_long } => self.fail(*said, *too_long),
            Happens::EndTurn(outcome) => {
                let Some(turn) = self.state.turn.as_ref().map(|turn| turn.number) else { return };
                let (text, limit, error, code) = (String::new(), None, None, None);
                let outcome = *outcome;
                let ended = TurnEnded { turn, outcome, limit, text, error, code, inbox_through: None };
                self.write(&SessionRecord::TurnEnded(ended));
            }
            Happens::StartTask => {
                let task_id = TaskId::from(CallId::from_bits(self.id()));
                let (command, description) = ("make".to_owned(), "the build".to_owned());
                let (target, started_at) = ("local".to_owned(), Some(At(5)));
                let task = TaskStarted { task_id, command, description, target, started_at, session: None };
                self.write(&SessionRecord::TaskStarted(task));
            }
            Happens::EndTask(status) => {
                let Some(task_id) = self.a_task(TaskState::is_running) else { return };
                self.write(&SessionRecord::TaskEnded(TaskEnded {
                    task_id,
                    status: *status,
                    exit_code: Some(0),
                    duration_ms: 3,
                    output: Some(BlobRef::to(b"built", "text/plain")),
                    tail: "built".into(),
                    message: None,
                    unasked: false,
                    session: None,
                }));
            }
            Happens::Tell => self.state.tasks.announcements().into_iter().for_each(|fact| self.write(&fact)),
            Happens::Stall => {
                let Some(task_id) = self.a_task(TaskState::is_running) else { return };
                let news = TaskNews { task_id, printed: 12, ended: false };
                let warning = Warning::new("task_waits", "it waits for input");
                self.write(&SessionRecord::Warning(Warning { task: Some(news), ..warning }));
            }
            Happens::AskPerson => {
                let id = QuestionId::from_bits(self.id());
                self.write(&SessionRecord::Question(Question {
                    grant: Some(ApprovalGrant {
                        tool: format!("tool_{id}"),
                        command: None,
                        line: None,
                        work_dir: None,
                        host: None,
                        reasons: vec![],
                    }),
                    ..Question::new(id, QuestionKind::Approval, "so?")
                }));
            }
            Happens::AnswerPerson => {
                let Some(id) = self.state.questions.first().map(|question| question.id) else { return };
                self.write(&SessionRecord::Answered(Answered { id, answer: "always".into(), by: None }));
            }
            Happens::ChangeMode(to) => {
                let from = self.state.permission.mode.unwrap_or(PermissionMode::Auto);
                self.write(&SessionRecord::ModeChanged(ModeChanged { from, to: *to }));
                let note = Note { mode: Some(*to), ..Note::new("the mode changed") };
                self.write(&SessionRecord::Note(note));
            }
            Happens::ChangeModel => {
                let (from, to, reason) = ("m".to_owned(), "n".to_owned(), "it failed".to_owned());
                self.write(&SessionRecord::ModelChanged(ModelChanged { from, to, reason, chosen: true }));
            }
            Happens::Warn => self.write(&SessionRecord::Warning(Warning::new("no_tools", "it has none"))),
            Happens::Compact { keep, by_model } => self.compact(*keep, *by_model),
            Happens::FailToCompact => {
                self.start_compaction();
                let failed = CompactFailed { reason: "no".into(), tokens: Some(4_000), was_needed: false };
                self.write(&SessionRecord::CompactFailed(failed));
            }
            Happens::LeaveCompactionOpen => {
                self.start_compaction();
                let failed = CompactFailed { reason: "interrupted".into(), tokens: None, was_needed: false };
                self.write(&SessionRecord::CompactFailed(failed));
            }
            Happens::Stub => {
                let calibration = self.state.calibration("m");
                let calls = crate::compaction::plan::context_outline(&self.state, &calibration, 0)
                    .plan_stubs(&[])
                    .calls;
                self.write(&SessionRecord::EpochStarted(self.next_epoch(EpochReason::Stubbed)));
                self.write(&SessionRecord::Stubbed(Stubbed { calls }));
            }
            Happens::Upgrade => {
                self.write(&SessionRecord::EpochStarted(self.next_epoch(EpochReason::Changed)));
            }
            Happens::Import { mine } => self.write(&imported(&self.state, *mine)),
        }
    }

    fn start_compaction(&mut self) {
        let start = CompactStart { reason: "asked".into(), focus: None };
        self.write(&SessionRecord::CompactStart(start));
    }

    /// Makes the context smaller, and checks what became of the rest.
    fn compact(&mut self, keep: u64, by_model: bool) {
        // Whoever wants a turn to end waits for nothing; and a person's answer is waited for in the middle of a step.
        let is_between = self.state.turn.as_ref().is_none_or(|turn| !turn.cancelled);
        if !is_between || !self.state.questions.is_empty() && self.state.turn.is_some() {
            return;
        }
        let before = self.state.clone();
        self.start_compaction();
        let summary = Summary { goal: "the goal".into(), ..Summary::default() };
        let written = by_model.then(|| WrittenSummary { summary, withdrawn: vec![] });
        let Ok(facts) = plan_compaction(
            &self.state,
            &ContextLimits::default(),
            CompactionTrigger::Requested,
            written,
            keep,
        ) else {
            // By rule there may be nothing that could go.
            assert!(!by_model);
            let reason = "there is nothing that could go".to_owned();
            let failed = CompactFailed { reason, tokens: Some(1), was_needed: false };
            self.write(&SessionRecord::CompactFailed(failed));
            return;
        };
        let Some(SessionRecord::CompactDone(done)) = facts.last().cloned() else { panic!("{facts:?}") };
        facts.into_iter().for_each(|fact| self.write(&fact));
        assert_eq!(self.state, self.as_carried(before, done.through));
        assert_eq!(normalise(&self.state.items), self.state.items);
    }

    /// The state before a compaction, with the context after it.
    fn as_carried(&self, before: State, covered_through: u64) -> State {
        let after = self.state.clone();
        assert_eq!(after.tasks.all(), before.tasks.all());
        let shown: HashSet<CallId> = after.items.iter().filter_map(result_of).collect();
        let outputs = before.full_outputs.iter().filter(|(call, _)| shown.contains(call));
        State {
            full_outputs: outputs.map(|(call, whole)| (*call, whole.clone())).collect(),
            // Which tasks run stands in the preface.
            tasks: after.tasks,
            turn: before.turn.map(|turn| Turn {
                had_calls: turn.had_calls || !turn.calls.is_empty(),
                results_in_context: turn.answered,
                calls: vec![],
                refusal: None,
                ..turn
            }),
            compaction: Compaction {
                count: before.compaction.count + 1,
                count_since_answer: before.compaction.count_since_answer + 1,
                covered_through,
                ..Compaction::default()
            },
            head: after.head,
            epoch: after.epoch,
            items: after.items,
            places: after.places,
            preface_len: after.preface_len,
            summary: after.summary,
            pins: after.pins,
            provider_count: None,
            // The model is told again of a mode whose note may be gone.
            permission: SessionPermission {
                announced: before.permission.announced.filter(|told| Some(*told) != before.permission.mode),
                ..before.permission
            },
            ..before
        }
    }

    /// The state that whoever loads the session has.
    fn loaded(&self) -> State {
        let from = self.state.epoch.as_ref().unwrap().folds_from;
        let import =
            self.records.iter().rfind(|record| record.kind == "imported").map_or(1, |import| import.seq);
        let mut state = State::default();
        for record in
            self.records.iter().filter(|record| [1, import].contains(&record.seq) || record.seq >= from)
        {
            state.apply(record).unwrap();
        }
        state
    }
}

/// What an import appends to a session in this state.
fn imported(state: &State, mine: bool) -> SessionRecord {
    SessionRecord::Imported(Imported {
        file_hash: Hash::of("the file"),
        at: At(9),
        key: "cli:here".into(),
        work_dir: Some("/here".into()),
        mine,
        inbox_through: state.inbox_through + 3,
        foreign_through: if mine { state.foreign_through } else { state.head + 1 },
        foreign_extracts_through: 0,
    })
}

fn result_of(item: &Arc<Item>) -> Option<CallId> {
    match &**item {
        Item::ToolResult { call, .. } => Some(*call),
        _ => None,
    }
}

/// Which files were seen last is not known; but whoever changed one is likely to go on with it.
#[test]
fn of_too_many_files_those_that_were_changed_last_are_still_known() {
    let path = |number: usize| format!("/w/{number:05}");
    let hash = Hash::of("x");
    let state = State {
        known_files: Arc::new((0..MAX_KNOWN_FILES + 10).map(|number| (path(number), hash)).collect()),
        changed_files: vec![path(MAX_KNOWN_FILES + 9), path(MAX_KNOWN_FILES + 5)],
        ..State::default()
    };

    let seen: Vec<String> = crate::session::carry_over::carry_over(&state, [], 1)
        .seen
        .into_iter()
        .map(|seen| seen.path)
        .collect();

    let expected = (0..MAX_KNOWN_FILES - 2).chain([MAX_KNOWN_FILES + 5, MAX_KNOWN_FILES + 9]).map(path);
    assert_eq!(seen, expected.collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// C3, C11: `epoch_started` carries all state that outlives an epoch.
    #[test]
    fn whatever_is_not_context_outlives_a_compaction_and_the_newest_epoch_says_it_all(
        history in proptest::collection::vec(happens(), 1..60),
    ) {
        let mut scribe = Scribe::new();

        for what in &history {
            scribe.happens(what);

            prop_assert_eq!(&scribe.loaded(), &scribe.state);
        }
    }

    /// S5, P8: on import whatever was open is closed, nothing of the inbox is taken, and the folder is the importer's; at any record.
    #[test]
    fn an_import_closes_whatever_was_open_at_any_record(
        history in proptest::collection::vec(happens(), 1..40),
        mine in any::<bool>(),
    ) {
        let mut scribe = Scribe::new();
        history.iter().for_each(|what| scribe.happens(what));
        let mut state = State::default();

        for before in &scribe.records {
            state.apply(before).unwrap();
            let fact = imported(&state, mine);
            let mut closed = state.clone();
            closed.apply(&record(before.seq + 1, &fact)).unwrap();

            prop_assert_eq!(decide(&closed, &policy()), Action::Rest);
            prop_assert_eq!(closed.inbox_through, state.inbox_through + 3);
            prop_assert_eq!(&closed.created.as_ref().unwrap().work_dir, &Some("/here".to_owned()));
            prop_assert!(closed.pending_inputs.is_empty() && closed.questions.is_empty() && closed.turn_request.is_none());
            prop_assert!(closed.tasks.all().is_empty() && closed.compaction.open_reason.is_none());
            prop_assert_eq!(normalise(&closed.items), closed.items.clone(), "each call has one result");
            let is_foreign = closed.foreign_through == before.seq + 1;
            prop_assert_eq!(is_foreign, !mine);
            prop_assert!(mine || closed.pins.is_empty());
        }
    }
}
