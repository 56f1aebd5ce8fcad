//! What happens in a session, as lines: those that are said for good, and those that may still change.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use longhaul_agent::Watched;
use longhaul_protocol::{CallId, EventKind, Outcome};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::calls;
use super::calls::Concluded;
use super::markdown::Markdown;
use super::wrap::wrapped;
use crate::event_text;
use crate::output::{count, grouped, safe, shortened};

/// So many calls and thoughts can still be opened, and so many bytes of them are kept.
const MOST_DETAILS: usize = 200;
const MOST_BYTES: usize = 4 << 20;
/// So many lines of what somebody entered are shown, and so much of each: a long paste is sent whole and not seen whole.
const ECHOED: usize = 16;
const LONGEST_ECHOED: usize = 2_000;
/// So many rows of thoughts are shown while they come, if they are.
const THOUGHTS: usize = 6;

/// Whether thoughts are shown, or only that there are some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thoughts {
    Folded,
    Open,
}

/// Something that stands on one line and can be opened.
#[derive(Debug, Clone)]
pub(crate) enum Detail {
    Call { name: String, arguments: String, content: String, is_error: bool, took: Duration },
    Thought { text: String, took: Duration },
}

/// What the last line is part of. Parts stand apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Nothing,
    Entered,
    Answer,
    /// Calls, thoughts, and what is told beside the answer.
    Aside,
}

/// A call that runs.
struct Running {
    id: CallId,
    name: String,
    arguments: String,
    since: Instant,
}

/// A wait before a try.
struct Waiting {
    until: Instant,
}

/// What is shown of a session.
pub(crate) struct Transcript {
    width: u16,
    /// Lines for good that were not taken yet.
    said: Vec<Line<'static>>,
    last: Part,
    answer: Markdown,
    /// What came of the answer that is on its way.
    heard: String,
    /// Words were shown that count no more; whether they are asked for again is not known yet.
    broke_off: bool,
    thought: String,
    thinks_since: Option<Instant>,
    pub(crate) thoughts: Thoughts,
    running: Vec<Running>,
    waiting: Option<Waiting>,
    /// How many questions are open: it is somebody here who is waited for.
    asked: usize,
    compacting: Option<Instant>,
    turn_since: Option<Instant>,
    details: VecDeque<Detail>,
    /// Somebody wants to know everything.
    in_detail: bool,
}

const DIM: Style = Style::new().add_modifier(Modifier::DIM);

impl Transcript {
    pub(crate) fn new(width: u16, in_detail: bool) -> Self {
        Self {
            width,
            said: Vec::new(),
            last: Part::Nothing,
            answer: Markdown::new(),
            heard: String::new(),
            broke_off: false,
            thought: String::new(),
            thinks_since: None,
            thoughts: Thoughts::Folded,
            running: Vec::new(),
            waiting: None,
            asked: 0,
            compacting: None,
            turn_since: None,
            details: VecDeque::new(),
            in_detail,
        }
    }

    pub(crate) fn resize(&mut self, width: u16) {
        self.width = width;
    }

