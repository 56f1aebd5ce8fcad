//! What is asked of whom.
//!
//! What is remembered here is forgotten when the process ends, which costs at most a few tries more. Everything that must not
//! be forgotten is in the records.

use std::collections::HashMap;
use std::sync::Arc;

use longhaul_context::{estimate, estimate_bytes, normalise};
use longhaul_journal::Error as JournalError;
use longhaul_model::{Facts, MAX_REORDERED, Model, Purpose, Request, Tries};
use longhaul_protocol::{AttemptId, Hash, Item, ModelChanged, SessionRecord, ToolSchema};

use crate::Error;
use crate::compaction::plan::ContextLimits;
use crate::session::state::{Epoch, State};
use crate::turn::fallback::Lineup;
use crate::worker::wait::{Attended, Heed};
use crate::worker::{Step, Stopped, Worker};

/// How long an answer may be, in tokens, if nobody says otherwise.
const USUAL_OUTPUT: u64 = 8_192;
/// So much longer may one be that was cut.
const LONGER: u64 = 4;
/// An answer is at most such a part of the window.
const ROOM_SHARE: u64 = 4;

/// Who is asked in this turn, and what went wrong so far.
pub(crate) struct Asking {
    lineup: Arc<Lineup>,
    place: usize,
    pub(crate) tries: Option<Tries>,
    /// Answers of this step without anything in them, and without anything but thoughts.
    pub(crate) empty: u32,
    pub(crate) only_thoughts: u32,
    /// Answers of this turn that were cut at their greatest length.
    pub(crate) cut: u32,
    /// The model said that it can't call tools, or that it does not give longer answers.
    pub(crate) has_no_tools: bool,
    pub(crate) has_no_room: bool,
    /// How large the context may be, as far as the model said.
    pub(crate) window: Option<u64>,
    /// Requests of this step that were sent again in another order of roles.
    reordered: u32,
    /// Refusals of this step that corrected the size of the context or of an answer.
    pub(crate) corrections: u32,
}

impl Asking {
    /// Goes on with the model that was asked last, if it is still among those that may be.
    pub(crate) fn new(lineup: Arc<Lineup>, state: &State) -> Self {
        let last = state.model.as_deref();
        let place = last.and_then(|last| lineup.0.iter().position(|model| model.name() == last)).unwrap_or(0);
        let cut = state.turn.as_ref().map_or(0, |turn| turn.length_cuts);
        Self { place, cut, ..Self::anew(lineup) }
    }

    /// Begins with the model that is set.
    fn anew(lineup: Arc<Lineup>) -> Self {
        let (tries, window) = (None, None);
        let (has_no_tools, has_no_room) = (false, false);
        Self {
            lineup,
            place: 0,
            tries,
            empty: 0,
            only_thoughts: 0,
            cut: 0,
            has_no_tools,
            has_no_room,
            window,
            reordered: 0,
            corrections: 0,
        }
    }

    /// Whether another model could stand in for this one.
    pub(crate) fn has_stand_in(&self) -> bool {
        self.place + 1 < self.lineup.0.len()
    }

    fn begin_step(&mut self) {
        (self.tries, self.empty, self.only_thoughts) = (None, 0, 0);
        (self.reordered, self.corrections) = (0, 0);
    }

    /// Whether a request whose order of roles was refused may be sent once more.
    pub(crate) fn may_reorder(&mut self) -> bool {
        self.reordered += 1;
        self.reordered <= MAX_REORDERED
    }

    pub(crate) fn model(&self) -> Arc<dyn Model> {
        self.lineup.0[self.place].clone()
    }

    /// Asks the next one from here on, if there is one.
    pub(crate) fn stand_in(&mut self) -> Option<(String, String)> {
        let from = self.model().name().to_owned();
        let next = self.lineup.0.get(self.place + 1)?.name().to_owned();
        self.place += 1;
        (self.has_no_tools, self.has_no_room) = (false, false);
        self.begin_step();
        Some((from, next))
    }
}

/// How long an answer may be: what is set, or the usual, and never more than a part of the window.
pub(crate) fn room_for_answer(set: Option<u64>, facts: &Facts, window: Option<u64>) -> u64 {
    let share = window.map_or(u64::MAX, |window| window / ROOM_SHARE);
    set.unwrap_or(USUAL_OUTPUT).min(facts.max_output.unwrap_or(u64::MAX)).min(share).max(1)
}

