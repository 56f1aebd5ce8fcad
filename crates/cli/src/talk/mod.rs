//! `longhaul` without a command: a conversation in the terminal, line by line.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `lines` | where lines come from: an editor, a plain terminal, a pipe |
//! | `turn` | a turn of the conversation, and what may be typed while it runs |
//! | `answers`, `tasks`, `memory` | what slash commands show and do |
//! | `asked` | questions, and what is typed in answer to them |
//! | `place`, `terminal` | the session of a folder; the terminal as it was before |

mod answers;
mod asked;
mod lines;
mod memory;
mod place;
mod tasks;
mod terminal;
mod turn;

use std::io::IsTerminal;
use std::time::Duration;

use lines::Lines;
pub(crate) use lines::{Cooked, Typed};
use longhaul_agent::{Config, Patience, Runtime, Session, Watcher};
use longhaul_journal::put;
use longhaul_protocol::{InboxRecord, Order, OrderId, OrderKind};
use memory::{GoingThrough, gone_through};
pub(crate) use place::key_of;
use tasks::Moment;
use terminal::Terminal;

use crate::arguments::{Choice, Place, TalkOptions};
use crate::commands::{Action, Entry, read};
use crate::compact::focus_of;
use crate::inbox::refuse_trashed;
use crate::memory::with_real_home;
use crate::output::count;
use crate::questions::OpenQuestion;
use crate::signals::{Ends, INTERRUPT};
use crate::tasks::board::Board;
use crate::teller::{Form, Teller};
use crate::underway::Wish;
use crate::{config, exit, status};

/// What is printed is written in a moment; if not, that is no reason not to ask for the next line.
const WRITTEN_WITHIN: Duration = Duration::from_secs(2);

/// A conversation.
struct Talk {
    runtime: Runtime,
    session: Session,
    /// Sees what happens for as long as the conversation lasts; lent to the turn that runs.
    watcher: Option<Watcher>,
    lines: Lines,
    teller: Teller,
    ends: Ends,
    terminal: Terminal,
    board: Board,
    config: Config,
    /// The session is gone through for memory, because somebody asked for it during a turn.
    remembering: Option<GoingThrough>,
    /// Questions that nobody has answered.
    questions: Vec<OpenQuestion>,
    /// A signal that suspends, and that came while something else than a line was waited for.
    suspended: Option<u8>,
    /// What the last turn that did not complete would make a script end with.
    code: u8,
}

/// What comes after something that was entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The next line.
    Line,
    Leave,
    /// A signal came that suspends.
    Suspend(u8),
}

pub(crate) async fn run(place: &Place, choice: &Choice, options: &TalkOptions) -> anyhow::Result<u8> {
    let terminal = Terminal::remember();
    let mut ends = Ends::new()?;
    // Where nobody types, nobody can end a wait either.
    let patience = if std::io::stdin().is_terminal() { Patience::Attended } else { Patience::OneShot };
    let config = config::with_model(place, choice, patience).await?;
    let base = key_of(&config.work_dir);
    let home = config.home.clone();
    let runtime = tokio::select! {
        opened = Runtime::open(config.clone()) => opened?,
        number = ends.next() => return Ok(exit::SIGNAL + number),
    };
    let key = if options.new { place::free_key(&*runtime.journal(), base).await? } else { base };
    refuse_trashed(&*runtime.journal(), &key).await?;
    let session = runtime.session(&key).await?;
    let mut lines = Lines::new(&home, options, runtime.redactor());
    let teller = Teller::new(Form::of_conversation()).in_detail(choice.verbose);
    if let Some(above) = lines.above() {
        teller.show_above(above);
    }
    let mut talk = Talk {
        config: with_real_home(place, config)?,
        remembering: None,
        watcher: Some(session.watch()),
        board: Board::new(runtime.journal(), &home)?,
        questions: Vec::new(),
        suspended: None,
        lines,
        runtime,
        session,
        teller,
        ends,
        terminal,
        code: exit::DONE,
    };
    let next = talk.converse(options).await;
    talk.leave(next).await
}

impl Talk {
    async fn converse(&mut self, options: &TalkOptions) -> anyhow::Result<Next> {
        let mut next = self.begin(options).await?;
        while next == Next::Line {
            next = match self.typed().await {
                Ok(line) => self.entered(&line).await?,
                Err(next) => next,
            };
        }
        Ok(next)
    }

