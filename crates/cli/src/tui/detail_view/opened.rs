//! The entry that is open: where its reader is, and what the reader searches.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use longhaul_protocol::CallId;
use longhaul_transcript::{
    Block, BlockContent, Span, StyledLine, call_detail_lines, call_head_lines, call_output, format_number,
    has_more_output, reasoning_lines, text_width,
};

use super::document::{DetailDocument, RowPosition, SearchDirection};
use super::output_pages::OutputPages;
use super::search_pattern::SearchPattern;
use crate::output::sanitize;

pub(super) const MAX_PATTERN_CHARS: usize = 200;

/// Whether a key closes the entry.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OpenedOutcome {
    Open,
    Closed,
}

pub(super) struct OpenDetail {
    block: Block,
    document: DetailDocument,
    /// The first visible row.
    top: RowPosition,
    search: Search,
    /// The whole output was asked for and has not come yet.
    is_loading: bool,
}

#[derive(Default)]
struct Search {
    /// The pattern that is being typed.
    typed: Option<String>,
    pattern: Option<SearchPattern>,
    /// The line of the match that was found last.
    found: Option<usize>,
    /// The pattern is nowhere.
    has_failed: bool,
}

impl OpenDetail {
    pub(super) fn new(block: Block, width: u16) -> Self {
        let head = head_lines(&block, width);
        let output = match &block.content {
            // The part that the model reads, until the whole is there.
            BlockContent::Call(call) if has_more_output(call) => OutputPages::of_text(&call_output(call)),
            _ => OutputPages::of_text(""),
        };
        let is_loading = matches!(&block.content, BlockContent::Call(call) if has_more_output(call));
        let document = DetailDocument { head, output, width };
        Self { block, document, top: RowPosition::default(), search: Search::default(), is_loading }
    }

    pub(super) fn is_of_call(&self, id: CallId) -> bool {
        matches!(&self.block.content, BlockContent::Call(call) if call.call == id)
    }

    /// Whether the command still runs, and no output is on its way. One request at a time.
    pub(super) fn wants_more(&mut self) -> bool {
        let is_running = matches!(&self.block.content, BlockContent::Call(call) if call.result.is_none());
        is_running && !std::mem::replace(&mut self.is_loading, true)
    }

    pub(super) fn end_loading(&mut self) {
        self.is_loading = false;
    }

    /// Shows another output. A reader at the end of a running one stays there.
    pub(super) fn set_output(&mut self, output: OutputPages, page: usize) {
        let was_at_end = self.document.output.line_count() > 0 && self.top >= self.document.last_top(page);
        self.is_loading = false;
        self.document.output = output;
        let last = self.document.last_top(page);
        self.top = if was_at_end && self.top != RowPosition::default() { last } else { self.top.min(last) };
    }

    pub(super) fn resize(&mut self, width: u16) {
        if self.document.width != width {
            let head = head_lines(&self.block, width);
            // Rows of the head may be more or fewer now; the reader stays at the same line of the output.
            let output_line = self.top.line.checked_sub(self.document.head.len());
            let line = output_line.map_or(0, |line| line + head.len());
            self.top = RowPosition { line, row: 0 };
            (self.document.head, self.document.width) = (head, width);
            self.search.found = None;
        }
    }

    pub(super) fn rows(&mut self, room: usize) -> Vec<StyledLine> {
        self.document.page(self.top, room, self.search.pattern.as_ref())
    }

    /// The last row: where the reader is, and which keys there are; or the pattern that is being typed.
    pub(super) fn keys_line(&mut self, room: usize) -> StyledLine {
        if let Some(typed) = &self.search.typed {
            return StyledLine::raw(format!("/{}", sanitize(typed)));
        }
        let count = self.document.line_count();
        let shown = |line: usize| format_number(line as u64);
        let place = match self.top >= self.document.last_top(room) {
            true => format!("line {} of {}, end", shown((self.top.line + 1).min(count)), shown(count)),
            false => format!("line {} of {}", shown(self.top.line + 1), shown(count)),
        };
        let mut spans = vec![Span::dim(place)];
        if self.is_loading {
            spans.push(Span::dim(" · reading the whole output"));
        }
        let keys = match (&self.search.pattern, self.search.has_failed) {
            (Some(pattern), true) => format!(" · {:?} is not there", sanitize(pattern.text())),
            (Some(pattern), false) => format!(" · {:?}: n next, N previous", sanitize(pattern.text())),
            (None, _) => " · / searches".to_owned(),
        };
        spans.push(Span::dim(format!("{keys} · ↑↓ PgUp PgDn Home End · Esc goes back")));
        StyledLine::from(spans)
    }

