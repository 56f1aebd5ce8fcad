//! What follows from how a model call went: the step goes on, is asked again, another model stands in, or the turn ends.
//! Whatever it is, it is recorded together with the end of the attempt.

use std::pin::pin;
use std::sync::Arc;

use longhaul_model::{Class, Failure, Limit as Spending, Next, Spent, StopKind, Tries, Wait, WindowSource};
use longhaul_protocol::{
    AttemptEnded, AttemptId, EventKind, Item, Limit, ModelChanged, Note, SessionRecord, Usage, Warning,
};

use crate::apply::GIVEN_ONCE;
use crate::asking::Call;
use crate::attempt::{Ended, Heard};
use crate::decide::Ending;
use crate::state;
use crate::worker::{Attended, Heed, Step, Stopped, Worker};

/// What the model reads when its answer was cut.
const WAS_CUT: &str =
    "Your answer reached the limit of its length. Go on from exactly this point, without repeating anything.";
/// What the model reads when it only thought.
const SAY_SOMETHING: &str = "You have thought and said nothing. Answer now, or call a tool.";

impl Worker {
    /// Closes the attempt: what counts of it, what it cost, and what follows.
    pub(crate) async fn conclude(&mut self, call: &Call, heard: Heard) -> Step<()> {
        let Heard { ended, tokens, limits } = heard;
        let mut after = self.warnings(call);
        let (input, output, cached) = match tokens {
            Some(tokens) => (tokens.input, tokens.output, tokens.cached),
            None => (None, None, None),
        };
        if tokens.is_some() || limits.is_some() {
            let cost = tokens.and_then(|tokens| call.facts.prices.as_ref()?.cost(&tokens));
            let (estimated, limits) = (Some(call.estimated), limits.unwrap_or_default());
            let attempt = call.attempt;
            after.splice(
                ..0,
                [SessionRecord::Usage(Usage { attempt, input, output, cached, cost, estimated, limits })],
            );
        }
        after.extend(input.and_then(|counted| self.cut_prompt(call, counted)));
        match ended {
            Ended::Stopped(why) => {
                let kept = self.open_attempt().map_or(0, state::Attempt::kept_when_cancelled);
                let facts =
                    [vec![ended_with(call.attempt, kept, None, Some(why.to_owned()))], after].concat();
                self.commit(facts, vec![]).await
            }
            Ended::Failed(failure) => self.failed(call, failure, after).await,
            Ended::Complete { stop } => match stop.kind {
                StopKind::Refused => {
                    let said = self.open_attempt().map(state::Attempt::text).unwrap_or_default();
                    let said =
                        if said.trim().is_empty() { String::new() } else { format!(": {}", said.trim()) };
                    let message = format!(
                        "{} did not want to answer this ({}){said}; say it differently, or choose another model",
                        call.model.name(),
                        stop.word
                    );
                    let refused = Failure::new(Class::Refused, message);
                    self.discard(call, refused, after).await
                }
                StopKind::Length => self.cut_at_length(call, stop.word, after).await,
                StopKind::Finished => self.completed(call, stop.word, after).await,
            },
        }
    }

    fn open_attempt(&self) -> Option<&state::Attempt> {
        self.state.turn.as_ref()?.attempt.as_ref()
    }

    fn open_items(&self) -> &[Arc<Item>] {
        self.open_attempt().map_or(&[], |attempt| &attempt.blocks[..])
    }

    /// Things about the model that a person should know once.
    fn warnings(&self, call: &Call) -> Vec<SessionRecord> {
        let [no_tools, window_assumed] = GIVEN_ONCE;
        let mut warnings = Vec::new();
        let name = call.model.name();
        if !call.facts.tools
            && !self.equipment.tools.schemas.is_empty()
            && !self.state.warned.contains(no_tools)
        {
            warnings.push(warning(no_tools, format!("{name} can't call tools, and is asked without them")));
        }
        let assumed = call.facts.window.filter(|window| window.source == WindowSource::HostedDefault);
        if let Some(window) = assumed.filter(|_| !self.state.warned.contains(window_assumed)) {
            let text = format!(
                "nobody says how large the context of {name} is: {} tokens are assumed; set model.context_window",
                window.tokens
            );
            warnings.push(warning(window_assumed, text));
        }
        warnings
    }

