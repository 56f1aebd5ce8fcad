//! One session of the editor: a task that follows it, shows what happens, and carries out what the editor asks.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `open_request` | new sessions, and the past of one that is loaded |
//! | `prompts` | prompts that wait for the end of their turn |
//! | `questions` | questions that the editor is asked |
//! | `slash`, `skills` | the commands that a prompt may consist of; `/NAME` of a skill |
//! | `version2` | prompts and states of editors that speak version 2 |
//! | `server_content` | what a prompt takes from MCP servers, and the servers that the editor brings |
//!
//! The task only follows: the runtime runs the turn, whether this task exists or not.
//!
//! # Crashes
//!
//! | a kill | is on disk | what happens next |
//! | --- | --- | --- |
//! | before a prompt is in the inbox | nothing | the editor has no answer and sends it again |
//! | after that | the input | the turn runs at the next `session/load`, or in another process that hosts the home |
//! | during a turn | what was recorded | `session/load` shows it, and the turn goes on |
//! | while a question is open | the question | `session/load` asks it again |
//! | after an answer is in the inbox | the answer | it counts; the question is not asked again |
//! | at the end of the input, before the turn's next process has started | the open turn | as for a kill during a turn |
//! | after that process has started | the open turn | that process waits for the lease, then finishes the turn |

mod open_request;
mod prompts;
mod questions;
mod server_content;
mod skills;
mod slash;
mod version2;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longhaul_agent::mcp::{PromptEntry, ServerSettings};
use longhaul_agent::{Followed, Follower, Runtime, Session, UserMessage, now};
use longhaul_protocol::{
    Image, InputTaken, JoinMode, OrderKind, Outcome, PermissionMode, Record, Seq, SessionRecord, StreamName,
};
use longhaul_transcript::{TurnEnd, outcome_text};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use self::prompts::{AwaitedEnd, PendingPrompts};
use self::questions::AskedQuestions;
use self::skills::SkillCommand;
use self::slash::SlashOutcome;
use crate::error::{Error, Result};
use crate::options::{Choice, SessionOptions};
use crate::update::fold::{Folded, UpdateFold};
use crate::wire::params::ClientFeatures;
use crate::wire::reply::StopReason;
use crate::wire::rpc::Outbox;
use crate::wire::update::{ContentBlock, MessageChunk, SessionUpdate, meta};
use crate::wire::{ProtocolVersion, version2 as wire_version2};

pub(crate) use open_request::OpenRequest;

/// How long to wait after a failure before the session of an open prompt is followed again, and how many times to try.
const REFOLLOW_INTERVAL: Duration = Duration::from_millis(500);
const MAX_FAILED_FOLLOWS: u32 = 20;

/// What the connection asks of a session.
pub(crate) enum SessionCommand {
    Prompt {
        id: Value,
        message: UserMessage,
    },
    Cancel,
    /// Cancels the turn of this prompt, if it is not answered.
    CancelPrompt {
        id: Value,
    },
    /// The user chose a mode or a model; `answer` is what the editor waits for.
    Choose {
        id: Value,
        choice: Choice,
        answer: ChoiceAnswer,
    },
    Close {
        id: Value,
    },
    /// Models that can be used.
    KnownModels(Vec<String>),
}

/// The form of the answer to a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChoiceAnswer {
    Nothing,
    ConfigOptions,
}

/// What a session task is made of.
pub(crate) struct SessionSetup {
    /// The id by which the editor knows the session.
    pub(crate) editor_id: String,
    pub(crate) runtime: Runtime,
    pub(crate) session: Session,
    pub(crate) work_dir: PathBuf,
    pub(crate) outbox: Outbox,
    pub(crate) features: ClientFeatures,
    pub(crate) known_models: Vec<String>,
    /// The MCP servers that the editor brings.
    pub(crate) servers: BTreeMap<String, ServerSettings>,
}

