//! `/session`, `/save` and `/fork`.

use std::path::Path;

use anyhow::anyhow;
use longhaul_agent::housekeeping::Mode;
use longhaul_journal::{pin_session, trash_session, unpin_session};
use longhaul_protocol::PrintablePath;
use tokio::sync::oneshot;

use super::tasks::TurnPhase;
use crate::commands::fork::{fork_as, forked_lines};
use crate::commands::save::check_saved;
use crate::commands::sessions::export::{describe_export, export_to};
use crate::commands::sessions::list::{SessionFilter, SessionSummary, ago, list, now, table};
use crate::commands::sessions::overview::{SessionOverview, session_lines};
use crate::commands::sessions::prune::pruned_lines;
use crate::commands::sessions::rename::rename_to;
use crate::output_file::destination;
use crate::session_lookup::find_session;
use crate::suggested_command;
use crate::tui::chat::line_source::LineSource;
use crate::tui::chat::{Chat, ChatStep};
use crate::tui::{PickerItem, ScreenUpdate};

const USAGE: &str = "/session [list [WORDS]|resume [KEY]|fork [SEQ]|rename KEY|pin|unpin|delete|export FILE|prune [--dry-run]]";
const FORK_USAGE: &str = "a session is forked at a record: /fork SEQ, as longhaul sessions show numbers them";
const NEW: &str = "this session is new: nothing of it is stored yet";