    fn cut_prompt(&self, call: &Call, counted: u64) -> Option<SessionRecord> {
        let counting = self.state.counting.get(call.model.name())?;
        counting.calibration.shows_a_cut(call.estimated, counted).then(|| {
            let sent = counting.calibration.correct(call.estimated);
            let text = format!(
                "{} read {counted} of about {sent} tokens: its server cuts long prompts without a word; \
                 from here on its context is taken to be that small",
                call.model.name()
            );
            warning("prompt_cut", text)
        })
    }

    /// An answer that came to its end by itself.
    async fn completed(&mut self, call: &Call, word: String, after: Vec<SessionRecord>) -> Step<()> {
        let items = self.open_items();
        let kept = items.len();
        let only_thoughts = items.iter().all(|item| matches!(**item, Item::Reasoning { .. }));
        if only_thoughts && kept > 0 {
            return self.nudge(call, after).await;
        }
        if kept > 0 || self.asking.empty > 0 {
            let mut facts = vec![ended_with(call.attempt, kept, Some(word), None)];
            facts.extend(after);
            if kept == 0 {
                let text = format!("{} gave an answer without anything in it, twice", call.model.name());
                facts.push(warning("empty_answer", text));
            }
            return self.commit(facts, vec![]).await;
        }
        self.asking.empty += 1;
        let error = "an answer without anything in it".to_owned();
        let facts = [vec![ended_with(call.attempt, 0, Some(word), Some(error))], after].concat();
        self.commit(facts, vec![]).await
    }

    /// A model that only thought is asked once more, then nudged, then given up.
    async fn nudge(&mut self, call: &Call, after: Vec<SessionRecord>) -> Step<()> {
        self.asking.only_thoughts += 1;
        if self.asking.only_thoughts > 2 {
            let message =
                format!("{} only thinks, and says nothing; choose another model", call.model.name());
            return self.discard(call, Failure::new(Class::Empty, message), after).await;
        }
        let error = "thoughts without an answer".to_owned();
        let mut facts = [vec![ended_with(call.attempt, 0, None, Some(error))], after].concat();
        if self.asking.only_thoughts == 2 {
            facts.push(SessionRecord::Note(Note { text: SAY_SOMETHING.to_owned() }));
        }
        self.commit(facts, vec![]).await
    }

    /// An answer that reached its greatest length is not over: it goes on once, with a higher limit.
    async fn cut_at_length(&mut self, call: &Call, word: String, after: Vec<SessionRecord>) -> Step<()> {
        self.asking.cut += 1;
        let items = self.open_items();
        let only_thoughts = items.iter().all(|item| matches!(**item, Item::Reasoning { .. }));
        let has_calls = items.iter().any(|item| matches!(**item, Item::ToolCall { .. }));
        let kept = if only_thoughts { 0 } else { items.len() };
        let said = state::text_of(items);
        let attempt = call.attempt;
        let end = |kept: usize, error: Option<String>, goes_on: bool| {
            let kept = u32::try_from(kept).unwrap_or(u32::MAX);
            SessionRecord::AttemptEnded(AttemptEnded {
                attempt,
                kept,
                stop: Some(word.clone()),
                error,
                goes_on,
            })
        };
        let mut facts = Vec::new();
        if has_calls {
            facts.push(end(kept, None, false));
            facts.extend(after);
            let text = "the answer reached the limit of its length; what was complete of it counts";
            facts.push(warning("answer_length", text.to_owned()));
            return self.commit(facts, vec![]).await;
        }
        if self.asking.cut > 1 {
            let error = "the answer reached the limit of its length, also with a higher one; \
                         raise model.max_output_tokens, or send anything to go on";
            let carried = self.state.turn.as_ref().map(|turn| turn.carried.clone()).unwrap_or_default();
            let nothing = (kept == 0).then(|| "thoughts without an answer".to_owned());
            facts.push(end(kept, nothing, false));
            facts.extend(after);
            let ending = Ending { text: Some(carried + &said), ..Ending::limit(Limit::Tokens, error) };
            return self.end_turn(facts, ending).await;
        }
        if kept == 0 {
            facts.push(end(
                0,
                Some("it reached the limit of its length before it said anything".to_owned()),
                false,
            ));
            facts.extend(after);
        } else {
            facts.push(end(kept, None, true));
            facts.extend(after);
            facts.push(SessionRecord::Note(Note { text: WAS_CUT.to_owned() }));
        }
        self.commit(facts, vec![]).await
    }