/// A model call, as far as it is known before it is made.
pub(crate) struct Call {
    pub(crate) attempt: AttemptId,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) facts: Facts,
    pub(crate) request: Request,
    /// What the prompt is estimated at, uncorrected.
    pub(crate) estimated: u64,
}

impl Worker {
    /// Chooses who is asked: at the beginning of a turn the model that is set, and at once the one that somebody chose. What
    /// begins with this call is named, if something does.
    pub(crate) fn choose(&mut self, turn: Option<u64>, step: Option<u64>) -> Option<SessionRecord> {
        let lineup = self.runtime.lineup();
        let was_chosen = !Arc::ptr_eq(&lineup, &self.asking.lineup);
        if turn.is_some() || was_chosen {
            self.asking = Asking::anew(lineup);
        }
        if step.is_some() {
            self.asking.begin_step();
        }
        let to = self.asking.model().name().to_owned();
        let from = self.state.model.clone().filter(|from| *from != to)?;
        let reason = if turn.is_some() && !was_chosen {
            "a new turn begins with the model that is set"
        } else {
            "it is the model that is set now"
        };
        Some(SessionRecord::ModelChanged(ModelChanged { from, to, reason: reason.to_owned() }))
    }

    /// Whether another model was chosen since the last one was asked.
    pub(crate) fn has_other_model(&self) -> bool {
        !Arc::ptr_eq(&self.runtime.lineup(), &self.asking.lineup)
    }

    /// What is about to be asked.
    pub(crate) async fn call(&mut self, attempt: AttemptId) -> Step<Call> {
        let model = self.asking.model();
        let facts = self.facts_of(&model).await?.unwrap_or_default();
        let window = facts.window.map(|window| window.tokens);
        self.asking.window = window.or(self.runtime.config.settings.model.context_window);
        let mut request = self.request().await?;
        if !facts.tools {
            request.tools = Arc::default();
        }
        request.max_output = Some(self.room(&facts));
        let answers_before = self.state.answer_count.saturating_sub(request.finished_steps() as u64);
        request.purpose =
            Purpose::Step { answers_before: usize::try_from(answers_before).unwrap_or(usize::MAX) };
        let estimated = estimate(&request.system, &request.tools, &request.items);
        Ok(Call { attempt, model, facts, request, estimated })
    }

    /// How long the answer may be. One that was cut may be longer, but never more than a part of the window.
    fn room(&self, facts: &Facts) -> u64 {
        let usual = self.usual_room(facts);
        if self.asking.cut == 0 || self.asking.has_no_room {
            return usual;
        }
        let share = self.asking.window.map_or(u64::MAX, |window| window / ROOM_SHARE);
        usual.saturating_mul(LONGER).min(facts.max_output.unwrap_or(u64::MAX)).min(share).max(1)
    }

    pub(crate) fn usual_room(&self, facts: &Facts) -> u64 {
        room_for_answer(self.runtime.config.settings.model.max_output_tokens, facts, self.asking.window)
    }

    /// How large the context may be, as far as is known: less than is said, where a server was seen to take less.
    pub(crate) fn window(&self) -> Option<u64> {
        self.policy.context.room.map(|room| room.window).or(self.asking.window)
    }

