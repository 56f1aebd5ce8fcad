//! Choosing one of a list where no conversation is open yet.

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

/// So many rows of a list are shown.
const MAX_ROWS: u16 = 14;
/// How soon the reader of keys notices that no more are wanted: whoever comes next must get them all.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PickOutcome {
    Chosen(usize),
    /// Nothing was chosen.
    Left,
    /// A signal came.
    Signal(u8),
}

/// Has somebody choose. The terminal's modes are whoever's called this.
pub(crate) async fn pick(
    title: &str,
    choices: Vec<PickerItem>,
    signals: &mut ExitSignals,
) -> io::Result<PickOutcome> {
    crossterm::terminal::enable_raw_mode()?;
    let is_over = Arc::new(AtomicBool::new(false));
    let (tell, mut keys) = mpsc::unbounded_channel();
    let reading = tokio::task::spawn_blocking({
        let is_over = is_over.clone();
        move || {
            while !is_over.load(Ordering::SeqCst) {
                match crossterm::event::poll(STOP_POLL_INTERVAL) {
                    Ok(false) => {}
                    Ok(true) => match crossterm::event::read() {
                        Ok(event) => drop(tell.send(event)),
                        Err(_) => return,
                    },
                    Err(_) => return,
                }
            }
        }
    });
    let size = crossterm::terminal::size().unwrap_or((0, 0));
    let mut viewport = Viewport::new(io::stdout(), size, Colours::wanted());
    let mut picker = Picker::new(title, choices);
    let picked = loop {
        let (width, height) = viewport.size();
        let rows = picker.lines(width, height.saturating_sub(1).clamp(1, MAX_ROWS));
        if viewport.show(&Frame { above: vec![], rows, cursor: (0, 0) }).is_err() {
            break PickOutcome::Left;
        }
        tokio::select! {
            biased;
            number = signals.next() => break PickOutcome::Signal(number),
            event = keys.recv() => match event {
                None => break PickOutcome::Left,
                Some(Event::Resize(width, height)) => {
                    if viewport.resize((width, height)).is_err() {
                        break PickOutcome::Left;
                    }
                }
                Some(Event::Key(key)) if key.kind != KeyEventKind::Release => match picker.press(key) {
                    PickerOutcome::Nothing => {}
                    PickerOutcome::Chosen(place) => break PickOutcome::Chosen(place),
                    PickerOutcome::Left => break PickOutcome::Left,
                },
                Some(Event::Paste(text)) => picker.paste(&text),
                Some(_) => {}
            },
        }
    };
    is_over.store(true, Ordering::SeqCst);
    let _ = reading.await;
    let _ = viewport.clear();
    crossterm::terminal::disable_raw_mode()?;
    Ok(picked)
}