/// The task of one session.
pub(crate) struct SessionTask {
    setup: SessionSetup,
    options: SessionOptions,
    /// `None` before the session has begun.
    fold: Option<UpdateFold>,
    /// The mode that was chosen before. It begins no session: some editors choose one for each thread that they open.
    first_mode: Option<PermissionMode>,
    follower: Option<Follower>,
    /// The last record that was folded.
    seen: Seq,
    /// Whether records of the past are shown or only folded.
    replay: Replay,
    open_turn: Option<u64>,
    /// The turn that the editor has cancelled.
    cancelled_turn: Option<u64>,
    prompts: PendingPrompts,
    questions: AskedQuestions,
    /// Images of inputs that the model has not got yet.
    images: HashMap<Seq, Vec<Image>>,
    slash_ends: (mpsc::Sender<SlashEnd>, mpsc::Receiver<SlashEnd>),
    /// Slash commands that are being carried out, such as a compaction. In version 2 their prompts are answered already.
    running_commands: usize,
    /// How many of them the editor has cancelled.
    cancelled_commands: usize,
    /// The prompts of MCP servers that the editor lists as commands, and new lists of them.
    server_prompts: Vec<PromptEntry>,
    prompt_lists: (mpsc::Sender<Vec<PromptEntry>>, mpsc::Receiver<Vec<PromptEntry>>),
    /// The skills that the editor lists as commands.
    skills: Vec<SkillCommand>,
    /// Failed attempts to follow the session in a row.
    failed_follows: u32,
}

/// A slash command that was carried out for the prompt with this id.
struct SlashEnd {
    prompt: Value,
    outcome: Result<SlashOutcome>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replay {
    /// What happens now.
    Over,
    /// The past, which the editor wants to see.
    Shown,
    /// The past, which the editor has.
    Silent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    GoOn,
    Close,
}

impl SessionTask {
    pub(crate) async fn new(setup: SessionSetup) -> Result<Self> {
        let options = SessionOptions::of(&setup.runtime, &setup.session, &setup.known_models).await?;
        Ok(Self {
            setup,
            options,
            fold: None,
            first_mode: None,
            follower: None,
            seen: 0,
            replay: Replay::Over,
            open_turn: None,
            cancelled_turn: None,
            prompts: PendingPrompts::default(),
            questions: AskedQuestions::new(),
            images: HashMap::new(),
            slash_ends: mpsc::channel(4),
            running_commands: 0,
            cancelled_commands: 0,
            server_prompts: Vec::new(),
            prompt_lists: mpsc::channel(4),
            skills: Vec::new(),
            failed_follows: 0,
        })
    }

    /// Runs until the editor closes the session or the connection ends.
    pub(crate) async fn run(
        mut self,
        request: OpenRequest,
        mut commands: mpsc::UnboundedReceiver<SessionCommand>,
    ) {
        if !self.open(request).await {
            return;
        }
        loop {
            let must_refollow = self.follower.is_none() && !self.prompts.is_empty();
            let Self { follower, questions, slash_ends, prompt_lists, .. } = &mut self;
            let next = tokio::select! {
                biased;
                command = commands.recv() => match command {
                    Some(command) => self.carry_out(command).await,
                    None => {
                        self.fail_prompts(|| Error::SessionLeft).await;
                        // A session that was opened again asks anew.
                        self.withdraw_requests().await;
                        Ok(Next::Close)
                    }
                },
                decided = questions.next_decision() => self.answer(decided).await.map(|()| Next::GoOn),
                Some(prompts) = prompt_lists.1.recv() => {
                    self.show_prompts(prompts).await;
                    Ok(Next::GoOn)
                }
                Some(end) = slash_ends.1.recv() => self.end_slash(end).await.map(|()| Next::GoOn),
                followed = next_followed(follower) => self.handle_followed(followed).await.map(|()| Next::GoOn),
                () = tokio::time::sleep(REFOLLOW_INTERVAL), if must_refollow => {
                    self.refollow().await.map(|()| Next::GoOn)
                }
            };
            match next {
                Ok(Next::GoOn) => {}
                Ok(Next::Close) => return,
                Err(error) => self.remark(&format!("{error}"), "error").await,
            }
        }
    }