    /// The next line; or why there is none. What happens meanwhile, because a task has ended, is shown.
    async fn typed(&mut self) -> Result<String, Next> {
        let typed = loop {
            if let Some(number) = self.suspended.take() {
                break Err(Next::Suspend(number));
            }
            self.show_prompt().await;
            let Self { lines, ends, watcher, session, remembering, .. } = self;
            let watcher = watcher.get_or_insert_with(|| session.watch());
            let watched = tokio::select! {
                biased;
                number = ends.next() => break Err(by_signal(number)),
                typed = lines.next() => break line_of(typed),
                Some(watched) = watcher.next() => watched,
                done = gone_through(remembering) => {
                    self.say_gone_through(done);
                    continue;
                }
            };
            self.see(&watched);
        };
        self.teller.prompt_is_over();
        typed
    }

    /// Shows that a line can be typed, after everything that was printed.
    async fn show_prompt(&mut self) {
        match &self.lines {
            Lines::Edited(..) => {
                let _ = tokio::time::timeout(WRITTEN_WITHIN, self.teller.written()).await;
                self.teller.edited_prompt();
            }
            Lines::Plain(_) if !self.teller.prompt_stands() => {
                self.teller.close_line();
                self.teller.written().await;
                self.lines.show_prompt();
                self.teller.plain_prompt();
            }
            Lines::Plain(_) | Lines::Piped(_) => {}
        }
    }

    /// Says which session this is, and what of it is open.
    async fn begin(&mut self, options: &TalkOptions) -> anyhow::Result<Next> {
        let state = self.session.state().await?;
        let so_far = if state.turns == 0 {
            "new".to_owned()
        } else {
            format!("{} so far", count(state.turns, "turn"))
        };
        let (model, _) = self.runtime.model().await;
        self.teller.note(format!("session {} ({so_far}), with {model}", self.session.key()));
        if self.lines.are_typed() {
            self.teller.note("/help lists the commands; Ctrl-C ends a turn, and at the prompt it leaves");
        }
        let runtime = self.runtime.clone();
        tokio::spawn(async move { runtime.tidy().await });
        if let Some(why) = self.runtime.not_enforced().await {
            self.teller.note(crate::words::not_enforced(&why));
        }
        self.runtime.start_idle().await?;
        self.look_for_questions().await?;
        if !self.session.is_unfinished().await? {
            self.look_after_tasks(&state.tasks).await;
            return Ok(Next::Line);
        }
        if options.resume {
            return self.turn(Wish::Resume).await;
        }
        let open = match &state.turn {
            Some(turn) => format!("Turn {} was interrupted ({})", turn.number, state.under_way()),
            None => "An input waits for its answer".to_owned(),
        };
        if let Some(id) = self.session.id()
            && let Some(holder) = status::holder(&*self.runtime.journal(), id).await?
        {
            self.teller.note(format!("a turn is run by {holder} just now; what you say joins it"));
            return Ok(Next::Line);
        }
        match (self.lines.are_typed(), self.questions.is_empty()) {
            (true, true) => self.ask_about(&open).await,
            // What is open is what was asked: a second question would take its answer.
            (true, false) => self.turn(Wish::Resume).await,
            (false, _) => self.join_or_leave(&open).await,
        }
    }

    /// T12: whoever is at the terminal decides.
    async fn ask_about(&mut self, open: &str) -> anyhow::Result<Next> {
        loop {
            let question = format!("{open}. Go on with it? [Y/n] ");
            let Self { teller, lines, ends, .. } = self;
            let typed = async {
                teller.written().await;
                lines.ask(&question).await
            };
            let answer = tokio::select! {
                biased;
                number = ends.next() => Err(by_signal(number)),
                typed = typed => line_of(typed),
            };
            let answer = match answer {
                Ok(answer) => answer,
                Err(next) => {
                    self.teller.aside("");
                    self.teller
                        .note(format!("it stays open; to go on: longhaul resume {}", self.session.key()));
                    return Ok(next);
                }
            };
            match answer.trim().to_lowercase().as_str() {
                "" | "y" | "yes" => return self.turn(Wish::Resume).await,
                "n" | "no" => return self.discard().await,
                _ => self.teller.note("y goes on with it, n ends it as cancelled, Ctrl-C leaves it open"),
            }
        }
    }

    /// Ends what is open. The order is there before anybody goes on with the turn, so nothing of it is done any more.
    async fn discard(&mut self) -> anyhow::Result<Next> {
        if let Some(id) = self.session.id() {
            let order = Order { id: OrderId::generate(), kind: OrderKind::Cancel };
            put(&*self.runtime.journal(), id, InboxRecord::Order(order).encode()).await?;
        }
        let next = self.turn(Wish::Resume).await;
        self.code = exit::DONE;
        next
    }

