//! The screen thread: draws the view and handles keys, so that neither waits for the rest of the program.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};
use longhaul_agent::Watched;
use longhaul_protocol::EventKind;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, getpid, kill_process};
use tokio::sync::{mpsc, oneshot};

use super::editor::edit_text;
use super::notifier::Notifier;
use super::screen_update::ScreenUpdate;
use super::sgr::Colours;
use super::view::{View, ViewRequest};
use super::viewport::{Viewport, plausible_size};
use crate::tui::chat::LineEvent;

/// The shortest time between two frames. A key press is drawn at once, and so is the past of a session that was opened.
const FRAME_INTERVAL: Duration = Duration::from_millis(16);
/// The time between two frames of an animation.
const TICK_INTERVAL: Duration = Duration::from_millis(125);
/// How long the screen thread waits after SIGTSTP before it touches the terminal again. Other threads may get the signal first.
const STOP_DELAY: Duration = Duration::from_millis(250);
/// How long the restoring escape sequences may take to write: a terminal that is stopped takes nothing.
const RESTORE_TIMEOUT: Duration = Duration::from_millis(150);
/// Inputs handled before the next frame.
const MAX_BATCH: usize = 64;
/// Bytes of deltas that are merged into one update.
const MAX_DELTA_BYTES: usize = 512;

/// Bracketed paste: pasted text must not act as keys. Focus: a user who looks elsewhere is told when a turn ends.
const ENTER: &str = "\x1b[?2004h\x1b[?1004h";
const LEAVE: &str = "\x1b[?2026l\x1b[?1004l\x1b[?2004l\x1b[?25h\x1b[0m";
const ENTER_DETAILS: &str = "\x1b[?1049h\x1b[H\x1b[J";
const LEAVE_DETAILS: &str = "\x1b[?1049l";

/// Whether the screen owns the terminal, and whether it shows the alternate screen.
static OWNS_TERMINAL: AtomicBool = AtomicBool::new(false);
static SHOWS_DETAILS: AtomicBool = AtomicBool::new(false);
/// The screen ends, and with it an editor that has the terminal.
static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// Held while writing to the terminal: the restoring sequences must not end up inside a frame.
static WRITE_LOCK: Mutex<()> = Mutex::new(());

fn lock_output() -> MutexGuard<'static, ()> {
    WRITE_LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An input of the screen thread.
enum ScreenInput {
    Update(ScreenUpdate),
    Delta(PendingDelta),
    Event(Event),
    /// A key that may open the editor, which then reads the terminal. The sender reads on when this is dropped.
    EditKey(Event, Sender<()>),
    Lost,
    /// Restore the terminal and confirm.
    End(oneshot::Sender<()>),
}

/// A delta in the queue. Later deltas are appended until the thread takes it.
type PendingDelta = Arc<Mutex<Option<Watched>>>;

/// Sends messages to the screen, from any thread.
#[derive(Clone)]
pub(crate) struct ScreenHandle {
    sender: Sender<ScreenInput>,
    /// The last message, if it was a delta.
    last: Arc<Mutex<Option<PendingDelta>>>,
}

impl ScreenHandle {
    fn new(sender: Sender<ScreenInput>) -> Self {
        Self { sender, last: Arc::default() }
    }

    /// Deltas come faster than frames, so consecutive ones are merged in the queue.
    pub(crate) fn send(&self, update: ScreenUpdate) {
        let mut last = lock(&self.last);
        let input = match update {
            ScreenUpdate::Watched(watched) if delta_of(&watched).is_some() => {
                if last.as_ref().is_some_and(|growing| append_delta(growing, &watched)) {
                    return;
                }
                let growing = PendingDelta::new(Mutex::new(Some(watched)));
                *last = Some(growing.clone());
                ScreenInput::Delta(growing)
            }
            update => {
                *last = None;
                ScreenInput::Update(update)
            }
        };
        // After the screen has ended, messages go nowhere.
        let _ = self.sender.send(input);
    }

    /// Ends the screen and waits until the terminal is restored.
    pub(crate) async fn end(&self) {
        let (mark, reached) = oneshot::channel();
        IS_ENDING.store(true, Ordering::SeqCst);
        let _ = self.sender.send(ScreenInput::End(mark));
        let _ = reached.await;
    }
}

