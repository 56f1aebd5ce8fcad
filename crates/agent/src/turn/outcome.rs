//! What follows from how a model call went: the step goes on, is asked again, another model stands in, or the turn ends.
//! Whatever it is, it is recorded together with the end of the attempt.

use std::pin::pin;
use std::sync::Arc;

use longhaul_model::{
    Class, CorrectedLimits, Failure, Limit as Spending, LongDelays, Next, RefusedSize, Spent, StopKind,
    Tries, Wait, WindowSource,
};
use longhaul_protocol::{
    At, AttemptEnded, AttemptId, EventKind, Item, Limit, ModelChanged, Note, SessionRecord, Usage, Warning,
};

use crate::clock::now;
use crate::session::apply::{GIVEN_ONCE, ROLE_ORDER};
use crate::session::decide::TurnEnding;
use crate::session::state;
use crate::turn::attempt::{Ended, Heard};
use crate::turn::request::Call;
use crate::worker::wait::{Attended, Heed};
use crate::worker::{Step, Stopped, Worker};

/// So much of a refusal stands in the error.
const REFUSAL_SHOWN: usize = 300;
/// How often a step corrects what is believed about the size of the context. Each correction makes it smaller.
const MAX_CORRECTIONS: u32 = 4;
/// What the model reads when its answer was cut.
const WAS_CUT: &str =
    "Your answer reached the limit of its length. Go on from exactly this point, without repeating anything.";
/// What the model reads when it only thought.
const SAY_SOMETHING: &str = "You have thought and said nothing. Answer now, or call a tool.";

impl Worker {
    /// Closes the attempt: what counts of it, what it cost, and what follows.
    pub(crate) async fn conclude(&mut self, call: &Call, heard: Heard) -> Step<()> {
        let Heard { ended, tokens, limits } = heard;
        let limits = match &ended {
            Ended::Failed(failure) if !failure.limits.is_empty() => Some(failure.limits.clone()),
            _ => limits,
        };
        let mut after = self.warnings(call);
        if tokens.is_some() || limits.is_some() {
            let counted = tokens.unwrap_or_default().usage(call.attempt, &call.facts);
            let (estimated, limits) = (Some(call.estimated), limits.unwrap_or_default());
            let usage = Usage { estimated, window: self.asking.window, limits, ..counted };
            after.splice(..0, [SessionRecord::Usage(usage)]);
        }
        let input = tokens.and_then(|tokens| tokens.input);
        after.extend(input.and_then(|counted| self.cut_prompt(call, counted)));
        match ended {
            Ended::Stopped(why) => {
                let mut facts = self.stopped_attempt(why);
                facts.extend(after);
                self.commit(facts, vec![]).await
            }
            Ended::Failed(failure) => self.failed(call, failure, after).await,
            Ended::Complete { stop } => match stop.kind {
                StopKind::Refused => {
                    let said = self.open_attempt().map(state::Attempt::text).unwrap_or_default();
                    let words: String = said.trim().chars().take(REFUSAL_SHOWN).collect();
                    let said = if words.is_empty() { String::new() } else { format!(": {words}") };
                    let message = format!(
                        "{} did not want to answer this ({}){said}; say it differently, or choose another model",
                        call.model.name(),
                        stop.word
                    );
                    let refused = Failure::new(Class::Refused, message);
                    self.discard(call, Some(stop.word), refused, after).await
                }
                StopKind::Length => self.cut_at_length(call, stop.word, after).await,
                StopKind::Finished => self.completed(call, stop.word, after).await,
            },
        }
    }

    fn open_attempt(&self) -> Option<&state::Attempt> {
        self.state.turn.as_ref()?.attempt.as_ref()
    }

    /// The end of the attempt that is open, in a turn that ends here. What the user interrupted stays as far as it came.
    pub(crate) fn stopped_attempt(&self, why: &str) -> Vec<SessionRecord> {
        let Some(attempt) = self.open_attempt() else { return vec![] };
        let block = attempt.interrupted_block().filter(|_| self.state.is_cancelled());
        let kept = match block {
            Some(_) => attempt.blocks_kept_on_cancel(),
            None => attempt.blocks_kept_on_stop(),
        };
        let ended = ended_with(attempt.id, kept, None, Some(why.to_owned()));
        block.map(SessionRecord::Block).into_iter().chain([ended]).collect()
    }

