//! Random interleavings of inputs, orders, answers, tool ends and crashes, against the pure core: a thousand sessions a second.
//!
//! A driver without a journal carries out what `decide` says, one append at a time. Between any two appends the process may
//! die: what it knew is gone, and the state is folded again from the records.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use longhaul_agent::{Action, Limits, Policy, State, Wake, decide};
use longhaul_protocol::{
    At, AttemptEnded, AttemptId, AttemptStarted, BlobRef, Block, Body, CallId, Effect, EpochReason,
    EpochStarted, Hash, InputId, InputTaken, Item, JoinMode, Order, OrderId, OrderKind, OrderTaken, Record,
    Role, SessionCreated, SessionId, SessionRecord, StepStarted, StreamName, TaskEnded, TaskId, TaskStarted,
    TaskStatus, ToolFinished, ToolStarted, TurnEnded, TurnStarted,
};
use longhaul_testkit::broken_rules;
use proptest::prelude::*;

/// What happens besides what the driver does.
#[derive(Debug, Clone)]
enum Happens {
    Input(JoinMode),
    Cancel,
    /// The driver makes so many appends.
    Work(usize),
    Crash,
    /// What a context begins with has changed.
    Upgrade,
    /// One of the tasks that run ends.
    End(usize, TaskStatus),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        2 => prop_oneof![Just(JoinMode::Join), Just(JoinMode::After), Just(JoinMode::Interrupt)].prop_map(Happens::Input),
        1 => Just(Happens::Cancel),
        6 => (1usize..9).prop_map(Happens::Work),
        2 => Just(Happens::Crash),
        1 => Just(Happens::Upgrade),
        2 => (0usize..4, prop_oneof![3 => Just(TaskStatus::Completed), 1 => Just(TaskStatus::Killed)])
            .prop_map(|(which, status)| Happens::End(which, status)),
    ]
}

/// A session, its inbox, and what was done to the world.
struct World {
    id: SessionId,
    records: Vec<Record>,
    state: State,
    inbox: Vec<SessionRecord>,
    inputs: Vec<InputId>,
    /// How often each call had its effect.
    effects: HashMap<CallId, usize>,
    /// What became of each task, as its keeper knows.
    keepers: BTreeMap<TaskId, TaskStatus>,
    /// What the model was asked last.
    request: Vec<Arc<Item>>,
    /// Appends that the driver has decided on and not made.
    pending: std::collections::VecDeque<Step>,
    /// What the model answers: how many calls in each answer, over and over.
    calls: Vec<usize>,
    answers: usize,
    /// What a context begins with.
    version: u8,
}

enum Step {
    Append(Vec<SessionRecord>),
    Effect(CallId),
}

impl World {
    fn new(calls: Vec<usize>) -> Self {
        let id = SessionId::generate();
        let blob = BlobRef::to(&[0], "text/plain");
        let created =
            SessionCreated { id, key: "a".into(), work_dir: None, origin: None, version: "1".into() };
        let epoch = EpochStarted::new(1, EpochReason::Created, blob.clone(), blob);
        let mut world = Self {
            id,
            records: vec![],
            state: State::default(),
            inbox: vec![],
            inputs: vec![],
            effects: HashMap::new(),
            keepers: BTreeMap::new(),
            request: vec![],
            pending: std::collections::VecDeque::new(),
            calls,
            answers: 0,
            version: 0,
        };
        world.append(vec![SessionRecord::SessionCreated(created), SessionRecord::EpochStarted(epoch)]);
        world
    }

    fn append(&mut self, facts: Vec<SessionRecord>) {
        for fact in facts {
            let new = fact.encode();
            let record = Record {
                stream: StreamName::session(self.id),
                seq: self.records.len() as u64 + 1,
                at: At(0),
                kind: new.kind,
                key: None,
                body: Body::Here(new.body),
                prev: Hash::ZERO,
                hash: Hash::ZERO,
            };
            self.state.apply(&record).unwrap();
            self.records.push(record);
        }
    }

    fn crash(&mut self) {
        self.pending.clear();
        self.state = State::default();
        for record in &self.records {
            self.state.apply(record).unwrap();
        }
    }

