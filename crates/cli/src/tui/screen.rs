//! The thread that shows the view and reads keys. Nothing else has to wait for a terminal, and a key waits for nothing else.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyEventKind};
use longhaul_agent::Watched;
use longhaul_protocol::EventKind;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, getpid, kill_process};
use tokio::sync::{mpsc, oneshot};

use super::picker::PickerItem;
use super::sgr::Colours;
use super::status_line::StatusFacts;
use super::view::{Activity, TaskPill, View, ViewRequest};
use super::viewport::{Viewport, believable};
use crate::questions::OpenQuestion;
use crate::tui::chat::LineEvent;

/// How long what happens may wait until it is seen. Keys don't.
const FRAME_INTERVAL: Duration = Duration::from_millis(16);
/// How often what moves by itself is drawn.
const TICK_INTERVAL: Duration = Duration::from_millis(125);
/// How long it takes at most until all threads of a process that is stopped stand still.
const STOP_DELAY: Duration = Duration::from_millis(250);
/// How long a terminal may take to take what gives it back. One that takes nothing must not hold up an end.
const RESTORE_TIMEOUT: Duration = Duration::from_millis(150);
/// So much is taken in before it is shown, however much there is.
const MAX_BATCH: usize = 64;
/// So many bytes of words wait together, roughly.
const MAX_DELTA_BYTES: usize = 512;

/// Pasted text is marked, and so can't press keys.
const ENTER: &str = "\x1b[?2004h";
const LEAVE: &str = "\x1b[?2026l\x1b[?2004l\x1b[?25h\x1b[0m";
const ENTER_DETAILS: &str = "\x1b[?1049h\x1b[H\x1b[J";
const LEAVE_DETAILS: &str = "\x1b[?1049l";

/// Whether the terminal is ours, and whether its other page is.
static IS_OURS: AtomicBool = AtomicBool::new(false);
static SHOWS_DETAILS: AtomicBool = AtomicBool::new(false);
/// Held by whoever writes to the terminal: what gives it back must not stand in the middle of a frame.
static WRITING: Mutex<()> = Mutex::new(());

fn writing() -> MutexGuard<'static, ()> {
    WRITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the screen is told.
pub(crate) enum ScreenUpdate {
    Watched(Watched),
    /// A line from the program itself.
    Note(String),
    /// A line beside the answer.
    Aside(String),
    /// What was asked for, as it is.
    Printed(String),
    /// What somebody said elsewhere.
    Entered(String),
    StatusFacts(StatusFacts),
    Activity(Activity),
    Pills(Vec<TaskPill>),
    /// Which questions nobody has answered.
    Questions(Vec<OpenQuestion>),
    /// What stands in place of the prompt until a line is entered.
    Ask(Option<String>),
    /// One of these is to be chosen.
    Pick {
        title: String,
        choices: Vec<PickerItem>,
        answer: oneshot::Sender<Option<usize>>,
    },
    /// Another session is shown from here on.
    TurnOver,
    /// The turn that is open is run by nobody: nothing of it moves.
    Interrupted,
    /// It is over.
    End(oneshot::Sender<()>),
}

/// What comes to the thread.
enum ScreenInput {
    ScreenUpdate(ScreenUpdate),
    Words(PendingDelta),
    Event(Event),
    Lost,
}

/// Words that nobody has taken in yet; more may be added to them until then.
type PendingDelta = Arc<Mutex<Option<Watched>>>;

/// Tells the screen, from wherever.
#[derive(Clone)]
pub(crate) struct ScreenHandle {
    send: Sender<ScreenInput>,
    /// What was told last, if that was words.
    last: Arc<Mutex<Option<PendingDelta>>>,
}

impl ScreenHandle {
    fn new(send: Sender<ScreenInput>) -> Self {
        Self { send, last: Arc::default() }
    }

