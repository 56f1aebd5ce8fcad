//! The state of a session. It contains exactly what its records fold into.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use longhaul_context::{TokenCalibration, estimate_bytes, estimate_items};
use longhaul_protocol::{
    ActiveSkill, AddedContext, Answer, ApprovalGrant, At, AttemptId, BlobRef, Block, CallId, Cause,
    DecodeError, Effect, Environment, Hash, Item, JoinMode, Outcome, ParentLink, PendingInput, Pin, Place,
    Question, QuestionId, QuestionKind, Record, Role, Sender, Seq, SessionPermission, Summary, TaskId, Todo,
    ToolFinished, ToolStarted,
};

use crate::compaction::plan::Compaction;
use crate::session::apply::apply;
use crate::session::repeats::RepeatDetector;
use crate::session::tasks::SessionTasks;
use crate::spend::ScopedTurn;

/// The state of a session after its last record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// The last record that was applied.
    pub head: Seq,
    /// When the session began, and its work folder.
    pub created: Option<SessionCreation>,
    /// The last record of an imported session that another user wrote. Its content is data, not instructions. 0 if
    /// there is none.
    pub foreign_through: Seq,
    /// The current epoch.
    pub epoch: Option<Epoch>,
    /// The surroundings at the session's beginning, which the system prompt names. `None` if no epoch of this version
    /// has begun.
    pub environment: Option<Box<Environment>>,
    /// The surroundings as the model was last told of them.
    pub told_environment: Option<Box<Environment>>,
    /// The last inbox record that was taken.
    pub inbox_through: Seq,
    /// How many turns have started.
    pub turn_count: u64,
    /// The context: the beginning of the epoch, then everything since.
    pub items: Vec<Arc<Item>>,
    /// Where and when each item entered the context, one for each item.
    pub places: Vec<Place>,
    /// How many items, from the first, are the preface of a compaction: the summary and the pins.
    pub preface_len: usize,
    /// Turns of heartbeats that found nothing to do and whose items the context still has. The next epoch drops them.
    pub quiet_turns: Vec<u64>,
    /// The summary of the last compaction.
    pub summary: Option<Summary>,
    /// The compactions so far.
    pub compaction: Compaction,
    /// Steps with an answer in all epochs.
    pub answer_count: u64,
    /// Inputs that were taken from the inbox and that the model has not seen yet.
    pub pending_inputs: Vec<PendingInput>,
    /// Texts for the model that were added while the turn is open. They enter the context with its next step or its end.
    pub added_context: Vec<AddedContext>,
    /// The open turn.
    pub turn: Option<Turn>,
    /// The todo list.
    pub todo: Vec<Todo>,
    /// The file contents that the model knows: a hash for each canonical path.
    pub known_files: Arc<HashMap<String, Hash>>,
    /// Files that tools changed, the newest last.
    pub changed_files: Vec<String>,
    /// The skills whose SKILL.md the model has read, the newest last.
    pub active_skills: Vec<ActiveSkill>,
    /// The full outputs of calls whose results are truncated in the context.
    pub full_outputs: HashMap<CallId, BlobRef>,
    /// Texts that must stay in the context verbatim.
    pub pins: Vec<Pin>,
    /// The background tasks.
    pub tasks: SessionTasks,
    /// Open questions to the user.
    pub questions: Vec<Question>,
    /// The permission mode, and what the user always allows.
    pub permission: SessionPermission,
    /// How the last turn ended.
    pub last_outcome: Option<Outcome>,
    /// The partial text of the answer at which the last turn stopped. The context contains it only if the user
    /// interrupted the turn.
    pub interrupted_answer: Option<String>,
    /// A turn that was requested without an input.
    pub turn_request: Option<TurnRequest>,
    /// The turn whose request the last turn answered. For a retry, an earlier turn.
    pub request_turn: u64,
    /// The model of the last attempt.
    pub model: Option<String>,
    /// The model that the user chose for this session.
    pub chosen_model: Option<String>,
    /// How each model counts tokens.
    pub token_counts: BTreeMap<String, TokenCounting>,
    /// The size of the context when a provider last reported it.
    pub provider_count: Option<ProviderCount>,
    /// The provider's last report of its rate limits.
    pub rate_limits: BTreeMap<String, String>,
    /// Codes of the once-only warnings that the user has got.
    pub given_warnings: BTreeSet<String>,
    /// The client's instructions that the context has as a note. A compaction may drop the note, so it is not carried over.
    pub client_instructions: Option<String>,
}

/// A turn that is requested without an input of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnRequest {
    /// Repeat the request of the last turn.
    Retry,
    /// Continue the interrupted answer.
    Continue,
}