    /// Finds out what the model that is asked next has room for.
    pub(crate) async fn look_at_the_space(&mut self) -> Step<()> {
        // Where something is open, it is brought to its end first.
        let is_between =
            self.state.turn.as_ref().is_none_or(|turn| {
                turn.attempt.is_none() && turn.calls.iter().all(|call| call.result.is_some())
            });
        if !is_between {
            return Ok(());
        }
        let begins = self.state.turn.is_none() || self.has_other_model();
        let model = if begins { self.runtime.lineup().0[0].clone() } else { self.asking.model() };
        let Some(facts) = self.facts_of(&model).await? else { return Ok(()) };
        let settings = &self.runtime.config.settings;
        let window = facts.window.map(|window| window.tokens).or(settings.model.context_window);
        self.asking.window = window;
        let (is_idle, fixed) = (self.policy.context.is_idle, self.fixed(&facts));
        let space = |answer: u64| {
            let space =
                ContextLimits::new(&self.state, model.name(), window, answer, fixed, &settings.context);
            ContextLimits { is_idle, ..space }
        };
        // In a turn an answer that was cut may be longer, if the prompt fits beside that.
        let usual = self.usual_room(&facts);
        let longer = if begins { usual } else { self.room(&facts) };
        let with_longer = space(longer);
        let fits = |space: &ContextLimits| {
            space.room.is_none_or(|room| {
                crate::compaction::plan::next_prompt_tokens(&self.state, space) <= room.usable()
            })
        };
        let has_room = longer <= usual || fits(&with_longer);
        self.policy.context = if has_room { with_longer } else { space(usual) };
        self.asking.has_no_room |= !has_room;
        Ok(())
    }

    /// What is known of a model; nothing, if somebody wants the turn to end meanwhile.
    pub(crate) async fn facts_of(&mut self, model: &Arc<dyn Model>) -> Step<Option<Facts>> {
        let mut asked = model.facts();
        match self.attend(&mut asked, Heed::Cancel, None).await? {
            Attended::Done(facts) => {
                Ok(Some(Facts { tools: facts.tools && !self.asking.has_no_tools, ..facts }))
            }
            // The call that comes next notices that, too, before it is made.
            Attended::Called | Attended::Due => Ok(None),
            Attended::Suspended => Err(Stopped::Suspended),
        }
    }

    /// What system prompt and tools take, before anything is learnt: those of the epoch that is going on, where they are others.
    fn fixed(&self, facts: &Facts) -> u64 {
        match &self.state.epoch {
            Some(epoch) if !self.begins_like(epoch) => {
                let tools = if facts.tools { epoch.tools.bytes } else { 0 };
                estimate_bytes(epoch.system.bytes.saturating_add(tools))
            }
            _ => self.equipment.fixed(facts),
        }
    }

    /// Whether an epoch begins with what a new one would begin with.
    pub(crate) fn begins_like(&self, epoch: &Epoch) -> bool {
        self.policy.system == epoch.system.hash && self.policy.tools == epoch.tools.hash
    }

    /// What the model is asked: the epoch's beginning, then everything since.
    async fn request(&self) -> Step<Request> {
        let Some(epoch) = &self.state.epoch else {
            let (key, reason) = (self.shared.key.clone(), "it has no epoch".to_owned());
            return Err(Stopped::Failed(Error::Worker { key, reason }));
        };
        let items = normalise(&self.state.items);
        let pictures = self.pictures(&items).await?;
        if self.begins_like(epoch) {
            let (system, tools) = (self.equipment.system.text.clone(), self.equipment.tools.schemas.clone());
            return Ok(Request { system, tools, items, pictures, ..Request::default() });
        }
        // A turn that an older version began goes on with what it began with.
        let journal = &self.runtime.journal;
        let system = journal.blob(epoch.system.hash).await?;
        let tools = journal.blob(epoch.tools.hash).await?;
        let reason = |error: serde_json::Error| Error::Worker {
            key: self.shared.key.clone(),
            reason: format!("the tools of its epoch can't be read: {error}"),
        };
        let tools: Vec<ToolSchema> =
            serde_json::from_slice(&tools).map_err(reason).map_err(Stopped::Failed)?;
        let system = Arc::from(String::from_utf8_lossy(&system));
        Ok(Request { system, tools: tools.into(), items, pictures, ..Request::default() })
    }

    /// The bytes of the pictures in these items. One that is gone is told to the model as such.
    async fn pictures(&self, items: &[Arc<Item>]) -> Step<Arc<HashMap<Hash, Vec<u8>>>> {
        let mut pictures = HashMap::new();
        for item in items {
            let images = match &**item {
                Item::Image(image) => std::slice::from_ref(image),
                Item::ToolResult { images, .. } => images,
                _ => &[],
            };
            for image in images {
                match self.runtime.journal.blob(image.data.hash).await {
                    Ok(bytes) => drop(pictures.insert(image.data.hash, bytes.to_vec())),
                    Err(JournalError::MissingBlob { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(Arc::new(pictures))
    }
}