    fn open_items(&self) -> &[Arc<Item>] {
        self.open_attempt().map_or(&[], |attempt| &attempt.blocks[..])
    }

    /// Things about the model that a person should know once.
    fn warnings(&self, call: &Call) -> Vec<SessionRecord> {
        let [no_tools, window_assumed, cost_unknown, ..] = GIVEN_ONCE;
        let mut warnings = Vec::new();
        let name = call.model.name();
        if !call.facts.tools
            && !self.equipment.tools.schemas.is_empty()
            && !self.state.given_warnings.contains(no_tools)
        {
            warnings.push(warning(no_tools, format!("{name} can't call tools, and is asked without them")));
        }
        let limits = &self.runtime.config.settings.limits;
        let is_limited = limits.cost_per_turn > 0.0 || limits.cost_per_day > 0.0;
        if is_limited && call.facts.prices.is_none() && !self.state.given_warnings.contains(cost_unknown) {
            let text = format!(
                "nobody says what {name} costs, so the limits of cost don't hold for it; add prices in providers.toml"
            );
            warnings.push(warning(cost_unknown, text));
        }
        let assumed = call.facts.window.filter(|window| window.source == WindowSource::HostedDefault);
        if let Some(window) = assumed.filter(|_| !self.state.given_warnings.contains(window_assumed)) {
            let text = format!(
                "nobody says how large the context of {name} is: {} tokens are assumed; set model.context_window",
                window.tokens
            );
            warnings.push(warning(window_assumed, text));
        }
        warnings
    }