    async fn carry_out(&mut self, command: SessionCommand) -> Result<Next> {
        match command {
            SessionCommand::Prompt { id, message } => {
                if let Err(error) = self.prompt(&id, message).await {
                    self.setup.outbox.reply::<Value>(&id, Err(error)).await;
                }
            }
            SessionCommand::Cancel => self.cancel().await?,
            SessionCommand::CancelPrompt { id } => {
                if self.prompts.contains(&id) {
                    self.cancel().await?;
                }
            }
            SessionCommand::Choose { id, choice, answer } => {
                let chosen = self.choose(choice).await.map(|()| match answer {
                    ChoiceAnswer::Nothing => json!({}),
                    ChoiceAnswer::ConfigOptions => {
                        let options = self.options.config_options();
                        match self.version() {
                            ProtocolVersion::V1 => json!({"configOptions": options}),
                            ProtocolVersion::V2 => {
                                json!({"configOptions": wire_version2::config_options(&options)})
                            }
                        }
                    }
                });
                self.setup.outbox.reply(&id, chosen).await;
            }
            SessionCommand::Close { id } => {
                let cancelled = self.cancel().await;
                for prompt in self.prompts.take_all() {
                    self.end_prompt(&prompt, StopReason::Cancelled).await;
                }
                self.withdraw_requests().await;
                self.end_editor_servers();
                self.setup.outbox.reply(&id, cancelled.map(|()| json!({}))).await;
                return Ok(Next::Close);
            }
            SessionCommand::KnownModels(models) => {
                self.options.models.extend(models);
                self.show_config_options().await;
            }
        }
        Ok(Next::GoOn)
    }

    /// Puts a prompt into the inbox. It is answered when its turn ends.
    async fn prompt(&mut self, id: &Value, message: UserMessage) -> Result<()> {
        if let Some(command) = slash::parse(&message) {
            return self.start_slash(id, command).await;
        }
        if let Some(question) = self.questions.awaiting_prompt() {
            return self.answer_by_prompt(id, &question, &message.text).await;
        }
        self.begin().await?;
        let message = self.start_skill(message).await;
        match self.attaching_servers(&message).await? {
            Some(servers) => self.start_attaching(id, message, servers),
            None => self.put_prompt(id, &message).await?,
        }
        Ok(())
    }

    async fn put_prompt(&mut self, id: &Value, message: &UserMessage) -> Result<()> {
        self.follow_closely().await?;
        let accepted = self.setup.session.put_message(message, JoinMode::Join, None).await?;
        self.prompts.push(id.clone(), AwaitedEnd::Input { input: accepted.id, seq: None });
        Ok(())
    }

    /// Cancels the turn or the command that runs, and prompts that wait for something else.
    async fn cancel(&mut self) -> Result<()> {
        for id in self.prompts.take_without_turn() {
            self.end_prompt(&id, StopReason::Cancelled).await;
        }
        if self.open_turn.is_some() || self.running_commands > 0 || !self.prompts.is_empty() {
            (self.cancelled_turn, self.cancelled_commands) = (self.open_turn, self.running_commands);
            self.setup.session.order(OrderKind::Cancel).await?;
        }
        Ok(())
    }

    async fn choose(&mut self, choice: Choice) -> Result<()> {
        match choice {
            Choice::Mode(mode) => {
                if self.fold.is_some() {
                    self.setup.session.set_permission_mode(mode).await?;
                    // The worker takes the order, and its record is followed like everything else.
                    self.follow_closely().await?;
                } else {
                    self.first_mode = Some(mode);
                }
                self.set_shown_mode(mode).await;
            }
            Choice::Model(name) => {
                self.setup.session.use_model(&name)?;
                self.options.model = name;
                self.show_config_options().await;
            }
        }
        Ok(())
    }

    /// Shows the mode in use, in both forms that editors know.
    async fn set_shown_mode(&mut self, mode: PermissionMode) {
        if self.options.mode != mode {
            self.options.mode = mode;
            self.show(SessionUpdate::CurrentModeUpdate { current_mode_id: mode.name() }).await;
            self.show_config_options().await;
        }
    }

    async fn show_config_options(&self) {
        let config_options = self.options.config_options();
        self.show(SessionUpdate::ConfigOptionUpdate { config_options }).await;
    }

    /// Begins the session in its work folder, unless it has begun.
    async fn begin(&mut self) -> Result<()> {
        if self.fold.is_none() {
            let SessionSetup { session, work_dir, features, .. } = &self.setup;
            session.create_in(work_dir).await?;
            let id = session.id().ok_or(Error::SessionEnded)?;
            if let Some(mode) = self.first_mode {
                session.set_permission_mode(mode).await?;
            }
            self.fold = Some(UpdateFold::new(id, work_dir.clone(), *features));
            self.start_editor_servers(id);
        }
        Ok(())
    }

    /// Wakes the session's worker, in this process unless another one has the session, and follows it so that no live event is missed.
    async fn follow_closely(&mut self) -> Result<()> {
        // Another process that holds the session is woken by what comes into the inbox.
        let _ = self.setup.session.wake().await;
        // A follower looks for the process that runs the session once a second. A new one looks at once.
        if self.follower.as_ref().is_none_or(|follower| follower.holder().is_none()) {
            self.follower = Some(self.setup.session.follow(self.seen).await?);
        }
        Ok(())
    }