    /// Where nobody can be asked, what is entered joins what is open.
    async fn join_or_leave(&mut self, open: &str) -> anyhow::Result<Next> {
        let key = self.session.key().to_owned();
        match self.typed().await {
            Ok(line) => {
                self.teller.note(format!("{open}; what is entered joins it"));
                self.entered(&line).await
            }
            Err(Next::Leave) if !self.questions.is_empty() => Ok(self.leave_asked()),
            Err(Next::Leave) => {
                self.teller.note(format!("{open}; to go on: longhaul resume {key}"));
                self.code = exit::BAD_USAGE;
                Ok(Next::Leave)
            }
            Err(next) => Ok(next),
        }
    }

    async fn entered(&mut self, line: &str) -> anyhow::Result<Next> {
        let entry = read(line);
        if let Entry::Command(..) = entry {
            self.session.touch();
        }
        match entry {
            Entry::Nothing => Ok(Next::Line),
            Entry::Say(text) => {
                let open = self.questions.len();
                match self.takes_for_answer(&text).await {
                    true => self.go_on_if_answered(open).await,
                    false => self.turn(Wish::Say(text)).await,
                }
            }
            Entry::Mistake(words) => {
                self.teller.note(words);
                Ok(Next::Line)
            }
            Entry::Command(row, arguments) => match row.action {
                Action::Retry => self.turn(Wish::Retry).await,
                Action::Continue => self.turn(Wish::Continue).await,
                Action::Exit => Ok(Next::Leave),
                Action::Cancel => {
                    let ended = self.session.cancel().await?;
                    self.teller.note(if ended.is_some() {
                        "the turn is cancelled"
                    } else {
                        "no turn is running"
                    });
                    Ok(Next::Line)
                }
                Action::Answer => {
                    let open = self.questions.len();
                    self.answer_command(&arguments).await;
                    self.go_on_if_answered(open).await
                }
                Action::Tasks => {
                    self.tasks_command(&arguments, Moment::BetweenTurns).await?;
                    Ok(Next::Line)
                }
                Action::Memory => {
                    self.memory_command(&arguments).await;
                    Ok(Next::Line)
                }
                Action::Remember => {
                    self.remember_command(&arguments, Moment::BetweenTurns).await;
                    Ok(Next::Line)
                }
                // C12: what is open does not go on because of this.
                Action::Compact if !self.session.is_unfinished().await? => {
                    self.turn(Wish::Compact(focus_of(&arguments))).await
                }
                Action::Help | Action::Status | Action::Context | Action::Compact | Action::Model => {
                    self.answer(row.action, &arguments).await?;
                    Ok(Next::Line)
                }
            },
        }
    }

    /// Where so many questions were open before somebody answered, what was waited for goes on.
    async fn go_on_if_answered(&mut self, open: usize) -> anyhow::Result<Next> {
        if self.questions.len() < open { self.turn(Wish::Resume).await } else { Ok(Next::Line) }
    }

    /// The one end of every conversation.
    async fn leave(mut self, next: anyhow::Result<Next>) -> anyhow::Result<u8> {
        self.terminal.restore();
        let is_unfinished = self.session.is_unfinished().await.unwrap_or(true);
        self.say_what_goes_on().await;
        tokio::select! {
            ended = self.runtime.shutdown() => ended?,
            // Whoever asks twice means it. What is on disk is on disk.
            number = self.ends.next() => std::process::exit(i32::from(exit::SIGNAL + number)),
        }
        let code = match next? {
            Next::Line | Next::Leave => {
                if self.session.id().is_some() {
                    let key = self.session.key();
                    self.teller.note(format!("saved; to go on: longhaul run -s {key} …"));
                }
                self.code
            }
            Next::Suspend(number) => {
                self.teller.aside("");
                let key = self.session.key();
                self.teller.note(match is_unfinished {
                    true => format!("suspended; to go on: longhaul resume {key}"),
                    false => format!("{key} is saved; longhaul in this folder goes on with it"),
                });
                exit::SIGNAL + number
            }
        };
        Ok(self.teller.finish(&mut self.ends, code).await.map_or_else(|number| number, |_| code))
    }
}

/// At the prompt Ctrl-C leaves; the other signals suspend.
fn by_signal(number: u8) -> Next {
    if number == INTERRUPT { Next::Leave } else { Next::Suspend(number) }
}

fn line_of(typed: Typed) -> Result<String, Next> {
    match typed {
        Typed::Line(line) => Ok(line),
        Typed::End | Typed::Interrupt => Err(Next::Leave),
        // As if the signal had come that comes with it.
        Typed::Lost => Err(Next::Suspend(1)),
    }
}
