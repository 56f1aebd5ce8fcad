//! Prints what happens in a session: as plain text, as lines of JSON, or on the screen.

use std::io::IsTerminal;
use std::time::Duration;

use longhaul_agent::Watched;
use longhaul_protocol::Event;
use longhaul_transcript::{PlainForm, PlainOutput, PlainRenderer, Transcript, Verbosity};

use crate::exit;
use crate::output::sanitize;
use crate::printer::Printer;
use crate::signals::ExitSignals;
use crate::tui::chat::PastTurns;
use crate::tui::{ScreenHandle, ScreenUpdate};

/// How long the remaining output may take once a signal has come.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// What is printed of answers. Everything else goes to standard error, except in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Every event as one line of JSON, and nothing else.
    Json,
    Plain(PlainForm),
}

impl Form {
    /// For a command that runs one turn.
    pub(crate) fn of_answer(as_json: bool) -> Self {
        match as_json {
            true => Self::Json,
            false if std::io::stdout().is_terminal() => Self::Plain(PlainForm::Stream),
            false => Self::Plain(PlainForm::Final),
        }
    }

    /// For a command that runs no turn.
    pub(crate) fn of_outcome(as_json: bool) -> Self {
        if as_json { Self::Json } else { Self::Plain(PlainForm::Outcome) }
    }

    /// For a conversation.
    pub(crate) fn of_conversation() -> Self {
        let is_terminal = std::io::stdout().is_terminal();
        Self::Plain(if is_terminal { PlainForm::Stream } else { PlainForm::Messages })
    }
}

/// Prints events, and what the program itself has to say between them.
pub(crate) struct EventPrinter {
    printer: Printer,
    transcript: Transcript,
    /// None if events are printed as JSON.
    renderer: Option<PlainRenderer>,
    /// Where there is a screen, it shows everything.
    screen: Option<ScreenHandle>,
    /// The beginning of a line that is printed on the screen when it is whole.
    partial_line: String,
    /// The cursor stands behind a prompt.
    prompt_stands: bool,
    /// The last line that was printed has no end yet.
    line_is_open: bool,
}

impl EventPrinter {
    pub(crate) fn new(form: Form, verbosity: Verbosity) -> Self {
        let renderer = match form {
            Form::Json => None,
            Form::Plain(form) => Some(PlainRenderer::new(form, verbosity)),
        };
        Self {
            printer: Printer::new(),
            transcript: Transcript::new(),
            renderer,
            screen: None,
            partial_line: String::new(),
            prompt_stands: false,
            line_is_open: false,
        }
    }

    /// A printer that has everything shown on a screen.
    pub(crate) fn on(screen: ScreenHandle) -> Self {
        Self { screen: Some(screen), ..Self::new(Form::Plain(PlainForm::Stream), Verbosity::Normal) }
    }

    pub(crate) fn watched(&mut self, watched: &Watched) {
        match watched {
            watched if self.screen.is_some() => self.tell(ScreenUpdate::Watched(watched.clone())),
            Watched::Event(event) if self.renderer.is_none() => self.json(event),
            Watched::Event(event) => self.event(event),
            Watched::Missed { events, from } if self.renderer.is_none() => {
                self.json(&serde_json::json!({"type": "missed", "events": events, "from": from}));
            }
            Watched::Missed { events, .. } => self.note(format!("{events} events skipped")),
        }
    }

    /// Tells the screen, if there is one.
    pub(crate) fn tell(&self, tell: ScreenUpdate) {
        if let Some(screen) = &self.screen {
            screen.send(tell);
        }
    }

    fn json(&self, value: &impl serde::Serialize) {
        // Every value here has string keys, so serializing can't fail.
        if let Ok(line) = serde_json::to_string(value) {
            self.printer.out(line + "\n");
        }
    }

    fn event(&mut self, event: &Event) {
        let Some(renderer) = &mut self.renderer else { return };
        let updates = self.transcript.apply(event);
        let output: Vec<PlainOutput> = updates.iter().flat_map(|update| renderer.render(update)).collect();
        for output in output {
            match output {
                PlainOutput::Text(text) => {
                    self.line_is_open = !text.ends_with('\n');
                    self.printer.out(text);
                }
                PlainOutput::Message(text) => self.line_out(&text),
                PlainOutput::Notice(text) => self.aside(&text),
                PlainOutput::EndLine => self.close_line(),
            }
        }
    }

