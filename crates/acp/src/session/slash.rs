//! The slash commands of an editor: those of the terminal that need no screen.

use longhaul_agent::{Request, RequestOutcome, Session, UserMessage, nothing_to_continue, nothing_to_retry};
use longhaul_transcript::format_number;
use serde_json::{Value, json};

use super::prompts::AwaitedEnd;
use super::{SessionTask, SlashEnd};
use crate::error::Result;
use crate::wire::ProtocolVersion;
use crate::wire::reply::StopReason;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlashCommand {
    Compact,
    Continue,
    Remember,
    Retry,
    Status,
}

/// A command and what follows its name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SlashLine {
    command: SlashCommand,
    words: String,
}

impl SlashLine {
    /// As the user typed it.
    fn text(&self) -> String {
        format!("/{} {}", self.command.name(), self.words).trim_end().to_owned()
    }
}

/// The outcome of a command.
pub(super) enum SlashOutcome {
    Said(String),
    /// The turn with this number ended.
    Turn(u64),
    /// The prompt is this message, with what MCP servers gave for it.
    Message(UserMessage),
}

impl SlashCommand {
    const ALL: [Self; 5] = [Self::Compact, Self::Continue, Self::Remember, Self::Retry, Self::Status];

    fn name(self) -> &'static str {
        match self {
            Self::Compact => "compact",
            Self::Continue => "continue",
            Self::Remember => "remember",
            Self::Retry => "retry",
            Self::Status => "status",
        }
    }

    fn help(self) -> &'static str {
        match self {
            Self::Compact => "Compact the context now",
            Self::Continue => "Continue an interrupted answer",
            Self::Remember => "Remember a text for later sessions, or what is new in this one",
            Self::Retry => "Retry the last turn if it failed",
            Self::Status => "Show the model, the turns and the context of this session",
        }
    }

    fn hint(self) -> Option<&'static str> {
        match self {
            Self::Compact => Some("what the summary should focus on"),
            Self::Remember => Some("what to remember, word for word"),
            Self::Continue | Self::Retry | Self::Status => None,
        }
    }
}

/// The commands, as the editor lists them.
pub(super) fn available_commands() -> Vec<Value> {
    let command = |command: SlashCommand| {
        let (name, description) = (command.name(), command.help());
        match command.hint() {
            Some(hint) => json!({"name": name, "description": description, "input": {"hint": hint}}),
            None => json!({"name": name, "description": description}),
        }
    };
    SlashCommand::ALL.map(command).to_vec()
}

/// Whether this is the name of a command.
pub(super) fn is_command(name: &str) -> bool {
    SlashCommand::ALL.iter().any(|command| command.name() == name)
}

/// The command that a prompt consists of. Any other text is for the model.
pub(super) fn parse(message: &UserMessage) -> Option<SlashLine> {
    let line = message.text.trim().strip_prefix('/').filter(|_| message.images.is_empty())?;
    let (name, words) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let command = SlashCommand::ALL.into_iter().find(|command| command.name() == name)?;
    let words = words.trim().to_owned();
    // A command that takes no arguments, with text after it, is a message.
    (words.is_empty() || command.hint().is_some()).then_some(SlashLine { command, words })
}

impl SessionTask {
    /// Carries out a command beside the task, which goes on showing what happens.
    pub(super) async fn start_slash(&mut self, id: &Value, line: SlashLine) -> Result<()> {
        self.begin().await?;
        self.follow_closely().await?;
        let status = self.status_text().await?;
        match self.version() {
            ProtocolVersion::V1 => self.prompts.push(id.clone(), AwaitedEnd::Slash),
            ProtocolVersion::V2 => self.accept_command(id, &line.text()).await,
        }
        let (session, ends, prompt) = (self.setup.session.clone(), self.slash_ends.0.clone(), id.clone());
        self.running_commands += 1;
        tokio::spawn(async move {
            let outcome = match line.command {
                SlashCommand::Status => Ok(SlashOutcome::Said(status)),
                _ => carry_out(&session, line).await,
            };
            let _ = ends.send(SlashEnd { prompt, outcome }).await;
        });
        Ok(())
    }