    /// The inputs that join, in the order in which they came.
    fn joined(&self) -> impl Iterator<Item = &String> {
        self.inbox.iter().filter_map(|fact| match fact {
            SessionRecord::InputTaken(input) if input.mode == JoinMode::Join => Some(&input.text),
            _ => None,
        })
    }

    /// Records the ends that are not on record.
    fn take_ends(&mut self) {
        let over = self.state.tasks.running().filter_map(|task| {
            let status = self.keepers.get(&task.id()).filter(|status| **status != TaskStatus::Running)?;
            let (exit_code, duration_ms, output, tail, message) = (None, 1, None, String::new(), None);
            let (task_id, status) = (task.id(), *status);
            let unasked = false;
            let end = TaskEnded { task_id, status, exit_code, duration_ms, output, tail, message, unasked };
            Some(SessionRecord::TaskEnded(end))
        });
        self.append(over.collect());
    }

    /// Ends all tasks that run; false if there is none. What wakes for them starts no more.
    fn end_all(&mut self) -> bool {
        self.calls = vec![0];
        let running = self.keepers.values_mut().filter(|kept| **kept == TaskStatus::Running);
        running.map(|kept| *kept = TaskStatus::Failed).count() > 0
    }

    /// M16: what the model is asked begins with what it was asked before.
    fn ask(&mut self) {
        let request = longhaul_context::normalise(&self.state.items);
        assert!(request.starts_with(&self.request), "{request:?} does not begin with {:?}", self.request);
        self.request = request;
    }

    fn take_inbox(&mut self) {
        let taken = usize::try_from(self.state.inbox_through).unwrap();
        self.append(self.inbox[taken..].to_vec());
    }

    fn policy(&self) -> Policy {
        let hash = Hash::of([self.version]);
        let limits = Limits { steps: 40, ..Limits::default() };
        let reads = vec!["look".into()];
        Policy {
            system: hash,
            tools: hash,
            limits,
            reads,
            is_out_of_time: false,
            must_end: None,
            space: longhaul_agent::Space::default(),
            wake: Wake::Always,
            is_gathering: false,
        }
    }

    /// One append of the driver; false if it rests.
    fn work(&mut self) -> bool {
        loop {
            match self.pending.pop_front() {
                Some(Step::Append(facts)) => {
                    let asks = facts.iter().any(|fact| matches!(fact, SessionRecord::AttemptStarted(_)));
                    self.append(facts);
                    if asks {
                        self.ask();
                    }
                    return true;
                }
                Some(Step::Effect(call)) => {
                    *self.effects.entry(call).or_default() += 1;
                    if self.state.call(call).is_some_and(|call| call.name == "start") {
                        self.keepers.insert(call.into(), TaskStatus::Running);
                    }
                    return true;
                }
                None => {}
            }
            self.take_inbox();
            self.take_ends();
            match decide(&self.state, &self.policy()) {
                Action::Rest => return false,
                action => self.plan(action),
            }
        }
    }