    /// Where the cursor is in the last row.
    pub(super) fn cursor_column(&self) -> u16 {
        let typed = self.search.typed.as_ref().map_or(0, |typed| 1 + text_width(&sanitize(typed)));
        u16::try_from(typed).unwrap_or(u16::MAX)
    }

    pub(super) fn paste(&mut self, text: &str) {
        if let Some(typed) = &mut self.search.typed {
            typed.extend(text.lines().next().unwrap_or_default().chars().take(MAX_PATTERN_CHARS));
        }
    }

    pub(super) fn press(&mut self, key: KeyEvent, page: usize) -> OpenedOutcome {
        if self.search.typed.is_some() {
            self.press_in_pattern(key, page);
            return OpenedOutcome::Open;
        }
        let document = &mut self.document;
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') | KeyCode::Left => return OpenedOutcome::Closed,
            KeyCode::Char('/') => self.search.typed = Some(String::new()),
            KeyCode::Char('n') => self.find_next(SearchDirection::Forward, page),
            KeyCode::Char('N') => self.find_next(SearchDirection::Backward, page),
            KeyCode::Up | KeyCode::Char('k') => self.top = document.up(self.top, 1),
            KeyCode::Down | KeyCode::Char('j') | KeyCode::Enter => {
                self.top = document.down(self.top, 1, page);
            }
            KeyCode::PageUp | KeyCode::Char('b') => self.top = document.up(self.top, page),
            KeyCode::PageDown | KeyCode::Char(' ' | 'f') => self.top = document.down(self.top, page, page),
            KeyCode::Home | KeyCode::Char('g') => self.top = RowPosition::default(),
            KeyCode::End | KeyCode::Char('G') => self.top = document.last_top(page),
            _ => {}
        }
        OpenedOutcome::Open
    }

    fn press_in_pattern(&mut self, key: KeyEvent, page: usize) {
        let Some(typed) = &mut self.search.typed else { return };
        let is_plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match key.code {
            KeyCode::Esc => self.search.typed = None,
            KeyCode::Backspace if typed.pop().is_none() => self.search.typed = None,
            KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => typed.clear(),
            KeyCode::Char(character) if is_plain && typed.chars().count() < MAX_PATTERN_CHARS => {
                typed.push(character);
            }
            KeyCode::Enter => {
                self.search.pattern = SearchPattern::new(typed);
                (self.search.typed, self.search.found, self.search.has_failed) = (None, None, false);
                self.find_next(SearchDirection::Forward, page);
            }
            _ => {}
        }
    }

    /// Goes to the next match and shows it with some lines above it.
    fn find_next(&mut self, direction: SearchDirection, page: usize) {
        let Some(pattern) = &self.search.pattern else { return };
        let count = self.document.line_count().max(1);
        let from = match (self.search.found, direction) {
            (None, SearchDirection::Forward) => self.top.line,
            (None, SearchDirection::Backward) => self.top.line + count - 1,
            (Some(found), SearchDirection::Forward) => found + 1,
            (Some(found), SearchDirection::Backward) => found + count - 1,
        };
        self.search.found = self.document.find(pattern, from % count, direction);
        self.search.has_failed = self.search.found.is_none();
        if let Some(line) = self.search.found {
            let above = self.document.up(RowPosition { line, row: 0 }, page / 3);
            self.top = above.min(self.document.last_top(page));
        }
    }
}

fn head_lines(block: &Block, width: u16) -> Vec<StyledLine> {
    let took = block.elapsed(block.started_at);
    match &block.content {
        BlockContent::Call(call) if has_more_output(call) => call_head_lines(call, took, width),
        BlockContent::Call(call) => call_detail_lines(call, took, width),
        BlockContent::Reasoning { text } => reasoning_lines(text, width),
        _ => vec![],
    }
}