    /// Follows the session again, so that its open prompts get their answers.
    async fn refollow(&mut self) -> Result<()> {
        self.failed_follows += 1;
        let followed = self.follow_closely().await;
        if self.failed_follows > MAX_FAILED_FOLLOWS {
            self.fail_prompts(|| Error::SessionEnded).await;
        }
        followed
    }

    /// Answers all prompts that are open with an error.
    async fn fail_prompts(&mut self, error: impl Fn() -> Error) {
        for prompt in self.prompts.take_all() {
            self.setup.outbox.reply::<Value>(&prompt, Err(error())).await;
        }
    }

    /// Handles what the follower saw next.
    async fn handle_followed(&mut self, followed: longhaul_agent::Result<Option<Followed>>) -> Result<()> {
        let followed = match followed {
            Ok(Some(followed)) => followed,
            Ok(None) => {
                self.follower = None;
                return Ok(());
            }
            Err(error) => {
                self.follower = None;
                return Err(error.into());
            }
        };
        self.failed_follows = 0;
        let Some(fold) = &mut self.fold else { return Ok(()) };
        match followed {
            Followed::Live(event) => {
                let folded = fold.apply_live(&event);
                self.show_folded(folded).await
            }
            Followed::Record(record, _) => {
                let folded = fold.apply_record(&record);
                self.seen = record.seq;
                self.handle_record(&record).await?;
                self.show_folded(folded).await
            }
        }
    }

    /// Shows everything that is on record by now.
    async fn show_recorded(&mut self) -> Result<()> {
        let Some(id) = self.setup.session.id() else { return Ok(()) };
        let head = self.setup.session.journal().head(&StreamName::session(id)).await;
        let head = head.map_err(longhaul_agent::Error::from)?.seq;
        while self.seen < head && self.follower.is_some() {
            let followed = next_followed(&mut self.follower).await;
            self.handle_followed(followed).await?;
        }
        Ok(())
    }

    /// Updates prompts and questions for a record.
    async fn handle_record(&mut self, record: &Record) -> Result<()> {
        match SessionRecord::decode(record) {
            Ok(SessionRecord::TurnStarted(started)) => {
                self.open_turn = Some(started.turn);
                self.show_state(json!({"state": "running"})).await;
            }
            Ok(SessionRecord::InputTaken(InputTaken { id, images, .. })) => {
                let is_own = self.prompts.take_input(id, record.seq);
                // In version 2 the editor gets its own prompts back.
                if (!is_own || self.version() == ProtocolVersion::V2) && !images.is_empty() {
                    self.images.insert(record.seq, images);
                }
            }
            Ok(SessionRecord::OrderTaken(taken)) => {
                if let OrderKind::Withdraw { input } = taken.order.kind {
                    for id in self.prompts.withdraw(input) {
                        self.end_prompt(&id, StopReason::Cancelled).await;
                    }
                }
            }
            Ok(SessionRecord::Question(question)) if self.replay == Replay::Over => self.ask(question).await,
            Ok(SessionRecord::Answered(answered)) => self.settle_question(&answered).await,
            _ => {}
        }
        Ok(())
    }

    async fn show_folded(&mut self, folded: Vec<Folded>) -> Result<()> {
        for folded in folded {
            match folded {
                // A notice about the past says nothing useful.
                Folded::Update(SessionUpdate::Notice { .. }) if self.replay != Replay::Over => {}
                Folded::Update(update) => self.show(update).await,
                Folded::Input { seq, text, .. } if self.version() == ProtocolVersion::V2 => {
                    self.accept_prompts(seq).await;
                    self.show_input(seq, text).await;
                }
                Folded::Input { seq, turn, .. } if self.prompts.begin_turn(seq, turn) => {}
                Folded::Input { seq, text, .. } => self.show_input(seq, text).await,
                Folded::ModeChanged(mode) if self.replay == Replay::Over => self.set_shown_mode(mode).await,
                Folded::ModelChanged(model) if self.replay == Replay::Over && self.options.model != model => {
                    self.options.model = model;
                    self.show_config_options().await;
                }
                // The answer to `session/load` has the present mode and model.
                Folded::ModeChanged(_) | Folded::ModelChanged(_) => {}
                Folded::TurnEnded { turn, end } => self.end_turn(turn, &end).await?,
            }
        }
        Ok(())
    }

