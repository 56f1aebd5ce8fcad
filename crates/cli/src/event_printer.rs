//! Shows what happens in a session: to people as words, to programs as lines of JSON.

use std::io::IsTerminal;

use longhaul_agent::Watched;
use longhaul_protocol::EventKind;

use std::time::Duration;

use crate::output::safe;
use crate::printer::Printer;
use crate::signals::ExitSignals;
use crate::tui::{Activity, ScreenHandle, ScreenUpdate, StatusFacts};
use crate::{event_text, exit};

/// How long what is still to be shown may take once a signal has come.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How answers are shown. Everything else goes to standard error in all forms but one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Every event as one line of JSON, and nothing else.
    Json,
    /// Only the answer that a turn ended with: what reads it gets no text twice, whatever broke off on the way.
    Final,
    /// Everything that the agent said, once it can no longer be taken back.
    Messages,
    /// Only what came of something that is no turn, and what keeps whoever asked for it waiting.
    Outcome,
    /// The words as they come, for somebody who watches.
    Stream,
    /// Everything that the agent said, whole, for somebody who may be typing meanwhile.
    AtPrompt,
}

impl Form {
    /// For one turn, whose answer is wanted.
    pub(crate) fn of_answer(as_json: bool) -> Self {
        match as_json {
            true => Self::Json,
            false if std::io::stdout().is_terminal() => Self::Stream,
            false => Self::Final,
        }
    }

    /// For a conversation.
    pub(crate) fn of_conversation() -> Self {
        if std::io::stdout().is_terminal() { Self::Stream } else { Self::Messages }
    }
}

/// Shows what happens.
pub(crate) struct Teller {
    form: Form,
    printer: Printer,
    /// What came of the answer that is on its way.
    text: String,
    /// How much of it was shown.
    shown: usize,
    /// A prompt stands on the line that was begun last.
    prompt_stands: bool,
    /// Words stand on the line that was begun last.
    line_is_open: bool,
    /// Words were shown that count no more; whether they are asked for again is not known yet.
    broke_off: bool,
    /// Somebody wants to know everything.
    in_detail: bool,
    /// Where there is a screen, it shows everything.
    screen: Option<ScreenHandle>,
}

impl Teller {
    pub(crate) fn new(form: Form) -> Self {
        let printer = Printer::new();
        let text = String::new();
        Self {
            form,
            printer,
            text,
            shown: 0,
            prompt_stands: false,
            line_is_open: false,
            broke_off: false,
            in_detail: false,
            screen: None,
        }
    }

    /// One that has everything shown on a screen.
    pub(crate) fn on(screen: ScreenHandle) -> Self {
        Self { screen: Some(screen), ..Self::new(Form::Stream) }
    }

    /// The same, which says more, if somebody asked for that as often.
    pub(crate) fn in_detail(self, asked: u8) -> Self {
        Self { in_detail: asked > 0, ..self }
    }

    /// Shows what a watcher saw.
    pub(crate) fn watched(&mut self, watched: &Watched) {
        match watched {
            watched if self.screen.is_some() => self.tell(ScreenUpdate::Watched(watched.clone())),
            Watched::Event(event) if self.form == Form::Json => self.json(event),
            Watched::Event(event) => self.event(&event.kind),
            Watched::Missed { events, from } if self.form == Form::Json => {
                self.json(&serde_json::json!({"type": "missed", "events": events, "from": from}));
            }
            Watched::Missed { events, .. } => self.note(format!("{events} events were not shown")),
        }
    }

    /// Tells the screen, if there is one.
    pub(crate) fn tell(&self, tell: ScreenUpdate) {
        if let Some(screen) = &self.screen {
            screen.send(tell);
        }
    }

    /// Whether a turn runs.
    pub(crate) fn activity(&self, activity: Activity) {
        self.tell(ScreenUpdate::Activity(activity));
    }

    /// What stands in the last row of a screen.
    pub(crate) fn facts(&self, facts: StatusFacts) {
        self.tell(ScreenUpdate::StatusFacts(facts));
    }

    fn json(&self, value: &impl serde::Serialize) {
        // Every value here has only text for keys, so it has a form.
        if let Ok(line) = serde_json::to_string(value) {
            self.printer.out(line + "\n");
        }
    }

    fn event(&mut self, kind: &EventKind) {
        if self.form == Form::Outcome && !is_waited_for(kind) {
            return;
        }
        match kind {
            EventKind::TextDelta { text } => self.words_came(text),
            // All of what came so far, of which some may be here already.
            EventKind::Partial { text, .. } => {
                let new = text.strip_prefix(&self.text).unwrap_or(text).to_owned();
                self.words_came(&new);
            }
            EventKind::Message { content, .. } => self.message(content),
            EventKind::AttemptDiscarded { kept_blocks: 0, .. } => {
                self.text.clear();
                self.broke_off = std::mem::take(&mut self.shown) > 0;
            }
            EventKind::AttemptDiscarded { .. } => {
                let said = std::mem::take(&mut self.text);
                self.message(&said);
            }
            EventKind::TurnEnded { text, .. } => self.turn_ended(text),
            kind => {
                let detail = || event_text::aside_in_detail(kind).filter(|_| self.in_detail);
                if let Some(aside) = event_text::aside(kind).or_else(detail) {
                    self.tell_break();
                    self.aside(&aside);
                }
            }
        }
    }

    /// Words of an answer that is on its way.
    fn words_came(&mut self, text: &str) {
        self.tell_break();
        self.text.push_str(text);
        if self.form == Form::Stream && self.shown < self.text.len() {
            let new = safe(&self.text[self.shown..]);
            self.shown = self.text.len();
            self.line_is_open = !new.ends_with('\n');
            self.printer.out(new);
        }
    }

