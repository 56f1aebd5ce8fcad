//! `longhaul` without a command: the chat loop, on the screen or line by line.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `line_source` | where lines come from: the screen, a plain terminal, a pipe |
//! | `turn` | a turn, and what the user may enter while it runs |
//! | `slash` | the slash commands: their table and what they do |
//! | `status_feed`, `output_feed` | feed the screen: the session and its tasks; the output of commands |
//! | `session_start` | opening a session: its open turn, and whether it should go on |
//! | `attachments` | the files that a line names with `@`, and images by their path |
//! | `server_content` | what a line takes from MCP servers, and the menu of what they have |
//! | `questions` | open questions and their answers |
//! | `user_command`, `escape_filter` | `!command`: commands of the user's, and their output without escape sequences |
//! | `go_back` | back to an earlier message, in a fork |
//! | `sent_messages` | what was sent during a turn, and how it is taken back |
//! | `background` | work that the user does not wait for |
//! | `past_turns` | the end of a conversation that is opened again |

mod attachments;
mod background;
mod escape_filter;
mod go_back;
mod line_source;
mod output_feed;
mod past_turns;
mod questions;
mod sent_messages;
mod server_content;
mod session_start;
pub(crate) mod slash;
mod status_feed;
mod turn;
mod user_command;

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::time::Duration;

pub(crate) use crate::tui::terminal::Terminal;
use background::{BackgroundWork, CancelTrigger};
use line_source::LineSource;
pub(crate) use line_source::{LineEvent, TerminalLines};
use longhaul_agent::tasks::TaskRegistry;
use longhaul_agent::{Config, EventSources, Request, RetryMode, Runtime, Session, SessionEvents, Watched};
use longhaul_protocol::{EventKind, PermissionMode};
use longhaul_transcript::Verbosity;
pub(crate) use past_turns::PastTurns;
use questions::{AnswerEffect, OpenQuestions};
use sent_messages::SentMessages;
use slash::skills::SkillCommands;
use slash::tasks::note_running_tasks;
use status_feed::StatusFeed;
pub(crate) use user_command::UserCommand;

use crate::args::{ChatOptions, GlobalArgs};
use crate::commands::compact::{focus_of, no_use_to_compact};
use crate::commands::memory::with_canonical_home;
use crate::event_printer::{EventPrinter, Form};
use crate::folder_session::{free_key, key_of, last_conversation_key};
use crate::open_chats::ChatMark;
use crate::output::note;
use crate::session_lookup::{key_or_new, refuse_trashed};
use crate::signals::{ExitSignals, SIGINT};
use crate::tui::chat::slash::{COMMANDS, CommandContext, SlashAction, SlashInput, TurnPhase};
use crate::tui::{
    Activity, CompletionSources, History, InputField, Notifier, ScreenUpdate, ServerMenu, Transcript, View,
    marks_from_environment,
};
use crate::{config, exit, panics, suggested_command};

const PROMPT: &str = "> ";
/// How long restoring the terminal may take when the process ends at once.
const RESTORE_TIMEOUT: Duration = Duration::from_millis(150);
/// How long the last note may take after a signal.
const LAST_NOTE_TIMEOUT: Duration = Duration::from_millis(500);

struct Chat<'a> {
    globals: &'a GlobalArgs,
    runtime: Runtime,
    session: Session,
    events: SessionEvents,
    lines: LineSource,
    printer: EventPrinter,
    signals: ExitSignals,
    terminal: Terminal,
    registry: TaskRegistry,
    config: Config,
    background: BackgroundWork,
    /// Shows other terminals which session is open here.
    mark: ChatMark,
    status_feed: Option<StatusFeed>,
    skills: SkillCommands,
    server_menu: ServerMenu,
    questions: OpenQuestions,
    /// What the user sent during the turn.
    sent: SentMessages,
    /// Lines that were entered while something else ran, and that are handled next.
    deferred: VecDeque<String>,
    /// The permission mode that was last ordered or seen in this session.
    mode: Option<PermissionMode>,
    /// The mode of `--permission`, or of the session before `/clear`. It is set with the first input.
    wanted_mode: Option<PermissionMode>,
    /// A suspending signal that came outside of the prompt.
    suspended: Option<u8>,
    /// A line that ended a command, for the prompt.
    typed: Option<LineEvent>,
    /// The exit code of a script: that of the last turn that did not complete.
    exit_code: u8,
}

