//! Opening a session in the chat: what is said of it, what is shown of its open turn, and whether that turn goes on.

use std::path::PathBuf;

use longhaul_agent::config::SandboxMode;
use longhaul_agent::session::State;
use longhaul_agent::{Request, Watched, now};
use longhaul_journal::import_mark;
use longhaul_model::WindowSource;
use longhaul_protocol::{AttemptId, Event, EventKind, OrderKind, PermissionMode};
use longhaul_transcript::{Call, call_text};

use super::line_source::{LineEvent, LineSource};
use super::past_turns::PastTurns;
use super::questions::OpenQuestions;
use super::sent_messages::SentMessages;
use super::slash::session::NextSession;
use super::status_feed::{ModeSources, StatusFeed};
use super::{Chat, ChatStep, event_sources, line_or_step};
use crate::args::ChatOptions;
use crate::folder_session::{free_key, interrupted_sessions, key_of};
use crate::output::{format_count, format_number, truncate};
use crate::session_lookup::refuse_trashed;
use crate::tui::ScreenUpdate;
use crate::{config, event_text, exit, panics, suggested_command};

/// How many records of a long turn are shown again at most.
const MAX_REPLAYED_RECORDS: u64 = 1_000;
/// With more records than this in its newest epoch, a session is loaded after its prompt is there.
const LONG_EPOCH_RECORDS: u64 = 2_000;
/// Interrupted sessions that are named at the start.
const MAX_NAMED_INTERRUPTED: usize = 5;
/// The help for the question whether to join another terminal's session.
const JOIN_HELP: &str = "j shows the same session here and there, n begins another one, Ctrl-C leaves";
/// The help for the question whether an open turn should go on.
const RESUME_HELP: &str = "y to resume it, n to cancel it, Ctrl-C to leave it open";

/// What is known of a session before it is loaded.
#[derive(Default)]
struct OpenedSession {
    past: PastTurns,
    /// Loading it takes a while, and there is nothing unfinished in it.
    is_long_and_rests: bool,
}

