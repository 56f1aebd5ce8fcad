//! Opening a session in the chat: what is said of it, what is shown of its open turn, and whether that turn goes on.

use longhaul_agent::session::State;
use longhaul_agent::{Request, Watched};
use longhaul_journal::import_mark;
use longhaul_protocol::{AttemptId, Event, EventKind, OrderKind};

use super::folder_session::{free_key, key_of};
use super::line_source::{LineEvent, LineSource};
use super::questions::OpenQuestions;
use super::slash::session::NextSession;
use super::status_feed::StatusFeed;
use super::{Chat, ChatStep, event_sources, line_or_step};
use crate::args::ChatOptions;
use crate::commands::sessions::list::now;
use crate::output::{format_count, truncate};
use crate::session_lookup::refuse_trashed;
use crate::tui::ScreenUpdate;
use crate::{event_text, exit, panics};

/// How many records of a long turn are shown again at most.
const MAX_REPLAYED_RECORDS: u64 = 1_000;
/// The help for the question whether an open turn should go on.
const RESUME_HELP: &str = "y goes on with it, n ends it as cancelled, Ctrl-C leaves it open";

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
                self.printer.aside("Enter sends · Alt-Enter new line · @ file · / command · Esc ends a turn");
            }
            LineSource::Plain(_) => {
                self.printer
                    .note("/help lists the commands; Ctrl-C ends a turn, and at the prompt it leaves");
            }
            LineSource::Piped(_) => {}
        }
        self.note_session().await?;
        let runtime = self.runtime.clone();
        tokio::spawn(async move { runtime.tidy().await });
        if let Some(why) = self.runtime.not_enforced().await {
            self.printer.note(event_text::not_enforced(&why));
        }
        self.runtime.start_idle().await?;
        self.open_session(options).await
    }

    /// Notes the session and its model.
    async fn note_session(&mut self) -> anyhow::Result<()> {
        let state = self.session.state().await?;
        let so_far = match state.turn_count {
            0 => "new".to_owned(),
            turns => format!("{} so far", format_count(turns, "turn")),
        };
        let (model, _) = self.runtime.model().await;
        self.printer.note(format!("session {} ({so_far}), with {model}", self.session.key()));
        if let Some(id) = self.session.id()
            && let Some(imported) = event_text::imported(&import_mark(&*self.runtime.journal(), id).await?)
        {
            self.printer.note(format!("this session was imported {imported}"));
        }
        Ok(())
    }

    /// Shows what is unfinished in the session, and resumes it if the user wants that.
    async fn open_session(&mut self, options: &ChatOptions) -> anyhow::Result<ChatStep> {
        let state = self.session.state().await?;
        let own = self.wanted_mode.or(state.permission.mode);
        let mode = own.unwrap_or(self.config.settings.approval.mode);
        if let LineSource::Screen(screen) = &self.lines {
            let feed = StatusFeed::start(screen.handle(), &self.runtime, &self.session, &self.registry, mode)
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
            return self.run_turn(Request::Resume).await;
        }
        let open = match &state.turn {
            Some(turn) => format!("Turn {} was interrupted ({})", turn.number, state.describe_open_work()),
            None => "An input waits for its answer".to_owned(),
        };
        if let Some(holder) = holder {
            self.printer.note(format!("a turn is run by {holder} just now; what you say joins it"));
            self.follow_open_turn().await;
            return Ok(ChatStep::Line);
        }
        match (self.lines.is_interactive(), self.questions.is_empty()) {
            (true, true) => self.ask_to_resume(&open, has_kept_text).await,
            // What is open is what was asked: a second question would take its answer.
            (true, false) => self.run_turn(Request::Resume).await,
            (false, _) => self.join_open_turn(&open).await,
        }
    }

    /// T12: asks the user whether to resume the open turn.
    async fn ask_to_resume(&mut self, open: &str, has_kept_text: bool) -> anyhow::Result<ChatStep> {
        self.printer.tell(ScreenUpdate::Interrupted);
        loop {
            self.ask_question(format!("{open}. Go on with it? [Y/n] "));
            let Self { lines, signals, .. } = self;
            let answer = tokio::select! {
                biased;
                number = signals.next() => Err(number),
                event = lines.next() => match event {
                    LineEvent::Escape => {
                        self.printer.note(RESUME_HELP);
                        continue;
                    }
                    event => Ok(line_or_step(event)),
                },
            };
            let answer = match answer.unwrap_or_else(|number| Err(self.step_for_signal(number))) {
                Ok(answer) => answer,
                Err(ChatStep::Leave) => return Ok(ChatStep::LeaveOpen),
                Err(next) => return Ok(next),
            };
            match answer.trim().to_lowercase().as_str() {
                "" | "y" | "yes" => {
                    if has_kept_text {
                        self.printer.aside("[the answer is asked for again]");
                    }
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
                self.printer.note(format!("{open}; what is entered joins it"));
                self.handle_line(&line).await
            }
            Err(ChatStep::Leave) if !self.questions.is_empty() => Ok(self.leave_with_open_questions()),
            Err(ChatStep::Leave) => {
                self.printer.note(format!("{open}; to go on: {}", self.resume_command()));
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
        let key = free_key(&*self.runtime.journal(), key_of(&self.config.work_dir)).await?;
        self.wanted_mode = self.mode;
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
        self.events = session.events(event_sources(&self.lines));
        self.session = session;
        panics::register_runtime(&self.runtime, self.resume_command());
        self.questions.clear();
        self.printer.tell(ScreenUpdate::SessionChanged);
        self.note_session().await?;
        // Boxed, since opening may switch again.
        Box::pin(self.open_session(&ChatOptions::default())).await
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
            let (name, arguments) = (truncate(&call.name, 60), truncate(&call.arguments, 200));
            self.printer.aside(&format!("· {name} {arguments} [had started]"));
        }
        has_text
    }

    fn live_event(&self, turn: u64, kind: EventKind) -> Event {
        let (at, session) = (now(), self.session.key().to_owned());
        Event { seq: None, at, session, turn: Some(turn), kind }
    }
}
