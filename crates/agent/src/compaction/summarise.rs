//! Having a summary written: one model call if it is valid at its first answer.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use longhaul_context::{Form, Material, ReadSummary, Written, ask_for_summary, estimate, read_summary};
use longhaul_journal::Page;
use longhaul_model::{
    Class, Facts, Model, Next, Purpose, RefusedSize, Request, StopKind, Tries, Whole, hear,
};
use longhaul_protocol::{
    EventKind, InboxRecord, Item, JoinMode, OrderKind, Role, SessionRecord, StreamName, Usage, Warning,
};

use crate::compaction::plan::CompactionTrigger;
use crate::turn::request::room_for_answer;
use crate::worker::wait::Attended;
use crate::worker::{Step, Worker};

/// Of what the model has room for, so many tenths are used: an estimate is an estimate.
const USED_TENTHS: u64 = 9;
/// What is no summary, or does not look like a whole one, is asked for once more.
const WRONG_ANSWERS: u32 = 1;
/// Prose with fewer words is no summary.
const FEWEST_WORDS: usize = 8;
/// A request that is too long after all is halved so often.
const HALVINGS: u32 = 3;

/// What came of it.
pub(super) enum Summarised {
    Written(Box<Written>),
    Failed(String),
    /// Summaries are turned off.
    NotWanted,
    /// Somebody wants the turn to end, or came while nobody waited.
    Stopped,
    Suspended,
}

/// What is asked of whom, as it changes from try to try.
struct Asking {
    model: Arc<dyn Model>,
    facts: Facts,
    form: Form,
    /// How many tokens the request may have, before anything is learnt.
    most: u64,
    answer: u64,
}

impl Worker {
    /// Has everything since the preface summarised, together with the summary before.
    pub(super) async fn summarise(
        &mut self,
        trigger: CompactionTrigger,
        focus: Option<&str>,
        usages: &mut Vec<Usage>,
        after: &mut Vec<SessionRecord>,
    ) -> Step<Summarised> {
        if self.policy.limits.left_today_nano == Some(0) {
            return Ok(Summarised::Failed("limits.cost_per_day is reached".to_owned()));
        }
        let mut models = self.summarisers(after).into_iter();
        let mut last = "no model could be asked".to_owned();
        while let Some(model) = models.next() {
            match self.summarise_with(model.clone(), trigger, focus, usages).await? {
                Summarised::Failed(reason) => last = reason,
                other => return Ok(other),
            }
            if models.len() > 0 {
                self.warn_of_summary_model(after, &format!("{} failed: {last}", model.name()));
            }
        }
        Ok(Summarised::Failed(last))
    }

    /// The model that is set for summaries, then the session's own.
    fn summarisers(&mut self, after: &mut Vec<SessionRecord>) -> Vec<Arc<dyn Model>> {
        let own = match self.state.turn {
            Some(_) if !self.has_other_model() => self.asking.model(),
            _ => self.runtime.lineup().0[0].clone(),
        };
        match self.runtime.summary_model() {
            None => vec![own],
            Some(Ok(model)) if model.name() == own.name() => vec![own],
            Some(Ok(model)) => vec![model, own],
            Some(Err(error)) => {
                self.warn_of_summary_model(after, &error.to_string());
                vec![own]
            }
        }
    }

    fn warn_of_summary_model(&self, after: &mut Vec<SessionRecord>, reason: &str) {
        let code = "summary_model";
        if !self.state.given_warnings.contains(code) {
            let text = format!(
                "the model for summaries (context.summary_model) can't be used, and the session's own is asked: {reason}"
            );
            after.push(SessionRecord::Warning(Warning::new(code, text)));
        }
    }