    /// Shows an input that did not come from this editor, or that came before.
    async fn show_input(&mut self, seq: Seq, text: String) {
        let Some(message_id) = self.fold.as_ref().map(|fold| fold.message_id(seq)) else { return };
        let mut contents = vec![];
        if !text.is_empty() {
            contents.push(ContentBlock::Text { text });
        }
        for image in self.images.remove(&seq).unwrap_or_default() {
            // A picture that was erased is left out.
            if let Ok(bytes) = self.setup.session.journal().blob(image.data.hash).await {
                let (data, mime_type) = (STANDARD.encode(bytes), image.data.media.clone());
                contents.push(ContentBlock::Image { data, mime_type });
            }
        }
        for content in contents {
            let chunk = MessageChunk { content, message_id: message_id.clone(), meta: None };
            self.show(SessionUpdate::UserMessageChunk(chunk)).await;
        }
    }

    /// Answers the prompts of a turn that has ended.
    async fn end_turn(&mut self, turn: Option<u64>, end: &TurnEnd) -> Result<()> {
        (self.open_turn, self.cancelled_turn) = (None, None);
        if self.replay != Replay::Over {
            return Ok(());
        }
        let prompts = self.prompts.take_of_turn(turn);
        if let (false, Some(plan)) = (prompts.is_empty(), self.questions.open_plan()) {
            // The turn that carries out the plan belongs to the prompt that asked for the plan.
            prompts.into_iter().for_each(|id| self.prompts.push(id, AwaitedEnd::Plan(plan)));
            return Ok(());
        }
        let failure = longhaul_transcript::turn_failure_text(end.outcome, end.error.as_deref());
        // A failure is the answer to its prompt. It is shown as text if no prompt waits, and so is a limit, which is not an error.
        let has_answer = !prompts.is_empty() || self.version() == ProtocolVersion::V2;
        let is_answer = end.outcome == Outcome::Failed && has_answer;
        if let Some(failure) = failure.filter(|_| end.outcome != Outcome::Cancelled && !is_answer) {
            self.remark(&failure, "turn_ended").await;
        }
        self.show_usage().await?;
        self.list_prompts().await;
        let state = json!({"turn": turn, "outcome": outcome_text(end.outcome)});
        self.show(SessionUpdate::SessionInfoUpdate { updated_at: now().to_string(), meta: meta(state) })
            .await;
        self.show_end_state(end).await;
        for id in prompts {
            self.setup.outbox.reply(&id, prompts::answer_of(end)).await;
        }
        Ok(())
    }

    /// Shows how full the context is, and what the session has cost.
    async fn show_usage(&self) -> Result<()> {
        let SessionSetup { runtime, session, .. } = &self.setup;
        let report = runtime.context_report(session.key(), &session.state().await?).await;
        let Some(window) = report.window else { return Ok(()) };
        let cost = self.fold.as_ref().and_then(UpdateFold::cost);
        let cost = cost.map(|amount| json!({"amount": amount, "currency": "USD"}));
        self.show(SessionUpdate::UsageUpdate { used: report.tokens(), size: window.tokens, cost }).await;
        Ok(())
    }

    /// Shows a text of the runtime, not of the model.
    async fn remark(&self, text: &str, kind: &str) {
        let message_id = format!("{}/remark/{}", self.setup.editor_id, self.seen);
        let chunk = MessageChunk::remark(message_id, format!("{text}\n"), kind);
        self.show(SessionUpdate::AgentMessageChunk(chunk)).await;
    }

    async fn show(&self, update: SessionUpdate) {
        if self.replay == Replay::Silent {
            return;
        }
        match self.version() {
            ProtocolVersion::V1 => self.send_update(update).await,
            ProtocolVersion::V2 => {
                if let Some(update) = wire_version2::update(&update) {
                    self.send_update(update).await;
                }
            }
        }
    }

    async fn send_update<U: Serialize>(&self, update: U) {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct SessionNotification<'a, U> {
            session_id: &'a str,
            update: U,
        }
        let session_id = &self.setup.editor_id;
        self.setup.outbox.notify("session/update", SessionNotification { session_id, update }).await;
    }
}

/// What the follower sees next. Waits for ever without a follower.
async fn next_followed(follower: &mut Option<Follower>) -> longhaul_agent::Result<Option<Followed>> {
    match follower {
        Some(follower) => follower.step().await,
        None => std::future::pending().await,
    }
}