    fn line_out(&mut self, text: &str) {
        if !text.is_empty() {
            self.leave_prompt();
            self.printer.out(if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") });
        }
    }

    /// Ends the line that is open.
    pub(crate) fn close_line(&mut self) {
        if self.screen.is_some() {
            let rest = std::mem::take(&mut self.partial_line);
            if !rest.is_empty() {
                self.tell(ScreenUpdate::Printed(rest));
            }
            return;
        }
        if std::mem::take(&mut self.line_is_open) {
            self.printer.out("\n");
        }
    }

    /// The user types behind a prompt from here on, so answers are printed whole.
    pub(crate) fn plain_prompt(&mut self) {
        self.close_line();
        self.replace_form(PlainForm::Stream, PlainForm::AtPrompt);
        self.prompt_stands = true;
    }

    /// Whether nothing was printed since the prompt.
    pub(crate) fn prompt_stands(&self) -> bool {
        self.prompt_stands
    }

    /// The user does not type any more.
    pub(crate) fn prompt_is_over(&mut self) {
        self.prompt_stands = false;
        self.replace_form(PlainForm::AtPrompt, PlainForm::Stream);
    }

    fn replace_form(&mut self, from: PlainForm, to: PlainForm) {
        if let Some(renderer) = self.renderer.as_mut().filter(|renderer| renderer.form == from) {
            renderer.form = to;
        }
    }

    /// Moves to the line below the prompt.
    fn leave_prompt(&mut self) {
        if std::mem::take(&mut self.prompt_stands) {
            self.printer.aside("\n");
        }
    }

    /// Prints the output of a command, exactly this.
    pub(crate) fn printed(&mut self, text: &str) {
        if self.screen.is_some() {
            // The screen takes whole lines.
            self.partial_line.push_str(text);
            if let Some(end) = self.partial_line.rfind('\n') {
                let rest = self.partial_line.split_off(end + 1);
                let whole = std::mem::replace(&mut self.partial_line, rest);
                self.tell(ScreenUpdate::Printed(whole));
            }
            return;
        }
        self.line_is_open = !text.ends_with('\n');
        self.printer.out(text);
    }

    /// Prints the outcome of a command that is no turn. Among JSON events it goes to standard error.
    pub(crate) fn outcome(&mut self, text: &str) {
        match self.renderer {
            _ if self.screen.is_some() => self.tell(ScreenUpdate::Printed(text.to_owned())),
            None => self.note(text),
            Some(_) => self.line_out(&sanitize(text)),
        }
    }

    /// Prints a page that the user asked for.
    pub(crate) fn page(&mut self, text: &str) {
        match self.screen {
            Some(_) => self.tell(ScreenUpdate::Printed(text.to_owned())),
            None => self.aside(text),
        }
    }

    /// Prints the rows of a table. On the screen, a row that is too long is cut.
    pub(crate) fn table(&mut self, rows: &[String]) {
        match self.screen {
            Some(_) => self.tell(ScreenUpdate::Table(rows.to_vec())),
            None => self.aside(&rows.join("\n")),
        }
    }

    /// Shows the end of a conversation that is opened again.
    pub(crate) fn past_turns(&mut self, past: PastTurns) {
        match self.screen {
            _ if past.is_empty() => {}
            Some(_) => self.tell(ScreenUpdate::Past(past)),
            None => self.aside(&past.short_text()),
        }
    }

    /// Prints a line beside the answer.
    pub(crate) fn aside(&mut self, text: &str) {
        if self.screen.is_some() {
            return self.tell(ScreenUpdate::Aside(text.to_owned()));
        }
        self.leave_prompt();
        self.close_line();
        self.printer.aside(format!("{text}\n"));
    }

    /// Prints a line from the program itself.
    pub(crate) fn note(&mut self, text: impl std::fmt::Display) {
        if self.screen.is_some() {
            return self.tell(ScreenUpdate::Note(text.to_string()));
        }
        self.aside(&sanitize(&format!("longhaul: {text}")));
    }

    /// Prints text beside the answer that is no whole line.
    pub(crate) fn raw_aside(&mut self, text: &str) {
        self.close_line();
        self.printer.aside(text);
    }

    /// Makes the screen give the terminal back.
    pub(crate) async fn give_back(&self) {
        if let Some(screen) = &self.screen {
            screen.end().await;
        }
    }

    /// Waits until everything is written, and returns why the answer could not be. It waits for a reader that has stopped
    /// reading until the next signal, and after a signal for a moment only.
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
        let grace = async {
            match code > exit::SIGNAL {
                true => tokio::time::sleep(DRAIN_TIMEOUT).await,
                false => std::future::pending().await,
            }
        };
        let ended = async {
            if code > exit::SIGNAL { signals.next_deliberate().await } else { signals.next().await }
        };
        tokio::select! {
            written = writing => Ok(written.ok().flatten()),
            number = ended => Err(exit::SIGNAL + number),
            () = grace => Ok(None),
        }
    }
}