    async fn summarise_with(
        &mut self,
        model: Arc<dyn Model>,
        trigger: CompactionTrigger,
        focus: Option<&str>,
        usages: &mut Vec<Usage>,
    ) -> Step<Summarised> {
        let facts = {
            let mut asked = model.facts();
            match self.attend_to_cancels(&mut asked, trigger).await? {
                Attended::Done(facts) => facts,
                Attended::Called | Attended::Due => return Ok(Summarised::Stopped),
                Attended::Suspended => return Ok(Summarised::Suspended),
            }
        };
        let mut asking = self.how_to_ask(model, facts);
        let settings = &self.runtime.config.settings.retry;
        let policy = self.runtime.config.patience.retry(settings).in_the_background();
        let mut tries = Tries::new(policy);
        let (mut wrong, mut halved) = (0, 0);
        loop {
            let request = self.summary_request(&asking, focus);
            let prompt = estimate(&request.system, &request.tools, &request.items);
            let heard = {
                let mut hearing = Box::pin(hear(&*asking.model, request, &asking.facts));
                match self.attend_to_cancels(&mut hearing, trigger).await? {
                    Attended::Done(heard) => heard,
                    Attended::Called | Attended::Due => return Ok(Summarised::Stopped),
                    Attended::Suspended => return Ok(Summarised::Suspended),
                }
            };
            let usage = heard.usage;
            if usage.input.is_some() || usage.output.is_some() || !usage.limits.is_empty() {
                usages.push(usage);
            }
            let failure = match heard.answer {
                Ok(Whole { items, stop }) => {
                    let read = read_summary(&items);
                    let is_whole = stop != StopKind::Length && matches!(read, Ok(ReadSummary::InForm(_)));
                    // Who does not get the call right, talks instead or came to no end may still write it down. Who only ever writes
                    // prose is believed then: else there would be no summary of a small model.
                    if !is_whole && wrong < WRONG_ANSWERS {
                        wrong += 1;
                        asking.form = Form::Text;
                        continue;
                    }
                    return Ok(match read {
                        Ok(ReadSummary::Prose(written)) if is_too_brief(&written.summary.notes) => {
                            let name = asking.model.name();
                            Summarised::Failed(format!("{name} wrote no summary, but a few words"))
                        }
                        Ok(ReadSummary::InForm(written) | ReadSummary::Prose(written)) => {
                            Summarised::Written(Box::new(written))
                        }
                        Err(reason) => {
                            let name = asking.model.name();
                            Summarised::Failed(format!("{name} wrote no summary: {reason}"))
                        }
                    });
                }
                Err(failure) => failure,
            };
            match failure.class {
                Class::NoTools if asking.form == Form::Call => asking.form = Form::Text,
                Class::TooLong if halved < HALVINGS => {
                    halved += 1;
                    let size = RefusedSize { prompt, answer: asking.answer };
                    match asking.model.correct_limits(&failure, size).await {
                        Some(_) => {
                            let facts = asking.model.facts().await;
                            let corrected = self.how_to_ask(asking.model.clone(), facts);
                            asking = Asking {
                                form: asking.form,
                                most: corrected.most.min(asking.most),
                                ..corrected
                            };
                        }
                        None => asking.most /= 2,
                    }
                }
                _ => match tries.failed(&failure, fastrand::f64()) {
                    Next::GiveUp(spent) => {
                        let reason = self.runtime.redactor.redact(&spent.to_string()).into_owned();
                        return Ok(Summarised::Failed(reason));
                    }
                    Next::Wait(wait) => {
                        let delay_ms = u64::try_from(wait.delay.as_millis()).unwrap_or(u64::MAX);
                        let class = wait.class.code().to_owned();
                        let (attempt, of, reason) = (wait.attempt, wait.of, wait.reason);
                        let reason = self.runtime.redactor.redact(&reason).into_owned();
                        // Counted before the wait is shown: whoever sees it and is in a hurry at once means this wait.
                        let before = hurries(&self.waiting_in_inbox().await);
                        self.show(EventKind::RetryWait { class, attempt, of, delay_ms, reason });
                        let mut sleep = pin!(tokio::time::sleep(wait.delay));
                        let is_hurried = |waiting: &[InboxRecord]| hurries(waiting) > before;
                        match self.attend_to(&mut sleep, trigger, is_hurried).await? {
                            Attended::Done(()) | Attended::Due => {}
                            Attended::Called => return Ok(Summarised::Stopped),
                            Attended::Suspended => return Ok(Summarised::Suspended),
                        }
                    }
                },
            }
        }
    }

    fn how_to_ask(&self, model: Arc<dyn Model>, facts: Facts) -> Asking {
        let settings = &self.runtime.config.settings.model;
        let name = model.name();
        let is_own = name == self.policy.context.model;
        let window = facts.window.map(|window| window.tokens);
        let room = self
            .policy
            .context
            .room
            .filter(|room| is_own && window.is_none_or(|window| room.window <= window));
        let answer = room_for_answer(settings.max_output_tokens, &facts, window);
        let (usable, answer) = match room {
            Some(room) => (Some(room.usable()), room.answer),
            None => (window.map(|window| window.saturating_sub(answer)), answer),
        };
        let calibration = self.state.calibration(name);
        let most = usable.map_or(u64::MAX, |usable| calibration.largest_within(usable) / 10 * USED_TENTHS);
        let tools = facts.tools && !(is_own && self.asking.has_no_tools);
        let form = if tools { Form::Call } else { Form::Text };
        Asking { model, facts, form, most, answer }
    }