    /// Words come faster than they are shown, and each would wait in an event of its own: they wait in one.
    pub(crate) fn tell(&self, tell: ScreenUpdate) {
        let mut last = locked(&self.last);
        let incoming = match tell {
            ScreenUpdate::Watched(watched) if words_of(&watched).is_some() => {
                if last.as_ref().is_some_and(|growing| grows(growing, &watched)) {
                    return;
                }
                let growing = PendingDelta::new(Mutex::new(Some(watched)));
                *last = Some(growing.clone());
                ScreenInput::Words(growing)
            }
            tell => {
                *last = None;
                ScreenInput::ScreenUpdate(tell)
            }
        };
        // Whoever shows nothing any more has no need to know.
        let _ = self.send.send(incoming);
    }

    /// Waits until the terminal is as it was.
    pub(crate) async fn end(&self) {
        let (mark, reached) = oneshot::channel();
        self.tell(ScreenUpdate::End(mark));
        let _ = reached.await;
    }
}

fn words_of(watched: &Watched) -> Option<&EventKind> {
    let Watched::Event(event) = watched else { return None };
    matches!(event.kind, EventKind::TextDelta { .. } | EventKind::ReasoningDelta { .. })
        .then_some(&event.kind)
}

/// Adds words to those that wait, if they are of the same kind and not too many.
fn grows(growing: &PendingDelta, more: &Watched) -> bool {
    let mut waiting = locked(growing);
    let Some(Watched::Event(waiting)) = &mut *waiting else { return false };
    match (&mut waiting.kind, words_of(more)) {
        (EventKind::TextDelta { text }, Some(EventKind::TextDelta { text: more }))
        | (EventKind::ReasoningDelta { text }, Some(EventKind::ReasoningDelta { text: more }))
            if text.len() < MAX_DELTA_BYTES =>
        {
            text.push_str(more);
            true
        }
        _ => false,
    }
}

/// What another thread left half done is only text.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The screen, as the conversation has it.
pub(crate) struct Screen {
    telling: ScreenHandle,
    typed: mpsc::UnboundedReceiver<LineEvent>,
}

impl Screen {
    /// Takes the terminal.
    pub(crate) fn start(make_view: impl FnOnce((u16, u16)) -> View) -> io::Result<Self> {
        let size = believable(crossterm::terminal::size().unwrap_or((0, 0)));
        let view = make_view(size);
        crossterm::terminal::enable_raw_mode()?;
        IS_OURS.store(true, Ordering::SeqCst);
        let (tell, incoming) = channel();
        let (tell_typed, typed) = mpsc::unbounded_channel();
        read_keys(tell.clone());
        watch_for_loss(tell.clone());
        let viewport = Viewport::new(io::stdout(), size, Colours::wanted());
        let _: JoinHandle<()> = std::thread::spawn(move || {
            ScreenThread { viewport, other: None, view, tell_typed }.run(&incoming)
        });
        Ok(Self { telling: ScreenHandle::new(tell), typed })
    }

    pub(crate) fn telling(&self) -> ScreenHandle {
        self.telling.clone()
    }

    /// What is typed next. Giving up on it loses nothing.
    pub(crate) async fn next(&mut self) -> LineEvent {
        self.typed.recv().await.unwrap_or(LineEvent::Lost)
    }
}

/// Gives the terminal back as far as escape sequences do, wherever the process is just now; its modes are somebody else's. From
/// here on nothing is drawn.
pub(crate) fn let_go() {
    if !IS_OURS.swap(false, Ordering::SeqCst) {
        return;
    }
    let details = if SHOWS_DETAILS.swap(false, Ordering::SeqCst) { LEAVE_DETAILS } else { "" };
    let (tell, written) = channel();
    let write = move || {
        let _writing = writing();
        let mut out = io::stdout();
        let _ = out.write_all(format!("{details}{LEAVE}\r\n").as_bytes()).and_then(|()| out.flush());
        let _ = tell.send(());
    };
    if std::thread::Builder::new().spawn(write).is_ok() {
        let _ = written.recv_timeout(RESTORE_TIMEOUT);
    }
}