    fn plan(&mut self, action: Action) {
        let mut steps = Vec::new();
        match action {
            Action::CallModel { turn, step } => {
                let attempt = AttemptId::generate();
                let mut facts = Vec::new();
                facts.extend(turn.map(|turn| SessionRecord::TurnStarted(TurnStarted { turn })));
                facts.extend(step.into_iter().flat_map(|_| self.state.tasks.tell()));
                facts.extend(step.map(|step| SessionRecord::StepStarted(StepStarted { step })));
                let model = "m".to_owned();
                facts.push(SessionRecord::AttemptStarted(AttemptStarted { attempt, model }));
                steps.push(Step::Append(facts));
                let blocks = self.answer();
                let kept = u32::try_from(blocks.len()).unwrap();
                steps.extend((0..).zip(blocks).map(|(index, item)| {
                    Step::Append(vec![SessionRecord::Block(Block { attempt, index, item })])
                }));
                let ended = AttemptEnded {
                    attempt,
                    kept,
                    stop: Some("stop".into()),
                    error: None,
                    goes_on: false,
                    too_long: None,
                };
                steps.push(Step::Append(vec![SessionRecord::AttemptEnded(ended)]));
            }
            Action::CloseAttempt { kept } => {
                let attempt = self.state.turn.as_ref().unwrap().attempt.as_ref().unwrap().id;
                let kept = u32::try_from(kept).unwrap();
                let ended = AttemptEnded {
                    attempt,
                    kept,
                    stop: None,
                    error: Some("interrupted".into()),
                    goes_on: false,
                    too_long: None,
                };
                steps.push(Step::Append(vec![SessionRecord::AttemptEnded(ended)]));
            }
            Action::RunTools(calls) => steps = self.run(&calls),
            Action::AwaitAnswer(_) => unreachable!("nobody asks here"),
            Action::EndTurn(ending) => {
                let turn = self.state.turn.as_ref().unwrap();
                let waiting = turn.calls.iter().filter(|call| call.result.is_none());
                let mut facts: Vec<_> = waiting
                    .map(|call| {
                        SessionRecord::ToolFinished(ToolFinished::new(call.id, &call.name, "not run"))
                    })
                    .collect();
                let (number, text) = (turn.number, turn.text.clone());
                let (outcome, limit, error) = (ending.outcome, ending.limit, ending.error);
                facts.push(SessionRecord::TurnEnded(TurnEnded {
                    turn: number,
                    outcome,
                    limit,
                    text,
                    error,
                    code: None,
                    inbox_through: None,
                }));
                steps.push(Step::Append(facts));
            }
            Action::StartEpoch => {
                let (blob, before) =
                    (BlobRef::to(&[self.version], "text/plain"), self.state.epoch.clone().unwrap());
                steps.push(Step::Append(vec![SessionRecord::EpochStarted(EpochStarted {
                    turns: self.state.turns,
                    inbox_through: self.state.inbox_through,
                    folds_from: Some(before.folds_from),
                    ..EpochStarted::new(before.number + 1, EpochReason::Changed, blob.clone(), blob)
                })]));
            }
            Action::BeginTurn(turn) => {
                let mut facts = vec![SessionRecord::TurnStarted(TurnStarted { turn })];
                facts.extend(self.state.tasks.tell());
                facts.push(SessionRecord::StepStarted(StepStarted { step: 1 }));
                steps.push(Step::Append(facts));
            }
            Action::CloseCompaction | Action::Stub(_) | Action::Compact(_) => {
                unreachable!("there is room for everything here")
            }
            Action::Rest => {}
        }
        self.pending.extend(steps);
    }

    fn answer(&mut self) -> Vec<Item> {
        self.answers += 1;
        let calls = self.calls[self.answers % self.calls.len()];
        let mut blocks = vec![Item::Text { role: Role::Assistant, text: format!("answer {}", self.answers) }];
        blocks.extend((0..calls).map(|number| Item::ToolCall {
            call: CallId::generate(),
            wire_id: None,
            name: ["look", "launch", "start"][number % 3].to_owned(),
            arguments: String::new(),
            signature: None,
        }));
        blocks
    }

    fn run(&self, calls: &[CallId]) -> Vec<Step> {
        let mut steps = Vec::new();
        for id in calls {
            let call = self.state.call(*id).unwrap();
            let name = call.name.clone();
            let finished = |content: String| {
                Step::Append(vec![SessionRecord::ToolFinished(ToolFinished::new(*id, &name, content))])
            };
            if call.is_open() && name == "launch" {
                steps.push(finished("unknown".to_owned()));
                continue;
            }
            let has_keeper = self.keepers.contains_key(&TaskId::from(*id));
            if !call.is_open() {
                let effect = match name.as_str() {
                    "look" => Effect::Read,
                    "start" => Effect::Command,
                    _ => Effect::Unknown,
                };
                let (name, arguments) = (name.clone(), String::new());
                let started = ToolStarted { call: *id, name, arguments, effect, write: None, kept_in: None };
                steps.push(Step::Append(vec![SessionRecord::ToolStarted(started)]));
            }
            if !has_keeper {
                steps.push(Step::Effect(*id));
            }
            if name == "start" {
                let (command, description) = ("make".to_owned(), "build".to_owned());
                let (task_id, target, started_at) = (TaskId::from(*id), "local".to_owned(), None);
                let task = TaskStarted { task_id, command, description, target, started_at };
                let result = ToolFinished::new(*id, &name, "background_started");
                steps.push(Step::Append(vec![
                    SessionRecord::TaskStarted(task),
                    SessionRecord::ToolFinished(result),
                ]));
            } else {
                steps.push(finished(format!("result of {id}")));
            }
        }
        steps
    }

