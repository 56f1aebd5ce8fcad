//! A session in memory, with its inbox, keepers and model, and the driver that carries out what `decide` says, append by append.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use longhaul_agent::config::{ContextSettings, Summary as Summaries, Wake};
use longhaul_agent::session::{
    Action, CompactionTrigger, ContextLimits, Policy, State, TurnLimits, decide, plan_compaction,
};
use longhaul_context::normalise;
use longhaul_protocol::{
    At, AttemptId, AttemptStarted, BlobRef, Block, Body, CallId, CompactFailed, CompactStart, Effect,
    EpochReason, EpochStarted, Hash, Input, InputId, InputTaken, Item, JoinMode, Order, OrderId, OrderKind,
    OrderTaken, Record, Role, SessionCreated, SessionId, SessionRecord, StepStarted, StreamName, Stubbed,
    TaskEnded, TaskId, TaskStarted, TaskStatus, ToolFinished, ToolStarted, TurnEnded, TurnStarted, Usage,
};
use longhaul_testkit::of_newest_epoch;

use super::{Happens, ended, written};

/// What system prompt and tools take.
const FIXED: u64 = 40;

#[derive(Debug, Clone)]
pub(super) struct Nature {
    /// What the model answers: how many calls in each answer, over and over.
    pub(super) calls: Vec<usize>,
    /// How long what is said is, in bytes, over and over.
    pub(super) sizes: Vec<usize>,
    /// How long the output of a tool is, besides.
    pub(super) output: usize,
    /// How large the context may be.
    pub(super) window: Option<u64>,
    /// How long each summary is; nothing, where the summariser fails.
    pub(super) summaries: Vec<Option<usize>>,
    /// Whether a model writes summaries.
    pub(super) has_summaries: bool,
    /// The model counts so many tokens for ten that are estimated; nothing, where it does not say.
    pub(super) counts: Option<u64>,
}

/// A session, its inbox, and what was done to the world.
pub(super) struct World {
    id: SessionId,
    pub(super) nature: Nature,
    pub(super) records: Vec<Record>,
    pub(super) state: State,
    inbox: Vec<SessionRecord>,
    pub(super) inputs: Vec<InputId>,
    /// The record with which each input came into the context.
    pub(super) seen_at: HashMap<InputId, u64>,
    /// How often each call had its effect.
    pub(super) effects: HashMap<CallId, usize>,
    /// What became of each task, as its keeper knows.
    pub(super) keepers: BTreeMap<TaskId, TaskStatus>,
    /// What the model was asked last in this epoch.
    request: Vec<Arc<Item>>,
    /// What the driver has decided on and not done.
    pending: VecDeque<Step>,
    answers: usize,
    said: usize,
    /// How many compactions there were since the last answer.
    in_a_row: usize,
    /// What a context begins with.
    version: u8,
    /// So many of the next prompts are too long for the model.
    refusals: usize,
    /// The last prompt was too long, and the context is as it was.
    is_refused: bool,
    is_idle: bool,
}

enum Step {
    Append(Vec<SessionRecord>),
    Effect(CallId),
    /// What comes of a compaction.
    Switch(CompactionTrigger),
}