    fn summary_request(&self, asking: &Asking, focus: Option<&str>) -> Request {
        let items = &self.state.items[self.state.preface_len..];
        let material = Material { previous: self.state.summary.as_ref(), items, focus };
        let asked = ask_for_summary(&material, asking.form, asking.most);
        let summaries_before = usize::try_from(self.state.compaction.count).unwrap_or(usize::MAX);
        Request {
            system: asked.system.into(),
            tools: asked.tools.into(),
            items: vec![Arc::new(Item::Text { role: Role::User, text: asked.text })],
            max_output: Some(asking.answer),
            purpose: Purpose::Summary { summaries_before },
            ..Request::default()
        }
    }

    /// Waits for something, keeps the lease, and takes nothing from the inbox: what comes waits there. Only whether somebody wants the
    /// turn to end is looked at, and where nobody waits, whether somebody came.
    async fn attend_to_cancels<T>(
        &mut self,
        work: &mut (impl Future<Output = T> + Unpin),
        trigger: CompactionTrigger,
    ) -> Step<Attended<T>> {
        self.attend_to(work, trigger, |_| false).await
    }

    /// The same; `Due`, if what stands in the inbox says so.
    async fn attend_to<T>(
        &mut self,
        work: &mut (impl Future<Output = T> + Unpin),
        trigger: CompactionTrigger,
        is_due: impl Fn(&[InboxRecord]) -> bool,
    ) -> Step<Attended<T>> {
        loop {
            self.look_at_the_time();
            let waiting = self.waiting_in_inbox().await;
            if self.policy.must_end_turn() || self.is_called_away(trigger, &waiting) {
                return Ok(Attended::Called);
            }
            if is_due(&waiting) {
                return Ok(Attended::Due);
            }
            let ends_by = self.turn_ends_by;
            let until = async {
                match ends_by {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            let is_pulse = tokio::select! {
                biased;
                _ = self.suspend.wait_for(|suspended| *suspended) => return Ok(Attended::Suspended),
                () = self.shared.came.notified() => false,
                _ = self.pulse.tick() => true,
                () = until => false,
                done = &mut *work => return Ok(Attended::Done(done)),
            };
            if is_pulse {
                self.renew().await?;
            }
        }
    }

    /// What stands in the inbox. What can't be read is taken, or told, when this is over.
    async fn waiting_in_inbox(&self) -> Vec<InboxRecord> {
        let (inbox, mut waiting, mut next) = (StreamName::inbox(self.id), Vec::new(), self.inbox_read + 1);
        while let Ok(page) = self.runtime.journal.read(&inbox, next, Page::default()).await {
            let Some(last) = page.last() else { break };
            next = last.seq + 1;
            waiting.extend(page.iter().filter_map(|record| InboxRecord::decode(record).ok()));
        }
        waiting
    }

    /// Whether this should give way to something.
    fn is_called_away(&self, trigger: CompactionTrigger, waiting: &[InboxRecord]) -> bool {
        if trigger == CompactionTrigger::Idle && (!waiting.is_empty() || !self.shared.is_asked_as_idle()) {
            return true;
        }
        let has_turn = self.state.turn.is_some();
        waiting.iter().any(|record| match record {
            InboxRecord::Order(order) => order.kind == OrderKind::Cancel,
            InboxRecord::Input(input) => has_turn && input.mode == JoinMode::Interrupt,
            InboxRecord::Unknown { .. } => false,
        })
    }
}

/// Whether that can't be a summary of anything: a refusal, a greeting.
fn is_too_brief(prose: &str) -> bool {
    prose.split_whitespace().count() < FEWEST_WORDS
}

/// M6: how often somebody wants a wait to end.
fn hurries(waiting: &[InboxRecord]) -> usize {
    let hurries =
        |record: &&InboxRecord| matches!(record, InboxRecord::Order(order) if order.kind == OrderKind::Retry);
    waiting.iter().filter(hurries).count()
}