    fn happens(&mut self, what: &Happens) {
        let inbox_through = self.inbox.len() as u64 + 1;
        match what {
            Happens::Input(mode) => {
                let id = InputId::generate();
                self.inputs.push(id);
                let text = format!("input {id}");
                self.inbox.push(SessionRecord::InputTaken(InputTaken {
                    id,
                    inbox_through,
                    text,
                    images: vec![],
                    mode: *mode,
                }));
            }
            Happens::Cancel => {
                let order = Order { id: OrderId::generate(), kind: OrderKind::Cancel };
                self.inbox.push(SessionRecord::OrderTaken(OrderTaken { inbox_through, order }));
            }
            Happens::Work(appends) => {
                for _ in 0..*appends {
                    // A worker takes what came whenever it is rung, also in the middle of what it does.
                    self.take_inbox();
                    self.take_ends();
                    self.work();
                }
            }
            Happens::Crash => self.crash(),
            Happens::End(which, status) => {
                let running = self.keepers.values_mut().filter(|kept| **kept == TaskStatus::Running);
                running.skip(*which).take(1).for_each(|kept| *kept = *status);
            }
            Happens::Upgrade => {
                self.version = self.version.wrapping_add(1);
                self.crash();
            }
        }
    }
}

/// How many histories; `scripts/soak` sets another number.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|number| number.parse().ok()).unwrap_or(600)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    /// T1, T3, T5, T13, K5, K9, M16
    #[test]
    fn nothing_is_lost_and_nothing_is_done_twice(
        calls in proptest::collection::vec(0usize..4, 1..6),
        history in proptest::collection::vec(happens(), 1..40),
    ) {
        let mut world = World::new(calls);

        for what in &history {
            world.happens(what);
        }
        let mut appends = 0;
        while world.work() || world.end_all() {
            appends += 1;
            prop_assert!(appends < 100_000, "it does not come to an end");
        }

        prop_assert_eq!(broken_rules(&world.records), Vec::<String>::new());
        prop_assert!(world.state.turn.is_none() && world.state.waiting.is_empty());
        let texts = || world.state.items.iter().filter_map(|item| match &**item {
            Item::Text { role: Role::User, text } if text.starts_with("input") => Some(text.clone()),
            _ => None,
        });
        // T3: every input is in the context, once.
        let sent: Vec<String> = world.inputs.iter().map(|id| format!("input {id}")).collect();
        let seen: Vec<String> = texts().collect();
        let (mut all, mut expected) = (seen.clone(), sent.clone());
        all.sort();
        expected.sort();
        prop_assert_eq!(all, expected);
        // Only what waits for the next turn may be overtaken.
        let joins: Vec<&String> = world.joined().collect();
        let in_order: Vec<&String> = seen.iter().filter(|text| joins.contains(text)).collect();
        prop_assert_eq!(in_order, joins);
        // T13: what may not happen twice did not.
        for (call, times) in &world.effects {
            let launched = world.state.items.iter().any(|item| {
                matches!(&**item, Item::ToolCall { call: id, name, .. } if id == call && name == "launch")
            });
            prop_assert!(!launched || *times == 1);
        }
        // K5, K8, K9: each task was started once, and its end is told once, unless somebody ended it.
        let notified = |id: &TaskId| world.state.items.iter().filter(|item| {
            matches!(&***item, Item::Text { role: Role::User, text } if text.contains(&format!("<task-id>{id}<")))
        }).count();
        for (id, status) in &world.keepers {
            prop_assert_eq!(world.effects[&id.call()], 1);
            prop_assert_eq!(notified(id), usize::from(*status != TaskStatus::Killed), "{}", id);
        }
        // T5: and each call has its result right where a provider wants it.
        let normal = longhaul_context::normalise(&world.state.items);
        prop_assert_eq!(&normal, &world.state.items);
    }
}