/// What the chat does after a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChatStep {
    /// Reads the next line.
    Line,
    /// Ends the chat, and a turn that runs in this process.
    Leave,
    /// Ends the chat and leaves the turn open.
    LeaveOpen,
    /// Goes back to an earlier message.
    GoBack,
    /// A signal with this number suspends the chat.
    Suspend(u8),
}

pub(crate) async fn run(globals: &GlobalArgs, options: &ChatOptions) -> anyhow::Result<u8> {
    let terminal = Terminal::remember();
    // Without a terminal no user can end a long wait, or answer.
    let is_attended = std::io::stdin().is_terminal();
    let retry_mode = if is_attended { RetryMode::Interactive } else { RetryMode::OneShot };
    let config = Config { is_attended, ..config::with_model(globals, retry_mode).await? };
    // Asked before signals are ours, so that Ctrl-C leaves.
    if !config::agree_to_exposed_home(globals, globals.session.as_deref(), config.clone()).await? {
        return Ok(exit::DONE);
    }
    let mut signals = ExitSignals::new()?;
    let home = config.home.clone();
    let runtime = tokio::select! {
        opened = Runtime::open(config.clone()) => opened?,
        number = signals.next() => return Ok(exit::SIGNAL + number),
    };
    let mark = ChatMark::new(&home);
    let key = match &globals.session {
        Some(name) => key_or_new(&*runtime.journal(), name).await?,
        None if options.new => {
            free_key(&*runtime.journal(), key_of(&config.work_dir), &mark.other_keys()).await?
        }
        None => last_conversation_key(&*runtime.journal(), &config.work_dir).await?,
    };
    refuse_trashed(&*runtime.journal(), &key).await?;
    let session = runtime.session(&key).await?;
    // What can still fail comes before the terminal is taken.
    let registry = TaskRegistry::new(runtime.journal(), &home)?;
    let config = with_canonical_home(globals, config)?;
    panics::register_runtime(&runtime, suggested_command::resume(globals, &key));
    let skills = SkillCommands::search_in_background(&config);
    let server_menu = ServerMenu::default();
    let notifier = Notifier::new(config.settings.terminal.notify);
    let lines = LineSource::new(options, notifier, |size| {
        let history = History::load(&home.join("history"), runtime.redactor().clone());
        let sources = CompletionSources {
            commands: &COMMANDS,
            skills: skills.clone(),
            servers: server_menu.clone(),
            work_dir: config.work_dir.clone(),
        };
        let transcript = Transcript::new(size.0, Verbosity::from_count(globals.verbose))
            .with_todo_marks(marks_from_environment());
        View::new(size, transcript, InputField::new(history, sources))
    });
    let printer = match &lines {
        LineSource::Screen(screen) => EventPrinter::on(screen.handle()),
        LineSource::Plain(_) | LineSource::Piped(_) => {
            EventPrinter::new(Form::of_conversation(), Verbosity::from_count(globals.verbose))
        }
    };
    let mut chat = Chat {
        globals,
        mark,
        status_feed: None,
        config,
        background: BackgroundWork::default(),
        events: session.events(event_sources(&lines)),
        registry,
        skills,
        server_menu,
        questions: OpenQuestions::default(),
        sent: SentMessages::default(),
        deferred: VecDeque::new(),
        mode: globals.permission,
        wanted_mode: globals.permission,
        suspended: None,
        typed: None,
        lines,
        runtime,
        session,
        printer,
        signals,
        terminal,
        exit_code: exit::DONE,
    };
    let next = chat.run_prompt_loop(options).await;
    chat.leave(next).await
}