/// How a model counts tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenCounting {
    /// The correction of the estimates.
    pub calibration: TokenCalibration,
    /// The last prompt that the server truncated without an error.
    pub truncated_prompt: Option<TruncatedPrompt>,
    /// The size, by the runtime's count, at which the model last refused a prompt as too long.
    pub refused_at: Option<u64>,
}

/// A prompt of which the server read only a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TruncatedPrompt {
    /// Tokens that the server read.
    pub tokens_read: u64,
    /// The window that was assumed then.
    pub window: Option<u64>,
}

/// A provider's count of a context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderCount {
    /// The model that counted.
    pub model: String,
    /// Tokens sent and received.
    pub tokens: u64,
    /// The number of items in that context.
    pub items: usize,
}

/// The first record of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionCreation {
    /// When the session began.
    pub at: At,
    /// The work folder.
    pub work_dir: Option<String>,
    /// The session that started it as a subagent.
    pub parent: Option<Arc<ParentLink>>,
}

/// The epoch that a context belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Epoch {
    /// Its number, from 1.
    pub number: u64,
    /// The record that began it.
    pub began: Seq,
    /// The record from which a replay begins.
    pub folds_from: Seq,
    /// The system prompt.
    pub system: BlobRef,
    /// The tools' schemas.
    pub tools: BlobRef,
}

/// The open turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turn {
    /// Its number, from 1.
    pub number: u64,
    /// The turn whose request it answers. For a retry, an earlier turn.
    pub request_turn: u64,
    /// Steps that have started.
    pub steps: u64,
    /// The user cancelled it.
    pub cancelled: bool,
    /// A record of the turn is lost, so resuming could repeat effects. The text says what is known.
    pub lost_record: Option<String>,
    /// When it began.
    pub started_at: Option<At>,
    /// When the open question began to wait for the user.
    pub question_since: Option<At>,
    /// Milliseconds that earlier questions waited. They do not count as time of the turn.
    pub question_wait_ms: u64,
    /// The record of a task's start was erased. The next result tells which task it was.
    pub erased_task: bool,
    /// Tokens used.
    pub tokens: u64,
    /// Cost, in billionths of a US dollar.
    pub cost_nano: u64,
    /// Why it calls models.
    pub cause: Cause,
    /// Only heartbeats began it, nothing else has come into it, and it has done no more than read and run
    /// commands that change nothing.
    pub may_be_quiet: bool,
    /// The most that it may cost beside the configured limits, in billionths of a US dollar.
    pub max_cost_nano: Option<u64>,
    /// Soft limits that the user has agreed to pass.
    pub budget_consents: Vec<String>,
    /// Soft limits that the user does not want to pass.
    pub budget_refused: Vec<String>,
    /// How many orders to retry now the turn has got.
    pub retry_now_count: u64,
    /// The open model call.
    pub attempt: Option<Attempt>,
    /// The answer was truncated at its maximum length and continues with the next step.
    pub continues_next_step: bool,
    /// The text of the answer before the truncation.
    pub text_before_cut: String,
    /// How often the answer was truncated.
    pub length_cuts: u32,
    /// The partial text of the last failed answer.
    pub interrupted_answer: Option<String>,
    /// The user wants the answer to continue from its partial text once the open attempt has failed.
    pub continue_requested: bool,
    /// Whether the newest step has its answer.
    pub answered: bool,
    /// The text of the newest answer.
    pub text: String,
    /// The tool calls of the newest answer, in its order.
    pub calls: Vec<CallState>,
    /// The newest answer had calls before the current epoch began. Their results are in the context.
    pub had_calls: bool,
    /// Whether the results of the calls are in the context.
    pub results_in_context: bool,
    /// How often the model refused the prompt as too long since its last answer.
    pub overflow_count: u32,
    /// The last refusal.
    pub refusal: Option<String>,
    /// The latest calls and results, to detect a loop.
    pub repeats: RepeatDetector,
    /// The most tokens of an answer, if a client set them.
    pub max_output: Option<u64>,
}

/// An open model call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The attempt.
    pub id: AttemptId,
    /// The complete blocks.
    pub blocks: Vec<Arc<Item>>,
    /// The recorded text of the block that is not complete.
    pub unfinished: String,
}

/// A tool call of the newest answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallState {
    /// The call.
    pub id: CallId,
    /// The tool.
    pub name: String,
    /// The arguments as the model wrote them.
    pub arguments: String,
    /// The user's answer to whether it may run.
    pub approval: Option<ApprovalAnswer>,
    /// The record of its start.
    pub started: Option<ToolStarted>,
    /// The sandbox refused its command, and the user was asked whether to run it outside.
    pub refused: Option<RefusedRun>,
    /// The user's answer to what its server last asked.
    pub elicited: Option<(QuestionId, String)>,
    /// Its result.
    pub result: Option<Arc<Item>>,
    /// The record of its result.
    pub finished_seq: Seq,
}