    /// Answers the prompt of a command.
    pub(super) async fn end_slash(&mut self, end: SlashEnd) -> Result<()> {
        let SlashEnd { prompt, outcome } = end;
        let is_cancelled = self.cancelled_commands > 0;
        self.running_commands = self.running_commands.saturating_sub(1);
        self.cancelled_commands = self.cancelled_commands.saturating_sub(1);
        // What the command did is shown before its prompt is answered.
        self.show_recorded().await?;
        let is_awaited = self.prompts.remove_command(&prompt);
        if self.version() == ProtocolVersion::V2 && !matches!(outcome, Ok(SlashOutcome::Message(_))) {
            let reason = if is_cancelled { StopReason::Cancelled } else { StopReason::EndTurn };
            return self.end_accepted_slash(&prompt, is_awaited, outcome, reason).await;
        }
        // The editor may have cancelled it.
        if !is_awaited {
            return Ok(());
        }
        let answer = match outcome {
            // Its end is not shown yet.
            Ok(SlashOutcome::Turn(turn)) if self.open_turn == Some(turn) => {
                self.prompts.push(prompt, AwaitedEnd::Turn(turn));
                return Ok(());
            }
            Ok(SlashOutcome::Message(message)) => match self.put_prompt(&prompt, &message).await {
                Ok(()) => return Ok(()),
                Err(error) => Err(error),
            },
            Ok(SlashOutcome::Turn(_)) => Ok(StopReason::EndTurn.reply()),
            Ok(SlashOutcome::Said(text)) => {
                self.remark(&text, "command").await;
                Ok(StopReason::EndTurn.reply())
            }
            Err(error) => Err(error),
        };
        self.setup.outbox.reply(&prompt, answer).await;
        Ok(())
    }

    /// Shows the outcome of a command in version 2, whose prompt has its answer already. A failure to attach something is the answer
    /// to the prompt.
    async fn end_accepted_slash(
        &mut self,
        prompt: &Value,
        is_awaited: bool,
        outcome: Result<SlashOutcome>,
        reason: StopReason,
    ) -> Result<()> {
        let text = match outcome {
            Err(error) if is_awaited => {
                self.setup.outbox.reply::<Value>(prompt, Err(error)).await;
                return Ok(());
            }
            // The end of its turn shows the state.
            Ok(SlashOutcome::Turn(_) | SlashOutcome::Message(_)) => return Ok(()),
            Ok(SlashOutcome::Said(text)) => text,
            Err(error) => error.to_string(),
        };
        self.remark(&text, "command").await;
        if self.open_turn.is_none() {
            self.show_state(json!({"state": "idle", "stopReason": reason})).await;
        }
        Ok(())
    }

    async fn status_text(&self) -> Result<String> {
        let (runtime, session) = (&self.setup.runtime, &self.setup.session);
        let state = session.state().await?;
        let report = runtime.context_report(session.key(), &state).await;
        let used = format_number(report.tokens());
        let context = match report.window {
            Some(window) => format!("{used} of {} tokens", format_number(window.tokens)),
            None => format!("{used} tokens"),
        };
        Ok(format!(
            "session: {}\nmodel: {}\npermission: {}\nturns: {}\ncontext: {context}",
            session.key(),
            report.model,
            self.options.mode,
            format_number(state.turn_count),
        ))
    }
}

async fn carry_out(session: &Session, line: SlashLine) -> Result<SlashOutcome> {
    let words = Some(line.words).filter(|words| !words.is_empty());
    let request = match (line.command, words) {
        (SlashCommand::Compact, focus) => Request::Compact(focus),
        (SlashCommand::Continue, _) => Request::Continue,
        (SlashCommand::Retry | SlashCommand::Status, _) => Request::Retry,
        (SlashCommand::Remember, Some(text)) => {
            session.remember(&text).await?;
            return Ok(SlashOutcome::Said("remembered".to_owned()));
        }
        (SlashCommand::Remember, None) => {
            let extracted = session.extract().await?;
            let text =
                if extracted.is_some() { "memory has read this session" } else { "nothing to remember" };
            return Ok(SlashOutcome::Said(text.to_owned()));
        }
    };
    let outcome = session.begin(request.clone()).outcome().await?;
    Ok(match outcome {
        RequestOutcome::Ended(ended) => SlashOutcome::Turn(ended.turn),
        RequestOutcome::Compacted(done) => SlashOutcome::Said(format!(
            "compacted: {} → {} tokens",
            format_number(done.before),
            format_number(done.after)
        )),
        RequestOutcome::NotCompacted(reason) => SlashOutcome::Said(format!("not compacted: {reason}")),
        _ => SlashOutcome::Said(match request {
            Request::Retry => nothing_to_retry(session.state().await?.last_outcome),
            Request::Continue => nothing_to_continue(),
            _ => "nothing to compact".to_owned(),
        }),
    })
}

#[cfg(test)]
#[path = "slash_tests.rs"]
mod tests;
