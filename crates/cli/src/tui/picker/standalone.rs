//! A picker in the terminal where no chat is open yet.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::{Event, KeyEventKind};
use tokio::sync::mpsc;

use super::{Picker, PickerItem, PickerOutcome};
use crate::signals::ExitSignals;
use crate::tui::sgr::Colours;
use crate::tui::viewport::{Frame, Viewport};

const MAX_ROWS: u16 = 14;
/// How often the key reader checks whether the picker is closed: it must not take keys that belong to what comes next.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PickOutcome {
    Chosen(usize),
    Cancelled,
    /// A signal with this number came.
    Signal(u8),
}

/// Shows the list and waits for the user. The caller restores the terminal's modes.
pub(crate) async fn pick(
    title: &str,
    items: Vec<PickerItem>,
    signals: &mut ExitSignals,
) -> io::Result<PickOutcome> {
    crossterm::terminal::enable_raw_mode()?;
    let is_closed = Arc::new(AtomicBool::new(false));
    let (sender, mut keys) = mpsc::unbounded_channel();
    let reading = tokio::task::spawn_blocking({
        let is_closed = is_closed.clone();
        move || {
            while !is_closed.load(Ordering::SeqCst) {
                match crossterm::event::poll(STOP_POLL_INTERVAL) {
                    Ok(false) => {}
                    Ok(true) => match crossterm::event::read() {
                        Ok(event) => drop(sender.send(event)),
                        Err(_) => return,
                    },
                    Err(_) => return,
                }
            }
        }
    });
    let size = crossterm::terminal::size().unwrap_or((0, 0));
    let mut viewport = Viewport::new(io::stdout(), size, Colours::from_environment());
    let mut picker = Picker::new(title, items);
    let picked = loop {
        let (width, height) = viewport.size();
        let rows = picker.lines(width, height.saturating_sub(1).clamp(1, MAX_ROWS));
        if viewport.show(&Frame { above: vec![], rows, cursor: (0, 0) }).is_err() {
            break PickOutcome::Cancelled;
        }
        tokio::select! {
            biased;
            number = signals.next() => break PickOutcome::Signal(number),
            event = keys.recv() => match event {
                None => break PickOutcome::Cancelled,
                Some(Event::Resize(width, height)) => {
                    if viewport.resize((width, height)).is_err() {
                        break PickOutcome::Cancelled;
                    }
                }
                Some(Event::Key(key)) if key.kind != KeyEventKind::Release => match picker.press(key) {
                    PickerOutcome::Nothing => {}
                    PickerOutcome::Chosen(index) => break PickOutcome::Chosen(index),
                    PickerOutcome::Cancelled => break PickOutcome::Cancelled,
                },
                Some(Event::Paste(text)) => picker.paste(&text),
                Some(_) => {}
            },
        }
    };
    is_closed.store(true, Ordering::SeqCst);
    let _ = reading.await;
    let _ = viewport.clear();
    crossterm::terminal::disable_raw_mode()?;
    Ok(picked)
}