/// A command that the sandbox refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedRun {
    /// The result of the run in the sandbox.
    pub result: ToolFinished,
    /// The user's answer to whether it may run once outside.
    pub answer: Option<String>,
}

/// The user's answer to whether a call may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalAnswer {
    /// The user's words.
    pub text: String,
    /// Why the runtime asked the user.
    pub reasons: Vec<String>,
    /// What `always` and `project` allow.
    pub grant: Option<ApprovalGrant>,
}

impl State {
    /// Whether the last turn failed or reached a limit, so that it can run again.
    pub(crate) fn stopped_short(&self) -> bool {
        matches!(self.last_outcome, Some(Outcome::Failed | Outcome::Limit))
    }

    /// Why the next turn calls models: for a person who has asked for anything in it, else for a schedule, else for the first that sent
    /// an input. Without an input, the end of a task begins it.
    pub fn next_turn_cause(&self) -> Cause {
        if self.turn_request.is_some() {
            return Cause::Turn;
        }
        let causes = || self.pending_inputs.iter().map(|input| input.sender.cause());
        let of_person_or_schedule = [Cause::Turn, Cause::Schedule].into_iter();
        let first =
            of_person_or_schedule.chain(causes().next()).find(|cause| causes().any(|other| other == *cause));
        first.unwrap_or_else(|| self.tasks.wake_cause())
    }

    /// The most that the next turn may cost: what its schedule allows, if a schedule begins it.
    pub fn next_turn_max_cost_nano(&self) -> Option<u64> {
        let of_schedule = |sender: &Sender| match sender {
            Sender::Schedule { max_cost_nano, .. } => *max_cost_nano,
            _ => None,
        };
        let is_by_schedule = self.next_turn_cause() == Cause::Schedule;
        self.pending_inputs
            .iter()
            .filter(|_| is_by_schedule)
            .filter_map(|input| of_schedule(&input.sender))
            .min()
    }

    /// Whether an interrupting input of this sender cancels the open turn. A schedule cancels no turn that a person has a part in.
    pub fn may_interrupt(&self, sender: &Sender) -> bool {
        let is_of_schedule = matches!(sender, Sender::Schedule { .. });
        self.turn.as_ref().is_some_and(|turn| !is_of_schedule || turn.cause == Cause::Schedule)
    }

    /// The session that started this one as its subagent.
    pub fn parent(&self) -> Option<&Arc<ParentLink>> {
        self.created.as_ref()?.parent.as_ref()
    }

    /// Folds one record into the state. The caller passes the records in order.
    pub fn apply(&mut self, record: &Record) -> Result<(), DecodeError> {
        apply(self, record)
    }

    /// Whether the open turn is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.cancelled)
    }

    /// A call of the newest answer.
    pub fn call(&self, id: CallId) -> Option<&CallState> {
        self.turn.as_ref()?.calls.iter().find(|call| call.id == id)
    }

    /// The call of the newest answer whose command is this task, in the sandbox or outside of it.
    pub fn call_of_task(&self, task: TaskId) -> Option<&CallState> {
        let is_task =
            |call: &&CallState| task == TaskId::from(call.id) || task == TaskId::outside_sandbox(call.id);
        self.turn.as_ref()?.calls.iter().find(is_task)
    }

    /// The open question whether a call may run, or run once more outside of the sandbox.
    pub fn question_about(&self, call: CallId) -> Option<&Question> {
        let is_about = |question: &&Question| question.call == Some(call);
        // What a server asks, it asks the process that called it. After a crash no process waits for the answer.
        self.questions.iter().filter(is_about).find(|question| question.kind != QuestionKind::Elicitation)
    }

    /// The open question with this id.
    pub fn question(&self, id: QuestionId) -> Option<&Question> {
        self.questions.iter().find(|question| question.id == id)
    }

    /// The tokens of the context for this model: the provider's last count, plus an estimate of everything since.
    pub fn context_tokens(&self, model: &str) -> (u64, Option<&ProviderCount>) {
        let beginning =
            self.epoch.as_ref().map_or(0, |epoch| epoch.system.bytes.saturating_add(epoch.tools.bytes));
        self.context_tokens_with(model, self.calibrated(model, estimate_bytes(beginning)))
    }

    /// Like [`context_tokens`](Self::context_tokens), if the tokens of the system prompt and the tools are known.
    pub fn context_tokens_with(&self, model: &str, fixed: u64) -> (u64, Option<&ProviderCount>) {
        match self.provider_count.as_ref().filter(|count| count.model == model) {
            Some(count) => {
                let since = self.items.get(count.items..).unwrap_or_default();
                let since = self.calibrated(model, estimate_items(since));
                (count.tokens.saturating_add(since), Some(count))
            }
            None => (fixed.saturating_add(self.calibrated(model, estimate_items(&self.items))), None),
        }
    }

    /// An estimate, corrected by the model's own counts.
    pub fn calibrated(&self, model: &str, estimate: u64) -> u64 {
        self.token_counts.get(model).map_or(estimate, |counting| counting.calibration.correct(estimate))
    }

    pub(crate) fn calibration(&self, model: &str) -> TokenCalibration {
        self.token_counts.get(model).map(|counting| counting.calibration.clone()).unwrap_or_default()
    }

    /// What the open turn was doing at its last record, as a text for people.
    pub fn describe_open_work(&self) -> String {
        let Some(turn) = &self.turn else { return "no turn is running".to_owned() };
        let open: Vec<&str> =
            turn.calls.iter().filter(|call| call.is_open()).map(|call| call.name.as_str()).collect();
        match (&turn.attempt, &open[..]) {
            (Some(_), _) => "requesting an answer".to_owned(),
            (None, []) if !self.questions.is_empty() => "waiting for your answer to a question".to_owned(),
            (None, []) if turn.steps > 0 && !turn.answered => {
                "a request failed and was about to be retried".to_owned()
            }
            (None, []) => "between two steps".to_owned(),
            (None, open) => format!("running {}", open.join(", ")),
        }
    }

    /// Whether inputs join the open turn at its next step.
    pub(crate) fn has_joining_inputs(&self) -> bool {
        self.pending_inputs.iter().any(|input| input.mode == JoinMode::Join)
    }
}