impl Chat<'_> {
    /// `/session …`.
    pub(crate) async fn session_command(
        &mut self,
        arguments: &str,
        phase: TurnPhase,
    ) -> anyhow::Result<ChatStep> {
        let (command, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        let rest = rest.trim();
        let is_for_later = matches!(command, "resume" | "fork" | "delete" | "rename" | "prune");
        if is_for_later && phase == TurnPhase::DuringTurn {
            self.printer.note(format!("/session {command} is for between turns; Ctrl-C ends this one"));
            return Ok(ChatStep::Line);
        }
        let next = match (command, rest) {
            ("resume", key) => self.resume_session(key).await,
            ("fork", at) => self.fork(at).await,
            ("rename", key) if !key.is_empty() => self.rename(key).await,
            ("delete", "") => self.delete().await,
            (command, rest) => self.session_subcommand(command, rest).await.map(|()| ChatStep::Line),
        };
        self.note_error(next)
    }

    /// The subcommands that stay in the present session.
    async fn session_subcommand(&mut self, command: &str, rest: &str) -> anyhow::Result<()> {
        let (journal, key) = (self.runtime.journal(), self.session.key().to_owned());
        match (command, rest) {
            ("pin" | "unpin", "") | ("export", _) if self.session.id().is_none() => self.printer.note(NEW),
            ("pin", "") => {
                pin_session(&*journal, &key).await?;
                self.printer.note(format!("{key} is pinned: no retention touches it"));
            }
            ("unpin", "") => {
                unpin_session(&*journal, &key).await?;
                self.printer.note(format!("{key} is not pinned any more"));
            }
            ("", "") => self.show_session().await?,
            ("list", words) => match list(&*journal, words, SessionFilter::Usual).await? {
                listed if listed.is_empty() => self.printer.note("no session has that"),
                listed => self.printer.page(&table(&listed, now()).join("\n")),
            },
            ("export", file) if !file.is_empty() => {
                let work_dir = self.session.state().await?.created.and_then(|created| created.work_dir);
                let path = destination(&self.globals.home_dir()?, work_dir.as_deref(), Path::new(file))?;
                let exported = export_to(&*journal, &key, &path).await?;
                self.printer.note(format!("exported {} to {}", describe_export(&exported), path.printable()));
            }
            ("prune", "" | "--dry-run") => {
                let mode = if rest.is_empty() { Mode::ForReal } else { Mode::DryRun };
                let pruning = self.runtime.prune(mode).await?;
                self.printer.page(&pruned_lines(&pruning, mode).join("\n"));
            }
            _ => self.printer.note(format!("that is not how it is used: {USAGE}")),
        }
        Ok(())
    }

    /// S3: `/session`.
    async fn show_session(&mut self) -> anyhow::Result<()> {
        let journal = self.runtime.journal();
        let about = match journal.session(self.session.key()).await? {
            Some(entry) => Some(SessionOverview::of(&*journal, &entry).await?),
            None => None,
        };
        let status = self.status().await?;
        self.printer.page(&session_lines(&status, about.as_ref()).join("\n"));
        Ok(())
    }

    /// `/save`.
    pub(crate) async fn save_command(&mut self) -> anyhow::Result<()> {
        let journal = self.runtime.journal();
        let entry = journal.session(self.session.key()).await?.ok_or_else(|| anyhow!(NEW))?;
        let saved = check_saved(&*journal, &entry).await?;
        self.printer.page(&saved.lines().join("\n"));
        Ok(())
    }

    fn require_stored(&self) -> anyhow::Result<()> {
        if self.session.id().is_none() { Err(anyhow!(NEW)) } else { Ok(()) }
    }

    /// `/session resume [KEY]`; without a key, one is chosen from a list.
    async fn resume_session(&mut self, key: &str) -> anyhow::Result<ChatStep> {
        let key = match key {
            "" => match self.pick_session().await? {
                Some(key) => key,
                None => return Ok(ChatStep::Line),
            },
            key => find_session(&*self.runtime.journal(), key).await?.key,
        };
        if key == self.session.key() {
            self.printer.note(format!("this is {key} already"));
            return Ok(ChatStep::Line);
        }
        self.switch_to(&key).await
    }

    /// Lets the user pick a session from a list.
    async fn pick_session(&mut self) -> anyhow::Result<Option<String>> {
        let listed = list(&*self.runtime.journal(), "", SessionFilter::Usual).await?;
        let LineSource::Screen(screen) = &self.lines else {
            self.printer.page(&table(&listed, now()).join("\n"));
            self.printer.note("which one? /session resume KEY");
            return Ok(None);
        };
        let item = |listed: &SessionSummary| {
            let entry = listed.entry();
            let used = entry.last_at.map(|at| ago(now(), at)).unwrap_or_default();
            PickerItem {
                key: entry.key.clone(),
                line: format!("{}  {used}", entry.key),
                detail: listed.title().to_owned(),
            }
        };
        let (title, choices) = ("Go on with which session?".to_owned(), listed.iter().map(item).collect());
        let (answer, chosen) = oneshot::channel();
        screen.handle().send(ScreenUpdate::Pick { title, choices, answer });
        tokio::select! {
            biased;
            number = self.signals.next() => {
                self.suspended = Some(number);
                Ok(None)
            }
            chosen = chosen => {
                let chosen = chosen.ok().flatten().and_then(|index| listed.get(index));
                Ok(chosen.map(|chosen| chosen.entry().key.clone()))
            }
        }
    }

    /// `/fork [SEQ]`: the conversation goes on in the copy.
    pub(crate) async fn fork(&mut self, at: &str) -> anyhow::Result<ChatStep> {
        self.require_stored()?;
        let at = match at {
            "" => None,
            at => Some(at.parse::<u64>().map_err(|_| anyhow!(FORK_USAGE))?),
        };
        let before = self.session.key().to_owned();
        let forked = fork_as(&*self.runtime.journal(), &before, at, None).await?;
        let lines = forked_lines(&before, &forked, &self.suggest_chat_of(&forked.key));
        self.printer.page(&lines.join("\n"));
        self.switch_to(&forked.key).await
    }

    async fn rename(&mut self, to: &str) -> anyhow::Result<ChatStep> {
        self.require_stored()?;
        // The session is opened again under its new key.
        self.session.release().await;
        rename_to(&*self.runtime.journal(), self.session.key(), to).await?;
        self.switch_to(to).await
    }

    /// `/session delete`: into the trash; the conversation goes on in a new one.
    async fn delete(&mut self) -> anyhow::Result<ChatStep> {
        self.require_stored()?;
        let key = self.session.key().to_owned();
        self.session.release().await;
        trash_session(&*self.runtime.journal(), &key).await?;
        let restore = suggested_command::command(self.globals, &["sessions", "restore", &key]);
        self.printer.note(format!("{key} is in the trash for 14 days: {restore}"));
        self.switch_to_new().await
    }
}