    /// Lines that are there for good. Each is given once.
    pub(crate) fn take(&mut self) -> Vec<Line<'static>> {
        self.settle();
        std::mem::take(&mut self.said)
    }

    /// Whether an answer is on its way: what is said meanwhile must not end its paragraph.
    pub(crate) fn is_answering(&self) -> bool {
        !self.heard.is_empty()
    }

    /// What of the answer can't change any more is said.
    fn settle(&mut self) {
        let settled = self.answer.settled(self.width);
        self.say_answer(settled);
    }

    fn say_answer(&mut self, mut lines: Vec<Line<'static>>) {
        if lines.is_empty() {
            return;
        }
        // Where it goes on after something else, there is a gap already.
        if self.last != Part::Answer && self.last != Part::Nothing && lines[0].width() == 0 {
            lines.remove(0);
        }
        self.begin(Part::Answer);
        self.said.extend(lines);
    }

    /// What moves by itself: only then need anybody look again without anything happening.
    pub(crate) fn moves(&self) -> bool {
        self.turn_since.is_some() || self.waiting.is_some() || self.compacting.is_some()
    }

    /// Shows what a watcher saw.
    pub(crate) fn see(&mut self, watched: &Watched, now: Instant) {
        match watched {
            Watched::Event(event) => self.event(&event.kind, now),
            Watched::Missed { events, .. } => self.note(&format!("{events} events were not shown")),
        }
    }

    fn event(&mut self, kind: &EventKind, now: Instant) {
        if !matches!(kind, EventKind::RetryWait { .. }) {
            self.waiting = None;
        }
        if let EventKind::StepStarted
        | EventKind::TextDelta { .. }
        | EventKind::Partial { .. }
        | EventKind::ToolStarted { .. } = kind
        {
            // Whoever comes in the middle of a turn has not seen it begin.
            self.turn_since.get_or_insert(now);
        }
        match kind {
            EventKind::TextDelta { text } => self.words(text, now),
            // All of what came so far, of which some may be here already.
            EventKind::Partial { text, .. } => {
                let new = text.strip_prefix(&self.heard).unwrap_or(text).to_owned();
                self.words(&new, now);
            }
            EventKind::ReasoningDelta { text } => {
                self.thinks_since.get_or_insert(now);
                self.thought.push_str(text);
            }
            EventKind::Message { content, .. } => self.message(content, now),
            EventKind::AttemptDiscarded { kept_blocks, .. } => {
                self.conclude_thought(now);
                self.broke_off = *kept_blocks == 0 && !self.heard.is_empty();
                self.end_answer();
            }
            EventKind::TurnStarted => self.turn_since = Some(now),
            EventKind::ToolStarted { call_id, name, arguments, .. } => {
                self.conclude_thought(now);
                self.end_answer();
                let (name, arguments) = (name.clone(), arguments.clone());
                self.running.push(Running { id: *call_id, name, arguments, since: now });
            }
            EventKind::ToolFinished { call_id, name, is_error, content } => {
                self.call_ended(*call_id, name, content, *is_error, now);
            }
            EventKind::RetryWait { delay_ms, .. } => {
                let what = event_text::wait(kind).unwrap_or_default();
                self.aside(&what);
                let until = now + Duration::from_millis(*delay_ms);
                self.waiting = Some(Waiting { until });
            }
            EventKind::CompactStart { .. } => {
                self.compacting = Some(now);
                self.told(kind);
            }
            EventKind::CompactDone { .. } | EventKind::CompactFailed { .. } => {
                self.compacting = None;
                self.told(kind);
            }
            // The line of the call that began it says so.
            EventKind::TaskStarted { .. } if !self.running.is_empty() => {}
            EventKind::Question { .. } => {
                self.asked += 1;
                self.told(kind);
            }
            EventKind::Answered { .. } => {
                self.asked = self.asked.saturating_sub(1);
                self.told(kind);
            }
            EventKind::TurnEnded { outcome, .. } => self.turn_ended(*outcome, now),
            kind => self.told(kind),
        }
    }

    /// What is told beside the answer, where something is.
    fn told(&mut self, kind: &EventKind) {
        let detail = || event_text::aside_in_detail(kind).filter(|_| self.in_detail);
        if let Some(aside) = event_text::aside(kind).or_else(detail) {
            self.aside(&aside);
        }
    }

    fn words(&mut self, text: &str, now: Instant) {
        if text.is_empty() {
            return;
        }
        self.conclude_thought(now);
        self.tell_break();
        self.heard.push_str(text);
        self.answer.push(text);
    }

    /// What the agent said counts. What of it did not come piece by piece is shown now.
    fn message(&mut self, content: &str, now: Instant) {
        self.conclude_thought(now);
        self.tell_break();
        if let Some(rest) = content.strip_prefix(&self.heard) {
            self.answer.push(rest);
        }
        self.end_answer();
    }

    /// From here on something else is said.
    fn begin(&mut self, part: Part) {
        if self.last != part && self.last != Part::Nothing {
            self.said.push(Line::default());
        }
        self.last = part;
    }

    fn end_answer(&mut self) {
        self.heard.clear();
        let left = self.answer.finish(self.width);
        self.say_answer(left);
    }

    fn tell_break(&mut self) {
        if std::mem::take(&mut self.broke_off) {
            self.aside("[the answer broke off; it is asked again]");
        }
    }

    fn conclude_thought(&mut self, now: Instant) {
        let Some(since) = self.thinks_since.take() else { return };
        let (text, took) = (std::mem::take(&mut self.thought), now.duration_since(since));
        match self.thoughts {
            Thoughts::Folded => {
                let folded = calls::folded_reasoning(&text, took);
                self.begin(Part::Aside);
                self.say(&folded, "  ");
            }
            Thoughts::Open => {
                self.begin(Part::Aside);
                self.said.extend(calls::open_reasoning(&text, self.width));
            }
        }
        self.keep(Detail::Thought { text, took });
    }

    fn call_ended(&mut self, id: CallId, name: &str, content: &str, is_error: bool, now: Instant) {
        let place = self.running.iter().position(|running| running.id == id);
        let (arguments, took) = match place.map(|place| self.running.remove(place)) {
            Some(running) => (running.arguments, now.duration_since(running.since)),
            None => (String::new(), Duration::ZERO),
        };
        let concluded = Concluded { name, arguments: &arguments, content, is_error, took };
        self.begin(Part::Aside);
        self.said.extend(calls::concluded(&concluded, self.width));
        let (name, content) = (name.to_owned(), content.to_owned());
        self.keep(Detail::Call { name, arguments, content, is_error, took });
    }

    fn turn_ended(&mut self, outcome: Outcome, now: Instant) {
        self.conclude_thought(now);
        self.broke_off = false;
        self.end_answer();
        self.running.clear();
        (self.compacting, self.asked) = (None, 0);
        let Some(since) = self.turn_since.take() else { return };
        let took = now.duration_since(since);
        if outcome == Outcome::Completed && took > Duration::from_secs(10) {
            self.aside(&format!("({})", elapsed(took)));
        }
    }

    /// So many questions are open.
    pub(crate) fn set_asked(&mut self, asked: usize) {
        self.asked = asked;
    }

    /// Another session is shown from here on: what goes on in this one ends elsewhere.
    pub(crate) fn turn_over(&mut self) {
        self.end_answer();
        self.thought.clear();
        self.running.clear();
        (self.thinks_since, self.turn_since, self.compacting) = (None, None, None);
        (self.waiting, self.asked, self.broke_off) = (None, 0, false);
    }

    fn keep(&mut self, detail: Detail) {
        self.details.push_back(detail);
        let size = |detail: &Detail| match detail {
            Detail::Call { arguments, content, .. } => arguments.len() + content.len(),
            Detail::Thought { text, .. } => text.len(),
        };
        let mut bytes: usize = self.details.iter().map(size).sum();
        while self.details.len() > MOST_DETAILS || (bytes > MOST_BYTES && self.details.len() > 1) {
            bytes -= self.details.pop_front().as_ref().map_or(0, size);
        }
    }

    /// What can be opened, the oldest first; what runs, last.
    pub(crate) fn details(&self, now: Instant) -> Vec<Detail> {
        let running = self.running.iter().map(|running| Detail::Call {
            name: running.name.clone(),
            arguments: running.arguments.clone(),
            content: "(it runs)".to_owned(),
            is_error: false,
            took: now.duration_since(running.since),
        });
        self.details.iter().cloned().chain(running).collect()
    }

    /// What somebody entered.
    pub(crate) fn entered(&mut self, text: &str) {
        self.settle();
        let style = Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD);
        // One that follows another stands apart from it, too.
        if self.last == Part::Entered {
            self.said.push(Line::default());
        }
        self.begin(Part::Entered);
        let text = safe(text);
        for (number, line) in text.lines().take(ECHOED).enumerate() {
            let mark = if number == 0 { "> " } else { "  " };
            let line = shortened(line, LONGEST_ECHOED);
            self.say(&Line::styled(format!("{mark}{line}"), style), "  ");
        }
        let more = text.lines().count().saturating_sub(ECHOED);
        if more > 0 {
            let more = format!("  … {}", count(more as u64, "more line"));
            self.say(&Line::styled(more, DIM), "  ");
        }
    }

    /// A line beside the answer.
    pub(crate) fn aside(&mut self, text: &str) {
        self.settle();
        self.begin(Part::Aside);
        for line in safe(text).lines() {
            self.say(&Line::styled(line.to_owned(), DIM), "  ");
        }
    }

    /// A line from the program itself.
    pub(crate) fn note(&mut self, text: &str) {
        self.settle();
        self.begin(Part::Aside);
        for line in safe(text).lines() {
            let mark = Span::styled("longhaul: ", DIM);
            self.say(&Line::from(vec![mark, Span::raw(line.to_owned())]), "  ");
        }
    }

    /// What a command has printed, or a page that was asked for.
    pub(crate) fn printed(&mut self, text: &str) {
        self.settle();
        self.begin(Part::Aside);
        for line in safe(text).lines() {
            self.say(&Line::raw(line.to_owned()), &" ".repeat(column_of_text(line)));
        }
    }

    fn say(&mut self, line: &Line<'_>, indent: &str) {
        self.said.extend(wrapped(line, self.width, indent));
    }

    /// What may still change, in so many rows at most: of an answer, its end.
    pub(crate) fn live(&self, rows: usize, now: Instant) -> Vec<Line<'static>> {
        let mut below = Vec::new();
        if let Some(since) = self.thinks_since {
            if self.thoughts == Thoughts::Open {
                let open = calls::open_reasoning(end_of(&self.thought), self.width);
                below.extend(open.into_iter().rev().take(THOUGHTS).rev());
            }
            below.push(self.moving("thinking", now.duration_since(since), now));
        }
        for running in &self.running {
            let headline = calls::headline(&running.name, &running.arguments, self.width.saturating_sub(10));
            let mut line = self.moving("", now.duration_since(running.since), now);
            line.spans.extend(headline.spans);
            below.push(line);
        }
        if let Some(waiting) = &self.waiting {
            let left = waiting.until.saturating_duration_since(now);
            let text = format!("next try in {}; /retry, /model NAME or Esc end the wait", elapsed(left));
            below.push(Line::styled(text, Style::new().fg(Color::Yellow)));
        }
        if let Some(since) = self.compacting {
            below.push(self.moving("making the context smaller", now.duration_since(since), now));
        }
        let is_silent = below.is_empty() && self.heard.is_empty() && self.asked == 0;
        if let (true, Some(since)) = (is_silent, self.turn_since) {
            below.push(self.moving("waiting for the model", now.duration_since(since), now));
        }
        let left = rows.saturating_sub(below.len());
        let mut lines = if left > 0 { self.answer.open(self.width) } else { vec![] };
        lines.drain(..lines.len().saturating_sub(left));
        lines.extend(below);
        lines.drain(..lines.len().saturating_sub(rows));
        lines
    }

    /// Something that goes on, with how long it has.
    fn moving(&self, what: &str, since: Duration, now: Instant) -> Line<'static> {
        const TURNS: [&str; 8] = ["⠇", "⠋", "⠙", "⠸", "⢰", "⣠", "⣄", "⡆"];
        let turned = self.turn_since.map_or(since, |begun| now.duration_since(begun)).as_millis() / 125;
        let sign = TURNS[usize::try_from(turned % 8).unwrap_or(0)];
        let time =
            if since < Duration::from_secs(1) { String::new() } else { format!("{} ", elapsed(since)) };
        let what = if what.is_empty() { String::new() } else { format!("{what} ") };
        Line::from(vec![
            Span::styled(format!("{sign} "), Style::new().fg(Color::Cyan)),
            Span::styled(format!("{what}{time}"), DIM),
        ])
    }
}

/// Where in a line of columns the last of them begins, so that it stays one when it is broken into rows.
fn column_of_text(line: &str) -> usize {
    const FARTHEST: usize = 24;
    let gap = line
        .char_indices()
        .take(FARTHEST)
        .filter(|(place, _)| line[..*place].ends_with("  ") && !line[*place..].starts_with(' '));
    gap.last().map_or(0, |(place, _)| line[..place].chars().count())
}

/// As much of a text as may be seen while it comes.
fn end_of(text: &str) -> &str {
    const SEEN: usize = 4 << 10;
    &text[text.ceil_char_boundary(text.len().saturating_sub(SEEN))..]
}

/// Whole seconds, for people: they change once a second.
pub(crate) fn elapsed(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", grouped(seconds / 3_600), seconds % 3_600 / 60),
    }
}