fn delta_of(watched: &Watched) -> Option<&EventKind> {
    let Watched::Event(event) = watched else { return None };
    matches!(event.kind, EventKind::TextDelta { .. } | EventKind::ReasoningDelta { .. })
        .then_some(&event.kind)
}

/// Appends a delta to a waiting one of the same kind. False if that is taken or full.
fn append_delta(pending: &PendingDelta, more: &Watched) -> bool {
    let mut waiting = lock(pending);
    let Some(Watched::Event(waiting)) = &mut *waiting else { return false };
    match (&mut waiting.kind, delta_of(more)) {
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

/// Locks a mutex. A poisoned one holds text only, which stays usable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The chat's side of the screen.
pub(crate) struct Screen {
    handle: ScreenHandle,
    lines: mpsc::UnboundedReceiver<LineEvent>,
}

impl Screen {
    /// Takes the terminal and starts the threads.
    pub(crate) fn start(notifier: Notifier, make_view: impl FnOnce((u16, u16)) -> View) -> io::Result<Self> {
        let size = plausible_size(crossterm::terminal::size().unwrap_or((0, 0)));
        let view = make_view(size);
        crossterm::terminal::enable_raw_mode()?;
        OWNS_TERMINAL.store(true, Ordering::SeqCst);
        let (sender, inputs) = channel();
        let (line_sender, lines) = mpsc::unbounded_channel();
        read_keys(sender.clone());
        watch_for_hangup(sender.clone());
        let viewport = Viewport::new(io::stdout(), size, Colours::from_environment());
        let _: JoinHandle<()> = std::thread::spawn(move || {
            ScreenThread { viewport, details: None, view, line_sender, notifier }.run(&inputs);
        });
        Ok(Self { handle: ScreenHandle::new(sender), lines })
    }

    pub(crate) fn handle(&self) -> ScreenHandle {
        self.handle.clone()
    }

    /// The next line or key. Cancel safe.
    pub(crate) async fn next(&mut self) -> LineEvent {
        self.lines.recv().await.unwrap_or(LineEvent::Lost)
    }
}

/// Restores the terminal by escape sequences, from any thread; the caller restores its modes. Nothing is drawn afterwards.
pub(crate) fn release_terminal() {
    if !OWNS_TERMINAL.swap(false, Ordering::SeqCst) {
        return;
    }
    let details = if SHOWS_DETAILS.swap(false, Ordering::SeqCst) { LEAVE_DETAILS } else { "" };
    let (done, written) = channel();
    let write = move || {
        let _output = lock_output();
        let mut out = io::stdout();
        let _ = out.write_all(format!("{details}{LEAVE}\r\n").as_bytes()).and_then(|()| out.flush());
        let _ = done.send(());
    };
    if std::thread::Builder::new().spawn(write).is_ok() {
        let _ = written.recv_timeout(RESTORE_TIMEOUT);
    }
}

/// Reads terminal events until the terminal is gone.
fn read_keys(sender: Sender<ScreenInput>) {
    std::thread::spawn(move || {
        loop {
            let (handled, until_handled) = channel();
            let input = match crossterm::event::read() {
                Ok(event) if is_edit_key(&event) => ScreenInput::EditKey(event, handled),
                Ok(event) => ScreenInput::Event(event),
                Err(_) => ScreenInput::Lost,
            };
            let is_lost = matches!(input, ScreenInput::Lost);
            let opens_editor = matches!(input, ScreenInput::EditKey(..));
            if sender.send(input).is_err() || is_lost {
                return;
            }
            if opens_editor {
                // Until the sender is dropped.
                let _ = until_handled.recv();
            }
        }
    });
}

fn is_edit_key(event: &Event) -> bool {
    matches!(event, Event::Key(key) if key.code == KeyCode::Char('g') && key.modifiers == KeyModifiers::CONTROL)
}

/// Reports a terminal that hangs up: reading keys does not notice it.
fn watch_for_hangup(sender: Sender<ScreenInput>) {
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
        let _ = sender.send(ScreenInput::Lost);
    });
}