/// Reads keys, for as long as there is a terminal.
fn read_keys(tell: Sender<ScreenInput>) {
    std::thread::spawn(move || {
        loop {
            let incoming = match crossterm::event::read() {
                Ok(event) => ScreenInput::Event(event),
                Err(_) => ScreenInput::Lost,
            };
            let is_lost = matches!(incoming, ScreenInput::Lost);
            if tell.send(incoming).is_err() || is_lost {
                return;
            }
        }
    });
}

/// A terminal that goes away is told of by nobody who reads keys.
fn watch_for_loss(tell: Sender<ScreenInput>) {
    std::thread::spawn(move || {
        let stdin = rustix::stdio::stdin();
        loop {
            let mut waiting = [PollFd::new(&stdin, PollFlags::empty())];
            match poll(&mut waiting, None) {
                Ok(1..) => break,
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
        }
        let _ = tell.send(ScreenInput::Lost);
    });
}

/// What comes after something was taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Redraw {
    /// It is shown with the next frame.
    Frame,
    /// Somebody pressed a key, and looks.
    Now,
}

struct ScreenThread<W> {
    viewport: Viewport<W>,
    /// The other page of the terminal, while details are looked at.
    other: Option<Viewport<io::Stdout>>,
    view: View,
    tell_typed: mpsc::UnboundedSender<LineEvent>,
}