impl World {
    pub(super) fn new(nature: Nature) -> Self {
        let id = SessionId::generate();
        let blob = BlobRef::to(&[0], "text/plain");
        let created = SessionCreated {
            id,
            key: "a".into(),
            work_dir: None,
            origin: None,
            version: "1".into(),
            parent: None,
        };
        let epoch = EpochStarted::new(1, EpochReason::Created, blob.clone(), blob);
        let mut world = Self {
            id,
            nature,
            records: vec![],
            state: State::default(),
            inbox: vec![],
            inputs: vec![],
            seen_at: HashMap::new(),
            effects: HashMap::new(),
            keepers: BTreeMap::new(),
            request: vec![],
            pending: VecDeque::new(),
            answers: 0,
            said: 0,
            in_a_row: 0,
            version: 0,
            refusals: 0,
            is_refused: false,
            is_idle: false,
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
            let waited: Vec<InputId> = self.state.pending_inputs.iter().map(|input| input.id).collect();
            let answers = self.state.answer_count;
            self.state.apply(&record).unwrap();
            for id in
                waited.into_iter().filter(|id| self.state.pending_inputs.iter().all(|input| input.id != *id))
            {
                self.seen_at.insert(id, record.seq);
            }
            match fact {
                SessionRecord::AttemptEnded(ended) => self.is_refused = ended.too_long.is_some(),
                // M12: because of one refusal there is one compaction.
                SessionRecord::CompactStart(start) if start.reason == "overflow" => {
                    assert!(self.is_refused, "nobody has refused this context");
                }
                // Only here may what the model reads begin differently.
                SessionRecord::EpochStarted(epoch) if epoch.reason != EpochReason::Changed => {
                    self.request.clear();
                }
                // A new turn has new chances.
                SessionRecord::TurnEnded(_) => self.in_a_row = 0,
                // C6: without an answer between them there are at most two.
                SessionRecord::CompactDone(_) => {
                    self.in_a_row += 1;
                    self.is_refused = false;
                    assert!(self.in_a_row <= 2, "compaction {} in a row", self.in_a_row);
                    assert_eq!(normalise(&self.state.items), self.state.items, "T5");
                }
                _ => {}
            }
            if self.state.answer_count > answers {
                self.in_a_row = 0;
            }
            self.records.push(record);
        }
    }

    /// The process dies: what it knew is gone, and the next one reads the newest epoch.
    fn crash(&mut self) {
        self.pending.clear();
        self.is_idle = false;
        let loaded = of_newest_epoch(&self.records);
        assert_eq!(loaded, self.state, "whoever loads it knows what whoever was there knew");
        self.state = loaded;
    }

    /// Something is said that is so long.
    fn words(&mut self, begin: String) -> String {
        self.said += 1;
        let size = self.nature.sizes[self.said % self.nature.sizes.len()];
        begin + " " + &"words ".repeat(size / 6)
    }

    /// The inputs that join, in the order in which they came.
    pub(super) fn joined(&self) -> impl Iterator<Item = InputId> {
        self.inbox.iter().filter_map(|fact| match fact {
            SessionRecord::InputTaken(input) if input.mode == JoinMode::Join => Some(input.id),
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
            let end = TaskEnded {
                task_id,
                status,
                exit_code,
                duration_ms,
                output,
                tail,
                message,
                unasked,
                session: None,
            };
            Some(SessionRecord::TaskEnded(end))
        });
        self.append(over.collect());
    }

    /// Ends all tasks that run; false if there is none. What wakes for them starts no more.
    pub(super) fn end_all(&mut self) -> bool {
        self.nature.calls = vec![0];
        let running = self.keepers.values_mut().filter(|kept| **kept == TaskStatus::Running);
        running.map(|kept| *kept = TaskStatus::Failed).count() > 0
    }

    /// M16: what the model is asked begins with what it was asked before. T5: and nothing in it has to be put right.
    fn ask(&mut self) {
        let request = normalise(&self.state.items);
        assert_eq!(request, self.state.items, "T5");
        assert!(request.starts_with(&self.request), "{request:?} does not begin with {:?}", self.request);
        self.request = request;
    }

    fn take_inbox(&mut self) {
        let taken = usize::try_from(self.state.inbox_through).unwrap();
        self.append(self.inbox[taken..].to_vec());
    }

    fn policy(&self) -> Policy {
        let hash = Hash::of([self.version]);
        let limits = TurnLimits { steps: 40, ..TurnLimits::default() };
        let reads = vec!["look".into()];
        Policy {
            system: hash,
            tools: hash,
            limits,
            parallel_tools: reads,
            is_out_of_time: false,
            forced_end: None,
            refusal: None,
            context: self.space(),
            wake: Wake::Always,
            is_batching_task_ends: false,
        }
    }