    /// What the agent said counts.
    fn message(&mut self, content: &str) {
        let shown = std::mem::take(&mut self.shown);
        self.text.clear();
        match self.form {
            Form::Messages => self.line_out(content),
            Form::Stream if shown == 0 => self.line_out(&safe(content)),
            Form::Stream => self.close_line(),
            Form::AtPrompt => self.line_out(&safe(content.get(shown..).unwrap_or(content))),
            Form::Final | Form::Json | Form::Outcome => {}
        }
    }

    fn turn_ended(&mut self, text: &str) {
        self.text.clear();
        self.shown = 0;
        self.broke_off = false;
        self.close_line();
        if self.form == Form::Final {
            self.line_out(text);
        }
    }

    /// Says that what was shown so far is asked for again, when it is.
    fn tell_break(&mut self) {
        if std::mem::take(&mut self.broke_off) && self.form == Form::Stream {
            self.aside("[the answer broke off; it is asked again]");
        }
    }

    fn line_out(&mut self, text: &str) {
        if !text.is_empty() {
            self.leave_prompt();
            self.printer.out(if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") });
        }
    }

    /// Ends a line that was begun.
    pub(crate) fn close_line(&mut self) {
        if self.screen.is_some() {
            let rest = std::mem::take(&mut self.text);
            if !rest.is_empty() {
                self.tell(ScreenUpdate::Printed(rest));
            }
            return;
        }
        if std::mem::take(&mut self.line_is_open) {
            self.printer.out("\n");
        }
    }

    /// From here on somebody types on the line that was begun last.
    pub(crate) fn plain_prompt(&mut self) {
        self.whole_answers();
        self.prompt_stands = true;
    }

    /// Whether the prompt still stands where it was shown: nothing was printed since.
    pub(crate) fn prompt_stands(&self) -> bool {
        self.prompt_stands
    }

    /// Nobody types any more.
    pub(crate) fn prompt_is_over(&mut self) {
        self.prompt_stands = false;
        if self.form == Form::AtPrompt {
            self.form = Form::Stream;
        }
    }

    fn whole_answers(&mut self) {
        self.close_line();
        if self.form == Form::Stream {
            self.form = Form::AtPrompt;
        }
    }

    /// What is printed next does not belong onto the line of the prompt.
    fn leave_prompt(&mut self) {
        if std::mem::take(&mut self.prompt_stands) {
            self.printer.aside("\n");
        }
    }

    /// What a command has printed, exactly this.
    pub(crate) fn printed(&mut self, text: &str) {
        if self.screen.is_some() {
            // The screen has whole lines.
            self.text.push_str(text);
            if let Some(end) = self.text.rfind('\n') {
                let rest = self.text.split_off(end + 1);
                let whole = std::mem::replace(&mut self.text, rest);
                self.tell(ScreenUpdate::Printed(whole));
            }
            return;
        }
        self.line_is_open = !text.ends_with('\n');
        self.printer.out(text);
    }

    /// What came of something that is no turn. Among events it stands beside them.
    pub(crate) fn outcome(&mut self, text: &str) {
        match self.form {
            _ if self.screen.is_some() => self.tell(ScreenUpdate::Printed(text.to_owned())),
            Form::Json => self.note(text),
            _ => self.line_out(&safe(text)),
        }
    }

    /// What somebody asked to see; it may have several lines.
    pub(crate) fn page(&mut self, text: &str) {
        match self.screen {
            Some(_) => self.tell(ScreenUpdate::Printed(text.to_owned())),
            None => self.aside(text),
        }
    }

    /// A line beside the answer.
    pub(crate) fn aside(&mut self, text: &str) {
        if self.screen.is_some() {
            return self.tell(ScreenUpdate::Aside(text.to_owned()));
        }
        self.leave_prompt();
        self.close_line();
        self.printer.aside(format!("{text}\n"));
    }

    /// A line from the program itself.
    pub(crate) fn note(&mut self, text: impl std::fmt::Display) {
        if self.screen.is_some() {
            return self.tell(ScreenUpdate::Note(text.to_string()));
        }
        self.aside(&safe(&format!("longhaul: {text}")));
    }

    /// Something beside the answer that is no whole line.
    pub(crate) fn raw_aside(&mut self, text: &str) {
        self.close_line();
        self.printer.aside(text);
    }

    /// Has a screen give the terminal back.
    pub(crate) async fn give_back(&self) {
        if let Some(screen) = &self.screen {
            screen.end().await;
        }
    }

    /// Waits until everything is written; says why the answer could not be. A reader that has stopped reading is waited for
    /// until the next signal, and after one for a moment only.
    pub(crate) async fn finish(
        mut self,
        signals: &mut ExitSignals,
        code: u8,
    ) -> Result<Option<std::io::Error>, u8> {
        self.close_line();
        let (printer, screen) = (self.printer, self.screen);
        let writing = tokio::spawn(async move {
            if let Some(screen) = screen {
                screen.end().await;
            }
            tokio::task::spawn_blocking(move || printer.finish()).await.ok().flatten()
        });
        let patience = async {
            match code > exit::SIGNAL {
                true => tokio::time::sleep(LAST_WORDS).await,
                false => std::future::pending().await,
            }
        };
        let ended = async {
            if code > exit::SIGNAL { signals.next_deliberate().await } else { signals.next().await }
        };
        tokio::select! {
            written = writing => Ok(written.ok().flatten()),
            number = ended => Err(exit::SIGNAL + number),
            () = patience => Ok(None),
        }
    }
}

/// What somebody who waits for a context to become smaller wants to know meanwhile.
fn is_waited_for(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::CompactStart { .. }
            | EventKind::RetryWait { .. }
            | EventKind::ModelChanged { .. }
            | EventKind::Warning { .. }
    )
}