    /// An attempt that failed. With a complete call the step ends there; without one the same is asked again, if that may help.
    async fn failed(&mut self, call: &Call, failure: Failure, mut after: Vec<SessionRecord>) -> Step<()> {
        let kept = self.open_attempt().map_or(0, state::Attempt::kept_when_broken);
        if kept > 0 {
            let text = format!("{failure}; what was complete of it counts");
            after.splice(..0, [ended_with(call.attempt, kept, None, Some(failure.message))]);
            after.push(warning("answer_cut", text));
            return self.commit(after, vec![]).await;
        }
        if failure.class == Class::NoTools && !call.request.tools.is_empty() {
            after.splice(..0, [ended_with(call.attempt, 0, None, Some(failure.message))]);
            return self.commit(after, vec![]).await;
        }
        self.discard(call, failure, after).await
    }

    /// Nothing of an attempt counts: wait and ask again, ask another model, or end the turn.
    async fn discard(&mut self, call: &Call, failure: Failure, after: Vec<SessionRecord>) -> Step<()> {
        let mut facts = vec![ended_with(call.attempt, 0, None, Some(failure.message.clone()))];
        facts.extend(after);
        let policy = self.runtime.config.patience.retry(&self.runtime.config.settings.retry);
        let tries = self.asking.tries.get_or_insert_with(|| Tries::new(policy));
        match tries.failed(&failure, fastrand::f64()) {
            Next::Wait(wait) => {
                self.commit(facts, vec![]).await?;
                self.wait(wait).await
            }
            Next::GiveUp(spent) => {
                if may_stand_in(&spent)
                    && let Some((from, to)) = self.asking.stand_in()
                {
                    let reason = spent.to_string();
                    facts.push(SessionRecord::ModelChanged(ModelChanged { from, to, reason }));
                    return self.commit(facts, vec![]).await;
                }
                let code = Some(spent.last.class.code().to_owned());
                // In one append: an attempt that failed for good is never on disk without the end of its turn.
                self.end_turn(facts, Ending { code, ..Ending::failed(spent.to_string()) }).await
            }
        }
    }

    /// Waits before the next try. It is shown before it begins, and ends at once when somebody says so.
    async fn wait(&mut self, wait: Wait) -> Step<()> {
        if self.policy.ends_the_turn() || self.state.cancelled() {
            return Ok(());
        }
        let Wait { class, attempt, of, delay, reason } = wait;
        let hurried = self.state.turn.as_ref().map_or(0, |turn| turn.hurried);
        let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        let class = class.code().to_owned();
        self.show(EventKind::RetryWait { class, attempt, of, delay_ms, reason });
        let mut sleep = pin!(tokio::time::sleep(delay));
        match self.attend(&mut sleep, Heed::Hurry { hurried }, None).await? {
            Attended::Suspended => Err(Stopped::Suspended),
            Attended::Done(()) | Attended::Called | Attended::Due => Ok(()),
        }
    }
}

/// Another model is asked when this one had its chances, or when nothing more is paid for.
fn may_stand_in(spent: &Spent) -> bool {
    let had_its_chances = matches!(
        spent.limit,
        Some(
            Spending::Tries
                | Spending::Waiting
                | Spending::ServerDelay(_)
                | Spending::Offline
                | Spending::SameWords
        )
    );
    had_its_chances || spent.last.class == Class::Quota
}

fn warning(code: &str, text: String) -> SessionRecord {
    SessionRecord::Warning(Warning { code: code.to_owned(), text })
}

pub(crate) fn ended_with(
    attempt: AttemptId,
    kept: usize,
    stop: Option<String>,
    error: Option<String>,
) -> SessionRecord {
    let kept = u32::try_from(kept).unwrap_or(u32::MAX);
    SessionRecord::AttemptEnded(AttemptEnded { attempt, kept, stop, error, goes_on: false })
}