impl Chat<'_> {
    async fn run_prompt_loop(&mut self, options: &ChatOptions) -> anyhow::Result<ChatStep> {
        let mut next = self.start_session(options).await?;
        if let (ChatStep::Line, Some(text)) = (next, options.first_words()) {
            self.printer.tell(ScreenUpdate::Entered(text.to_owned()));
            next = self.run_turn(Request::Send(text.into())).await?;
        }
        while next == ChatStep::Line {
            next = match self.next_line().await? {
                Ok(line) => self.handle_line(&line).await?,
                Err(ChatStep::GoBack) => self.go_back().await?,
                Err(next) => next,
            };
        }
        Ok(next)
    }

    /// Waits for the next line, and shows events until it comes. The inner error says why there is no line.
    async fn next_line(&mut self) -> anyhow::Result<Result<String, ChatStep>> {
        if let Some(line) = self.deferred.pop_front() {
            return Ok(Ok(line));
        }
        self.printer.tell(ScreenUpdate::Activity(Activity::Idle));
        self.refresh_server_menu();
        let line = loop {
            if let Some(number) = self.suspended.take() {
                break Err(ChatStep::Suspend(number));
            }
            if let Some(event) = self.typed.take() {
                break line_or_step(event);
            }
            self.show_prompt();
            let Self { lines, signals, events, background, .. } = self;
            let watched = tokio::select! {
                biased;
                number = signals.next() => break Err(self.step_for_signal(number)),
                event = lines.next() => match event {
                    // A turn may run that another process, or a task, has begun.
                    LineEvent::Escape => {
                        self.background.start_cancel(&self.session, CancelTrigger::Key);
                        continue;
                    }
                    LineEvent::TakeBack => {
                        self.take_back_messages().await;
                        continue;
                    }
                    event => break line_or_step(event),
                },
                watched = events.next() => watched?,
                done = background.next() => {
                    done.note(&mut self.printer);
                    continue;
                }
            };
            self.show_other_clients_event(&watched).await?;
        };
        self.printer.prompt_is_over();
        Ok(line)
    }

    /// Shows an event, and keeps track of the open questions.
    fn show_event(&mut self, watched: &Watched) {
        let Watched::Event(event) = watched else { return self.printer.watched(watched) };
        if self.events.is_new(event) {
            self.printer.watched(watched);
            self.questions.apply_event(&event.kind, &mut self.printer, &self.lines);
            if let Some(feed) = &self.status_feed {
                feed.apply_event(&event.kind);
            }
            if let EventKind::ModeChanged { to, .. } = event.kind {
                self.mode = Some(to);
            }
            if let Some(line) = self.sent.apply_event(&event.kind) {
                self.return_line(line);
            }
        }
    }

    /// Shows what happens while the user has sent nothing, and what other clients have sent.
    async fn show_other_clients_event(&mut self, watched: &Watched) -> anyhow::Result<()> {
        if let (LineSource::Screen(_), Watched::Event(event)) = (&self.lines, watched)
            && let EventKind::InputTaken { .. } = event.kind
            && let Some(text) = self.events.new_input(event.seq).await?
        {
            self.printer.tell(ScreenUpdate::Entered(text));
        }
        self.show_event(watched);
        // A request that waits for the turn resumes it by itself.
        if let Watched::Event(event) = watched
            && let EventKind::Warning { code, .. } = &event.kind
            && code == "abandoned"
        {
            self.printer.note("to continue it: /continue, or send a message");
        }
        Ok(())
    }

    /// Shows the prompt after all output. Does not wait for it: the terminal may be stopped.
    fn show_prompt(&mut self) {
        if matches!(self.lines, LineSource::Plain(_)) && !self.printer.prompt_stands() {
            self.printer.raw_aside(PROMPT);
            self.printer.plain_prompt();
        }
    }

    /// Handles a line that the user enters between turns.
    async fn handle_line(&mut self, line: &str) -> anyhow::Result<ChatStep> {
        // Without a screen, a pasted line looks like a typed one.
        if matches!(self.lines, LineSource::Screen(_))
            && let Some(command) = UserCommand::parse(line)
        {
            return self.run_user_command(command).await;
        }
        let entry = self.skills.parse_line(line, &self.config).await;
        if let SlashInput::Command(..) = entry {
            self.session.touch();
        }
        match entry {
            SlashInput::Nothing => Ok(ChatStep::Line),
            SlashInput::Say(text) => {
                match self.questions.try_answer(&text, &self.session, &mut self.printer, &self.lines).await {
                    Some(effect) => self.follow_answer(effect).await,
                    None => match self.message_of(text).await? {
                        Some(message) if self.sent.would_join() => self.join_turn(&message, line).await,
                        Some(message) => self.run_turn(Request::Send(message)).await,
                        None => Ok(ChatStep::Line),
                    },
                }
            }
            SlashInput::Start(text) => match self.message_of(text).await? {
                Some(message) => self.run_turn(Request::Send(message)).await,
                None => Ok(ChatStep::Line),
            },
            SlashInput::Mistake(words) | SlashInput::Unknown { mistake: words, .. } => {
                self.printer.note(words);
                Ok(ChatStep::Line)
            }
            SlashInput::Command(row, arguments) => match row.action {
                SlashAction::Retry => self.run_turn(Request::Retry).await,
                SlashAction::Continue => self.run_turn(Request::Continue).await,
                SlashAction::Exit => Ok(ChatStep::Leave),
                SlashAction::Cancel => {
                    self.cancel_other_turn().await;
                    Ok(ChatStep::Line)
                }
                SlashAction::Answer => {
                    let Self { questions, session, printer, .. } = self;
                    let effect = questions.run_answer_command(&arguments, session, printer).await;
                    self.follow_answer(effect).await
                }
                // C12: what is open does not go on because of this.
                SlashAction::Compact if !self.session.is_unfinished().await? => {
                    match no_use_to_compact(&self.session.state().await?) {
                        Some(why) => {
                            self.printer.note(why);
                            Ok(ChatStep::Line)
                        }
                        None => self.run_turn(Request::Compact(focus_of(&arguments))).await,
                    }
                }
                SlashAction::Clear => {
                    let next = slash::session::clear(&mut self.command_context());
                    self.switch_session(Ok(next)).await
                }
                SlashAction::Fork => {
                    let next = slash::session::fork(&mut self.command_context(), &arguments).await;
                    self.switch_session(next).await
                }
                SlashAction::Session => self.run_session_command(&arguments, TurnPhase::BetweenTurns).await,
                action => {
                    let phase = TurnPhase::BetweenTurns;
                    slash::info::run(&mut self.command_context(), action, &arguments, phase).await;
                    Ok(ChatStep::Line)
                }
            },
        }
    }

    fn command_context(&mut self) -> CommandContext<'_> {
        let screen = match &self.lines {
            LineSource::Screen(screen) => Some(screen.handle()),
            LineSource::Plain(_) | LineSource::Piped(_) => None,
        };
        CommandContext {
            globals: self.globals,
            runtime: &self.runtime,
            session: &self.session,
            registry: &self.registry,
            config: &self.config,
            printer: &mut self.printer,
            background: &mut self.background,
            signals: &mut self.signals,
            suspended: &mut self.suspended,
            lines: &mut self.lines,
            typed: &mut self.typed,
            screen,
            mode: &mut self.mode,
        }
    }

    /// `/session …`.
    async fn run_session_command(&mut self, arguments: &str, phase: TurnPhase) -> anyhow::Result<ChatStep> {
        let next = slash::session::run(&mut self.command_context(), arguments, phase).await;
        self.switch_session(next).await
    }

    /// Cancels a turn that was not started at this prompt, if one runs. The next line of a script waits for that; a user does not.
    async fn cancel_other_turn(&mut self) {
        self.background.start_cancel(&self.session, CancelTrigger::Command);
        if !self.lines.is_interactive()
            && let Some(done) = self.background.finish_cancel().await
        {
            done.note(&mut self.printer);
        }
    }

    /// Runs the turn that goes on, or begins, with an answer.
    async fn follow_answer(&mut self, effect: AnswerEffect) -> anyhow::Result<ChatStep> {
        match effect {
            AnswerEffect::Turn => self.run_turn(Request::Resume).await,
            AnswerEffect::Nothing => Ok(ChatStep::Line),
        }
    }

    /// The command that resumes this session.
    fn resume_command(&self) -> String {
        suggested_command::resume(self.globals, self.session.key())
    }

    /// The command that opens this chat again.
    fn reopen_command(&self) -> String {
        suggested_command::open_chat(self.globals, self.session.key())
    }

    /// The step that a signal asks for: SIGINT ends the chat, other signals suspend it. In a script, SIGINT sets the exit code.
    fn step_for_signal(&mut self, number: u8) -> ChatStep {
        if number != SIGINT {
            return ChatStep::Suspend(number);
        }
        if !self.lines.is_interactive() {
            self.exit_code = exit::SIGNAL + SIGINT;
        }
        ChatStep::Leave
    }

    /// Ends the chat with its questions open, and tells the user how to answer them.
    fn leave_with_open_questions(&mut self) -> ChatStep {
        self.questions.note_answer_commands(self.session.key(), &mut self.printer);
        self.printer.note(format!("after answering, to resume: {}", self.resume_command()));
        self.exit_code = exit::ASKED;
        ChatStep::Leave
    }

    /// Ends the chat: every way out goes through here.
    async fn leave(mut self, next: anyhow::Result<ChatStep>) -> anyhow::Result<u8> {
        self.printer.tell(ScreenUpdate::Leaving);
        // A screen shows what is said until the end, and gives the terminal back itself.
        if !matches!(self.lines, LineSource::Screen(_)) {
            self.terminal.restore();
        }
        // A running turn that this chat has not begun, such as one that the end of a task began, is cancelled, too.
        if matches!(next, Ok(ChatStep::Leave))
            && self.exit_code != exit::ASKED
            && self.leaves_running_turn().await
        {
            let Self { signals, session, .. } = &mut self;
            tokio::select! {
                _ = session.cancel() => {}
                number = signals.next_deliberate() => self.leave_at_once(number).await,
            }
        }
        let is_unfinished = self.session.is_unfinished().await.unwrap_or(true);
        note_running_tasks(&self.session, &self.registry, &mut self.printer).await;
        let Self { signals, lines, runtime, .. } = &mut self;
        let again = async {
            tokio::select! {
                number = signals.next_deliberate() => number,
                () = lines.wait_for_interrupt() => SIGINT,
            }
        };
        let at_once = tokio::select! {
            ended = runtime.shutdown() => {
                ended?;
                None
            }
            number = again => Some(number),
        };
        if let Some(number) = at_once {
            self.leave_at_once(number).await;
        }
        let is_stored = self.session.id().is_some();
        let (code, last, failed) = match next {
            Ok(ChatStep::Line | ChatStep::GoBack | ChatStep::Leave) => {
                (self.exit_code, format!("saved; to resume: {}", self.reopen_command()), None)
            }
            Ok(ChatStep::LeaveOpen) => {
                (self.exit_code, format!("the turn stays open; to resume: {}", self.resume_command()), None)
            }
            Ok(ChatStep::Suspend(number)) => {
                let last = match is_unfinished {
                    true => format!("suspended; to resume: {}", self.resume_command()),
                    false => format!("saved; to resume: {}", self.reopen_command()),
                };
                (exit::SIGNAL + number, last, None)
            }
            Err(error) => (exit::FAILED, String::new(), Some(error)),
        };
        let finished = self.printer.finish(&mut self.signals, code).await;
        self.terminal.restore();
        // After the screen, and so in one piece: a command that is broken into rows can't be copied.
        if is_stored && !last.is_empty() {
            let by_signal = code > exit::SIGNAL || finished.is_err();
            let timeout = async {
                match by_signal {
                    true => tokio::time::sleep(LAST_NOTE_TIMEOUT).await,
                    false => drop(self.signals.next().await),
                }
            };
            tokio::select! {
                () = print_last_note(last) => {}
                () = timeout => {}
            }
        }
        match (finished, failed) {
            (Err(number), _) => Ok(number),
            (Ok(_), Some(error)) => Err(error),
            (Ok(_), None) => Ok(code),
        }
    }

    /// Whether an interactive user leaves while a turn runs in this process.
    async fn leaves_running_turn(&self) -> bool {
        let is_here = self.lines.is_interactive() && self.session.is_held_here().await.unwrap_or(false);
        is_here && self.session.state().await.is_ok_and(|state| state.turn.is_some())
    }

    /// Ends the process at once after a second signal. What is committed stays.
    async fn leave_at_once(&mut self, number: u8) -> ! {
        let _ = tokio::time::timeout(RESTORE_TIMEOUT, self.printer.give_back()).await;
        self.terminal.restore();
        if self.session.id().is_some() {
            let last = format!("left as it is; to resume: {}", self.resume_command());
            let _ = tokio::time::timeout(RESTORE_TIMEOUT, print_last_note(last)).await;
        }
        std::process::exit(i32::from(exit::SIGNAL + number));
    }
}

/// Only a user at a terminal sees what other processes do between two requests.
pub(super) fn event_sources(lines: &LineSource) -> EventSources {
    if lines.is_interactive() { EventSources::AllProcesses } else { EventSources::ThisProcess }
}

/// Prints a note. A stopped terminal may never take it, so the caller bounds the wait.
async fn print_last_note(text: String) {
    let _ = tokio::task::spawn_blocking(move || note(text)).await;
}

/// The line, or the step that a key without a line asks for.
fn line_or_step(event: LineEvent) -> Result<String, ChatStep> {
    match event {
        LineEvent::Line(line) => Ok(line),
        LineEvent::GoBack => Err(ChatStep::GoBack),
        LineEvent::TakeBack => Ok(String::new()),
        LineEvent::End | LineEvent::Interrupt | LineEvent::Escape => Err(ChatStep::Leave),
        // A lost terminal counts as SIGHUP, which comes with it.
        LineEvent::Lost => Err(ChatStep::Suspend(1)),
    }
}