    fn cut_prompt(&self, call: &Call, counted: u64) -> Option<SessionRecord> {
        let counting = self.state.token_counts.get(call.model.name())?;
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
        let kept = if items.iter().any(|item| says_something(item)) { items.len() } else { 0 };
        let has_thoughts = items.iter().any(|item| matches!(**item, Item::Reasoning { .. }));
        if kept == 0 && has_thoughts {
            return self.nudge(call, word, after).await;
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
    async fn nudge(&mut self, call: &Call, word: String, after: Vec<SessionRecord>) -> Step<()> {
        self.asking.only_thoughts += 1;
        if self.asking.only_thoughts > 2 {
            let message =
                format!("{} only thinks, and says nothing; choose another model", call.model.name());
            return self.discard(call, Some(word), Failure::new(Class::Empty, message), after).await;
        }
        let error = "thoughts without an answer".to_owned();
        let mut facts = [vec![ended_with(call.attempt, 0, Some(word), Some(error))], after].concat();
        if self.asking.only_thoughts == 2 {
            facts.push(SessionRecord::Note(Note::new(SAY_SOMETHING)));
        }
        self.commit(facts, vec![]).await
    }

    /// An answer that reached its greatest length is not over: it goes on once, with a higher limit.
    async fn cut_at_length(&mut self, call: &Call, word: String, after: Vec<SessionRecord>) -> Step<()> {
        self.asking.cut += 1;
        let is_first = self.asking.cut == 1;
        let items = self.open_items();
        let first_call = items.iter().position(|item| matches!(**item, Item::ToolCall { .. }));
        let before_calls = &items[..first_call.unwrap_or(items.len())];
        let says = before_calls.iter().any(|item| says_something(item));
        let kept = if says { before_calls.len() } else { 0 };
        // Calls that are whole are run. One that was cut comes to an error, and is asked for again with more room; once.
        if first_call.is_some() && (is_first || items.last().is_none_or(|item| !is_cut_call(item))) {
            let mut facts = vec![ended_with(call.attempt, items.len(), Some(word), None)];
            facts.extend(after);
            let text = "the answer reached the limit of its length; what was complete of it counts";
            facts.push(warning("answer_length", text.to_owned()));
            return self.commit(facts, vec![]).await;
        }
        let said = state::text_of(before_calls);
        let nothing =
            (kept == 0).then(|| "it reached the limit of its length before it said anything".to_owned());
        let goes_on = is_first && kept > 0;
        let ended = AttemptEnded {
            attempt: call.attempt,
            kept: u32::try_from(kept).unwrap_or(u32::MAX),
            stop: Some(word),
            error: nothing,
            goes_on,
            too_long: None,
        };
        let mut facts = [vec![SessionRecord::AttemptEnded(ended)], after].concat();
        if !is_first {
            let error = "the answer reached the limit of its length, also with a higher one; \
                         raise model.max_output_tokens, or send anything to go on";
            let carried =
                self.state.turn.as_ref().map(|turn| turn.text_before_cut.clone()).unwrap_or_default();
            let ending =
                TurnEnding { text: Some(carried + &said), ..TurnEnding::limit(Limit::Tokens, error) };
            return self.end_turn(facts, ending).await;
        }
        if goes_on {
            facts.push(SessionRecord::Note(Note::new(WAS_CUT)));
        }
        self.commit(facts, vec![]).await
    }

    /// An attempt that failed. With a complete call the step ends there; without one the same is asked again, if that may help.
    async fn failed(&mut self, call: &Call, failure: Failure, mut after: Vec<SessionRecord>) -> Step<()> {
        let kept = match failure.class {
            // Nothing of an answer that is none counts.
            Class::TooLarge => 0,
            _ => self.open_attempt().map_or(0, state::Attempt::blocks_kept_on_failure),
        };
        if kept > 0 {
            let text = format!("{failure}; what was complete of it counts");
            after.splice(..0, [ended_with(call.attempt, kept, None, Some(failure.message))]);
            after.push(warning("answer_cut", text));
            return self.commit(after, vec![]).await;
        }
        // What the model does not take is asked for once more without it.
        let lacks_tools = failure.class == Class::NoTools && !call.request.tools.is_empty();
        let is_raised = call.request.max_output > Some(self.usual_room(&call.facts));
        let lacks_room = failure.class == Class::Invalid && is_raised;
        let prompt = crate::compaction::plan::next_prompt_tokens(&self.state, &self.policy.context);
        let corrected = self.correct_limits(call, &failure, prompt).await;
        after.extend(corrected.map(|corrected| self.limits_warning(call, corrected)));
        let asks_for_less = match corrected {
            Some(_) => self.asks_for_less(call, prompt).await?,
            None => false,
        };
        if asks_for_less {
            after.splice(..0, [ended_with(call.attempt, 0, None, Some(failure.message))]);
            return self.commit(after, vec![]).await;
        }
        // What is too long is never asked again as it is: it is made smaller first, and `decide` sees that there is need.
        if failure.class == Class::TooLong {
            let too_long = Some(prompt);
            let mut ended = ended_with(call.attempt, 0, None, Some(failure.message));
            if let SessionRecord::AttemptEnded(ended) = &mut ended {
                ended.too_long = too_long;
            }
            after.splice(..0, [ended]);
            return self.commit(after, vec![]).await;
        }
        if failure.class == Class::RoleOrder && self.asking.may_reorder() {
            if !self.state.given_warnings.contains(ROLE_ORDER) {
                after.push(warning(ROLE_ORDER, failure.message.clone()));
            }
            after.splice(..0, [ended_with(call.attempt, 0, None, Some(failure.message))]);
            return self.commit(after, vec![]).await;
        }
        if lacks_tools || lacks_room {
            self.asking.has_no_tools |= lacks_tools;
            self.asking.has_no_room |= lacks_room;
            after.splice(..0, [ended_with(call.attempt, 0, None, Some(failure.message))]);
            return self.commit(after, vec![]).await;
        }
        self.discard(call, None, failure, after).await
    }

    /// What a refusal teaches about the size of the context or of an answer.
    async fn correct_limits(
        &mut self,
        call: &Call,
        failure: &Failure,
        prompt: u64,
    ) -> Option<CorrectedLimits> {
        let names_a_size = failure.class == Class::TooLong || failure.stated.answer.is_some();
        if !names_a_size || self.asking.corrections >= MAX_CORRECTIONS {
            return None;
        }
        let size = RefusedSize { prompt, answer: call.request.max_output.unwrap_or_default() };
        let corrected = call.model.correct_limits(failure, size).await?;
        self.asking.corrections += 1;
        Some(corrected)
    }

    /// Whether the next request differs from the one that was refused, now that the limits are other ones: it leaves less room for the
    /// answer, or the context is made smaller first.
    async fn asks_for_less(&mut self, call: &Call, prompt: u64) -> Step<bool> {
        let Some(facts) = self.facts_of(&call.model).await? else { return Ok(true) };
        self.asking.window = facts.window.map(|window| window.tokens);
        let room = self.usual_room(&facts);
        let usable = self.asking.window.map_or(u64::MAX, |window| window.saturating_sub(room));
        Ok(Some(room) < call.request.max_output || prompt > usable)
    }

    fn limits_warning(&self, call: &Call, corrected: CorrectedLimits) -> SessionRecord {
        let name = call.model.name();
        let CorrectedLimits { window: (before, now), answer } = corrected;
        let text = match answer {
            Some(most) => {
                format!("{name} gives answers of at most {most} tokens; it is asked for no more from here on")
            }
            None => format!(
                "{name} takes a context of {now} tokens, not {before}: its server refused more. It is used with {now} from here on; \
                 set model.context_window to what the server has"
            ),
        };
        warning("limits_corrected", text)
    }

    /// Nothing of an attempt counts: wait and ask again, ask another model, or end the turn.
    async fn discard(
        &mut self,
        call: &Call,
        stop: Option<String>,
        failure: Failure,
        after: Vec<SessionRecord>,
    ) -> Step<()> {
        let mut facts = vec![ended_with(call.attempt, 0, stop, Some(failure.message.clone()))];
        facts.extend(after);
        let mut policy = self.runtime.config.patience.retry(&self.runtime.config.settings.retry);
        // Where another model could answer, nobody has to wait for hours.
        if self.asking.has_stand_in() {
            policy.long_delays = LongDelays::GiveUp;
        }
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
                let class = match spent.limit {
                    Some(Spending::ServerDelay(_)) => Class::Throttled,
                    _ => spent.last.class,
                };
                let code = Some(class.code().to_owned());
                let mut told = spent.to_string();
                if let Some(Spending::ServerDelay(delay)) = spent.limit {
                    let delay = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
                    told += &format!(" ({})", At(now().0.saturating_add(delay)));
                }
                // In one append: an attempt that failed for good is never on disk without the end of its turn.
                self.end_turn(facts, TurnEnding { code, ..TurnEnding::failed(told) }).await
            }
        }
    }