impl Turn {
    /// The turn as what its calls count against.
    pub(crate) fn scoped(&self) -> ScopedTurn {
        ScopedTurn { number: self.number, max_cost_nano: self.max_cost_nano }
    }
}

impl CallState {
    /// Whether the call has started and has no result. It may be running, or the process that started it is gone.
    pub fn is_open(&self) -> bool {
        self.started.is_some() && self.result.is_none()
    }

    /// The result of its command in the sandbox, if that refused it and the user has not let it run outside.
    pub(crate) fn result_in_sandbox(&self) -> Option<&ToolFinished> {
        let is_yes = |answer: &String| Answer::parse(answer) == Answer::Yes;
        let refused = self.refused.as_ref()?;
        (!refused.answer.as_ref().is_some_and(is_yes)).then_some(&refused.result)
    }

    /// The side effect of the call, once its start is recorded.
    pub fn effect(&self) -> Option<Effect> {
        self.started.as_ref().map(|started| started.effect)
    }
}

impl Attempt {
    /// How many blocks of a failed attempt are kept. If there is a complete call, the step ends there and its calls
    /// run. Otherwise nothing is kept and the same request is sent again.
    pub fn blocks_kept_on_failure(&self) -> usize {
        let has_call = self.blocks.iter().any(|block| matches!(**block, Item::ToolCall { .. }));
        if has_call { self.blocks.len() } else { 0 }
    }

    /// Its text so far, including the incomplete block.
    pub fn text(&self) -> String {
        let whole = text_of(&self.blocks);
        match (whole.is_empty(), self.unfinished.is_empty()) {
            (_, true) => whole,
            (true, _) => self.unfinished.clone(),
            _ => format!("{whole}\n\n{}", self.unfinished),
        }
    }

    /// T11: the unfinished text of an answer that the user interrupts, as the last block.
    pub fn interrupted_block(&self) -> Option<Block> {
        let text = self.unfinished.clone();
        let index = u32::try_from(self.blocks.len()).unwrap_or(u32::MAX);
        let block = Block { attempt: self.id, index, item: Item::Text { role: Role::Assistant, text } };
        (!self.unfinished.trim().is_empty()).then_some(block)
    }

    /// How many complete blocks are kept if the turn stops: all, unless they are only reasoning, which no provider
    /// accepts without an answer.
    pub fn blocks_kept_on_stop(&self) -> usize {
        let is_only_reasoning = self.blocks.iter().all(|block| matches!(**block, Item::Reasoning { .. }));
        if is_only_reasoning { 0 } else { self.blocks.len() }
    }

    /// The same if the user interrupted the turn. Then the block of its unfinished text is kept too.
    pub fn blocks_kept_on_cancel(&self) -> usize {
        match self.interrupted_block() {
            Some(_) => self.blocks.len() + 1,
            None => self.blocks_kept_on_stop(),
        }
    }
}

/// The text of an answer.
pub(crate) fn text_of(blocks: &[Arc<Item>]) -> String {
    let texts = blocks.iter().filter_map(|block| match &**block {
        Item::Text { role: Role::Assistant, text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}