impl<W: Write> ScreenThread<W> {
    fn run(mut self, incoming: &Receiver<ScreenInput>) {
        if self.enter().is_err() || self.show().is_err() {
            return self.lost();
        }
        let mut shown = Instant::now();
        // Something happened that is not seen yet.
        let mut is_due = false;
        while IS_OURS.load(Ordering::SeqCst) {
            let wait = match (is_due, self.view.moves()) {
                (true, _) => Some(FRAME_INTERVAL.saturating_sub(shown.elapsed())),
                (false, true) => Some(TICK_INTERVAL.saturating_sub(shown.elapsed())),
                (false, false) => None,
            };
            let first = match wait {
                Some(wait) => incoming.recv_timeout(wait),
                None => incoming.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let mut soon = Redraw::Frame;
            match first {
                Ok(first) => {
                    let more = std::iter::from_fn(|| incoming.try_recv().ok()).take(MAX_BATCH);
                    for incoming in std::iter::once(first).chain(more) {
                        match self.take(incoming) {
                            Ok(Some(pressed)) => soon = pressed,
                            Ok(None) => {}
                            Err(_) => return self.lost(),
                        }
                        if !IS_OURS.load(Ordering::SeqCst) {
                            return;
                        }
                    }
                    is_due = true;
                }
                Err(RecvTimeoutError::Timeout) => is_due = true,
                Err(RecvTimeoutError::Disconnected) => return drop(self.leave()),
            }
            if is_due && (soon == Redraw::Now || shown.elapsed() >= FRAME_INTERVAL) {
                if self.show().is_err() {
                    return self.lost();
                }
                (shown, is_due) = (Instant::now(), false);
            }
        }
    }

    /// Nobody can see anything any more.
    fn lost(&self) {
        let _ = self.tell_typed.send(LineEvent::Lost);
    }

    fn take(&mut self, incoming: ScreenInput) -> io::Result<Option<Redraw>> {
        match incoming {
            ScreenInput::ScreenUpdate(tell) => self.told(tell)?,
            ScreenInput::Words(growing) => {
                // From here on nobody adds to them.
                let words = locked(&growing).take();
                words.into_iter().for_each(|watched| self.view.see(&watched, Instant::now()));
            }
            ScreenInput::Event(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                match self.view.press(key) {
                    ViewRequest::Nothing => {}
                    ViewRequest::Line(typed) => drop(self.tell_typed.send(typed)),
                    ViewRequest::Stop => self.stop()?,
                    ViewRequest::Redraw => self.viewport.forget(),
                }
                return Ok(Some(Redraw::Now));
            }
            ScreenInput::Event(Event::Paste(text)) => {
                self.view.paste(&text);
                return Ok(Some(Redraw::Now));
            }
            ScreenInput::Event(Event::Resize(width, height)) => {
                self.viewport.resize((width, height))?;
                if let Some(other) = &mut self.other {
                    other.resize((width, height))?;
                }
                self.view.resize(self.viewport.size());
            }
            ScreenInput::Event(_) => {}
            ScreenInput::Lost => {
                self.view.give_up_picking();
                self.lost();
            }
        }
        Ok(None)
    }

    fn told(&mut self, tell: ScreenUpdate) -> io::Result<()> {
        match tell {
            ScreenUpdate::Watched(watched) => self.view.see(&watched, Instant::now()),
            ScreenUpdate::Note(text) => self.view.note(&text),
            ScreenUpdate::Aside(text) => self.view.aside(&text),
            ScreenUpdate::Printed(text) => self.view.printed(&text),
            ScreenUpdate::Entered(text) => self.view.entered(&text),
            ScreenUpdate::StatusFacts(facts) => self.view.set_facts(facts),
            ScreenUpdate::Activity(activity) => self.view.set_activity(activity),
            ScreenUpdate::Pills(pills) => self.view.set_pills(pills),
            ScreenUpdate::Questions(open) => self.view.set_questions(open),
            ScreenUpdate::Ask(question) => self.view.ask(question),
            ScreenUpdate::Pick { title, choices, answer } => self.view.pick(&title, choices, answer),
            ScreenUpdate::TurnOver => self.view.turn_over(),
            ScreenUpdate::Interrupted => self.view.turn_interrupted(),
            ScreenUpdate::End(mark) => {
                self.view.keep_typed();
                self.leave()?;
                let _ = mark.send(());
            }
        }
        Ok(())
    }

    fn enter(&mut self) -> io::Result<()> {
        let _writing = writing();
        if IS_OURS.load(Ordering::SeqCst) { self.viewport.write(ENTER) } else { Ok(()) }
    }

    fn show(&mut self) -> io::Result<()> {
        let _writing = writing();
        if !IS_OURS.load(Ordering::SeqCst) {
            return Ok(());
        }
        match (self.view.shows_details(), &mut self.other) {
            (true, None) => {
                SHOWS_DETAILS.store(true, Ordering::SeqCst);
                let mut other = Viewport::new(io::stdout(), self.viewport.size(), Colours::wanted());
                other.write(ENTER_DETAILS)?;
                self.other = Some(other);
            }
            (false, Some(other)) => {
                other.write(LEAVE_DETAILS)?;
                SHOWS_DETAILS.store(false, Ordering::SeqCst);
                self.other = None;
                self.viewport.forget();
            }
            _ => {}
        }
        let frame = self.view.frame(Instant::now());
        match &mut self.other {
            Some(other) => other.show(&frame),
            None => self.viewport.show(&frame),
        }
    }

    /// Shows what is left, and takes the viewport away.
    fn leave(&mut self) -> io::Result<()> {
        let _writing = writing();
        if !IS_OURS.swap(false, Ordering::SeqCst) {
            return Ok(());
        }
        if SHOWS_DETAILS.swap(false, Ordering::SeqCst) {
            self.viewport.write(LEAVE_DETAILS)?;
            self.other = None;
            self.view.close_details();
        }
        let frame = self.view.frame(Instant::now());
        self.viewport.show(&frame)?;
        self.viewport.clear()?;
        self.viewport.write(LEAVE)
    }

    /// Ctrl-Z: the terminal is somebody else's until the process is brought back.
    fn stop(&mut self) -> io::Result<()> {
        {
            let _writing = writing();
            self.viewport.clear()?;
            self.viewport.write(LEAVE)?;
        }
        let _ = crossterm::terminal::disable_raw_mode();
        let _ = kill_process(getpid(), Signal::TSTP);
        // Another thread may get the signal, and this one would take the terminal again before it stands still.
        std::thread::sleep(STOP_DELAY);
        if !IS_OURS.load(Ordering::SeqCst) {
            return Ok(());
        }
        crossterm::terminal::enable_raw_mode()?;
        self.viewport.begin_anew();
        let size = crossterm::terminal::size().unwrap_or((0, 0));
        self.viewport.resize(size)?;
        self.view.resize(self.viewport.size());
        self.enter()
    }
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