    /// Waits before the next try. It is shown before it begins, and ends at once when somebody says so.
    async fn wait(&mut self, wait: Wait) -> Step<()> {
        if self.policy.must_end_turn() || self.state.is_cancelled() {
            return Ok(());
        }
        let Wait { class, attempt, of, delay, reason } = wait;
        let hurried = self.state.turn.as_ref().map_or(0, |turn| turn.retry_now_count);
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

/// Whether there is more in it than thoughts and blanks.
fn says_something(item: &Item) -> bool {
    match item {
        Item::Text { text, .. } => !text.trim().is_empty(),
        Item::ToolCall { .. } => true,
        _ => false,
    }
}

/// Whether it is a call whose arguments broke off.
fn is_cut_call(item: &Item) -> bool {
    match item {
        Item::ToolCall { arguments, .. } => serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_err(),
        _ => false,
    }
}

fn warning(code: &str, text: String) -> SessionRecord {
    SessionRecord::Warning(Warning::new(code, text))
}

pub(crate) fn ended_with(
    attempt: AttemptId,
    kept: usize,
    stop: Option<String>,
    error: Option<String>,
) -> SessionRecord {
    let kept = u32::try_from(kept).unwrap_or(u32::MAX);
    SessionRecord::AttemptEnded(AttemptEnded { attempt, kept, stop, error, goes_on: false, too_long: None })
}