    fn space(&self) -> ContextLimits {
        let summary = if self.nature.has_summaries { Summaries::Model } else { Summaries::Off };
        let settings = ContextSettings { summary, ..ContextSettings::default() };
        let window = self.nature.window;
        let answer = window.map_or(1_000, |window| window / 4);
        let space = ContextLimits::new(&self.state, "m", window, answer, FIXED, &settings);
        ContextLimits { is_idle: self.is_idle, ..space }
    }

    /// One append of the driver; false if it rests.
    pub(super) fn work(&mut self) -> bool {
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
                Some(Step::Switch(trigger)) => {
                    self.switch(trigger);
                    return true;
                }
                None => {}
            }
            self.take_inbox();
            self.take_ends();
            match decide(&self.state, &self.policy()) {
                Action::Rest => {
                    self.is_idle = false;
                    return false;
                }
                action => self.plan(action),
            }
        }
    }

    fn plan(&mut self, action: Action) {
        let mut steps = Vec::new();
        match action {
            Action::CallModel { turn, step } => steps = self.call_model(turn, step),
            Action::CloseAttempt { kept } => {
                let attempt = self.state.turn.as_ref().unwrap().attempt.as_ref().unwrap().id;
                steps.push(Step::Append(vec![ended(attempt, kept, Some("interrupted"))]));
            }
            Action::RunTools(calls) => steps = self.run(&calls),
            Action::AwaitAnswer(_) | Action::AskBudget(_) => unreachable!("nobody asks here"),
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
                    code: ending.code,
                    inbox_through: None,
                }));
                steps.push(Step::Append(facts));
            }
            Action::StartEpoch => steps.push(self.epoch_step(EpochReason::Changed)),
            Action::DropQuietTurns => steps.push(self.epoch_step(EpochReason::QuietDropped)),
            Action::BeginTurn(turn) => {
                let mut facts = vec![SessionRecord::TurnStarted(TurnStarted::new(turn))];
                facts.extend(self.state.tasks.announcements());
                facts.push(SessionRecord::StepStarted(StepStarted::new(1)));
                steps.push(Step::Append(facts));
            }
            Action::CloseCompaction => {
                let failed = CompactFailed { reason: "interrupted".into(), tokens: None, was_needed: false };
                steps.push(Step::Append(vec![SessionRecord::CompactFailed(failed)]));
            }
            Action::Stub(calls) => {
                let mut epoch = self.next_epoch(EpochReason::Stubbed);
                if let (Some(_), Some(now)) = (&self.state.turn, &self.state.epoch) {
                    (epoch.system, epoch.tools) = (now.system.clone(), now.tools.clone());
                }
                let stubbed = SessionRecord::Stubbed(Stubbed { calls });
                steps.push(Step::Append(vec![SessionRecord::EpochStarted(epoch), stubbed]));
            }
            Action::Compact(trigger) => {
                let start = CompactStart { reason: trigger.word().to_owned(), focus: None };
                steps.push(Step::Append(vec![SessionRecord::CompactStart(start)]));
                steps.push(Step::Switch(trigger));
            }
            Action::Rest => {}
        }
        self.pending.extend(steps);
    }

    fn begin(&self, turn: Option<u64>, step: Option<u64>) -> Vec<SessionRecord> {
        let mut facts = Vec::new();
        if let Some(turn) = turn {
            // C12: somebody said something, or a task ended.
            let is_wanted =
                !self.state.pending_inputs.is_empty() || self.state.tasks.unannounced_ends().next().is_some();
            assert!(is_wanted, "turn {turn} begins by itself");
            facts.push(SessionRecord::TurnStarted(TurnStarted::new(turn)));
        }
        facts.extend(step.into_iter().flat_map(|_| self.state.tasks.announcements()));
        facts.extend(step.map(|step| SessionRecord::StepStarted(StepStarted::new(step))));
        facts
    }

    fn epoch_step(&self, reason: EpochReason) -> Step {
        Step::Append(vec![SessionRecord::EpochStarted(self.next_epoch(reason))])
    }

    fn next_epoch(&self, reason: EpochReason) -> EpochStarted {
        let blob = BlobRef::to(&[self.version], "text/plain");
        let before = self.state.epoch.clone().unwrap();
        EpochStarted {
            turns: self.state.turn_count,
            inbox_through: self.state.inbox_through,
            pins: self.state.pins.clone(),
            todo: self.state.todo.clone(),
            previous: Some(before.began),
            folds_from: Some(before.folds_from),
            ..EpochStarted::new(before.number + 1, reason, blob.clone(), blob)
        }
    }

    fn call_model(&mut self, turn: Option<u64>, step: Option<u64>) -> Vec<Step> {
        let attempt = AttemptId::generate();
        let mut facts = self.begin(turn, step);
        facts.push(SessionRecord::AttemptStarted(AttemptStarted { attempt, model: "m".to_owned() }));
        let mut steps = vec![Step::Append(facts)];
        if self.refusals > 0 {
            self.refusals -= 1;
            let mut refused = ended(attempt, 0, Some("too long"));
            if let SessionRecord::AttemptEnded(ended) = &mut refused {
                ended.too_long =
                    Some(longhaul_agent::session::next_prompt_tokens(&self.state, &self.space()));
            }
            steps.push(Step::Append(vec![refused]));
            return steps;
        }
        let blocks = self.answer();
        let kept = blocks.len();
        steps.extend(
            (0..).zip(blocks).map(|(index, item)| {
                Step::Append(vec![SessionRecord::Block(Block { attempt, index, item })])
            }),
        );
        let mut end = vec![ended(attempt, kept, None)];
        end.extend(self.nature.counts.map(|tenths| self.usage(attempt, tenths)));
        steps.push(Step::Append(end));
        steps
    }

    fn usage(&self, attempt: AttemptId, tenths: u64) -> SessionRecord {
        let estimated = FIXED + longhaul_context::estimate_items(&self.state.items);
        SessionRecord::Usage(Usage {
            cause: None,
            model: None,
            attempt,
            purpose: None,
            input: Some(estimated * tenths / 10),
            output: Some(1),
            cached: None,
            cache_written: None,
            cost: None,
            estimated: Some(estimated),
            window: self.nature.window,
            parts: None,
            limits: BTreeMap::new(),
        })
    }

    /// The second append of a compaction, as the worker makes it.
    fn switch(&mut self, trigger: CompactionTrigger) {
        let space = self.space();
        let size = longhaul_agent::session::next_prompt_tokens(&self.state, &space);
        let failed = |reason: String, tokens, was_needed| {
            vec![SessionRecord::CompactFailed(CompactFailed { reason, tokens, was_needed })]
        };
        if self.is_called_away(trigger) {
            self.is_idle = false;
            return self.append(failed("cancelled".to_owned(), None, false));
        }
        let keep = 8_000;
        let is_needed = match trigger {
            CompactionTrigger::Overflow => true,
            CompactionTrigger::Idle => false,
            _ => space.room.is_some_and(|room| size > room.usable()),
        };
        let plan = |written| plan_compaction(&self.state, &space, trigger, written, keep);
        let by_model = if self.nature.has_summaries {
            let number = usize::try_from(self.state.compaction.count).unwrap() + self.said;
            match self.nature.summaries[number % self.nature.summaries.len()] {
                Some(size) => plan(Some(written(size))),
                None => Err("no summary".to_owned()),
            }
        } else {
            Err("none is wanted".to_owned())
        };
        let made = by_model
            .or_else(|reason| if is_needed || !self.nature.has_summaries { plan(None) } else { Err(reason) });
        let facts = made.unwrap_or_else(|reason| failed(reason, Some(size), is_needed));
        self.said += 1;
        self.is_idle = false;
        self.append(facts);
    }

    fn is_called_away(&self, trigger: CompactionTrigger) -> bool {
        let taken = usize::try_from(self.state.inbox_through).unwrap();
        self.inbox[taken..].iter().any(|fact| match fact {
            _ if trigger == CompactionTrigger::Idle => true,
            SessionRecord::OrderTaken(taken) => taken.order.kind == OrderKind::Cancel,
            SessionRecord::InputTaken(input) => {
                self.state.turn.is_some() && input.mode == JoinMode::Interrupt
            }
            _ => false,
        })
    }

    fn answer(&mut self) -> Vec<Item> {
        self.answers += 1;
        let calls = self.nature.calls[self.answers % self.nature.calls.len()];
        let text = self.words(format!("answer {}", self.answers));
        let mut blocks = vec![Item::Text { role: Role::Assistant, text }];
        blocks.extend((0..calls).map(|number| Item::ToolCall {
            call: CallId::generate(),
            wire_id: None,
            name: ["look", "launch", "start"][number % 3].to_owned(),
            arguments: String::new(),
            signature: None,
        }));
        blocks
    }

    fn run(&mut self, calls: &[CallId]) -> Vec<Step> {
        let mut steps = Vec::new();
        for id in calls {
            let call = self.state.call(*id).unwrap();
            let (name, is_open) = (call.name.clone(), call.is_open());
            let finished = |content: String| {
                Step::Append(vec![SessionRecord::ToolFinished(ToolFinished::new(*id, &name, content))])
            };
            if is_open && name == "launch" {
                steps.push(finished("unknown".to_owned()));
                continue;
            }
            if !is_open {
                let effect = match name.as_str() {
                    "look" => Effect::Read,
                    "start" => Effect::Command,
                    _ => Effect::Unknown,
                };
                let started = ToolStarted {
                    call: *id,
                    name: name.clone(),
                    arguments: String::new(),
                    effect,
                    write: None,
                    writes: vec![],
                    kept_in: None,
                    remote_task: None,
                    child: None,
                    changes_nothing: false,
                };
                steps.push(Step::Append(vec![SessionRecord::ToolStarted(started)]));
            }
            if !self.keepers.contains_key(&TaskId::from(*id)) {
                steps.push(Step::Effect(*id));
            }
            if name == "start" {
                let (command, description) = ("make".to_owned(), "build".to_owned());
                let (task_id, target, started_at) = (TaskId::from(*id), "local".to_owned(), None);
                let task = TaskStarted { task_id, command, description, target, started_at, session: None };
                let result = ToolFinished::new(*id, &name, "background_started");
                let facts = [SessionRecord::TaskStarted(task), SessionRecord::ToolFinished(result)];
                steps.push(Step::Append(facts.to_vec()));
            } else {
                let output = "x".repeat(self.nature.output);
                steps.push(finished(self.words(format!("result of {id} {output}"))));
            }
        }
        steps
    }

    /// Whether a summary is being written: what comes meanwhile waits.
    fn is_compacting(&self) -> bool {
        matches!(self.pending.front(), Some(Step::Switch(_)))
    }

    pub(super) fn happens(&mut self, what: &Happens) {
        let inbox_through = self.inbox.len() as u64 + 1;
        let mut order = |kind| {
            let order = Order { id: OrderId::generate(), kind };
            self.inbox.push(SessionRecord::OrderTaken(OrderTaken { inbox_through, order }));
        };
        match what {
            Happens::Input(mode) => {
                let id = InputId::generate();
                self.inputs.push(id);
                let text = self.words(format!("input {id}"));
                self.inbox.push(SessionRecord::InputTaken(InputTaken::of(
                    Input::new(id, text, *mode),
                    inbox_through,
                )));
            }
            Happens::Cancel => order(OrderKind::Cancel),
            Happens::Ask => order(OrderKind::Compact { focus: None }),
            Happens::Idle => self.is_idle = true,
            Happens::Refuse => self.refusals += 1,
            Happens::Work(appends) => {
                for _ in 0..*appends {
                    // A worker takes what came whenever it is rung, also in the middle of what it does.
                    if !self.is_compacting() {
                        self.take_inbox();
                        self.take_ends();
                    }
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