impl Chat<'_> {
    /// Asks a question. Its answer stays out of the history.
    fn ask_question(&mut self, question: String) {
        match &self.lines {
            LineSource::Screen(_) => self.printer.tell(ScreenUpdate::Ask(question)),
            LineSource::Plain(_) | LineSource::Piped(_) => self.printer.raw_aside(&question),
        }
    }

    /// Prints the first hints and opens the session.
    pub(super) async fn start_session(&mut self, options: &ChatOptions) -> anyhow::Result<ChatStep> {
        match &self.lines {
            LineSource::Screen(_) => {
                self.printer
                    .aside("Enter sends · Alt-Enter new line · @ file · / command · Esc cancels a turn");
            }
            LineSource::Plain(_) => {
                self.printer.note("/help lists the commands; Ctrl-C cancels a turn, and exits at the prompt");
            }
            LineSource::Piped(_) => {}
        }
        // Marked first, so that of two terminals that start together at least one asks.
        self.mark_session();
        if let Some(step) = self.choose_session(options).await? {
            return Ok(step);
        }
        let opened = self.look_at_session().await?;
        self.note_session(&opened).await?;
        self.show_past_turns(&opened);
        self.background.start_looking(self.find_interrupted_sessions());
        let runtime = self.runtime.clone();
        tokio::spawn(async move { runtime.tidy().await });
        if let Some(why) = self.runtime.not_enforced().await {
            self.printer.note(event_text::not_enforced(&why));
        }
        self.runtime.start_idle().await?;
        self.open_session(options, &opened).await
    }

    /// Looks at the end of the session. This costs the same for a long session as for a short one.
    async fn look_at_session(&self) -> anyhow::Result<OpenedSession> {
        let journal = self.runtime.journal();
        let entry = journal.session(self.session.key()).await?;
        let (true, Some(entry)) = (self.lines.is_interactive(), entry) else {
            return Ok(OpenedSession::default());
        };
        let past = PastTurns::load(&*journal, entry.id, entry.head.seq).await?;
        let is_long = entry.head.seq.saturating_sub(entry.epoch_from.unwrap_or(1)) > LONG_EPOCH_RECORDS;
        let rests = past.rests_through == Some(entry.inbox_head);
        Ok(OpenedSession { past, is_long_and_rests: is_long && rests })
    }

    /// Notes the session and its model.
    async fn note_session(&mut self, opened: &OpenedSession) -> anyhow::Result<()> {
        let state = match opened.is_long_and_rests {
            true => None,
            false => Some(self.session.state().await?),
        };
        if let Some(state) = &state {
            self.runtime.restore_model(self.session.key(), state);
        }
        let turns = state.as_ref().map_or(opened.past.last_turn, |state| state.turn_count);
        let so_far = match turns {
            0 => "new".to_owned(),
            turns => format!("{} so far", format_count(turns, "turn")),
        };
        let (model, facts) = self.runtime.model_of(self.session.key()).await;
        let (configured, _) = self.runtime.model().await;
        let choice = match state.as_ref().and_then(|state| state.chosen_model.as_ref()) {
            Some(chosen) if *chosen == model && model != configured => {
                format!(" (chosen with /model; the config has {configured})")
            }
            _ => String::new(),
        };
        self.printer.note(format!("session {} ({so_far}), with {model}{choice}", self.session.key()));
        if let Some(window) = facts.window
            && window.source == WindowSource::LocalDefault
        {
            let tokens = format_number(window.tokens);
            self.printer.note(format!(
                "{model} is taken to have a context of {tokens} tokens, since its server does not say; \
                 if it has more, set model.context_window"
            ));
        }
        // A session that is loaded later belongs to this folder, unless the user named it.
        let folder = state.and_then(|state| state.created).and_then(|created| created.work_dir);
        let folder = folder.map_or_else(|| self.config.work_dir.clone(), PathBuf::from);
        if let Some(line) = config::instructions_line(&self.config, &folder) {
            self.printer.note(line);
        }
        if turns == 0 && self.lines.is_interactive() {
            let mode = self.mode.unwrap_or(self.config.settings.approval.mode);
            let has_sandbox = self.config.settings.sandbox.mode != SandboxMode::Off
                && self.runtime.not_enforced().await.is_none();
            let change = match self.lines {
                LineSource::Screen(_) => "Shift-Tab changes that",
                LineSource::Plain(_) | LineSource::Piped(_) => "/mode changes that",
            };
            self.printer.note(format!("{}; {change}", mode_line(mode, has_sandbox)));
        }
        if let Some(id) = self.session.id()
            && let Some(imported) = event_text::imported(&import_mark(&*self.runtime.journal(), id).await?)
        {
            self.printer.note(format!("this session was imported {imported}"));
        }
        Ok(())
    }

    /// Shows what is unfinished in the session, and resumes it if the user wants that.
    async fn open_session(
        &mut self,
        options: &ChatOptions,
        opened: &OpenedSession,
    ) -> anyhow::Result<ChatStep> {
        if opened.is_long_and_rests {
            self.load_in_background();
            return Ok(ChatStep::Line);
        }
        let state = self.session.state().await?;
        if let LineSource::Screen(screen) = &self.lines {
            let feed = StatusFeed::start(
                screen.handle(),
                &self.runtime,
                &self.session,
                &self.registry,
                self.mode_sources(),
            )
            .await?;
            self.status_feed = Some(feed);
        }
        self.questions = OpenQuestions::load(&self.session).await?;
        self.questions.show(&mut self.printer, &self.lines);
        if !self.session.is_unfinished().await? {
            // Starts the worker, so that the ends of running tasks are recorded before the first turn.
            if !state.tasks.are_settled() && self.lines.is_interactive() {
                // Another process that runs the session does it instead.
                let _ = self.session.wake().await;
            }
            return Ok(ChatStep::Line);
        }
        let holder = self.session.other_holder().await?;
        let mut has_kept_text = false;
        if let (Some(_), None) = (&state.turn, &holder) {
            self.show_open_turn().await?;
            has_kept_text = self.show_interrupted_output(&state);
        }
        if options.resume {
            self.show_resumed_calls(&state);
            return self.run_turn(Request::Resume).await;
        }
        let open = match &state.turn {
            Some(turn) => format!("Turn {} was interrupted ({})", turn.number, state.describe_open_work()),
            None => "A message is waiting".to_owned(),
        };
        if let Some(holder) = holder {
            self.printer.note(format!("{holder} is running a turn; your messages join it"));
            self.follow_open_turn().await;
            return Ok(ChatStep::Line);
        }
        match (self.lines.is_interactive(), self.questions.is_empty()) {
            (true, true) => self.ask_to_resume(&open, has_kept_text, &state).await,
            // What is open is what was asked: a second question would take its answer.
            (true, false) => {
                self.show_resumed_calls(&state);
                self.run_turn(Request::Resume).await
            }
            (false, _) => self.join_open_turn(&open).await,
        }
    }

    /// T12: asks the user whether to resume the open turn.
    async fn ask_to_resume(
        &mut self,
        open: &str,
        has_kept_text: bool,
        state: &State,
    ) -> anyhow::Result<ChatStep> {
        self.printer.tell(ScreenUpdate::Interrupted);
        loop {
            self.ask_question(format!("{open}. Resume it? [Y/n] "));
            let answer = match self.next_answer(RESUME_HELP).await {
                Ok(answer) => answer,
                Err(ChatStep::Leave) => return Ok(ChatStep::LeaveOpen),
                Err(next) => return Ok(next),
            };
            match answer.trim().to_lowercase().as_str() {
                "" | "y" | "yes" => {
                    if has_kept_text {
                        self.printer.aside("[requesting the answer again]");
                    }
                    self.show_resumed_calls(state);
                    return self.run_turn(Request::Resume).await;
                }
                "n" | "no" => return self.cancel_open_turn().await,
                _ => self.printer.note(RESUME_HELP),
            }
        }
    }

    /// Cancels the open turn. The order is in the inbox before the turn resumes, so that none of its calls run.
    async fn cancel_open_turn(&mut self) -> anyhow::Result<ChatStep> {
        self.session.order(OrderKind::Cancel).await?;
        let next = self.run_turn(Request::Resume).await;
        self.exit_code = exit::DONE;
        next
    }

    /// Without a terminal, the first line joins the open turn.
    async fn join_open_turn(&mut self, open: &str) -> anyhow::Result<ChatStep> {
        match self.next_line().await? {
            Ok(line) => {
                self.printer.note(format!("{open}; your messages join it"));
                self.handle_line(&line).await
            }
            Err(ChatStep::Leave) if !self.questions.is_empty() => Ok(self.leave_with_open_questions()),
            Err(ChatStep::Leave) => {
                self.printer.note(format!("{open}; to resume: {}", self.resume_command()));
                self.exit_code = exit::BAD_USAGE;
                Ok(ChatStep::Leave)
            }
            Err(next) => Ok(next),
        }
    }

    /// Switches the chat to the session that a command leads to. An error is noted and does not end the chat.
    pub(super) async fn switch_session(
        &mut self,
        next: anyhow::Result<NextSession>,
    ) -> anyhow::Result<ChatStep> {
        let next = match next {
            Ok(NextSession::Same) => Ok(ChatStep::Line),
            Ok(NextSession::Named(key)) => self.open_named_session(&key).await,
            Ok(NextSession::New) => self.open_new_session().await,
            Err(error) => Err(error),
        };
        next.or_else(|error| {
            self.printer.note(format!("{error:#}"));
            Ok(ChatStep::Line)
        })
    }

    /// Switches the chat to a new session for the folder.
    async fn open_new_session(&mut self) -> anyhow::Result<ChatStep> {
        let key = self.new_session_key().await?;
        self.wanted_mode = self.mode;
        let (model, _) = self.runtime.model_of(self.session.key()).await;
        if model != self.runtime.model().await.0 {
            self.runtime.session(&key).await?.use_model(&model)?;
        }
        self.switch_to(&key).await
    }

    /// Switches the chat to an existing session, which has its own mode.
    async fn open_named_session(&mut self, key: &str) -> anyhow::Result<ChatStep> {
        (self.mode, self.wanted_mode) = (None, None);
        self.switch_to(key).await
    }

    /// Switches the chat to the session with this key.
    async fn switch_to(&mut self, key: &str) -> anyhow::Result<ChatStep> {
        refuse_trashed(&*self.runtime.journal(), key).await?;
        let session = self.runtime.session(key).await?;
        let is_renamed = session.id().is_some() && session.id() == self.session.id();
        self.events = session.events(event_sources(&self.lines));
        self.session = session;
        panics::register_runtime(&self.runtime, self.resume_command());
        self.questions.clear();
        self.sent = SentMessages::default();
        self.printer.tell(ScreenUpdate::SessionChanged);
        self.mark_session();
        let opened = self.look_at_session().await?;
        self.note_session(&opened).await?;
        if !is_renamed {
            self.show_past_turns(&opened);
        }
        // Boxed, since opening may switch again.
        Box::pin(self.open_session(&ChatOptions::default(), &opened)).await
    }

    /// A key for a new session of the folder, which no other terminal is about to use.
    async fn new_session_key(&self) -> anyhow::Result<String> {
        free_key(&*self.runtime.journal(), key_of(&self.config.work_dir), &self.mark.other_keys()).await
    }

    /// Shows other terminals which session is open here. Without that file they only miss a question.
    fn mark_session(&self) {
        if self.lines.is_interactive() {
            let _ = self.mark.open_session(self.session.key());
        }
    }

    /// S2: shows the end of the conversation.
    fn show_past_turns(&mut self, opened: &OpenedSession) {
        self.printer.past_turns(opened.past.clone());
    }

    fn mode_sources(&self) -> ModeSources {
        ModeSources { wanted: self.wanted_mode, configured: self.config.settings.approval.mode }
    }

    /// Loads a long session while its prompt is shown: the last row of the screen, and the ends of its tasks.
    fn load_in_background(&mut self) {
        let (session, runtime, registry) =
            (self.session.clone(), self.runtime.clone(), self.registry.clone());
        if let LineSource::Screen(screen) = &self.lines {
            self.status_feed = Some(StatusFeed::start_later(
                screen.handle(),
                runtime,
                &session,
                registry,
                self.mode_sources(),
            ));
        }
        tokio::spawn(async move {
            if session.state().await.is_ok_and(|state| !state.tasks.are_settled()) {
                // Another process that runs the session does it instead.
                let _ = session.wake().await;
            }
        });
    }

    /// S2: looks for other sessions of the folder that were interrupted, and returns a note for each.
    fn find_interrupted_sessions(&self) -> impl Future<Output = Vec<String>> + Send + 'static {
        let (journal, folder) = (self.runtime.journal(), self.config.work_dir.clone());
        let (open, is_interactive) = (self.session.key().to_owned(), self.lines.is_interactive());
        let flags = self.globals.flags();
        async move {
            if !is_interactive {
                return vec![];
            }
            let found = interrupted_sessions(&*journal, &folder, &open).await.unwrap_or_default();
            let more = found.len().saturating_sub(MAX_NAMED_INTERRUPTED);
            let mut notes: Vec<String> = found
                .iter()
                .take(MAX_NAMED_INTERRUPTED)
                .map(|entry| {
                    let resume = suggested_command::with_flags(flags.clone(), &["resume", &entry.key]);
                    format!("{} was interrupted; to go on: {resume}", truncate(&entry.key, 200))
                })
                .collect();
            notes.extend((more > 0).then(|| format!("and {more} more; longhaul resume lists them")));
            notes
        }
    }

    /// S2: where another terminal has the session open, asks whether to join it. The session is then the one that the user chose. Returns
    /// a step if the user leaves instead.
    async fn choose_session(&mut self, options: &ChatOptions) -> anyhow::Result<Option<ChatStep>> {
        let others = self.mark.others();
        let Some(other) = others.iter().find(|other| other.session == self.session.key()) else {
            return Ok(None);
        };
        let (key, process) = (truncate(&other.session, 200), &other.process);
        if !self.lines.is_interactive() || options.new {
            return Ok(None);
        }
        if self.globals.session.is_some() {
            self.printer.note(format!("{key} is open in another terminal, too ({process})"));
            return Ok(None);
        }
        let question = format!(
            "{key} is open in another terminal ({process}). [J]oin it, or begin a [n]ew session? [J/n] "
        );
        loop {
            self.ask_question(question.clone());
            let answer = match self.next_answer(JOIN_HELP).await {
                Ok(answer) => answer,
                Err(step) => return Ok(Some(step)),
            };
            match answer.trim().to_lowercase().as_str() {
                "" | "j" | "join" => return Ok(None),
                "n" | "new" => {
                    let session = self.runtime.session(&self.new_session_key().await?).await?;
                    self.events = session.events(event_sources(&self.lines));
                    self.session = session;
                    panics::register_runtime(&self.runtime, self.resume_command());
                    self.mark_session();
                    return Ok(None);
                }
                _ => self.printer.note(JOIN_HELP),
            }
        }
    }

    /// The next line as the answer to a question that the chat itself asks. The error says why there is none.
    async fn next_answer(&mut self, help: &str) -> Result<String, ChatStep> {
        loop {
            let Self { lines, signals, .. } = self;
            let event = tokio::select! {
                biased;
                number = signals.next() => return Err(self.step_for_signal(number)),
                event = lines.next() => event,
            };
            match event {
                LineEvent::Escape | LineEvent::GoBack | LineEvent::TakeBack => self.printer.note(help),
                event => return line_or_step(event),
            }
        }
    }

    /// Shows the turn that another process runs from its beginning, and follows it.
    async fn follow_open_turn(&mut self) {
        if self.lines.is_interactive() {
            // The next request reports what can't be read.
            let _ = self.events.rewind_to_turn(MAX_REPLAYED_RECORDS).await;
        }
    }

    /// Shows the open turn up to now, as if the terminal had been there.
    async fn show_open_turn(&mut self) -> anyhow::Result<()> {
        let LineSource::Screen(_) = &self.lines else { return Ok(()) };
        for event in self.events.of_open_turn(MAX_REPLAYED_RECORDS).await.unwrap_or_default() {
            self.show_other_clients_event(&Watched::Event(event)).await?;
        }
        Ok(())
    }

    /// T12: shows what was on its way in the turn that is open: the text of its answer that was kept, and the calls that had started.
    /// True if there was such a text.
    fn show_interrupted_output(&mut self, state: &State) -> bool {
        let Some(turn) = &state.turn else { return false };
        let unfinished = turn.attempt.as_ref().map(|attempt| (attempt.id, attempt.text()));
        let failed = turn.interrupted_answer.clone().map(|text| (AttemptId::generate(), text));
        let kept = unfinished.or(failed).filter(|(_, text)| !text.trim().is_empty());
        let has_text = kept.is_some();
        if let Some((attempt, text)) = kept {
            let kind = EventKind::Partial { attempt, text };
            self.show_event(&Watched::Event(self.live_event(turn.number, kind)));
            // The text is whole now, and what is said next stands below it.
            self.printer.tell(ScreenUpdate::Interrupted);
            self.printer.aside("[interrupted here]");
        }
        for call in turn.calls.iter().filter(|call| call.is_open()) {
            let (name, arguments) = (call.name.clone(), call.arguments.clone());
            let call = Call { call: call.id, name, arguments, effect: None, result: None };
            self.printer.aside(&format!("· {} [was running]", call_text(&call)));
        }
        has_text
    }

    /// Shows the calls of the open turn as running again. Their start is on record, so no event tells of it.
    fn show_resumed_calls(&mut self, state: &State) {
        let (LineSource::Screen(_), Some(turn)) = (&self.lines, &state.turn) else { return };
        for call in turn.calls.iter().filter(|call| call.is_open()) {
            let Some(effect) = call.started.as_ref().map(|started| started.effect) else { continue };
            let (name, arguments) = (call.name.clone(), call.arguments.clone());
            let kind = EventKind::ToolStarted { call_id: call.id, name, arguments, effect };
            self.show_event(&Watched::Event(self.live_event(turn.number, kind)));
        }
    }

    fn live_event(&self, turn: u64, kind: EventKind) -> Event {
        let (at, session) = (now(), self.session.key().to_owned());
        Event { seq: None, at, session, turn: Some(turn), kind }
    }
}

/// What the agent may do without asking, for the start of a new session.
fn mode_line(mode: PermissionMode, has_sandbox: bool) -> &'static str {
    match (mode, has_sandbox) {
        (PermissionMode::Auto, true) => "mode auto: commands run without asking, in a sandbox",
        (PermissionMode::Auto, false) => "mode auto: commands run without asking, and without a sandbox",
        (PermissionMode::AutoEdit, _) => {
            "mode auto-edit: files are edited without asking, and you are asked about commands"
        }
        (PermissionMode::Ask, _) => "mode ask: you are asked before each edit and each command",
        (PermissionMode::Plan, _) => "mode plan: nothing is changed, and the agent ends with a plan",
    }
}