/// When the next frame is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Redraw {
    /// After the frame interval.
    Later,
    /// At once.
    Now,
}

struct ScreenThread<W> {
    viewport: Viewport<W>,
    /// The alternate screen, while the detail view is open.
    details: Option<Viewport<io::Stdout>>,
    view: View,
    line_sender: mpsc::UnboundedSender<LineEvent>,
    notifier: Notifier,
}

impl<W: Write> ScreenThread<W> {
    fn run(mut self, inputs: &Receiver<ScreenInput>) {
        if self.enter().is_err() || self.show().is_err() {
            return self.report_lost();
        }
        let mut shown = Instant::now();
        // Something changed since the last frame.
        let mut is_due = false;
        while OWNS_TERMINAL.load(Ordering::SeqCst) {
            let wait = match (is_due, self.view.is_animated()) {
                (true, _) => Some(FRAME_INTERVAL.saturating_sub(shown.elapsed())),
                (false, true) => Some(TICK_INTERVAL.saturating_sub(shown.elapsed())),
                (false, false) => None,
            };
            let first = match wait {
                Some(wait) => inputs.recv_timeout(wait),
                None => inputs.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let mut redraw = Redraw::Later;
            match first {
                Ok(first) => {
                    let more = std::iter::from_fn(|| inputs.try_recv().ok()).take(MAX_BATCH);
                    for input in std::iter::once(first).chain(more) {
                        match self.handle_input(input) {
                            Ok(Some(pressed)) => redraw = pressed,
                            Ok(None) => {}
                            Err(_) => return self.report_lost(),
                        }
                        if !OWNS_TERMINAL.load(Ordering::SeqCst) {
                            return;
                        }
                    }
                    is_due = true;
                }
                Err(RecvTimeoutError::Timeout) => is_due = true,
                Err(RecvTimeoutError::Disconnected) => return drop(self.leave()),
            }
            if let Some(answer) = self.view.take_due_answer(Instant::now()) {
                let _ = self.line_sender.send(answer);
                redraw = Redraw::Now;
            }
            if is_due && (redraw == Redraw::Now || shown.elapsed() >= FRAME_INTERVAL) {
                if self.show().is_err() {
                    return self.report_lost();
                }
                (shown, is_due) = (Instant::now(), false);
            }
        }
    }

    /// Tells the chat that the terminal is gone.
    fn report_lost(&self) {
        let _ = self.line_sender.send(LineEvent::Lost);
    }

    fn handle_input(&mut self, input: ScreenInput) -> io::Result<Option<Redraw>> {
        match input {
            ScreenInput::Update(update) => {
                self.notify_of(&update)?;
                // The user looks for the end of the conversation when the session opens.
                let redraw = matches!(update, ScreenUpdate::Past(_)).then_some(Redraw::Now);
                self.view.update(update, Instant::now());
                return Ok(redraw);
            }
            ScreenInput::Delta(pending) => {
                // Once taken, nothing is appended to it.
                let delta = lock(&pending).take();
                delta.into_iter().for_each(|watched| self.view.show_event(&watched, Instant::now()));
            }
            ScreenInput::Event(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                match self.view.press(key) {
                    ViewRequest::Nothing => {}
                    ViewRequest::Line(line) => drop(self.line_sender.send(line)),
                    ViewRequest::Stop => self.stop()?,
                    ViewRequest::Edit => self.edit()?,
                    ViewRequest::Redraw => self.viewport.invalidate(),
                }
                return Ok(Some(Redraw::Now));
            }
            ScreenInput::Event(Event::Paste(text)) => {
                self.view.paste(&text);
                return Ok(Some(Redraw::Now));
            }
            ScreenInput::Event(Event::Resize(width, height)) => {
                self.viewport.resize((width, height))?;
                if let Some(details) = &mut self.details {
                    details.resize((width, height))?;
                }
                self.view.resize(self.viewport.size());
            }
            ScreenInput::Event(Event::FocusGained) => self.notifier.set_focused(true),
            ScreenInput::Event(Event::FocusLost) => self.notifier.set_focused(false),
            ScreenInput::Event(_) => {}
            ScreenInput::EditKey(event, handled) => {
                let redraw = self.handle_input(ScreenInput::Event(event));
                drop(handled);
                return redraw;
            }
            ScreenInput::Lost => {
                self.view.close_picker();
                self.report_lost();
            }
            ScreenInput::End(mark) => {
                self.view.keep_input();
                self.leave()?;
                let _ = mark.send(());
            }
        }
        Ok(None)
    }

    fn enter(&mut self) -> io::Result<()> {
        let _output = lock_output();
        if OWNS_TERMINAL.load(Ordering::SeqCst) { self.viewport.write(ENTER) } else { Ok(()) }
    }

    fn show(&mut self) -> io::Result<()> {
        let _output = lock_output();
        if !OWNS_TERMINAL.load(Ordering::SeqCst) {
            return Ok(());
        }
        match (self.view.shows_details(), &mut self.details) {
            (true, None) => {
                SHOWS_DETAILS.store(true, Ordering::SeqCst);
                let mut details =
                    Viewport::new(io::stdout(), self.viewport.size(), Colours::from_environment());
                details.write(ENTER_DETAILS)?;
                self.details = Some(details);
            }
            (false, Some(details)) => {
                details.write(LEAVE_DETAILS)?;
                SHOWS_DETAILS.store(false, Ordering::SeqCst);
                self.details = None;
                self.viewport.invalidate();
            }
            _ => {}
        }
        let frame = self.view.frame(Instant::now());
        match &mut self.details {
            Some(details) => details.show(&frame),
            None => self.viewport.show(&frame),
        }
    }

    /// Draws what is left, and removes the viewport.
    fn leave(&mut self) -> io::Result<()> {
        let _output = lock_output();
        if !OWNS_TERMINAL.swap(false, Ordering::SeqCst) {
            return Ok(());
        }
        if SHOWS_DETAILS.swap(false, Ordering::SeqCst) {
            self.viewport.write(LEAVE_DETAILS)?;
            self.details = None;
            self.view.close_details();
        }
        let frame = self.view.frame(Instant::now());
        self.viewport.show(&frame)?;
        self.viewport.clear()?;
        self.viewport.write(LEAVE)
    }

    /// Tells a user who looks elsewhere of an event.
    fn notify_of(&mut self, update: &ScreenUpdate) -> io::Result<()> {
        let ScreenUpdate::Watched(Watched::Event(event)) = update else { return Ok(()) };
        let Some(signal) = self.notifier.signal_for(&event.kind, Instant::now()) else { return Ok(()) };
        let _output = lock_output();
        if OWNS_TERMINAL.load(Ordering::SeqCst) { self.viewport.write(signal) } else { Ok(()) }
    }

    /// Ctrl-Z: gives the terminal back and stops the process until it is continued.
    fn stop(&mut self) -> io::Result<()> {
        self.lend_terminal()?;
        let _ = kill_process(getpid(), Signal::TSTP);
        std::thread::sleep(STOP_DELAY);
        self.retake_terminal()
    }

    /// Ctrl-G: the typed text in the user's editor.
    fn edit(&mut self) -> io::Result<()> {
        self.lend_terminal()?;
        let edited = edit_text(&self.view.typed_text(), &IS_ENDING);
        self.view.take_edited(edited);
        self.retake_terminal()
    }

    /// Leaves the terminal to another program, with its own modes.
    fn lend_terminal(&mut self) -> io::Result<()> {
        let _output = lock_output();
        self.viewport.clear()?;
        self.viewport.write(LEAVE)?;
        let _ = crossterm::terminal::disable_raw_mode();
        Ok(())
    }

    fn retake_terminal(&mut self) -> io::Result<()> {
        if !OWNS_TERMINAL.load(Ordering::SeqCst) {
            return Ok(());
        }
        crossterm::terminal::enable_raw_mode()?;
        self.viewport.restart();
        let size = crossterm::terminal::size().unwrap_or((0, 0));
        self.viewport.resize(size)?;
        self.view.resize(self.viewport.size());
        self.enter()
    }
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
